"""Trials as they were measured in the guest, to judge again, and to tamper with.

Each folder of trials/ holds what one trial left: trial.json (what was asked,
and the worker's observation) and the captures of both hosts.
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
    """One record of a capture."""

    time_ns: int
    frame: bytes
    wire_bytes: int

    @property
    def payload_bytes(self) -> int:
        return self.wire_bytes - 14 - 20 - (self.frame[46] >> 4) * 4

    @property
    def to_client(self) -> bool:
        return int.from_bytes(self.frame[34:36], "big") in SERVER_PORTS

    def retransmitted(self, later_ns: int, identification: int) -> Packet:
        """The same packet sent once more, as a new one on the wire."""
        frame = self.frame[:18] + struct.pack(">H", identification) + self.frame[20:]
        return Packet(self.time_ns + later_ns, frame, self.wire_bytes)


@dataclass(frozen=True)
class Stored:
    """One trial; the captures without their file headers."""

    trial: Trial
    observation: dict[str, Any]
    client: bytes
    server: bytes

    def judge(self, exact: bool = True, known_kernel: bool = True) -> Record:
        return judge_fetch(self.trial, self.observation, self.client, self.server, exact=exact,
                     sysctls={}, known_kernel=known_kernel)

    def requested(self, **columns: Any) -> Stored:
        """As if something else had been asked for."""
        return replace(self, trial=replace(self.trial, **columns))

    def said(self, part: str, **values: Any) -> Stored:
        """As if fetch or server had said something else."""
        observation = copy.deepcopy(self.observation)
        observation[part].update(values)
        return replace(self, observation=observation)

    def captured(self, client: list[Packet] | None = None,
                 server: list[Packet] | None = None) -> Stored:
        """As if the captures had held these packets."""
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
    packets, position = [], 0
    while position < len(capture):
        seconds, nanoseconds, kept, wire_bytes = struct.unpack_from("<IIII", capture, position)
        frame = capture[position + 16:position + 16 + kept]
        packets.append(Packet(seconds * 10**9 + nanoseconds, frame, wire_bytes))
        position += 16 + kept
    return packets


def write(packets: list[Packet]) -> bytes:
    return b"".join(struct.pack("<IIII", *divmod(packet.time_ns, 10**9), len(packet.frame),
                                packet.wire_bytes) + packet.frame
                    for packet in sorted(packets, key=lambda packet: packet.time_ns))


def nth_data(packets: list[Packet], number: int) -> Packet:
    return [packet for packet in packets if packet.to_client and packet.payload_bytes][number]


def sent_again(trial: Stored, number: int, later_ms: float) -> Stored:
    """As if the server had sent a segment of data twice."""
    copies = [[*packets, nth_data(packets, number).retransmitted(round(later_ms * 1e6), 65000)]
              for packets in (read(trial.client), read(trial.server))]
    return trial.captured(*copies)
