"""What a user is told of a HAR file, and of a site that a browser is to load.

The HAR files are those of tests/unit/page/hars, and one page as different browsers save it. A site
is a folder, or a HAR with contents.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from firstflight.base.errors import UsageError
from firstflight.workloads.page import har, site
from tests.unit.page import saved

FOLDER = Path(__file__).resolve().parents[1] / "unit" / "page" / "hars"


def paragraphs() -> Iterator[tuple[str, list[str]]]:
    """The name of each file with what a user is told of it."""
    built = {"as Chrome saves it": saved.har(), "as Firefox saves it": saved.firefox(),
            "with what a browser saves besides": saved.browsers()}
    stored = {path.stem: path.read_bytes() for path in sorted(FOLDER.iterdir())}
    for name, content in {**built, **stored}.items():
        try:
            page = har.read(content, name)
            yield f"HAR: {name}", [page.source, page.http_from, page.note]
        except UsageError as refusal:
            yield f"HAR: {name}", [str(refusal)]
    yield from _sites()


def _sites() -> Iterator[tuple[str, list[str]]]:
    """What a user is told of a folder and of a HAR: without and with files that are left out."""
    with TemporaryDirectory() as temporary:
        folder = Path(temporary) / "site"
        folder.mkdir()
        (folder / "index.html").write_text("<p>x</p>" * 400)
        yield "site: a folder of one file", _notes_of(folder)
        for name in (".env", "a.css", "b.css"):
            (folder / name).write_text("x")
        (folder / "link").symlink_to("/etc/passwd")
        (folder / ".git").mkdir()
        yield "site: a folder with what is left out", _notes_of(folder)

        differing = [_entry(), _entry("https://b.test/x.js", brotli_bytes=1000, http="h3",
                                      wait_ms=90.0),
                     _entry("https://b.test/y.js", brotli_bytes=1100, wait_ms=40.0),
                     _entry("https://b.test/z.js", text=None), _entry("file:///etc/passwd")]
        for name, entries in (("a HAR", [_entry()]), ("a HAR with what differs", differing)):
            path = Path(temporary) / "page.har"
            path.write_text(json.dumps({"log": {
                "creator": {"name": "WebInspector", "version": "537.36"}, "entries": entries}}))
            yield f"site: {name}", _notes_of(path)


def _notes_of(path: Path) -> list[str]:
    found = site.read(path)
    return [found.source, *found.notes]


def _entry(url: str = "https://a.test/", text: str | None = "<p>x</p>" * 400,
           brotli_bytes: int = 0, http: str = "h2", wait_ms: float = 0.0) -> dict[str, Any]:
    """An entry of a HAR. text: None if it was not saved. brotli_bytes: 0 if not compressed."""
    headers = [{"name": "content-encoding", "value": "br"}] if brotli_bytes else []
    return {"startedDateTime": "2026-01-01T00:00:00Z", "timings": {"wait": wait_ms},
            "request": {"method": "GET", "url": url, "httpVersion": http},
            "response": {"status": 200, "httpVersion": http, "headers": headers,
                         "bodySize": brotli_bytes,
                         "content": {"size": 3200, "mimeType": "text/html",
                                     **({} if text is None else {"text": text})}}}
