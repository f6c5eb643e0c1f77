"""What both captures of a connection show, and what the view of a trace says of a time.

The conversations are built packet by packet. One has three segments and their acknowledgements,
over 50 ms each way and 1000 kbit/s, where its name does not say otherwise.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator

from firstflight.net.headers import ACK, FIN, PUSH, RST, SYN
from firstflight.net.segments import Segment
from firstflight.wire.exchange import (Exchange, bandwidth_after_burst, clock_phase_ns,
                                       observed_rtt_ms, round_trip_ns, server_rtt_us)
from firstflight.wire.messages import find_messages
from firstflight.wire.retransmissions import explain_retransmissions
from firstflight.workloads.trace.view import METRICS, View, read_view, view_of
from firstflight.workloads.trace.window import OPEN, WindowSample
from tests.golden import stored_trace
from tests.unit.tcp.conversation import MS, MSS, START_NS, Conversation, plain

HELLO, FINISHED, REQUEST = 300, 80, 120  # bytes of each message of the client
# A SACK option (kind 5, 10 bytes) of the second segment; the server's numbers begin at 9000.
SACK = struct.pack(">BBBBII", 1, 1, 5, 10, 9000 + 1449, 9000 + 2897)
END = 1 + 3 * MSS  # the relative number after three segments
Make = Callable[[], Conversation]


def begin(options: bytes = b"") -> Conversation:
    """A handshake, the request, and two segments of the response. options: of both SYNs."""
    talk = Conversation().send(0, False, SYN, options=options)
    talk.send(50, True, SYN | ACK, ack=1, options=options).send(100, False, ACK, seq=1, ack=1)
    return talk.send(100, False, ACK | PUSH, seq=1, ack=1, payload=95).flight(0, 1)


def lose_syns(*times_ms: float) -> Conversation:
    """SYNs that leave at these times and do not arrive."""
    talk = Conversation()
    for at_ms in times_ms:
        talk.send(at_ms, False, SYN, lost=True)
    return talk


def stamp_acknowledgements(packets: Iterable[tuple[float, int]]) -> Conversation:
    """The client's SYN and acknowledgements: when each leaves in ms, and its time stamp."""
    talk = Conversation()
    for at_ms, stamp in packets:
        talk.send(at_ms, False, ACK if at_ms else SYN, seq=1 if at_ms else 0, ack=1,
                  options=stamps(stamp, 0))
    return talk


def stamps(own: int, echo: int) -> bytes:
    """The time stamps option: the sender's own stamp, and the other host's that it returns."""
    return b"\x01\x01\x08\x0a" + struct.pack(">II", own, echo)


def repeat_syn_ack(echo: int) -> Conversation:
    """A SYN-ACK at 50 and again at 80 ms, and later acknowledgements of the server.

    The server's clock of time stamps is 0.3 ms ahead. echo: the stamp that the client returns,
    which says which of both SYN-ACKs it answers.
    """
    talk = Conversation().send(0, False, SYN)
    for at_ms in (50.0, 80.0, 150.6, 160.75):
        is_later = at_ms > 100
        talk.send(at_ms, True, ACK if is_later else SYN | ACK, seq=int(is_later), ack=1,
                  options=stamps(int(at_ms + 0.3), 0))
    return talk.send(100, False, ACK, seq=1, ack=1, options=stamps(0, echo))


def lose_first_syn_ack() -> Conversation:
    """Two SYN-ACKs that look alike, of which only the second arrives.

    Linux gives every SYN-ACK the IP identification 0 (ip_build_and_send_pkt).
    """
    talk = Conversation().send(0, False, SYN)
    for at_ms, lost in ((50, True), (1050, False)):
        talk.identification = -1  # send() adds 1
        talk.send(at_ms, True, SYN | ACK, ack=1, lost=lost)
    return talk


def double_last() -> Conversation:
    """Each host's capture has the last packet a second time, 1 ms later: the network doubled it."""
    talk = plain()
    for tap in (talk.client, talk.server):
        time_ns, *packet = tap[-1]
        tap.append((time_ns + MS, *packet))  # type: ignore[arg-type]
    return talk


def lose_and_resend() -> Conversation:
    """The second of three segments is lost, and arrives when it is sent again."""
    talk = Conversation().handshake().flight(0)
    talk.send(150, True, ACK, seq=1449, ack=96, payload=MSS, lost=True)
    talk.flight(2).acknowledge(212, 1).flight(1, at_ms=400).acknowledge(500, 3)
    return talk.send(600, False, ACK, seq=96, ack=4345, lost=True)


def retransmit() -> Conversation:
    """A segment is sent again, and so are a FIN without data and the request."""
    talk = plain().flight(1, at_ms=260)
    for at_ms in (300, 400):
        talk.send(at_ms, True, FIN | ACK, seq=END, ack=96)
    return talk.send(500, False, ACK | PUSH, seq=1, ack=4345, payload=95)


def share_link_with_syn_ack() -> Conversation:
    """A SYN-ACK without options is on the link between two segments."""
    # 50 ms, then 1514 bytes of the first segment, then 40 bytes and Ethernet's header of 14.
    took_ms = 62.112 + 40 * 8 / 1000 + 14 * 8 / 1000
    talk = Conversation().handshake().flight(0).send(150, True, SYN | ACK, ack=1, takes_ms=took_ms)
    talk.send(150, True, ACK, seq=1449, ack=96, payload=MSS, takes_ms=took_ms + 1502 * 8 / 1000)
    return talk.acknowledge(230, 2)


def pace() -> Conversation:
    """Three segments that leave 30 ms apart."""
    talk = Conversation().handshake()
    for number in range(3):
        talk.flight(number, at_ms=150 + 30 * number)
    return talk.acknowledge(250, 1)


def send_later(*packets: tuple[int, float]) -> Conversation:
    """Segments 0 and 1 at once; then others, each by its number and when it leaves in ms."""
    talk = Conversation().handshake().flight(0, 1)
    for number, at_ms in packets:
        talk.flight(number, at_ms=at_ms)
    return talk.acknowledge(600, 4)


def copy_request(answered_ms: float) -> Conversation:
    """The last byte of the request comes again, and is answered with a duplicate acknowledgement.

    The third segment leaves at 300 ms, 150 ms after the first two.
    """
    talk = Conversation().handshake().flight(0, 1)
    talk.send(200, False, ACK | PUSH, seq=95, ack=1, payload=1)
    talk.send(answered_ms, True, ACK, seq=2897, ack=96, options=b"\x01" * 12)
    return talk.flight(2, at_ms=300).acknowledge(600, 3)


def send_apart(apart_ms: float, payload: int) -> Conversation:
    """Two segments that leave `apart_ms` apart and arrive 12 ms apart. payload: of the second."""
    talk = Conversation().handshake().send(150, True, ACK, seq=1, ack=96, payload=MSS, takes_ms=62)
    talk.send(150 + apart_ms, True, ACK, seq=1449, ack=96, payload=payload,
              takes_ms=74 - apart_ms)
    return talk.acknowledge(300, 2)


def fetch_over_tls(with_finished: int) -> Conversation:
    """A hello, a flight of two segments, the Finished, a request, and a response of two segments.

    with_finished: how many bytes of the request leave in the Finished's own packet, 0 or all.
    """
    talk = Conversation().send(0, False, SYN).send(50, True, SYN | ACK, ack=1)
    talk.send(100, False, ACK | PUSH, seq=1, ack=1, payload=HELLO)
    for number in range(2):
        talk.send(150, True, ACK, seq=1 + number * MSS, ack=1 + HELLO, payload=MSS)
    flight_end = 1 + 2 * MSS
    talk.send(201, False, ACK | PUSH, seq=1 + HELLO, ack=flight_end,
              payload=FINISHED + with_finished)
    if not with_finished:
        talk.send(202, False, ACK | PUSH, seq=1 + HELLO + FINISHED, ack=flight_end, payload=REQUEST)
    requested = 1 + HELLO + FINISHED + (with_finished or REQUEST)
    for number in range(2, 4):
        talk.send(260, True, ACK | PUSH, seq=1 + number * MSS, ack=requested, payload=MSS)
    return talk.send(320, False, ACK, seq=requested, ack=1 + 4 * MSS)


def request_twice() -> Conversation:
    """A response, and a second request without an answer."""
    return plain().send(300, False, ACK | PUSH, seq=96, ack=END, payload=95)


def answer_twice() -> Conversation:
    """Two requests, each with its response; the second has 1000 bytes."""
    talk = request_twice().send(350, True, ACK | PUSH, seq=END, ack=191, payload=1000)
    return talk.send(400, False, ACK, seq=191, ack=1000 + END)


EXCHANGES: dict[str, Make] = {
    "plain": plain,
    "a SYN that is sent again": lambda: lose_syns(0).send(1000, False, SYN).send(
        1050, True, SYN | ACK, ack=1),
    "no answer": lambda: lose_syns(0, 1000, 3000), "a SYN alone": lambda: Conversation().send(
        0, False, SYN),
    "without a handshake": lambda: Conversation().send(
        100, False, ACK | PUSH, seq=1, ack=1, payload=95).flight(0, 1).acknowledge(
            212, 1).acknowledge(224, 2),
    "a handshake alone": lambda: Conversation().handshake(),
    "a SYN-ACK that leaves 5 ms late": lambda: Conversation().send(0, False, SYN).send(
        55, True, SYN | ACK, ack=1).send(105, False, ACK, seq=1, ack=1),
    "a handshake that is repeated": lambda: plain().send(1000, False, SYN).send(
        1050, True, SYN | ACK, ack=1),
    "SYN-ACKs that look alike": lose_first_syn_ack,
    "a SYN-ACK that is repeated, the first answered": lambda: repeat_syn_ack(50),
    "a SYN-ACK that is repeated, the second answered": lambda: repeat_syn_ack(80),
    "a SYN-ACK that is repeated without stamps": lambda: Conversation().send(0, False, SYN).send(
        50, True, SYN | ACK, ack=1).send(80, True, SYN | ACK, ack=1).send(
            100, False, ACK, seq=1, ack=1),
    "a reset": lambda: plain().send(300, True, RST | ACK, seq=END, ack=96),
    "retransmitted": retransmit,
    "sent again with its FIN": lambda: plain().send(
        300, True, FIN | PUSH | ACK, seq=1 + 2 * MSS, ack=96, payload=MSS),
    "lost, and sent again": lose_and_resend, "doubled by the network": double_last,
    "an acknowledgement of no data": lambda: begin().send(140, False, ACK, seq=96, ack=1).send(
        195, True, ACK, seq=2897, ack=96, payload=MSS, takes_ms=60).acknowledge(212, 1).flight(
            3, at_ms=262.5),
    **{f"a duplicate acknowledgement {how} SACK": lambda options=options: begin(options).send(
        230, False, ACK, seq=96, ack=1).flight(2, at_ms=290).acknowledge(350, 3)
       for how, options in (("with", b"\x01\x01\x04\x02"), ("without", b"\x02\x04\x05\xb4"))},
    "a SACK alone": lambda: begin().send(
        230, False, ACK, seq=96, ack=1, options=SACK).flight(2, at_ms=290),
    "new data by a timer": lambda: send_later((2, 360)).acknowledge(400, 1).flight(3, at_ms=450),
    "two at once after a pause": lambda: send_later((2, 360), (3, 360)).acknowledge(450, 1),
    "one after 100 ms": lambda: send_later((2, 250)),
    "one a bit earlier": lambda: send_later((2, 249.999)),
    "one after 100 ms, another 1.001 ms later": lambda: send_later((2, 250), (3, 251.001)),
    "one after 100 ms, another 1 ms later": lambda: send_later((2, 250), (3, 251)),
    "a copy of the request, answered at once": lambda: copy_request(250),
    "a copy of the request, answered later": lambda: copy_request(251),
    "one segment": lambda: Conversation().handshake().flight(0).acknowledge(212, 1),
    "the link also carries a SYN-ACK": share_link_with_syn_ack, "a paced flight": pace,
    **{f"{ms} ms apart, the second of {payload} bytes":
       lambda ms=ms, payload=payload: send_apart(ms, payload)
       for ms in (6, 6.1) for payload in (MSS, 500)},
    "behind a token bucket": lambda: Conversation().handshake().flight(0, 1, each_ms=1).send(
        150.001, True, ACK | PUSH, seq=2897, ack=96, payload=500, takes_ms=64.015).acknowledge(
            300, 2),
    "stamps of a clock that is 0.3 ms ahead": lambda: stamp_acknowledgements(
        (at_ms, int(at_ms + 0.3)) for at_ms in (0.0, 10.65, 20.71, 33.69, 50.72)),
    # The clock ticks each millisecond, and here it ticks 94 times in 10 ms.
    "stamps that contradict each other": lambda: stamp_acknowledgements(((0.0, 5), (10.0, 99))),
    "asked again without an answer": request_twice, "asked and answered again": answer_twice,
    "over TLS": lambda: fetch_over_tls(0),
    "over TLS, the request with the Finished": lambda: fetch_over_tls(REQUEST)}


# Which timer sent a segment again -------------------------------------------------------------

def shake_hands(one_way_ms: int, syn_ms: float = 0.0, syn_ack_ms: float = 0.0) -> Conversation:
    """A handshake over a longer path, and the request.

    syn_ms, syn_ack_ms: when the SYN and the SYN-ACK leave again; 0 if they do not.
    """
    talk = Conversation(one_way_ns=one_way_ms * MS).send(0, False, SYN)
    if syn_ms:
        talk.send(syn_ms, False, SYN)
    talk.send(one_way_ms, True, SYN | ACK, ack=1)
    if syn_ack_ms:
        talk.send(syn_ack_ms, True, SYN | ACK, ack=1)
    talk.send(2 * one_way_ms, False, ACK, seq=1, ack=1)
    return talk.send(2 * one_way_ms, False, ACK | PUSH, seq=1, ack=1, payload=95)


def resend_tail(at_ms: float) -> Conversation:
    """Two segments, sent at 100 and at 330 ms, of which the second is sent again.

    The timer of the first, which is not acknowledged, runs out at 400 ms.
    """
    talk = Conversation().handshake()
    for seq, sent_ms in ((1, 100), (1449, 330), (1449, at_ms)):
        talk.send(sent_ms, True, ACK | PUSH, seq=seq, ack=96, payload=MSS)
    return talk.send(401, False, ACK, seq=96, ack=1449).send(402, False, ACK, seq=96, ack=2897)


def resend_request(later_ms: float) -> Conversation:
    """The client sends its request again so much later than at first."""
    talk = Conversation().handshake()
    talk.send(100 + later_ms, False, ACK | PUSH, seq=1, ack=1, payload=95)
    return talk.send(500, True, ACK, seq=1, ack=96, payload=MSS).acknowledge(560, 1)


def probe_tail() -> Conversation:
    """Two segments, of which the second is sent again after 210 ms, as a tail loss probe."""
    return Conversation().handshake().flight(0, 1).flight(1, at_ms=360)


# Each conversation with how long ARP took, in ms, before the client's first SYN left.
SENT_AGAIN: dict[str, tuple[Conversation, float]] = {
    **{f"the tail at {at_ms} ms": (resend_tail(at_ms), 0) for at_ms in (345, 390, 399)},
    **{f"the head after {ms} ms": (Conversation().handshake().flight(0, 1).flight(
        0, at_ms=150 + ms).acknowledge(700, 2), 0) for ms in (298, 297.99)},
    # After a SYN-ACK that was sent again the timer is 3 s (RFC 6298, 5.7). The RTT of 3.2 s leaves
    # no other timer that could have run out.
    **{f"the head after 3 s, a SYN-ACK again at {ms} ms": (shake_hands(1600, syn_ack_ms=ms).flight(
        0, 1, at_ms=4800).flight(0, at_ms=7800), 0) for ms in (2600, 0)},
    **{f"a SYN after {syn_ms} ms, {one_way_ms} ms each way, {arp_ms} of ARP": (
        shake_hands(one_way_ms, syn_ms), arp_ms) for one_way_ms, arp_ms, syn_ms in (
            (600, 0, 1000), (600, 0, 999), (500, 0, 1000), (499, 0, 1000), (350, 400, 600),
            (350, 400, 599), (299, 400, 600))},
    **{f"a SYN-ACK at {syn_ack_ms} ms, a SYN at {syn_ms}": (shake_hands(600, syn_ms, syn_ack_ms), 0)
       for syn_ms, syn_ack_ms in ((0, 1600), (0, 1599), (1003, 1603), (1003, 1603.5),
                                  (1003, 1604), (990, 1598))},
    **{f"the request after {ms} ms": (resend_request(ms), 0) for ms in (197, 199)},
    "two probes, with progress": (probe_tail().acknowledge(420, 2).flight(2, at_ms=480).flight(
        2, at_ms=690).acknowledge(900, 3), 0),
    "two probes, without": (probe_tail().flight(1, at_ms=440).acknowledge(900, 3), 0)}


# What the view of a trace says of a time, or of all after it ------------------------------------

def sample(at_ms: float, cwnd: int, state: int = OPEN) -> WindowSample:
    """A sample of the server's window. at_ms: after the request has come to the server."""
    values = dict.fromkeys(stored_trace.FIELDS, 0)
    return WindowSample(**values | {
        "time_ns": START_NS + 150 * MS + round(at_ms * MS), "cwnd": cwnd, "state": state,
        "ssthresh": cwnd * 2, "rtt_us": cwnd * 1000})


def with_losses() -> View:
    """Segments 1 and 3 of four are lost and sent again after a timeout; 3 is then lost again."""
    talk = Conversation().handshake().flight(0)
    for number in (1, 3):
        talk.send(160 + number, True, ACK, seq=1 + number * MSS, ack=96, payload=MSS, lost=True)
    talk.send(162, True, ACK, seq=1 + 2 * MSS, ack=96, payload=MSS).acknowledge(222, 1)
    talk.send(650, True, ACK, seq=1 + MSS, ack=96, payload=MSS).acknowledge(700, 3)
    talk.send(760, True, ACK, seq=1 + 3 * MSS, ack=96, payload=MSS, lost=True)
    talk.send(1600, True, ACK, seq=1 + 3 * MSS, ack=96, payload=MSS).acknowledge(1660, 4)
    return view_of(stored_trace.trial("idle-linux-iw10"), talk.read(), [
        sample(0, 4), sample(500, 1, 4), sample(550, 2, 4), sample(610, 1, 4), sample(700, 1, 3),
        sample(1450, 1, 4), sample(1510, 3)])


def idle() -> View:
    """A stored trace of 26 segments at once, and of 21 more after 2.2 s.

    The data of each flight is acknowledged in 0.1 s.
    """
    return read_view(stored_trace.trial("idle-linux-iw10"), stored_trace.RUN)


# A value within 0.1 ms of a time counts as that time's; 0.500 100 001 s is 1 ns too late for 0.5.
TIMES_S = (-1.0, 0.0, 0.013, 0.11, 0.4, 0.4994, 0.4996, 0.5, 0.5001, 0.500_100_001, 0.5002, 0.51,
           0.56, 0.62, 0.7, 1.0, 1.46, 2.0, 2.2, 2.3, 9.0)


def _views() -> Iterator[str]:
    """A line for each metric of each view: where its value changes between TIMES_S."""
    for name, view in (("idle", idle()), ("with losses", with_losses())):
        for metric, definition in METRICS.items():
            values = [(at_s, definition.value(view, at_s)) for at_s in TIMES_S]
            changed = [pair for before, pair in zip([(None, None), *values], values)
                       if before[1] != pair[1]]
            yield f"{name}: {metric}: " + ", ".join(
                f"{round(value, 6)} at {at_s}" for at_s, value in changed)


def text() -> str:
    """A paragraph for each exchange, then a line for each of SENT_AGAIN and of the views."""
    exchanges = "\n".join("".join(f"{line}\n" for line in (name, *_lines(make().read())))
                          for name, make in EXCHANGES.items())
    causes = []
    for name, (talk, arp_ms) in SENT_AGAIN.items():
        explained = explain_retransmissions(talk.read(), arp_ms)
        causes.append(f"{name}: " + ", ".join(str(again.cause) for again in explained))
    last = answer_twice().read(0, 1000).latency_ms
    return exchanges + "\n".join((
        "", f"of the last 1000 bytes: latency {last} ms", "", *causes, "", *_views(), ""))


def _lines(seen: Exchange) -> Iterator[str]:
    """What an exchange shows. A segment is named by its relative sequence number."""
    yield (f"  handshake {seen.handshake_ms} ms, sent again {seen.handshake_retransmissions},"
           f" lost {seen.handshake_was_lost}; of {len(seen.syns)}, {len(seen.syn_acks)}")
    yield f"  packets at the client {len(seen.at_client)}, at the server {len(seen.at_server)}"
    for name, segments in (
            ("flight", seen.first_flight), ("arrivals", seen.flight_arrivals),
            ("probes", seen.probes), ("sent again", seen.retransmissions),
            ("FINs again", seen.fin_retransmissions),
            ("by the client again", seen.client_retransmissions),
            ("lost to the client", seen.lost_to_client),
            ("lost to the server", seen.lost_to_server), ("lost data", seen.lost_data)):
        if segments:
            yield f"  {name}: {_numbers(segments)}"
    for name, value in (
            ("latency, ms", seen.latency_ms), ("kbit/s", seen.bandwidth_kbps),
            ("kbit/s behind one", bandwidth_after_burst(seen, 1)),
            ("kbit/s behind two", bandwidth_after_burst(seen, 2)),
            ("RTT over 80 and 800 kbit/s, ms", observed_rtt_ms(seen, 80, 800)),
            ("RTT over 12.151 and 80 kbit/s, ms", observed_rtt_ms(seen, 12.151, 80)),
            ("the server's RTT, µs", server_rtt_us(seen)), ("phase, ns", clock_phase_ns(seen)),
            ("the client's round trip, ns", round_trip_ns(seen.at_client, to_client=False)),
            ("the server's round trip, ns", round_trip_ns(seen.at_server, to_client=True)),
            ("messages", find_messages(seen, False)), ("over TLS", find_messages(seen, True)),
            ("after the first", find_messages(seen, False, earlier_requests=1))):
        if value is not None:
            yield f"  {name}: {round(value, 6) if isinstance(value, float) else value}"


def _numbers(segments: tuple[Segment, ...]) -> str:
    return ", ".join(str(segment.seq) for segment in segments)
