"""Many machines' guests by Dask, as commands/runners.py asks for them; imports little."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engines.cluster.cluster import Cluster


def add_flags(add: Callable[..., object]) -> None:
    add("--cluster", metavar="ADDRESS",
        help="measure on the machines of a Dask cluster, whose scheduler is at tls://host:8786"
             " (docs/CLUSTER.md; default: here)")


def connected(arguments: argparse.Namespace, kernel: Path, tools: dict[str, str],
              notify: Callable[[str], None]) -> Cluster:
    """The machines of --cluster. Raises EngineCannot."""
    from engines.cluster.cluster import Cluster  # and with it Dask: only where it is requested
    return Cluster(arguments.cluster, kernel, tools, notify)
