"""./run.sh --repeat N -- COMMAND: several runs, and how far their numbers lie apart."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.live.conftest import PROJECT
from tests.live.test_commands import Ended
from vtime.uml import find_kernel

pytestmark = pytest.mark.skipif(find_kernel("--mininet") is None,
                                reason="./install.sh --with-mininet")
# A transfer that loses at random, and what Python draws by the seed.
SCRIPT = """\
ip netns add a; ip netns add b
ip link add name va netns a type veth peer name vb netns b
ip -n a addr add 10.0.0.1/24 dev va; ip -n b addr add 10.0.0.2/24 dev vb
ip -n a link set dev va up; ip -n b link set dev vb up
ip netns exec a tc qdisc add dev va root netem delay 10ms rate 10mbit loss 3%
ip netns exec b iperf3 -s -D >/dev/null
until ip netns exec b ss -Hltn | grep -q :5201; do sleep 0.1; done
ip netns exec a iperf3 -c 10.0.0.2 -n 500K -f k | grep receiver
date +%N >written
python3 -c 'print("drawn", hash("a word") % 1000, "of 1000")'
exit $STATUS
"""


def test_runs_differ_by_their_seeds_and_the_table_has_lines_and_connections(tmp_path: Path) -> None:
    (tmp_path / "lossy.sh").write_text(SCRIPT)
    ended = Ended(tmp_path, "sh", "lossy.sh", flags=(
        "--repeat", "4", "--jobs", "2", "--seed", "7", "--env", "STATUS=3"))
    assert ended.status == 3 and "run 1 (seed 7) ended with status 3; 4 of 4" in ended.err
    assert ended.out.startswith("4 runs, seeds 7 to 10\n")
    assert "drawn _ of 1000\n    median " in ended.out
    assert "a 10.0.0.1 → b 10.0.0.2:5201 (2): retransmitted segments\n" in ended.out
    stored = json.loads((ended.kept / "spread.json").read_text())
    assert stored["seeds"] == [7, 8, 9, 10] and stored["status"] == [3] * 4
    (drawn,) = (row for row in stored["lines"] if row["name"] == "drawn _ of 1000")
    assert len(set(drawn["each"])) > 1
    (goodput,) = (row for row in stored["connections"] if row["name"].endswith("goodput"))
    assert goodput["unit"] == "Mbit/s" and all(0.5 < rate < 10 for rate in goodput["each"])
    runs = sorted(ended.kept.glob("run_*"))
    assert [run.name for run in runs] == ["run_1", "run_2", "run_3", "run_4"]
    for run, number in zip(runs, drawn["each"]):
        assert f"out drawn {number:.0f} of 1000" in (run / "output.txt").read_text()
        assert (run / "files" / "written").exists() and not (run / "capture.pcapng").exists()
        assert json.loads((run / "command.json").read_text())["seed"] == 7 + runs.index(run)


def test_the_same_repeats_give_the_same_table(tmp_path: Path) -> None:
    (tmp_path / "lossy.sh").write_text(SCRIPT)
    flags = ("--repeat", "2", "--env", "STATUS=0")
    first, second = (Ended(tmp_path, "sh", "lossy.sh", flags=flags) for _ in range(2))
    assert first.status == 0 and first.out == second.out


def test_ctrl_c_keeps_the_runs_that_have_ended(tmp_path: Path) -> None:
    """It comes as soon as a run has ended; there are far too many to have all ended by then."""
    with subprocess.Popen(
            [str(PROJECT / "run.sh"), "--results", str(tmp_path / "results"), "--repeat", "500",
             "--jobs", "2", "--", "sh", "-c", "sleep 1; echo number $(date +%N)"],
            cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True) as running:
        assert running.stderr is not None and running.stdout is not None
        ended = 0
        while ended < 2:  # whichever ends first
            told = running.stderr.readline()
            assert told, "it ended before"
            ended += " of 500: seed " in told
        running.send_signal(signal.SIGINT)
        out, err = running.communicate()
    assert running.returncode == 130 and "of 500 runs had ended" in err
    (kept,) = (tmp_path / "results" / "commands").iterdir()
    stored = json.loads((kept / "spread.json").read_text())
    assert 2 <= stored["runs"] < 500 and stored["requested"] == 500
    assert out.startswith(f"{stored['runs']} runs, seeds {stored['seeds'][0]} to ")
    assert not [*kept.glob("run_*/.guest")]
