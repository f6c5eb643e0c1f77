"""What this version no longer has: words that people still type, and what to use instead."""

from __future__ import annotations

REMOVED = {
    "paper_arithmetic": "docs/STUDIES.md has the paper's own arithmetic",
    "--packetdrill": "packetdrill runs as any command: ./run.sh -- packetdrill FILE...",
    "--share-link": "ietf78_background measures what larger windows cost others on a shared link",
    "a capture": "tshark turns it into a CSV file: docs/QUESTIONS.md has the command",
    "--http 3": "QUIC keeps a window of its own, on which the route's initcwnd does not act",
    "quic_amplification": "this version measures no QUIC, whose window no route sets",
    "--explain": "--rtt, --bw, --size and --iw 10,100 give the time, and the window's part of it",
}
