"""run.sh --page, --objects: a page of many objects, under each initial window."""

from __future__ import annotations

import re
from collections.abc import Callable

from firstflight.base.argument_types import argument, file_path, positive_number
from firstflight.commands import run as requested_run
from firstflight.commands.request import Request
from firstflight.findings.quantities import QUANTITIES
from firstflight.runs.kinds import AnyStudy
from firstflight.study import registry
from firstflight.testbed.messages import CHROMIUM

_HOST = re.compile(r"[A-Za-z0-9_.:-]{1,253}")


def add_flags(add: Callable[..., object]) -> None:
    add("--page", type=file_path, metavar="FILE",
        help="a page of many objects: a HAR file, as browsers save it, which says the size and host"
             " of each object, which object names it, and the version of HTTP; or a TOML list of"
             " [[object]]s with bytes, named_by and at_byte. Each object is requested when the"
             " bytes that name it have come. With --client chromium a browser loads it: a HAR with"
             " its contents, or a folder with a site's files")
    add("--mine", type=argument(host_names), metavar="HOST,…",
        help="with --page and a HAR: measure only the objects of these hosts and their subdomains,"
             " which get your window (default: all)")
    add("--objects", type=positive_number, metavar="N",
        help="a made page: a document that names N objects of --size (default 15 kB), evenly along"
             " its bytes")
    add("--document", type=argument(reader_of("document_bytes")), metavar="BYTES",
        help="with --objects: the size of the document (default as --size)")
    add("--server-time", choices=("recorded", "0"),
        help="with a HAR and --client chromium: each answer waits as long as the recording's server"
             " took, or not at all (default recorded)")
    add("--connections", type=argument(reader_of("connections")), metavar="N,…",
        help="with --page and --objects: how many connections to a host the browser opens over"
             " HTTP/1.1 (default 6; over HTTP/2 it opens one)")


def host_names(words: str) -> tuple[str, ...]:
    """Reads names of hosts. Raises ValueError."""
    names = tuple(dict.fromkeys(words.split(",")))
    for name in names:
        if not _HOST.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a host, such as example.org")
    return names


def reader_of(name: str) -> Callable[[str], list[int]]:
    """The function that reads a list of this quantity's values. It raises ValueError."""
    quantity = QUANTITIES[name]

    def read_values(words: str) -> list[int]:
        return [int(quantity.accept(value)) for value in quantity.listed(words)]
    return read_values


def is_requested(request: Request) -> bool:
    return request.page is not None


def check(request: Request) -> str:
    """Why the other flags do not go with --page or --objects; "" if they do."""
    page = request.page
    if page is None:
        return ""
    if page.file is not None and page.objects is not None:
        return "--page and --objects: one page at a time"
    if request.scenarios or request.users or request.find_cliff:
        flag = "--objects" if page.file is None else "--page"
        return f"{flag} goes without a scenario, --users and --find-cliff"
    return ""


def read(request: Request) -> list[AnyStudy]:
    """The page under its windows. Raises UsageError."""
    page = request.page
    assert page is not None
    fields: registry.PageFields = {"objects": page.objects}
    if page.document_bytes is not None:
        fields["document_bytes"] = page.document_bytes
    if page.mine:
        fields["mine"] = page.mine
    if page.connections:
        fields["connections"] = page.connections
    if page.client == CHROMIUM:
        fields["client"] = CHROMIUM
        fields["url_path"] = page.url_path or ""
        fields["with_server_time"] = page.with_server_time

    return [registry.page_question(request.name or "own", page.file, fields,
                                   requested=request.overrides, seed=request.measuring.seed)]


def run(request: Request) -> int:
    """Measure the page; return the exit status. Raises UsageError."""
    return requested_run.run(request, read)
