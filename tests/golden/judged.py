"""Judges stored trials of all kinds of networks again, and some with a tampered value."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from firstflight.base.words import to_cell
from firstflight.findings.findings import Report
from firstflight.runs.results.records import columns_of
from firstflight.workloads.fetch.record.record import Record
from tests.golden import stored, stored_fetches
from tests.golden.stored import Stored


# In these trials together each column has a value: without loss and with it, in both directions,
# over TLS, and with early data.
EACH_COLUMN = ("iw10", "random_loss", "queue_timer", "receive_window", "uplink_full",
               "https_resumed", "nginx_early", "upload")


@cache
def records() -> tuple[Record, ...]:
    """Each stored trial; one as if in real time; and trials that differ from what was requested.

    What differs is a column that is requested, what a program reported, or a packet that is sent
    again.
    """
    good, load = stored.load("iw10"), stored.load
    return (*(load(name).judge() for name in stored.NAMES),
            load("hystart").judge(exact=False),
            good.requested(rtt_ms=99.0, repeat=2).judge(),
            good.requested(bandwidth_kbps=900.0, repeat=3).judge(),
            good.requested(rtt_ms=110.0, bandwidth_kbps=900.0, repeat=4).judge(exact=False),
            good.requested(initcwnd=6).judge(), good.requested(initrwnd=4).judge(),
            good.said("fetch", sha256="other").judge(), good.said("server", latency_ms=1.0).judge(),
            good.said("fetch", exit_status=28, error="too late").judge(),
            load("queue_timer").requested(rtt_ms=500.0).judge(),
            stored.sent_again(good, 3, 50.0).judge(),
            load("random_loss").requested(loss_percent=0.0).judge(),
            load("receive_window").requested(initrwnd=40).judge(), *secured())


def secured() -> Iterator[Record]:
    """Trials over TLS, with early data, and from nginx, each of which fails another check."""
    https, newest, resumed, nginx, early = (stored.load(name) for name in (
        "https", "mldsa", "https_resumed", "nginx", "nginx_early"))

    def tls(trial: Stored, **reported: Any) -> Stored:
        """The trial as if its server had reported something else of TLS."""
        return trial.said("server", tls={**trial.observation["server"]["tls"], **reported})

    flight = https.observation["server"]["tls"]["flight"]
    changed = (
        https.requested(chain_bytes=0), https.requested(chain_bytes=9000),
        https.requested(resumed=1),
        tls(https, version="TLSv1.2"), tls(https, window=14),
        tls(https, flight=[flight[0] - 100, *flight[1:]]),
        tls(newest, group=""), tls(newest, library="OpenSSL 3.4.9 1 Jan 2026"),
        tls(resumed, resumed=False), tls(resumed, flight=[9]),
        nginx.requested(chain_bytes=9000), nginx.requested(chain_bytes=1000),
        nginx.requested(initcwnd=3),
        nginx.said("fetch", http_status=206, size=1), early.requested(early_data_bytes=4000),
        early.requested(initcwnd=3), early.requested(rtt_ms=90.0))
    for number, trial in enumerate(changed, start=100):  # another repeat is another trial
        yield trial.requested(repeat=number).judge()


def text() -> str:
    """A paragraph for each trial of EACH_COLUMN, with a line for each measured column."""
    lines = []
    for record in (stored.load(name).judge() for name in EACH_COLUMN):
        seen = [f"{name}={to_cell(getattr(record, name))}" for name in columns_of(Record)
                if not hasattr(record.trial, name) and hasattr(record, name)]
        lines.append("\n  ".join((record.trial.id, *seen)))
    return "\n".join(lines) + "\n"


def report() -> Report:
    """The report of these records, as if they were a part of a scenario."""
    return stored_fetches.report("zhao2019", records(), whole=False, partial=True)
