"""The sweep of single fetches: networks, responses and windows.

A sweep has a list of each parameter, and a trial for each combination of their values.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any, ClassVar, Literal, get_args

from firstflight.base.errors import UsageError
from firstflight.net.queue_length import packets_of
from firstflight.parameters import PARAMETERS, SWEPT
from firstflight.runs import schema
from firstflight.runs.schema import key
from firstflight.study.fetches.scenario.path import RANDOM
from firstflight.study.fetches.scenario.server import (BUILTIN, HERE, HTTP_1, NEWER, NGINX, OWN,
                                                       OwnServer, parsed)
from firstflight.study.fetches.scenario.trial import Trial
from firstflight.study.scenario import grammar
from firstflight.testbed.hosts.tls_records import LEAST_BYTES, LEAST_PADDED_BYTES

Network = tuple[float, float]  # rtt_ms, bandwidth_kbps
Chain = tuple[Any, ...]  # of CHAIN each
CHAIN = ("signature", "intermediates", "chain_bytes")
_NETWORK = ("rtt_ms", "bandwidth_kbps")
DRAWN = (*_NETWORK, "response_bytes")  # of each user, of each row of a population
Client = Literal["curl", "libcurl", "wget"]
CLIENTS = get_args(Client)
Value = float | str
Cell = Trial  # what is measured with every window: see cell_of
# What only Debian 13's programs can do, by the list that has it; early data they alone can send.
_NEWER_ONLY = {"signature": ("mldsa44", "mldsa65", "mldsa87", "slhdsa128s"),
               "key_share": ("x25519mlkem768",)}
_DEFAULTS = {name: row.quantity.defaults for name, row in PARAMETERS.items()
             if name in SWEPT and not (row.required or row.follows)}


def _together(*names: str) -> schema.Reader:
    """Lists of one value for each of these quantities, none twice."""
    def read(value: object, where: str) -> tuple[tuple[Any, ...], ...]:
        if not isinstance(value, list) or not value or not all(
                isinstance(row, list) and len(row) == len(names) for row in value):
            raise UsageError(f"{where} has to be a list of [{', '.join(names)}]")
        return tuple(dict.fromkeys(
            tuple(schema.number(name)(part, where) for name, part in zip(names, row))
            for row in value))
    return read


def _list(name: str) -> schema.Reader:
    """Values of a parameter, or a single one without brackets."""
    read = schema.number(name)
    return schema.one_or_more(schema.none_for("same", read) if name == "uplink_kbps" else read)


@dataclass(frozen=True, kw_only=True)
class Sweep(grammar.Sweep[Trial]):
    """Networks, windows and sizes that are measured in every combination.

    lists: the values of each of SWEPT by its name, in its order; what is not given has its
        default. An uplink of None is as fast as the downlink. Without a list of systems there is
        one that can do all of the sweep, so that what is compared runs in the same.
    pairs: (rtt_ms, bandwidth_kbps) each, in place of every RTT with every bandwidth; chains:
        (signature, intermediates, chain_bytes) each, in place of every combination.
    repeat_with_loss: in place of repeat where chance decides.
    """

    TOGETHER: ClassVar[Mapping[str, tuple[str, ...]]] = {"pairs": _NETWORK, "chains": CHAIN}
    pairs: tuple[Network, ...] = key((), reader=_together(*_NETWORK))
    chains: tuple[Chain, ...] = key((), reader=_together(*CHAIN))
    lists: Mapping[str, tuple[Any, ...]] = schema.several(*(
        schema.Item(name, PARAMETERS[name].key, _list(name)) for name in SWEPT))
    initcwnd: tuple[int, ...] = key(reader=_list("initcwnd"))
    own_server: str = key("", absent=True)
    client: Client
    repeat: int
    repeat_with_loss: int | None = key(None, quantity="repeat")

    def __post_init__(self) -> None:
        given = {**_DEFAULTS, **self.lists}
        given |= {name: tuple(dict.fromkeys(values))
                  for name, values in zip(CHAIN, zip(*self.chains))}
        given.setdefault("system", (system_for(given),))
        object.__setattr__(self, "lists", {name: given[name] for name in SWEPT if name in given})

    def check(self, where: str) -> None:
        """Raises UsageError where a list is missing, or the networks are given twice."""
        if self.pairs and not self.lists.keys().isdisjoint(_NETWORK):
            raise UsageError(f"{where}: has pairs, so it cannot have rtt_ms or bandwidth_kbps")
        self.check_given(where, without=_NETWORK if self.pairs else ())
        self.check_together(where)

    def check_given(self, where: str, without: Sequence[str]) -> None:
        """Raises UsageError where a list is missing that has no default."""
        for name in SWEPT:
            if PARAMETERS[name].required and name not in (*self.lists, *without):
                raise UsageError(f"{where}: {PARAMETERS[name].key} is missing")

    def check_together(self, where: str) -> None:
        """Raises UsageError where one value makes no sense without another."""
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
        check_tls(self, where)
        check_server(self, where)

    @property
    def own(self) -> OwnServer | None:
        """The server of the user's own, None for no such."""
        return parsed(self.own_server) if self.own_server else None

    @property
    def has_own_chain(self) -> bool:
        """Whether the server brings its certificate."""
        return bool(self.own and self.own.ca)

    @property
    def networks(self) -> tuple[Network, ...]:
        """(rtt_ms, bandwidth_kbps) each."""
        return self.pairs or tuple(product(*(self.lists[name] for name in _NETWORK)))

    @property
    def by_name(self) -> Mapping[str, tuple[Any, ...]]:
        return self.lists

    def with_lists(self, **lists: tuple[Any, ...]) -> Sweep:
        """The sweep with other lists, by name."""
        return replace(self, lists={**self.lists, **lists})

    @property
    def cells(self) -> list[Cell]:
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

        All others have one value while the combinations are looked at.
        """
        kept = {*names, *(_NETWORK if {*_NETWORK, "uplink_kbps", "bdp_bytes"} & {*names} else ()),
                *(CHAIN if {*CHAIN} & {*names} else ())}
        fewer = replace(
            self, lists={name: values if name in kept else values[:1]
                         for name, values in self.lists.items()},
            **{name: getattr(self, name)[:1] for name, together in self.TOGETHER.items()
               if kept.isdisjoint(together)})
        times = self.combination_count() // fewer.combination_count()
        return Counter({values: times * count for values, count in Counter(
            tuple(bucket_value(name, cell) for name in names) for cell in fewer.cells).items()})

    def trials(self, scenario: str, seed: int) -> Iterator[Trial]:
        """Windows alternate within a repeat, so that both meet the same conditions.

        Both also meet the same random numbers: their difference is then far
        less a matter of chance than either time. seed: of the run.
        """
        for values in self._cells():
            by_chance = any(values[name] for name in RANDOM)
            own = self.own_server if values["server"] == OWN else ""
            repeats = self.repeat_with_loss or self.repeat if by_chance else self.repeat
            for repeat in range(1, repeats + 1):
                drawn = seed_of(seed, repeat) if by_chance else 0
                for initcwnd in self.initcwnd:
                    yield Trial(scenario=scenario, initcwnd=initcwnd, client=self.client,
                                repeat=repeat, seed=drawn, own_server=own, **values)

    def _cells(self) -> Iterator[dict[str, Any]]:
        """The fields that the trials of each cell have in common."""
        for values in self.combinations():
            rtt_ms, bandwidth_kbps = values["rtt_ms"], values["bandwidth_kbps"]
            if values["uplink_kbps"] is None:
                values["uplink_kbps"] = bandwidth_kbps
            values.update(queue_of(values.pop("queue"), rtt_ms, bandwidth_kbps))
            yield values

    def overridden(self, lists: dict[str, tuple[Any, ...]]) -> Sweep:
        """The sweep with other lists, by name, and other windows.

        Pairs then become every RTT with every bandwidth.
        """
        given, pairs, chains = {**self.lists, **lists}, self.pairs, self.chains
        initcwnd = given.pop("initcwnd", self.initcwnd)
        if pairs and not lists.keys().isdisjoint(_NETWORK):
            rtts_ms, bandwidths_kbps = (tuple(dict.fromkeys(values)) for values in zip(*pairs))
            given = {"rtt_ms": rtts_ms, "bandwidth_kbps": bandwidths_kbps, **given}
            pairs = ()
        if not lists.keys().isdisjoint(CHAIN):
            chains = ()
        if "system" not in lists and system_for(given) == NEWER:
            given["system"] = (NEWER,)
        return replace(self, lists=given, initcwnd=initcwnd, pairs=pairs, chains=chains)

    def coarse(self, one_in: int, where: str) -> Sweep:
        """About one in so many of its networks, the ends of both lists among them.

        Raises UsageError where networks are no grid.
        """
        if self.pairs:
            raise UsageError(f"{where} has pairs of RTT and bandwidth, and no grid")
        return self.with_lists(**{name: _spread(self.lists[name], one_in) for name in _NETWORK})


@dataclass(frozen=True, kw_only=True)
class Template(Sweep):
    """What drawn trials have in common, of a file's [defaults]: a sweep without a network or size.

    Users and populations have an RTT, a bandwidth and a size each.
    """

    name: str = key("defaults", absent=True)
    initcwnd: tuple[int, ...] = key((), reader=_list("initcwnd"))
    repeat: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "lists", {"uplink_kbps": (None,), **self.lists})
        super().__post_init__()

    def check(self, where: str) -> None:
        """Raises UsageError where a list is missing."""
        self.check_given(where, without=DRAWN)
        self.check_together(where)

    @property
    def fields(self) -> dict[str, Any]:
        """A trial's fields but for what is drawn, the windows and the queue's length."""
        values = {name: values[0] for name, values in self.lists.items()
                  if name not in (*DRAWN, "uplink_kbps", "queue")}
        return {**values, "client": self.client, "repeat": 1,
                "own_server": self.own_server if values["server"] == OWN else ""}


def _spread(values: tuple[float, ...], one_in: int) -> tuple[float, ...]:
    """One in √one_in of the values, at least the first and the last."""
    count = min(len(values), max(2, round(len(values) / math.sqrt(one_in))))
    return tuple(values[round(place * (len(values) - 1) / max(1, count - 1))]
                 for place in range(count))


@lru_cache(maxsize=1 << 16)
def cell_of(trial: Trial) -> Cell:
    """The trial without window, client, its own server, repeat, seed and weight."""
    return replace(trial, scenario="", initcwnd=0, client="", own_server="", repeat=0, seed=0,
                   weight=1.0)


def bucket_value(by: str, of: Any) -> Value:
    """The value that places a cell, or whatever has its attributes, in a bucket of `by`.

    In the unit of its name.
    """
    if by == "bdp_bytes":
        return float(of.rtt_ms * of.bandwidth_kbps / 8)
    value: Value = getattr(of, by)
    return value


def queue_of(length: str, rtt_ms: float, bandwidth_kbps: float) -> dict[str, Any]:
    """The fields of a Trial for a queue's length. Raises UsageError where it is too long."""
    return {"queue_packets": packets_of(length, rtt_ms, bandwidth_kbps),
            **({} if length.isdigit() else {"queue_from": length})}


def seed_of(run_seed: int, repeat: int) -> int:
    """The seed of one repeat's random numbers, 32 bits.

    Mixed, since netem's generator starts neighbouring seeds alike: of the
    seeds 1 to 100, as they are, 12 would lose the fifth packet at 2 % and
    none some others (kernel, prandom_seed_state: no warm-up).
    """
    return zlib.crc32(f"{run_seed} {repeat}".encode()) * 0x9E3779B1 % 2**32


# What goes together ------------------------------------------------------------------

def needing_newer(lists: Mapping[str, Any]) -> list[str]:
    """What of a sweep's lists, by name, only Debian 13's programs have, in words."""
    signatures, key_shares = ([value for value in lists.get(name, ()) if value in newer]
                              for name, newer in _NEWER_ONLY.items())
    early = ["early data (0-RTT) (early_data_bytes, --early-data)"] if any(
        lists.get("early_data_bytes", ())) else []
    return [*signatures, *early, *key_shares]


def system_for(lists: Mapping[str, object]) -> str:
    """The system that can do all of a sweep's lists."""
    return NEWER if needing_newer(lists) else HERE


EARLY_DATA = "early data (early_data_bytes, --early-data)"


def check_tls(requested: Sweep, where: str) -> None:
    """Raises UsageError where a chain cannot be, or the rest does not go with TLS."""
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
    """Raises UsageError where a request cannot leave with the client's hello."""
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


# What only server.py does otherwise than by default, and its words.
_OURS = {"buffer_bytes": "a buffer of its own (buffer_bytes, --tls-buffer)",
         "gap_ms": "a back-end (gap_ms, --think)", "head": "writes of headers (head)",
         "nagle": "Nagle's algorithm (nagle)", "framing": "a body without a length (framing)",
         "send_buffer_bytes": "a send buffer of its own (send_buffer_bytes)"}


def check_server(requested: Sweep, where: str) -> None:
    """Raises UsageError where a server cannot do what else is requested."""
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
    for name, words in _OURS.items():
        if others and {*lists[name]} != {PARAMETERS[name].default}:
            raise UsageError(f"{where}: {words} needs the server {BUILTIN}, not {others[0]}")
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
