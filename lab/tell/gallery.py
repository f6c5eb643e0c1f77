"""docs/GALLERY.md: every scenario's figure, what it says, and the command that draws it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lab.core.findings import Report
from lab.tell.markdown import code, escaped

HEAD = """\
# Gallery

Written by `/usr/bin/python3 results.py --gallery` from the newest whole run of every
scenario; [RESULTS.md](RESULTS.md) has the numbers. A picture shows the first figure of
a scenario; `./run.sh` draws all of them into `figures/`.
"""


def gallery(reports: Sequence[Report], pictures: Mapping[str, str]) -> str:
    """The whole document.

    pictures: by the name of the scenario, the path of its figure as seen from
    the document. A scenario without one is left out.
    """
    return "\n".join([HEAD, *(_entry(report, pictures[report.name]) for report in reports
                              if report.name in pictures)])


def _entry(report: Report, picture: str) -> str:
    finding = next(each for each in report.findings if each.chart is not None)
    parts = [f"## {escaped(report.name)}", escaped(report.claim),
             f"![{escaped(finding.text or finding.sentence or finding.title)}]({picture})",
             code(f"./run.sh --scenario {report.name}")]
    return "\n\n".join(parts) + "\n"
