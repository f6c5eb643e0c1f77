"""What is tampered with, and the check that refuses it: a table over stored trials.

Request and read-back agree in each of them, as if the network had been set up otherwise, or as if
a report or a capture had been changed. What passes stands in PASSES, and in docs/METHOD.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from firstflight.study.fetches.verify.verify import judge_fetch
from tests.golden import stored
from tests.golden.stored import Packet, Stored

Change = Callable[[Stored], Stored]
SYN, ACK, FLAGS, WINDOW, OPTIONS = 0x02, 0x10, 47, slice(48, 50), slice(54, 74)


def requested(**fields: Any) -> Change:
    return lambda trial: trial.requested(**fields)


def said(part: str, **values: Any) -> Change:
    return lambda trial: trial.said(part, **values)


def later(part: str, name: str, by: float, factor: float = 1.0) -> Change:
    return lambda trial: trial.said(part, **{name: trial.observation[part][name] * factor + by})


def tls(**values: Any) -> Change:
    return lambda trial: trial.said("server", tls={**trial.observation["server"]["tls"], **values})


def drops(queue: int, random: int, to_server: int = 0) -> Change:
    return lambda trial: replace(trial, observation={**trial.observation, "drops": {
        "to_client": {"queue": queue, "random": random},
        "to_server": {"queue": to_server, "random": 0}}})


def syn(edit: Callable[[bytes], bytes], answers: bool = False) -> Change:
    """Each SYN, or each SYN-ACK, is another one in both captures."""
    def changed(packet: Packet) -> Packet:
        flags = packet.frame[FLAGS]
        if flags & SYN and bool(flags & ACK) == answers:
            return replace(packet, frame=edit(packet.frame))
        return packet
    return lambda trial: trial.captured(*(
        [changed(packet) for packet in stored.read(capture)]
        for capture in (trial.client, trial.server)))


def option(old: str, new: str) -> Callable[[bytes], bytes]:
    def edit(frame: bytes) -> bytes:
        options = frame[OPTIONS]
        assert bytes.fromhex(old) in options, options.hex()
        return frame[:OPTIONS.start] + options.replace(
            bytes.fromhex(old), bytes.fromhex(new), 1) + frame[OPTIONS.stop:]
    return edit


def flags(added: int) -> Callable[[bytes], bytes]:
    return lambda frame: frame[:FLAGS] + bytes([frame[FLAGS] | added]) + frame[FLAGS + 1:]


def window(value: int) -> Callable[[bytes], bytes]:
    return lambda frame: frame[:WINDOW.start] + value.to_bytes(2, "big") + frame[WINDOW.stop:]


def moved(side: str, number: int, by_ns: int) -> Change:
    """One packet of data at one side, by its number."""
    def change(trial: Stored) -> Stored:
        packets = stored.read(getattr(trial, side))
        one = stored.nth_data(packets, number)
        return trial.captured(**{side: [replace(packet, time_ns=packet.time_ns + by_ns)
                                        if packet is one else packet for packet in packets]})
    return change


def without(side: str, number: int) -> Change:
    def change(trial: Stored) -> Stored:
        packets = stored.read(getattr(trial, side))
        packets.remove(stored.nth_data(packets, number))
        return trial.captured(**{side: packets})
    return change


def from_data(number: int, by_ns: int) -> Change:
    """The server is late from one segment on, and with it all that follows at both hosts."""
    def change(trial: Stored) -> Stored:
        copies = []
        for capture in (trial.client, trial.server):
            packets = stored.read(capture)
            first = packets.index(stored.nth_data(packets, number))
            copies.append([replace(packet, time_ns=packet.time_ns + (by_ns if place >= first else 0))
                           for place, packet in enumerate(packets)])
        return trial.captured(*copies)
    return change


def shifted(by_ns: int) -> Change:
    return lambda trial: trial.captured(*(
        [replace(packet, time_ns=packet.time_ns + by_ns) for packet in stored.read(capture)]
        for capture in (trial.client, trial.server)))


def swapped(other: str) -> Change:
    """The client's times are those of another trial."""
    fetch = stored.load(other).observation["fetch"]
    return said("fetch", **{name: fetch[name] for name in ("connect_ms", "first_byte_ms",
                                                          "total_ms")})


PLAIN, TLS, LOSSY, SLOW, BBR = "tail_probe", "https", "queue_and_loss", "queue_timer", "paced"
CUBIC, NGINX = "full_queue", "nginx_plain"
# The trial, what is tampered with, how, and the check that refuses it.
TAMPERINGS: list[tuple[str, str, Change, str]] = [
    # Options of the SYNs, left at Linux's default or requested.
    (PLAIN, "client offers MSS 1200", syn(option("020405b4", "020404b0")), "TCP options"),
    (PLAIN, "client offers MSS 1459", syn(option("020405b4", "020405b3")), "TCP options"),
    (PLAIN, "server offers MSS 1400", syn(option("020405b4", "02040578"), True), "TCP options"),
    (PLAIN, "client has no SACK", syn(option("0402", "0101")), "TCP options"),
    (PLAIN, "server has no SACK", syn(option("0402", "0101"), True), "TCP options"),
    (PLAIN, "client has no time stamps", syn(option("080a", "fd0a")), "TCP options"),
    (PLAIN, "server has no time stamps", syn(option("080a", "fd0a"), True), "TCP options"),
    (PLAIN, "client scales windows by more", syn(option("030307", "030308")), "TCP options"),
    (PLAIN, "client scales no window", syn(option("030307", "010101")), "TCP options"),
    (PLAIN, "server scales windows by less", syn(option("030307", "030302"), True), "TCP options"),
    (PLAIN, "client asks for ECN", syn(flags(0xC0)), "TCP options"),
    (PLAIN, "server takes ECN", syn(flags(0x40), True), "TCP options"),
    (PLAIN, "client offers a smaller window", syn(window(29200)), "TCP options"),
    (BBR, "client has no SACK, no model", syn(option("0402", "0101")), "TCP options"),
    (LOSSY, "client has no SACK, losses", syn(option("0402", "0101")), "TCP options"),
    (PLAIN, "another MSS requested", requested(mss=1300), "TCP options"),
    (TLS, "longer segments than the MSS", requested(mss=1447), "segment size"),
    (BBR, "no full segment", requested(mss=1449), "segment size"),
    (PLAIN, "another receive window requested", requested(initrwnd=40), "TCP options"),
    # What the kernel of the server says of its socket.
    (PLAIN, "Reno in the place of CUBIC", said("server", congestion_control="reno"),
     "server's socket"),
    (LOSSY, "BBR in the place of CUBIC", said("server", congestion_control="bbr"),
     "server's socket"),
    (BBR, "another control requested than its socket has",
     said("server", congestion_control="westwood"), "server's socket"),
    (LOSSY, "tcp_reordering", said("server", reordering=30), "server's socket"),
    (PLAIN, "SO_SNDBUF that nobody requested", said("server", fixed_send_buffer=True),
     "server's socket"),
    (LOSSY, "SO_SNDBUF that was not set", lambda trial: trial.requested(
        send_buffer_bytes=30_000).said("server", fixed_send_buffer=False), "server's socket"),
    (BBR, "SO_MAX_PACING_RATE that nobody requested", said("server", is_pacing_limited=True),
     "server's socket"),
    *((name, f"a pacing rate {percent} % higher", later(
        "server", "pacing_bytes_per_s", 0, 1 + percent / 100), "server's socket")
      for name, percent in ((BBR, 1), (CUBIC, 1), (NGINX, 1), (CUBIC, -50))),
    (NGINX, "nginx with Reno", said("server", congestion_control="reno"), "server's socket"),
    *((name, "a larger send buffer at first", said("server", first_buffer_bytes=92_160),
       "server's socket") for name in (BBR, CUBIC, NGINX)),
    (BBR, "Nagle's algorithm that nobody requested", said("server", has_nagle=True),
     "server's socket"),
    (BBR, "no Nagle's algorithm where it is requested", requested(nagle="on"), "server's socket"),
    (LOSSY, "another MSS of its socket", said("server", mss=1012), "server's socket"),
    (CUBIC, "SO_SNDBUF of another size", lambda trial: trial.requested(
        send_buffer_bytes=30_000).said("server", fixed_send_buffer=True, send_buffer_bytes=50_000),
     "server's socket"),
    # The client's times, where a model says what they have to be and where none does.
    *((name, f"{time} {words}", later("fetch", time, by, factor), "client times")
      for name in (BBR, LOSSY, TLS, "nginx_resumed")
      for time, words, by, factor in (("total_ms", "× 1.2", 0.0, 1.2),
                                      ("connect_ms", "5 ms later", 5.0, 1.0),
                                      ("total_ms", "50 µs earlier", -0.05, 1.0))),
    (BBR, "first byte 5 ms later", later("fetch", "first_byte_ms", 5.0), "client times"),
    (TLS, "TLS's handshake 0.1 ms later", later("fetch", "appconnect_ms", 0.1), "client times"),
    ("persistent", "first byte 0.1 ms later", later("fetch", "first_byte_ms", 0.1),
     "client times"),
    ("wget", "total 0.2 ms later", later("fetch", "total_ms", 0.2), "client times"),
    (LOSSY, "times of another trial", swapped("iw10"), "client times"),
    (BBR, "times of another trial, no model", swapped("cake_full"), "client times"),
    # Drops by their cause.
    (LOSSY, "queue and random drops exchanged", drops(5, 9), "path"),
    (LOSSY, "one random drop is the queue's", drops(10, 4), "path"),
    (LOSSY, "one random drop more", drops(9, 6), "path"),
    (LOSSY, "one of the queue's drops less", drops(8, 5), "path"),
    (LOSSY, "a drop towards the server", drops(9, 5, 1), "path"),
    ("cake_full", "drops at random in the place of cake's", drops(0, 15), "path"),
    # The network was another one.
    (PLAIN, "RTT 4 µs longer", requested(rtt_ms=20.004), "path"),
    (PLAIN, "1 kbit/s more", requested(bandwidth_kbps=257.0), "path"),
    (PLAIN, "a slower uplink", requested(uplink_kbps=250.0), "path"),
    (LOSSY, "a queue with one packet more", lambda trial: trial.requested(
        queue_packets=trial.trial.queue_packets + 1), "path"),
    (LOSSY, "no loss", requested(loss_percent=0.0), "path"),
    (LOSSY, "another seed", requested(seed=99), "path"),
    ("jitter_and_bursts", "single losses", requested(loss_burst=1.0), "path"),
    ("jitter_and_bursts", "less jitter", requested(jitter_ms=0.5), "path"),
    (BBR, "another initial window", requested(initcwnd=5), "initial window"),
    # A packet, or a host.
    (PLAIN, "a packet arrives 3.5 µs late", moved("client", 9, 3500), "path"),
    (LOSSY, "a packet arrives 2 µs early", moved("client", 3, -2000), "path"),
    (PLAIN, "a packet that did not arrive", without("client", 5), "path"),
    (PLAIN, "a packet that nobody sent", without("server", 5), "path"),
    (PLAIN, "the server is 300 µs late", from_data(14, 300_000), "causes"),
    (LOSSY, "the server is 40 µs late after an arrival", from_data(14, 40_000), "causes"),
    (SLOW, "the server is 30 µs late after an arrival", from_data(3, 30_000), "causes"),
    (PLAIN, "the server is 4 µs late after an arrival", from_data(14, 4_000), "causes"),
    (PLAIN, "its timer is 1 µs early", from_data(28, -1_000), "causes"),
    (PLAIN, "its timer is 40 µs early", from_data(28, -40_000), "causes"),
    (PLAIN, "its timer is 5 µs late", from_data(28, 5_000), "causes"),
    (SLOW, "one of two timers is 3 µs late", from_data(5, 3_000), "causes"),
    (PLAIN, "both captures 300 µs later, with a timer", shifted(300_000), "causes"),
    (PLAIN, "a segment that was sent twice", lambda trial: stored.sent_again(trial, 2, 30.0),
     "path"),
    # Reports of the server and the client.
    (PLAIN, "its latency", later("server", "latency_ms", 0.2), "server latency"),
    (PLAIN, "its window at accept", said("server", initial_window=41), "initial window"),
    (PLAIN, "its digest", said("server", sha256="0" * 64), "digest"),
    (PLAIN, "a byte less", said("fetch", size=49_999), "size"),
    (PLAIN, "an exit status", said("fetch", exit_status=18), "exit status"),
    (TLS, "TLS 1.2", tls(version="TLSv1.2"), "TLS"),
    (TLS, "another key exchange", tls(group="P-256"), "TLS"),
    (TLS, "a session that was resumed", tls(resumed=True), "TLS"),
    (TLS, "its window after the handshake", tls(window=11), "model handshake"),
    ("nginx", "a longer chain requested", requested(chain_bytes=9000), "TLS flight"),
]
# What no number depends on, or what a host may do: docs/METHOD.md names it.
PASSES: list[tuple[str, str, Change]] = [
    (TLS, "both captures 300 µs later, without a timer", shifted(300_000)),
    (TLS, "both captures a second earlier", shifted(-1_000_000_000)),
]


def failed(trial: Stored) -> list[str]:
    return trial.judge().failed_checks.split("; ")


@pytest.mark.parametrize(("name", "what", "change", "check"), TAMPERINGS,
                         ids=[f"{name}: {what}" for name, what, _, _ in TAMPERINGS])
def test_what_was_tampered_with_is_refused(name: str, what: str, change: Change, check: str) -> None:
    trial = stored.load(name)
    assert trial.judge().counts
    assert check in failed(change(trial)), what


@pytest.mark.parametrize(("name", "what", "change"), PASSES, ids=[what for _, what, _ in PASSES])
def test_what_changes_no_number_passes(name: str, what: str, change: Change) -> None:
    record, tampered = stored.load(name).judge(), change(stored.load(name)).judge()
    assert tampered.counts and replace(tampered, trial=record.trial) == record, what


@pytest.mark.parametrize(("first_only", "passes"), [(True, True), (False, False)])
def test_a_repeated_syn_asks_for_no_ecn(first_only: bool, passes: bool) -> None:
    """Nor does the answer to one (tcp_ecn_clear_syn). Here all of them ask, or the first alone."""
    trial = stored.load("syn_timer")
    captures = [stored.read(capture) for capture in (trial.client, trial.server)]
    for packets in captures:
        syns = [packet for packet in packets if packet.frame[FLAGS] & (SYN | ACK) == SYN]
        for packet in syns[:1] if first_only else syns[1:]:
            packets[packets.index(packet)] = replace(packet, frame=flags(0xC0)(packet.frame))
    asked = trial.captured(*captures)
    record = judge_fetch(asked.trial, asked.observation, asked.client, asked.server, exact=True,
                         sysctls={"net.ipv4.tcp_ecn": "1"})
    assert ("TCP options" not in record.failed_checks) == passes
    assert "TCP options" in failed(asked)


def test_there_are_as_many_as_were_tried_from_outside() -> None:
    assert len(TAMPERINGS) >= 53
