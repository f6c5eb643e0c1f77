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
from firstflight.setting.tags import tagged
from firstflight.testbed.site_store import DIGEST
from firstflight.testbed.messages import BROWSED_PAGE, CHROMIUM, LIBCURL, Job
from firstflight.workloads.page.objects import Certificate, PageObject, carriers_of

# The parameters of a setting that pages have lists of: all but a window that stays and early data,
# which the page's client has not, and HTB, which only published set-ups of fetches have.
OF_SETTING = tuple(
    name for name, row in PARAMETERS.items()
    if row.subject in (NETWORK, TCP, TLS, SERVER) and name not in (
        "initcwnd", "htb_burst_bytes", "rwnd_growth", "early_data_bytes"))
# Of a page in a browser, for its deadline; BROWSER_S is for lost packets and what a server waits.
# Until TCP gives up a page that never ends would load itself a thousand times.
BROWSED_REQUESTS, MOST_CHAINS, BROWSER_S = 100, 50, 60.0
# Wall time in a guest of a page, and of each of its objects and segments, from runs on two cores.
BROWSER_PAGE_S = 1.5  # what a browser takes in addition
GUEST_PAGE_S, GUEST_OBJECT_S, GUEST_SEGMENT_S = 0.08, 0.003, 0.0003
CHAIN_BYTES = 4000  # of a page over HTTP/2 unless it is said: the Web's median chain


@dataclass(frozen=True, kw_only=True)
class PageTrial(Setting):
    """One page over one setting.

    part: the sweep. page: the name of the page. objects: its objects, first
    the document. shared_certificates: of several of its hosts; each other host has its own one.
    connections: how many the client opens to a host, 1 over HTTP/2.
    repeat: 1, 2, … for repeated measurements of one setting.

    A page that is loaded in a browser has no objects, since the browser finds them. site: the
    digest of the recorded site (testbed.site_store), "" without a browser. site_bytes: of the
    bodies of all that was recorded. phase_ms: after a frame of the browser, when the load begins.
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
        uplink = (f"-up{format_lossless(self.uplink_kbps)}"
                  if self.uplink_kbps != self.bandwidth_kbps else "")
        drawn = (f"-drawn{format_lossless(self.drawn_rtt_ms)}" if self.drawn_rtt_ms is not None
                 else "")
        seed = f"-seed{self.seed}" if self.is_random else ""
        queue_from = f"-{self.queue_from}" if self.queue_from else ""
        site = f"-chromium-{self.site[:8]}" if self.site else ""
        return (f"{self.part}-{self.page}{site}-rtt{format_lossless(self.rtt_ms)}"
                f"-bw{format_lossless(self.bandwidth_kbps)}{uplink}-q{self.queue_packets}"
                f"{queue_from}{tagged(self, NETWORK)}{seed}-http{self.http}-c{self.connections}"
                f"-{self.server}-{self.congestion_control}-rw{self.initrwnd}{tagged(self, TCP)}"
                f"{tagged(self, TLS)}{'' if self.system == HERE else f'-{self.system}'}"
                f"-iw{self.initcwnd}-{self.repeat}{drawn}"
                f"{'-without-' if self.what_if else ''}{self.what_if}")

    @property
    def client(self) -> str:
        """What loads the page."""
        return CHROMIUM if self.site else LIBCURL

    @property
    def is_filmed(self) -> bool:
        """Whether pictures of its load are kept; its times have to be those of other loads."""
        return bool(self.site) and self.repeat == 1

    @property
    def requested(self) -> tuple[PageObject, ...]:
        """The objects to fetch, () in a browser."""
        return () if self.site else self.objects

    @property
    def size_bytes(self) -> int:
        return self.site_bytes or sum(each.size_bytes for each in self.requested)

    @cached_property
    def carriers(self) -> tuple[int, ...]:
        """By host, the first host with the same certificate."""
        return tuple(carriers_of(self.requested, self.shared_certificates))

    def carrier_of(self, host: int) -> int:
        """The host over whose connections the objects of a host come.

        Over HTTP/2 that is the first one with the same certificate.
        """
        return self.carriers[host] if self.http == HTTP_2 else host

    @property
    def is_secure(self) -> bool:
        """Whether it goes over TLS."""
        return self.chain_bytes > 0

    @property
    def most_connections(self) -> int:
        """How many connections the client may open to a host."""
        return 1 if self.http == HTTP_2 else self.connections

    @property
    def deadline_s(self) -> float:
        """Seconds of the network's time that the page may take, retransmissions included."""
        waits_ms = sum(each.parse_ms + each.think_ms for each in self.requested)
        rounds = 40 + 4 * (len(self.requested) or BROWSED_REQUESTS)
        sent_bytes = self.size_bytes + self.chain_bytes * (len(self.requested) or MOST_CHAINS)
        sending_s = sent_bytes * 8 / (self.bandwidth_kbps * 1000)
        if self.site:
            return rounds * self.rtt_ms / 1000 + 5 * sending_s + BROWSER_S
        return (rounds * self.rtt_ms / 1000 + 5 * sending_s + waits_ms / 1000
                + longest_s(sent_bytes, self.rtt_ms))

    def job(self) -> Job:
        """The trial as the worker reads it."""
        if self.site:
            return self._browsed_job()
        job = self.job_over("page", self.id, self.deadline_s)
        job["client"], job["http"] = LIBCURL, self.http
        job["connections"] = self.most_connections
        job["objects"] = [[each.size_bytes, each.named_by, each.at_byte, each.parse_ms,
                           each.think_ms, each.host] for each in self.requested]
        if self.is_secure:
            job["tls"] = self.tls_settings(self._apart_s if self.resumed else 0)
            job["certificates"] = self.carriers
        if self.server != BUILTIN:
            job["paths"] = sorted({f"/{each.size_bytes}" for each in self.requested}
                                  | ({"/1"} if self.resumed else set()))
        return job

    def _browsed_job(self) -> Job:
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
        """Seconds between the sessions' connections and the page, for their last packets."""
        return math.ceil(2 + 10 * self.rtt_ms / 1000)


def guest_s(trial: PageTrial) -> float:
    """A rough estimate of how long a page takes in a guest."""
    browser_s = BROWSER_PAGE_S if trial.site else 0.0
    return (browser_s + GUEST_PAGE_S + GUEST_OBJECT_S * len(trial.requested)
            + GUEST_SEGMENT_S * trial.size_bytes / MSS)
