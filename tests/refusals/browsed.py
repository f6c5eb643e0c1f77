"""Pages that a browser is to load, and cannot."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tests.refusals import OWN, Refusal, read, typed
from tests.unit.page import saved

_SITE: Mapping[str, str] = {"site/index.html": "<p>x</p>", "site/a.css": "p {}"}
_ON = "--client chromium --page"
# The HAR of a page that is one document of one byte, with its content.
_CONTENT = json.dumps({"log": {"entries": [{
    "startedDateTime": "2026-01-01T00:00:00Z", "request": {"method": "GET", "url": "https://a.test/"},
    "response": {"status": 200, "content": {"text": "x", "size": 1, "mimeType": "text/html"}}}]}})


def _of_site(*rows: tuple[str, str]) -> list[Refusal]:
    """Command lines, with part of the answer, where the folder site/ has a page."""
    return [Refusal(command, words, files=_SITE) for command, words in rows]


_SCENARIO = """# A claim.
kind = "page"
title = "t"
source = "s"
[[page]]
name = "p"
folder = "site"
[[sweep]]
name = "s"
page = "p"
client = "chromium"
rtt_ms = 20
bandwidth_kbps = 5000
initcwnd = [10]
chain_bytes = 4000
signature = "ecdsa"
server = "nginx"
"""


def _scenario(*rows: tuple[str, str, str]) -> list[Refusal]:
    """Variants of _SCENARIO: the text that is replaced, the one in its place, part of the answer."""
    return [Refusal(OWN, f"{OWN}: {words}", files={**_SITE, OWN: _SCENARIO.replace(old, new)})
            for old, new, words in rows]


_FOLDER, _CLIENT = 'folder = "site"\n', 'client = "chromium"\n'
REFUSALS = [
    *_scenario(
        (_FOLDER, 'folder = "none"\n', '[[sweep]] "s": folder: none: cannot be read: No such file or directory'),
        (_FOLDER, 'har = "none"\n', '[[sweep]] "s": har: none: cannot be read: No such file or directory'),
        (_FOLDER, 'folder = "site/a.css"\n', '[[sweep]] "s": folder: site/a.css: is no folder'),
        (_FOLDER, 'har = "site"\n', '[[sweep]] "s": har: site: is a folder'),
        (_FOLDER, 'folder = "/etc/ssl"\n', '[[sweep]] "s": folder: /etc/ssl is not below the folder of this file'),
        (_FOLDER, 'folder = "site/../../secret"\n', '[[sweep]] "s": folder: site/../../secret is not below the folder'),
        (_FOLDER, 'har = "../page.har"\n', '[[sweep]] "s": har: ../page.har is not below the folder of this file'),
        (_FOLDER, 'folder = 3\n', '[[page]] "p": folder has to be a string, it is 3'),
        (_FOLDER, f'{_FOLDER}har = "x.har"\n', '[[page]] "p": site, folder and har each name the whole site: keep'),
        (_FOLDER, f'{_FOLDER}url_path = "a"\n', "[[page]] \"p\": url_path: 'a' has to begin with /"),
        (_FOLDER, f'{_FOLDER}url_path = "/b"\n', '[[sweep]] "s": folder: site: has no /b: name the page by url_path'),
        (_FOLDER, f'{_FOLDER}files = "*.js"\n', '[[sweep]] "s": folder: site: has no file to serve'),
        (_FOLDER, 'har = "x.har"\nfiles = "*"\n', '[[page]] "p": url_path and files go only with folder'),
        (_FOLDER, "objects = 3\nbytes = 90\n", "[[sweep]] \"s\": client: chromium loads a site: give the page 'p'"),
        (_CLIENT, "", "[[sweep]] \"s\": client: libcurl fetches objects, and the page 'p' has none"),
        (_CLIENT, 'client = "firefox"\n', "[[sweep]] \"s\": client: unknown 'firefox'; known: libcurl, chromium"),
        (_CLIENT, f"{_CLIENT}spread_ms = 20\n", '[[sweep]] "s": spread_ms draws times of parsing, which a browser'),
        ("chain_bytes = 4000\n", "", '[[sweep]] "s": a browser\'s page comes over TLS: give a chain')),
    *typed(("--client chromium", "--client chromium goes only with --page, such as --page site/"),
           ("--client chromium --objects 5", "--client chromium goes only with --page"),
           ("zhao2019 --client chromium", "--client chromium goes only with --page"),
           ("--server-time 0 --page x.har", "--server-time goes only with --page FILE.har --client"),
           ("--server-time 7", "invalid choice: '7'"),
           ("--url-path /x --page x.har", "--url-path with --page goes only with --client chromium"),
           (f"{_ON} none", "--page: none: cannot be read: No such file or directory")),
    *_of_site(("--page site", "--page: site is a folder, whose files a browser loads: add --client chromium"),
              ("--client curl --page site", "--client"),
              (f"--url-path x {_ON} site", "--url-path: 'x' has to begin with /"),
              (f"--url-path /b.html {_ON} site", "--page: site: has no /b.html: name the page by url_path"
               " (--url-path), such as /index.html"),
              (f"--mine a.test {_ON} site", "--mine: a browser requests what its page names, of all hosts"),
              (f"--server builtin {_ON} site", "the server builtin speaks HTTP/1.1 only: use another"),
              (f"--chain 0 {_ON} site", "TLS only"),
              (f"--chain 0 --http 1.1 {_ON} site", "a browser's page comes over TLS: give a chain"),
              (f"--fail-if 'paint_ms(10) > 300' {_ON} site", "so a condition has to compare two windows:"
               " write paint_ms(3) - paint_ms(10) < 50"),
              (f"--fail-if 'largest_paint_ms(3) - paint_ms(10) > 0' {_ON} site", "largest_paint_ms is known only to a frame"),
              (f"--fail-if 'paint_ms(3) + paint_ms(10) > 0' {_ON} site", "paint_ms is known only to a frame"),
              (f"--fail-if 'paint_ms > 0' {_ON} site", "paint_ms is known only to a frame"),
              (f"--signature ed25519 {_ON} site", "Chromium takes no certificates with ed25519 (signature, --signature):"
               " ecdsa or rsa2048"),
              (f"--resumed 1 {_ON} site", "a browser's page begins without a session")),
    *read("page.har", _ON, (b"", "--page: page.har: is not whole JSON, or cut off"), (b"{}", "is not a HAR file"),
          (b"[" * 200_000, "nested too deep"), (_CONTENT[:-1], "is not whole JSON, or cut off"),
          (saved.har(), "--page: page.har: has no contents of what was loaded: save it with contents"),
          (_CONTENT.replace("text/html", "image/png"), "none of its 1 entries is a document (text/html)")),
    *read("page.har", f"--url-path /x {_ON}", (_CONTENT, "--url-path: page.har has a page of its own"))]
