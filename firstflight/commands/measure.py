"""Measures the studies of a command line, and shows each as a page, as figures and as text."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from firstflight.base import PROJECT, errors
from firstflight.base.errors import WriteError
from firstflight.base.terminal import say, terminal_width
from firstflight.commands import export, fail_if
from firstflight.commands.conditions import OfRecords, Source
from firstflight.testbed.engine_errors import engine_errors
from firstflight.commands.request import Output, Request
from firstflight.commands.runners import measurer_for
from firstflight.findings.render import text
from firstflight.findings.render.text import not_drawn
from firstflight.runs import runs
from firstflight.runs.earlier import Refining
from firstflight.runs.kinds import AnyRun, AnyStudy, R, RunData, S, Study, T, site_of
from firstflight.runs.measuring import MeasureOptions, measure
from firstflight.runs.results import provenance
from firstflight.runs.results.records import FAIL

# A question by flags with at most so many trials keeps the packets of all of them.
MOST_CAPTURED_TRIALS = 64
MANY_RECORDS = 1000  # so many take seconds to draw
MOST_NAMES = 3  # figures of a folder that a line names; more are only counted
PICTURES = {".png", ".svg", ".pdf"}


def worst(statuses: Sequence[int]) -> int:
    """The exit status for several scenarios: failures count most, then failed verdicts."""
    return next((status for status in (errors.FAILED, errors.VERDICT, errors.CANNOT,
                                       errors.CONDITION, errors.UNREAD)
                 if status in statuses), errors.OK)


def run_study(study: AnyStudy, request: Request) -> int:
    """Measure one scenario and show its report; return the exit status."""
    return show(study, measure_study(study, request), request.output)


def measure_study(study: Study[S, T, R], request: Request,
                  refining: Refining[T, R] | None = None) -> RunData[R]:
    """Measure one scenario; return its run.

    refining: how an answer is given before all is measured; None for no early answer.
    """
    with (engine_errors(), measurer_for(study, request.measuring) as measurer,
          _loading_meanwhile(request.output.draw and measurer.exact)):
        return measure(study, measurer, options_of(study, request, refining))


@contextmanager
def _loading_meanwhile(draws: bool) -> Iterator[None]:
    """While this context is open, a thread imports what figures and the page are made with.

    Loading takes as long as a guest's start, and a few trials keep one processor busy. In real time
    it would disturb what is measured. Nobody forks in this context (base.forked): the new process
    would wait for ever for an import that was under way. draws: False to load nothing.
    """
    loader = threading.Thread(target=_load_drawing)
    if draws:
        loader.start()
    try:
        yield
    finally:
        if draws:
            loader.join()


def _load_drawing() -> None:
    """Import what draws, and compile the page's template; `show` reports what is missing."""
    with suppress(Exception):
        from firstflight.findings.drawing import style
        from firstflight.findings.render import page
        page.template()
        style.settings()


def show(study: AnyStudy, run: AnyRun, output: Output, source: Source | None = None) -> int:
    """Write the page and figures of a run, then print its report; return the exit status.

    Files come first, so that a reader who leaves early (`| head`) loses only text. source: gives
    the numbers that --fail-if names; None for the means of the run.
    """
    if len(run.records) >= MANY_RECORDS and not output.quiet:
        say(f"{study.head.name}: measured; now its figures and its page are made")
    report = study.report(run)
    written = [run.folder / runs.TRIALS_CSV]
    if run.what_ifs:
        written.append(run.folder / runs.WHAT_IF_CSV)
    lost: list[WriteError] = []

    def keep(save: Callable[[], list[Path]]) -> None:
        """Save files; if that fails, note the error and go on."""
        try:
            written.extend(save())
        except WriteError as error:
            lost.append(error)

    keep(lambda: export.write_files(output, report))
    undrawn = ""
    if output.draw:
        from firstflight.findings.render import page
        pictures: dict[str, bytes] = {}
        is_drawn = study.whole or any(finding.bars for finding in report.findings)
        if is_drawn:
            from firstflight.findings import drawing  # imports matplotlib, which is slow
            formats = tuple(dict.fromkeys(("png", *output.formats)))  # the page shows PNG
            images = drawing.images(report, formats)

            # In the project's folder a part of a scenario would replace the whole scenario's.
            is_apart = not study.whole and output.figures == PROJECT / "figures"
            folder = run.folder if is_apart else output.figures
            keep(lambda: drawing.save(report.name, images, folder, output.formats))
            pictures = drawing.for_page(images)
        else:
            undrawn = f"{not_drawn(report, Path(os.path.relpath(run.folder)))}\n"
        undrawn += text.some_not_drawn(report)
        keep(lambda: [page.write(run.folder, report, pictures)])

    render = text.text if output.full else text.brief
    shown = (f"{render(report, terminal_width())}{files_written(written, output.full)}\n"
             f"{undrawn}")
    was_read = export.print_text(output, shown)
    was_read = export.print_data(output, report) and was_read
    for error in lost:
        say(f"run.sh: {error}")
    if lost:
        return errors.FAILED
    if status := status_of(run):
        return status
    return fail_if.judge(output, source or OfRecords(run.records), was_read)


def files_written(written: Sequence[Path], full: bool) -> str:
    """Lines that name the files that were written, one for each folder.

    full: whether every table was printed; if not, the first line says where all tables are.
    """
    folders: dict[Path, list[Path]] = {}
    for path in written:
        folders.setdefault(path.parent, []).append(path)

    lines = []
    has_page = any(path.suffix == ".html" for path in written)
    more = "" if full else f" (every table: {'the page, or ' if has_page else ''}--full)"

    for folder, paths in folders.items():
        names = [path.name for path in paths if path.suffix not in PICTURES]
        figures = [path.name for path in paths if path.suffix in PICTURES]
        names += figures if len(figures) <= MOST_NAMES else [f"{len(figures)} figures"]

        what = ", ".join(names)
        where = Path(os.path.relpath(folder))
        lines.append(f"{what} in {folder if '..' in where.parts else where}{more}")
        more = ""
    return "\n".join(lines)


def options_of(study: AnyStudy, request: Request, refining: Refining[T, R] | None
               ) -> MeasureOptions:
    """Where and how to measure, and what run.json records of the command and the machine.

    A question with few trials keeps the packets of all of them (keep_first_captures): its report
    draws the trial that shows most, which is known only at the end. Repeats that are added later,
    on networks that are drawn, keep none.
    """
    is_small_question = request.own and len(study.trials) <= MOST_CAPTURED_TRIALS
    measuring = request.measuring
    loads_sites = any(map(site_of, study.trials))  # in a browser
    of_machine = provenance.of_this_machine(PROJECT, with_browser=loads_sites)
    return MeasureOptions(
        results=measuring.results, seed=measuring.seed, fresh=measuring.fresh,
        keep_captures=measuring.keep_captures, keep_first_captures=is_small_question,
        facts={"arguments": sys.argv[1:], **of_machine},
        quiet=request.output.quiet, refining=refining, reasons=measuring.reasons)


def status_of(run: AnyRun) -> int:
    """The exit status that the records give: CANNOT where every trial was skipped, else FAILED
    where one failed, else VERDICT where a verdict failed, else OK.
    """
    if run.records and all(record.was_skipped for record in run.records):
        return errors.CANNOT
    if not all(record.ok or record.failed_as_expected for record in run.records):
        return errors.FAILED
    if any(record.verdict == FAIL for record in run.records):
        return errors.VERDICT
    return errors.OK
