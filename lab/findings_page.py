"""report.html of a scenario that is not of fetches: its findings with their figures."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path

import jinja2

from lab import report_facts, runs
from lab.errors import FirstFlightError
from lab.findings import Finding
from lab.records import PASS, AnyRecord, read_records
from lab.study import findings_of, study_of

TEMPLATE = "findings.html.j2"
PAGE = "report.html"


def page(name: str, folder: Path, drawings: Mapping[str, bytes]) -> str:
    """The whole page of a run; drawings: PNG files by the name of the finding."""
    study = study_of(name)
    records = read_records(folder / runs.TRIALS_CSV, study.record)
    found = findings_of(name, folder)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).resolve().parent), autoescape=True,
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True)
    return environment.get_template(TEMPLATE).render(
        name=name, title=study.title, claim=study.claim, source=study.source, findings=found,
        drawings=_addresses(found, drawings),
        verified=sum(record.verdict == PASS for record in records), count=len(records),
        failures=_failures(records),
        facts=report_facts.provenance(runs.read_facts(folder), name,
                                      f"{name}/{folder.resolve().name}", study.text))


def write(name: str, folder: Path, drawings: Mapping[str, bytes]) -> Path:
    """Write the page into the run's folder, aside and renamed; return its path."""
    path, aside = folder / PAGE, folder / f".{PAGE}"
    try:
        aside.write_text(page(name, folder, drawings), encoding="utf-8")
        aside.replace(path)
    except OSError as error:
        raise FirstFlightError(f"{path}: cannot be written: {error.strerror or error}") from error
    runs.give_to_invoking_user(path)
    return path


def _addresses(found: list[Finding], drawings: Mapping[str, bytes]) -> dict[str, str]:
    return {finding.name: "data:image/png;base64,"
            + base64.b64encode(drawings[finding.name]).decode("ascii")
            if finding.name in drawings else "" for finding in found}


def _failures(records: list[AnyRecord]) -> list[AnyRecord]:
    return [record for record in records if record.verdict != PASS]
