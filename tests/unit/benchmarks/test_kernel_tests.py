"""Which kernel tests count as passed, as known failures, and as failures."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.outside import kernel_tests
from benchmarks.outside.kernel_tests import (FAILING, KNOWN, KNOWN_FAILURES, PASSED, Result, changed_name, script_names, told)
from lab.core.errors import FAILED, OK, CannotError, UsageError

KNOWN_NAME = next(iter(KNOWN_FAILURES))


def ended(name: str, status: int) -> Result:
    return Result(name, status, 0.5, "one\ntwo\nthree\nfour" if status else "")


def test_a_script_passes_or_fails_by_its_status_and_a_failure_has_its_words() -> None:
    lines = list(told(iter([ended("a", 0), ended("b", 1)])))
    assert lines == [(PASSED, "a 0.500 s"), (FAILING, "b 0.500 s: two | three | four")]


@pytest.mark.parametrize(("status", "changed", "verdict"), [
    (1, 0, KNOWN), (0, 0, PASSED), (1, 1, FAILING), (0, 1, PASSED)])
def test_a_known_failure_counts_only_if_it_passes_with_its_change(
        status: int, changed: int, verdict: str) -> None:
    results = [ended(KNOWN_NAME, status), ended(changed_name(KNOWN_NAME), changed), ended("z", 0)]
    assert [verdict for verdict, _ in told(iter(results))] == [verdict, PASSED]


def test_scripts_for_ipv6_alone_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "six.pkt").write_text("--ip_version=ipv6\n")
    (tmp_path / "four.pkt").write_text("--ip_version=ipv4\n")
    (tmp_path / "any.pkt").write_text("// either\n")
    (tmp_path / "defaults.sh").write_text("")
    assert script_names(tmp_path) == ["any", "four"]


@pytest.mark.parametrize(("statuses", "status", "count"), [
    ((0, 0), OK, "2 of 2 pass, 0 fail as known, 0 fail otherwise"),
    ((0, 1), FAILED, "1 of 2 pass, 0 fail as known, 1 fail otherwise")])
def test_the_command_fails_where_a_script_does(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
        statuses: tuple[int, ...], status: int, count: str) -> None:
    """All of it but the guest and packetdrill, which no package of Debian's has."""
    for name in "ab":
        (tmp_path / f"{name}.pkt").touch()
    monkeypatch.setattr(kernel_tests, "built_kernel", lambda: tmp_path / "linux")
    monkeypatch.setattr(kernel_tests, "run_in_guest", lambda kernel, program, scripts, names, folder:
                        map(ended, names, statuses))
    requested = ["--packetdrill", sys.executable, "--scripts", str(tmp_path)]
    assert kernel_tests.main(requested) == status
    *_, last = capsys.readouterr().out.splitlines()
    assert last.startswith(f"{count}; ")
    with pytest.raises(UsageError, match="has no script none: name a folder"):
        kernel_tests.main([*requested, "none"])
    with pytest.raises(CannotError, match="no packetdrill: build google/packetdrill, name it"):
        kernel_tests.main(["--packetdrill", str(tmp_path / "none"), *requested[2:]])


def test_a_tool_that_a_script_calls_is_missed_before_it_fails(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.pkt").touch()
    (tmp_path / "b.pkt").write_text("`ethtool -K tun0 gso off`\n")
    monkeypatch.setattr(kernel_tests, "built_kernel", lambda: tmp_path / "linux")
    monkeypatch.setattr(kernel_tests, "run_in_guest", lambda *_: iter([ended("a", 0)]))
    monkeypatch.setattr(kernel_tests, "PATH", str(tmp_path))
    requested = ["--packetdrill", sys.executable, "--scripts", str(tmp_path)]
    assert kernel_tests.main([*requested, "a"]) == OK
    with pytest.raises(CannotError, match="^no ethtool, which b calls: apt-get install ethtool$"):
        kernel_tests.main(requested)
    (tmp_path / "ethtool").touch(mode=0o755)
    monkeypatch.setattr(kernel_tests, "run_in_guest", lambda *_: map(ended, "ab", (0, 0)))
    assert kernel_tests.main(requested) == OK
