"""The sweep of a setting: lists of values of its parameters, measured in every combination.

Each workload has a class of such sweeps. The class says which parameters its sweeps have lists of,
adds further lists, and makes a trial of each combination.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar, TypeVar

from firstflight.base.errors import UsageError
from firstflight.base.quantity import OWN_WINDOW
from firstflight.base.words import plain
from firstflight.net.queue_length import packets_of
from firstflight.parameters import PARAMETERS, Lists
from firstflight.runs import schema
from firstflight.runs.kinds import AnyTrial
from firstflight.runs.schema import key
from firstflight.scenario import grammar
from firstflight.setting.kernels import KERNEL
from firstflight.setting.path import RANDOM
from firstflight.setting.tcp import BY_KERNEL

Tr = TypeVar("Tr", bound=AnyTrial)
Network = tuple[float, float]  # rtt_ms, bandwidth_kbps
NETWORK = ("rtt_ms", "bandwidth_kbps")
LEAST_CAKE_PACKETS = 2


def rows_of(*names: str) -> schema.Reader:
    """A reader of rows that have one value for each of these quantities. Repeated rows are dropped.
    """
    def read_row(row: object, where: str) -> tuple[Any, ...]:
        if not isinstance(row, list) or len(row) != len(names):
            raise UsageError(f"{where} has to be a list of [{', '.join(names)}]")
        return tuple(schema.number(name)(value, where) for name, value in zip(names, row))

    def read(value: object, where: str) -> tuple[tuple[Any, ...], ...]:
        if not isinstance(value, list) or not value:
            raise UsageError(f"{where} has to be a list of [{', '.join(names)}]")
        return tuple(dict.fromkeys(read_row(row, where) for row in value))
    return read


def values_of(name: str) -> schema.Reader:
    """A reader of a parameter's values: a list, or a single value without brackets."""
    read = schema.number(name)
    return schema.one_or_more(schema.none_for("same", read) if name == "uplink_kbps" else read)


def lists_of(names: Sequence[str]) -> Any:
    """The field of a sweep that has a list of values for each of these parameters, by name."""
    return schema.several(*(schema.Item(name, PARAMETERS[name].key, values_of(name))
                            for name in names))


def queue_of(length: str, rtt_ms: float, bandwidth_kbps: float) -> dict[str, Any]:
    """The fields of a trial for a queue's length. Raises UsageError where it is too long."""
    packets = packets_of(length, rtt_ms, bandwidth_kbps)
    if length.isdigit():
        return {"queue_packets": packets}
    return {"queue_packets": packets, "queue_from": length}


def refuse_empty_cake(qdisc: str, queue: str, where: str) -> None:
    """Refuse cake with a queue of one packet. Raises UsageError.

    cake is limited to the memory of so many full packets, of which the kernel's bookkeeping takes a
    part (skb->truesize). A queue that was requested in ms or BDP is not refused: it may be that
    short in only one cell of a grid, whose trials then fail.
    """
    if qdisc == "cake" and queue.isdigit() and int(queue) < LEAST_CAKE_PACKETS:
        raise UsageError(f"{where}: cake lets nothing through a queue of {queue} packet (--queue,"
                         " --qdisc), since it counts the memory that one takes: write"
                         f" {LEAST_CAKE_PACKETS} or more")


def refuse_cut_jitter(jitter_ms: float, rtt_ms: float, where: str) -> None:
    """Refuse a jitter that is longer than the delay of one way. Raises UsageError."""
    if jitter_ms > rtt_ms / 2:
        raise UsageError(f"{where}: a jitter of {plain(jitter_ms)} ms (--jitter) is more than"
                         f" the delay of one way, {plain(rtt_ms / 2)} ms at an RTT of"
                         f" {plain(rtt_ms)} ms: netem would cut it at 0, and the mean RTT would"
                         " be longer than requested")


def draws_at_random(values: Mapping[str, Any]) -> bool:
    """Whether a cell's network loses or delays packets at random.

    values: of the cell's parameters, by name.
    """
    return any(values[name] for name in RANDOM)


@dataclass(frozen=True, kw_only=True)
class SettingSweep(grammar.Sweep[Tr]):
    """Parameters of a setting, and windows, that are measured in every combination.

    NAMES: the parameters that it has lists of, the slowest first. A subclass has the field `lists`
    for them (lists_of): the values by name, the defaults where a file gives none. An uplink of None
    is as fast as the downlink. Lists of its own are fields that LISTS names, and vary slower.
    pairs: of (rtt_ms, bandwidth_kbps), instead of every RTT with every bandwidth; kernels: of
    (kernel, module_parameter).
    repeat_with_loss: replaces repeat in cells that chance affects. repeat_with_drops: replaces it
    in cells whose first trial shows that one measurement is one draw (setting.draws); None: no
    further trial is added.
    """

    NAMES: ClassVar[tuple[str, ...]] = ()
    TOGETHER: ClassVar[Mapping[str, tuple[str, ...]]] = {"pairs": NETWORK, "kernels": KERNEL}
    pairs: tuple[Network, ...] = key((), reader=rows_of(*NETWORK))
    kernels: tuple[tuple[str, str], ...] = key((), reader=rows_of(*KERNEL))
    lists: Lists = lists_of(())
    initcwnd: tuple[int, ...] = key(reader=values_of("initcwnd"))
    repeat: int = 1
    repeat_with_loss: int | None = key(None, quantity="repeat")
    repeat_with_drops: int | None = key(None, quantity="repeat")

    def __post_init__(self) -> None:
        """Add the lists that the file does not have: defaults, and the values of rows."""
        lists: dict[str, tuple[Any, ...]] = {}
        for name in self.NAMES:
            row = PARAMETERS[name]
            if not row.required and not row.follows:
                lists[name] = row.quantity.defaults
        lists.update(self.lists)

        for together, names in self.TOGETHER.items():
            if names != NETWORK:
                for name, values in zip(names, zip(*getattr(self, together))):
                    lists[name] = tuple(dict.fromkeys(values))
        lists = self.with_followers(lists)
        ordered = {name: lists[name] for name in self.NAMES if name in lists}
        object.__setattr__(self, "lists", ordered)

    def with_followers(self, lists: dict[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
        """The lists, and those whose default follows from the values of other lists.

        self.lists still has only the lists of the file.
        """
        return {"uplink_kbps": (None,), **lists}

    def check(self, where: str) -> None:
        """Check that no list is missing, and that networks are given in one way. Raises UsageError.
        """
        if self.pairs and not self.lists.keys().isdisjoint(NETWORK):
            raise UsageError(f"{where}: has pairs, so it cannot have rtt_ms or bandwidth_kbps")
        self.check_given(where, without=NETWORK if self.pairs else ())
        self.check_together(where)

    def check_given(self, where: str, without: Sequence[str]) -> None:
        """Check that each list without a default is given. Raises UsageError."""
        for name in self.NAMES:
            if PARAMETERS[name].required and name not in (*self.lists, *without):
                raise UsageError(f"{where}: {PARAMETERS[name].key} is missing")

    def check_together(self, where: str) -> None:
        """Check that values go together, such as bursts of losses and loss. Raises UsageError."""
        lists = self.lists
        if any(burst > 1 for burst in lists["loss_burst"]) and not all(lists["loss_percent"]):
            raise UsageError(f"{where}: bursts of losses (loss_burst, --burst-loss) need random"
                             " loss (loss_percent, --loss)")
        rtts_ms = [rtt for rtt, _ in self.pairs] or lists.get("rtt_ms", ())
        refuse_cut_jitter(max(lists["jitter_ms"]), min(rtts_ms, default=math.inf), where)
        for qdisc, queue in product(lists.get("qdisc", ()), lists.get("queue", ())):
            refuse_empty_cake(qdisc, queue, where)
        if BY_KERNEL in lists.get("window_by", ()) and {*self.initcwnd} - {OWN_WINDOW}:
            raise UsageError(f'{where}: window_by = "{BY_KERNEL}" leaves the window to the kernel:'
                             f" initcwnd has to be {OWN_WINDOW}, its own (--iw default)")

    def check_requested(self, where: str) -> None:
        """Check the sweep with the command line's values in its lists. Raises UsageError."""
        self.check_together(where)

    @property
    def networks(self) -> tuple[Network, ...]:
        """All networks, as (rtt_ms, bandwidth_kbps)."""
        rtts_ms, kbps = (self.lists[name] for name in NETWORK)
        return self.pairs or tuple(product(rtts_ms, kbps))

    @property
    def by_name(self) -> Mapping[str, Sequence[Any]]:
        return {**super().by_name, **self.lists}

    @property
    def count(self) -> int:
        certain = 0  # combinations that chance does not affect
        if not self.is_random:
            certain = self.combination_count({name: self.lists[name].count(0) for name in RANDOM})
        random = self.combination_count() - certain
        repeats = certain * self.repeat + random * (self.repeat_with_loss or self.repeat)
        return self.window_count * repeats

    @property
    def window_count(self) -> int:
        """How many windows each cell is measured under."""
        return len(self.initcwnd)

    @property
    def is_random(self) -> bool:
        """Whether chance affects every cell, whatever its network."""
        return False

    def repeats(self, values: Mapping[str, Any]) -> int:
        """How often a cell is measured, as far as that is known before its first trial.

        values: of the cell's parameters, by name.
        """
        is_drawn = self.is_random or draws_at_random(values)
        return self.repeat_with_loss or self.repeat if is_drawn else self.repeat

    def cell_values(self) -> Iterator[dict[str, Any]]:
        """The fields that the trials of a cell share, for each cell."""
        for values in self.combinations():
            rtt_ms, bandwidth_kbps = values["rtt_ms"], values["bandwidth_kbps"]
            if "uplink_kbps" in values and values["uplink_kbps"] is None:
                values["uplink_kbps"] = bandwidth_kbps
            if "queue" in values:
                values.update(queue_of(values.pop("queue"), rtt_ms, bandwidth_kbps))
            yield values

    def with_lists(self: Sw, **lists: tuple[Any, ...]) -> Sw:
        """The sweep with some lists replaced, by name."""
        return replace(self, lists={**self.lists, **lists})

    def overridden(self: Sw, lists: Lists, where: str = "") -> Sw:
        """The sweep with some lists replaced.

        lists: the values by name. They may be lists of parameters, "initcwnd" for the windows, and
        lists that the class adds (LISTS). where: the place of the sweep, for messages. Rows with
        values of a replaced list are dropped. Dropped pairs become every RTT with every bandwidth.
        """
        added_by_class, given = {}, dict(self.lists)
        for name, values in lists.items():
            if name in self.LISTS:
                added_by_class[name] = values
            else:
                given[name] = values
        initcwnd = given.pop("initcwnd", self.initcwnd)

        rows = {}
        for together, names in self.TOGETHER.items():
            is_kept = lists.keys().isdisjoint(names)
            rows[together] = getattr(self, together) if is_kept else ()
        if self.pairs and not rows["pairs"]:
            rtts_ms, bandwidths_kbps = (tuple(dict.fromkeys(values)) for values in zip(*self.pairs))
            given = {"rtt_ms": rtts_ms, "bandwidth_kbps": bandwidths_kbps, **given}
        return replace(self, lists=given, initcwnd=initcwnd, **rows, **added_by_class)


Sw = TypeVar("Sw", bound=SettingSweep[Any])
