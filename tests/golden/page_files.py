"""What is said of HAR files: those of tests/unit/page/hars, and the same page as browsers save it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from firstflight.base.errors import UsageError
from firstflight.workloads.page import har
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
