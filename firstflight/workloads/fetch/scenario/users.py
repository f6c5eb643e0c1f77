"""The [users] table of a scenario: a sample of a site's users, measured under each window.

study.users.sample writes the table. It has networks and sizes of users, but no addresses.
"""

from __future__ import annotations

import zlib
from collections.abc import Hashable, Mapping
from dataclasses import astuple, dataclass, replace
from itertools import product

from firstflight.base.errors import UsageError
from firstflight.base.quantity import Quantity
from firstflight.findings.quantities import QUANTITIES
from firstflight.runs import schema
from firstflight.runs.schema import Reader, key
from firstflight.setting.seeds import netem_seed
from firstflight.workloads.fetch.scenario.requested_users import CHOSEN
from firstflight.workloads.fetch.scenario.sweep import Template
from firstflight.workloads.fetch.trial import Trial

PART = "users"  # the part of all users (Trial.part)
# By part, a factor on the assumed bandwidth. Users without a known bandwidth are in all parts.
SCALES = {PART: 1.0, "users_half": 0.5, "users_double": 2.0}
SHALLOW_PACKETS = 20  # a small queue, as cheap access links have it
# Parameters that no log has. For each, the part in which all users are measured with the value of
# _VALUES.
UNKNOWN = {"queue": "users_queue", "kept": "users_kept"}
_VALUES: Mapping[str, tuple[str | int, ...]] = {"queue": (str(SHALLOW_PACKETS),), "kept": (1,)}
Option = Mapping[str, str]  # one value for each parameter of CHOSEN that has several
_PLACE = Quantity("group", "the place of a group", lowest=0, highest=10**6, whole=True)
_TIMES = Quantity("times", "a number of users", lowest=1, highest=10**9, whole=True)


def content(trial: Trial) -> Hashable:
    """A key that is equal for trials with the same result, of whatever users."""
    return astuple(replace(trial, scenario="", part="", sample=0, weight=1.0))


def order(trial: Trial) -> tuple[bool, int]:
    """A key that orders trials pseudo-randomly, so that the first ones are a fair sample.

    The key follows from the user alone, so more rows or windows do not change it. The windows of
    one user stay together. The trials of all other parts come after those of PART.
    """
    user = f"{trial.rtt_ms} {trial.bandwidth_kbps} {trial.response_bytes}"
    # Knuth's multiplicative hash: similar checksums get keys far apart.
    hashed = zlib.crc32(user.encode()) * 0x9E3779B1 % 2**32
    return trial.part != PART, hashed


def has_option(trial: Trial, option: Option) -> bool:
    """Whether a trial was measured with the values of this option."""
    return all(getattr(trial, name) == value for name, value in option.items())


def _column(reader: Reader) -> Reader:
    """A reader of a list whose values may repeat, by the reader of one value."""
    return schema.values(reader, distinct=False)


@dataclass(frozen=True)
class UserSample:
    """A sample of users. Its columns have equal lengths, with one value for each user."""

    initcwnd: tuple[int, ...]
    baseline_initcwnd: int = key(quantity="initcwnd")
    groups: tuple[str, ...] = key()  # names; "" is the group of users without a named one
    rtt_ms: tuple[float, ...] = key(reader=_column(schema.number("rtt_ms")))
    bandwidth_kbps: tuple[float, ...] = key(reader=_column(schema.number("bandwidth_kbps")))
    response_bytes: tuple[int, ...] = key(reader=_column(schema.number("response_bytes")))
    # How often each user was drawn. Users of the same network and size are one.
    times: tuple[int, ...] = key(reader=_column(_TIMES.check))
    group: tuple[int, ...] = key(reader=_column(_PLACE.check))  # the index in `groups`
    # The bandwidth of users whose own one is not known. They are also measured with half of it and
    # with its double. None where the bandwidth of all users is known.
    assumed_kbps: float | None = key(None, quantity="bandwidth_kbps")
    # Parameters of UNKNOWN whose values neither the log nor the flags give.
    unknown: tuple[str, ...] = key(())
    template: Template = key(None, absent=True)  # what all users share, from the file's [defaults]

    def check(self, where: str) -> None:
        """Check that the columns fit each other. Raises UsageError."""
        for name in ("bandwidth_kbps", "response_bytes", "times", "group"):
            if len(getattr(self, name)) != len(self.rtt_ms):
                raise UsageError(f"{where}: {name}: {len(getattr(self, name))} values for"
                                 f" {len(self.rtt_ms)} users")
        if max(self.group) >= len(self.groups):
            raise UsageError(f"{where}: group: {max(self.group)} is not a place in groups")
        for name in self.unknown:
            if name not in UNKNOWN:
                raise UsageError(f"{where}: unknown: {name!r} is none of {', '.join(UNKNOWN)}")
            if name in self.template.lists:
                self.template.with_lists(**{name: _VALUES[name]}).check_together(where)
        if self.baseline_initcwnd not in self.initcwnd:
            raise UsageError(f"{where}: baseline_initcwnd {self.baseline_initcwnd} is not among"
                             " initcwnd")

    @property
    def count(self) -> int:
        """How many trials there are."""
        users = sum(map(len, self.parts.values()))
        return users * replace(self.template, initcwnd=self.initcwnd).count

    @property
    def parts(self) -> dict[str, list[int]]:
        """By part, of SCALES or UNKNOWN: the indices of the users that are measured in it."""
        everybody = list(range(len(self.rtt_ms)))
        assumed = [index for index, kbps in enumerate(self.bandwidth_kbps)
                   if kbps == self.assumed_kbps]
        limits = QUANTITIES["bandwidth_kbps"]
        parts = {PART: everybody}
        for part, scale in SCALES.items():
            scaled_kbps = scale * (self.assumed_kbps or 0)
            if part != PART and assumed and limits.lowest <= scaled_kbps <= limits.highest:
                parts[part] = assumed
        for name in self.unknown:
            parts[UNKNOWN[name]] = everybody
        return parts

    @property
    def options(self) -> list[Option]:
        """Each combination of the values that the operator chooses, the first values first."""
        several = {name: self.template.lists[name] for name in CHOSEN
                   if len(self.template.lists[name]) > 1}
        return [dict(zip(several, values)) for values in product(*several.values())]

    def trials(self, scenario: str, seed: int) -> list[Trial]:
        """The trials. The windows of one user follow each other, with the same random numbers.

        seed: the run's.
        """
        trials = []
        total = sum(self.times)
        windows = replace(self.template, initcwnd=self.initcwnd)
        other_values = {UNKNOWN[name]: {name: _VALUES[name]} for name in self.unknown}
        for part, indices in self.parts.items():
            for index in indices:
                rtt_ms = self.rtt_ms[index]
                bandwidth_kbps = SCALES.get(part, 1.0) * self.bandwidth_kbps[index]
                user = windows.with_lists(
                    rtt_ms=(rtt_ms,), bandwidth_kbps=(bandwidth_kbps,),
                    response_bytes=(self.response_bytes[index],), **other_values.get(part, {}))

                weight = self.times[index] / total
                for trial in user.trials(scenario, netem_seed(seed, index)):
                    trials.append(replace(trial, part=part, sample=index, weight=weight,
                                          key_rtt_ms=rtt_ms, key_bandwidth_kbps=bandwidth_kbps))
        return trials
