"""What the report says of typical mistakes: each on packets that are made by hand."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import numpy
import pytest

from firstflight.commands.virtual import script
from firstflight.commands.virtual.ignored import ignored
from firstflight.wire.capture.commands import lines_about_commands
from firstflight.wire.capture.drops import drop_statements
from firstflight.wire.capture.pcapng import Capture, Command, Complaint, NoCapture
from firstflight.wire.capture.qdiscs import DeviceSetting, Qdisc, parse_setting
from firstflight.wire.capture.spaces import NamespaceNames
from tests.unit.capture.test_capture import content, own_block, small
from tests.unit.capture.test_said import (HANDSHAKE, MS, QUEUE_DROP, ROOT, Packet, found, made,
                                          message, netem, of, seen)


def burst(count: int, begin_ms: float = 30, apart_ms: float = 1.0, size: int = 1400,
          took_ms: float = 50.0, reason: int = 0) -> list[Packet]:
    """Data from h1 to h2."""
    return [Packet(0, begin_ms + apart_ms * number, 1 + size * number, size, took_ms=took_ms,
                   reason=reason) for number in range(count)]


def alarms(capture: Capture, **facts: object) -> str:
    return "; ".join(of(capture, **facts).report.alarms)


# C5: what a delay and a limit carry -----------------------------------------------------

@pytest.mark.parametrize(("limit", "rate_kbps", "said"), [
    (25, 10_000.0, "this link cannot carry its rate: 25 packets at 50 ms are 500 packets a second,"
                   " 6.056 Mbit/s"),
    (25, 4000.0, ""), (25, float("inf"), "its delay and its limit carry no more: 25 packets at 50"
                                         " ms are 500 packets a second"), (1000, 10_000.0, "")])
def test_a_delay_that_fills_netems_limit_is_told(limit: int, rate_kbps: float, said: str) -> None:
    full = replace(netem(delay_ms=50.0, rate_kbps=rate_kbps), limit_packets=limit)
    dropped = burst(3, 60, took_ms=0, reason=QUEUE_DROP)
    (link, *_) = found(made([*burst(30), *dropped], settings=[full]))
    told = [wrong for wrong in link.wrong if "packets a second" in wrong]
    assert [wrong[:len(said)] for wrong in told] == ([said] if said else [])
    assert not said or "3 were dropped" in told[0]
    calm, *_ = found(made(burst(30), settings=[full]))
    assert not any("packets a second" in wrong for wrong in calm.wrong)
    if limit == 25 and rate_kbps == 4000.0:  # 16 of the 25 are on their way: as set, but told
        assert "of the 25 packets that its queue holds, 17 are on their way" in link.remarks[0]


# C6: what was replaced ------------------------------------------------------------------

def test_a_queue_that_the_next_command_replaced_is_told_with_that_command() -> None:
    def with_next(later: Qdisc, at_ms: float, command: str = "") -> list[str]:
        capture = made([*HANDSHAKE, *burst(60, 100, took_ms=12)], settings=[netem(delay_ms=10.0)])
        capture.devices[0].settings.append(
            DeviceSetting(round(at_ms * MS), (later,), command=command))
        link = found(capture)[0]
        return [words for words in link.wrong if "it was set" in words]
    tbf = Qdisc("tbf", False, 2 << 16, ROOT, packets=60, rate_kbps=1e6, burst_bytes=9000)
    (wrong,) = with_next(tbf, 50, "tc qdisc add dev h1-eth0 root tbf rate 1gbit")
    assert wrong == ("netem delay 10 ms limit 1000 packets: replaced by tbf 1 Gbit/s 0.05 s after it"
                     " was set (tc qdisc add dev h1-eth0 root tbf rate 1gbit); 2 packets came under"
                     " it, 60 later")
    assert not with_next(tbf, 159)  # most came under it: it did what it was for
    # Another delay in its place is a change, and so is a queue below it.
    other = netem(delay_ms=11.0)
    assert not with_next(replace(other, handle=7 << 16), 50) and not with_next(other, 50)


def test_settings_know_the_command_that_made_them(tmp_path: Path) -> None:
    def asked(words: bytes) -> bytes:
        return own_block(6, 0, struct.pack("<HH", 1, len(words)) + words + bytes(-len(words) % 4 + 4))
    queues = message("netem", 1 << 16, ROOT)
    settings = own_block(2, 0, struct.pack("<I", len(queues)) + queues)
    capture = small(tmp_path, content() + asked(b"tc qdisc add") + settings + settings)
    assert [setting.command for setting in capture.devices[0].settings[-2:]] == ["tc qdisc add", ""]
    refusal = own_block(5, 0, struct.pack("<I", 17) + bytes(4))
    refused = small(tmp_path, content() + asked(b"tc x") + refusal + settings).devices[0]
    assert refused.refused == ["the kernel refused a qdisc: File exists (tc x)"]
    assert refused.settings[-1].command == ""


# C7: random losses and a full queue -----------------------------------------------------

def test_losses_of_what_a_full_queue_dropped_afterwards_are_no_false_alarm() -> None:
    lossy = replace(netem(loss_percent=2.0, rate_kbps=10_000.0), limit_packets=25, packets=999)
    came = burst(1000, apart_ms=1.0, took_ms=5)
    lost = burst(60, 30.5, apart_ms=16.0, took_ms=0, reason=3)
    full = burst(2000, 30.7, apart_ms=0.4, took_ms=0, reason=QUEUE_DROP)
    (link, *_) = found(made([*came, *lost, *full], settings=[lossy]))
    assert not any("lost at random" in wrong for wrong in link.wrong)
    (link, *_) = found(made([*came, *lost], settings=[lossy]))
    assert any("lost at random" in wrong for wrong in link.wrong)


# Bursts, and order -----------------------------------------------------------------------

def tbf(burst_bytes: int, rate_kbps: float = 1000.0) -> Qdisc:
    return Qdisc("tbf", False, 1 << 16, ROOT, packets=99, rate_kbps=rate_kbps,
                 burst_bytes=burst_bytes, limit_bytes=100_000)


def test_a_burst_below_one_packet_is_told() -> None:
    small_ones = [Packet(0, 5 + number, 1, 100, took_ms=2) for number in range(5)]
    large = burst(7, took_ms=0, reason=QUEUE_DROP)
    (link, *_) = found(made([*small_ones, *large], settings=[tbf(1000)]))
    assert any("its burst of 1000 bytes is below one packet, and all 7 larger ones were dropped"
               in wrong for wrong in link.wrong)
    (link, *_) = found(made([*small_ones, *large, *burst(1, 90)], settings=[tbf(1600)]))
    assert not any("below one packet" in wrong for wrong in link.wrong)


def test_a_burst_that_hides_the_rate_is_told() -> None:
    at_once = burst(60, apart_ms=0.01, took_ms=1)
    (link, *_) = found(made(at_once, settings=[tbf(1_000_000)]))
    assert any("1000000 bytes pass at once (burst), and 87240 were sent in all" in wrong
               for wrong in link.wrong)
    slow = burst(60, apart_ms=20, took_ms=1)  # below the rate: nothing is hidden
    for packets, size in ((slow, 1_000_000), (at_once, 15_000)):
        (link, *_) = found(made(packets, settings=[tbf(size)]))
        assert not any("at once" in wrong for wrong in link.wrong)


def test_packets_that_overtake_others_are_told_where_nobody_set_that() -> None:
    jitter = netem(delay_ms=10.0, jitter_ms=5.0)
    crossed = [packet._replace(took_ms=15.0 if number % 2 else 9.0)
               for number, packet in enumerate(burst(20))]
    (link, *_) = found(made(crossed, settings=[jitter]))
    assert not link.wrong and "packets left out of order, since a delay of 10 ± 5 ms" in link.advice[0]
    assert "left out of order" in alarms(made(crossed, settings=[jitter]))
    on_purpose = replace(jitter, also=("reorder 25 %",))
    for packets, setting in ((burst(20, took_ms=10), jitter), (crossed, on_purpose)):
        assert not found(made(packets, settings=[setting]))[0].advice


# C8: commands --------------------------------------------------------------------------

def with_commands(*commands: tuple[str, int, bool], complaints: tuple[str, ...] = (),
                  program: str = "tc", **flight: int) -> Capture:
    """A connection from h1 to h2 whose flights are of some segments, and commands before."""
    data = burst(flight.get("segments", 10), 30, apart_ms=0.01, size=1448, took_ms=10)
    end = 1 + 1448 * len(data)
    acks = [Packet(1, 60, 1, 0, ack=end), Packet(0, 70, end, 1448), Packet(1, 85, 1, 0, ack=end + 1448)]
    opening = [packet._replace(queued_ms=packet.queued_ms + 1) for packet in HANDSHAKE]
    capture = made([*opening, *data, *acks])
    capture.commands = [Command(5 + number, 0, is_root, number, status, words)
                        for number, (words, status, is_root) in enumerate(commands)]
    capture.complaints = [Complaint(5, 0, False, 0 if program == "tc" else 99, text, program)
                          for text in complaints]
    return capture


@pytest.mark.parametrize(("capture", "said"), [
    (with_commands(("tc qdisc add dev h9-eth0 root netem delay 5ms", 1, False),
                   complaints=('Cannot find device "h9-eth0"\n',)),
     'failed in h1: tc qdisc add dev h9-eth0 root netem delay 5ms: Cannot find device "h9-eth0"'),
    (with_commands(("ip route add default via 10.9.9.9", 2, True)),
     "failed in the root namespace: ip route add default via 10.9.9.9: status 2"),
    (with_commands(("tc qdisc del dev h9-eth0 root", 2, False)), ""),
    (with_commands(("tc qdisc add dev h1-eth0 root netem", 0, False)), ""),
    (with_commands(complaints=("bash: iptables: command not found\n",), program="bash"),
     "bash in h1: bash: iptables: command not found"),
    (with_commands(complaints=("*** Error: Bandwidth limit 2000.0 is outside supported range"
                               " 0..1000 - ignoring",), program="python3"),
     "python3 in h1: Bandwidth limit 2000.0 is outside supported range 0..1000 - ignoring"),
    (with_commands(("sysctl -w net.ipv4.tcp_congestion_control=bbr", 0, True)),
     "sysctl -w net.ipv4.tcp_congestion_control=bbr ran in the root namespace, and the hosts"),
    (with_commands(("sysctl -w net.ipv4.tcp_sack=0", 0, True),
                   ("sysctl -w net.ipv4.tcp_sack=0", 0, False)), ""),
    (with_commands(("sysctl net.ipv4.tcp_sack", 0, True)), ""),
    (with_commands(("sysctl -w net.core.rmem_max=9", 0, True)), ""),
    (with_commands(("ip route change 10.0.0.0/8 dev h1-eth0 initcwnd 20", 0, False)),
     "set an initial window of 20 in h1, and its first flights have 10 segments"),
    (with_commands(("ip route change 10.0.0.0/8 dev h1-eth0 initcwnd 20", 0, False), segments=20), ""),
    (with_commands(("ip route change default via 10.0.0.9 initcwnd 20", 0, True), segments=20),
     "ran in the root namespace, and the hosts have routes of their own")])
def test_commands_that_failed_or_acted_elsewhere_are_told(capture: Capture, said: str) -> None:
    told = "; ".join(lines_about_commands(capture, NamespaceNames(), seen(capture)))
    assert said in told if said else not told
    assert told in alarms(capture)


def test_rates_in_bytes_a_second_and_queues_of_the_loopback_are_told() -> None:
    capture = made(HANDSHAKE, settings=[netem(rate_kbps=80_000.0)])
    for command, said in (("tc qdisc add dev x root netem rate 10mbps", True),
                          ("tc qdisc add dev x root netem rate 10mbit", False)):
        capture.devices[0].settings = [replace(capture.devices[0].settings[0], command=command)]
        assert (found(capture)[0].advice == [
            "rate 10mbps: bps are bytes a second for tc, which set 80 Mbit/s; did you mean 10mbit?"
        ]) == said
    told = lines_about_commands(with_commands(("tc qdisc add dev lo root netem delay 5ms", 0, False)),
                                NamespaceNames(), [])
    assert "the loopback device of h1 has only packets of the host to itself" in told[0]
    assert not lines_about_commands(with_commands(("tc qdisc show dev lo", 0, False)), NamespaceNames(), [])


def test_commands_are_read_from_a_capture_and_damaged_ones_refused(tmp_path: Path) -> None:
    words = struct.pack("<HH", 1, 6) + b"tc add\0\0"
    ended = own_block(7, 5, struct.pack("<III", 1, 77, 2 << 8) + words + bytes(4))
    wrote = own_block(8, 5, struct.pack("<II", 0, 77) + words
                      + struct.pack("<HH", 2, 2) + b"tc\0\0" + bytes(4))
    capture = small(tmp_path, content() + ended + wrote)
    assert capture.commands[0][1:] == (5, True, 77, 2, "tc add")
    assert capture.complaints[0][1:] == (5, False, 77, "tc add", "tc")
    killed = own_block(7, 5, struct.pack("<III", 1, 77, 9) + bytes(4))
    assert small(tmp_path, content() + killed).commands[0].status == 137
    with pytest.raises(NoCapture, match="damaged"):
        small(tmp_path, content() + own_block(7, 5, b"\0\0\0\0"))


def test_what_mininet_ignores_of_links_is_read_from_the_script() -> None:
    text = ("o = dict(bandwidth=10, weight=3)\nself.addLink(a, b, **o)\n"
            "net.addLink(a, b, cls=Link, bw=10)\nnet.addLink(a, b, bw=2000)\n"
            "net.addLink(a, b, dealy='5ms', latency_ms=3)\nnet.addLink(a, b, cls=TCLink, bw=9)\n")
    assert ignored(["python3", "x"], text) == [
        "line 2, addLink: Mininet does not know bandwidth, and ignores it: write bw",
        "line 3, addLink: cls=Link ignores bw: write cls=TCLink",
        "line 4, addLink: bw=2000: Mininet takes at most 1000 Mbit/s, and sets no rate for more",
        "line 5, addLink: Mininet does not know dealy, and ignores it: write delay"]
    assert ignored(["mn", "--link", "tc,bw=2000"], "") == [
        "--link tc,bw=2000: bw=2000: Mininet takes at most 1000 Mbit/s, and sets no rate for more"]
    assert not ignored(["bash", "x"], "addLink(")
    assert "line 3, addLink" in alarms(made(HANDSHAKE), hints=ignored([], text))


def test_a_program_that_is_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("r.cmd('iptables -t nat -A POSTROUTING -j MASQUERADE')\n# wget it")
    words = ["python3", str(tmp_path / "a.py")]
    assert script.advice(words, lambda name: None) == [
        "iptables: used and not installed on this machine, whose programs the guest has"]
    assert not script.advice(words, lambda name: f"/usr/sbin/{name}")


# C10, C11: drops of other kinds ----------------------------------------------------------

def test_what_policing_drops_on_arrival_is_a_cause_of_retransmissions() -> None:
    first, again = burst(4, took_ms=10), burst(4, 400, took_ms=10)
    capture = made([*HANDSHAKE, *first, *again])
    assert set(seen(capture)[0].retransmitted) == {
        "the first copy had arrived", "the first copy had arrived, after a timeout"}
    capture.dropped = [(1, "TC_INGRESS", 3)]
    assert seen(capture)[0].retransmitted == {
        "dropped on arrival at h2-eth0 (TC_INGRESS), after a timeout": 1,
        "dropped on arrival at h2-eth0 (TC_INGRESS)": 2, "the first copy had arrived": 1}
    assert "policing or a filter at its ingress dropped it" in drop_statements(
        capture, found(capture), NamespaceNames())[0].found
    assert ("3 were dropped on arrival at h2-eth0: policing or a filter at its ingress dropped it"
            " (TC_INGRESS).") in of(capture).report.answer.sentence


def test_red_is_named_with_what_it_is_set_to() -> None:
    parameters = struct.pack("=HH3I4B", 20, 1, 60_000, 15_000, 45_000, 0, 0, 0, 1)
    red = parse_setting(0, message("red", 1 << 16, ROOT, options=parameters))
    assert red.words == "red min 15000 max 45000 bytes ecn limit 60000 bytes" and red.is_shaping


def test_datagrams_that_their_own_hosts_queue_drops_are_not_tcps() -> None:
    def said(protocol: int) -> str:
        capture = made(burst(5, took_ms=0, reason=QUEUE_DROP), settings=[netem(rate_kbps=1000.0)])
        data = bytearray(capture.data.tobytes())
        for place in capture.packets.place.tolist():
            data[place + 23] = protocol
        capture.data = numpy.frombuffer(bytes(data), numpy.uint8)
        return drop_statements(capture, found(capture), NamespaceNames())[0].found
    assert "whose TCP learns of it" in said(6)
    assert "whose program does not notice" in said(17) and "TCP" not in said(17)


# C13, C15 --------------------------------------------------------------------------------

def test_packets_that_an_end_dropped_while_it_was_down_are_told() -> None:
    lost = [Packet(0, 100 + number, 1, 0, took_ms=0, reason=3) for number in range(3)]
    capture = made([*HANDSHAKE, *lost])
    up = capture.devices[1].states[0]
    assert not any("was down" in wrong for wrong in found(capture)[0].wrong)
    capture.devices[1].states += [up._replace(time_ns=50 * MS, is_up=False),
                                  up._replace(time_ns=102 * MS)]
    assert "2 packets were dropped while h2-eth0 was down" in found(capture)[0].wrong
    # Their queue had no part in it.
    at_once = [packet._replace(took_ms=0, queued_ms=packet.queued_ms + 1) for packet in HANDSHAKE]
    capture = made([*at_once, *lost[:2]])
    capture.devices[1].states.append(up._replace(time_ns=50 * MS, is_up=False))
    assert found(capture)[0].wrong == ["2 packets were dropped while h2-eth0 was down"]


def test_pings_without_an_answer_stand_in_the_first_sentence() -> None:
    def icmp(kind: int, device: int, at_ms: float, number: int) -> Packet:
        return Packet(device, at_ms, number, 0, took_ms=1.0)
    pings = [icmp(8, 0, 10 * number, number) for number in range(4)]
    answers = [icmp(0, 1, 10 * number + 2, number) for number in range(3)]
    capture = made([*pings, *answers])
    data = bytearray(capture.data.tobytes())
    for place, device, at_ns in zip(capture.packets.place.tolist(), capture.packets.device.tolist(),
                                    capture.packets.queued_ns.tolist()):
        data[place + 23] = 1
        data[place + 34:place + 42] = struct.pack(
            ">BBHHH", 8 if device == 0 else 0, 0, 0, 7, at_ns // (10 * MS))
    capture.data = numpy.frombuffer(bytes(data), numpy.uint8)
    sentence = of(capture).report.answer.sentence
    assert "Pings took 3" in sentence and "1 of 4 pings were not answered." in sentence


def test_a_delay_whose_unit_the_command_wrote_is_not_asked_about(tmp_path: Path) -> None:
    def asked(command: str) -> str:
        capture = made([packet._replace(took_ms=0.0999968) for packet in HANDSHAKE],
                       settings=[netem(delay_ms=0.0999968)])
        capture.devices[0].settings = [replace(capture.devices[0].settings[0], command=command)]
        return alarms(capture)
    assert "did you mean 100 ms?" in asked("") and "did you mean" in asked("tc … netem delay 100")
    assert not asked("tc qdisc add dev h1-eth0 parent 5:1 handle 10: netem delay 0.1ms")
    (tmp_path / "a.py").write_text("net.addLink(h1, h2, delay='0.1ms')")
    assert "microseconds" in script.hints(["python3", str(tmp_path / "a.py")])
