"""The sweep of single fetches: networks, responses and windows.

A quantity that a sweep has a list of is a field of Sweep, and a field of the
same name in Trial: cells, trials and networks follow from the two.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any, ClassVar, Literal, get_args

from firstflight.base.errors import UsageError
from firstflight.findings.quantities import AUTO, LEAST_AUTO_PACKETS, QUANTITIES
from firstflight.net.segments import HEADER_BYTES, MSS
from firstflight.runs import schema
from firstflight.runs.schema import key
from firstflight.study.fetches.scenario.path import RANDOM, is_random
from firstflight.study.fetches.scenario.server import (BUILTIN, HERE, HTTP_1, NEWER, NGINX, OWN,
                                                       parsed)
from firstflight.study.fetches.scenario.trial import Trial
from firstflight.study.scenario import grammar
from firstflight.testbed.hosts.tls_records import LEAST_BYTES, LEAST_PADDED_BYTES

Network = tuple[float, float]  # rtt_ms, bandwidth_kbps
Chain = tuple[Any, ...]  # of CHAIN each
CHAIN = ("signature", "intermediates", "chain_bytes")
_NETWORK = ("rtt_ms", "bandwidth_kbps")
Client = Literal["curl", "libcurl", "wget"]
CLIENTS = get_args(Client)
Value = float | str
Cell = Trial  # what is measured with every window: see cell_of
# What only Debian 13's programs can do, by the list that has it; early data they alone can send.
_NEWER_ONLY = {"signature": ("mldsa44", "mldsa65", "mldsa87", "slhdsa128s"),
               "key_share": ("x25519mlkem768",)}


def _list(name: str) -> schema.Reader:
    """Values of a quantity, or a single one without brackets."""
    return schema.one_or_more(schema.number(name))


def _swept(name: str) -> Any:
    """A list that a sweep may lack: then it is the quantity's default."""
    return key(QUANTITIES[name].defaults, reader=_list(name))


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


# The lists that are combined; with every window each.
SWEPT = ("rtt_ms", "bandwidth_kbps", "uplink_kbps", "queue", "qdisc", "loss_percent", "loss_burst",
         "jitter_ms", "response_bytes", "initrwnd", "congestion_control", "mss", "kept", "idle_ms",
         "gap_ms", "htb_burst_bytes", "integer_kbps", "arp_ms", "head", "nagle", "framing",
         "loss_probes", "receive_rules", "acts_as", "send_buffer_bytes", "chain_bytes", "signature",
         "intermediates", "tickets", "resumed", "early_data_bytes", "record_bytes", "buffer_bytes",
         "key_share", "server", "http", "system")


@dataclass(frozen=True, kw_only=True)
class Sweep(grammar.Sweep[Trial]):
    """Networks, windows and sizes that are measured in every combination.

    initrwnd: AMPLE_WINDOW by default. system: by default one that can do all of the sweep, so
    that what is compared runs in the same.
    pairs: (rtt_ms, bandwidth_kbps) each, in place of every RTT with every
    bandwidth; chains: (signature, intermediates, chain_bytes) each, in place of
    every combination. repeat_with_loss: in place of
    repeat where chance decides.
    uplink_kbps: None where the uplink is as fast as the downlink. queue: see
    findings.quantities.Length. The rest as in study.fetches.scenario.trial.Trial.
    """

    LISTS: ClassVar[tuple[str, ...]] = SWEPT
    TOGETHER: ClassVar[Mapping[str, tuple[str, ...]]] = {"pairs": _NETWORK, "chains": CHAIN}
    name: str
    rtt_ms: tuple[float, ...] = ()
    bandwidth_kbps: tuple[float, ...] = ()
    pairs: tuple[Network, ...] = key((), reader=_together(*_NETWORK))
    uplink_kbps: tuple[float | None, ...] = key(name="uplink", reader=schema.one_or_more(
        schema.none_for("same", schema.number("uplink_kbps"))))
    queue: tuple[str, ...] = key(name="queue_packets", reader=_list("queue"))
    loss_percent: tuple[float, ...] = key(reader=_list("loss_percent"))
    response_bytes: tuple[int, ...]
    initcwnd: tuple[int, ...]
    initrwnd: tuple[int, ...] = _swept("initrwnd")
    congestion_control: tuple[str, ...] = key(reader=_list("congestion_control"))
    chains: tuple[Chain, ...] = key((), reader=_together(*CHAIN))
    system: tuple[str, ...] = key((), reader=_list("system"))
    own_server: str = key("", absent=True)
    client: Client
    repeat: int
    repeat_with_loss: int | None = key(None, quantity="repeat")
    gap_ms: tuple[float, ...] = _swept("gap_ms")
    jitter_ms: tuple[float, ...] = _swept("jitter_ms")
    loss_burst: tuple[float, ...] = _swept("loss_burst")
    qdisc: tuple[str, ...] = _swept("qdisc")
    mss: tuple[int, ...] = _swept("mss")
    kept: tuple[int, ...] = _swept("kept")
    idle_ms: tuple[float, ...] = _swept("idle_ms")
    htb_burst_bytes: tuple[int, ...] = _swept("htb_burst_bytes")
    integer_kbps: tuple[float, ...] = _swept("integer_kbps")
    arp_ms: tuple[int, ...] = _swept("arp_ms")
    head: tuple[str, ...] = _swept("head")
    nagle: tuple[str, ...] = _swept("nagle")
    framing: tuple[str, ...] = _swept("framing")
    loss_probes: tuple[str, ...] = _swept("loss_probes")
    receive_rules: tuple[str, ...] = _swept("receive_rules")
    acts_as: tuple[str, ...] = _swept("acts_as")
    send_buffer_bytes: tuple[int, ...] = _swept("send_buffer_bytes")
    chain_bytes: tuple[int, ...] = _swept("chain_bytes")
    signature: tuple[str, ...] = _swept("signature")
    intermediates: tuple[int, ...] = _swept("intermediates")
    tickets: tuple[int, ...] = _swept("tickets")
    resumed: tuple[int, ...] = _swept("resumed")
    early_data_bytes: tuple[int, ...] = _swept("early_data_bytes")
    record_bytes: tuple[int, ...] = _swept("record_bytes")
    buffer_bytes: tuple[int, ...] = _swept("buffer_bytes")
    key_share: tuple[str, ...] = _swept("key_share")
    server: tuple[str, ...] = _swept("server")
    http: tuple[str, ...] = _swept("http")

    def __post_init__(self) -> None:
        for name, values in zip(CHAIN, zip(*self.chains)):
            object.__setattr__(self, name, tuple(dict.fromkeys(values)))
        if not self.system:
            object.__setattr__(self, "system", (system_for(vars(self)),))

    def check(self, where: str) -> None:
        """Raises UsageError where the networks are given twice, or not at all."""
        if self.pairs and (self.rtt_ms or self.bandwidth_kbps):
            raise UsageError(f"{where}: has pairs, so it cannot have rtt_ms or bandwidth_kbps")
        for name in ("rtt_ms", "bandwidth_kbps"):
            if not self.pairs and not getattr(self, name):
                raise UsageError(f"{where}: {name} is missing")
        self.check_together(where)

    def check_together(self, where: str) -> None:
        """Raises UsageError where one value makes no sense without another."""
        if any(burst > 1 for burst in self.loss_burst) and not all(self.loss_percent):
            raise UsageError(f"{where}: bursts of losses (loss_burst, --burst-loss) need random"
                             " loss (loss_percent, --loss)")
        if any(self.idle_ms) and not all(self.kept):
            raise UsageError(f"{where}: a pause (idle_ms, --idle) is between two responses: kept"
                             " (--kept) has to be 1 or more")
        if "close" in self.framing and any(self.kept):
            raise UsageError(f'{where}: framing = "close" ends the connection: kept has to be 0')
        if any(self.kept) and (any(self.chain_bytes) or self.has_own_chain):
            raise UsageError(f"{where}: earlier responses (kept, --kept; a pause, --idle, has one)"
                             " go with plain HTTP only")
        if any(self.kept) and self.client == "wget":
            raise UsageError(f"{where}: wget times all responses of a connection together: earlier"
                             " responses (kept, --kept) need the client curl or libcurl, e.g."
                             " --client curl")
        if any(self.idle_ms) and self.client != "libcurl":
            raise UsageError(f"{where}: a pause (idle_ms, --idle) needs the client libcurl, not"
                             f" {self.client}")
        if HERE in self.system and (needing := needing_newer(vars(self))):
            raise UsageError(f"{where}: {needing[0]} needs Debian 13's programs (system ="
                             f" {NEWER!r}, --system {NEWER})")
        check_tls(self, where)
        check_server(self, where)

    @property
    def has_own_chain(self) -> bool:
        """Whether the server brings its certificate."""
        return bool(self.own_server and parsed(self.own_server).ca)

    @property
    def networks(self) -> tuple[Network, ...]:
        """(rtt_ms, bandwidth_kbps) each."""
        return self.pairs or tuple(product(self.rtt_ms, self.bandwidth_kbps))

    @property
    def cells(self) -> list[Cell]:
        """The cells in the order in which they are measured."""
        return [Trial(scenario="", initcwnd=0, client="", repeat=0, **values)
                for values in self._cells()]

    @property
    def count(self) -> int:
        lossless = self.combination_count({name: getattr(self, name).count(0) for name in RANDOM})
        return len(self.initcwnd) * (
            lossless * self.repeat
            + (self.combination_count() - lossless) * (self.repeat_with_loss or self.repeat))

    def counted(self, *names: str) -> Counter[tuple[Value, ...]]:
        """How many cells have each combination of values of these quantities (bucket_value).

        All others have one value while the combinations are looked at.
        """
        kept = {*names, *(_NETWORK if {*_NETWORK, "uplink_kbps", "bdp_bytes"} & {*names} else ()),
                *(CHAIN if {*CHAIN} & {*names} else ())}
        fewer = replace(self, **{
            name: getattr(self, name)[:1] for name, together in (
                *((name, (name,)) for name in SWEPT), *self.TOGETHER.items())
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
            by_chance, own = is_random(values), self.own_server if values["server"] == OWN else ""
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
        """The sweep with other lists, by name; pairs then become every RTT with every bandwidth."""
        if self.pairs and ("rtt_ms" in lists or "bandwidth_kbps" in lists):
            rtts_ms, bandwidths_kbps = (tuple(dict.fromkeys(values)) for values in zip(*self.pairs))
            lists = {"rtt_ms": rtts_ms, "bandwidth_kbps": bandwidths_kbps, "pairs": (), **lists}
        if not lists.keys().isdisjoint(CHAIN):
            lists = {"chains": (), **lists}
        if "system" not in lists and system_for({**vars(self), **lists}) == NEWER:
            lists = {**lists, "system": (NEWER,)}
        return replace(self, **lists)

    def coarse(self, one_in: int, where: str) -> Sweep:
        """About one in so many of its networks, the ends of both lists among them.

        Raises UsageError where networks are no grid.
        """
        if self.pairs:
            raise UsageError(f"{where} has pairs of RTT and bandwidth, and no grid")
        return replace(self, rtt_ms=_spread(self.rtt_ms, one_in),
                       bandwidth_kbps=_spread(self.bandwidth_kbps, one_in))


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
    """The fields of a Trial for a queue's length. Raises UsageError where it is too long.

    One that is given in time or products holds so many full packets, the last of
    them begun.
    """
    if length.isdigit():
        return {"queue_packets": int(length)}
    ms = (rtt_ms if length == AUTO else float(length.removesuffix("ms")) if length.endswith("ms")
          else float(length.removesuffix("bdp")) * rtt_ms)
    packets = math.ceil(ms * bandwidth_kbps / 8 / (MSS + HEADER_BYTES))
    if length == AUTO:
        most = int(QUANTITIES["queue_packets"].highest)
        return {"queue_packets": min(max(LEAST_AUTO_PACKETS, packets), most), "queue_from": AUTO}
    return {"queue_packets": QUANTITIES["queue_packets"].check(packets, f"a queue of {length}"),
            "queue_from": length}


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
    chains = [chain for chain in requested.chain_bytes if chain]
    if not chains and not requested.has_own_chain:
        if any(requested.resumed) or any(requested.early_data_bytes):
            raise UsageError(f"{where}: a session is resumed (resumed, --resumed), and early data"
                             " sent, only with TLS: give a chain (chain_bytes, --chain)")
        return
    if requested.client != "curl":
        raise UsageError(f"{where}: TLS (chain_bytes, --chain) needs the client curl, not"
                         f" {requested.client}: use --client curl")
    if any(requested.resumed) and not all(requested.tickets):
        raise UsageError(f"{where}: without a ticket (tickets, --tickets) no session can be resumed"
                         " (resumed, --resumed)")
    if any(requested.early_data_bytes):
        _check_early_data(requested, where)
    for signature, intermediates, chain_bytes in requested.chains or tuple(product(
            requested.signature, requested.intermediates, chains)):
        count, least = 1 + intermediates, LEAST_BYTES[signature] * (1 + intermediates)
        if chain_bytes < least:
            raise UsageError(f"{where}: a chain of {chain_bytes} bytes is too small for {count}"
                             f" certificate{'s' if count > 1 else ''} with {signature}: at least"
                             f" {least}")


def _check_early_data(requested: Sweep, where: str) -> None:
    """Raises UsageError where a request cannot leave with the client's hello."""
    if not all(requested.resumed):
        raise UsageError(f"{where}: {EARLY_DATA} goes with a session that is resumed (resumed,"
                         " --resumed 1): its ticket allows it")
    if any(server != NGINX for server in requested.server):
        raise UsageError(f"{where}: {EARLY_DATA} needs the server {NGINX} (server, --server"
                         f" {NGINX})")
    for size in requested.early_data_bytes:
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
    if (OWN in requested.server) != bool(requested.own_server):
        raise UsageError(f"{where}: " + (
            "a server of your own needs a command: give --server-command, or [own_server] in a file"
            if not requested.own_server else
            f"--server-command goes only with --server {OWN}, or without --server"))
    if requested.has_own_chain and any(requested.chain_bytes):
        raise UsageError(f"{where}: a server has its own certificate (ca, --ca), or is given a"
                         " chain (chain_bytes, --chain): not both")
    others = [name for name in requested.server if name != BUILTIN]
    for name, words in _OURS.items():
        if others and {*getattr(requested, name)} != {*QUANTITIES[name].defaults}:
            raise UsageError(f"{where}: {words} needs the server {BUILTIN}, not {others[0]}")
    if requested.http == (HTTP_1,):
        return
    if BUILTIN in requested.server:
        raise UsageError(f"{where}: the server {BUILTIN} speaks HTTP/1.1 only: use another one"
                         " (server, --server nginx)")
    if not all(requested.chain_bytes) and not requested.has_own_chain:
        raise UsageError(f"{where}: HTTP/2 goes over TLS: give a chain (chain_bytes, --chain)")
    if any(requested.resumed):
        raise UsageError(f"{where}: sessions are resumed (resumed, --resumed) with HTTP/1.1 only:"
                         " over HTTP/2 curl keeps using its connection")
