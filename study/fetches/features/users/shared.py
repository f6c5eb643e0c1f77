"""Your users and others on one link, as a scenario of kind load: what a larger window costs them.

Half of the connections are your users', who get the window in question, and half are of others,
who keep the baseline. Both have the same RTTs and fetch the same sizes, drawn from the file; so
what differs between the halves is the window.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy
from numpy.typing import NDArray

from base.words import exact, plain, toml
from findings.quantities import AUTO, FLAGS, QUANTITIES
from net.segments import HEADER_BYTES, MSS
from runs.scenario_file import ScenarioFile, parsed
from study.fetches.features.users.requested import Requested
from study.fetches.features.users.rows import Users, summary
from study.fetches.features.users.sample import baseline_of, filled, picked, printable, stem_of
from study.fetches.scenario.sweep import queue_of

Numbers = NDArray[numpy.float64]

NETWORKS = 6  # of the users, each with a host of yours and one of the others'
SIZES = 21  # points of the sizes' distribution, every 5 %
SEEDS = 4
CONNECTIONS = 2000  # in the time that counts, roughly
SHORTEST_S, LONGEST_S = 20.0, 900.0
WARM_UP = 0.15  # of the time, and half of that at its end
FULL_PACKET_BYTES = 1500  # of IP: in them a load scenario counts its queue
FULL_SEGMENT = (MSS + HEADER_BYTES) / MSS  # bytes on the wire for one of data
QDISCS = {"fifo": "droptail", "fq": "droptail"}  # as a load scenario names them; fq paces
HONOURED = ("queue", "qdisc", "congestion_control", "initrwnd", "loss_percent")


def scenario(users: Users, requested: Requested, path: Path, seed: int) -> ScenarioFile:
    """The scenario that measures the cost for others. Raises UsageError for what is missing."""
    assert requested.shared_kbps is not None
    columns = filled(users, requested.given or {}, path)
    base = baseline_of(requested.windows)
    others = [window for window in requested.windows if window != base]
    rows, times = picked(users, columns, NETWORKS, seed)
    shares = times / times.sum()
    sizes = size_points(columns["response_bytes"], users.weight)
    duration_s = _duration_s(requested.shared_kbps * requested.load, sizes)
    windows = [base, *others]
    name, given = printable(path.name), dict(requested.defaults or {})
    rtt_ms = float(numpy.median(columns["rtt_ms"][rows]))
    packets = queue_of(str(given.get("queue", AUTO)), rtt_ms,
                       requested.shared_kbps)["queue_packets"]
    queue_bdp = min(packets / (requested.shared_kbps * rtt_ms / 8 / FULL_PACKET_BYTES),
                    QUANTITIES["queue_bdp"].highest)
    loss_percent = float(given.get("loss_percent", 0.0))
    qdisc = str(given.get("qdisc", "fifo"))
    text = "\n".join([
        f"# What do larger windows for the users of {name} cost others on a link of"
        f" {plain(requested.shared_kbps)} kbit/s?",
        'kind = "load"',
        f"title = {toml(f'The users of {name} beside others on one link')}",
        f"source = {toml(f'{name}: {summary(users)}')}",
        f"note = {toml(_defined(requested, base, packets, given))}", "",
        "[defaults]", f"bandwidth_kbps = {exact(requested.shared_kbps)}",
        f"rtt_ms = {exact(rtt_ms)}", f"queue_bdp = [{exact(queue_bdp)}]",
        f"queue = [{toml(QDISCS.get(qdisc, qdisc))}]", f"load = [{exact(requested.load)}]",
        f"response_bytes = [{round(sizes[len(sizes) // 2][1])}]",
        f"sizes = {toml([list(point) for point in sizes])}", "connections = [1]",
        f"initrwnd = {given.get('initrwnd', max(100, *requested.windows))}",
        f"congestion_control = [{toml(given.get('congestion_control', 'cubic'))}]",
        f"paced = [{'true' if qdisc == 'fq' else 'false'}]", "servers = 1",
        f"duration_s = {exact(duration_s)}", f"warmup_s = {round(WARM_UP * duration_s)}",
        f"cooldown_s = {round(WARM_UP / 2 * duration_s)}", f"repeat = {SEEDS}",
        f"mixes = {toml([[[window, 0.5], [base, 0.5]] for window in windows])}", "",
        "[[population]]", 'name = "users"',
        f"clients = {toml(_clients(columns['rtt_ms'][rows], shares, loss_percent))}", "",
        "[[sweep]]", 'name = "shared"', 'population = "users"', "",
        "[[figure]]", 'name = "shared"',
        f"title = {toml(f'What larger windows cost others, {name}')}",
        'kind = "share"', 'sweep = "shared"',
        f"windows = {toml([f'{window}+{base}' for window in windows])}"]) + "\n"
    return parsed(f"users_of_{stem_of(path)}_shared", text, str(path))


def _defined(requested: Requested, base: int, packets: int,
             given: Mapping[str, str | float]) -> str:
    """What is measured; given: by the flags, some of which this scenario cannot have."""
    other = [FLAGS[name].flag for name in given if name not in HONOURED]
    without = f". {', '.join(other)}: not of this scenario, of the other one only" if other else ""
    return (f"Half of the connections are your users', half of others, who keep {base} segments;"
            " both have the RTTs and sizes of the file, and links of their own that are faster than"
            " the shared one. That carries"
            f" {plain(requested.shared_kbps or 0)} kbit/s, is offered"
            f" {plain(100 * requested.load)} %, and"
            f" its queue holds {packets} packets{without}")


def _clients(rtt_ms: Numbers, shares: Numbers, loss_percent: float) -> list[list[float]]:
    """[share, RTT, own link, loss] of each network.

    One host stands for many users: with a link of its own they would wait for each other there,
    as they do not. So only the shared link has a rate.
    """
    return [[float(share), float(rtt), 0.0, float(loss_percent)]
            for rtt, share in zip(rtt_ms, shares)]


def size_points(sizes: Numbers, weight: Numbers) -> list[tuple[float, float]]:
    """(share, bytes) at even shares of the weight, from the smallest to the largest."""
    order = numpy.argsort(sizes, kind="stable")
    cumulated = numpy.cumsum(weight[order])
    shares = numpy.linspace(0, 1, SIZES)
    places = numpy.searchsorted(cumulated, shares * cumulated[-1])
    return [(round(float(share), 2), float(size))
            for share, size in zip(shares, sizes[order][places])]


def _duration_s(offered_kbps: float, sizes: list[tuple[float, float]]) -> float:
    """Long enough for CONNECTIONS, within bounds; whole seconds."""
    mean_bytes = float(numpy.mean([size for _, size in sizes])) * FULL_SEGMENT
    per_s = offered_kbps * 125 / mean_bytes
    counted = 1 - 1.5 * WARM_UP
    return float(round(min(max(CONNECTIONS / per_s / counted, SHORTEST_S), LONGEST_S)))
