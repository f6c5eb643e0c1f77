"""Many machines' guests by Dask, as commands/runners.py asks for them; imports little."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engines.cluster.cluster import Cluster


_HOST = r"([\w.-]{1,200}|\[[0-9a-f:]{2,40}(%\w+)?\])"
_ADDRESS = re.compile(rf"(tls|tcp)://{_HOST}:(?P<port>\d{{1,5}})/?", re.ASCII)


def address(word: str) -> str:
    """Reads the address of a scheduler. Raises argparse.ArgumentTypeError where it is none."""
    match = _ADDRESS.fullmatch(word)
    if match is None or not 0 < int(match["port"]) <= 65_535:
        raise argparse.ArgumentTypeError(
            f"{word[:80]!r} is no address of a scheduler, such as tls://192.0.2.1:8786")
    return word


def add_flags(add: Callable[..., object]) -> None:
    add("--cluster", metavar="ADDRESS", type=address,
        help="measure on the machines of a Dask cluster, whose scheduler is at tls://host:8786"
             " (docs/CLUSTER.md; default: here)")


def connected(arguments: argparse.Namespace, kernel: Path, tools: dict[str, str],
              notify: Callable[[str], None]) -> Cluster:
    """The machines of --cluster. Raises EngineCannot."""
    from engines.cluster.cluster import Cluster  # and with it Dask: only where it is requested
    return Cluster(arguments.cluster, kernel, tools, notify)
