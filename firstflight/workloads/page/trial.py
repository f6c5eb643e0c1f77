"""The trial of a page: one setting and one window, as plain data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from firstflight.base.words import format_lossless
from firstflight.net.headers import MSS
from firstflight.net.timeouts import longest_s
from firstflight.parameters import NETWORK, PARAMETERS, SERVER, TCP, TLS
from firstflight.setting.limits import WHAT_IF
from firstflight.setting.server import BUILTIN, HERE, HTTP_2
from firstflight.setting.setting import Setting
from firstflight.setting.tags import tags_of
from firstflight.testbed.site_store import DIGEST
from firstflight.testbed.messages import BROWSED_PAGE, CHROMIUM, LIBCURL, Job
from firstflight.workloads.page.objects import Certificate, PageObject, carriers_of

# The parameters of a setting that sweeps of pages have as lists. The client of a page does not fix
# its receive window, and sends no early data. HTB is only in published set-ups of fetches.
OF_SETTING = tuple(
    name for name, row in PARAMETERS.items()
    if row.subject in (NETWORK, TCP, TLS, SERVER) and name not in (
        "initcwnd", "htb_burst_bytes", "rwnd_growth", "early_data_bytes"))
# A page in a browser gets less time than TCP takes to give up: a page that loads itself again and
# again would load a thousand times until then. The deadline allows for these instead:
BROWSED_REQUESTS = 100  # requests that take turns
MOST_CHAINS = 50  # certificate chains that are sent
BROWSER_S = 60.0  # for lost packets, and for the waits of a server
# Wall time in a guest of a page, and of each of its objects and segments, from runs on two cores.
GUEST_PAGE_S, GUEST_OBJECT_S, GUEST_SEGMENT_S = 0.08, 0.003, 0.0003
BROWSER_PAGE_S = 1.5  # wall time that a browser takes in addition
CHAIN_BYTES = 4000  # of the certificates over HTTP/2 where none are named: the Web's median


@dataclass(frozen=True, kw_only=True)
class PageTrial(Setting):
    """One page over one setting.

    part: the sweep.
    page: the name of the page.
    objects: its objects, first the document; none in a browser, which finds them itself.
    shared_certificates: certificates that several of its hosts share; each other host has its own.
    connections: how many the client opens to a host, 1 over HTTP/2.
    repeat: 1, 2, … for repeated measurements of one setting.
    site: the digest of the recorded site (testbed.site_store), "" without a browser.
    site_bytes: bytes of all recorded bodies.
    phase_ms: when the load begins, after a frame of the browser.
    what_if: the limits of another trial that this one lifts to find a reason (setting.limits); ""
        for requested trials.
    """

    COLUMNS: ClassVar[tuple[str, ...]] = (
        "scenario", "part", "page", "rtt_ms", "bandwidth_kbps", "uplink_kbps", "queue_packets",
        "loss_percent", "http", "chain_bytes", "connections", "server", "initcwnd", "initrwnd",
        "congestion_control", "repeat", "seed", "objects",
        "shared_certificates", "site", "site_bytes")
    PATTERNS: ClassVar[dict[str, str]] = {"site": f"({DIGEST.pattern})?", "what_if": WHAT_IF}
    scenario: str
    part: str
    page: str
    connections: int
    objects: tuple[PageObject, ...]
    repeat: int
    shared_certificates: tuple[Certificate, ...] = ()
    site: str = ""
    site_bytes: int = 0
    phase_ms: float | None = None
    what_if: str = ""

    @property
    def id(self) -> str:
        """Names the trial in files and messages; unique within a scenario."""
        page = f"{self.part}-{self.page}"
        if self.site:
            page += f"-chromium-{self.site[:8]}"

        network = f"-rtt{format_lossless(self.rtt_ms)}-bw{format_lossless(self.bandwidth_kbps)}"
        if self.uplink_kbps != self.bandwidth_kbps:
            network += f"-up{format_lossless(self.uplink_kbps)}"
        network += f"-q{self.queue_packets}"
        if self.queue_from:
            network += f"-{self.queue_from}"
        network += tags_of(self, NETWORK)
        if self.is_random:
            network += f"-seed{self.seed}"

        hosts = (f"-http{self.http}-c{self.connections}-{self.server}-{self.congestion_control}"
                 f"-rw{self.initrwnd}{tags_of(self, TCP)}{tags_of(self, TLS)}")
        if self.system != HERE:  # whose programs run (setting.server)
            hosts += f"-{self.system}"

        run = f"-iw{self.initcwnd}-{self.repeat}"
        if self.drawn_rtt_ms is not None:
            run += f"-drawn{format_lossless(self.drawn_rtt_ms)}"
        if self.what_if:
            run += f"-without-{self.what_if}"
        return page + network + hosts + run

    @property
    def client(self) -> str:
        """What loads the page."""
        return CHROMIUM if self.site else LIBCURL

    @property
    def is_filmed(self) -> bool:
        """Whether pictures of the load are kept. They must not change its times."""
        return bool(self.site) and self.repeat == 1

    @property
    def requested(self) -> tuple[PageObject, ...]:
        """The objects to fetch, () in a browser."""
        return () if self.site else self.objects

    @property
    def size_bytes(self) -> int:
        """The bytes of all bodies; in a browser of all that was recorded."""
        return self.site_bytes or sum(requested.size_bytes for requested in self.requested)

    @cached_property
    def carriers(self) -> tuple[int, ...]:
        """For each host, the first host with the same certificate."""
        return tuple(carriers_of(self.requested, self.shared_certificates))

    def carrier_of(self, host: int) -> int:
        """The host over whose connections the objects of a host come.

        Over HTTP/2 that is the first host with the same certificate, else the host itself.
        """
        return self.carriers[host] if self.http == HTTP_2 else host

    @property
    def is_secure(self) -> bool:
        """Whether the page comes over TLS."""
        return self.chain_bytes > 0

    @property
    def most_connections(self) -> int:
        """How many connections the client may open to a host."""
        return 1 if self.http == HTTP_2 else self.connections

    @property
    def deadline_s(self) -> float:
        """Seconds of the network's time that the page may take, retransmissions included."""
        rounds = 40 + 4 * (len(self.requested) or BROWSED_REQUESTS)
        sent_bytes = self.size_bytes + self.chain_bytes * (len(self.requested) or MOST_CHAINS)
        sending_s = sent_bytes * 8 / (self.bandwidth_kbps * 1000)
        if self.site:
            return rounds * self.rtt_ms / 1000 + 5 * sending_s + BROWSER_S
        waits_ms = sum(requested.parse_ms + requested.think_ms for requested in self.requested)
        return (rounds * self.rtt_ms / 1000 + 5 * sending_s + waits_ms / 1000
                + longest_s(sent_bytes, self.rtt_ms))

    def job(self) -> Job:
        """The trial as the worker reads it."""
        if self.site:
            return self._browsed_job()
        job = self.job_over("page", self.id, self.deadline_s)
        job["client"], job["http"] = LIBCURL, self.http
        job["connections"] = self.most_connections
        job["objects"] = [[requested.size_bytes, requested.named_by, requested.at_byte,
                           requested.parse_ms, requested.think_ms, requested.host]
                          for requested in self.requested]
        if self.is_secure:
            job["tls"] = self.tls_settings(self._apart_s if self.resumed else 0)
            job["certificates"] = self.carriers
        if self.server != BUILTIN:
            paths = {f"/{requested.size_bytes}" for requested in self.requested}
            if self.resumed:
                paths.add("/1")  # of the connections whose sessions the page resumes
            job["paths"] = sorted(paths)
        return job

    def _browsed_job(self) -> Job:
        """The trial of a page in a browser as the worker reads it."""
        job = self.job_over(BROWSED_PAGE, self.id, self.deadline_s)
        job["client"], job["http"], job["site"] = CHROMIUM, self.http, self.site
        job["tls"] = self.tls_settings(0)
        if self.phase_ms is not None:
            job["phase_ms"] = self.phase_ms
        if self.is_filmed:
            job["filmed"] = True
        return job

    @property
    def _apart_s(self) -> int:
        """Seconds from the connections whose sessions the page resumes to the page.

        The last packets of those connections arrive in this time.
        """
        return math.ceil(2 + 10 * self.rtt_ms / 1000)


def guest_s(trial: PageTrial) -> float:
    """A rough estimate of how long a page takes in a guest."""
    browser_s = BROWSER_PAGE_S if trial.site else 0.0
    return (browser_s + GUEST_PAGE_S + GUEST_OBJECT_S * len(trial.requested)
            + GUEST_SEGMENT_S * trial.size_bytes / MSS)
