"""What these tests share with those of the core: a scenario and a run of it."""

from __future__ import annotations

from tests.unit.fetches.conftest import good, scenario, stored

__all__ = ["good", "scenario", "stored"]
