"""What stored runs of each kind are rendered to. Writes the goldens anew when it is run:

    /usr/bin/python3 -m tests.golden.rendering

They may change only where a sentence became plainer or a fault was corrected;
the commit says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from lab.core.findings import Report
from lab.core.kinds import RunData
from lab.load.study import LoadStudy
from lab.tell import markdown, page, text
from tests.golden import stored_fetches, stored_load, stored_trace

FOLDER = Path(__file__).resolve().parent / "rendered"
SEVERAL = 12  # numbers that are shown one by one
CELLS = 40  # records of a run of a part of a scenario


def page_of(report: Report) -> str:
    """A page without its style and script, which say nothing of a run."""
    whole = page.page(report, {})
    for name in ("page.css", "page.js"):
        part = (Path(page.__file__).parent / name).read_text(encoding="utf-8")
        assert part.strip() in whole, name
        whole = whole.replace(part.strip(), name)
    return whole


def parts_of(report: Report) -> str:
    """What the forms of a report do not show: all of its charts, and the columns of its tables."""
    lines = []
    for finding in report.findings:
        lines += [f"{name}: {value}" for name, value in _values(finding.name, finding.chart)]
        lines += [f"{finding.name}.table: " + ", ".join(
            f"{name[1:]} {value}" for name, value in _values("", column))
            for table in finding.tables for column in table.columns]
    return "\n".join(lines) + "\n"


def _values(name: str, part: Any) -> Iterator[tuple[str, object]]:
    """Its values that are not their defaults, with where they stand; of many the ends."""
    if is_dataclass(part):
        for each in fields(part):
            if getattr(part, each.name) != each.default:
                yield from _values(f"{name}.{each.name}", getattr(part, each.name))
    elif isinstance(part, (tuple, list)) and len(part) > SEVERAL:
        yield name, f"{len(part)} from {_short(part[0])} to {_short(part[-1])}"
    elif isinstance(part, (tuple, list)) and any(
            isinstance(each, (tuple, list)) or is_dataclass(each) for each in part):
        for number, each in enumerate(part):
            yield from _values(f"{name}[{number}]", each)
    elif part is not None:
        yield name, True if part is True else _short(part)


def _short(part: Any) -> str:
    if isinstance(part, (tuple, list)):
        return ", ".join(map(_short, part))
    return f"{part:.6g}" if isinstance(part, float) else str(part)


def cells(name: str) -> Report:
    return stored_fetches.report(name, stored_fetches.stored(name)[:CELLS], whole=False,
                                 partial=True)


def part(study: LoadStudy, run: RunData) -> Report:
    return replace(study, whole=False).report(replace(run, facts={**run.facts, "partial": True}))


REPORTS: dict[str, Callable[[], Report]] = {
    **{name: lambda name=name: stored_fetches.whole_report(name)  # type: ignore[misc]
       for name in stored_fetches.SMALL_SCENARIOS},
    **{f"{name}_cells": lambda name=name: cells(name)  # type: ignore[misc]
       for name in stored_fetches.SMALL_SCENARIOS},
    "load": stored_load.report, "load_cells": lambda: part(stored_load.study(), stored_load.run()),
    "trace": lambda: stored_trace.packetdrill().report(stored_trace.run())}
RENDERERS: dict[str, Callable[[Report], str]] = {
    "txt": text.text, "md": markdown.chapter, "html": page_of,
                                                   "parts": parts_of}
# Every kind in every form, and the text and parts of what else there is.
RENDERED = [*((name, form) for name in ("zhao2019", "load", "trace") for form in RENDERERS),
            *((name, form) for name in REPORTS if name not in ("zhao2019", "load", "trace")
              for form in ("txt", "parts"))]


def main() -> None:
    for path in FOLDER.iterdir():
        if path.suffix[1:] in RENDERERS:
            path.unlink()
    for name, form in RENDERED:
        (FOLDER / f"{name}.{form}").write_text(RENDERERS[form](REPORTS[name]()),
                                               encoding="utf-8")


if __name__ == "__main__":
    main()
