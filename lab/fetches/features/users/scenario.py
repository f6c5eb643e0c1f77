"""The [users] table of a scenario: a sample of people's own users, measured under each window.

lab.fetches.features.users.sample writes it; it holds networks and sizes, and no address.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from lab.core.errors import UsageError
from lab.core.scenario import schema
from lab.core.scenario.quantity import Quantity
from lab.core.scenario.schema import Reader, key
from lab.fetches.scenario.sweep import Sweep, seed_of
from lab.fetches.scenario.trial import Trial

PART = "users"
_PLACE = Quantity("group", "the place of a group", lowest=0, highest=10**6, whole=True)
_TIMES = Quantity("times", "a number of users", lowest=1, highest=10**9, whole=True)


def _column(of: Reader) -> Reader:
    return schema.values(of, distinct=False)


@dataclass(frozen=True)
class Users:
    """One row a user, as columns of one length.

    rtt_ms, bandwidth_kbps, response_bytes: of each. times: how many of the
    sample it stands for. group: its place in groups, "" for everybody else.
    like: all that the users have in common, of the file's [defaults].
    """

    initcwnd: tuple[int, ...]
    baseline_initcwnd: int = key(quantity="initcwnd")
    groups: tuple[str, ...] = key()
    rtt_ms: tuple[float, ...] = key(reader=_column(schema.number("rtt_ms")))
    bandwidth_kbps: tuple[float, ...] = key(reader=_column(schema.number("bandwidth_kbps")))
    response_bytes: tuple[int, ...] = key(reader=_column(schema.number("response_bytes")))
    times: tuple[int, ...] = key(reader=_column(_TIMES.check))
    group: tuple[int, ...] = key(reader=_column(_PLACE.check))
    like: Sweep = key(absent=True)

    def check(self, where: str) -> None:
        """Raises UsageError where the columns do not go with each other."""
        for name in ("bandwidth_kbps", "response_bytes", "times", "group"):
            if len(getattr(self, name)) != len(self.rtt_ms):
                raise UsageError(f"{where}: {name}: {len(getattr(self, name))} values for"
                                 f" {len(self.rtt_ms)} users")
        if max(self.group) >= len(self.groups):
            raise UsageError(f"{where}: group: {max(self.group)} is no place in groups")
        if self.baseline_initcwnd not in self.initcwnd:
            raise UsageError(f"{where}: baseline_initcwnd {self.baseline_initcwnd} is not among"
                             " initcwnd")

    @property
    def count(self) -> int:
        """How many trials there are."""
        return len(self.rtt_ms) * self.like.count

    def trials(self, scenario: str, seed: int) -> list[Trial]:
        """The windows of one user follow each other, with the same random numbers.

        seed: of the run.
        """
        made, total = [], sum(self.times)
        for sample, (rtt_ms, bandwidth_kbps, response_bytes, times) in enumerate(
                zip(self.rtt_ms, self.bandwidth_kbps, self.response_bytes, self.times)):
            user = replace(self.like, rtt_ms=(rtt_ms,), bandwidth_kbps=(bandwidth_kbps,),
                           response_bytes=(response_bytes,), initcwnd=self.initcwnd)
            made += [replace(trial, part=PART, sample=sample, weight=times / total,
                             key_rtt_ms=rtt_ms, key_bandwidth_kbps=bandwidth_kbps)
                     for trial in user.trials(scenario, seed_of(seed, sample))]
        return made
