"""The part [users] of a scenario: a sample of people's own users, under each window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lab.core.errors import UsageError
from lab.core.findings.findings import Finding, Tile
from lab.core.scenario import schema
from lab.fetches.features.users.scenario import Users
from lab.fetches.figures.figure import Analysis
from lab.fetches.scenario.part import Part, Tables
from lab.fetches.scenario.trial import Trial


@dataclass(frozen=True)
class Sampled(Part):
    """The [users] of a scenario."""

    users: Users
    has_trials = True
    is_reported = True

    @property
    def count(self) -> int:  # type: ignore[override]
        return self.users.count

    def trials(self, scenario: str, seed: int) -> list[Trial]:
        return self.users.trials(scenario, seed)

    def overridden(self, name: str, lists: Mapping[str, tuple[Any, ...]],
                   single: Mapping[str, Any]) -> Sampled:
        if lists or single:
            raise UsageError(f"{name} is a sample of users: its file says what is measured")
        return self

    def findings(self, analysis: Analysis, before: Sequence[Finding], judged: Sequence[Any]
                 ) -> tuple[list[Finding], Sequence[Tile]]:
        from lab.fetches.features.users.findings import users_findings  # numpy is slow
        return users_findings(analysis.scenario, self.users, analysis.records)


def read_sampled(tables: Tables) -> Sampled | None:
    """The [users], None without any. Raises UsageError."""
    if "users" not in tables.raw:
        return None
    users = schema.read(Users, schema.table(tables.raw, "users", tables.where),
                        f"{tables.where}: [users]", like=None)
    return Sampled(replace(users, like=tables.common(users.initcwnd)))
