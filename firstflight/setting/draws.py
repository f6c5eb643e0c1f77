"""Repeats on networks that are nearly the one requested, where one measurement is one draw.

Where a queue drops packets, a microsecond of the RTT or one packet of the queue decides which, and
with them the time: nobody knows a path so well. The same holds for what the kernel draws: cake's
drops, the flows that share a queue, and the phase in which BBR probes. So a cell whose first trial
met one of these is repeated with RTTs, queues and seeds that are drawn, the same under all windows.
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

SPREAD = 0.02  # of the RTT and of the queue, at most, more or less
LEAST_PACKETS = 1  # by which a queue is longer or shorter at most, whatever its length
REPEATS = 20  # of a cell in a question, the one on the requested network among them
RTT_DIGITS = 3  # a microsecond
# The fields of a trial that are drawn, as they are where nothing is.
NOT_DRAWN: Mapping[str, Any] = {"drawn_rtt_ms": None, "drawn_queue_packets": None}


def drawn(rtt_ms: float, queue_packets: int, seed: int) -> dict[str, Any]:
    """The fields of NOT_DRAWN for a network, the same for the same seed."""
    random = Random(seed)
    most_ms = QUANTITIES["rtt_ms"].highest
    packets = max(LEAST_PACKETS, round(SPREAD * queue_packets))
    return {"drawn_rtt_ms": min(most_ms, round(rtt_ms * (1 + random.uniform(-SPREAD, SPREAD)),
                                               RTT_DIGITS)),
            "drawn_queue_packets": min(int(QUANTITIES["queue_packets"].highest), max(
                1, queue_packets + random.randint(-packets, packets)))}


def with_draws(trials: Sequence[Any], sensitive: Mapping[Hashable, int],
               cell_of: Callable[[Any], Hashable], repeats: int, run_seed: int) -> list[Any]:
    """The trials; those of sensitive cells have drawn networks after their first repeats.

    sensitive: by cell, as cell_of returns it, how many repeats stay on the requested network.
    repeats: how often these cells are measured.
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
            found += [replace(trial, repeat=repeat, seed=seed,
                              **drawn(trial.rtt_ms, trial.queue_packets, seed))
                      for trial in firsts]
    return found


def note_on_draws(trials: Sequence[Any], one_draw: bool) -> list[str]:
    """A note for an answer on what was repeated so, or was not; [] where there was no reason to.

    one_draw: whether a cell that should be was measured once, as --repeat 1 requests.
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
