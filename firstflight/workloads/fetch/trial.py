"""Trial: all parameters of one fetch, as plain data.

Its base classes have the parameters, grouped by subject.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from firstflight.base.words import format_lossless
from firstflight.net.timeouts import longest_s
from firstflight.parameters import (NETWORK, PARAMETERS, PUBLISHED, RESPONSE, SERVER, TCP, TLS,
                                        default)
from firstflight.setting.kernels import kernel_tag
from firstflight.setting.limits import WHAT_IF
from firstflight.setting.server import HERE, SIZE
from firstflight.setting.setting import Setting
from firstflight.setting.tags import tags_of
from firstflight.testbed.messages import Job
from firstflight.workloads.fetch.response import ResponseParameters

# The first columns of trials.csv, in a fixed order. The others follow in the order of PARAMETERS.
_FIRST = (
    "scenario", "rtt_ms", "bandwidth_kbps", "uplink_kbps", "queue_packets", "loss_percent",
    "initcwnd", "initrwnd", "congestion_control", "client", "response_bytes", "repeat", "seed",
    "burst_bytes", "gap_ms", "earlier_bytes", "part", "sample", "key_rtt_ms", "key_bandwidth_kbps",
    "weight", "jitter_ms", "loss_burst", "qdisc", "queue_from")


@dataclass(frozen=True, kw_only=True)
class DrawnParameters:
    """Where in a population a trial comes from (workloads.fetch.scenario.rows).

    part: the population or variant;
    sample: the number of the row in it.
    key_rtt_ms, key_bandwidth_kbps: decide on the paper's bucket of the response.
    weight: the share of the population's responses that it stands for, in the week of its window.
    The baseline's week has weights of its own: a mean by this column compares two weeks. For the
    same responses under both windows see "Two weeks" in docs/STUDIES.md.
    """

    part: str = ""
    sample: int = 0
    key_rtt_ms: float | None = None
    key_bandwidth_kbps: float | None = None
    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial(Setting, ResponseParameters, DrawnParameters):
    """All parameters of one fetch: of the network, TCP, TLS, server and client.

    repeat: 1, 2, … for repeated measurements of one setting.
    what_if: the limits of another trial
    that this one lifts to find a reason (setting.limits); "" for requested trials.
    """

    PATTERNS: ClassVar[dict[str, str]] = {"what_if": WHAT_IF}

    COLUMNS: ClassVar[tuple[str, ...]] = (*_FIRST, *(
        row.field for row in PARAMETERS.values() if row.field not in _FIRST))

    scenario: str
    repeat: int
    what_if: str = ""

    @property
    def id(self) -> str:
        """The trial's name in files and messages. No other trial of the run has it."""
        if self.part:  # the row of the population has the other parameters
            is_usual = self.congestion_control == default("congestion_control")
            control = "" if is_usual else f"-{self.congestion_control}"
            return (f"{self.part}-{self.sample}-iw{self.initcwnd}{control}{kernel_tag(self)}"
                    f"-{self.repeat}")

        drawn = stages = ""
        if self.drawn_rtt_ms is not None:
            drawn = f"-drawn{format_lossless(self.drawn_rtt_ms)}"
        if self.gap_ms:
            stages = f"-burst{self.burst_bytes}-gap{format_lossless(self.gap_ms)}"
        seed = f"-seed{self.seed}" if self.is_random else ""
        earlier = f"-after{self.earlier_bytes}B" if self.earlier_bytes else ""
        system = f"-{self.system}" if self.system != HERE else ""
        return (f"rtt{format_lossless(self.rtt_ms)}-bw{format_lossless(self.bandwidth_kbps)}"
                f"-up{format_lossless(self.uplink_kbps)}-q{self.queue_packets}"
                f"{tags_of(self, NETWORK)}"
                f"{'-' if self.queue_from else ''}{self.queue_from}{tags_of(self, PUBLISHED)}{seed}"
                f"-iw{self.initcwnd}-rw{self.initrwnd}{tags_of(self, TCP)}"
                f"-{self.congestion_control}-{self.client}{earlier}{tags_of(self, RESPONSE)}"
                f"{tags_of(self, TLS)}{tags_of(self, SERVER)}{system}"
                f"-{self.response_bytes}B{stages}-{self.repeat}{drawn}"
                f"{'-without-' if self.what_if else ''}{self.what_if}")

    @property
    def is_secure(self) -> bool:
        """Whether the fetch goes over TLS."""
        return bool(self.chain_bytes or self.own and self.own.ca)

    @property
    def is_modelled(self) -> bool:
        """Whether the model of TCP covers all parameters that differ from their defaults."""
        return all(map(self.is_default, _UNMODELLED))

    @property
    def deadline_s(self) -> float:
        """After how many seconds of the network's time the client gives up.

        That is enough to retransmit the handshake, for every round trip that slow start may need,
        and to send all data three times. TCP also has the time that it tries to retransmit.
        """
        sent_bytes, uploaded_bytes = self.sent_bytes, self.uploaded_bytes
        return (60 + 20 * self.rtt_ms * (1 + self.kept) / 1000
                + 3 * sent_bytes * 8 / (min(self.bandwidth_kbps, self.down_kbps) * 1000)
                + 3 * uploaded_bytes * 8 / (self.up_kbps * 1000)
                + (self.gap_ms + self.idle_ms) / 1000
                + longest_s(sent_bytes + uploaded_bytes, self.rtt_ms, self.mss))

    @property
    def sent_bytes(self) -> int:
        """The most bytes from the server without headers: all responses, and two handshakes."""
        return self.response_bytes + sum(self.before) + 2 * self.chain_bytes

    @property
    def uploaded_bytes(self) -> int:
        """The bytes of the bodies of all requests."""
        return self.request_bytes * (1 + len(self.before))

    def job(self) -> Job:
        """The trial as the job that a worker reads."""
        job = self.job_over("fetch", self.id, self.deadline_s)
        job["client"] = self.client
        job["paths"] = self.paths
        if self.request_bytes:
            job["request_bytes"] = self.request_bytes
            options = job.setdefault("options", {})
            options["client_initcwnd"] = self.client_initcwnd
            options["client_congestion_control"] = self.congestion_control
        if self.is_secure:
            job["tls"] = self.tls_settings(self._apart_s if self.resumed else 0)
        if self.idle_ms:
            job["think_s"] = [*(0.0 for _ in self.before), self.idle_ms / 1000]
        return job

    @property
    def _apart_s(self) -> int:
        """Whole seconds from the first connection to a resumed one.

        They are enough for the last packets of the first connection to arrive.
        """
        return math.ceil(2 + 10 * self.rtt_ms / 1000
                         + 2 * self.chain_bytes * 8 / (self.bandwidth_kbps * 1000))

    @property
    def paths(self) -> list[str]:
        """The paths to fetch, in order. The last fetch is the measured one.

        Before a resumed session, another connection fetches one byte.
        """
        if self.own:
            to_resume = (1,) if self.resumed else ()
            sizes = (*self.before, *to_resume, self.response_bytes)
            return [self.own.url_path.replace(SIZE, str(size)) for size in sizes]

        options = self.write_options
        if self.send_buffer_bytes:
            options.append(f"sndbuf={self.send_buffer_bytes}")
        paths = [_path(size, options) for size in self.before]
        if self.resumed:
            paths.append("/1")
        return [*paths, _path(self.response_bytes, [*self.stages, *options])]


def _path(size: int, options: Sequence[str]) -> str:
    """The path of a response of so many bytes at server.py. options: the parts of its query."""
    return f"/{size}{'?' if options else ''}{'&'.join(options)}"


# Parameters whose effect the model of TCP does not compute.
_UNMODELLED = tuple(row for row in PARAMETERS.values() if not row.modelled)
