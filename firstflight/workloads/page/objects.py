"""The objects of a page: first the document, then the objects that it and others name.

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
_TIME_MS = Quantity("process_ms", "a time", "ms", 0, 999_999)  # with a spread, see with_spread


@dataclass(frozen=True)
class PageObject:
    """One object of a page.

    size_bytes: of its body. named_by: the number of the object that names it; 0 for the document,
    which has number 1. at_byte: how many bytes of that object's body have to arrive first.
    parse_ms: from then until the client requests it. think_ms: from the arrival of the request
    until the server responds. host: the number of its host, 0 for the document's. is_early:
    whether the first screen waits for it.
    """

    size_bytes: int = key(quantity="response_bytes", name="bytes")
    named_by: int = 0
    at_byte: int = 0
    parse_ms: float = key(0.0, reader=_TIME_MS.check)
    think_ms: float = key(0.0, reader=_TIME_MS.check)
    host: int = 0
    is_early: bool = key(False, name="early")


@dataclass(frozen=True)
class Certificate:
    """A certificate of several hosts of a page. hosts: their numbers.

    Over HTTP/2 these hosts share a connection. Any other host has a certificate of its own.
    """

    hosts: tuple[int, ...] = key(quantity="host")


def carriers_of(objects: Sequence[PageObject], certificates: Sequence[Certificate]) -> list[int]:
    """By host, the first host that has the same certificate: itself, where it shares none."""
    carriers = list(range(1 + max(each.host for each in objects)))
    for certificate in certificates:
        for host in certificate.hosts:
            carriers[host] = min(certificate.hosts)
    return carriers


def fault_of(objects: Sequence[PageObject], certificates: Sequence[Certificate] = ()) -> str:
    """What is wrong with the objects of a page, by its limits and by which object names which.

    "" for nothing. Each object is named by one above it, so that there is no circle.
    certificates: of several of its hosts.
    """
    if not objects:
        return "a page has at least one object, its document"
    if len(objects) > MOST_OBJECTS:
        return too_many(len(objects))
    total = sum(each.size_bytes for each in objects)
    if total > MOST_BYTES:
        return (f"a page of {total:,} bytes; at most {MOST_BYTES:,} fit, whose packets are all"
                " recorded")
    for number, each in enumerate(objects, start=1):
        if number == 1 and each.named_by:
            return "object 1: is the document, which no object names (named_by)"
        if number > 1 and not 1 <= each.named_by < number:
            return (f"object {number}: named_by = {each.named_by}: has to be the number of an"
                    " object above it, 1 for the document")
        if number > 1 and each.at_byte > objects[each.named_by - 1].size_bytes:
            return (f"object {number}: at_byte = {each.at_byte}: object {each.named_by}, which"
                    f" names it, has {objects[each.named_by - 1].size_bytes} bytes")
        if each.size_bytes < 1:
            return f"object {number}: has no bytes"
        if each.host >= MOST_HOSTS:
            return f"object {number}: host = {each.host}: hosts have numbers below {MOST_HOSTS}"
    return _fault_of_certificates({each.host for each in objects}, certificates)


def _fault_of_certificates(hosts: Collection[int], certificates: Sequence[Certificate]) -> str:
    """What is wrong with the certificates of a page with these hosts; "" for nothing."""
    before: set[int] = set()
    for certificate in certificates:
        words = f"certificate of hosts {', '.join(map(str, certificate.hosts))}"
        if len(certificate.hosts) < 2:
            return (f"{words}: is of two hosts or more; a host that no certificate names has one of"
                    " its own")
        for host in certificate.hosts:
            if host not in hosts:
                return f"{words}: no object has host = {host}"
            if host in before:
                return f"{words}: host {host} has another certificate already"
            before.add(host)
    return ""


def too_many(count: int) -> str:
    """What is wrong with a page of so many objects, or of more."""
    return f"a page of {count:,} objects; at most {MOST_OBJECTS:,} fit"


def with_spread(page: Sequence[PageObject], spread_ms: float, seed: int) -> tuple[PageObject, ...]:
    """The page with longer parse times, each by a draw from 0 to spread_ms, document aside.

    Where a queue overflows, such times decide which packets it drops.
    """
    if not spread_ms:
        return tuple(page)
    draw = random.Random(seed)
    first, *others = page
    return first, *(replace(each, parse_ms=round(each.parse_ms + draw.uniform(0, spread_ms), 3))
                    for each in others)


def equal_objects(count: int, size_bytes: int, document_bytes: int) -> tuple[PageObject, ...]:
    """A document and `count` objects of equal size, named at even distances in the document."""
    return (PageObject(document_bytes), *(
        PageObject(size_bytes, 1, round(document_bytes * place / (count + 1)))
        for place in range(1, count + 1)))
