"""A seed is added to what the kernel tells of a netem qdisc, and the rest stays."""

from __future__ import annotations

import struct

from engines.netem_seed import told_options, with_seed


def attribute(kind: int, payload: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(payload), kind) + payload + bytes(-len(payload) % 4)


def test_only_the_seed_changes() -> None:
    settings = bytes(range(24))
    rate, old = attribute(6, b"rate" * 4), attribute(14, bytes(8))
    new = attribute(14, struct.pack("=Q", 5))
    assert with_seed(settings + old + rate, 5) == settings + rate + new
    assert with_seed(settings, 5) == settings + new


def test_options_are_found_among_the_attributes() -> None:
    assert told_options(attribute(1, b"netem\0") + attribute(2, b"settings")
                        + attribute(3, b"x")) == b"settings"
