"""The [users] table of a scenario: a sample of a site's users, measured under each window.

study.users.sample writes it. It has networks and sizes, but no addresses.
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

PART = "users"
# Factors on the assumed bandwidth: users without a known one are measured with all three.
SCALES = {PART: 1.0, "users_half": 0.5, "users_double": 2.0}
SHALLOW_PACKETS = 20  # of a small queue, as cheap access links have it
# What a file does not say, by the parameter: the part that measures all users with other values.
UNKNOWN = {"queue": "users_queue", "kept": "users_kept"}
_VALUES: Mapping[str, tuple[str | int, ...]] = {"queue": (str(SHALLOW_PACKETS),), "kept": (1,)}
Option = Mapping[str, str]  # a value for each of CHOSEN that has several
_PLACE = Quantity("group", "the place of a group", lowest=0, highest=10**6, whole=True)
_TIMES = Quantity("times", "a number of users", lowest=1, highest=10**9, whole=True)


def content(trial: Trial) -> Hashable:
    """A key that is equal for trials with the same result, whichever users they stand for."""
    return astuple(replace(trial, scenario="", part="", sample=0, weight=1.0))


def order(trial: Trial) -> tuple[bool, int]:
    """A key that orders trials pseudo-randomly, so that the first ones are a fair sample.

    It follows from the user alone, so more rows or windows do not change it. The windows of one
    user stay together; trials of what the file does not say come last.
    """
    row = f"{trial.rtt_ms} {trial.bandwidth_kbps} {trial.response_bytes}"
    return trial.part != PART, zlib.crc32(row.encode()) * 0x9E3779B1 % 2**32


def has_option(trial: Trial, option: Option) -> bool:
    """Whether a trial was measured with these values."""
    return all(getattr(trial, name) == value for name, value in option.items())


def _column(reader: Reader) -> Reader:
    return schema.values(reader, distinct=False)


@dataclass(frozen=True)
class UserSample:
    """A sample of users, as columns of equal length with one value for each user."""

    initcwnd: tuple[int, ...]
    baseline_initcwnd: int = key(quantity="initcwnd")
    groups: tuple[str, ...] = key()  # "" is the group of all others
    rtt_ms: tuple[float, ...] = key(reader=_column(schema.number("rtt_ms")))
    bandwidth_kbps: tuple[float, ...] = key(reader=_column(schema.number("bandwidth_kbps")))
    response_bytes: tuple[int, ...] = key(reader=_column(schema.number("response_bytes")))
    # How many users of the sample each stands for.
    times: tuple[int, ...] = key(reader=_column(_TIMES.check))
    group: tuple[int, ...] = key(reader=_column(_PLACE.check))  # the index of each in groups
    # The bandwidth of users whose own is not known, who are also measured with half and double of
    # it; None where all are known.
    assumed_kbps: float | None = key(None, quantity="bandwidth_kbps")
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
        """The indices of the users that are measured in each part: of SCALES, and of UNKNOWN."""
        everybody = list(range(len(self.rtt_ms)))
        assumed = [place for place, kbps in enumerate(self.bandwidth_kbps)
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
        """Each combination of what the operator chooses, the first values first."""
        several = {name: self.template.lists[name] for name in CHOSEN
                   if len(self.template.lists[name]) > 1}
        return [dict(zip(several, values)) for values in product(*several.values())]

    def trials(self, scenario: str, seed: int) -> list[Trial]:
        """The trials; seed: of the run.

        The windows of one user follow each other, with the same random numbers.
        """
        trials, total = [], sum(self.times)
        windows = replace(self.template, initcwnd=self.initcwnd)
        other_values = {UNKNOWN[name]: {name: _VALUES[name]} for name in self.unknown}
        for part, places in self.parts.items():
            for place in places:
                rtt_ms = self.rtt_ms[place]
                bandwidth_kbps = SCALES.get(part, 1.0) * self.bandwidth_kbps[place]
                user = windows.with_lists(
                    rtt_ms=(rtt_ms,), bandwidth_kbps=(bandwidth_kbps,),
                    response_bytes=(self.response_bytes[place],), **other_values.get(part, {}))

                weight = self.times[place] / total
                for trial in user.trials(scenario, netem_seed(seed, place)):
                    trials.append(replace(trial, part=part, sample=place, weight=weight,
                                          key_rtt_ms=rtt_ms, key_bandwidth_kbps=bandwidth_kbps))
        return trials
