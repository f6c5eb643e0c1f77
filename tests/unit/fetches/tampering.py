"""Ways to tamper with a stored trial, as if the network, a report or a capture had been another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from firstflight.judge.records import FINISHED_BYTES, split
from tests.golden import stored
from tests.golden.stored import Packet, Stored

Change = Callable[[Stored], Stored]
# As the record of a client's hello begins, and one of another kind.
HELLO, NO_HELLO = b"\x16\x03\x01", b"\x17\x03\x01"
SYN, ACK, FLAGS, WINDOW, OPTIONS = 0x02, 0x10, 47, slice(48, 50), slice(54, 74)


def both(first: Change, second: Change) -> Change:
    """Two changes, one after the other."""
    return lambda trial: second(first(trial))


def requested(**fields: Any) -> Change:
    return lambda trial: trial.requested(**fields)


def said(part: str, **values: Any) -> Change:
    return lambda trial: trial.said(part, **values)


def later(part: str, name: str, by: float, factor: float = 1.0) -> Change:
    return lambda trial: trial.said(part, **{name: trial.observation[part][name] * factor + by})


def tls(**values: Any) -> Change:
    return lambda trial: trial.said("server", tls={**trial.observation["server"]["tls"], **values})


def shorter_flight(by_bytes: int) -> Change:
    """The last write of the server's flight was shorter than the server reports."""
    def change(trial: Stored) -> Stored:
        *writes, last = trial.observation["server"]["tls"]["flight"]
        return tls(flight=[*writes, last - by_bytes])(trial)
    return change


def longer_queue(by_packets: int) -> Change:
    """A queue was requested that holds more than the trial's."""
    return lambda trial: trial.requested(
        queue_packets=trial.trial.queue_packets + by_packets)


def client_said(**values: Any) -> Change:
    """The kernel of a client that uploads reports something else of its socket."""
    return lambda trial: trial.said(
        "fetch", socket={**trial.observation["fetch"]["socket"], **values})


def recorded(most_bytes: int) -> Change:
    """Records of at most so much text behind the server's Finished, on the last connection."""
    def change(trial: Stored) -> Stored:
        *others, (port, runs) = trial.observation["records"]
        lengths = [length for length, count in runs for _ in range(count)]
        begins = lengths.index(FINISHED_BYTES) + 1
        cut = [part for length in lengths[begins:] for part in split(length, most_bytes)]
        of_all = [[length, 1] for length in (*lengths[:begins], *cut)]
        return replace(trial, observation={
            **trial.observation, "records": [*others, [port, of_all]]})
    return change


def without_ticket(trial: Stored) -> Stored:
    """The record behind the server's Finished is missing on the last connection.

    Nobody misses its bytes: the next record has them.
    """
    *others, (port, runs) = trial.observation["records"]
    lengths = [length for length, count in runs for _ in range(count)]
    place = lengths.index(FINISHED_BYTES) + 1
    ticket = lengths.pop(place)
    lengths[-1] += ticket
    return replace(trial, observation={
        **trial.observation, "records": [*others, [port, [[each, 1] for each in lengths]]]})


def without_records(trial: Stored) -> Stored:
    return replace(trial, observation={**trial.observation, "records": []})


def resized(size: int) -> Change:
    """All agree on a request of another size than the packets have."""
    return lambda trial: client_said(request_bytes=size)(
        trial.requested(request_bytes=size).said("server", request_body_bytes=size))


def from_upload(number: int, by_ns: int) -> Change:
    """The client is late from one segment of its upload on, and with it all that follows."""
    def change(trial: Stored) -> Stored:
        copies = []
        for capture in (trial.client, trial.server):
            packets = stored.read(capture)
            sent = [packet for packet in packets if not packet.to_client and packet.payload_bytes]
            first = packets.index(sent[number])
            copies.append([replace(packet, time_ns=packet.time_ns + by_ns * (place >= first))
                           for place, packet in enumerate(packets)])
        return trial.captured(*copies)
    return change


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


def offering(edit: Callable[[bytes], bytes], number: int) -> Change:
    """The client's packets from one of them on are others in both captures."""
    def changed(packets: list[Packet]) -> list[Packet]:
        from_client = [packet for packet in packets if not packet.to_client][number:]
        return [replace(packet, frame=edit(packet.frame)) if packet in from_client else packet
                for packet in packets]
    return lambda trial: trial.captured(*(
        changed(stored.read(capture)) for capture in (trial.client, trial.server)))


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
    """A packet of data is missing at one side."""
    def change(trial: Stored) -> Stored:
        packets = stored.read(getattr(trial, side))
        packets.remove(stored.nth_data(packets, number))
        return trial.captured(**{side: packets})
    return change


def cut(side: str, size: int, is_reported: bool = False) -> Change:
    """The last bytes of a capture are missing. is_reported: its worker counted what is left."""
    def change(trial: Stored) -> Stored:
        left = getattr(trial, side)[:-size]
        changed = trial.captured()
        if is_reported:
            changed.observation["captures"][side]["bytes"] = len(left)
        return replace(changed, **{side: left})
    return change


def lost_at_end(side: str) -> Change:
    """The capture ends a whole packet before what its worker counted."""
    return lambda trial: replace(trial, **{side: stored.write(
        stored.read(getattr(trial, side))[:-1])})


def sent_again(number: int, later_ms: float) -> Change:
    """The server sends a segment of data once more, so much later."""
    return lambda trial: stored.sent_again(trial, number, later_ms)


def without_packet(number: int) -> Change:
    """A packet of any kind did not arrive at the server."""
    def change(trial: Stored) -> Stored:
        packets = stored.read(trial.server)
        del packets[number]
        return trial.captured(server=packets)
    return change


def without_last_acknowledgements(trial: Stored) -> Stored:
    """What the client sent at the end did not arrive at the server."""
    packets = stored.read(trial.server)
    end_ns = packets[-4].time_ns
    return trial.captured(server=[packet for packet in packets
                                  if packet.to_client or packet.time_ns < end_ns])


def without_hello(trial: Stored) -> Stored:
    """No packet at the client begins as a TLS handshake does."""
    return trial.captured(client=[
        replace(packet, frame=packet.frame.replace(HELLO, NO_HELLO, 1))
        for packet in stored.read(trial.client)])


def from_data(number: int, by_ns: int) -> Change:
    """The server is late from one segment on, and with it all that follows at both hosts."""
    def change(trial: Stored) -> Stored:
        copies = []
        for capture in (trial.client, trial.server):
            packets = stored.read(capture)
            first = packets.index(stored.nth_data(packets, number))
            copies.append(
                [replace(packet, time_ns=packet.time_ns + (by_ns if place >= first else 0))
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


def answered_later(ms: float) -> Change:
    """All that the server sends behind its handshake waits, for the client's Finished perhaps."""
    def change(trial: Stored) -> Stored:
        def moved(packets: list[Packet]) -> list[Packet]:
            port = trial.observation["fetch"]["port"]
            sent = [packet for packet in packets if packet.to_client
                    and int.from_bytes(packet.frame[36:38], "big") == port]
            flight = next(place for place, packet in enumerate(sent) if packet.payload_bytes)
            late = sent[flight + 1:]
            return [replace(packet, time_ns=packet.time_ns + round(ms * 1e6))
                    if packet in late else packet for packet in packets]
        return trial.captured(moved(stored.read(trial.client)), moved(stored.read(trial.server)))
    return change
