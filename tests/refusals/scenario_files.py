"""Scenario files of any kind: their text, their head, their sysctls."""

from __future__ import annotations

from tests.refusals import OWN, Refusal, edited, read
from tests.unit.fetches.small import SMALL

TITLE = 'title = "t"\n'
DEEP = f"{OWN}: has tables or lists more than 20 deep in each other"
NAME = "a-z, 0-9 and _ only"

REFUSALS = [
    *edited(
        SMALL,
        ("# A claim.\n", "", f"{OWN}: line 1: has to be a comment, the claim"),
        ("A claim.", "", f"{OWN}: line 1: has to be a comment, the claim"),
        (TITLE, "title = 3\n", f"{OWN}: title has to be a string, it is 3"),
        ('source = "s"\n', "", f"{OWN}: source is missing"),
        (TITLE, f'{TITLE}[sysctls]\nsack = "0"\n', f"{OWN}: [sysctls]: unknown 'sack'; known are"),
        (TITLE, f"{TITLE}sysctls = 3\n", f"{OWN}: sysctls has to be a table"),
        (TITLE, TITLE + TITLE, f"{OWN}: line 3: "),
        (TITLE, f"{TITLE}a = = 1\n", f"{OWN}: line 3: "),
        (TITLE, f"{TITLE}b = = 1\n", " (column 5)"),
        (TITLE, f"{TITLE}a = {'9' * 5000}\n", f"{OWN}: "),
        (TITLE, f"{TITLE}x = {'[' * 50_000}\n", DEEP),
        (TITLE, f"{TITLE}x = {'[' * 40}{']' * 40}\n", DEEP),
        (TITLE, f"{TITLE}x = {'{a=' * 3000}1{'}' * 3000}\n", DEEP)),
    *read(OWN, "--check",
          (b"# caf\xe9", f"{OWN}: cannot be read: is not UTF-8 text"),
          ("# a".encode("utf-16"), f"{OWN}: cannot be read: is not UTF-8 text"),
          ("# A claim.\na = [1,\n2", f"{OWN}: line 3: "),
          ("# A claim.\na = [1,\n2", " (end of file)"),
          ("# A claim.\ntitle = ", f"{OWN}: line 2: ")),
    *read("zhao2019.toml", "--check", (SMALL, "there is a scenario zhao2019 already")),
    *read("My-Own.toml", "--check", (SMALL, NAME)),
    Refusal("--check gone.toml", "there is no such file"),
    Refusal("--check zhao2091", "unknown scenario 'zhao2091'; did you mean zhao2019")]
