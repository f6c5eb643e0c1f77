"""How captures of commands are read, and how much of a large one is followed.

The words of reports are in tests/golden/captures.py.
"""

from __future__ import annotations

import errno
import json
import os
import random
import re
import signal
import struct
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy
import pytest

from firstflight.base.errors import OK, FirstFlightError
from firstflight.commands.virtual import captured, script
from firstflight.net.headers import TCP, UDP
from firstflight.net.link import Link
from firstflight.net.netlink import attribute
from firstflight.wire.capture import conversations, links, pcapng
from firstflight.wire.capture.calls import read_calls
from firstflight.wire.capture.fields import FRAGMENT, read_headers
from firstflight.wire.capture.ignored import lines_about_links
from firstflight.wire.capture.links import _effective_settings
from firstflight.wire.capture.misplaced import _since_ns
from firstflight.wire.capture.pcapng import (Capture, Command, Complaint, Device, DeviceState,
                                             NoCapture, Opened, _without_cut, packets_of)
from firstflight.wire.capture.qdiscs import DeviceSetting, Qdisc, format_rate, parse_setting
from firstflight.wire.capture.spaces import NamespaceNames
from tests.builders.captures import (DELAY, HANDSHAKE, QUEUE_DROP, ROOT, SYN, TAKEN_DOWN, Packet,
                                     build_capture, build_with_commands, find_links, make_report,
                                     message, netem, observe_tcp, own_block, read_small,
                                     small_bytes)


def test_a_replaced_queue_has_its_last_counters() -> None:
    def delay(time_ns: int, ms: float, packets: int) -> DeviceSetting:
        """A setting with one netem, which has counted this many packets."""
        return DeviceSetting(time_ns,
                             (Qdisc("netem", False, 1 << 16, 0, delay_ms=ms, packets=packets),))
    times = [5, 6, 11]
    packets = packets_of(time_ns=times, queued_ns=times, number=times, accepted=[True] * 3)
    first, second = _effective_settings(
        [delay(0, 7, 0), delay(10, 7, 2), delay(10, 30, 0), delay(20, 30, 1)], packets)
    assert (first.time_ns, first.queues[0].packets) == (0, 2)
    assert (second.time_ns, second.queues[0].packets, second.delay_ms) == (10, 1, 30)
    # Open vSwitch replaces its classes by equal ones, which count from 0 on.
    (equal,) = _effective_settings([delay(0, 7, 60), delay(10, 7, 0)], packets)
    assert equal.queues[0].packets == 60


def test_the_removed_flag_for_the_packets_of_a_connection_is_refused_with_what_shows_them(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / pcapng.NAME).write_bytes(small_bytes())
    with pytest.raises(SystemExit):
        captured.run(["--report", str(tmp_path), "--connection", "3"])
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "open capture.pcapng in Wireshark" in err


# Damaged files --------------------------------------------------------------------------

# Blocks that the guest's kernel writes have a number: 2 a setting, 5 a refused one, 6 the words of
# the command that requested it, 7 a command that ended, 8 its output, 9 a connection that opened.
_SETTING, _REFUSED, _REQUEST, _ENDED, _OUTPUT, _OPENED = 2, 5, 6, 7, 8, 9
_IN_ROOT, _IN_HOST = 1, 0  # whether a process ran in the namespace of the command
# A command that ended: in the root namespace, process 77, with exit status 2 (as waitpid has it).
_FAILED = struct.pack("<III", _IN_ROOT, 77, 2 << 8)

def test_a_damaged_capture_is_read_or_refused_in_one_line() -> None:
    draw, whole, refused = random.Random(27), small_bytes(), 0
    for _ in range(25):
        data = bytearray(whole)
        for _ in range(draw.choice((1, 4, 40))):
            data[draw.randrange(len(data))] = draw.randrange(256)
        end = draw.choice((len(data), draw.randrange(len(data))))
        try:
            make_report(read_small(bytes(data[:end])))
        except FirstFlightError as error:
            refused += 1
            assert "\n" not in str(error)
    assert refused > 5


@pytest.mark.parametrize("data", [
    b"", b"no capture at all", struct.pack("<II", 0x0A0D0D0A, 0xFFFFFFF0) + bytes(9),
    small_bytes() + own_block(_ENDED, 5, b"\0\0\0\0")])
def test_a_file_that_is_no_capture_of_a_command_is_refused(data: bytes) -> None:
    with pytest.raises(NoCapture, match="not written by ./run.sh --capture"):
        read_small(data)


# Rates, headers, settings, and offloaded packets ----------------------------------------

@pytest.mark.parametrize(("kbps", "words"), [(5e6, "5 Gbit/s"), (1500, "1.5 Mbit/s"),
                                             (64, "64 kbit/s")])
def test_a_rate_is_written_in_its_unit(kbps: float, words: str) -> None:
    assert format_rate(kbps) == words


def test_headers_are_read_after_vlan_tags_and_extensions_and_in_fragments() -> None:
    tcp = struct.pack(">HHIIHHHH", 1234, 80, 7, 9, 5 << 12 | 2, 100, 0, 0)
    hop = bytes((6, 0)) + bytes(6)
    ipv6 = struct.pack(">IHBB", 6 << 28, len(hop + tcp) + 3, 0, 64) + bytes(15) + b"\1" + \
        bytes(15) + b"\2"
    found = read_headers(capture_of(
        bytes(12) + b"\x81\x00\x00\x07\x86\xdd" + ipv6 + hop + tcp,
        bytes(12) + b"\x08\x00" + bytes((0x45, 0, 0, 60, 0, 1, 0x20, 0)) + bytes(60)))
    assert [found.addresses[code] for code in (found.source[0], found.destination[0])] == [
        "::1", "::2"]
    assert (found.to_port[0], found.payload_bytes[0], found.u32(found.body + 4)[0]) == (80, 3, 7)
    assert found.is_tagged.tolist() == [True, False] and found.protocol[1] == FRAGMENT


def capture_of(*heads: bytes, frame_bytes: int = 100, segments: int = 0) -> Capture:
    """A capture of packets of which these first bytes are kept.

    frame_bytes: of each packet. segments: into which each offloaded packet is cut.
    """
    sizes, count = [len(head) for head in heads], len(heads)
    packets = packets_of(place=[sum(sizes[:place]) for place in range(count)], kept=sizes,
                         frame_bytes=[frame_bytes] * count, segments=[segments] * count,
                         number=[*range(1, count + 1)])
    return Capture([Device(0, "a-eth0")], packets,
                   numpy.frombuffer(b"".join(heads), numpy.uint8))


def test_settings_of_a_cut_message_are_refused() -> None:
    whole = read_small().devices[0].settings[-1]
    assert not whole.is_same(replace(whole, queues=whole.queues[:1]))
    with pytest.raises((ValueError, struct.error)):
        # The header of a message of 80 bytes, RTM_NEWQDISC (36). Only 20 bytes follow.
        parse_setting(0, struct.pack("=IHHII", 80, 36, 0, 0, 0) + bytes(20))


UP = DeviceState(0, "a-eth0", "veth", namespace=0, is_root=False, peer=0, mtu=1500, is_up=True)


@pytest.mark.parametrize(("version", "protocol", "header_bytes"), [(4, TCP, 54), (6, UDP, 62)])
def test_each_segment_of_an_offloaded_packet_has_headers_of_its_own(
        version: int, protocol: int, header_bytes: int) -> None:
    transport = struct.pack(">HHIIHHHH", 1, 2, 3, 4, 5 << 12, 6, 0, 0) if protocol == TCP else \
        struct.pack(">HHHH", 1, 2, 3008, 0)
    size = len(transport) + 3000
    ip = struct.pack(">BBHIBB10x", 0x45, 0, size + 20, 0, 64, protocol) if version == 4 else \
        struct.pack(">IHBB32x", 6 << 28, size, protocol, 64)
    head = bytes(12) + (b"\x08\x00" if version == 4 else b"\x86\xdd") + ip + transport
    capture = capture_of(head, frame_bytes=header_bytes + 3000, segments=3)
    capture.devices[0].states.append(UP)
    (link,) = find_links(capture)
    assert link.wire_bytes.tolist() == [3000 + 3 * header_bytes]


# Connections ------------------------------------------------------------------

def test_a_packet_that_a_queue_cuts_into_segments_is_replaced_by_them() -> None:
    # The first row is the packet that was cut. The next two are its segments: one left, and one was
    # dropped. The last packet could be cut as well, but no segment has its number.
    rows = packets_of(number=[7, 7, 7, 8], reason=[TAKEN_DOWN, 0, QUEUE_DROP, TAKEN_DOWN],
                      segments=[2, 0, 0, 2], accepted=[0, 0, 0, 0])
    remaining = _without_cut(rows)
    assert remaining.number.tolist() == [7, 7, 8]
    assert remaining.accepted.tolist() == [True, False, False]


def test_forty_thousand_drops_are_explained_within_seconds() -> None:
    lost = [Packet(device=0, queued_ms=30 + place * 0.02, seq=1 + 100 * place, size=100, took_ms=0,
                   reason=QUEUE_DROP) for place in range(40_000)]
    retransmitted = [packet._replace(queued_ms=packet.queued_ms + 2000, reason=0)
                     for packet in lost]
    capture = build_capture([*HANDSHAKE, *lost, *retransmitted])
    begun_s = time.process_time()
    (connection,) = observe_tcp(capture)
    assert connection.retransmitted["dropped by the queue, h1 → h2, after a timeout"] == 1
    assert connection.retransmitted["dropped by the queue, h1 → h2"] == 39_999
    # CPU time: with a time that grows with the square of the drops it would be a minute.
    assert time.process_time() - begun_s < 20


# Settings of queues ---------------------------------------------------------

def test_hfsc_is_read_once_and_unlisted_classes_of_prio_are_no_delay() -> None:
    hfsc = parse_setting(0, message("hfsc", 5 << 16, ROOT)
                         + message("hfsc", 5 << 16, ROOT, is_class=True)
                         + message("hfsc", 5 << 16 | 1, 5 << 16, is_class=True)
                         + message("netem", 10 << 16, 5 << 16 | 1, options=DELAY))
    assert hfsc.words == "netem delay 10 ms limit 9 packets" and hfsc.delay_ms == 10
    prio = parse_setting(0, message("prio", 1 << 16, ROOT, packets=50) + message(
        "netem", 2 << 16, 1 << 16 | 3, options=DELAY))
    assert prio.words == "netem delay 10 ms limit 9 packets" and prio.is_shaping
    assert prio.delay_ms == 0  # packets may pass another class, without a delay


def test_a_limit_is_as_old_as_its_first_setting_although_others_were_added() -> None:
    delay = netem(delay_ms=10.0)
    rate = replace(delay, kind="tbf", handle=2 << 16, delay_ms=0.0, rate_kbps=1000.0)
    first, added = DeviceSetting(10, (delay,)), DeviceSetting(20, (delay, rate))
    assert _since_ns([DeviceSetting(0), first, added]) == 10
    assert _since_ns([DeviceSetting(0, (rate,)), first, added]) == 10  # it replaced another one
    assert _since_ns([first, DeviceSetting(15), added]) == 20  # it was removed for a while


def test_a_netem_with_another_seed_is_a_new_setting() -> None:
    packets = packets_of(queued_ns=[5, 15], time_ns=[5, 15], number=[1, 2])

    def times_ns(*seeds: int) -> list[int]:
        """The times of the effective settings, where seeds are set at 0, 10, … ns."""
        settings = [DeviceSetting(10 * place, (netem(loss_percent=2.0, seed=seed),))
                    for place, seed in enumerate(seeds)]
        return [setting.time_ns for setting in _effective_settings(settings, packets)]

    assert times_ns(7, 8) == [0, 10] and times_ns(7, 7) == [0]


def test_the_tag_of_a_vlan_counts_on_the_wire_and_not_in_a_queue() -> None:
    capture = build_capture(HANDSHAKE)
    heads = bytearray(capture.data.tobytes())
    (plain, *_) = find_links(capture)
    capture.data = numpy.frombuffer(bytes(heads[:12]) + b"\x81\0\0\7" + bytes(heads[12:]),
                                    numpy.uint8)
    capture.packets = capture.packets.at(slice(0, 1))._replace(
        kept=numpy.array([58]), frame_bytes=numpy.array([58]))
    (tagged, *_) = find_links(capture)
    assert tagged.wire_bytes.tolist() == [58]
    assert tagged.queue_bytes.tolist() == [54] == plain.queue_bytes[:1].tolist()


def test_connections_between_unknown_hosts_are_not_reported() -> None:
    """Known hosts have sent datagrams from these addresses before, on other devices."""
    on_other_devices = [packet._replace(device=packet.device + 2, queued_ms=packet.queued_ms + 50)
                        for packet in HANDSHAKE]
    capture = build_capture([Packet(0, 1, 0, 0), Packet(1, 2, 0, 0), *on_other_devices])
    data = bytearray(capture.data.tobytes())
    for place in capture.packets.place[:2].tolist():
        data[place + 23] = UDP  # IPv4's protocol
    capture.data = numpy.frombuffer(bytes(data), numpy.uint8)
    assert observe_tcp(capture) == []


@pytest.mark.parametrize(("shares", "ceiling_kbps", "rate_kbps"), [
    ((3000, 57_000), 100_000.0, 2000.0), ((57_000, 3000), 100_000.0, 10_000.0),
    ((30_000, 30_000), 100_000.0, 12_000.0), ((30_000, 30_000), 5000.0, 5000.0),
    ((57_000, 0), 5000.0, 5000.0), ((0, 0), 100_000.0, 12_000.0)])
def test_the_rate_is_that_of_the_class_that_the_packets_passed(shares: tuple[int, int],
                                                               ceiling_kbps: float,
                                                               rate_kbps: float) -> None:
    """Open vSwitch sets queues like this: two classes below one with the port's rate.

    shares: bytes that passed each class, of 10 and 2 Mbit/s. ceiling_kbps: of the class above.
    """
    # What is above a class of HTB is its parent.
    top = Qdisc("htb", True, 0x1FFFE, 1 << 16, above=1 << 16, rate_kbps=ceiling_kbps, bytes=60_000,
                packets=60, other_settings=("with classes below",))
    below = [Qdisc("htb", True, 1 << 16 | number, 0x1FFFE, above=0x1FFFE, rate_kbps=rate,
                   bytes=share, packets=share // 1000)
             for number, rate, share in zip((1, 2), (10_000.0, 2000.0), shares)]
    root = Qdisc("htb", False, 1 << 16, ROOT, packets=60, bytes=60_000, default_class=0x10001)
    setting = DeviceSetting(0, (root, top, *below))
    assert setting.rate_kbps == rate_kbps
    assert setting.other_bytes == (min(shares) if max(shares) == 57_000 else 0)
    assert [setting.is_chosen_by_filters(queue) for queue in setting.queues] == [
        False, False, False, True]


def test_htb_has_its_default_class_and_the_rate_of_a_class_with_children() -> None:
    root = message("htb", 1 << 16, ROOT, options=attribute(2, struct.pack("=5I", 3, 10, 9, 0, 0)))
    speed = struct.pack("=BBHhHI", 0, 1, 0, 0, 0, 625_000)  # 5 Mbit/s
    parameters = attribute(1, 2 * speed + struct.pack("=5I", 100, 100, 0, 7, 0))
    top = message("htb", 0x1FFFE, 1 << 16, True, parameters)
    queues = parse_setting(0, root + top).queues
    assert [queue.default_class for queue in queues] == [0x10009, 0]
    assert queues[1].rate_kbps == 5000 and queues[1].other_settings == ("with classes below",)


# Names of namespaces, and numbers of packets ----------------------------------------

def test_a_namespace_has_the_name_that_it_was_given_last() -> None:
    """A name has a time, the number of a namespace, and the name."""
    state = UP._replace(time_ns=4, namespace=1)
    names = NamespaceNames(["1 1 before", "5 1 after"])
    assert (names.name(state), names.name(state._replace(time_ns=6))) == ("before", "after")
    assert names.name(state._replace(namespace=9)) == ""


@pytest.mark.parametrize(("settings", "took_ms"), [
    (parse_setting(0, b""), 0.0),
    (DeviceSetting(0, (Qdisc("netem", False, 1 << 16, 0, packets=9, delay_ms=10.0),),
                   Link(10.0, 1e12, 1000, qdisc="netem")), 10.0)])
def test_packets_are_numbered_as_in_wireshark(settings: DeviceSetting, took_ms: float) -> None:
    late = [Packet(0, 30 + place, 1, 0, took_ms=took_ms + (0 if place else 5))
            for place in range(3)]
    capture = build_capture([*(packet._replace(took_ms=took_ms, queued_ms=packet.queued_ms + 1)
                      for packet in HANDSHAKE), *late])
    capture.devices[0].settings = [settings]
    capture.packets = capture.packets._replace(frame=capture.packets.frame + 100)
    # Frames count from 101, and the handshake has three: the first late packet is the fourth.
    assert re.search(r"\(packet 104 (waited or was|arrived)", find_links(capture)[0].wrong[0])


# The time limit of a report -----------------------------------------------------------

@pytest.mark.parametrize(("left_s", "number", "status"), [
    (0.01, 0, 124), (None, signal.SIGTERM, 143), (None, signal.SIGINT, 130)])
def test_a_report_stops_at_its_time_limit_or_the_first_signal(monkeypatch: pytest.MonkeyPatch,
                                                              capsys: pytest.CaptureFixture[str],
                                                              tmp_path: Path, left_s: float | None,
                                                              number: int, status: int) -> None:
    def endless(*_: object, **__: object) -> None:
        if number:
            os.kill(os.getpid(), number)
        time.sleep(60)
    monkeypatch.setattr(captured, "write", endless)
    monkeypatch.setattr(captured, "LEAST_S", 0.05)
    handled = signal.SIGINT if not number else number
    # A process that a shell starts in the background ignores SIGINT, and these tests may be one.
    before = signal.signal(handled, signal.default_int_handler)
    try:
        assert captured.write_in_time(tmp_path, {}, left_s, False) == status
        assert signal.getsignal(handled) is signal.default_int_handler
    finally:
        signal.signal(handled, before)
    assert "--report" in capsys.readouterr().err
    monkeypatch.setattr(captured, "write", lambda *_, **__: None)
    assert captured.write_in_time(tmp_path, {}, 0.0, False) == OK
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


# Commands, scripts and pings ----------------------------------------------------------

def test_only_the_first_setting_of_a_command_names_the_command() -> None:
    def command_block(words: bytes) -> bytes:
        head, end = struct.pack("<HH", 1, len(words)), bytes(-len(words) % 4 + 4)
        return own_block(_REQUEST, 0, head + words + end)

    queues = message("netem", 1 << 16, ROOT)
    settings = own_block(_SETTING, 0, struct.pack("<I", len(queues)) + queues)
    capture = read_small(small_bytes() + command_block(b"tc qdisc add") + settings + settings)
    assert [setting.command for setting in capture.devices[0].settings[-2:]] == ["tc qdisc add", ""]
    refusal = own_block(_REFUSED, 0, struct.pack("<I", errno.EEXIST) + bytes(4))
    refused = read_small(small_bytes() + command_block(b"tc x") + refusal + settings).devices[0]
    assert refused.refused == ["the kernel refused a qdisc: File exists (tc x)"]
    assert refused.settings[-1].command == ""


def test_commands_are_read_from_a_capture() -> None:
    """Each block is of namespace 5. Texts are options with a number, a length, and padding."""
    words = struct.pack("<HH", 1, 6) + b"tc add\0\0"
    program = struct.pack("<HH", 2, 2) + b"tc\0\0"
    ended = own_block(_ENDED, 5, _FAILED + words + bytes(4))
    wrote = own_block(_OUTPUT, 5, struct.pack("<II", _IN_HOST, 77) + words + program + bytes(4))
    capture = read_small(small_bytes() + ended + wrote)
    (command, *_), (complaint, *_) = capture.commands, capture.complaints
    assert command == Command(command.time_ns, namespace=5, is_root=True, process=77, status=2,
                              words="tc add")
    assert complaint == Complaint(complaint.time_ns, namespace=5, is_root=False, process=77,
                                  text="tc add", program="tc")
    killed = own_block(_ENDED, 5, struct.pack("<III", _IN_ROOT, 77, signal.SIGKILL) + bytes(4))
    assert read_small(small_bytes() + killed).commands[0].status == 128 + signal.SIGKILL
    window = 40
    connection = own_block(_OPENED, 5, struct.pack("<II", _IN_HOST, window))
    opened = read_small(small_bytes() + connection).opened[-1]
    assert opened == Opened(opened.time_ns, namespace=5, is_root=False, window=window)


def link_made(line: int, given: dict[str, object], ignored: Sequence[str] = (), kind: str = "TC",
              own_class: bool = False, file: str = "/x/a.py") -> str:
    """A line of the guest on a call of addLink in this line of a script.

    given: parameters of the call. ignored: those that Mininet ignores. own_class: whether the
    script has its own class of interfaces.
    """
    end = {"device": "h1-eth0", "class": f"{kind}Intf", "is_mininets": not own_class,
           "given": given, "ignored": [*ignored], "most_bw": 1000 if kind == "TC" else None}
    return json.dumps({"at": [file, line], "link": f"{kind}Link", "ends": [end, end]})


def advice(*lines: str) -> list[str]:
    """The lines of a report on these calls."""
    return lines_about_links(read_calls(lines, ["python3", "a.py"]))


def test_parameters_of_links_that_mininet_ignores_are_reported_by_line() -> None:
    assert advice(link_made(2, {"bandwidth": "10", "weight": "3"}, ["bandwidth", "weight"]),
                  link_made(3, {"bw": "10"}, ["bw"], kind=""), link_made(4, {"bw": "2000"}),
                  link_made(5, {"dealy": "5ms"}, ["dealy"], file="/x/topo.py"),
                  link_made(6, {"dealy": "5ms"}, ["dealy"]), link_made(7, {"bw": "9"}),
                  link_made(8, {"loss": "150"}), link_made(9, {"use_tbf": "True"}),
                  link_made(10, {"jitter": "2ms"})) == [
        "line 2, addLink: Mininet does not know bandwidth, and ignores it: write bw",
        "line 3, addLink: Link ignores bw: write cls=TCLink",
        "line 4, addLink: bw=2000: Mininet takes at most 1000 Mbit/s, and sets no rate for more",
        "topo.py line 5, line 6, addLink: Mininet does not know dealy, and ignores it: write delay",
        "line 8, addLink: loss=150: Mininet takes 0 to 100 percent, and for more sets no delay and"
        " no queue either",
        "line 9, addLink: use_tbf: without bw Mininet ignores it",
        "line 10, addLink: jitter: without delay Mininet ignores it"]
    assert advice(link_made(0, {"bw": "10"}, ["bw"], kind="", file="")) == [
        "addLink: Link ignores bw: write link=TCLink (or --link tc)"]
    several = [link_made(line, {"lat": "1ms"}, ["lat"]) for line in range(1, 6)]
    assert advice(*several) == ["line 1, line 2, line 3 and 2 more, addLink: Mininet does not know"
                                " lat, and ignores it: write delay"]


def test_parameters_of_the_scripts_own_link_class_are_not_reported() -> None:
    assert not advice(link_made(2, {"bandwidth": "10", "bw": "2000"}, ["bandwidth"],
                                own_class=True))
    assert not advice(link_made(2, {"bw": "10", "rate": "7"}, ["rate"]))  # bw sets the rate


@pytest.mark.parametrize("line", [
    "", "[]", "{}", "null", "7", '{"at": 7}', '{"at": ["a"], "link": "x"}', "[" * 9999,
    '{"at": ["a", 1], "link": "x", "ends": [7]}', '{"at": ["a", "b"], "command": "x"}',
    '{"at": ["a", 1], "link": "x", "ends": [{"device": 1, "given": []}]}'])
def test_malformed_calls_of_a_guest_are_skipped(line: str) -> None:
    good = json.dumps({"at": ["/x/a.py", 3], "command": "tc qdisc add dev 'h1-eth0' root; x"})
    calls = read_calls([line, good], ["a.py"])
    assert not calls.links and [call.place for call in calls.commands] == ["line 3"]


def test_texts_of_a_guest_are_shown_without_control_characters() -> None:
    (line,) = advice(link_made(2, {"lat": "1ms", "bw": "7000\x1b[2J"}, ["lat"], "TC\x1b[1m"))
    assert "\x1b" not in line and line.startswith("line 2, addLink: Mininet does not know lat")


def test_a_command_is_found_at_the_scripts_line_that_gave_it() -> None:
    lines = [json.dumps({"at": [file, line], "command": words}) for file, line, words in (
        ("/x/a.py", 3, "/sbin/tc qdisc add dev 'h1-eth0' root netem; sleep 1"),
        ("/x/more.py", 9, "sysctl -w net.ipv4.tcp_sack=0 && x"), ("/usr/bin/mn", 7, "ip a"))]
    calls = read_calls(lines, ["python3", "a.py"])
    assert calls.place_of("/usr/sbin/tc qdisc add dev h1-eth0 root netem") == "line 3"
    assert calls.place_of("sysctl -w net.ipv4.tcp_sack 0") == "more.py line 9"
    assert calls.place_of("tc qdisc add dev h1-eth0 root net") == ""
    assert calls.place_of("ip a") == calls.place_of("") == ""
    capture = build_with_commands(("tc qdisc add dev h1-eth0 root netem", 2, False))
    assert "root netem (line 3): status 2" in make_report(
        capture, calls=lines, command=["a.py"]).report.alarms[0]


@pytest.mark.parametrize(("order", "is_alarm"), [
    (("link", "root"), True), (("root", "link"), False), (("link", "root", "host"), False)])
def test_a_sysctl_written_outside_the_hosts_is_an_alarm_once_there_are_hosts(
        order: Sequence[str], is_alarm: bool) -> None:
    """Hosts inherit a sysctl that is written before there are any."""
    def writes_sysctl(node: str) -> str:
        return json.dumps({"at": ["/x/a.py", 4], "node": node,
                           "command": "echo reno > /proc/sys/net/ipv4/tcp_congestion_control"})

    lines = {"link": link_made(3, {"bw": "10"}), "root": writes_sysctl(""),
             "host": writes_sysctl("h1")}
    alarms = make_report(build_capture(HANDSHAKE), calls=[lines[name] for name in order],
                         command=["a.py"]).report.alarms
    assert is_alarm == any(alarm.startswith("line 4: echo reno > /proc/sys") for alarm in alarms)


def test_a_program_that_popen_does_not_find_is_an_alarm() -> None:
    lines = [json.dumps({"at": ["/x/a.py", 4], "node": "popen", "command": "iperf9 -s",
                         "is_missing": is_missing}) for is_missing in (True, False)]
    capture = build_capture(HANDSHAKE)
    if_missing, if_found = (make_report(capture, calls=[line], command=["a.py"]).report.alarms
                            for line in lines)
    assert "line 4: popen: iperf9: no such program" in if_missing
    assert if_missing[1:] == if_found


def test_mininets_own_ethtool_is_no_alarm_and_a_scripts_is() -> None:
    complaint = "bash: line 1: ethtool: command not found\n"
    capture = build_with_commands(complaints=(complaint,), program="bash")
    by_mininet = link_made(3, {"bw": "10"})
    by_script = json.dumps({"at": ["/x/a.py", 4], "command": "ethtool -K h1-eth0 tso off"})
    assert "ethtool" not in " ".join(make_report(capture, calls=[by_mininet]).report.alarms)
    assert "ethtool" in make_report(capture, calls=[by_mininet, by_script]).report.alarms[0]
    assert "ethtool" in make_report(capture).report.alarms[0]


def test_a_program_that_a_script_uses_and_the_machine_lacks_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "r.cmd('iptables -t nat -A POSTROUTING -j MASQUERADE')\n# wget it")
    words = ["python3", str(tmp_path / "a.py")]
    assert script.advice(words, lambda name: None) == [
        "iptables: used and not installed on this machine, whose programs the guest has"]
    assert not script.advice(words, lambda name: f"/usr/sbin/{name}")


def test_red_is_described_with_its_settings() -> None:
    parameters = struct.pack("=HH3I4B", 20, 1, 60_000, 15_000, 45_000, 0, 0, 0, 1)
    red = parse_setting(0, message("red", 1 << 16, ROOT, options=parameters))
    assert red.words == "red min 15000 max 45000 bytes ecn limit 60000 bytes" and red.is_shaping


# Large captures: what is beyond a limit is only counted -------------------------------

def conversations_of(capture: Capture) -> conversations.Conversations:
    fields = read_headers(capture)
    return conversations.find_conversations(capture, fields,
                                            links.observe_links(capture, fields, NamespaceNames()))


def test_connections_beyond_the_limit_are_only_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversations, "MOST_CONNECTIONS", 3)
    syns = [Packet(device=0, queued_ms=10 * port, seq=0, size=0, flags=SYN, ack=-1,
                   ends=(port, 80)) for port in range(1, 9)]
    again = [syn._replace(queued_ms=syn.queued_ms + 1000) for syn in syns]
    capture = build_capture([*syns, *again])
    found = conversations_of(capture)
    assert [ends.client[1] for ends in found.connections] == [1, 2, 3] and found.tcp is not None
    assert len(found.tcp.seq) == 2 * 3  # two SYNs each; those of the other five are counted
    assert found.excluded["packets of TCP connections after the first 3"] == 10
    provenance = str(make_report(capture).report.provenance)
    assert "10 packets of TCP connections after the first 3" in provenance


def datagrams(count: int, flows: int) -> Capture:
    """Datagrams from h1 to h2, in turn of this many flows, and one from h2 at the end.

    The last one shows that h2 has its address, and takes 10 ms; the others take 0.5 ms each.
    """
    to_h2 = [Packet(0, number, 0, 0, took_ms=0.5, ends=(9 + number % flows, 7))
             for number in range(count)]
    capture = build_capture([*to_h2, Packet(1, count, 0, 0, ends=(1, 1))])
    data = bytearray(capture.data.tobytes())
    for number, place in enumerate(sorted(capture.packets.place.tolist())):
        data[place + 23] = UDP  # IPv4's protocol
        # 42 bytes are the headers of Ethernet, IPv4 and UDP. The content makes each another one.
        data[place + 42:place + 50] = struct.pack(">Q", number)
    capture.data = numpy.frombuffer(bytes(data), numpy.uint8)
    return capture


def test_flows_beyond_the_limit_are_counted_and_lost_packets_forgotten(
        monkeypatch: pytest.MonkeyPatch) -> None:
    capture = datagrams(40, 5)
    whole = conversations_of(capture)
    assert [(flow.sent, flow.came, flow.sum_ms) for flow in whole.flows] == [
        *[(8, 8, 4.0)] * 5, (1, 1, 10.0)]
    monkeypatch.setattr(conversations, "MOST_FLOWS", 2)
    monkeypatch.setattr(conversations, "_AT_ONCE", 7)
    found = conversations_of(capture)
    assert [(flow.sent, flow.came) for flow in found.flows] == [(8, 8)] * 2
    # Of the three other flows from h1, and the one from h2.
    assert found.excluded["packets of UDP flows after the first 2"] == 3 * 8 + 1
    monkeypatch.setattr(conversations, "_MOST_WAITING", 2)
    # All are under way at once. The last two are waited for: one from h1, and the one from h2.
    late = datagrams(4, 1)
    late.packets = late.packets._replace(time_ns=late.packets.time_ns + 10**9)
    assert [(flow.sent, flow.came) for flow in conversations_of(late).flows] == [(4, 1), (1, 1)]


def test_packets_of_a_direction_are_judged_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    opening = [packet._replace(queued_ms=packet.queued_ms + 1) for packet in HANDSHAKE]
    capture = build_capture([*opening,
                    *(Packet(0, 30 + number, 1, 9) for number in range(20))],
                   settings=[netem(delay_ms=10.0)])
    capture.devices[0].settings = [replace(capture.devices[0].settings[0],
                                           link=Link(10.0, 1e12, 1000, qdisc="netem"))]
    sent = 20 + 2  # h1 sends two packets of the handshake
    for most, judged in ((200_000, sent), (5, 5)):
        monkeypatch.setattr(links, "MOST_JUDGED", most)
        first, *_ = links.observe_links(capture, read_headers(capture), NamespaceNames())
        assert (first.judged, first.sent) == (judged, sent)


def test_settings_beyond_the_limit_are_only_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = own_block(_ENDED, 5, _FAILED + bytes(4))
    whole = read_small(small_bytes() + 5 * ended)
    assert len(whole.commands) == 5 and not whole.unread
    before = sum(len(device.settings) + len(device.states) for device in whole.devices)
    before += len(whole.dropped)
    monkeypatch.setattr(pcapng, "MOST_BLOCKS", before + 2)
    limited = read_small(small_bytes() + 5 * ended)
    assert len(limited.commands) == 2 and limited.unread == 3
    assert "3 settings of queues and commands are not read" in make_report(
        limited).report.alarms[0]
