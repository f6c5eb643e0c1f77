"""The program that measures a batch: its processor, and what it says where it cannot."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
from pathlib import Path

import pytest

from firstflight.base import errors
from firstflight.base.errors import CannotError, FirstFlightError
from firstflight.commands import batch
from firstflight.runs import batches
from firstflight.runs.results import provenance
from vtime.console import EngineCannot


def test_batches_side_by_side_have_processors_of_their_own(
        monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = os.getpid() + 10_000, os.getpid() + 20_000  # which no batch of this machine has
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {one, two})
    with batch.free_processor() as first, batch.free_processor() as second:
        with batch.free_processor() as third:
            assert (first, second, third) == (one, two, None)
    with batch.free_processor() as again:
        assert again == one


def test_what_is_no_batch_is_one_line(tmp_path: Path) -> None:
    kernel = tmp_path / "linux"
    for content in (b"", b"no batch", gzip.compress(b'{"kind": "no such"}')):
        with pytest.raises(FirstFlightError) as refused:
            batch.measure(content, kernel)
        assert refused.value.exit_status == errors.FAILED and str(refused.value)


def test_a_kernel_that_does_not_start_is_this_machine_s_fault(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(*_: object) -> bytes:
        raise EngineCannot("no /dev/shm")

    monkeypatch.setattr(batches, "measure", cannot)
    with pytest.raises(CannotError, match="no /dev/shm"):
        batch.measure(b"", tmp_path / "linux")


def test_versions_are_those_that_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    assert batch.main(["--versions"]) == errors.OK
    assert json.loads(capsys.readouterr().out) == provenance.tools()


def test_the_result_goes_to_standard_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "measure", lambda content, kernel: content[::-1])
    streams = io.TextIOWrapper(io.BytesIO(b"abc")), io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdin", streams[0])
    monkeypatch.setattr(sys, "stdout", streams[1])
    assert batch.main(["--kernel", "linux"]) == errors.OK
    assert streams[1].buffer.getvalue() == b"cba"  # type: ignore[attr-defined]
