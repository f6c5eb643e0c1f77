"""Many machines' guests by Dask, as commands/runners.py asks for them; imports little."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engines.cluster.cluster import Cluster


_HOST = r"([\w.-]{1,200}|\[[0-9a-f:]{2,40}(%\w+)?\])"
_ADDRESS = re.compile(rf"local:[1-9]\d*|(tls|tcp)://{_HOST}(:(?P<port>\d{{1,5}}))?/?", re.ASCII)


def address(word: str) -> str:
    """Reads the address of a scheduler. Raises argparse.ArgumentTypeError where it is none."""
    is_file = word.endswith(".json") and word.isprintable() and os.path.isfile(word)
    match = _ADDRESS.fullmatch(word)
    if not is_file and (match is None or int(match["port"] or 0) > 65_535):
        raise argparse.ArgumentTypeError(
            f"{word[:80]!r} is none of tls://host:port, tcp://host:port, local:N and a scheduler"
            " file, FILE.json")
    return word


def add_flags(add: Callable[..., object]) -> None:
    add("--cluster", metavar="ADDRESS", type=address,
        help="measure on the machines of a Dask cluster: tls://host:8786 or a scheduler file,"
             " FILE.json; local:N for N guests of this machine's (docs/CLUSTER.md; default: here)")
    add("--cluster-insecure", action="store_true",
        help="also tcp:// to another machine, where whoever reaches the port may run anything"
             " (default: refused)")


def connected(arguments: argparse.Namespace, kernel: Path, tools: dict[str, str],
              notify: Callable[[str], None]) -> Cluster:
    """The machines of --cluster. Raises EngineCannot."""
    from engines.cluster.cluster import Cluster  # and with it Dask: only where it is requested
    from engines.cluster.link import SchedulerLink
    return Cluster(SchedulerLink(arguments.cluster, kernel, tools, arguments.cluster_insecure,
                                 notify))
