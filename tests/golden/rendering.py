"""What stored runs of each kind are rendered to. Writes the goldens anew when it is run:

    /usr/bin/python3 -m tests.golden.rendering

They may change only where a sentence became plainer or a fault was corrected;
the commit says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from lab.core.findings import Report
from lab.core.kinds import RunData
from lab.load.study import LoadStudy
from lab.tell import markdown, page, text
from tests.golden import stored_fetches, stored_load, stored_trace

FOLDER = Path(__file__).resolve().parent / "rendered"
CELLS = 40  # records of a run of a part of a scenario


def page_of(report: Report) -> str:
    """A page without its style and script, which say nothing of a run."""
    whole = page.page(report, {})
    for name in ("page.css", "page.js"):
        part = (Path(page.__file__).parent / name).read_text(encoding="utf-8")
        assert part.strip() in whole, name
        whole = whole.replace(part.strip(), name)
    return whole


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
    "txt": text.text, "md": markdown.chapter, "html": page_of}
# Every kind in every form, and the text of what else there is.
RENDERED = [*((name, form) for name in ("zhao2019", "load", "trace") for form in RENDERERS),
            *((name, "txt") for name in REPORTS if name not in ("zhao2019", "load", "trace"))]


def main() -> None:
    for path in FOLDER.iterdir():
        if path.suffix[1:] in RENDERERS:
            path.unlink()
    for name, form in RENDERED:
        (FOLDER / f"{name}.{form}").write_text(RENDERERS[form](REPORTS[name]()),
                                               encoding="utf-8")


if __name__ == "__main__":
    main()
