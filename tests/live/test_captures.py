"""./run.sh --capture: what a command's network really did, by every packet of every link."""

from __future__ import annotations

import csv
import shutil
import struct
from collections import Counter
from pathlib import Path

import pytest

from firstflight.base import errors
from firstflight.base.errors import FirstFlightError, UsageError
from firstflight.commands.virtual import captured
from firstflight.net.headers import IPV4
from tests.live.conftest import PROJECT
from tests.live.test_commands import Ended
from vtime.uml import find_kernel
from firstflight.wire.capture import pcapng
from firstflight.wire.capture.fields import read_headers
from firstflight.wire.capture.direction import LinkDirection
from firstflight.wire.capture.links import observe_links
from firstflight.wire.capture.spaces import NamespaceNames

pytestmark = pytest.mark.skipif(find_kernel("--mininet") is None,
                                reason="./install.sh --with-mininet")
SMALL = PROJECT / "tests" / "golden" / "capture" / "small.py"


def read(folder: Path) -> list[LinkDirection]:
    """The links of a kept capture."""
    capture = pcapng.read(folder / pcapng.NAME)
    return observe_links(capture, read_headers(capture), NamespaceNames())


def test_a_capture_says_what_was_set_and_what_was_not_applied(tmp_path: Path) -> None:
    shutil.copy(SMALL, tmp_path)
    plain = Ended(tmp_path, "python3", "small.py")
    first, second = (Ended(tmp_path, "python3", "small.py", flags=("--capture",))
                     for _ in range(2))
    assert first.status == 0, first.err
    # Nothing in the guest sees that it is captured, and the same packets come at the same ns.
    assert plain.out == first.out == second.out
    assert plain.facts()["virtual_s"] == first.facts()["virtual_s"]
    assert (first.kept / pcapng.NAME).read_bytes() == (second.kept / pcapng.NAME).read_bytes()
    assert "1 of 6 directions of links did not do what was set" in first.err
    assert "netem delay 50 ms limit 1000 packets: never used" in first.err
    found = {link.sender: link for link in read(first.kept)}
    assert [name for name, link in found.items() if link.wrong] == ["h3-eth0"]
    assert all(link.judged for link in found.values() if not link.wrong)
    with (first.kept / "connections.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["initial_window_segments_to_client"] for row in rows] == ["10", "10", ""]
    page = (first.kept / "report.html").read_text()
    assert '<ul class="alert">' in page and "data:image" not in page
    assert captured.run(["--report", str(first.kept)]) == errors.OK
    assert (first.kept / "report.html").read_text() == page
    (first.kept / pcapng.NAME).write_bytes(b"something else")
    with pytest.raises(FirstFlightError, match="not written by"):
        captured.run(["--report", str(first.kept)])
    with pytest.raises(UsageError, match="--capture"):
        captured.run(["--report", str(tmp_path)])


def test_it_has_the_packets_that_tcpdump_sees_at_the_same_nanosecond(tmp_path: Path) -> None:
    (tmp_path / "two.sh").write_text(
        "ip link add a-eth0 type veth peer name b-eth0; ip netns add b\n"
        "ip link set b-eth0 netns b; ip addr add 10.0.0.1/24 dev a-eth0; ip link set a-eth0 up\n"
        "ip -n b addr add 10.0.0.2/24 dev b-eth0; ip -n b link set b-eth0 up\n"
        "tc qdisc add dev a-eth0 root netem delay 7ms rate 1mbit\n"
        "tc class add dev a-eth0 parent 1: classid 1:1 htb rate 1mbit 2>/dev/null\n"
        "tcpdump -Z root -U -Q out --time-stamp-precision nano -i a-eth0 -s 128 -w seen.pcap 2>/dev/null &\n"
        "sleep 1; ping -c 5 -i 0.2 -s 1000 10.0.0.2; sleep 1; kill %1; wait\n")
    ended = Ended(tmp_path, "bash", "two.sh", flags=("--capture",))
    assert "5 received" in ended.out, ended.err
    assert "the kernel refused htb: No such file or directory" in ended.err
    capture = pcapng.read(ended.kept / pcapng.NAME)
    chosen = capture.packets.at((capture.packets.device == 0) & (read_headers(capture).kind == IPV4))
    ours = Counter(zip(chosen.time_ns.tolist(), chosen.frame_bytes.tolist()))
    dumped = (ended.kept / "files" / "seen.pcap").read_bytes()
    theirs, place = Counter[tuple[int, int]](), 24
    while place < len(dumped):
        seconds, nanoseconds, kept, size = struct.unpack_from("<4I", dumped, place)
        if dumped[place + 28:place + 30] == b"\x08\x00":
            theirs[seconds * 1_000_000_000 + nanoseconds, size] += 1
        place += 16 + kept
    assert ours == theirs and sum(ours.values()) == 5


def test_a_setting_that_is_replaced_is_judged_by_what_it_did_and_a_full_capture_says_so(tmp_path: Path) -> None:
    (tmp_path / "changes.sh").write_text(
        "ip link add a-eth0 type veth peer name b-eth0; ip netns add b\n"
        "ip link set b-eth0 netns b; ip addr add 10.0.0.1/24 dev a-eth0; ip link set a-eth0 up\n"
        "ip -n b addr add 10.0.0.2/24 dev b-eth0; ip -n b link set b-eth0 up\n"
        "tc qdisc add dev a-eth0 root netem delay 7ms rate 1mbit\n"
        "tc -n b qdisc add dev b-eth0 root handle 1: htb\n"
        "tc -n b class add dev b-eth0 parent 1: classid 1:1 htb rate 1mbit\n"
        "sleep 1; ping -c 5 -i 0.2 10.0.0.2\n"
        "tc qdisc replace dev a-eth0 root netem delay 30ms; tc -n b qdisc del dev b-eth0 root\n"
        "sleep 1; ping -c 5 -i 0.2 10.0.0.2\n")
    full = Ended(tmp_path, "bash", "changes.sh", flags=("--capture", "2k"))
    assert "the capture was full" in full.err
    ended = Ended(tmp_path, "bash", "changes.sh", flags=("--capture",))
    assert "time=7" in ended.out and "time=30" in ended.out, ended.err
    found = {link.sender: link for link in read(ended.kept)}
    assert found["a-eth0"].wrong == [] and len(found["a-eth0"].settings) > 1
    (wrong,) = found["b-eth0"].wrong
    assert wrong.startswith("htb 1 Mbit/s") and "never used" in wrong


def test_who_spins_delays_no_packet(tmp_path: Path) -> None:
    (tmp_path / "spins.py").write_text(
        "import select, time\nend = time.monotonic() + 0.6\n"
        "while time.monotonic() < end:\n    select.select([], [], [], 0)\n")
    (tmp_path / "two.sh").write_text(
        "ip netns add b; ip link add a-eth0 type veth peer name b-eth0 netns b\n"
        "ip addr add 10.0.0.1/24 dev a-eth0; ip link set a-eth0 up\n"
        "ip -n b addr add 10.0.0.2/24 dev b-eth0; ip -n b link set b-eth0 up\n"
        "tc qdisc add dev a-eth0 root netem delay 7ms rate 1mbit; sleep 3\n"
        "python3 spins.py & ping -c 10 -i 0.04 -s 600 10.0.0.2; wait\n")
    ended = Ended(tmp_path, "bash", "two.sh", flags=("--capture",))
    assert "10 received" in ended.out and "python3 spins" in ended.err
    assert "All 2 directions of links did what was set" in ended.err, ended.err
