"""What a run was measured with is read off this machine; what is not there is ""."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from firstflight.base import __version__
from firstflight.runs.results import provenance


def commit(folder: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=b",
                           *words], check=True, capture_output=True, text=True).stdout.strip()


def test_the_project_is_told_by_its_commit_and_whether_it_was_changed(tmp_path: Path) -> None:
    commit(tmp_path, "init", "-q")
    (tmp_path / "file").write_text("one")
    commit(tmp_path, "add", "file")
    commit(tmp_path, "commit", "-qm", "first")
    (tmp_path / "untracked").write_text("")
    os.utime(tmp_path / "file", (9, 9))  # git would note in its index that the content is the same
    index = (tmp_path / ".git" / "index").read_bytes()
    told = provenance.of_this_machine(tmp_path)["project"]
    assert (tmp_path / ".git" / "index").read_bytes() == index, "after sudo it would be root's"
    assert told == {"version": __version__, "commit": commit(tmp_path, "rev-parse", "HEAD"),
                    "changed": False}
    (tmp_path / "file").write_text("two")
    assert provenance.of_this_machine(tmp_path)["project"]["changed"] is True


def test_the_machine_and_its_tools_are_told(tmp_path: Path) -> None:
    told = provenance.of_this_machine(tmp_path)
    assert told["machine"] == {"kernel": platform.release(), "cpus": os.cpu_count(),
                               "processor": provenance.processor(), "system": provenance.system()}
    assert told["machine"]["system"] == platform.freedesktop_os_release()["PRETTY_NAME"]
    assert told["machine"]["processor"] in Path("/proc/cpuinfo").read_text()
    assert told["tools"]["python"] == ".".join(map(str, sys.version_info[:3]))
    assert told["tools"]["curl"].startswith("curl ") and "\n" not in told["tools"]["curl"]
    assert told["tools"]["iproute2"].startswith("ip utility, iproute2")
    assert told["tools"]["openssl"].startswith("OpenSSL ")
    there = shutil.which("nginx", path=f"{os.defpath}:/usr/sbin:/sbin")
    assert told["tools"]["nginx"].startswith("nginx") == bool(there)
    assert told["project"] == {"version": __version__, "commit": "", "changed": False}


@pytest.mark.parametrize("said, told", [
    ("echo nginx version: nginx/1.22.1; echo built by gcc; echo 'built with OpenSSL 3.0.11 19 Sep"
     " 2023 (running with OpenSSL 3.0.17 1 Jul 2025)'; echo --with-openssl",
     "nginx/1.22.1, OpenSSL 3.0.17 1 Jul 2025"),
    ("echo nginx version: nginx/1.26.3; echo built with OpenSSL 3.5.1 1 Jul 2025",
     "nginx/1.26.3, built with OpenSSL 3.5.1 1 Jul 2025"),
    ("echo nginx version: nginx/1.22.1", "nginx/1.22.1"), ("true", ""),
    ("echo 'nginx: error: a library is missing'; exit 127", "")])
def test_nginx_tells_itself_and_the_library_that_it_runs_with(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, told: str) -> None:
    """On standard error; one that does not start is none."""
    (tmp_path / "nginx").write_text(
        f"#!/bin/sh\nexec >&2\n[ $# = 1 ] && [ $1 = -V ] || exit 9\n{said}\n")
    (tmp_path / "nginx").chmod(0o755)
    monkeypatch.setattr(os, "defpath", str(tmp_path))
    assert provenance.nginx() == told


def test_the_first_line_of_what_succeeds() -> None:
    assert provenance.first_line(["printf", " a b \nc\n"]) == "a b"
    assert provenance.first_line(["sh", "-c", "echo said; exit 3"]) == ""
    assert provenance.first_line(["no-such-command"]) == ""


@pytest.mark.parametrize("content, value", [
    ("other: 1\nmodel name\t: A CPU: 2 GHz \nmodel name: B\n", "A CPU: 2 GHz"),
    ("model names: A\nmodel name\n", ""), ("", "")])
def test_a_value_by_its_key(tmp_path: Path, content: str, value: str) -> None:
    (tmp_path / "file").write_text(content)
    assert provenance.value_of(tmp_path / "file", "model name", ":") == value
    assert provenance.value_of(tmp_path / "none", "model name", ":") == ""
