"""The sweep of single fetches: networks, responses and windows.

A sweep has a list of values for each parameter, and a trial for each combination of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any, ClassVar, Literal, get_args

from firstflight.base.errors import UsageError
from firstflight.base.quantity import OWN_WINDOW
from firstflight.net.queue_length import packets_of
from firstflight.parameters import PARAMETERS, SWEPT
from firstflight.runs import schema
from firstflight.runs.schema import key
from firstflight.scenario import grammar
from firstflight.setting.draws import NOT_DRAWN
from firstflight.setting.kernels import KERNEL
from firstflight.setting.path import RANDOM
from firstflight.setting.seeds import netem_seed
from firstflight.setting.server import BUILTIN, HERE, HTTP_1, NEWER, NGINX, OWN, OwnServer, parsed
from firstflight.setting.tcp import BY_KERNEL
from firstflight.testbed.hosts.tls_records import LEAST_BYTES, LEAST_PADDED_BYTES
from firstflight.workloads.fetch.scenario.trial import Trial

Network = tuple[float, float]  # rtt_ms, bandwidth_kbps
Chain = tuple[Any, ...]  # a value for each of CHAIN
CHAIN = ("signature", "intermediates", "chain_bytes")
_NETWORK = ("rtt_ms", "bandwidth_kbps")
DRAWN = (*_NETWORK, "response_bytes")  # each user, and each row of a population, has its own
Client = Literal["curl", "libcurl", "wget"]
CLIENTS = get_args(Client)
Value = float | str
CellKey = Trial  # a trial without what varies within a cell: see cell_key
_DEFAULTS = {name: row.quantity.defaults for name, row in PARAMETERS.items()
             if name in SWEPT and not (row.required or row.follows)}


def _together(*names: str) -> schema.Reader:
    """A reader of rows that have one value for each of these quantities; repeated rows go."""
    def read(value: object, where: str) -> tuple[tuple[Any, ...], ...]:
        if not isinstance(value, list) or not value or not all(
                isinstance(row, list) and len(row) == len(names) for row in value):
            raise UsageError(f"{where} has to be a list of [{', '.join(names)}]")
        return tuple(dict.fromkeys(
            tuple(schema.number(name)(part, where) for name, part in zip(names, row))
            for row in value))
    return read


def _list(name: str) -> schema.Reader:
    """A reader of a parameter's values: a list, or a single value without brackets."""
    read = schema.number(name)
    return schema.one_or_more(schema.none_for("same", read) if name == "uplink_kbps" else read)


@dataclass(frozen=True, kw_only=True)
class Sweep(grammar.Sweep[Trial]):
    """Networks, windows and sizes that are measured in every combination.

    lists: the values of each of SWEPT by name, in the order of SWEPT; defaults where a file gives
        none. An uplink of None is as fast as the downlink. Without a list of systems, all trials
        run in one system that can do all of the sweep, so that they can be compared.
    pairs: of (rtt_ms, bandwidth_kbps), instead of every RTT with every bandwidth; chains: of
        (signature, intermediates, chain_bytes), and kernels: of (kernel, module_parameter),
        instead of every combination.
    repeat_with_loss: replaces repeat in cells that chance affects. repeat_with_drops: replaces it
        in cells whose first trial shows that one measurement is one draw (setting.draws);
        None: no further trial is added.
    """

    TOGETHER: ClassVar[Mapping[str, tuple[str, ...]]] = {"pairs": _NETWORK, "chains": CHAIN,
                                                         "kernels": KERNEL}
    pairs: tuple[Network, ...] = key((), reader=_together(*_NETWORK))
    chains: tuple[Chain, ...] = key((), reader=_together(*CHAIN))
    kernels: tuple[tuple[str, str], ...] = key((), reader=_together(*KERNEL))
    lists: Mapping[str, tuple[Any, ...]] = schema.several(*(
        schema.Item(name, PARAMETERS[name].key, _list(name)) for name in SWEPT))
    initcwnd: tuple[int, ...] = key(reader=_list("initcwnd"))
    own_server: str = key("", absent=True)
    client: Client
    repeat: int
    repeat_with_loss: int | None = key(None, quantity="repeat")
    repeat_with_drops: int | None = key(None, quantity="repeat")

    def __post_init__(self) -> None:
        given = {**_DEFAULTS, **self.lists}
        for names, rows in ((CHAIN, self.chains), (KERNEL, self.kernels)):
            given |= {name: tuple(dict.fromkeys(values))
                      for name, values in zip(names, zip(*rows))}
        given.setdefault("system", (system_for(given),))
        object.__setattr__(self, "lists", {name: given[name] for name in SWEPT if name in given})

    def check(self, where: str) -> None:
        """Check that no list is missing, and no network given twice. Raises UsageError."""
        if self.pairs and not self.lists.keys().isdisjoint(_NETWORK):
            raise UsageError(f"{where}: has pairs, so it cannot have rtt_ms or bandwidth_kbps")
        self.check_given(where, without=_NETWORK if self.pairs else ())
        self.check_together(where)

    def check_given(self, where: str, without: Sequence[str]) -> None:
        """Check that each list without a default is given. Raises UsageError."""
        for name in SWEPT:
            if PARAMETERS[name].required and name not in (*self.lists, *without):
                raise UsageError(f"{where}: {PARAMETERS[name].key} is missing")

    def check_together(self, where: str) -> None:
        """Check that values go together, such as bursts of losses and loss. Raises UsageError."""
        lists, kept, idle_ms = self.lists, self.lists["kept"], self.lists["idle_ms"]
        if any(burst > 1 for burst in lists["loss_burst"]) and not all(lists["loss_percent"]):
            raise UsageError(f"{where}: bursts of losses (loss_burst, --burst-loss) need random"
                             " loss (loss_percent, --loss)")
        if any(idle_ms) and not all(kept):
            raise UsageError(f"{where}: a pause (idle_ms, --idle) is between two responses: kept"
                             " (--kept) has to be 1 or more")
        if "close" in lists["framing"] and any(kept):
            raise UsageError(f'{where}: framing = "close" ends the connection: kept has to be 0')
        if any(kept) and (any(lists["chain_bytes"]) or self.has_own_chain):
            raise UsageError(f"{where}: earlier responses (kept, --kept; a pause, --idle, has one)"
                             " go with plain HTTP only")
        if any(kept) and self.client == "wget":
            raise UsageError(f"{where}: wget times all responses of a connection together: earlier"
                             " responses (kept, --kept) need the client curl or libcurl, e.g."
                             " --client curl")
        if any(idle_ms) and self.client != "libcurl":
            raise UsageError(f"{where}: a pause (idle_ms, --idle) needs the client libcurl, not"
                             f" {self.client}")
        if HERE in lists["system"] and (needing := needing_newer(lists)):
            raise UsageError(f"{where}: {needing[0]} needs Debian 13's programs (system ="
                             f" {NEWER!r}, --system {NEWER})")
        if BY_KERNEL in lists["window_by"] and {*self.initcwnd} - {OWN_WINDOW}:
            raise UsageError(f'{where}: window_by = "{BY_KERNEL}" leaves the window to the kernel:'
                             f" initcwnd has to be {OWN_WINDOW}, its own (--iw default)")
        check_tls(self, where)
        check_server(self, where)

    @property
    def own(self) -> OwnServer | None:
        """The user's own server, None without one."""
        return parsed(self.own_server) if self.own_server else None

    @property
    def has_own_chain(self) -> bool:
        """Whether the user's own server brings its certificate."""
        return bool(self.own and self.own.ca)

    @property
    def networks(self) -> tuple[Network, ...]:
        """All networks, as (rtt_ms, bandwidth_kbps)."""
        return self.pairs or tuple(product(*(self.lists[name] for name in _NETWORK)))

    @property
    def by_name(self) -> Mapping[str, tuple[Any, ...]]:
        return self.lists

    def with_lists(self, **lists: tuple[Any, ...]) -> Sweep:
        """The sweep with some lists replaced, by name."""
        return replace(self, lists={**self.lists, **lists})

    @property
    def cells(self) -> list[CellKey]:
        """The cells in the order in which they are measured."""
        return [Trial(scenario="", initcwnd=0, client="", repeat=0, **values)
                for values in self._cells()]

    @property
    def count(self) -> int:
        lossless = self.combination_count({name: self.lists[name].count(0) for name in RANDOM})
        return len(self.initcwnd) * (
            lossless * self.repeat
            + (self.combination_count() - lossless) * (self.repeat_with_loss or self.repeat))

    def counted(self, *names: str) -> Counter[tuple[Value, ...]]:
        """How many cells have each combination of values of these quantities (bucket_value).

        All other quantities have one value while cells are counted; then the count is multiplied.
        """
        kept = {*names, *(_NETWORK if {*_NETWORK, "uplink_kbps", "bdp_bytes", "queue_packets"}
                          & {*names} else ()),
                *(("queue",) if "queue_packets" in names else ()),
                *(name for row in (CHAIN, KERNEL) if {*row} & {*names} for name in row)}
        fewer = replace(
            self, lists={name: values if name in kept else values[:1]
                         for name, values in self.lists.items()},
            **{name: getattr(self, name)[:1] for name, together in self.TOGETHER.items()
               if kept.isdisjoint(together)})
        times = self.combination_count() // fewer.combination_count()
        return Counter({values: times * count for values, count in Counter(
            tuple(bucket_value(name, cell) for name in names) for cell in fewer.cells).items()})

    def trials(self, scenario: str, seed: int) -> Iterator[Trial]:
        """The trials in the order in which they are measured; seed: of the run.

        The windows of one repeat follow each other and have the same random numbers, so that their
        difference varies far less than either time.
        """
        for values in self._cells():
            by_chance = any(values[name] for name in RANDOM)
            own = self.own_server if values["server"] == OWN else ""
            repeats = self.repeat_with_loss or self.repeat if by_chance else self.repeat
            for repeat in range(1, repeats + 1):
                own_seed = netem_seed(seed, repeat) if by_chance else 0
                for initcwnd in self.initcwnd:
                    yield Trial(scenario=scenario, initcwnd=initcwnd, client=self.client,
                                repeat=repeat, seed=own_seed, own_server=own, **values)

    def _cells(self) -> Iterator[dict[str, Any]]:
        """The fields that the trials of a cell share, for each cell."""
        for values in self.combinations():
            rtt_ms, bandwidth_kbps = values["rtt_ms"], values["bandwidth_kbps"]
            if values["uplink_kbps"] is None:
                values["uplink_kbps"] = bandwidth_kbps
            values.update(queue_of(values.pop("queue"), rtt_ms, bandwidth_kbps))
            yield values

    def overridden(self, lists: dict[str, tuple[Any, ...]]) -> Sweep:
        """The sweep with some lists replaced, by name; "initcwnd" replaces the windows.

        Pairs then become every RTT with every bandwidth.
        """
        given, pairs = {**self.lists, **lists}, self.pairs
        initcwnd = given.pop("initcwnd", self.initcwnd)
        if pairs and not lists.keys().isdisjoint(_NETWORK):
            rtts_ms, bandwidths_kbps = (tuple(dict.fromkeys(values)) for values in zip(*pairs))
            given = {"rtt_ms": rtts_ms, "bandwidth_kbps": bandwidths_kbps, **given}
            pairs = ()
        chains = self.chains if lists.keys().isdisjoint(CHAIN) else ()
        kernels = self.kernels if lists.keys().isdisjoint(KERNEL) else ()
        if "system" not in lists and system_for(given) == NEWER:
            given["system"] = (NEWER,)
        return replace(self, lists=given, initcwnd=initcwnd, pairs=pairs, chains=chains,
                       kernels=kernels)

    def coarse(self, one_in: int, where: str) -> Sweep:
        """A coarser grid of about one in `one_in` networks, with the ends of both lists.

        Raises UsageError where the networks are not a grid.
        """
        if self.pairs:
            raise UsageError(f"{where} has pairs of RTT and bandwidth, and no grid")
        fewer = {}
        for name in _NETWORK:
            values = self.lists[name]
            count = min(len(values), max(2, round(len(values) / math.sqrt(one_in))))
            fewer[name] = tuple(values[round(place * (len(values) - 1) / max(1, count - 1))]
                                for place in range(count))
        return self.with_lists(**fewer)


@dataclass(frozen=True, kw_only=True)
class Template(Sweep):
    """What all drawn trials share, from a file's [defaults]: a sweep without network and size.

    Each user, and each row of a population, has its own RTT, bandwidth and size.
    """

    name: str = key("defaults", absent=True)
    initcwnd: tuple[int, ...] = key((), reader=_list("initcwnd"))
    repeat: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "lists", {"uplink_kbps": (None,), **self.lists})
        super().__post_init__()

    def check(self, where: str) -> None:
        """Check that no list is missing. Raises UsageError."""
        self.check_given(where, without=DRAWN)
        self.check_together(where)

    @property
    def fields(self) -> dict[str, Any]:
        """A trial's fields, except what is drawn, the window and the queue's length."""
        values = {name: values[0] for name, values in self.lists.items()
                  if name not in (*DRAWN, "uplink_kbps", "queue")}
        return {**values, "client": self.client, "repeat": 1,
                "own_server": self.own_server if values["server"] == OWN else ""}



@lru_cache(maxsize=1 << 16)
def cell_key(trial: Trial) -> CellKey:
    """The trial without its window, client, own server, repeat, seed and weight."""
    return replace(trial, scenario="", initcwnd=0, client="", own_server="", repeat=0, seed=0,
                   weight=1.0, **NOT_DRAWN)


def bucket_value(by: str, cell: Any) -> Value:
    """The value of `by`, a field or "bdp_bytes", that decides on the bucket of a cell.

    cell: anything with the fields of a trial that `by` needs.
    """
    if by == "bdp_bytes":
        return float(cell.rtt_ms * cell.bandwidth_kbps / 8)
    value: Value = getattr(cell, by)
    return value


def queue_of(length: str, rtt_ms: float, bandwidth_kbps: float) -> dict[str, Any]:
    """The fields of a Trial for a queue's length. Raises UsageError where it is too long."""
    return {"queue_packets": packets_of(length, rtt_ms, bandwidth_kbps),
            **({} if length.isdigit() else {"queue_from": length})}


# Checks of what is requested together ------------------------------------------------

def needing_newer(lists: Mapping[str, Any]) -> list[str]:
    """What of a sweep's lists, by name, only Debian 13's programs can do, in words."""
    needing = []
    for name, row in PARAMETERS.items():
        values = lists.get(name, ())
        needing += [value for value in values if value in row.newer_values]
        if row.newer and any(value != row.default for value in values):
            needing.append(row.newer)
    return needing


def system_for(lists: Mapping[str, object]) -> str:
    """The system that can do all of a sweep's lists."""
    return NEWER if needing_newer(lists) else HERE


EARLY_DATA = "early data (early_data_bytes, --early-data)"


def check_tls(requested: Sweep, where: str) -> None:
    """Check chains, and what is requested together with TLS. Raises UsageError."""
    lists = requested.lists
    chains = [chain for chain in lists["chain_bytes"] if chain]
    if not chains and not requested.has_own_chain:
        if any(lists["resumed"]) or any(lists["early_data_bytes"]):
            raise UsageError(f"{where}: a session is resumed (resumed, --resumed), and early data"
                             " sent, only with TLS: give a chain (chain_bytes, --chain)")
        return
    if requested.client != "curl":
        raise UsageError(f"{where}: TLS (chain_bytes, --chain) needs the client curl, not"
                         f" {requested.client}: use --client curl")
    if any(lists["resumed"]) and not all(lists["tickets"]):
        raise UsageError(f"{where}: without a ticket (tickets, --tickets) no session can be resumed"
                         " (resumed, --resumed)")
    if any(lists["early_data_bytes"]):
        _check_early_data(requested, where)
    for signature, intermediates, chain_bytes in requested.chains or tuple(product(
            lists["signature"], lists["intermediates"], chains)):
        count, least = 1 + intermediates, LEAST_BYTES[signature] * (1 + intermediates)
        if chain_bytes < least:
            raise UsageError(f"{where}: a chain of {chain_bytes} bytes is too small for {count}"
                             f" certificate{'s' if count > 1 else ''} with {signature}: at least"
                             f" {least}")


def _check_early_data(requested: Sweep, where: str) -> None:
    """Check that a request can leave with the client's hello. Raises UsageError."""
    lists = requested.lists
    if not all(lists["resumed"]):
        raise UsageError(f"{where}: {EARLY_DATA} goes with a session that is resumed (resumed,"
                         " --resumed 1): its ticket allows it")
    if any(server != NGINX for server in lists["server"]):
        raise UsageError(f"{where}: {EARLY_DATA} needs the server {NGINX} (server, --server"
                         f" {NGINX})")
    for size in lists["early_data_bytes"]:
        if 1 < size < LEAST_PADDED_BYTES:
            raise UsageError(f"{where}: {EARLY_DATA}: {size} bytes are less than curl's request"
                             f" may have: say 1 for that, or {LEAST_PADDED_BYTES} and more")



def check_server(requested: Sweep, where: str) -> None:
    """Check that the servers can do all that is requested. Raises UsageError."""
    lists = requested.lists
    if (OWN in lists["server"]) != bool(requested.own_server):
        raise UsageError(f"{where}: " + (
            "a server of your own needs a command: give --server-command, or [own_server] in a file"
            if not requested.own_server else
            f"--server-command goes only with --server {OWN}, or without --server"))
    if requested.has_own_chain and any(lists["chain_bytes"]):
        raise UsageError(f"{where}: a server has its own certificate (ca, --ca), or is given a"
                         " chain (chain_bytes, --chain): not both")
    others = [name for name in lists["server"] if name != BUILTIN]
    for name, row in PARAMETERS.items():
        if others and row.builtin and {*lists[name]} != {row.default}:
            raise UsageError(f"{where}: {row.builtin} needs the server {BUILTIN}, not {others[0]}")
    if lists["http"] == (HTTP_1,):
        return
    if BUILTIN in lists["server"]:
        raise UsageError(f"{where}: the server {BUILTIN} speaks HTTP/1.1 only: use another one"
                         " (server, --server nginx)")
    if not all(lists["chain_bytes"]) and not requested.has_own_chain:
        raise UsageError(f"{where}: HTTP/2 goes over TLS: give a chain (chain_bytes, --chain)")
    if any(lists["resumed"]):
        raise UsageError(f"{where}: sessions are resumed (resumed, --resumed) with HTTP/1.1 only:"
                         " over HTTP/2 curl keeps using its connection")
