"""Servers that are not ours, from outside: their sockets by sock_diag, their settings, their end."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from firstflight.study.fetches.scenario.tls import TlsParameters
from firstflight.testbed.bench import Lacking, WorkerError
from firstflight.testbed.guests import readable_by
from firstflight.testbed.hosts.certificates import Files
from firstflight.testbed.servers import nginx
from firstflight.testbed.servers.external import ExternalServers, own_command
from firstflight.testbed.servers.program import Program, Sockets, Watch
from firstflight.testbed.worker import worker
from vtime.uml import guest_command

FILES = Files(Path("/c/chain.pem"), Path("/c/key.pem"), Path("/c/root.pem"))
OWN = {"command": ["serve", "-p{p}", "{address}", "{chain}", "{key}"], "ready": "", "ca": "",
       "name": "", "folders": ["/srv/mine"]}


class HostHere:
    """This machine in the place of a host: what is started runs in its network."""

    pid = os.getpid()

    @staticmethod
    def popen(command: list[str], **how: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, start_new_session=True, **how)


def started(tmp_path: Path, code: str) -> Program:
    host: Any = HostHere()
    return Program("it", host, [sys.executable, "-c", code], tmp_path / "log", tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="entering a network namespace takes root")
def test_a_kernel_tells_of_connections_by_their_port() -> None:
    """While nothing is acknowledged the window is the initial one of the kernel, 10 segments."""
    sockets = Sockets(os.getpid())
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert port in sockets.listening() and sockets.open(port) == []
        watch = Watch(sockets, port, 0.1, 1000)
        with socket.create_connection(("127.0.0.1", port)) as client:
            accepted, _ = listener.accept()
            assert watch.look() == 0.1
            assert watch.look() == 0.1
            accepted.sendall(b"x" * 2000)
            client.recv(2000, socket.MSG_WAITALL)
            client.sendall(b"y" * 300)
            accepted.recv(300)
            assert watch.look() is None
            first, last = watch.of_client(client.getsockname()[1])
            accepted.close()
    sockets.close()
    assert (first.acknowledged_bytes, first.received_bytes, first.congestion_window) == (0, 0, 10)
    assert (last.acknowledged_bytes, last.received_bytes) == (2000, 300)
    assert last.mss > 88 and last.min_rtt_us > 0


def test_the_configuration_of_nginx_says_what_a_trial_asks() -> None:
    tls = TlsParameters(chain_bytes=4000, tickets=1, record_bytes=4096).tls_settings(0)
    requested = nginx.Settings.of_trial("10.0.0.2", 8443, FILES, tls, "2")
    text = nginx.configuration(requested, Path("/f"), Path("/b"))
    for line in ("listen 10.0.0.2:8443 ssl http2;", "ssl_certificate /c/chain.pem;",
                 "ssl_buffer_size 4096;", "ssl_conf_command NumTickets 1;", "root /b;"):
        assert line in text
    plain = nginx.configuration(nginx.Settings.of_trial("10.0.0.2", 8080, None, None, "1.1"), Path("/f"),
                                Path("/b"))
    assert "listen 10.0.0.2:8080;" in plain and "ssl" not in plain


def test_where_nginx_is_missing_a_trial_is_skipped(monkeypatch: pytest.MonkeyPatch,
                                                   tmp_path: Path) -> None:
    monkeypatch.setattr(nginx, "_PATH", str(tmp_path))
    others: Any = SimpleNamespace()
    with pytest.raises(Lacking, match="nginx is missing: ./install.sh --with-nginx brings it"):
        ExternalServers._nginx(others, {"paths": ["/1"]}, None)


def test_what_a_machine_lacks_is_no_failure_of_a_trial(tmp_path: Path) -> None:
    def prepare(_: Any) -> None:
        raise Lacking("nginx is missing")
    bench: Any = SimpleNamespace(sysctls={}, prepare=prepare, add_recorded=lambda observation: None)
    (tmp_path / "job.json").write_text('{"align_s": 0}')
    made = worker.Worker(tmp_path, tmp_path)
    assert made._observe(bench, {"id": "t"}) == {"trial": "t", "skipped": "nginx is missing"}


def test_a_command_is_told_where_to_listen_and_what_to_show() -> None:
    *_, program, requested = own_command(OWN, 8443, FILES)
    assert Path(program).is_file()
    assert '"command": ["serve", "-p8443", "10.0.0.2", "/c/chain.pem", "/c/key.pem"]' in requested
    *_, plain = own_command(OWN, 8080, None)
    assert '"{chain}"' in plain


def test_a_guest_reads_what_its_servers_may_read() -> None:
    jobs = [{"id": "a", "own": {**OWN, "ca": "/opt/mine.pem"}}, {"id": "b"}]
    assert readable_by(jobs) == ["/opt/mine.pem", "/srv/mine"]
    words = guest_command(Path("/k/linux"), None, ["/srv/mine"])
    assert ["--read", "/srv/mine", "/k/linux"] == words[words.index("/srv/mine") - 1:][:3]


@pytest.mark.parametrize(("code", "says"), [
    ("import sys; sys.exit('broken')", "it has ended (status 1); it said: broken"),
    ("import os; os.kill(os.getpid(), 9)", "it has ended (killed by SIGKILL); it said nothing")])
def test_a_program_that_ends_says_why(tmp_path: Path, code: str, says: str) -> None:
    program = started(tmp_path, code)
    with pytest.raises(WorkerError) as told:
        program.wait_until(lambda: False, 8080)
    assert str(told.value) == says
    program.stop()


def test_what_ignores_sigterm_is_killed_with_its_children(tmp_path: Path,
                                                          monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("firstflight.testbed.servers.program.TERM_S", 0.5)
    program = started(tmp_path, "import os, signal, time\n"
                      "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                      "child = os.fork()\n"
                      "if child: print(child, flush=True)\n"
                      "time.sleep(1000)")
    program.wait_until(lambda: program.log.stat().st_size > 0, 8080)
    child = int(program.log.read_text())
    program.stop()
    assert program.process.poll() == -9
    deadline = time.monotonic() + 120
    while runs(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not runs(child)


def runs(pid: int) -> bool:
    """Whether a process is there, and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False
