"""report.html of a scenario that is not of fetches: its findings with their figures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lab import report_facts, report_page, runs
from lab.records import PASS, read_records
from lab.study import findings_of, study_of

TEMPLATE = "findings.html.j2"


def page(name: str, folder: Path, drawings: Mapping[str, bytes]) -> str:
    """The whole page of a run; drawings: PNG files by the name of the finding."""
    study = study_of(name)
    records = read_records(folder / runs.TRIALS_CSV, study.record)
    found = findings_of(name, folder)
    return report_page.render(
        TEMPLATE, name=name, title=study.title, claim=study.claim, source=study.source, findings=found,
        drawings={finding.name: report_page.address(drawings[finding.name])
                  if finding.name in drawings else "" for finding in found},
        verified=sum(record.verdict == PASS for record in records), count=len(records),
        failures=[record for record in records if record.verdict != PASS],
        facts=report_facts.provenance(runs.read_facts(folder), name,
                                      f"{name}/{folder.resolve().name}", study.text))


def write(name: str, folder: Path, drawings: Mapping[str, bytes]) -> Path:
    """Write the page into the run's folder, aside and renamed; return its path."""
    return report_page.write(folder, page(name, folder, drawings))
