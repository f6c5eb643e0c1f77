"""Sweep: networks, responses and windows of single fetches.

A sweep has a list of values for each parameter, and a trial for each combination of values.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any, ClassVar, Literal, get_args

from firstflight.base.errors import UsageError
from firstflight.base.quantity import FIXED
from firstflight.parameters import SWEPT, Lists
from firstflight.runs.schema import key
from firstflight.scenario.setting_sweep import (NETWORK, SettingSweep, draws_at_random,
                                                lists_of, rows_of, values_of)
from firstflight.setting.draws import NOT_DRAWN
from firstflight.setting.kernels import KERNEL
from firstflight.setting.seeds import netem_seed
from firstflight.setting.server import (BUILTIN, HTTP_1, NEWER, NGINX, OWN, OwnServer,
                                        parse_own_server)
from firstflight.setting.together import (check_builtin, check_chains, check_resumed, check_system,
                                          system_for)
from firstflight.testbed.hosts.tls_records import LEAST_PADDED_BYTES
from firstflight.workloads.fetch.trial import Trial

CHAIN = ("signature", "intermediates", "chain_bytes")
Chain = tuple[Any, ...]  # a value for each parameter of CHAIN
DRAWN = (*NETWORK, "response_bytes")  # each user, and each row of a population, has its own
Client = Literal["curl", "libcurl", "wget"]
CLIENTS = get_args(Client)
Value = float | str
CellKey = Trial  # a trial without what varies within a cell (cell_key)


@dataclass(frozen=True, kw_only=True)
class Sweep(SettingSweep[Trial]):
    """Networks, windows and sizes that are measured in every combination.

    Without a list of systems, all trials run in one system that can do all of the sweep, so that
    they can be compared.
    """

    NAMES: ClassVar[tuple[str, ...]] = SWEPT
    TOGETHER: ClassVar[Mapping[str, tuple[str, ...]]] = {"pairs": NETWORK, "chains": CHAIN,
                                                         "kernels": KERNEL}
    # Chains that are measured; () for every combination of the lists of CHAIN.
    chains: tuple[Chain, ...] = key((), reader=rows_of(*CHAIN))
    lists: Lists = lists_of(SWEPT)  # by name, in the order of parameters.SWEPT
    own_server: str = key("", absent=True)
    client: Client

    def with_followers(self, lists: dict[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
        """The lists with those that follow from them, as the system does."""
        return super().with_followers({"system": (system_for(lists),), **lists})

    def check_together(self, where: str) -> None:
        """Check that values may stand together, such as bursts of losses with loss.

        Raises UsageError.
        """
        super().check_together(where)
        check_earlier_responses(self, where)
        check_upload(self, where)
        check_receive_window(self, where)
        check_system(self.lists, where)
        check_tls(self, where)
        check_server(self, where)

    @property
    def own(self) -> OwnServer | None:
        """The user's own server, None without one."""
        return parse_own_server(self.own_server) if self.own_server else None

    @property
    def has_own_chain(self) -> bool:
        """Whether the user's own server brings its certificate."""
        return bool(self.own and self.own.ca)

    @property
    def cells(self) -> list[CellKey]:
        """The cells in the order in which they are measured."""
        return [Trial(scenario="", initcwnd=0, client="", repeat=0, **values)
                for values in self.cell_values()]

    def counted(self, *names: str) -> Counter[tuple[Value, ...]]:
        """How many cells have each combination of values of these quantities (bucket_value).

        To be fast, only the lists of `kept` have all their values while cells are counted, and the
        others one. Then the counts are multiplied.
        """
        # The quantities, and all parameters on which their values depend.
        kept = {*names}
        if not kept.isdisjoint((*NETWORK, "uplink_kbps", "bdp_bytes", "queue_packets")):
            kept.update(NETWORK)
        if "queue_packets" in names:
            kept.add("queue")
        for row in (CHAIN, KERNEL):
            if not {*names}.isdisjoint(row):
                kept.update(row)

        lists = {name: values if name in kept else values[:1]
                 for name, values in self.lists.items()}
        rows = {name: getattr(self, name)[:1] for name, together in self.TOGETHER.items()
                if kept.isdisjoint(together)}
        smaller = replace(self, lists=lists, **rows)
        cells_for_each = self.combination_count() // smaller.combination_count()

        counts: Counter[tuple[Value, ...]] = Counter()
        for cell in smaller.cells:
            counts[tuple(bucket_value(name, cell) for name in names)] += cells_for_each
        return counts

    def trials(self, scenario: str, seed: int) -> Iterator[Trial]:
        """The trials in the order in which they are measured. seed: the run's.

        The windows of one repeat follow each other and have the same random numbers. So their times
        differ far less by chance than the times of two repeats.
        """
        for values in self.cell_values():
            own_server = self.own_server if values["server"] == OWN else ""
            for repeat in range(1, self.repeats(values) + 1):
                trial_seed = netem_seed(seed, repeat) if draws_at_random(values) else 0
                for initcwnd in self.initcwnd:
                    yield Trial(scenario=scenario, initcwnd=initcwnd, client=self.client,
                                repeat=repeat, seed=trial_seed, own_server=own_server, **values)

    def overridden(self, lists: Lists, where: str = "") -> Sweep:
        """The sweep with these lists, and with the newer system where one of them needs it.

        Raises UsageError that begins with `where`.
        """
        if "system" not in lists and system_for({**self.lists, **lists}) == NEWER:
            lists = {**lists, "system": (NEWER,)}
        return super().overridden(lists, where)

    def coarse(self, one_in: int, where: str) -> Sweep:
        """A coarser grid of about one in `one_in` networks, with the ends of both lists.

        Raises UsageError where the networks are not a grid.
        """
        if self.pairs:
            raise UsageError(f"{where} has pairs of RTT and bandwidth, and no grid")

        shorter = {}
        for name in NETWORK:
            values = self.lists[name]
            # Both lists are thinned alike: by the square root.
            count = min(len(values), max(2, round(len(values) / math.sqrt(one_in))))
            last, steps = len(values) - 1, max(1, count - 1)
            shorter[name] = tuple(values[round(step * last / steps)] for step in range(count))
        return self.with_lists(**shorter)


@dataclass(frozen=True, kw_only=True)
class Template(Sweep):
    """What all drawn trials share, from a file's [defaults]: a sweep without network and size.

    RTT, bandwidth and size are those of a user, or of a row of a population.
    """

    name: str = key("defaults", absent=True)
    initcwnd: tuple[int, ...] = key((), reader=values_of("initcwnd"))

    def check(self, where: str) -> None:
        """Check that no list is missing. Raises UsageError."""
        self.check_given(where, without=DRAWN)
        self.check_together(where)

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of a trial, except DRAWN ones, the window and the queue's length."""
        firsts = {name: values[0] for name, values in self.lists.items()
                  if name not in (*DRAWN, "uplink_kbps", "queue")}
        own_server = self.own_server if firsts["server"] == OWN else ""
        return {**firsts, "client": self.client, "repeat": 1, "own_server": own_server}


@lru_cache(maxsize=1 << 16)
def cell_key(trial: Trial) -> CellKey:
    """The cell of a trial: the trial without its window, repeat, and all that varies in a cell."""
    return replace(trial, scenario="", initcwnd=0, client="", own_server="", repeat=0, seed=0,
                   weight=1.0, **NOT_DRAWN)


def bucket_value(by: str, cell: Any) -> Value:
    """The value of the quantity `by` that decides on the bucket of a cell.

    by: a field of Trial, or "bdp_bytes". cell: a trial, or another object with the fields of a
    trial from which the value follows.
    """
    if by == "bdp_bytes":
        return float(cell.rtt_ms * cell.bandwidth_kbps / 8)
    value: Value = getattr(cell, by)
    return value


# Checks of what is requested together ------------------------------------------------

def check_earlier_responses(requested: Sweep, where: str) -> None:
    """Check what is requested together with earlier responses on a connection.

    Raises UsageError.
    """
    lists, client = requested.lists, requested.client
    has_kept, has_pause = any(lists["kept"]), any(lists["idle_ms"])
    if has_pause and not all(lists["kept"]):
        raise UsageError(f"{where}: a pause (idle_ms, --idle) is between two responses: kept"
                         " (--kept) has to be 1 or more")
    if has_kept and "close" in lists["framing"]:
        raise UsageError(f'{where}: framing = "close" ends the connection: kept has to be 0')
    if has_kept and (any(lists["chain_bytes"]) or requested.has_own_chain):
        raise UsageError(f"{where}: earlier responses (kept, --kept; a pause, --idle, has one)"
                         " go with plain HTTP only")
    if has_kept and client == "wget":
        raise UsageError(f"{where}: wget times all responses of a connection together: earlier"
                         " responses (kept, --kept) need the client curl or libcurl, e.g."
                         " --client curl")
    if has_pause and client != "libcurl":
        raise UsageError(f"{where}: a pause (idle_ms, --idle) needs the client libcurl, not"
                         f" {client}")


def check_receive_window(requested: Sweep, where: str) -> None:
    """Check what is requested together with a receive window that stays. Raises UsageError."""
    lists = requested.lists
    is_possible = (requested.client == "libcurl" and not requested.own
                   and not any(lists["chain_bytes"]))
    if FIXED in lists["rwnd_growth"] and not is_possible:
        raise UsageError(f"{where}: a receive window that stays (rwnd_growth, --rwnd-growth;"
                         " --rwnd 45,fixed) needs the client libcurl, which sets it on its"
                         " socket, plain HTTP and a server of ours (--client libcurl)")


UPLOAD = "a request with a body (request_bytes, --request)"


def check_upload(requested: Sweep, where: str) -> None:
    """Check what is requested together with the body of a request. Raises UsageError."""
    lists = requested.lists
    if not any(lists["request_bytes"]):
        if any(lists["client_initcwnd"]):
            raise UsageError(f"{where}: the client's initial window (client_initcwnd, --client-iw)"
                             f" is that of {UPLOAD}: give its size, as --request 30kB")
        return

    if any(lists["chain_bytes"]) or requested.has_own_chain:
        raise UsageError(f"{where}: {UPLOAD} goes with plain HTTP only: neither the model nor the"
                         " checks have one over TLS")
    if requested.client != "libcurl":
        raise UsageError(f"{where}: {UPLOAD} needs the client libcurl, not {requested.client}:"
                         " it alone reports the window and the congestion control of the socket"
                         " that uploads (--client libcurl)")


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
    check_resumed(lists, where)
    if any(lists["early_data_bytes"]):
        _check_early_data(requested, where)
    combined = product(lists["signature"], lists["intermediates"], chains)
    check_chains(requested.chains or combined, where)


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
    if OWN in lists["server"] and not requested.own_server:
        raise UsageError(f"{where}: a server of your own needs a command: give --server-command,"
                         " or [own_server] in a file")
    if OWN not in lists["server"] and requested.own_server:
        raise UsageError(f"{where}: --server-command goes only with --server {OWN}, or without"
                         " --server")
    if requested.has_own_chain and any(lists["chain_bytes"]):
        raise UsageError(f"{where}: a server has its own certificate (ca, --ca), or is given a"
                         " chain (chain_bytes, --chain): not both")
    check_builtin(lists, where)
    if lists["http"] != (HTTP_1,):
        _check_http_2(requested, where)


def _check_http_2(requested: Sweep, where: str) -> None:
    """Check what is requested together with HTTP/2. Raises UsageError."""
    lists = requested.lists
    if BUILTIN in lists["server"]:
        raise UsageError(f"{where}: the server {BUILTIN} speaks HTTP/1.1 only: use another one"
                         " (server, --server nginx)")
    if not all(lists["chain_bytes"]) and not requested.has_own_chain:
        raise UsageError(f"{where}: HTTP/2 goes over TLS: give a chain (chain_bytes, --chain)")
    if any(lists["resumed"]):
        raise UsageError(f"{where}: sessions are resumed (resumed, --resumed) with HTTP/1.1 only:"
                         " over HTTP/2 curl keeps using its connection")
