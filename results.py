#!/usr/bin/env python3
"""Write docs/RESULTS.md, its pages and README's chapter on results; measures only with --measure.

The findings of the newest whole run of every scenario go to docs/results/<scenario>.json,
where they replace those of an older run. All documents are rendered from there: the page
docs/results/<scenario>.md, the index docs/RESULTS.md and the chapter of README.
"""

from __future__ import annotations

if __name__ == "__main__":
    from commands.interrupted import quietly
    quietly("results.py")

import argparse
import os
import signal
import subprocess
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

from base import errors, files
from base.command_line import Parser, file_path, output_file, positive, run_main, say
from base.errors import FirstFlightError
from commands.stored import add_results, with_each
from findings import claims
from findings.findings import Report
from findings.render import data, markdown
from findings.render.values import quoted
from runs import runs, scenario_file
from study.registry import stored_report

DOCS = files.PROJECT / "docs"
OUTPUT = DOCS / "RESULTS.md"
FINDINGS = DOCS / "results"
GALLERY = DOCS / "gallery"
README = files.PROJECT / "README.md"
DRIVER = files.PROJECT / "run.sh"
# The index, with words in place of its table and of what the results are called.
WORDS = files.PROJECT / "docs" / "results_words.md"
GALLERY_HEAD = """\
# Gallery

Written by `/usr/bin/python3 results.py --gallery` from the newest whole run of every
scenario. [RESULTS.md](RESULTS.md) has the numbers. A picture shows the first figure of
a scenario. `./run.sh` draws all of them into `figures/`.

"""
# README's chapter on results with quotes in place of numbers, and its heading there.
TEMPLATE = files.PROJECT / "docs" / "what_comes_out.md"
# Behind MORE is what only docs/RESULTS.md has.
HEADING, NEXT = "## What comes out\n", "\n## "
MORE = "\n\n---\n\n"
WIDTH = 88


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = Parser(
        prog="results.py", allow_abbrev=False,
        description="Write docs/RESULTS.md, a page for each scenario with every published bar and"
                    " statement, and README's chapter on results, from the newest whole run of"
                    " every scenario.")
    add_results(parser)
    parser.add_argument("--findings", type=file_path, default=FINDINGS, metavar="DIR",
                        help="where findings and pages are kept; a scenario without a newer run"
                             " keeps its own (default docs/results)")
    parser.add_argument("--output", type=output_file, metavar="FILE",
                        help="the index (default docs/RESULTS.md); with --run the chapter (default"
                             " standard output)")
    parser.add_argument("--readme", type=file_path, default=README, metavar="FILE",
                        help="the file whose chapter on results is updated (default README.md)")
    parser.add_argument("--measure", type=positive, metavar="HOURS",
                        help="first measure every scenario that has no whole run of the last HOURS;"
                             " the same command resumes an interrupted one")
    parser.add_argument("--gallery", action="store_true",
                        help="write docs/GALLERY.md as well, with a picture of every scenario that"
                             " has a whole run")
    parser.add_argument("--run", type=file_path, metavar="FOLDER",
                        help="only the chapter of this run, of any scenario")
    return parser.parse_args(argv)


def measure(name: str, results: Path, hours: int) -> None:
    """A whole run by the driver, unless there is a recent one. Raises KeyboardInterrupt."""
    since = (datetime.now(timezone.utc) - timedelta(hours=hours)).isoformat()
    if any(finished(runs.read_facts(folder)) >= since for folder in runs.whole(name, results)):
        return
    say(f"results.py: measuring {name}")
    status = subprocess.run([DRIVER, "--scenario", name, "--results", results, "--no-figures"],
                            stdout=subprocess.DEVNULL, check=False).returncode
    if status in (errors.INTERRUPTED, -signal.SIGINT, -signal.SIGTERM):
        raise KeyboardInterrupt
    if status:
        say(f"results.py: {name}: ./run.sh ended with status {status}")


def keep_newest(name: str, results: Path, findings: Path) -> None:
    """Keep the findings of the newest whole run that can be read, unless newer ones are kept."""
    path = findings / f"{name}.json"
    before = finished(data.read(path).facts) if path.exists() else ""
    for folder in runs.whole(name, results):
        if before and finished(runs.read_facts(folder)) <= before:
            return
        try:
            print(files.write(path, data.dumps(stored_report(folder))))
            return
        except FirstFlightError as error:
            say(f"results.py: passed over: {error}")
    if not before:
        say(f"results.py: {results / name}: there is no whole run; measure it with"
            f" ./run.sh --scenario {name}")


def finished(facts: Mapping[str, object]) -> str:
    return str(facts.get("finished_at", ""))


def kept_reports(findings: Path) -> dict[str, Report]:
    """What is kept of each scenario, in its file's words of today. Raises FirstFlightError."""
    reports = {}
    for name in scenario_file.names():
        if (findings / f"{name}.json").exists():
            head = scenario_file.find(name).head()
            reports[name] = replace(data.read(findings / f"{name}.json"), title=head.title,
                                    claim=head.claim, source=head.source, opening=head.result)
    return reports


def documents(reports: Mapping[str, Report], index: Path, findings: Path,
              text: str = "") -> dict[Path, str]:
    """The pages, which lie where findings are kept, and the index, which links to them.

    text: what the index reports besides its table.
    """
    unmeasured = [name for name in scenario_file.names() if name not in reports]
    back, folder = os.path.relpath(index, findings), os.path.relpath(findings, index.parent)
    pages = {findings / f"{name}.md": markdown.page(report, back)
             for name, report in reports.items()}
    return {**pages, index: WORDS.read_text(encoding="utf-8").format(
        table=markdown.index(list(reports.values()), unmeasured, folder),
        together=f"## What comes out\n\n{text}\n\n" if text else "",
        within_percent=claims.WITHIN_PERCENT, within_points=claims.WITHIN_POINTS,
        least_draws=claims.LEAST_DRAWS, reproduced=claims.REPRODUCED,
        too_few=claims.in_full(claims.UNDECIDED), direction=claims.DIRECTION,
        not_reproduced=claims.NOT_REPRODUCED)}


def write_documents(reports: Mapping[str, Report], arguments: argparse.Namespace) -> None:
    """The index, its pages, and README's chapter unless it quotes what is not kept."""
    long = ""
    try:
        short, long = what_comes_out(reports.values())
        readme = in_readme(files.content(arguments.readme).decode(), short)
        print(files.write(arguments.readme, readme))
    except FirstFlightError as error:
        say(f"results.py: {arguments.readme}: left unchanged: {error}")
    for path, document in documents(reports, arguments.output or OUTPUT, arguments.findings,
                                    long).items():
        print(files.write(path, document))


def draw_gallery(known: Mapping[str, Report], results: Path) -> None:
    """docs/GALLERY.md and its pictures.

    known: what is kept of each scenario. Of one without a whole run its picture stands.
    """
    from findings import drawing  # and with it matplotlib: only where it draws
    shown = []
    for name, report in known.items():
        measured = first_figure(name, results)
        if measured:
            drawn = drawing.small(drawing.pngs(drawing.images(measured)))
            for content in drawn.values():
                print(files.write(GALLERY / f"{name}.png", content))
        if (GALLERY / f"{name}.png").exists():
            shown.append(measured or report)
    page = DOCS / "GALLERY.md"
    print(files.write(page, GALLERY_HEAD + markdown.gallery(
        shown, {report.name: f"gallery/{report.name}.png" for report in shown},
        page.read_text(encoding="utf-8") if page.exists() else "")))


def first_figure(name: str, results: Path) -> Report | None:
    """The report of the newest whole run with its first figure only; None where it has none."""
    folders = runs.whole(name, results)
    report = stored_report(folders[0]) if folders else None
    first = next((finding for finding in report.findings if finding.chart is not None), None) \
        if report else None
    return replace(report, findings=(replace(first, also=()),)) if report and first else None


def what_comes_out(reports: Iterable[Report]) -> tuple[str, str]:
    """README's chapter, and the longer text of the index. Raises FirstFlightError."""
    text = filled(quoted(TEMPLATE.read_text(encoding="utf-8").strip(), reports))
    short, _, long = text.partition(MORE)
    return short, long


def in_readme(text: str, chapter: str) -> str:
    """README's text with its chapter on results replaced. Raises FirstFlightError."""
    before, heading, after = text.partition(HEADING)
    if not heading:
        raise FirstFlightError(f"README.md has no chapter {HEADING.strip()!r}")
    return f"{before}{heading}\n{chapter}\n{NEXT}{after.partition(NEXT)[2]}"


def filled(text: str) -> str:
    """Paragraphs in lines of a width that README has."""
    return "\n\n".join(textwrap.fill(paragraph, WIDTH, break_long_words=False,
                                     break_on_hyphens=False) for paragraph in text.split("\n\n"))


def write_chapter(folder: Path, output: Path | None) -> None:
    """The chapter of one run, to a file or to standard output. Raises FirstFlightError."""
    chapter = markdown.chapter(stored_report(folder))
    if output is None:
        print(chapter, end="")
    else:
        print(files.write(output, chapter))


def main(argv: Sequence[str]) -> int:
    arguments = parse(argv)
    if arguments.run is not None:
        return with_each("results.py", [arguments.run],
                         lambda folder: write_chapter(folder, arguments.output))
    for name in scenario_file.names():
        if arguments.measure:
            measure(name, arguments.results, arguments.measure)
        keep_newest(name, arguments.results, arguments.findings)
    reports = kept_reports(arguments.findings)
    write_documents(reports, arguments)
    if arguments.gallery:
        draw_gallery(reports, arguments.results)
    return errors.OK


if __name__ == "__main__":
    run_main("results.py", main)
