"""Checks how long a fetch's requests are, by the server's word or on the wire."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from firstflight.base.comparison import Comparison
from firstflight.judge import requests
from firstflight.judge.checklist import Judging
from firstflight.judge.requests import CLOSE_NOTIFY_BYTES, compare_length, request_bytes
from firstflight.setting.server import HTTP_1, OWN
from firstflight.testbed.hosts.tls_records import RECORD_OVERHEAD_BYTES
from firstflight.testbed.network.commands import urls_of
from firstflight.workloads.fetch.record.evidence import Evidence
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.trial import Trial
from firstflight.workloads.fetch.verify.integrity import is_on_wire

_LONGEST_NAME = f"curl/{'x' * requests.MOST_VERSION}"


def _is_known(trial: Trial) -> bool:
    """Whether the text of the requests follows from the trial; early data has a size of its own."""
    return trial.server != OWN and not trial.early_data_bytes


def compare_requests(evidence: Evidence) -> Iterable[Comparison]:
    """Compare the length of the measured request; without a report that of all on the connection.
    """
    trial = evidence.trial
    if not _is_known(trial):
        return
    urls, closes = urls_of(trial.job()), not trial.before
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

    sealed = RECORD_OVERHEAD_BYTES if trial.is_secure else 0
    lengths = [request_bytes(url, trial.client, closes)
               for url in (urls[-1:] if trial.resumed else urls)]
    least = sum(shortest + sealed for shortest, _ in lengths)
    most = sum(longest + sealed for _, longest in lengths)
    yield from compare_length(observed, (least, most + CLOSE_NOTIFY_BYTES * trial.is_secure))


JUDGED: dict[str, Judging[Evidence, Record]] = {
    "requests": Judging(lambda record: is_on_wire(record) and _is_known(record.trial),
                        compare_requests)}
