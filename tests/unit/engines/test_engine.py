"""Which engine is taken."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firstflight.testbed import engine
from firstflight.testbed.job import JobFolder, WorkerProcess
from vtime import uml
from vtime.console import EngineCannot


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (engine, uml):
        monkeypatch.setattr(module, "find_kernel", lambda: Path("/cache/linux"))


@pytest.fixture
def not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (engine, uml):
        monkeypatch.setattr(module, "find_kernel", lambda: None)


@pytest.mark.usefixtures("built")
def test_the_guest_is_taken_where_its_kernel_is_built() -> None:
    assert [engine.choose_engine(name, 2).name for name in ("auto", "uml", "host")] == [
        "uml", "uml", "host"]
    assert engine.choose_engine("auto", 2).jobs == 2 and engine.choose_engine("uml", 1).exact


@pytest.mark.usefixtures("not_built")
def test_without_it_auto_takes_this_kernel_and_uml_says_what_to_do() -> None:
    chosen = engine.choose_engine("auto", 2)
    assert (chosen.name, chosen.jobs, chosen.exact) == ("host", 1, False)
    with pytest.raises(EngineCannot, match=r"run ./install.sh"):
        engine.choose_engine("uml", 1)


@pytest.mark.usefixtures("built")
def test_more_guests_than_this_machine_has_memory_for_are_refused() -> None:
    for name in ("auto", "uml"):
        with pytest.raises(EngineCannot, match="--jobs 1000000: .*; at most --jobs "):
            engine.choose_engine(name, 1_000_000)


def test_the_host_engine_says_what_this_machine_lacks(tmp_path: Path,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything starts, and after its worker has found it out."""
    trial = {"id": "t", "kind": "fetch", "client": "curl", "deadline_s": 60.0, "network": {}}
    monkeypatch.setattr(engine.os, "geteuid", lambda: 1000)
    with pytest.raises(EngineCannot, match="needs root: sudo ./run.sh --engine host"):
        list(engine.HostEngine().run([trial], {}, tmp_path))
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(engine.os, "geteuid", lambda: 0)
    for reason, advised in (("no netem here", True), ("no congestion control x", False)):
        monkeypatch.setattr(engine, "WorkerProcess", saying({"stage": "cannot", "reason": reason}))
        with pytest.raises(EngineCannot, match=f"^the worker reports: {reason}") as caught:
            list(engine.HostEngine().run([trial], {}, tmp_path / reason))
        assert str(caught.value).endswith(f"; {engine.netem_advice()}") is advised
        assert advised or str(caught.value) == f"the worker reports: {reason}"


@pytest.mark.parametrize("refusal", ["unshare: unshare failed: Operation not permitted",
                                     "unshare: cannot change root filesystem propagation: Permission denied"])
def test_a_machine_that_refuses_namespaces_to_root_is_told_what_to_do(
        refusal: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As containers do; it was a worker that stopped, of which nobody knew what to do about it."""
    (tmp_path / "unshare").write_text(f"#!/bin/sh\necho '{refusal}' >&2\nexit 1\n")
    (tmp_path / "unshare").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(engine.os, "geteuid", lambda: 0)
    trial = {"id": "t", "kind": "fetch", "client": "curl", "deadline_s": 60.0, "network": {}}
    with pytest.raises(EngineCannot, match=f"^{refusal}: the host engine needs .* or use --engine uml$"):
        list(engine.HostEngine().run([trial], {}, tmp_path))


def saying(line: dict[str, Any]) -> Callable[..., WorkerProcess]:
    """Starts a worker that says this line and ends, in the place of one in namespaces."""
    def started(job: JobFolder, trials: list[dict[str, Any]], command: list[str], *more: Any
                ) -> WorkerProcess:
        words = [sys.executable, "-S", "-c",
                 f"open({str(job.lines_path)!r}, 'a').write({json.dumps(line) + chr(10)!r})"]
        return WorkerProcess(job, trials, words, *more)
    return started
