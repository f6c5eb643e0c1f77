"""Your users and others on one link, as a scenario of kind load: what a larger window costs them.

Half of the connections are your users', who get the window in question, and half are of others,
who keep the baseline. Both have the same RTTs and fetch the same sizes, drawn from the file; so
what differs between the halves is the window.
"""

from __future__ import annotations

from pathlib import Path

import numpy
from numpy.typing import NDArray

from lab.core.scenario.scenario_file import ScenarioFile, parsed
from lab.core.words import exact, plain, toml
from lab.fetches.features.users.requested import Asked
from lab.fetches.features.users.rows import Users, summary
from lab.fetches.features.users.sample import baseline_of, filled, picked, printable, stem_of

Numbers = NDArray[numpy.float64]

NETWORKS = 6  # of the users, each with a host of yours and one of the others'
SIZES = 21  # points of the sizes' distribution, every 5 %
SEEDS = 4
CONNECTIONS = 2000  # in the time that counts, roughly
SHORTEST_S, LONGEST_S = 20.0, 900.0
WARM_UP = 0.15  # of the time, and half of that at its end
FULL_SEGMENT = 1514 / 1448  # bytes on the wire for one of data


def scenario(users: Users, asked: Asked, path: Path, seed: int) -> ScenarioFile:
    """The scenario that measures the cost for others. Raises UsageError for what is missing."""
    assert asked.shared_kbps is not None
    columns = filled(users, asked.given or {}, path)
    base = baseline_of(asked.windows)
    others = [window for window in asked.windows if window != base]
    rows, times = picked(users, columns, NETWORKS, seed)
    shares = times / times.sum()
    sizes = size_points(columns["response_bytes"], users.weight)
    duration_s = _duration_s(asked.shared_kbps * asked.load, sizes)
    windows = [base, *others]
    name, control = printable(path.name), (asked.defaults or {}).get("congestion_control", "cubic")
    text = "\n".join([
        f"# What do larger windows for the users of {name} cost others on a link of"
        f" {plain(asked.shared_kbps)} kbit/s?",
        'kind = "load"',
        f"title = {toml(f'The users of {name} beside others on one link')}",
        f"source = {toml(f'{name}: {summary(users)}')}",
        f"note = {toml(_defined(asked, base))}", "",
        "[defaults]", f"bandwidth_kbps = {exact(asked.shared_kbps)}",
        f"rtt_ms = {exact(float(numpy.median(columns['rtt_ms'][rows])))}", "queue_bdp = [1.0]",
        'queue = ["droptail"]', f"load = [{exact(asked.load)}]",
        f"response_bytes = [{round(sizes[len(sizes) // 2][1])}]",
        f"sizes = {toml([list(point) for point in sizes])}", "connections = [1]",
        f"initrwnd = {max(100, *asked.windows)}",
        f"congestion_control = [{toml(control)}]",
        "paced = [false]", "servers = 1", f"duration_s = {exact(duration_s)}",
        f"warmup_s = {round(WARM_UP * duration_s)}",
        f"cooldown_s = {round(WARM_UP / 2 * duration_s)}", f"repeat = {SEEDS}",
        f"mixes = {toml([[[window, 0.5], [base, 0.5]] for window in windows])}", "",
        "[[population]]", 'name = "users"',
        f"clients = {toml(_clients(columns['rtt_ms'][rows], shares))}", "",
        "[[sweep]]", 'name = "shared"', 'population = "users"', "",
        "[[figure]]", 'name = "shared"',
        f"title = {toml(f'What larger windows cost others, {name}')}",
        'kind = "share"', 'sweep = "shared"',
        f"windows = {toml([f'{window}+{base}' for window in windows])}"]) + "\n"
    return parsed(f"users_of_{stem_of(path)}_shared", text, str(path))


def _defined(asked: Asked, base: int) -> str:
    return (f"Half of the connections are your users', half of others, who keep {base} segments;"
            " both have the RTTs and sizes of the file, and links of their own that are faster than"
            " the shared one. That carries"
            f" {plain(asked.shared_kbps or 0)} kbit/s, is offered {plain(100 * asked.load)} %, and"
            " its queue holds one bandwidth-delay product of the median RTT")


def _clients(rtt_ms: Numbers, shares: Numbers) -> list[list[float]]:
    """[share, RTT, own link, loss] of each network.

    One host stands for many users: with a link of its own they would wait for each other there,
    as they do not. So only the shared link has a rate.
    """
    return [[float(share), float(rtt), 0.0, 0.0] for rtt, share in zip(rtt_ms, shares)]


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
