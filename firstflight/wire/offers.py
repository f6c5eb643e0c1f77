"""The TCP options that a SYN offers, and the options that its host's sysctls make it offer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from firstflight.base.comparison import Comparison
from firstflight.net.headers import (CWR, ECE, OPTION_MSS, OPTION_SACK_PERMITTED, OPTION_SCALE,
                                     OPTION_TIMESTAMP, tcp_options)
from firstflight.net.segments import Segment

# Linux's defaults of net.ipv4.tcp_* (Documentation/networking/ip-sysctl.rst). The code that sets up
# the network has its own, so a mistake in one of the two shows.
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
    """The offer of a client's SYN, or of a server's SYN-ACK."""
    options = dict(tcp_options(segment.options))
    mss, scale = options.get(OPTION_MSS, b""), options.get(OPTION_SCALE)
    ecn_flags = ECE | CWR if is_client else ECE
    return Offer(int.from_bytes(mss, "big"), sack=OPTION_SACK_PERMITTED in options,
                 timestamps=OPTION_TIMESTAMP in options, scale=scale[0] if scale else None,
                 ecn=segment.flags & ecn_flags == ecn_flags)


def offers_of(segments: Sequence[Segment], is_client: bool, asks_for_ecn: bool,
              was_repeated: bool) -> list[Offer]:
    """The offers in the SYNs of one side, each different offer once.

    A retransmitted SYN has no ECN, and the SYN-ACK that answers it has none either
    (tcp_ecn_clear_syn). In these ECN counts as offered. was_repeated: whether the handshake has
    more packets than one SYN and one SYN-ACK.
    """
    offers = [offer_of(segment, is_client) for segment in segments]
    if asks_for_ecn and was_repeated:
        # A client's first SYN has ECN itself. A server's first SYN-ACK may answer a later SYN.
        first_changed = 1 if is_client else 0
        offers[first_changed:] = [offer._replace(ecn=True) for offer in offers[first_changed:]]
    return list(dict.fromkeys(offers))


def expected_offer(sysctls: Mapping[str, str], mss: int, window_unit: int, ecn: bool) -> Offer:
    """The offer that a host has to make.

    sysctls: the host's sysctls that differ from the pinned ones. window_unit: how many bytes one
    unit of the header's window stands for, a power of two. ecn: whether the host offers ECN.
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
