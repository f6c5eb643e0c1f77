"""Pages that a browser is to load, and cannot."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tests.refusals import Refusal, read, typed
from tests.unit.page import saved

_SITE: Mapping[str, str] = {"site/index.html": "<p>x</p>", "site/a.css": "p {}"}
_ON = "--client chromium --page"
_CONTENT = json.dumps({"log": {"entries": [{
    "startedDateTime": "2026-01-01T00:00:00Z", "request": {"method": "GET", "url": "https://a.test/"},
    "response": {"status": 200, "content": {"text": "x", "size": 1, "mimeType": "text/html"}}}]}})


def _of_site(*rows: tuple[str, str]) -> list[Refusal]:
    return [Refusal(command, words, files=_SITE) for command, words in rows]


REFUSALS = [
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
              (f"--url-path /b.html {_ON} site", "--page: site: has no /b.html: name the page by --url-path, such as"
               " /index.html"),
              (f"--mine a.test {_ON} site", "--mine: a browser requests what its page names, of all hosts"),
              (f"--server builtin {_ON} site", "the server builtin speaks HTTP/1.1 only: use another"),
              (f"--chain 0 {_ON} site", "TLS only"),
              (f"--chain 0 --http 1.1 {_ON} site", "a browser's page comes over TLS: give a chain"),
              (f"--signature ed25519 {_ON} site", "Chromium takes no certificates with ed25519 (signature, --signature):"
               " ecdsa or rsa2048"),
              (f"--resumed 1 {_ON} site", "a browser's page begins without a session")),
    *read("page.har", _ON, (b"", "--page: page.har: is not whole JSON, or cut off"), (b"{}", "is not a HAR file"),
          (b"[" * 200_000, "nested too deep"), (_CONTENT[:-1], "is not whole JSON, or cut off"),
          (saved.har(), "--page: page.har: has no contents of what was loaded: save it with contents"),
          (_CONTENT.replace("text/html", "image/png"), "none of its 1 entries is a document (text/html)")),
    *read("page.har", f"--url-path /x {_ON}", (_CONTENT, "--url-path: page.har has a page of its own"))]
