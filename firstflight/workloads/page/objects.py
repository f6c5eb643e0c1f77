"""The objects of a page: first the document, then the objects that it and other objects name.

An object has no content and no URL here: only its size, where it is named, and its host.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from firstflight.base.quantity import Quantity
from firstflight.runs.schema import key

MOST_OBJECTS = 1000  # of one page; the HTTP Archive's 99th percentile is half of it
MOST_BYTES = 30_000_000  # of one page; a tap has room for the packets of some 40 MB
MOST_HOSTS = 256
# It may be longer than a scenario's process_ms, since with_spread adds to it.
_TIME_MS = Quantity("process_ms", "a time", "ms", 0, 999_999)


@dataclass(frozen=True)
class PageObject:
    """One object of a page."""

    size_bytes: int = key(quantity="response_bytes", name="bytes")  # of its body
    named_by: int = 0  # the number of the object that names it; 0 for the document, number 1
    at_byte: int = 0  # how many bytes of that object's body have to arrive first
    parse_ms: float = key(0.0, reader=_TIME_MS.check)  # from then until the client requests it
    # From the arrival of the request until the server responds.
    think_ms: float = key(0.0, reader=_TIME_MS.check)
    host: int = 0  # the number of its host; 0 for the document's
    is_early: bool = key(False, name="early")  # whether the first screen waits for it


@dataclass(frozen=True)
class Certificate:
    """A certificate that several hosts of a page share.

    Over HTTP/2 these hosts share a connection. A host without a shared certificate has one of its
    own.
    """

    hosts: tuple[int, ...] = key(quantity="host")  # their numbers


def carriers_of(objects: Sequence[PageObject], certificates: Sequence[Certificate]) -> list[int]:
    """For each host, the first host with the same certificate: itself, where it shares none."""
    carriers = list(range(1 + max(requested.host for requested in objects)))
    for certificate in certificates:
        for host in certificate.hosts:
            carriers[host] = min(certificate.hosts)
    return carriers


def fault_of(objects: Sequence[PageObject], certificates: Sequence[Certificate] = ()) -> str:
    """What is wrong with the objects of a page: too many, too large, or named wrongly; or "".

    Each object has to be named by an object above it, so that there is no circle.
    certificates: those that hosts share.
    """
    if not objects:
        return "a page has at least one object, its document"
    if len(objects) > MOST_OBJECTS:
        return fault_of_count(len(objects))
    total = sum(requested.size_bytes for requested in objects)
    if total > MOST_BYTES:
        return (f"a page of {total:,} bytes; at most {MOST_BYTES:,} fit, whose packets are all"
                " recorded")

    for number in range(1, 1 + len(objects)):
        if fault := _fault_of_object(objects, number):
            return f"object {number}: {fault}"
    return _fault_of_certificates({requested.host for requested in objects}, certificates)


def _fault_of_object(objects: Sequence[PageObject], number: int) -> str:
    """What is wrong with the object of this number; "" for nothing."""
    requested = objects[number - 1]
    named_by = requested.named_by
    if number == 1 and named_by:
        return "is the document, which no object names (named_by)"
    if number > 1 and not 1 <= named_by < number:
        return (f"named_by = {named_by}: has to be the number of an object above it, 1 for the"
                " document")
    if number > 1 and requested.at_byte > objects[named_by - 1].size_bytes:
        return (f"at_byte = {requested.at_byte}: object {named_by}, which names it, has"
                f" {objects[named_by - 1].size_bytes} bytes")
    if requested.size_bytes < 1:
        return "has no bytes"
    if requested.host >= MOST_HOSTS:
        return f"host = {requested.host}: hosts have numbers below {MOST_HOSTS}"
    return ""


def _fault_of_certificates(hosts: Collection[int], certificates: Sequence[Certificate]) -> str:
    """What is wrong with the certificates of a page with these hosts; "" for nothing."""
    certified: set[int] = set()
    for certificate in certificates:
        words = f"certificate of hosts {', '.join(map(str, certificate.hosts))}"
        if len(certificate.hosts) < 2:
            return (f"{words}: is of two hosts or more; a host that no certificate names has one of"
                    " its own")
        for host in certificate.hosts:
            if host not in hosts:
                return f"{words}: no object has host = {host}"
            if host in certified:
                return f"{words}: host {host} has another certificate already"
            certified.add(host)
    return ""


def fault_of_count(count: int) -> str:
    """The message that a page of so many objects has too many."""
    return f"a page of {count:,} objects; at most {MOST_OBJECTS:,} fit"


def with_spread(page: Sequence[PageObject], spread_ms: float, seed: int) -> tuple[PageObject, ...]:
    """The page with a draw added to the parse time of each object except the document.

    A draw is between 0 and spread_ms. Where a queue overflows, parse times decide which packets it
    drops.
    """
    if not spread_ms:
        return tuple(page)
    draw = random.Random(seed)
    document, *others = page
    spread = [document]
    for requested in others:
        parse_ms = round(requested.parse_ms + draw.uniform(0, spread_ms), 3)
        spread.append(replace(requested, parse_ms=parse_ms))
    return tuple(spread)


def equal_objects(count: int, size_bytes: int, document_bytes: int) -> tuple[PageObject, ...]:
    """A document and `count` objects of equal size, named at even distances in the document."""
    page = [PageObject(document_bytes)]
    for place in range(1, count + 1):
        page.append(PageObject(size_bytes, 1, at_byte=round(document_bytes * place / (count + 1))))
    return tuple(page)
