"""Repeats on networks that are nearly the one requested, where one measurement is one draw.

Where a queue drops packets, a microsecond of the RTT or one packet of the queue decides which
packets are dropped, and with them the time. Nobody knows a path so well. What the kernel draws at
random decides as much: cake's drops, the flows that share a queue, and the phase in which BBR
probes. So a cell whose first trial met one of these is repeated. The RTT, the queue and the seed of
each repeat are drawn, and are the same under all windows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from firstflight.findings.quantities import QUANTITIES
from firstflight.runs.kinds import is_drawn
from firstflight.runs.results.cells import grouped
from firstflight.setting.seeds import netem_seed

# A drawn RTT or queue is longer or shorter by at most this part of the requested one,
SPREAD = 0.02
# and a short queue by at most one packet.
LEAST_PACKETS = 1
REPEATS = 20  # of a cell in a question, with the one on the requested network
RTT_DIGITS = 3  # of an RTT in ms: whole microseconds
# The fields of a trial that are drawn, with their values in a trial of which nothing is drawn.
NOT_DRAWN: Mapping[str, Any] = {"drawn_rtt_ms": None, "drawn_queue_packets": None}


def draw_network(rtt_ms: float, queue_packets: int, seed: int) -> dict[str, Any]:
    """Draw the fields of NOT_DRAWN for a network; the same seed always draws the same."""
    random = Random(seed)
    drawn_ms = round(rtt_ms * (1 + random.uniform(-SPREAD, SPREAD)), RTT_DIGITS)

    spread = max(LEAST_PACKETS, round(SPREAD * queue_packets))
    drawn_packets = max(1, queue_packets + random.randint(-spread, spread))
    most_packets = int(QUANTITIES["queue_packets"].highest)
    return {"drawn_rtt_ms": min(QUANTITIES["rtt_ms"].highest, drawn_ms),
            "drawn_queue_packets": min(most_packets, drawn_packets)}


def with_draws(trials: Sequence[Any], sensitive: Mapping[Hashable, int],
               cell_of: Callable[[Any], Hashable], repeats: int, run_seed: int) -> list[Any]:
    """The trials. In sensitive cells, repeats on drawn networks follow the first repeats.

    sensitive: by cell, as cell_of returns it, how many repeats stay on the requested network.
    repeats: how often a sensitive cell is measured. run_seed: decides what is drawn.
    """
    found: list[Any] = []
    for cell, of_cell in grouped(trials, cell_of).items():
        if cell not in sensitive:
            found += of_cell
            continue
        undrawn = sensitive[cell]
        firsts = [trial for trial in of_cell if trial.repeat == 1]
        found += [trial for trial in of_cell if trial.repeat <= undrawn]
        for repeat in range(undrawn + 1, repeats + 1):
            seed = netem_seed(run_seed, repeat)
            for trial in firsts:
                network = draw_network(trial.rtt_ms, trial.queue_packets, seed)
                found.append(replace(trial, repeat=repeat, seed=seed, **network))
    return found


def note_on_draws(trials: Sequence[Any], one_draw: bool) -> list[str]:
    """A note for an answer on which cells were repeated on drawn networks.

    [] where no cell was, and none had to be. one_draw: whether a cell that had to be repeated was
    measured once, as --repeat 1 requests.
    """
    repeats = [trial.repeat for trial in trials if is_drawn(trial)]
    if one_draw:
        return ["Where a queue drops packets, microseconds decide: this is one draw, which another"
                " may contradict; give --repeat 20, or leave it out."]
    if not repeats:
        return []
    return [f"Where a queue drops packets, microseconds decide: such a setting was measured"
            f" {max(repeats)} times, with an RTT and a queue within {100 * SPREAD:g} % (at least"
            f" {LEAST_PACKETS} packet) of those requested."]
