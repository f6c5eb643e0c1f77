"""Checks of the bodies of responses: their sizes and digests."""

from __future__ import annotations

from collections.abc import Iterator

from firstflight.base.comparison import Comparison
from firstflight.judge.shared_evidence import SharedEvidence
from firstflight.judge.verdict import NAMED

_SHOWN_DIGITS = 12  # of a digest, in a verdict's reason


def compare_sizes(evidence: SharedEvidence) -> Iterator[Comparison]:
    """Compare how many bytes of each body were received, sent and requested.

    The first few wrong bodies are named, or the first few of all where none is wrong.
    """
    wrong = [body for body in evidence.bodies
             if not body.size == body.sent_bytes == body.requested_bytes]
    for body in (wrong or evidence.bodies)[:NAMED]:
        yield Comparison(not wrong, f"{body.size} bytes of {body.sent_bytes} sent",
                         f"{body.requested_bytes}", name=f"size{body.where}")


def compare_digests(evidence: SharedEvidence) -> Iterator[Comparison]:
    """Compare the SHA-256 of each body as it was received and as it was sent.

    The first few wrong bodies are named, or the first few of all where none is wrong.
    """
    wrong = [body for body in evidence.bodies if body.sha256 != body.sent_sha256]
    for body in (wrong or evidence.bodies)[:NAMED]:
        yield Comparison(not wrong, f"{body.sha256[:_SHOWN_DIGITS]}…",
                         f"{body.sent_sha256[:_SHOWN_DIGITS]}… {body.source}",
                         name=f"digest{body.where}")
