"""Ways to tamper with a stored trial: with its parameters, its reports or its captures.

Each function here returns a Change, or is one. A Change takes a stored trial and returns another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from firstflight.judge.records import FINISHED_BYTES, split_text
from tests.golden import stored
from tests.golden.stored import Packet, Stored

Change = Callable[[Stored], Stored]
# The first bytes of the TLS record of a client's hello, and of a record with application data.
HELLO, NO_HELLO = b"\x16\x03\x01", b"\x17\x03\x01"
# Bits of TCP's flags. Then where flags, window and a SYN's options stand in a frame: behind 14
# bytes of Ethernet and 20 of IPv4.
SYN, ACK = 0x02, 0x10
FLAGS, WINDOW, OPTIONS = 47, slice(48, 50), slice(54, 74)


def both(first: Change, second: Change) -> Change:
    """The second change of what the first one made."""
    return lambda trial: second(first(trial))


def requested(**fields: Any) -> Change:
    """Other parameters were requested."""
    return lambda trial: trial.requested(**fields)


def said(part: str, **values: Any) -> Change:
    """The client ("fetch") or the server ("server") reported other values."""
    return lambda trial: trial.said(part, **values)


def later(part: str, name: str, by: float, factor: float = 1.0) -> Change:
    """A reported time is multiplied by factor, and then by is added, in the unit of the time."""
    return lambda trial: trial.said(part, **{name: trial.observation[part][name] * factor + by})


def tls(**values: Any) -> Change:
    """The server reported other values of its TLS session."""
    return lambda trial: trial.said("server", tls={**trial.observation["server"]["tls"], **values})


def shorter_flight(by_bytes: int) -> Change:
    """The last write of the server's flight was shorter than the server reports."""
    def change(trial: Stored) -> Stored:
        *writes, last = trial.observation["server"]["tls"]["flight"]
        return tls(flight=[*writes, last - by_bytes])(trial)
    return change


def longer_queue(by_packets: int) -> Change:
    """The requested queue holds by_packets more than the trial's."""
    return lambda trial: trial.requested(
        queue_packets=trial.trial.queue_packets + by_packets)


def client_said(**values: Any) -> Change:
    """The kernel of an uploading client reported other values of the client's socket."""
    return lambda trial: trial.said(
        "fetch", socket={**trial.observation["fetch"]["socket"], **values})


def recorded(most_bytes: int) -> Change:
    """TLS records hold at most most_bytes of plaintext each.

    That concerns the records that follow the server's Finished on the last connection.
    """
    def change(trial: Stored) -> Stored:
        *others, (port, runs) = trial.observation["records"]
        lengths = [length for length, count in runs for _ in range(count)]
        begins = lengths.index(FINISHED_BYTES) + 1
        cut = [part for length in lengths[begins:] for part in split_text(length, most_bytes)]
        new_runs = [[length, 1] for length in (*lengths[:begins], *cut)]
        return replace(trial, observation={
            **trial.observation, "records": [*others, [port, new_runs]]})
    return change


def without_ticket(trial: Stored) -> Stored:
    """The record that follows the server's Finished is missing on the last connection.

    The sum of the bytes stays: the last record has those of the missing one.
    """
    *others, (port, runs) = trial.observation["records"]
    lengths = [length for length, count in runs for _ in range(count)]
    ticket_bytes = lengths.pop(lengths.index(FINISHED_BYTES) + 1)
    lengths[-1] += ticket_bytes
    new_runs = [[length, 1] for length in lengths]
    return replace(trial, observation={
        **trial.observation, "records": [*others, [port, new_runs]]})


def without_records(trial: Stored) -> Stored:
    """No TLS records were reported."""
    return replace(trial, observation={**trial.observation, "records": []})


def resized(size: int) -> Change:
    """Parameters, client and server agree on a request's size, and the packets have another."""
    return lambda trial: client_said(request_bytes=size)(
        trial.requested(request_bytes=size).said("server", request_body_bytes=size))


def from_upload(number: int, by_ns: int) -> Change:
    """Both captures are by_ns later from one segment of the client's upload on."""
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
    """Other counts of dropped packets were reported.

    queue and random: on the way to the client, by the full queue and by random loss.
    to_server: by the full queue on the way to the server.
    """
    return lambda trial: replace(trial, observation={**trial.observation, "drops": {
        "to_client": {"queue": queue, "random": random},
        "to_server": {"queue": to_server, "random": 0}}})


def syn(edit: Callable[[bytes], bytes], answers: bool = False) -> Change:
    """Each SYN is edited in both captures. answers: each SYN-ACK instead."""
    def changed(packet: Packet) -> Packet:
        flags = packet.frame[FLAGS]
        if flags & SYN and bool(flags & ACK) == answers:
            return replace(packet, frame=edit(packet.frame))
        return packet
    return lambda trial: trial.captured(*(
        [changed(packet) for packet in stored.read(capture)]
        for capture in (trial.client, trial.server)))


def offering(edit: Callable[[bytes], bytes], number: int) -> Change:
    """The client's packets, without the first number of them, are edited in both captures."""
    def changed(packets: list[Packet]) -> list[Packet]:
        from_client = [packet for packet in packets if not packet.to_client][number:]
        return [replace(packet, frame=edit(packet.frame)) if packet in from_client else packet
                for packet in packets]
    return lambda trial: trial.captured(*(
        changed(stored.read(capture)) for capture in (trial.client, trial.server)))


def option(old: str, new: str) -> Callable[[bytes], bytes]:
    """An edit of a frame: new stands where old stood in TCP's options, both in hexadecimal."""
    def edit(frame: bytes) -> bytes:
        options = frame[OPTIONS]
        assert bytes.fromhex(old) in options, options.hex()
        return frame[:OPTIONS.start] + options.replace(
            bytes.fromhex(old), bytes.fromhex(new), 1) + frame[OPTIONS.stop:]
    return edit


def flags(added: int) -> Callable[[bytes], bytes]:
    """An edit of a frame: these bits are set in TCP's flags as well."""
    return lambda frame: frame[:FLAGS] + bytes([frame[FLAGS] | added]) + frame[FLAGS + 1:]


def window(value: int) -> Callable[[bytes], bytes]:
    """An edit of a frame: TCP's header has this window, before scaling."""
    return lambda frame: frame[:WINDOW.start] + value.to_bytes(2, "big") + frame[WINDOW.stop:]


def moved(side: str, number: int, by_ns: int) -> Change:
    """The server's segment of data with this number, from 0, is by_ns later in one capture."""
    def change(trial: Stored) -> Stored:
        packets = stored.read(getattr(trial, side))
        moved_packet = stored.nth_data(packets, number)
        return trial.captured(**{side: [
            replace(packet, time_ns=packet.time_ns + by_ns) if packet is moved_packet else packet
            for packet in packets]})
    return change


def without(side: str, number: int) -> Change:
    """The server's segment of data with this number, from 0, is missing in one capture."""
    def change(trial: Stored) -> Stored:
        packets = stored.read(getattr(trial, side))
        packets.remove(stored.nth_data(packets, number))
        return trial.captured(**{side: packets})
    return change


def cut(side: str, size: int, is_reported: bool = False) -> Change:
    """The last size bytes of a capture are missing.

    is_reported: the worker reported the number of bytes that are left, not of all of them.
    """
    def change(trial: Stored) -> Stored:
        left = getattr(trial, side)[:-size]
        changed = trial.captured()
        if is_reported:
            changed.observation["captures"][side]["bytes"] = len(left)
        return replace(changed, **{side: left})
    return change


def lost_at_end(side: str) -> Change:
    """The last packet of a capture is missing, and the worker counted it."""
    return lambda trial: replace(trial, **{side: stored.write(
        stored.read(getattr(trial, side))[:-1])})


def sent_again(number: int, later_ms: float) -> Change:
    """The server retransmits the segment of data with this number, later_ms after it sent it."""
    return lambda trial: stored.sent_again(trial, number, later_ms)


def without_packet(number: int) -> Change:
    """The packet with this number, of any kind, is missing in the server's capture."""
    def change(trial: Stored) -> Stored:
        packets = stored.read(trial.server)
        del packets[number]
        return trial.captured(server=packets)
    return change


def without_last_acknowledgements(trial: Stored) -> Stored:
    """The client's packets among the last four of the server's capture are missing there."""
    packets = stored.read(trial.server)
    end_ns = packets[-4].time_ns
    return trial.captured(server=[packet for packet in packets
                                  if packet.to_client or packet.time_ns < end_ns])


def without_hello(trial: Stored) -> Stored:
    """No packet of the client's capture has the first bytes of a TLS handshake."""
    return trial.captured(client=[
        replace(packet, frame=packet.frame.replace(HELLO, NO_HELLO, 1))
        for packet in stored.read(trial.client)])


def from_data(number: int, by_ns: int) -> Change:
    """Both captures are by_ns later from one of the server's segments of data on."""
    def change(trial: Stored) -> Stored:
        copies = []
        for capture in (trial.client, trial.server):
            packets = stored.read(capture)
            first = packets.index(stored.nth_data(packets, number))
            copies.append(
                [replace(packet, time_ns=packet.time_ns + by_ns * (place >= first))
                 for place, packet in enumerate(packets)])
        return trial.captured(*copies)
    return change


def shifted(by_ns: int) -> Change:
    """All packets of both captures are by_ns later."""
    return lambda trial: trial.captured(*(
        [replace(packet, time_ns=packet.time_ns + by_ns) for packet in stored.read(capture)]
        for capture in (trial.client, trial.server)))


def swapped(other: str) -> Change:
    """The client reported the times of another stored trial."""
    fetch = stored.load(other).observation["fetch"]
    return said("fetch", **{name: fetch[name] for name in ("connect_ms", "first_byte_ms",
                                                          "total_ms")})


def answered_later(ms: float) -> Change:
    """All that the server sends after its first segment of data is ms later in both captures.

    A server that waits for the client's Finished would send so late.
    """
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
