"""Checks the length of a fetch's requests, by the server's report or by the packets."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from firstflight.base.comparison import Comparison
from firstflight.judge import requests
from firstflight.judge.checklist import Judging
from firstflight.judge.requests import CLOSE_NOTIFY_BYTES, compare_length, request_bytes
from firstflight.setting.server import BUILTIN, HTTP_1, OWN
from firstflight.testbed.hosts.tls_records import RECORD_OVERHEAD_BYTES
from firstflight.testbed.network.commands import origin_of
from firstflight.workloads.fetch.record.evidence import Evidence
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.trial import Trial
from firstflight.workloads.fetch.verify.integrity import is_on_wire

_LONGEST_NAME = f"curl/{'x' * requests.MOST_VERSION_BYTES}"


def _is_known(trial: Trial) -> bool:
    """Whether the length of the requests follows from the trial alone. That of early data does not.
    """
    return trial.server != OWN and not trial.early_data_bytes


def compare_requests(evidence: Evidence) -> Iterable[Comparison]:
    """Compare the length of the measured request by the server's report.

    Without a report, compare the length of all requests on the connection by the packets.
    """
    trial = evidence.trial
    if not _is_known(trial):
        return
    name = trial.own.name if trial.own else ""
    origin = origin_of(trial.is_secure, is_other=trial.server != BUILTIN, name=name)
    urls = [f"{origin}{path}" for path in trial.paths]
    closes = not trial.before
    if evidence.has_report:
        expected = request_bytes(urls[-1], trial.client, closes, trial.request_bytes)
        yield from compare_length(evidence.report["request_bytes"], expected)
        return
    if evidence.messages is None:
        return

    sent = max((segment.end for segment in evidence.wire.at_client
                if not segment.to_client and segment.payload_bytes), default=1) - 1
    observed = sent - evidence.messages.before_request_bytes
    if trial.http != HTTP_1:
        parts = urlsplit(urls[-1])
        most = requests.most_bytes_over_http_2([(parts.path, parts.netloc, _LONGEST_NAME)])
        yield Comparison(observed <= most, f"{observed} bytes", f"at most {most}")
        return

    if trial.resumed:  # the first request went over another connection
        urls = urls[-1:]
    overhead = RECORD_OVERHEAD_BYTES if trial.is_secure else 0
    lengths = [request_bytes(url, trial.client, closes) for url in urls]
    least = sum(shortest + overhead for shortest, _ in lengths)
    most = sum(longest + overhead for _, longest in lengths)
    yield from compare_length(observed, (least, most + CLOSE_NOTIFY_BYTES * trial.is_secure))


JUDGED: dict[str, Judging[Evidence, Record]] = {
    "requests": Judging(lambda record: is_on_wire(record) and _is_known(record.trial),
                        compare_requests)}
