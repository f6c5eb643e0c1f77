"""Mistakes in scenario files of any kind: in their text, their head and their sysctls."""

from __future__ import annotations

from firstflight.runs import scenario_file
from tests.refusals import OWN, Refusal, edited, read
from tests.unit.fetches.small import SMALL
from tests.unit.trace.test_trial import GOOD

TITLE = 'title = "t"\n'
DEEP = f"{OWN}: has tables or lists more than 20 deep in each other"
NAME = "a-z, 0-9 and _ only"


def sysctl(name: str, value: str) -> tuple[str, str]:
    return TITLE, f'{TITLE}sysctls = {{ "{name}" = {value} }}\n'


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
        (TITLE, f"{TITLE}x = {'{a=' * 3000}1{'}' * 3000}\n", DEEP),
        *((*sysctl(name, '"0"'), f"{OWN}: [sysctls]: unknown '{name}'") for name in (
            "net.ipv4.ip_forward", "net.core.rmem_max", "kernel.core_pattern",
            "net.ipv4.tcp_sack/../../../../etc/x", "net.ipv4.tcp_sack; reboot")),
        (*sysctl("net.ipv4.tcp_sak", '"0"'),
         "unknown 'net.ipv4.tcp_sak' (did you mean 'net.ipv4.tcp_sack'?)"),
        *((*sysctl("net.ipv4.tcp_rmem", value), "is not numbers or words") for value in (
            "0", "true", '""', '" 0"', '"0 "', '"0  1"', """ "0'; touch /tmp/x; '" """,
            '"$(reboot)"', '"`reboot`"', r'"0\n1"', r'"0\u0000"', r'"0\t1"', '"a|b"', '"1 2 3 4 5"',
            f'"{"x" * 65}"', '"٣"'))),
    *edited(
        SMALL,
        *(('metric = "total_ms"', f'metric = "total_ms"\npublished = {file}',
           "cannot be the name of a file") for file in (
            '"../README.md"', '"/etc/passwd"', '".."', r'"a\nb.csv"'))),
    *(refusal for text, kind in ((scenario_file.find("ietf78_load").text, "load"), (GOOD, "trace"))
      for refusal in edited(text, (f'kind = "{kind}"', f"""kind = "{kind}"
sysctls = {{ "net.ipv4.tcp_sack" = "0'; touch /tmp/x; '" }}""", "is not numbers or words"))),
    *read(OWN, "--check",
          (b"# caf\xe9", f"{OWN}: cannot be read: is not UTF-8 text"),
          ("# a".encode("utf-16"), f"{OWN}: cannot be read: is not UTF-8 text"),
          ("# A claim.\na = [1,\n2", f"{OWN}: line 3: "),
          ("# A claim.\n[[figure]]\n[[figure.line]]\nset = { system = nan }",
           f"{OWN}: figure: line: set: system: nan is not a finite number"),
          ("# A claim.\ntitle = 1979-05-27", 'title: 1979-05-27 is a date or a time of day; for'
           ' text write "1979-05-27"'),
          (f"# A claim.\n\nrtt_ms = {'1' * 5000}", f"{OWN}: line 3: a number of more than 18"),
          (f"# A claim.\nrtt_ms = 0x{'f' * 5000}", f"{OWN}: rtt_ms: a number of more than 18"),
          ("# A claim.\na = [1,\n2", " (end of file)"),
          ("# A claim.\ntitle = ", f"{OWN}: line 2: ")),
    *read("zhao2019.toml", "--check", (SMALL, "there is a scenario zhao2019 already")),
    *read("My-Own.toml", "--check", (SMALL, NAME)),
    Refusal("--check gone.toml", "there is no such file"),
    Refusal("--check zhao2091", "unknown scenario 'zhao2091'; did you mean zhao2019")]
