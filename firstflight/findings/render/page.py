"""Renders report.html: the whole report of a run as one page that loads nothing.

Figures, style and script are inside the page. The page depends on the report and the drawings only,
so that rendering it again gives the same bytes. All HTML is in the templates (page.html.j2, and the
files that it includes), which escape the values that they get.
"""

from __future__ import annotations

import base64
import functools
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jinja2

from firstflight.base import files
from firstflight.base.words import visible_line, keep_units_together
from firstflight.findings.claims import in_full
from firstflight.findings.findings import Finding, Report, Table
from firstflight.findings.names import ON_THE_WIRE
from firstflight.findings.render.text import answer_of
from firstflight.findings.render.values import shortened, written

PAGE = "report.html"
TEMPLATE = "page.html.j2"
# The glossary's path from the page of a run in the project's own results folder.
GLOSSARY = "../../../docs/GLOSSARY.md"


@dataclass(frozen=True)
class Picture:
    """A drawing inside the page."""

    title: str
    source: str  # a data: URL, which has the whole drawing
    text: str  # for readers who cannot see the drawing


def page(report: Report, drawings: Mapping[str, bytes]) -> str:
    """The page: the answer with its figure and the reasons, then other figures, then all tables.

    drawings: the contents of PNG or WebP files by name. A drawing that has the name of a finding
    stands with this finding, and any other after all findings.
    """
    shown = [finding for finding in report.findings if not finding.missing]
    pictures = {finding.name: _picture_of(finding, drawings[finding.name])
                for finding in shown if finding.name in drawings}
    first = next((finding for finding in shown if finding.name in pictures), None)
    later = [finding for finding in shown if finding.name in pictures and finding is not first]
    # The sections with tables. A finding without a picture and without tables has one, too.
    told_below = [finding for finding in shown if finding.tables or finding not in (first, *later)]
    answer = answer_of(report)
    if not answer.sentence and first is not None:
        answer = replace(answer, sentence=first.sentence)

    packets = None
    if ON_THE_WIRE in drawings:
        packets = _picture("On the wire", "", drawings[ON_THE_WIRE])
    others = sorted({*drawings} - {finding.name for finding in report.findings} - {ON_THE_WIRE})

    return template().render(
        report=report, answer=answer, findings=shown, pictures=pictures, glossary=GLOSSARY,
        first=first, later=later, told_below=told_below,
        has_parts=bool(report.tiles or report.sentences),
        others=[_picture(name.replace("_", " "), "", drawings[name]) for name in others],
        missing=[finding for finding in report.findings if finding.missing], packets=packets)


def write(folder: Path, report: Report, drawings: Mapping[str, bytes]) -> Path:
    """Write the page into the run's folder; return its path. Raises FirstFlightError."""
    return files.save(folder, PAGE, page(report, drawings))


def _picture_of(finding: Finding, drawing: bytes) -> Picture:
    """The picture of a finding, with a text that says where the numbers stand."""
    numbers = "; its numbers are in the tables below" if finding.tables else ""
    return _picture(finding.title, finding.sentence or f"{finding.title}{numbers}.", drawing)


def _picture(title: str, text: str, drawing: bytes) -> Picture:
    """The picture of a PNG or WebP file's content. text: "" for the title."""
    form = "png" if drawing.startswith(b"\x89PNG") else "webp"
    address = f"data:image/{form};base64,{base64.b64encode(drawing).decode('ascii')}"
    return Picture(title, address, text or title)


@functools.cache
def template() -> jinja2.Template:
    """The page's template, compiled. Values are cleaned of invisible characters, then escaped."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).resolve().parent), autoescape=True,
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True, finalize=_clean)
    environment.filters.update(tight=keep_units_together, written=written, groups=_groups,
                               in_full=in_full)
    environment.globals.update(shortened=shortened)
    for name in environment.list_templates(extensions=["j2"]):  # those that it includes, too
        environment.get_template(name)
    return environment.get_template(TEMPLATE)


def _clean(value: Any) -> Any:
    """A text without invisible characters. Any other value is unchanged, such as a Markup, which
    has HTML of the templates.
    """
    return visible_line(value) if type(value) is str else value


def _groups(table: Table) -> list[tuple[str, int]]:
    """The groups above the columns, each with the number of its columns; [] without groups."""
    groups = itertools.groupby(column.group for column in table.columns)
    spans = [(name, len(list(columns))) for name, columns in groups]
    return spans if any(name for name, _ in spans) else []
