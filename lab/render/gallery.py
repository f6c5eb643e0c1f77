"""docs/GALLERY.md: every scenario's figure, what it says, and the command that draws it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from lab.core.findings.findings import Report
from lab.render.markdown import code, escaped

HEAD = """\
# Gallery

Written by `/usr/bin/python3 results.py --gallery` from the newest whole run of every
scenario; [RESULTS.md](RESULTS.md) has the numbers. A picture shows the first figure of
a scenario; `./run.sh` draws all of them into `figures/`.
"""


_PICTURE = re.compile(r"^!\[(.*)\]\((.*)\)$", re.MULTILINE)


def gallery(reports: Sequence[Report], pictures: Mapping[str, str], before: str = "") -> str:
    """The whole document.

    pictures: by the name of the scenario, the path of its figure as seen from
    the document. A scenario without one is left out. before: the document as it
    stands, whose words for a picture are kept where a report has none.
    """
    words = {picture: said for said, picture in _PICTURE.findall(before)}
    return "\n".join([HEAD, *(_entry(report, pictures[report.name], words) for report in reports
                              if report.name in pictures)])


def _entry(report: Report, picture: str, words: Mapping[str, str]) -> str:
    finding = next(each for each in report.findings if each.chart is not None)
    said = escaped(finding.text or finding.sentence) or words.get(picture, escaped(finding.title))
    parts = [f"## {escaped(report.name)}", escaped(report.claim), f"![{said}]({picture})",
             code(f"./run.sh --scenario {report.name}")]
    return "\n\n".join(parts) + "\n"
