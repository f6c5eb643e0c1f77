"""Reads a page from a file: a HAR, or a TOML list of objects."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from firstflight.base import inflated, untrusted
from firstflight.base.errors import UsageError
from firstflight.runs import schema
from firstflight.runs.scenario_file import parse
from firstflight.workloads.page import har
from firstflight.workloads.page.har import SavedPage
from firstflight.workloads.page.objects import MOST_OBJECTS, Certificate, fault_of
from firstflight.workloads.page.scenario import listed

MOST_BYTES = 64 << 20  # of a HAR; with contents it may be that large
MOST_LIST_BYTES = 1 << 20  # of a TOML file; a page's thousand objects have a tenth of it
MOST_SPACE = 1000  # bytes of white space before a HAR's first bracket
# How TOML begins: a comment, a table, or a key and its value.
_TOML = re.compile(rb'(?:\xef\xbb\xbf)?\s*(?:[#[]|["\w.-]+\s*=)')
LIST, HAR, GZIP = ".toml", ".har", ".gz"  # how the names of files end


def read(path: Path, mine: Sequence[str] = ()) -> SavedPage:
    """Read the file of a page, which may be compressed by gzip. Raises UsageError.

    The file's name and content tell whether it is a HAR or TOML. mine: names of hosts. The page has
    only the objects of these hosts; () for all hosts.
    """
    where = f"--page: {path}"
    try:
        content = inflated.content(path, MOST_BYTES)
    except OSError as error:
        # base.inflated has these words for a file that is too large.
        advice = "; save it without its contents" if "more than" in str(error.strerror) else ""
        raise UsageError(f"{where}: cannot be read: {error.strerror}{advice}") from error
    if not content.strip():
        raise UsageError(f"{where}: is empty")

    ending = Path(path.stem).suffix if path.suffix == GZIP else path.suffix
    first_character = content[:MOST_SPACE].lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    is_har = ending == HAR or (ending != LIST and first_character == b"{")
    if not is_har and ending != LIST and not _TOML.match(content):
        raise UsageError(f"{where}: is neither a HAR nor a list of [[object]]s in TOML; a log of"
                         " your users is for --users")
    if not is_har and mine:
        raise UsageError(f"{where}: --mine: a list has no names of hosts; list the objects that are"
                         " yours")
    if not is_har:
        return from_toml(content, where)

    page = har.read(content, where, mine)
    if fault := fault_of(page.objects, page.certificates):
        raise UsageError(f"{where}: {fault}")
    return page


def from_toml(content: bytes, where: str) -> SavedPage:
    """Read the [[object]]s and [[certificate]]s of a TOML file. Raises UsageError."""
    if len(content) > MOST_LIST_BYTES:
        raise UsageError(f"{where}: a list of more than {MOST_LIST_BYTES >> 20} MB; a page has at"
                         f" most {MOST_OBJECTS:,} [[object]]s")
    try:
        text = untrusted.text_of(content)
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from error

    raw = parse("page", text, where).raw
    schema.known_keys(raw, ("object", "certificate"), where)
    objects = listed(raw, where)
    tables = schema.as_tables(raw, "certificate", where)
    certificates = tuple(schema.read(Certificate, table, f"{where}: [[certificate]] {number}")
                         for number, table in enumerate(tables, start=1))
    if fault := fault_of(objects, certificates):
        raise UsageError(f"{where}: {fault}")
    return SavedPage(objects, certificates=certificates)
