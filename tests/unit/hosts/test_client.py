"""The fetching client gets ready for a program before it is asked to fetch with it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(("program", "library"), [
    ("curl", "/libcurl.so.4"), ("libcurl", "/pycurl."), ("wget", "")])
def test_what_a_program_needs_stays_in_memory(program: str, library: str) -> None:
    """A guest forgets a file that nobody has open."""
    with subprocess.Popen([sys.executable, "-S", "-E", "-m", "client"], cwd=PROJECT, text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:
        assert client.stdin and client.stdout
        mapped = Path(f"/proc/{client.pid}/maps")
        for request in ({"load": "nothing"}, {"load": program}):
            client.stdin.write(json.dumps(request) + "\n")
            client.stdin.flush()
            assert json.loads(client.stdout.readline()) == {"loaded": request["load"]}
            there = [name for name in ("/libcurl.so.4", "/pycurl.") if name in mapped.read_text()]
            assert there == ([library] if library and request["load"] == program else [])
        client.stdin.close()
    assert client.returncode == 0
