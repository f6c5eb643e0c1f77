"""The second half of docs/ONE_TRIAL.md: a stored page over HTTPS, and what each check compared.

The programs that judge every trial compute what it shows, as in the first half
(tests/golden/one_trial.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from firstflight.base.comparison import Comparison
from firstflight.base.words import format_lossless, format_number
from firstflight.judge.checklist import LIST
from firstflight.net.segments import MS
from firstflight.runs.results.records import PASS
from firstflight.testbed.messages import ObservedTrial
from firstflight.workloads.page import verify
from firstflight.workloads.page.record import PageEvidence
from tests.golden import stored_page

NAME = "http2"  # the stored trial: a document and five objects, from nginx
DIGITS = 3  # decimals of a time in ms


def evidence_of(page: stored_page.StoredPage) -> PageEvidence:
    observed = ObservedTrial(page.trial.id, page.observation,  # type: ignore[arg-type]
                             page.client, page.server)
    return verify._evidence(page.trial, observed, exact=True, sysctls={}, known_kernel=True)


def section() -> str:
    """The half's text. Raises ValueError if the page does not pass or has several connections."""
    page = stored_page.load(NAME)
    evidence, trial = evidence_of(page), page.trial
    if page.judge().verdict != PASS or len(evidence.connections) != 1:
        raise ValueError(f"{NAME}: {page.judge().verdict_reason},"
                         f" {len(evidence.connections)} connections")

    document, *others = trial.requested
    return "\n".join([
        "# A page over HTTPS beside it", "",
        f"curl's library loads a document of {document.size_bytes} bytes, which names"
        f" {len(others)} objects of {others[0].size_bytes} bytes each, over HTTP/2 from nginx, with"
        f" an initial window of {trial.initcwnd} segments, at an RTT of"
        f" {format_lossless(trial.rtt_ms)} ms and {format_lossless(trial.bandwidth_kbps / 1000)}"
        f" Mbit/s, with a chain of {trial.chain_bytes} bytes. The packets are in"
        f" `tests/golden/page/trials/{NAME}`.", "",
        *handshake(evidence), "", *objects(evidence), "", *checks(evidence), ""])


def handshake(evidence: PageEvidence) -> Iterator[str]:
    (port, connection), = evidence.connections.items()
    finished = connection.finished
    assert finished is not None
    lengths = evidence.records[port]
    runs = [(length, len([*same])) for length, same in groupby(lengths)]
    shown = ", ".join(f"{count} × {length}" if count > 1 else f"{length}"
                      for length, count in runs)
    yield (f"The server's first messages have {connection.flight_bytes} bytes, its chain among"
           f" them. The client's Finished leaves at"
           f" {format_number((finished.time_ns - evidence.begun_ns) / MS, DIGITS)} ms, and the"
           " request with it. What follows is encrypted, but for the length of each record. The"
           f" server sent records of {shown} bytes: the hello, the chain and Finished, two tickets,"
           " HTTP/2's settings, and a record for each response.")


def objects(evidence: PageEvidence) -> Iterator[str]:
    if evidence.objects[0]["first_byte_ms"] == evidence.objects[0]["end_ms"]:
        yield ("The document is one record, so the client reads its first byte only once the last"
               " one has come.")
        yield ""
    yield "| object | bytes | named, ms | requested, ms | first byte, ms | whole, ms |"
    yield "|--:|--:|--:|--:|--:|--:|"
    for number, report in enumerate(evidence.objects, start=1):
        times = (report["named_ms"], report["start_ms"], report["first_byte_ms"],
                 report["end_ms"])
        cells = " | ".join(format_number(at_ms, DIGITS) for at_ms in times)
        yield f"| {number} | {report['size']} | {cells} |"


def checks(evidence: PageEvidence) -> Iterator[str]:
    """A row for each check that compared something: the first comparison, and how many more."""
    looks_at = {row.name: row.looks_at for row in LIST}
    yield "The checks of a fetch that a page has, too, and its own, in the order of the list"
    yield "([METHOD](METHOD.md#verification)):"
    yield ""
    yield "| check | looks at | observed | expected | and more |"
    yield "|---|---|---|---|--:|"
    for check in verify.CHECKS:
        compared = list(check.compare(evidence))
        if not all(one.passed for one in compared):
            raise ValueError(f"{NAME}: {check.name} does not pass")
        if compared:
            yield _row(check.name, looks_at[check.name], compared[0], len(compared) - 1)


def _row(name: str, looks_at: str, compared: Comparison, more: int) -> str:
    observed = compared.observed.removesuffix(" ()")
    return f"| {name} | {looks_at} | {observed} | {compared.requested} | {more or ''} |"
