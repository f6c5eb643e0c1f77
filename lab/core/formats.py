"""In which formats results are written: read by the command line, which waits for nothing slow."""

from __future__ import annotations

import argparse

EXPORTS = ("json", "md", "csv")  # of findings, lab.tell.export
PICTURES = ("png", "svg", "pdf")  # of figures, drawing.style


def pictures(text: str) -> tuple[str, ...]:
    """The formats of a list like png,svg. Raises argparse.ArgumentTypeError."""
    asked = tuple(dict.fromkeys(text.lower().split(",")))
    unknown = [form for form in asked if form not in PICTURES]
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(PICTURES)}")
    return asked
