#!/usr/bin/env python3
"""Measure one batch of trials on this machine, for a cluster.

    batch.py --kernel FILE --kernels FOLDER --sites FOLDER <batch >result
                              one guest measures the batch; the result has its judged rows
                              (runs/batches.py has both formats)
    batch.py --versions       print the versions of the tools here, as JSON

runs/cluster/node.py starts this program on every machine of a cluster, from a copy of the project
that was sent there.
"""

from __future__ import annotations

import json
import os
import re
import socket
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

# Python looks for modules in this file's folder; the packages stand in the project's folder.
sys.path[0] = str(Path(__file__).resolve().parent.parent.parent)

from firstflight.base import errors
from firstflight.base.errors import FirstFlightError
from firstflight.base.main import run_main
from firstflight.base.parser import Parser
from firstflight.base.quantity import KERNEL_NAME
from firstflight.testbed.engine_errors import engine_errors
from firstflight.runs import batches
from firstflight.runs.results import provenance
from firstflight.study import registry
from firstflight.testbed import site_store
from firstflight.testbed.guests import UmlEngine
from vtime.uml import KernelMissing

EPILOG = "exit status: 0 measured · 1 the guest failed · 2 usage · 4 this machine cannot"


def make_parser() -> Parser:
    parser = Parser(prog="batch.py", description="Measure a batch of trials for a cluster.",
                    epilog=EPILOG, allow_abbrev=False)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--kernel", type=Path, metavar="FILE",
                      help="the guest kernel; the batch is read from standard input, its result"
                           " goes to standard output")
    parser.add_argument("--kernels", type=Path, metavar="FOLDER",
                        help="kernels under names, a folder each")
    parser.add_argument("--sites", type=Path, metavar="FOLDER",
                        help="recorded sites by their digests, in place of this user's")
    what.add_argument("--versions", action="store_true",
                      help="print what a measurement depends on here, as JSON")
    return parser


def measure(content: bytes, kernel: Path, kernels: Path | None = None,
            sites: Path | None = None) -> bytes:
    """The result of a batch.

    kernel: of trials that name none. kernels: the folder of named kernels, None without any.
    sites: the folder of recorded sites, None for this user's. Raises FirstFlightError.
    """
    def find_named(name: str) -> Path:
        linux = kernels / name / "linux" if kernels else None
        if linux is None or not re.fullmatch(KERNEL_NAME, name) or not linux.is_file():
            raise KernelMissing(f"there is no kernel {name}: ./install.sh --kernel {name} … builds"
                                " it")
        return linux

    with tempfile.TemporaryDirectory(prefix="first-flight-") as folder, \
            free_processor() as processor, engine_errors(), \
            (site_store.within(sites) if sites else nullcontext()):
        try:
            engine = UmlEngine(kernel, 1, processor, find_named)
            return batches.measure(content, engine, registry.kind, provenance.machine(),
                                   Path(folder))
        except ValueError as error:
            raise FirstFlightError(str(error)) from error


@contextmanager
def free_processor() -> Iterator[int | None]:
    """A processor that no other batch on this machine uses; None if all are taken.

    Each batch is a process of its own: two guests on one processor would take twice as long.
    """
    for processor in sorted(os.sched_getaffinity(0)):
        with socket.socket(socket.AF_UNIX) as held:
            try:
                # After a zero byte stands a name that is no file. It is free again when this
                # process ends.
                held.bind(f"\0first-flight-processor{processor}")
            except OSError:
                continue
            yield processor
            return
    yield None


def main(argv: Sequence[str]) -> int:
    arguments = make_parser().parse_args(argv)
    if arguments.versions:
        print(json.dumps({**provenance.tools(), **provenance.browser()}))
    else:
        sys.stdout.buffer.write(measure(sys.stdin.buffer.read(), arguments.kernel,
                                         arguments.kernels, arguments.sites))
    return errors.OK


if __name__ == "__main__":
    run_main("batch.py", main)
