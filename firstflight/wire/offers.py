"""The options that a SYN offers, and those that it has to offer by its host's sysctls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from firstflight.base.comparison import Comparison
from firstflight.net.headers import (CWR, ECE, OPTION_MSS, OPTION_SACK_PERMITTED, OPTION_SCALE,
                                     OPTION_TIMESTAMP, tcp_options)
from firstflight.net.segments import Segment

# Linux's defaults of net.ipv4.tcp_* (Documentation/networking/ip-sysctl.rst), written here a second
# time, so that a mistake where the network is set up shows.
_DEFAULTS = {"sack": "1", "timestamps": "1", "window_scaling": "1", "ecn": "2", "reordering": "3"}


class Offer(NamedTuple):
    """The options that one SYN offers."""

    mss: int  # bytes
    sack: bool
    timestamps: bool
    scale: int | None  # bits; None without the option, or where it is not judged
    ecn: bool

    def compare_with(self, expected: Offer, side: str) -> Iterator[Comparison]:
        """Yield a comparison of each option with the expected one. side: whose SYN it is."""
        for name, value, requested in zip(self._fields, self, expected):
            yield Comparison(value == requested, f"{side}'s {name} {value}", f"{requested}")


def offer_of(segment: Segment, is_client: bool) -> Offer:
    """What a SYN, or the server's SYN-ACK, offers."""
    held = dict(tcp_options(segment.options))
    mss, scale = held.get(OPTION_MSS, b""), held.get(OPTION_SCALE)
    ecn_flags = ECE | CWR if is_client else ECE
    return Offer(int.from_bytes(mss, "big"), sack=OPTION_SACK_PERMITTED in held,
                 timestamps=OPTION_TIMESTAMP in held, scale=scale[0] if scale else None,
                 ecn=segment.flags & ecn_flags == ecn_flags)


def offers_of(segments: Sequence[Segment], is_client: bool, asks_for_ecn: bool,
              was_repeated: bool) -> list[Offer]:
    """What the SYNs of one side offer, each different offer once.

    A retransmitted SYN has no ECN, nor has the SYN-ACK that answers it (tcp_ecn_clear_syn): there
    ECN counts as offered. was_repeated: whether the handshake has more than one SYN and one
    SYN-ACK.
    """
    offers = [offer_of(segment, is_client) for segment in segments]
    if asks_for_ecn and was_repeated:
        offers[is_client:] = [offer._replace(ecn=True) for offer in offers[is_client:]]
    return list(dict.fromkeys(offers))


def expected_offer(sysctls: Mapping[str, str], mss: int, window_unit: int, ecn: bool) -> Offer:
    """What a host has to offer.

    sysctls: those of the host that differ from the pinned ones. window_unit: bytes in a unit of the
    header's window, a power of two. ecn: whether it offers ECN.
    """
    scales = is_on(sysctls, "window_scaling")
    return Offer(mss, sack=is_on(sysctls, "sack"), timestamps=has_timestamps(sysctls),
                 scale=window_unit.bit_length() - 1 if scales else None, ecn=ecn)


def sysctl(sysctls: Mapping[str, str], name: str) -> str:
    """The value of net.ipv4.tcp_<name>, or else Linux's default."""
    return sysctls.get(f"net.ipv4.tcp_{name}", _DEFAULTS[name])


def has_timestamps(sysctls: Mapping[str, str]) -> bool:
    """Whether a host uses TCP's time stamps."""
    return is_on(sysctls, "timestamps")


def is_on(sysctls: Mapping[str, str], name: str) -> bool:
    """Whether net.ipv4.tcp_<name> is on: any number but 0 is."""
    return int(sysctl(sysctls, name)) != 0
