"""What earlier versions had, by what people type, and what to use instead."""

from __future__ import annotations

REMOVED = {
    "paper_arithmetic": "docs/studies/POPULATION.md has the paper's own arithmetic",
    "--packetdrill": "packetdrill runs as any command: ./run.sh -- packetdrill FILE...",
    "--explain": "--rtt, --bw, --size and --iw 10,100 give the time, and the window's part of it",
}
