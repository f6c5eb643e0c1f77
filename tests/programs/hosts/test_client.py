"""The fetching client gets ready for a program before it is asked to fetch with it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from firstflight.testbed.hosts import http_client

PROJECT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(("program", "library"), [
    ("curl", "/libcurl.so.4"), ("libcurl", "/pycurl."), ("wget", "")])
def test_what_a_program_needs_stays_in_memory(program: str, library: str) -> None:
    """A guest forgets a file that nobody has open."""
    with subprocess.Popen([sys.executable, "-S", "-E", "-m", "client"], cwd=PROJECT, text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        assert started.stdin and started.stdout
        mapped = Path(f"/proc/{started.pid}/maps")
        for request in ({"load": "nothing"}, {"load": program}):
            started.stdin.write(json.dumps(request) + "\n")
            started.stdin.flush()
            assert json.loads(started.stdout.readline()) == {"loaded": request["load"]}
            there = [name for name in ("/libcurl.so.4", "/pycurl.") if name in mapped.read_text()]
            assert there == ([library] if library and request["load"] == program else [])
        started.stdin.close()
    assert started.returncode == 0


def test_a_wget_that_does_not_end_is_ended(tmp_path: Path) -> None:
    """Its server accepts and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/9000"
        (answer,) = http_client.fetch_with_wget([url], 0.3, tmp_path)
    assert not answer["ok"] and answer["error"] == "wget did not finish in 0.3 s"


def test_a_wget_that_is_refused_says_why(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/9000"
    (answer,) = http_client.fetch_with_wget([url], 20, tmp_path)
    assert (answer["exit_status"], answer["error"]) == (4, "wget 4: network failure")
    assert 0 < answer["total_ms"] < 20_000 and answer["size"] == 0


def test_curl_may_leave_the_certificates_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As curl 8.14 writes it where a chain with ML-DSA is too long for it: no JSON by itself."""
    line = (b'{"certs":,"time_connect":0.1,"time_appconnect":0,"time_starttransfer":0.2,'
            b'"time_total":0.3,"local_port":5,"exitcode":0,"http_code":200}\n')
    monkeypatch.setattr(http_client.subprocess, "run", lambda *_, **__: subprocess.CompletedProcess(
        [], 0, stdout=line, stderr=b""))
    (told,) = http_client.fetch_with_curl(["https://10.0.0.2/1"], 1.0, tmp_path)
    assert told["ok"] and told["total_ms"] == 300


def test_a_client_that_never_connected_has_no_port(tmp_path: Path) -> None:
    """curl 8.14 reports −1 then, which is no port."""
    row = {"time_connect": 0, "time_appconnect": 0, "time_starttransfer": 0, "time_total": 3.1,
           "local_port": -1, "exitcode": 7, "http_code": 0, "errormsg": "Could not connect"}
    told = http_client.curl_answer(row, tmp_path / "body")
    assert (told["ok"], told["port"], told["error"]) == (False, 0, "curl 7: Could not connect")
