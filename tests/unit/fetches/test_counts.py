"""How many cells and trials a file asks for is multiplied: there may be billions."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from firstflight.base.errors import UsageError
from firstflight.parameters import SWEPT
from firstflight.runs import scenario_file
from firstflight.study import registry
from firstflight.study.fetches.scenario.sweep import Sweep, bucket_value

PROJECT = Path(__file__).resolve().parent.parent.parent.parent
LISTS = {"loss_percent": (0.0, 1.0, 2.0), "jitter_ms": (0.0, 3.0), "queue": ("10", "50", "1bdp"),
         "uplink_kbps": (None, 500.0, 64.0), "response_bytes": (1, 2, 3), "mss": (536, 1448)}
HEAD = '# Too much.\ntitle = "t"\nsource = "s"\n'
SWEEP = """
[[sweep]]
name = "own"
client = "libcurl"
congestion_control = "cubic"
uplink = "same"
queue_packets = 100
loss_percent = 0
initcwnd = [3, 10]
repeat = 1
"""
FIGURE = """
[[figure]]
name = "{}"
title = "t"
kind = "{}"
sweep = "own"
by = "{}"
baseline_initcwnd = 3
experiment_initcwnd = 10
metric = "total_ms"
"""


def drawn(random: Random) -> Sweep:
    """A sweep of a few values each."""
    several = random.sample(sorted(LISTS), 3)
    lists = {name: tuple(random.sample(known, random.randint(2, len(known)) if name in several else 1))
             for name, known in LISTS.items()}
    rtts_ms = (1.0, 20.0, 30.0)[:random.randint(1, 3)]
    pairs = tuple((rtt_ms, 64.0 * rtt_ms) for rtt_ms in rtts_ms) if random.random() < 0.3 else ()
    chains = (("ed25519", 1, 900), ("rsa2048", 0, 1100), ("ed25519", 0, 900)) \
        if random.random() < 0.5 else ()
    return Sweep(name="s", pairs=pairs, chains=chains, initcwnd=(3, 10)[:random.randint(1, 2)],
                 client="curl", repeat=random.randint(1, 2),
                 repeat_with_loss=random.choice((None, 3)), lists={
                     **lists, "congestion_control": ("cubic",),
                     **({} if pairs else {"rtt_ms": rtts_ms, "bandwidth_kbps": (64.0, 500.0)})})


@pytest.mark.parametrize("seed", range(8))
def test_what_is_multiplied_is_what_there_is(seed: int) -> None:
    random = Random(seed)
    sweep = drawn(random)
    cells = sweep.cells
    assert sweep.combination_count() == len(cells)
    assert sweep.count == len(list(sweep.trials("s", 1)))
    for names in [(name,) for name in (*SWEPT, "bdp_bytes")] + [
            tuple(random.sample(SWEPT, 2)) for _ in range(10)]:
        assert sweep.counted(*names) == Counter(
            tuple(bucket_value(name, cell) for name in names) for cell in cells), names


def check(tmp_path: Path, text: str) -> subprocess.CompletedProcess[str]:
    """What --check says of a file, with memory for what it reads and no more."""
    file = tmp_path / "own.toml"
    file.write_text(text)
    return subprocess.run(["prlimit", "--as=700000000", "--cpu=60", sys.executable,
                           PROJECT / "experiment.py", "--check", str(file)],
                          capture_output=True, text=True, check=False)


def test_a_small_file_that_asks_for_billions_of_cells_is_refused(tmp_path: Path) -> None:
    """Before any is made: not for its trials, nor to see which bars its figures have."""
    many = {"response_bytes": list(range(1, 3000)), "send_buffer_bytes": list(range(5000, 7999)),
            "bandwidth_kbps": list(range(100, 299)), "rtt_ms": [20]}
    lists = "".join(f"{name} = {json.dumps(values)}\n" for name, values in many.items())
    figures = "".join(FIGURE.format(f"f{place}", kind, by) for place, (kind, by) in enumerate(
        (("improvement", "bandwidth_kbps"), ("map", "rtt_ms"), ("steps", "response_bytes"))))
    done = check(tmp_path, HEAD + SWEEP + lists + figures)
    assert done.returncode == 2, done.stderr
    assert done.stderr.endswith("3579612398 trials of "
                                f"{tmp_path}/own.toml are requested, at most 1000000 fit in one"
                                " run\n")


def test_lists_that_users_share_count_as_often_as_there_are_users() -> None:
    file = scenario_file.parsed("own", HEAD + f"""
[defaults]
client = "libcurl"
congestion_control = "cubic"
loss_percent = 0
repeat = 1
queue_packets = {json.dumps(list(range(1, 3000)))}
[users]
initcwnd = [10, 20]
baseline_initcwnd = 10
groups = [""]
group = {[0] * 1000}
times = {[1] * 1000}
rtt_ms = {list(range(1, 1001))}
bandwidth_kbps = {[100] * 1000}
response_bytes = {[100] * 1000}
""")
    with pytest.raises(UsageError, match="^5998000 trials are requested, at most 1000000"):
        registry.study_of(file)


def test_trials_of_one_schedule_share_its_words() -> None:
    """100,000 trials of a schedule of thousands of writes are no 100,000 copies of it."""
    study = registry.study_of(scenario_file.find("handley1999_warm"))
    trials = [trial for trial in study.trials if trial.trace == study.trials[0].trace]
    assert len(trials) > 2 and len({id(trial.paths) for trial in trials}) == 1
    assert len({id(trial.think_times) for trial in trials}) == len({
        trial.think_times for trial in trials})
