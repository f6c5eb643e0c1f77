"""A batch that takes its worker with it, on Dask's own processes: how often it is given out."""

from __future__ import annotations

from pathlib import Path

import pytest

from engines.cluster import link as link_module
from engines.cluster.cluster import ATTEMPTS, DIED, Cluster
from engines.cluster.link import SchedulerLink
from tests.programs.cluster.dask_processes import cluster_of
from tests.programs.cluster.test_node import TOOLS, archive

pytest.importorskip("distributed", reason="./install.sh --with-cluster")

# Each batch leaves a letter for each of its attempts; "kills" ends its worker, "fails" itself.
BATCH = """import json, os, signal, sys
if sys.argv[1] == "--versions":
    print(json.dumps({"curl": "curl 7.88", "python": "3.11"}))
else:
    content = sys.stdin.buffer.read().decode()
    with open(os.path.join(%r, content), "a") as seen:
        seen.write("x")
        first = seen.tell() == 1
    if content == "kills" or content == "mixed" and first:
        os.kill(os.getppid(), signal.SIGKILL)
    if content in ("fails", "mixed"):
        sys.exit("it fails")
    print(content, end="")
"""
ASKED = ("one", "kills", "mixed", "fails", "two")


def test_whatever_ends_an_attempt_there_are_three(tmp_path: Path,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    seen, kernel = tmp_path / "seen", tmp_path / "7.2" / "linux"
    seen.mkdir()
    monkeypatch.setattr(link_module, "packed",
                        lambda kernel: archive(**{"commands/batch.py": BATCH % str(seen)}))
    # Four die, and Dask's nannies do not always start others.
    with cluster_of(5, tmp_path) as address:
        made = Cluster(SchedulerLink(address, kernel, TOOLS, False, print))
        try:
            found = dict(zip(ASKED, made.results(
                ASKED, str.encode, lambda task, content: content.decode(),
                lambda task, why: why)))
        finally:
            made.close()
    assert found["kills"] == ("", f"{ATTEMPTS} workers failed: {DIED}")
    for task in ("mixed", "fails"):
        assert found[task][1].startswith(f"{ATTEMPTS} workers failed: ")
    for task in ("kills", "mixed", "fails"):
        assert (seen / task).read_text() == "x" * ATTEMPTS, task
    assert [found[task][1] for task in ("one", "two")] == ["one", "two"]
