"""What stands behind a fitted population: findings that are kept, since nothing measures them.

scenarios/fits/<scenario>.json has them as lab.render.data keeps findings: what was fitted to what,
how far the paper fixes each parameter, each mechanism off in turn, and what else was tried. All of
it is simulated; paper/fit of commit c688d26e made it, and tells it there from its evidence.
"""

from __future__ import annotations

from lab.core.findings.findings import Finding
from lab.core.scenario.scenario_file import SCENARIOS
from lab.render import data

FITS = SCENARIOS / "fits"


def fit_findings(name: str) -> tuple[Finding, ...]:
    """Of a scenario, none without a fit. Raises FirstFlightError where the file is damaged."""
    path = FITS / f"{name}.json"
    return data.read(path).findings if path.is_file() else ()
