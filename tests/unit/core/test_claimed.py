"""Each published number of a scenario has a tolerance, or its claim is a direction."""

from __future__ import annotations

import pytest

from runs import scenario_file

CLAIMS = [(name, claim) for name in scenario_file.names()
          for claim in scenario_file.find(name).raw.get("claim", [])]
LEAST = {"fetches": 0.0, "load": 0.1, "trace": 1.0}  # in the unit of the number; segments
PERCENT_POINTS = 3


@pytest.mark.parametrize("name, claim", CLAIMS, ids=lambda value: value if isinstance(
    value, str) else str(value["says"])[:40])
def test_what_is_reproduced_is_within_a_third_of_what_was_published(
        name: str, claim: dict[str, object]) -> None:
    if "published" not in claim:
        assert "within" not in claim or claim["relation"] == "equal"
        return
    published, within = float(str(claim["published"])), float(str(claim.get("within", 0)))
    kind = str(scenario_file.find(name).raw.get("kind", "fetches"))
    of_time = kind == "load" and not str(claim["quantity"]).endswith("_percent")
    assert within <= max(0.31 * published, PERCENT_POINTS if of_time else LEAST[kind])


def test_what_was_read_in_an_abstract_is_marked() -> None:
    marked = {name for name, claim in CLAIMS if claim.get("abstract_only")}
    assert marked == {"chou2026_cliffs", "chou2026_mldsa"}
    assert all(claim.get("abstract_only") for name, claim in CLAIMS if name in marked)
