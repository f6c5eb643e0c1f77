"""Stored trials as they were measured in the guest, which tests judge again and tamper with.

Each folder of trials/ holds what one trial left: trial.json, with what was requested and what the
worker observed, and the captures of both hosts.
"""

from __future__ import annotations

import copy
import json
import struct
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from firstflight.net.pcap import HEADER as PCAP_HEADER
from firstflight.net.segments import SERVER_PORTS
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.trial import Trial
from firstflight.workloads.fetch.verify.verify import judge_fetch

FOLDER = Path(__file__).resolve().parent / "trials"
NAMES = sorted(path.name for path in FOLDER.iterdir())


@dataclass(frozen=True)
class Packet:
    """One packet of a capture."""

    time_ns: int
    frame: bytes  # the part that the capture kept
    wire_bytes: int  # how many bytes the whole frame had

    @property
    def payload_bytes(self) -> int:
        """The bytes after the headers of Ethernet, IP and TCP."""
        return self.wire_bytes - 14 - 20 - (self.frame[46] >> 4) * 4

    @property
    def to_client(self) -> bool:
        return int.from_bytes(self.frame[34:36], "big") in SERVER_PORTS

    def retransmitted(self, later_ns: int, identification: int) -> Packet:
        """The packet as if it were sent again, so much later, with another IP identification."""
        frame = self.frame[:18] + struct.pack(">H", identification) + self.frame[20:]
        return Packet(self.time_ns + later_ns, frame, self.wire_bytes)


@dataclass(frozen=True)
class Stored:
    """A stored trial."""

    trial: Trial
    observation: dict[str, Any]
    client: bytes  # the client's capture, without the header of its file
    server: bytes  # the server's capture, likewise

    def judge(self, exact: bool = True, known_kernel: bool = True) -> Record:
        return judge_fetch(self.trial, self.observation, self.client, self.server, exact=exact,
                           sysctls={}, known_kernel=known_kernel)

    def requested(self, **columns: Any) -> Stored:
        """The same trial as if these columns had been requested."""
        return replace(self, trial=replace(self.trial, **columns))

    def said(self, part: str, **values: Any) -> Stored:
        """The same trial as if a part, "fetch" or "server", had reported other values."""
        observation = copy.deepcopy(self.observation)
        observation[part].update(values)
        return replace(self, observation=observation)

    def captured(self, client: list[Packet] | None = None,
                 server: list[Packet] | None = None) -> Stored:
        """The same trial as if the captures had these packets; None leaves a capture as it is."""
        changed = {side: write(packets) for side, packets
                   in (("client", client), ("server", server)) if packets is not None}
        observation = copy.deepcopy(self.observation)
        for side, packets in changed.items():
            observation["captures"][side]["bytes"] = len(packets)
        return replace(self, observation=observation, **changed)


def load(name: str) -> Stored:
    content = json.loads((FOLDER / name / "trial.json").read_text())
    client, server = ((FOLDER / name / f"{side}.pcap").read_bytes()[len(PCAP_HEADER):]
                      for side in ("client", "server"))
    return Stored(Trial(**content["trial"]), content["observation"], client, server)


def read(capture: bytes) -> list[Packet]:
    """The packets of a capture that has no file header."""
    packets, position = [], 0
    while position < len(capture):
        seconds, nanoseconds, kept, wire_bytes = struct.unpack_from("<IIII", capture, position)
        frame = capture[position + 16:position + 16 + kept]
        packets.append(Packet(seconds * 10**9 + nanoseconds, frame, wire_bytes))
        position += 16 + kept
    return packets


def write(packets: list[Packet]) -> bytes:
    """A capture of these packets in the order of their times, without a file header."""
    return b"".join(struct.pack("<IIII", *divmod(packet.time_ns, 10**9), len(packet.frame),
                                packet.wire_bytes) + packet.frame
                    for packet in sorted(packets, key=lambda packet: packet.time_ns))


def nth_data(packets: list[Packet], number: int) -> Packet:
    """The server's packet with data that has this number, from 0."""
    return [packet for packet in packets if packet.to_client and packet.payload_bytes][number]


def sent_again(trial: Stored, number: int, later_ms: float) -> Stored:
    """The trial as if the server had sent a segment of data again, so much later.

    number: of the segment, from 0.
    """
    copies = [[*packets, nth_data(packets, number).retransmitted(round(later_ms * 1e6), 65000)]
              for packets in (read(trial.client), read(trial.server))]
    return trial.captured(*copies)
