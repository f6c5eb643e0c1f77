"""Renders stored runs of each kind, whose texts are the goldens. This writes the goldens again:

    /usr/bin/python3 -m tests.golden.rendering

A golden may change only where a sentence became plainer or a fault was corrected. The commit says
which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy

from firstflight.findings.findings import Column, Report
from firstflight.findings.render import data, markdown, page, text
from firstflight.runs.kinds import RunData, Study
from tests.golden import (answers, captures, defaults, drawn, exchanges, judged, probed, quantities,
                          requested, stored_fetches, stored_load, stored_page, stored_questions,
                          stored_trace, stored_troubles, trace_reasons)
from tests.unit.render import reports

FOLDER = Path(__file__).resolve().parent / "rendered"
SEVERAL = 12  # of more numbers only the ends and the count are written
CELLS = 40  # records of a run that has a part of a scenario
PARTS = ("sentence", "missing", "bars", "published")  # of a finding: those that are text


def page_of(report: Report) -> str:
    """A page without its style and script, which are the same for every run."""
    whole = page.page(report, {})
    for name in ("page.css", "page.js"):
        content = (Path(page.__file__).parent / name).read_text(encoding="utf-8")
        assert content.strip() in whole, name
        whole = whole.replace(content.strip(), name)
    return whole


def parts_of(report: Report) -> str:
    """What a report has and its text lacks: charts, columns, trials, checks and timelines."""
    lines = [f"caption: {report.caption}",
             *(f"tile: {tile.value} {tile.meaning}" for tile in report.tiles)]
    lines += [f"sentence: {sentence}" for sentence in report.sentences]
    for finding in report.findings:
        lines += [f"{finding.name}.{part}: {content}" for part in PARTS
                  if (content := getattr(finding, part))]
        lines += [f"{name}: {value}" for name, value in _values(finding.name, finding.chart)]
        lines += [_column(f"{finding.name}.table", column)
                  for table in finding.tables for column in table.columns]
    for name in ("trials", "checks", "failures", "causes", "settings"):
        table = getattr(report, name)
        if table is not None:
            lines += [_column(name, column) for column in table.columns]
            lines += [f"{name}: {' | '.join(map(_short, row))}" for row in table.rows[:SEVERAL]]
            lines += [f"{name}: {table.title}. {' '.join(table.notes)}"]
    lines += [f"{fact.name}: {fact.value}" for fact in report.provenance]
    lines += [f"{name}: {value}" for timeline in report.timelines
              for name, value in _values("timeline", timeline)]
    return "\n".join(lines) + "\n"


def _column(table: str, column: Column) -> str:
    return f"{table}: " + ", ".join(f"{name[1:]} {value}" for name, value in _values("", column))


def _values(name: str, part: Any) -> Iterator[tuple[str, object]]:
    """The values of a part of a report, each with where it stands; of many only the ends.

    Values that are the default of their field are left out.
    """
    if is_dataclass(part):
        for field in fields(part):
            value = getattr(part, field.name)
            if isinstance(value, numpy.ndarray) or value != field.default:
                yield from _values(f"{name}.{field.name}", value)
    elif isinstance(part, numpy.ndarray) and part.ndim > 1:
        finite = part[numpy.isfinite(part)]
        yield name, (f"{part.shape[0]} x {part.shape[1]}, {finite.size} known from"
                     f" {_short(float(finite.min()))} to {_short(float(finite.max()))}, mean"
                     f" {_short(float(finite.mean()))}")
    elif isinstance(part, numpy.ndarray):
        yield from _values(name, part.tolist())
    elif isinstance(part, (tuple, list)) and len(part) > SEVERAL:
        yield name, f"{len(part)} from {_short(part[0])} to {_short(part[-1])}"
    elif isinstance(part, (tuple, list)) and any(
            isinstance(item, (tuple, list)) or is_dataclass(item) for item in part):
        for number, item in enumerate(part):
            yield from _values(f"{name}[{number}]", item)
    elif part is not None:
        yield name, True if part is True else _short(part)


def _short(part: Any) -> str:
    if isinstance(part, (tuple, list)):
        return ", ".join(map(_short, part))
    return f"{round(part, 9) + 0.0:.6g}" if isinstance(part, float) else str(part)


def cells(name: str) -> Report:
    return stored_fetches.report(name, stored_fetches.stored(name)[:CELLS], whole=False,
                                 partial=True)


def part(study: Study, run: RunData) -> Report:
    return replace(study, whole=False).report(replace(run, facts={**run.facts, "partial": True}))


# Every report is built once, since reports do not change.
REPORTS: dict[str, Callable[[], Report]] = {name: cache(made) for name, made in {
    **{name: lambda name=name: stored_fetches.whole_report(name)  # type: ignore[misc]
       for name in stored_fetches.SMALL_SCENARIOS},
    **{f"{name}_cells": lambda name=name: cells(name)  # type: ignore[misc]
       for name in stored_fetches.SMALL_SCENARIOS},
    **{name: lambda name=name: stored_fetches.whole_report(name)  # type: ignore[misc]
       for name in (stored_fetches.EXPLAINED, stored_fetches.STATED)},
    "eventful": lambda: stored_fetches.report("marrama2012", stored_fetches.eventful()),
    "eventful_cells": lambda: stored_fetches.report(
        "marrama2012", stored_fetches.eventful()[::3], whole=False, partial=True),
    "raw": stored_fetches.raw_report,
    "load": stored_load.report, "load_axes": stored_load.axes,
    "load_cells": lambda: part(stored_load.study(), stored_load.run()),
    "load_one_seed": stored_load.one_seed,
    "load_one_seed_cells": lambda: part(stored_load.study(), stored_load.one_seed_run()),
    "trace": lambda: stored_trace.packetdrill().report(stored_trace.run()),
    "page": lambda: stored_page.study().report(stored_page.run()),
    "page_part": lambda: part(stored_page.study(), stored_page.run()),
    "troubled": stored_troubles.report,
    "lossy": lambda: stored_trace.lossy().report(stored_trace.lossy_run()),
    **{name: lambda name=name: stored_questions.question(name)  # type: ignore[misc]
       for name in stored_questions.QUESTIONS},
    "users": stored_questions.users, "population": stored_questions.population,
    "fit": stored_questions.fitted, "best": stored_questions.best,
    "goodput": stored_questions.goodput,
    "steps": stored_questions.steps,
    "warm": stored_trace.warm, "warm_question": trace_reasons.report,
    "compared": stored_questions.compared,
    "judged": judged.report, "sample": reports.report, "sparse": reports.sparse}.items()}
RENDERERS: dict[str, Callable[[Report], str]] = {
    "txt": text.text, "brief": text.brief, "md": markdown.chapter, "html": page_of,
    "parts": parts_of,
    "data": partial(data.exported, "json"), "csv": partial(data.exported, "csv"),
    "kept": data.dumps}
BY_HAND = ("sample", "sparse")  # reports whose charts are not made to be drawn
# The forms of a report that has others than text and brief: one of each kind of scenario in every
# form, and reports that are built by hand as data, too.
FORMS = {**dict.fromkeys(("zhao2019", "load", "trace", "page"),
                         ("txt", "brief", "md", "html", "parts")),
         "bars": ("txt", "brief", "parts"),  # has the packets of two transfers
         "sample": ("txt", "brief", "md", "html", "data", "csv", "kept"),
         "sparse": ("txt", "brief", "md", "html", "csv")}
RENDERED = [(name, form) for name in REPORTS for form in FORMS.get(name, ("txt", "brief"))]


# Goldens that are no report, by the name of their file.
OTHERS = {"answers.words": answers.text, "captures.words": captures.text,
          "defaults.words": defaults.text, "drawn.words": drawn.text,
          "exchanges.words": exchanges.text, "judged.columns": judged.text,
          "probed.words": probed.text, "quantities.words": quantities.text,
          "requested.words": requested.text}


def main() -> None:
    for path in FOLDER.iterdir():
        if path.suffix[1:] in RENDERERS:
            path.unlink()
    for other, make_text in OTHERS.items():
        (FOLDER / other).write_text(make_text(), encoding="utf-8")
    for name, form in RENDERED:
        (FOLDER / f"{name}.{form}").write_text(RENDERERS[form](REPORTS[name]()),
                                               encoding="utf-8")


if __name__ == "__main__":
    main()
