"""run.sh --page, --objects: a page of many objects, under each initial window."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from firstflight.base.argument_types import file_path, positive_number
from firstflight.base.errors import UsageError
from firstflight.commands import run as requested_run
from firstflight.commands.overrides import overrides_of
from firstflight.findings.quantities import QUANTITIES
from firstflight.runs.kinds import Study
from firstflight.study import registry

_FLAGS = ("page", "objects")
_HOST = re.compile(r"[A-Za-z0-9_.:-]{1,253}")


def add_flags(add: Callable[..., object]) -> None:
    add("--page", type=file_path, metavar="FILE",
        help="a page of many objects: a HAR file, as browsers save it, of which sizes, hosts, who"
             " named what are kept; or a TOML list of [[object]]s with bytes, named_by and at_byte."
             " Each object is requested when the bytes that name it have come")
    add("--mine", type=host_names, metavar="HOST,…",
        help="with --page and a HAR: measure only the objects of these hosts and their subdomains,"
             " which get your window (default: all)")
    add("--objects", type=positive_number, metavar="N",
        help="a made page: a document that names N objects of --size (default 15 kB), evenly along"
             " its bytes")
    add("--document", type=listed("document_bytes"), metavar="BYTES",
        help="with --objects: the size of the document (default as --size)")
    add("--connections", type=listed("connections"), metavar="N,…",
        help="with --page and --objects: how many connections to a host the browser opens"
             " (default 6)")


def host_names(words: str) -> tuple[str, ...]:
    """Reads names of hosts. Raises argparse.ArgumentTypeError."""
    names = tuple(dict.fromkeys(words.split(",")))
    for name in names:
        if not _HOST.fullmatch(name):
            raise argparse.ArgumentTypeError(f"{name!r} is no name of a host, such as example.org")
    return names


def listed(name: str) -> Callable[[str], list[int]]:
    """Reads a list of a quantity's values. Raises argparse.ArgumentTypeError."""
    def read_words(words: str) -> list[int]:
        try:
            values = QUANTITIES[name].listed(words)
            return [int(QUANTITIES[name].check(value, "here")) for value in values]
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
        except UsageError as error:
            raise argparse.ArgumentTypeError(str(error).removeprefix("here: ")) from None
    return read_words


def wrong(arguments: argparse.Namespace, given: Mapping[str, str],
          questions: Sequence[str]) -> str:
    """Why the flags do not go together; "" if they do. given: flags of network, TCP and trial."""
    requested = [flag for flag in _FLAGS if getattr(arguments, flag)]
    if not requested and (arguments.connections or arguments.document):
        flag = "--connections" if arguments.connections else "--document"
        return (f"{flag} goes with --objects N or --page FILE, such as --objects 20"
                f" {flag} {'6' if arguments.connections else '30kB'}")
    if arguments.mine and not arguments.page:
        return "--mine goes only with --page FILE"
    if len(requested) > 1:
        return "--page and --objects: one page at a time"
    if requested and (arguments.scenario or set(questions) - set(_FLAGS)):
        return f"--{requested[0]} goes without a scenario, --users and --find-cliff"
    if len(arguments.document or ()) > 1:
        return "--document takes one size"
    return ""


def read(arguments: argparse.Namespace) -> list[Study]:
    """The page under its windows. Raises UsageError."""
    made: dict[str, Any] = {"objects": arguments.objects}
    if arguments.document:
        made["document_bytes"] = arguments.document[0]
    if arguments.mine:
        made["mine"] = arguments.mine
    if arguments.connections:
        made["connections"] = tuple(dict.fromkeys(arguments.connections))
    return [registry.page_question(arguments.name or "own", arguments.page, made,
                                   overrides_of(arguments), arguments.seed)]


def run(arguments: argparse.Namespace) -> int:
    """Measure it; the exit status. Raises UsageError."""
    return requested_run.run(arguments, read)
