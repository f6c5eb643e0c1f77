"""What is said of HAR files: those of tests/unit/page/hars, and the same page as browsers save it.

And of sites that a browser is to load: a folder, and a HAR with its contents.
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
    """The name of each file, and what its reader is told."""
    made = {"as Chrome saves it": saved.har(), "as Firefox saves it": saved.firefox(),
            "with what a browser saves besides": saved.browsers()}
    stored = {path.stem: path.read_bytes() for path in sorted(FOLDER.iterdir())}
    for name, content in {**made, **stored}.items():
        try:
            page = har.read(content, name)
            yield f"HAR: {name}", [page.source, page.http_from, page.note]
        except UsageError as refusal:
            yield f"HAR: {name}", [str(refusal)]
    yield from _sites()


def _sites() -> Iterator[tuple[str, list[str]]]:
    """What is said of sites that a browser loads, each as it is and with all that is left out."""
    with TemporaryDirectory() as made:
        folder = Path(made) / "site"
        folder.mkdir()
        (folder / "index.html").write_text("<p>x</p>" * 400)
        yield "site: a folder of one file", _told(folder)
        for name in (".env", "a.css", "b.css"):
            (folder / name).write_text("x")
        (folder / "link").symlink_to("/etc/passwd")
        (folder / ".git").mkdir()
        yield "site: a folder with what is left out", _told(folder)
        for name, entries in {"a HAR": [_entry()], "a HAR with what differs": [
                _entry(), _entry("https://b.test/x.js", came=1000, http="h3", wait=90.0),
                _entry("https://b.test/y.js", came=1100, wait=40.0),
                _entry("https://b.test/z.js", text=None), _entry("file:///etc/passwd")]}.items():
            place = Path(made) / "page.har"
            place.write_text(json.dumps({"log": {
                "creator": {"name": "WebInspector", "version": "537.36"}, "entries": entries}}))
            yield f"site: {name}", _told(place)


def _told(path: Path) -> list[str]:
    found = site.read(path)
    return [found.source, *found.notes]


def _entry(url: str = "https://a.test/", text: str | None = "<p>x</p>" * 400, came: int = 0,
           http: str = "h2", wait: float = 0.0) -> dict[str, Any]:
    """An entry of a HAR. came: bytes, compressed by brotli; 0 for not compressed."""
    headers = [{"name": "content-encoding", "value": "br"}] if came else []
    return {"startedDateTime": "2026-01-01T00:00:00Z", "timings": {"wait": wait},
            "request": {"method": "GET", "url": url, "httpVersion": http},
            "response": {"status": 200, "httpVersion": http, "headers": headers, "bodySize": came,
                         "content": {"size": 3200, "mimeType": "text/html",
                                     **({} if text is None else {"text": text})}}}
