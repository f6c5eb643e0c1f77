"""What the long run of damaged inputs counts, and how it ends."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.faults import fuzz
from benchmarks.faults.fuzz import ACCEPTED, REFUSED
from lab.core.errors import FAILED, OK, UsageError


def endless() -> None:
    while True:
        pass


def refused() -> None:
    raise UsageError("own.toml: wrong")


def broken() -> None:
    raise KeyError("x")


def greedy() -> None:
    raise MemoryError


def dies() -> None:
    """As of the kernel where there is no memory left, or of a fault in a library."""
    os.kill(os.getpid(), signal.SIGKILL)


ENDS = {"greedy": greedy, "dies": dies, "refused": refused, "accepted": lambda: None, "broken": broken, "endless": endless,
        "waits": lambda: time.sleep(10)}


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Kinds of one attempt each; times are short; the signals are as before afterwards."""
    monkeypatch.setattr(fuzz, "KINDS", {name: lambda draw, folder, attempt=attempt: attempt
                                        for name, attempt in ENDS.items()})
    monkeypatch.setattr(fuzz, "HANG_S", 0.02)
    monkeypatch.setattr(fuzz, "WAIT_S", 20)
    monkeypatch.setattr(fuzz.resource, "setrlimit", lambda *_: None)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = {number: signal.getsignal(number) for number in (signal.SIGALRM, signal.SIGPROF)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_what_does_not_end_is_a_hang_by_its_own_processor_time(
        monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(number, fuzz.expired)
    def attempted(kind: str) -> fuzz.Outcome:
        return fuzz.attempted(kind, lambda strategy: 0, Path())

    began = time.process_time()
    assert attempted("endless") == fuzz.Outcome(fuzz.HANG, "no end within 0.02 s of processor time")
    assert time.process_time() - began < 2
    monkeypatch.setattr(fuzz, "SLOW_S", 0.0)
    assert attempted("accepted").result == fuzz.SLOW
    monkeypatch.setattr(fuzz, "SLOW_S", 5.0)
    monkeypatch.setattr(fuzz, "WAIT_S", 0.1)
    assert attempted("waits") == fuzz.Outcome(fuzz.HANG, "no end within 0.1 s")
    assert attempted("accepted").result == ACCEPTED
    assert signal.getitimer(signal.ITIMER_PROF)[0] == 0 == signal.getitimer(signal.ITIMER_REAL)[0]


@pytest.mark.parametrize(("kinds", "status"), [
    (["refused", "accepted"], OK), (["accepted", "broken"], FAILED), (["endless"], FAILED),
    (["accepted", "greedy"], FAILED), (["dies", "accepted"], FAILED)])
def test_the_run_fails_where_an_input_breaks_it_or_does_not_end(
        capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, kinds: list[str],
        status: int) -> None:
    assert fuzz.main(["--inputs", "3", "--kind", *kinds]) == status
    told = capsys.readouterr().out.splitlines()
    total = told[-1].split()
    assert total[:2] == ["all", "3"]
    heads = dict(zip((REFUSED, ACCEPTED, *fuzz.DEFECTS, fuzz.SLOW), map(int, total[2:])))
    assert any(heads[word] for word in fuzz.DEFECTS) == (status == FAILED)
    assert sum(heads.values()) == 3
