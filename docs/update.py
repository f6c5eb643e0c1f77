#!/usr/bin/env python3
"""Write docs/REPRODUCE.md, GALLERY, a page for each scenario, and README's chapter on results.

The findings of the newest whole run of each scenario replace those of an older run in
docs/results/<scenario>.json. All documents are rendered from these files:

    docs/results/<scenario>.md   the page of a scenario
    docs/GALLERY.md              a picture of each scenario, and a link to its page
    docs/REPRODUCE.md            by a template, in which quotes of findings stand for numbers
    README.md                    its chapter on results, by such a template

Nothing is measured without --measure.
"""

from __future__ import annotations

if __name__ == "__main__":
    import sys
    sys.path.insert(0, sys.path[0].rpartition("/")[0])  # the project's folder, with its modules
    from firstflight.commands.interrupted import quietly
    quietly("docs/update.py")

import argparse
import os
import re
import signal
import subprocess
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from functools import cache, partial
from pathlib import Path

from firstflight.base import PROJECT, errors, files, reading
from firstflight.base.argument_types import file_path, output_file, positive_number
from firstflight.base.errors import FirstFlightError, UsageError
from firstflight.base.main import run_main
from firstflight.base.parser import Parser
from firstflight.base.terminal import say
from firstflight.commands.stored import add_results, with_each
from firstflight.findings import claims
from firstflight.findings.charts import BarChart, BarPage, TimeChart, bar_page, joint_title
from firstflight.findings.findings import Report, Table
from firstflight.findings.render import data, markdown
from firstflight.findings.render.values import quoted
from firstflight.runs import runs, scenario_file
from firstflight.study.registry import stored_report

DOCS = PROJECT / "docs"
OUTPUT = DOCS / "REPRODUCE.md"
FINDINGS = DOCS / "results"
GALLERY = DOCS / "gallery"
README = PROJECT / "README.md"
DRIVER = PROJECT / "run.sh"
# The templates of documents, in which quotes of findings stand for numbers.
TEMPLATES = DOCS / "templates"
GALLERY_HEAD = """\
# Every scenario, with its picture

Each picture leads to the page with every table, every published number, and the run. It is the first
figure of its scenario, or the panels of its Figure 5 together. `./run.sh SCENARIO` draws all of its
figures into `figures/`. Where [REPRODUCE]({index}) has the claims, the published bars and statements
are only counted here. `/usr/bin/python3 docs/update.py --gallery` writes this page and its pictures.

"""
# The figures that the gallery shows after a scenario's first one; README shows the first of them.
FURTHER = {"dukkipati2010": ("fig5_rtt", "fig6", "causes"), "ietf78_south_america": ("photos", "maps"),
           "page2026": ("mobile", "waterfall"), "browser2026": ("mobile_hosts", "waterfall")}
# Larger samples whose findings are kept, too: the name of the page, and its scenario and --sample.
SAMPLES = {"dukkipati2010_full": ("dukkipati2010", "full")}
# The figures of bars that the gallery shows together, if the first ones do not show the claim.
TOGETHER = {"today2026_grid": ("rtt_3_10", "rtt_10_20", "http2_rtt_10_20")}
MOST_ON_A_PAGE = 3  # figures of bars in one picture of the gallery
# Where README's chapter on results begins, and where the next chapter does.
HEADING, NEXT = "## What comes out\n", "\n## "
WIDTH = 88  # characters of a line in README
MOST_ROWS = 20  # of a table on a page; the JSON file next to the page has the whole table


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Read a command line of docs/update.py. A wrong one ends the program with a line."""
    parser = Parser(
        prog="docs/update.py", allow_abbrev=False,
        description="Write docs/REPRODUCE.md, a page for each scenario with every published bar"
                    " and statement, and README's chapter on results, from the newest whole run of"
                    " every scenario.")
    add_results(parser)
    parser.add_argument("--findings", type=file_path, default=FINDINGS, metavar="DIR",
                        help="where findings and pages are kept; a scenario without a newer run"
                             " keeps its own (default docs/results)")
    parser.add_argument("--output", type=output_file, metavar="FILE",
                        help="the document of all claims (default docs/REPRODUCE.md); with --run"
                             " the chapter (default standard output)")
    parser.add_argument("--readme", type=file_path, default=README, metavar="FILE",
                        help="the file whose chapter on results is updated (default README.md)")
    parser.add_argument("--measure", type=positive_number, metavar="HOURS",
                        help="first measure every scenario that has no whole run of the last HOURS;"
                             " the same command resumes an interrupted one")
    parser.add_argument("--gallery", action="store_true",
                        help="draw the pictures of docs/GALLERY.md anew, of every scenario that"
                             " has a whole run")
    parser.add_argument("--run", type=file_path, metavar="FOLDER",
                        help="only the chapter of this run, of any scenario")
    return parser.parse_args(argv)


def measure(name: str, results: Path, hours: int) -> None:
    """Run a whole scenario by run.sh, unless a run has finished in the last hours.

    Raises KeyboardInterrupt if run.sh was interrupted.
    """
    since = (datetime.now(timezone.utc) - timedelta(hours=hours)).isoformat()
    if any(finished(runs.read_facts(folder)) >= since for folder in whole_runs(name, results)):
        return
    say(f"docs/update.py: measuring {name}")
    status = subprocess.run([DRIVER, "--scenario", name, "--results", results, "--no-figures"],
                            stdout=subprocess.DEVNULL, check=False).returncode
    if status in (errors.INTERRUPTED, -signal.SIGINT, -signal.SIGTERM):
        raise KeyboardInterrupt
    if status:
        say(f"docs/update.py: {name}: ./run.sh ended with status {status}")


def whole_runs(name: str, results: Path) -> list[Path]:
    """The runs of a whole scenario, or of a page of SAMPLES, the newest first."""
    scenario, sample = SAMPLES.get(name, (name, ""))
    return [folder for folder in runs.whole_runs(scenario, results)
            if sample_of(runs.read_facts(folder)) == sample]


def sample_of(facts: Mapping[str, object]) -> str:
    """The run's --sample; "" for the scenario's own sample."""
    words = facts.get("arguments")
    flags = iter([str(word) for word in words] if isinstance(words, list) else [])
    for flag in flags:
        if flag == "--sample":
            return next(flags, "")
        if flag.startswith("--sample="):
            return flag.partition("=")[2]
    return ""


def keep_newest(name: str, results: Path, findings: Path) -> None:
    """Keep the findings of the newest whole run that can be read, unless newer ones are kept.

    name: of a scenario, or of a page of SAMPLES. findings: the folder in which they are kept.
    """
    path = findings / f"{name}.json"
    kept_at = finished(data.read(path).facts) if path.exists() else ""
    for folder in whole_runs(name, results):
        facts = runs.read_facts(folder)
        if kept_at and finished(facts) <= kept_at:
            return
        if is_changed(facts):
            say(f"docs/update.py: skipped: {folder}: no commit has what measured it; commit the"
                " changes, and measure again")
            continue
        try:
            report = in_words_of_today(name, stored_report(folder))
            print(files.write(path, data.dumps(report)))
            return
        except FirstFlightError as error:
            say(f"docs/update.py: skipped: {error}")
    if not kept_at:
        scenario, sample = SAMPLES.get(name, (name, ""))
        flag = f" --sample {sample}" if sample else ""
        say(f"docs/update.py: {results / scenario}: there is no whole run; measure it with"
            f" ./run.sh --scenario {scenario}{flag}")


def is_changed(facts: Mapping[str, object]) -> bool:
    """Whether a run was measured by a project with changes that no commit had."""
    project = facts.get("project")
    return isinstance(project, dict) and bool(project.get("changed"))


def finished(facts: Mapping[str, object]) -> str:
    """When a run finished, as ISO 8601; "" where its facts do not say."""
    return str(facts.get("finished_at", ""))


def kept_reports(findings: Path) -> dict[str, Report]:
    """The kept report of each scenario, with the words of its file today, by name.

    Raises FirstFlightError.
    """
    reports = {}
    for name in sorted((*scenario_file.names(), *SAMPLES)):
        if (findings / f"{name}.json").exists():
            reports[name] = in_words_of_today(name, data.read(findings / f"{name}.json"))
    return reports


def in_words_of_today(name: str, report: Report) -> Report:
    """The report with the words that its scenario's file has now. Raises FirstFlightError."""
    scenario, sample = SAMPLES.get(name, (name, ""))
    head = scenario_file.find(scenario).head()
    title = f"{head.title}: --sample {sample}" if sample else head.title
    return replace(report, name=name, title=title, claim=head.claim, source=head.source,
                   opening=head.result)


def write_findings(reports: Mapping[str, Report], findings: Path) -> None:
    """Write the kept findings again where the words of their scenario's file have changed."""
    for name, report in reports.items():
        path, text = findings / f"{name}.json", data.dumps(report)
        if reading.content(path).decode("utf-8") != text:
            print(files.write(path, text))


def template(name: str) -> str:
    """The text of the template of this name."""
    return (TEMPLATES / f"{name}.txt").read_text(encoding="utf-8")


def pages(reports: Mapping[str, Report], index: Path, findings: Path) -> dict[Path, str]:
    """The pages of scenarios, by path. They stand next to the findings and link to the index.

    index: the path of REPRODUCE.
    """
    to_index, to_gallery = os.path.relpath(index, findings), os.path.relpath(GALLERY, findings)
    made = {}
    for name, report in reports.items():
        scenario, _ = SAMPLES.get(name, (name, ""))  # figures are named after the scenario
        short = replace(with_short_tables(report), name=scenario)
        pictures = [f"{to_gallery}/{path.name}" for path in pictures_of(name) if path.exists()]
        made[findings / f"{name}.md"] = markdown.page(short, to_index, pictures)
    return made


@cache
def own_tolerances(names: tuple[str, ...]) -> str:
    """Lines with the tolerances of those scenarios that have tolerances of their own.

    The scenarios' files are read for them, once.
    """
    lines = []
    for name in names:
        with suppress(UsageError):  # main() reports what is wrong with a file
            if table := scenario_file.find(name).raw.get("as_published"):
                lines.append(f"- `{name}`: {table['within_percent']} % or {table['within_ms']} ms,"
                             f" and {table['within_points']} points")
    return "\n".join(lines)


def with_short_tables(report: Report) -> Report:
    """The report with longer tables cut to MOST_ROWS. Its result still quotes the whole tables."""
    def shorten(table: Table) -> Table:
        if len(table.rows) <= MOST_ROWS:
            return table
        note = f"{report.name}.json in this folder has all {len(table.rows)} rows."
        return replace(table.first(MOST_ROWS), notes=(note, *table.notes))

    opening = report.opening
    with suppress(FirstFlightError):  # the page says what cannot be quoted
        opening = quoted(opening, [report])
    findings = tuple(replace(finding, tables=tuple(map(shorten, finding.tables)))
                     for finding in report.findings)
    return replace(report, opening=opening, findings=findings)


def write_documents(reports: Mapping[str, Report], readme: Path, index: Path, findings: Path
                    ) -> None:
    """Write README's chapter, REPRODUCE, GALLERY next to it, and the pages.

    A document that quotes a finding that is not kept is left unchanged, and a message says so.
    """
    documents = ((readme, partial(in_readme, readme, reports.values())),
                 (index, partial(reproduce, reports)),
                 (index.parent / "GALLERY.md", partial(gallery, index, reports, findings)))
    for path, make_text in documents:
        try:
            print(files.write(path, make_text()))
        except FirstFlightError as error:
            say(f"docs/update.py: {path}: left unchanged: {error}")
    for path, page in pages(reports, index, findings).items():
        print(files.write(path, page))


def pictures_of(name: str) -> list[Path]:
    """The paths of a scenario's pictures in the gallery, whether they exist or not."""
    further = [GALLERY / f"{name}_{figure}.png" for figure in FURTHER.get(name, ())]
    return [GALLERY / f"{name}.png", *further]


def gallery(index: Path, reports: Mapping[str, Report], findings: Path) -> str:
    """The text of docs/GALLERY.md, which stands next to the index (REPRODUCE)."""
    to_gallery = os.path.relpath(GALLERY, index.parent)
    pictures = {}
    for name in reports:
        pictures[name] = [f"{to_gallery}/{path.name}" for path in pictures_of(name)
                          if path.exists()]
    unmeasured = [name for name in scenario_file.names() if name not in reports]
    # REPRODUCE has the claims of the scenarios whose minutes it quotes.
    judged = {*re.findall(r"\{(\w+) / minutes\}", template("REPRODUCE"))}

    head = GALLERY_HEAD.replace("{index}", index.name)
    return head + markdown.gallery(
        list(reports.values()), pictures, unmeasured, os.path.relpath(findings, index.parent),
        judged=judged) + "\n"


def draw_gallery(known: Mapping[str, Report], results: Path) -> None:
    """Draw the pictures of docs/GALLERY.md.

    known: the kept report of each scenario. A scenario without a whole run keeps its pictures.
    """
    from firstflight.findings import drawing  # imports matplotlib, which is slow
    for name in known:
        if name in SAMPLES:
            continue
        folders = whole_runs(name, results)
        if folders:
            report = for_gallery(stored_report(folders[0]))
            images = drawing.small(drawing.pngs(drawing.images(report)))
            for path, content in zip(pictures_of(name), images.values()):
                print(files.write(path, content))


def for_gallery(report: Report) -> Report:
    """The report with only its first figure and the figures of FURTHER.

    A page of bars is the first figure, if the run has one. Else figures of bars come before figures
    of windows over time, and up to MOST_ON_A_PAGE of them are shown under each other. Of more than
    these, the figures whose names begin as the first one's are shown (fig5_rtt, fig5_bw).
    """
    drawn = [finding for finding in report.findings if finding.chart is not None]
    if not drawn:
        return replace(report, findings=())

    bars = [finding for finding in drawn if isinstance(finding.chart, BarChart)]
    bar_pages = [finding for finding in drawn if isinstance(finding.chart, BarPage)]
    first = drawn[0]
    if bar_pages:
        first = bar_pages[0]
    elif bars and isinstance(first.chart, TimeChart):
        first = bars[0]

    together = TOGETHER.get(report.name, ())
    if together:
        bars = [finding for finding in bars if finding.name in together]
    elif len(bars) > MOST_ON_A_PAGE:
        beginning = first.name.partition("_")[0]
        bars = [finding for finding in bars if finding.name.partition("_")[0] == beginning]
    charts = [finding.chart for finding in bars if isinstance(finding.chart, BarChart)]
    if isinstance(first.chart, BarChart) and 1 < len(charts) <= MOST_ON_A_PAGE:
        # The scenario's title may name what only its other figures show.
        title = report.title if len(charts) == len(drawn) else joint_title(charts)
        first = replace(first, chart=bar_page(title, charts))

    further = [finding for finding in drawn if finding.name in FURTHER.get(report.name, ())]
    return replace(report, findings=(first, *further))


def in_readme(path: Path, reports: Iterable[Report]) -> str:
    """README's text with its chapter on results replaced. Raises FirstFlightError."""
    before, heading, after = reading.content(path).decode().partition(HEADING)
    if not heading:
        raise FirstFlightError(f"README.md has no chapter {HEADING.strip()!r}")
    chapter = wrap_paragraphs(quoted(template("README").strip("\n"), reports))
    return f"{before}{heading}\n{chapter}\n{NEXT}{after.partition(NEXT)[2]}"


def reproduce(reports: Mapping[str, Report]) -> str:
    """The text of docs/REPRODUCE.md. Raises FirstFlightError."""
    text = template("REPRODUCE")
    words = {"within_percent": f"{claims.WITHIN_PERCENT:g}",
             "within_points": f"{claims.WITHIN_POINTS:g}",
             "as_published": own_tolerances(tuple(scenario_file.names())),
             "least_draws": str(claims.LEAST_DRAWS), "reproduced": claims.REPRODUCED,
             "too_few": claims.in_full(claims.UNDECIDED), "direction": claims.DIRECTION,
             "not_reproduced": claims.NOT_REPRODUCED, "rebuilt": claims.REBUILT}
    for name, word in words.items():
        text = text.replace(f"{{{name}}}", word)
    return quoted(text, reports.values())


def wrap_paragraphs(text: str) -> str:
    """The text with lines of at most WIDTH; pictures, tables, headings and code keep their lines.
    """
    paragraphs = []
    for paragraph in text.split("\n\n"):
        if not paragraph.startswith(("[![", "|", "#", "    ")):
            paragraph = textwrap.fill(paragraph, WIDTH, break_long_words=False,
                                      break_on_hyphens=False)
        paragraphs.append(paragraph)
    return "\n\n".join(paragraphs)


def write_chapter(folder: Path, output: Path | None) -> None:
    """Write the chapter of one run to a file, or to standard output. Raises FirstFlightError."""
    chapter = markdown.chapter(stored_report(folder))
    if output is None:
        print(chapter, end="")
    else:
        print(files.write(output, chapter))


def main(argv: Sequence[str]) -> int:
    """Write the documents of a command line; return the exit status."""
    arguments = parse(argv)
    if arguments.run is not None:
        return with_each("docs/update.py", [arguments.run],
                         lambda folder: write_chapter(folder, arguments.output))
    for name in scenario_file.names():
        if arguments.measure:
            measure(name, arguments.results, arguments.measure)
    for name in (*scenario_file.names(), *SAMPLES):
        keep_newest(name, arguments.results, arguments.findings)
    reports = kept_reports(arguments.findings)
    write_findings(reports, arguments.findings)
    if arguments.gallery:
        draw_gallery(reports, arguments.results)
    write_documents(reports, arguments.readme, arguments.output or OUTPUT, arguments.findings)
    return errors.OK


if __name__ == "__main__":
    run_main("docs/update.py", main)
