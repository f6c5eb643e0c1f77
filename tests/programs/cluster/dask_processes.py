"""A Dask scheduler and its workers in processes of their own, as on other machines."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# It ends with its standard input. From a server of forks workers start without importing all of
# Dask each.
PROGRAM = """import sys
import dask
from distributed import LocalCluster

if __name__ == "__main__":
    dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"})
    with LocalCluster(n_workers=int(sys.argv[1]), threads_per_worker=1, preload=sys.argv[2:],
                      dashboard_address="127.0.0.1:0", worker_dashboard_address="127.0.0.1:0",
                      local_directory=".") as local:
        print(local.scheduler_address, flush=True)
        sys.stdin.read()
"""


@contextmanager
def cluster_of(workers: int, folder: Path, *preloads: Path, **environment: str) -> Iterator[str]:
    """The scheduler's address; folder: where they leave what is theirs."""
    program = folder / "cluster_of.py"
    program.write_text(PROGRAM)
    with (folder / "said").open("w") as said, subprocess.Popen(
            [sys.executable, str(program), str(workers), *map(str, preloads)], cwd=folder,
            text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said,
            env={**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), **environment}) as dask:
        assert dask.stdout is not None and dask.stdin is not None
        address = dask.stdout.readline().strip()
        assert address, (folder / "said").read_text()
        try:
            yield address
        finally:
            dask.stdin.close()
