"""Links that nobody limited: a delay and no rate, the commonest script of a course."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.live.test_commands import Ended
from vtime.uml import find_kernel

pytestmark = pytest.mark.skipif(find_kernel("--mininet") is None,
                                reason="./install.sh --with-mininet")
# Two namespaces; each end delays what it sends, or only the client does.
TWO = """\
ip netns add a; ip netns add b
ip link add va netns a type veth peer name vb netns b
ip -n a addr add 10.0.0.1/24 dev va; ip -n b addr add 10.0.0.2/24 dev vb
ip -n a link set va up; ip -n b link set vb up
ip netns exec a tc qdisc add dev va root netem delay {delay} limit 100000
{second}ip netns exec b tc qdisc add dev vb root netem delay {delay} limit 100000
ip netns exec b iperf3 -s -D >/dev/null
sleep 1
ip netns exec a ping -c 3 -i 0.2 10.0.0.2 | grep 'time='
for each in $(seq {times}); do
    ip netns exec a iperf3 -t 2 -c 10.0.0.2 -J {flags} >report; cat report; echo ,
done
"""


def rates(ended: Ended) -> list[float]:
    """Mbit/s of each transfer that the script printed."""
    reports = json.loads("[" + ended.out[ended.out.index("{"):].rstrip().rstrip(",") + "]")
    return [round(report["end"]["sum_received"]["bits_per_second"] / 1e6, 1)
            for report in reports]


def test_six_transfers_over_a_delay_are_alike_and_the_same_in_another_folder(
        tmp_path: Path) -> None:
    """A stock kernel in real time has 386 to 477 Mbit/s; a window of 64 kB would carry 13."""
    script = TWO.format(delay="20ms", second="", times=6, flags="")
    ended = []
    for name in ("a", "another folder with a longer name"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "two.sh").write_text(script)
        ended.append(Ended(folder, "sh", "two.sh"))
    first, second = ended
    assert first.status == 0, first.err
    assert first.out.count("time=40.0 ms") == 2  # the first also waits for the address
    assert min(rates(first)) > 300 and max(rates(first)) < 1.05 * min(rates(first)), rates(first)
    assert rates(second) == rates(first)


@pytest.mark.parametrize("flags", ["", "-R"])
def test_a_delay_of_one_direction_carries_as_much(tmp_path: Path, flags: str) -> None:
    (tmp_path / "two.sh").write_text(TWO.format(delay="40ms", second="# ", times=2, flags=flags))
    ended = Ended(tmp_path, "sh", "two.sh")
    assert ended.status == 0 and min(rates(ended)) > 300, rates(ended)


def test_without_a_cost_the_packets_of_a_round_trip_arrive_at_one_moment(tmp_path: Path) -> None:
    """Why a packet costs something: the receive window does not grow."""
    (tmp_path / "two.sh").write_text(TWO.format(delay="20ms", second="", times=3, flags=""))
    ended = Ended(tmp_path, "sh", "two.sh", flags=("--packet-cost", "0"))
    assert ended.status == 0 and min(rates(ended)) < 30, rates(ended)
