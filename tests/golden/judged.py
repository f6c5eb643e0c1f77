"""Stored trials of all kinds of networks judged again, and some that were tampered with."""

from __future__ import annotations

from functools import cache

from lab.core.findings import Report
from lab.core.records import columns_of, to_text
from lab.fetches.record import Record
from tests.golden import stored, stored_fetches


@cache
def records() -> tuple[Record, ...]:
    """One of each stored trial, one in real time, and what differs from what was asked."""
    good, loaded = stored.load("iw10"), stored.load
    return (*(loaded(name).judge() for name in stored.NAMES),
            loaded("hystart").judge(exact=False),
            good.asked(rtt_ms=99.0, repeat=2).judge(),
            good.asked(bandwidth_kbps=900.0, repeat=3).judge(),
            good.asked(initcwnd=6).judge(), good.asked(initrwnd=4).judge(),
            good.said("fetch", sha256="other").judge(), good.said("server", latency_ms=1.0).judge(),
            good.said("fetch", exit_status=28, error="too late").judge(),
            loaded("queue_timer").asked(rtt_ms=500.0).judge(),
            stored.sent_again(good, 3, 50.0).judge(),
            loaded("random_loss").asked(loss_percent=0.0).judge(),
            loaded("receive_window").asked(initrwnd=40).judge())


def text() -> str:
    """Every column of every record, as trials.csv has it; a line each."""
    lines = []
    for record in records():
        seen = [f"{name}={to_text(getattr(record, name))}" for name in columns_of(Record)
                if not hasattr(record.trial, name) and hasattr(record, name)]
        lines.append("\n  ".join((record.trial.id, *seen)))
    return "\n".join(lines) + "\n"


def report() -> Report:
    """What is told of them, as of a part of a scenario."""
    return stored_fetches.report("zhao2019", records(), whole=False, partial=True)
