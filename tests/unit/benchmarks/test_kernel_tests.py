"""Linux's own tests as the benchmark counts them: a known failure has to pass with its change."""

from __future__ import annotations

from pathlib import Path

import pytest

from base.errors import UsageError
from benchmarks.outside.kernel_tests import KNOWN_FAILURES, is_known, scripts_in
from vtime.command.packetdrill import FAILED, PASSED, Result, Script

((NAME, CHANGE),) = KNOWN_FAILURES.items()


def ended(name: str, verdict: str, version: str = "ipv4") -> Result:
    return Result(Script(Path(f"{name}.pkt"), version, ""), verdict, 0, 0.1, "")


def test_a_known_failure_is_one_only_if_its_change_passes() -> None:
    failing = ended(NAME, FAILED)
    assert is_known(failing, [failing, ended(f"{NAME}-changed", PASSED)])
    assert not is_known(failing, [failing, ended(f"{NAME}-changed", FAILED)])
    assert not is_known(failing, [failing, ended(f"{NAME}-changed", PASSED, "ipv6")])
    other = ended("other", FAILED)
    assert not is_known(other, [other, ended("other-changed", PASSED)])


def test_scripts_come_with_their_changes_under_each_version_of_ip(tmp_path: Path) -> None:
    (tmp_path / f"{NAME}.pkt").write_text(f"0 {CHANGE.line}\n")
    (tmp_path / "four.pkt").write_text("--ip_version=ipv4\n")
    found = scripts_in(tmp_path, [])
    assert [(script.path.stem, script.ip_version) for script in found][:2] == [
        ("four", "ipv4"), (f"{NAME}-changed", "ipv4")]
    assert len(found) == 7
    assert all(CHANGE.changed in script.text for script in found if "-changed" in script.path.stem)
    with pytest.raises(UsageError, match="no script none"):
        scripts_in(tmp_path, ["none"])
    (tmp_path / f"{NAME}.pkt").write_text("another version of it\n")
    with pytest.raises(UsageError, match="there is no"):
        scripts_in(tmp_path, [])
