"""Checks of requests with a body: their bytes, the client's socket, and its first flight."""

from __future__ import annotations

from collections.abc import Iterable

from firstflight.base.comparison import Comparison
from firstflight.judge.checklist import Judging
from firstflight.net.headers import MSS, TIMESTAMP_BYTES
from firstflight.wire.offers import has_timestamps
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.record.evidence import Evidence
from firstflight.workloads.fetch.verify.integrity import is_fetched, is_on_wire


def _compare_request(evidence: Evidence) -> Iterable[Comparison]:
    """Compare what the server received with what the client sent, and both with the trial."""
    requested, report = evidence.trial.request_bytes, evidence.report
    received = report.get("request_body_bytes", 0)
    yield Comparison(received == requested, f"{received} bytes received", f"{requested}")
    sent = evidence.fetch.get("socket")
    if sent is None:
        if requested:
            yield Comparison(False, "nothing reported of the client's socket", "what it sent")
        return
    yield Comparison(sent["request_bytes"] == requested, f"{sent['request_bytes']} bytes sent",
                     f"{requested}")
    digest = report.get("request_sha256", "")
    yield Comparison(digest == sent["request_sha256"], f"{digest[:12]}…",
                     f"{sent['request_sha256'][:12]}… as sent")


def _compare_bytes_on_wire(evidence: Evidence) -> Iterable[Comparison]:
    """Compare all bytes that the client sent with the length of its requests, with their heads."""
    if not evidence.trial.request_bytes:
        return
    transfer, trial = evidence.transfer, evidence.trial
    expected = sum(transfer.request_writes) + len(trial.before) * sum(transfer.earlier_writes)
    on_wire = max((segment.end for segment in evidence.wire.at_client
                   if not segment.to_client and segment.payload_bytes), default=1) - 1
    yield Comparison(on_wire == expected, f"{on_wire} bytes on the wire", f"{expected}")


def _compare_socket(evidence: Evidence) -> Iterable[Comparison]:
    """Compare what the client's kernel reports about the socket."""
    trial, reported = evidence.trial, evidence.fetch.get("socket")
    if reported is None:
        return
    control = reported["congestion_control"]
    yield Comparison(control == trial.congestion_control, f"congestion control {control}",
                     trial.congestion_control)
    if _has_window(evidence) and (trial.client_initcwnd or evidence.known_kernel):
        window = reported["initial_window"]
        yield Comparison(window == trial.uploading_window, f"a window of {window} segments",
                         f"{trial.uploading_window}")
    most = MSS + (0 if has_timestamps(evidence.sysctls) else TIMESTAMP_BYTES)
    yield Comparison(reported["mss"] <= most, f"an MSS of {reported['mss']} bytes",
                     f"at most {most}")


def _has_window(evidence: Evidence) -> bool:
    """Whether the client has to begin with its initial window.

    After lost SYNs it begins with one segment.
    """
    wire = evidence.wire
    return len(wire.syns) <= 2 or not (wire.handshake_was_lost or evidence.trial.disorder)


def _compare_flight(evidence: Evidence) -> Iterable[Comparison]:
    """Compare the client's first flight with the model's, or with the initial window at most."""
    flight, trial = evidence.upload_first_flight, evidence.trial
    if not flight or not _has_window(evidence):
        return
    if evidence.is_comparable:
        expected = evidence.prediction.upload_flight
        yield Comparison(flight == expected, f"{flight} segments", f"{expected}")
        return
    yield Comparison(flight <= trial.uploading_window, f"{flight} segments",
                     f"at most {trial.uploading_window}")


def _is_uploaded(record: Record) -> bool:
    """Whether the packets of a request with a body could be read."""
    return is_on_wire(record) and bool(record.trial.request_bytes)


REQUEST = "request"
JUDGED: dict[str, Judging[Evidence, Record]] = {
    REQUEST: Judging(lambda record: is_fetched(record) and bool(record.trial.request_bytes),
                     _compare_request),
    "request on the wire": Judging(_is_uploaded, _compare_bytes_on_wire),
    "client's socket": Judging(_is_uploaded, _compare_socket),
    "client's first flight": Judging(_is_uploaded, _compare_flight)}
