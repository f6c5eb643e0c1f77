"""Reads a page from a file: a HAR, or a TOML list of objects."""

from __future__ import annotations

from pathlib import Path

from firstflight.base import files
from firstflight.base.errors import UsageError
from firstflight.runs import schema
from firstflight.runs.scenario_file import parsed
from firstflight.study.page import har
from firstflight.study.page.har import SavedPage
from firstflight.study.page.objects import PageObject, fault_of
from firstflight.study.page.scenario import listed

MOST_BYTES = 64 << 20  # of a file; a HAR that has the contents may be that large


def read(path: Path) -> SavedPage:
    """Read a page's file, as a HAR or as TOML by its name and content. Raises UsageError."""
    where = f"--page: {path}"
    try:
        content = files.content(path, MOST_BYTES)
    except OSError as error:
        more = "; save it without its contents" if "more than" in str(error.strerror) else ""
        raise UsageError(f"{where}: cannot be read: {error.strerror}{more}") from error
    begins = content.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if path.suffix == ".toml" or path.suffix != ".har" and begins != b"{":
        return SavedPage(from_toml(content, where))
    page = har.read(content, where)
    if fault := fault_of(page.objects):
        raise UsageError(f"{where}: {fault}")
    return page


def from_toml(content: bytes, where: str) -> tuple[PageObject, ...]:
    """Read the [[object]]s of a TOML file. Raises UsageError."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{where}: is not UTF-8 text: {error}") from error
    raw = parsed("page", text, where).raw
    schema.known_keys(raw, ("object",), where)
    return listed(raw, where)
