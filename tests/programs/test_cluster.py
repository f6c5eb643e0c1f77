"""A machine of a cluster measures batches or refuses them, alone and in Dask's own processes."""

from __future__ import annotations

import importlib
import io
import re
import socket
import sys
import threading
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from firstflight.runs.cluster import cluster as cluster_module
from firstflight.runs.cluster.cluster import DIED, RETRIES, connect
from firstflight.runs.cluster.node import CODE, KERNEL, SITES, Node, last_line
from tests.programs.dask_processes import cluster_of
from tests.running import HANGS_S
from vtime.console import EngineCannot, EngineError

TOOLS = {"curl": "curl 7.88", "python": "3.11"}
PACK = cluster_module.pack  # the real one, which a fixture replaces
# In the place of batch.py: prints versions, or the kernel's path and the batch backwards. The
# batches "cannot" and "fails" end it with an error.
BATCH = """import json, sys
if sys.argv[1] == "--versions":
    print(json.dumps({"curl": "curl 7.88", "python": "3.11", "more": "1"}))
else:
    content = sys.stdin.buffer.read()
    if content == b"cannot":
        print("commands/batch.py: no /dev/shm", file=sys.stderr)
        sys.exit(4)
    if content == b"fails":
        print("some noise", "commands/batch.py: the guest died", sep="\\n", file=sys.stderr)
        sys.exit(1)
    sys.stdout.buffer.write(sys.argv[2].encode() + b":" + content[::-1])
"""


def archive(**files: str) -> bytes:
    """An archive as it is sent to a machine, with programs that only answer. files: other ones."""
    contents = {"install.sh": "#!/bin/sh\n[ $1 = --check ]",
                "firstflight/commands/batch.py": BATCH, **files}
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as made:
        for name, text in {**{f"{CODE}/{name}": text for name, text in contents.items()},
                           KERNEL: "kernel"}.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = 0o755 << 16
            made.writestr(info, text)
    return stream.getvalue()


class Worker:
    address = "tcp://192.0.2.7:1"

    def __init__(self, folder: Path) -> None:
        self.local_directory = str(folder)


def node(folder: Path, content: bytes, tools: dict[str, str] = TOOLS) -> Node:
    """A machine that got this archive. tools: the versions that it has to have."""
    machine = Node(content, tools)
    machine.setup(Worker(folder))
    return machine


def refused(machine: Node, batch: bytes) -> str:
    """Why a machine does not measure a batch."""
    with pytest.raises(RuntimeError) as why:
        machine.measure(batch)
    return str(why.value)


def test_a_batch_is_measured_with_the_kernel_that_was_sent(tmp_path: Path) -> None:
    kernel, _, result = node(tmp_path, archive()).measure(b"abc").decode().partition(":")
    assert result == "cba"
    assert Path(kernel).read_text() == "kernel" and Path(kernel).is_relative_to(tmp_path)


@pytest.mark.parametrize(("batch", "why"), [
    (b"cannot", "commands/batch.py: no /dev/shm"),
    (b"fails", "commands/batch.py: the guest died")])
def test_a_failed_batch_has_its_last_line_as_the_reason(batch: bytes, why: str,
                                                        tmp_path: Path) -> None:
    assert refused(node(tmp_path, archive()), batch) == why
    assert last_line("one\ntwo\n") == "two" and last_line(" ") == ""


@pytest.mark.parametrize(("changed", "tools", "why"), [
    ({}, {**TOOLS, "curl": "curl 8"}, "'curl 7.88' instead of 'curl 8': use the same distribution"),
    ({"install.sh": "#!/bin/sh\necho 'install: missing packages: mininet' >&2; exit 1"}, TOOLS,
     "missing packages: mininet: run ./install.sh"),
    ({"firstflight/commands/batch.py": "raise SystemExit('no module mininet')"}, TOOLS,
     "no module mininet"),
    ({"firstflight/commands/batch.py": "print('curl')"}, TOOLS, "Expecting value")])
def test_a_node_whose_tools_differ_refuses_batches(changed: dict[str, str], tools: dict[str, str],
                                                   why: str, tmp_path: Path) -> None:
    assert why in refused(node(tmp_path, archive(**changed), tools), b"abc")


def test_a_machine_without_a_browser_measures_what_needs_none(tmp_path: Path) -> None:
    """It skips pages in a browser with a line. With another browser it measures nothing at all."""
    tools = {**TOOLS, "chromium": "Chromium 156"}
    assert not node(tmp_path, archive(), tools).refused
    other = BATCH.replace('"more": "1"', '"chromium": "Chromium 155"')
    assert "chromium 'Chromium 155' instead of 'Chromium 156'" in node(
        tmp_path, archive(**{"firstflight/commands/batch.py": other}), tools).refused


def test_a_site_is_sent_under_its_digest(tmp_path: Path) -> None:
    (tmp_path / "linux").write_text("kernel")
    site = tmp_path / f"{'a' * 64}.site"
    site.write_bytes(b"x" * 1000)
    with zipfile.ZipFile(io.BytesIO(PACK(tmp_path / "linux", sites=[site]))) as files:
        assert files.read(f"{SITES}/{site.name}") == site.read_bytes()


def test_a_node_refuses_batches_after_a_damaged_archive(tmp_path: Path) -> None:
    assert "zip" in refused(node(tmp_path, b"PK nothing"), b"abc")


def test_a_batch_ends_with_the_plugin_and_none_begins_after_it(tmp_path: Path) -> None:
    """The plugin ends while the batch is measured."""
    begun = tmp_path / "begun"
    lasts = BATCH.replace("    content = sys", f"    import os, time; os.mkdir({str(begun)!r});"
                          " time.sleep(600)\n    content = sys")
    machine = node(tmp_path, archive(**{"firstflight/commands/batch.py": lasts}))
    answered = threading.Event()

    def stop() -> None:
        while not begun.exists() and not answered.wait(0.02):
            pass
        machine.teardown(None)

    thread = threading.Thread(target=stop, daemon=True)
    thread.start()
    assert refused(machine, b"abc") == "it ended with -9"
    answered.set()
    thread.join()
    assert refused(machine, b"abc") == "the run has ended" and not machine.running


# Workers that fail, die or differ, and schedulers that end, in Dask's own processes ---------

pytestmark = pytest.mark.skipif(find_spec("distributed") is None,
                                reason="./install.sh --with-cluster")
BUILD = Path("7.2/linux")


@pytest.fixture(name="address", scope="module")
def _address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a scheduler with two workers."""
    with cluster_of(2, tmp_path_factory.mktemp("cluster")) as address:
        yield address


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "pack", lambda *_: archive())
    for limit in ("CONNECT_S", "WORKERS_S"):  # a busy machine takes longer than a user waits
        monkeypatch.setattr(cluster_module, limit, HANGS_S)


def results(address: str, *contents: bytes, tools: dict[str, str] = TOOLS) -> list[bytes]:
    """What a cluster makes of these batches."""
    with connect(address, BUILD, tools) as cluster:
        return [result.rpartition(b":")[2] for _, result in cluster.results(contents)]


def test_a_cluster_answers_until_it_is_closed(address: str) -> None:
    dask = importlib.import_module("distributed")
    with connect(address, BUILD, TOOLS) as cluster:
        assert cluster.guests == 2 and cluster.build == "7.2"
        assert cluster.facts == {"address": address, "dask": dask.__version__}
    assert cluster.client.status == "closed"


def test_a_machine_without_memory_for_its_threads_is_refused(
        address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two workers of one thread each share the machine, and the smaller amount counts."""
    monkeypatch.setattr("firstflight.runs.cluster.node.available_here_mb", lambda: 2000)
    with connect(address, BUILD, TOOLS, memory_mb=1000) as cluster:
        assert cluster.guests == 2
    with pytest.raises(EngineCannot, match="127.0.0.1 cannot measure: the guests of its 2 threads"
                       " may take 2048 MB, and 2000 MB are available: start its workers with at"
                       " most 1 thread in all"), \
            connect(address, BUILD, TOOLS, memory_mb=1024):
        pass


# A batch and its worker --------------------------------------------------------------

# BATCH with batches that end their worker: "kills" the first time, "dies" every time. It notes in a
# file each time that a batch is measured.
STRUCK = BATCH.replace("    content = sys.stdin.buffer.read()", """    import os, signal
    content = sys.stdin.buffer.read()
    with open(os.path.join(%r, content.decode()), "a") as seen:
        seen.write("x")
        first = seen.tell() == 1
    if content == b"dies" or content == b"kills" and first:
        os.kill(os.getppid(), signal.SIGKILL)""")


def test_a_killed_workers_batch_is_measured_again_and_a_failed_one_ends_the_run(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = tmp_path / "seen"
    seen.mkdir()
    monkeypatch.setattr(cluster_module, "pack", lambda *_: archive(
        **{"firstflight/commands/batch.py": STRUCK % str(seen)}))
    with cluster_of(2, tmp_path) as address:
        assert results(address, b"one", b"kills", b"two") == [b"eno", b"sllik", b"owt"]
        with pytest.raises(EngineError, match="tcp://127.*: commands/batch.py: the guest died"):
            results(address, b"fails")
        with pytest.raises(EngineError, match=f"tcp://127.*: {re.escape(DIED)}$"):
            results(address, b"dies")
    assert (seen / "kills").read_text() == "xx"
    assert (seen / "fails").read_text() == "x" * (1 + RETRIES)


def test_a_worker_that_cannot_start_a_process_is_named(address: str,
                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    """Any exception of a worker becomes one line that names the worker."""
    def cannot(self: Node, batch: bytes) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Node, "measure", cannot)
    with pytest.raises(EngineError, match=r"tcp://127.*: tcp://127.*No space left on device$"):
        results(address, b"abc")


@pytest.mark.parametrize(("version", "tools", "why"), [
    ("2.7", TOOLS, "its Dask runs on Python 3."),
    (cluster_module.PYTHON_VERSION, {**TOOLS, "curl": "curl 8"},
     "instead of 'curl 8': use the same")])
def test_a_cluster_whose_machines_differ_is_refused(version: str, tools: dict[str, str], why: str,
                                                    address: str,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "PYTHON_VERSION", version)
    with pytest.raises(EngineCannot, match=f"tcp://.* cannot measure: .*{why}"):
        results(address, b"abc", tools=tools)


def test_a_scheduler_that_is_gone_ends_the_run(tmp_path: Path) -> None:
    running: Any = cluster_of(1, tmp_path)
    with pytest.raises(EngineError, match="the scheduler is lost"), \
            connect(running.__enter__(), BUILD, TOOLS) as cluster:
        for _ in cluster.results([letter.encode() for letter in "abcdefghi" * 9]):
            running.__exit__(None, None, None)


def test_without_dask_one_line_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(EngineCannot, match="needs Dask: run ./install.sh --with-cluster"), \
            connect("tcp://127.0.0.1:1", BUILD, TOOLS):
        pass


def test_a_silent_server_is_refused_as_a_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "CONNECT_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent, \
            pytest.raises(EngineCannot, match=r"no scheduler answers .* \(not in 0.5 s\)"), \
            connect(f"tcp://127.0.0.1:{silent.getsockname()[1]}", BUILD, TOOLS):
        pass


def test_a_scheduler_without_workers_is_refused(tmp_path: Path,
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_module, "WORKERS_S", 0.1)
    with cluster_of(0, tmp_path) as address, \
            pytest.raises(EngineCannot, match="has no worker;"), \
            connect(address, BUILD, TOOLS):
        pass
