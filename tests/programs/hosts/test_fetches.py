"""client.py fetches from server.py on this machine: with curl, curl linked once, libcurl and wget.

Curl linked once is a process that has loaded curl and forks for each fetch.
"""

from __future__ import annotations

import hashlib
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from firstflight.testbed import fork_server
from firstflight.testbed.hosts import http_client
from firstflight.testbed.hosts.kernel import TcpInfo
from firstflight.testbed.hosts.serving import body_of
from firstflight.testbed.messages import FORK_SERVER, KERNEL_RANDOM
from tests.programs.hosts.running import Program, running
from tests.running import HANGS_S

SIZE = 70_000
DIGEST = hashlib.sha256(body_of(SIZE)).hexdigest()
FORKED = "curl, linked once"
# A library in which getrandom always gives the same bytes, as if a kernel did.
CONSTANT = """
#include <string.h>
#include <sys/random.h>

ssize_t getrandom(void *place, size_t bytes, unsigned int flags)
{
	memset(place, 7, bytes);
	return bytes;
}
"""
PROGRAMS = ("curl", FORKED, "libcurl", "wget")


@pytest.fixture(name="server", scope="module")
def _server() -> Iterator[tuple[Program, str]]:
    with running("server", "--port", "0") as program:
        yield program, f"http://127.0.0.1:{program.line()['port']}"


def fetched(folder: Path, program: str, *urls: str, **more: Any) -> list[dict[str, Any]]:
    """The client's answers on fetches of these URLs; it leaves nothing in the folder.

    more: other keys of the request.
    """
    request = {"program": program.partition(",")[0], "urls": list(urls), "deadline_s": HANGS_S,
               **more}
    if program == FORKED:
        with linked_once(folder) as server:
            answer = http_client.answer_request(request, folder, server.run)
    else:
        answer = http_client.answer_request(request, folder)
    assert list(answer) == ["fetches"] and not list(folder.iterdir())
    fetches = answer["fetches"]
    assert isinstance(fetches, list)
    return fetches


@contextmanager
def linked_once(folder: Path) -> Iterator[http_client.ForkServer]:
    """The server of curl, which forks for each command."""
    library = fork_server.library()
    assert library is not None
    server = http_client.ForkServer([str(library)], folder)
    try:
        yield server
        assert server.process.poll() is None
    finally:
        for pipe in (server.process.stdin, server.process.stdout):
            assert pipe is not None
            pipe.close()
        assert server.process.wait(HANGS_S) == 0, "it ends with its standard input"


def responses(program: Program, mark: Path, count: int) -> list[dict[str, Any]]:
    """The server's next reports on responses to paths that end with the name of `mark`."""
    reports: list[dict[str, Any]] = []
    while len(reports) < count:
        line = program.line()
        if str(line.get("path")).endswith(f"?for={mark.name}"):
            reports.append(line)
    return reports


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_clients_report_of_a_fetch_agrees_with_the_servers(
        tmp_path: Path, server: tuple[Program, str], program: str) -> None:
    began = time.monotonic()
    (answer,) = fetched(tmp_path, program, f"{server[1]}/{SIZE}?for={tmp_path.name}")
    (told,) = responses(server[0], tmp_path, 1)
    timed = program != "wget"
    assert {name: answer[name] for name in ("ok", "error", "size", "sha256", "exit_status",
                                            "http_status", "port")} == {
        "ok": True, "error": "", "size": SIZE, "sha256": DIGEST, "exit_status": 0,
        "http_status": 200 if timed else None, "port": told["client_port"] if timed else 0}
    assert (answer["connect_ms"], answer["first_byte_ms"]) == (None, None) or timed
    assert not timed or (0 < answer["connect_ms"] < answer["first_byte_ms"]
                         <= answer["total_ms"] < (time.monotonic() - began) * 1000)
    assert 0.1 < answer["total_ms"] == round(answer["total_ms"], 3)


@pytest.mark.parametrize("program", PROGRAMS)
def test_several_fetches_share_a_connection(tmp_path: Path, server: tuple[Program, str],
                                            program: str) -> None:
    answers = fetched(tmp_path, program, *(f"{server[1]}/{size}?for={tmp_path.name}"
                                           for size in (10, 2000, 30)))
    told = responses(server[0], tmp_path, 3)
    assert len({response["connection"] for response in told}) == 1
    assert [response["body_bytes"] for response in told] == [10, 2000, 30]
    if program == "wget":  # which reports on all of them together
        assert [answer["size"] for answer in answers] == [2040]
    else:
        assert [answer["size"] for answer in answers] == [10, 2000, 30]
        assert answers[1]["connect_ms"] == answers[2]["connect_ms"] == 0
        assert all(answer["ok"] for answer in answers)


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_client_sends_the_same_request(tmp_path: Path, server: tuple[Program, str],
                                             program: str) -> None:
    """It is the request of a single fetch, whose connection is closed after it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        listener.settimeout(HANGS_S)
        heads: list[bytes] = []

        def serve() -> None:
            accepted, _ = listener.accept()
            with accepted:
                accepted.settimeout(HANGS_S)
                while b"\r\n\r\n" not in b"".join(heads):
                    heads.append(accepted.recv(4096))
                accepted.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        thread = threading.Thread(target=serve)
        thread.start()
        (answer,) = fetched(tmp_path, program, f"http://127.0.0.1:{port}/2")
        thread.join()
    head = b"".join(heads).decode()
    assert answer["ok"] and head.startswith("GET /2 HTTP/1.1\r\n")
    assert "Connection: close\r\n" in head and f"Host: 127.0.0.1:{port}\r\n" in head
    agent = next(line for line in head.splitlines() if line.startswith("User-Agent: "))
    assert agent.startswith("User-Agent: wget" if program == "wget" else "User-Agent: curl/"
                            ) or agent.startswith("User-Agent: Wget/")


@pytest.mark.parametrize("program, error", [
    ("curl", "HTTP status 404"), (FORKED, "HTTP status 404"), ("libcurl", "HTTP status 404"),
    ("wget", "wget 8: server error response")])
def test_a_fetch_with_status_404_fails(tmp_path: Path, server: tuple[Program, str], program: str,
                                       error: str) -> None:
    (answer,) = fetched(tmp_path, program, f"{server[1]}/much")
    assert (answer["ok"], answer["error"], answer["size"]) == (False, error, 0)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_fetch_where_nobody_listens_fails_with_the_reason(tmp_path: Path, program: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        (answer,) = fetched(tmp_path, program, f"http://127.0.0.1:{taken.getsockname()[1]}/1")
    assert (answer["ok"], answer["size"], answer["sha256"]) == (
        False, 0, hashlib.sha256(b"").hexdigest())
    begin, end = ("wget 4: network failure", "") if program == "wget" else ("curl 7: ", "refused")
    assert answer["error"].startswith(begin) and (
        not end or end in answer["error"].lower() or "connect to server" in answer["error"])
    assert answer["exit_status"] == (4 if program == "wget" else 7)


@pytest.mark.parametrize("program, error", [
    ("curl", "curl 28: "), ("libcurl", "curl 28: "), ("wget", "wget did not finish in ")])
def test_a_deadline_ends_a_fetch(tmp_path: Path, server: tuple[Program, str], program: str,
                                 error: str) -> None:
    for deadline_s in (0.5, 5.0, 50.0):  # longer if a busy machine's first bytes came too late
        answer = http_client.answer_request({
            "program": program, "deadline_s": deadline_s,
            "urls": [f"{server[1]}/9000?burst=100&gap_ms=600000"]}, tmp_path)["fetches"][0]
        if answer["size"] or program == "wget":
            break
    assert not answer["ok"] and answer["error"].startswith(error)
    assert answer["size"] == (0 if program == "wget" else 100)


def test_fetches_that_curl_did_not_begin_have_an_error_each(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: tuple[Program, str]) -> None:
    answers = fetched(tmp_path, "curl", f"{server[1]}/5", "nonsense://x", f"{server[1]}/6")
    assert [answer["ok"] for answer in answers] == [True, False, True]
    assert answers[1]["error"].startswith("curl 1: ") and answers[1]["port"] <= 0  # -1: curl 8
    curl = tmp_path / "bin" / "curl"
    curl.parent.mkdir()
    curl.write_text("#!/bin/sh\necho told\nexit 3\n")
    curl.chmod(0o700)
    monkeypatch.setitem(http_client.ENVIRONMENT, "PATH", str(curl.parent))
    answers = http_client.fetch_with_curl(["a", "b"], 1.0, tmp_path)
    assert answers == [http_client.failure("curl ended with status 3 before this fetch")] * 2
    assert answers[0] == {
        "connect_ms": None, "first_byte_ms": None, "total_ms": None, "port": 0,
        "exit_status": None, "http_status": None, "size": 0, "sha256": "", "ok": False,
        "error": "curl ended with status 3 before this fetch"}


@pytest.mark.parametrize("program", ["curl", "wget"])
def test_every_fetch_of_a_missing_program_has_an_error(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    monkeypatch.setitem(http_client.ENVIRONMENT, "PATH", str(tmp_path))
    answers = fetched(tmp_path, program, "http://127.0.0.1/1", "http://127.0.0.1/2")
    assert [answer["error"] for answer in answers] == [f"{program} is not installed"] * 2


def test_curl_linked_once_answers_as_curl(tmp_path: Path) -> None:
    """Output, errors and status are the same, also for a long command line and after a signal."""
    with linked_once(tmp_path) as server:
        for command in (["curl", "--version"], ["curl", "--no-such-flag"],
                        ["curl", "-q", f"file://{tmp_path}/none"],
                        ["curl", "--silent", *["file:///etc/hostname"] * 1000]):
            once, anew = server.run(command), http_client.run_program(command)
            assert (once.returncode, once.stdout, once.stderr) == (
                anew.returncode, anew.stdout, anew.stderr)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            def kill() -> None:
                with silent.accept()[0]:
                    subprocess.run(["pkill", "-KILL", "-P", str(server.process.pid)], check=True)

            threading.Thread(target=kill).start()
            url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
            assert server.run(["curl", url]).returncode == -signal.SIGKILL


def test_a_killed_server_of_curl_gives_an_error(tmp_path: Path) -> None:
    library = fork_server.library()
    assert library is not None
    server = http_client.ForkServer([str(library)], tmp_path)
    server.process.kill()
    server.process.wait(HANGS_S)
    answer = http_client.answer_request({"program": "curl", "urls": ["http://127.0.0.1/1"],
                                         "deadline_s": 1.0}, tmp_path, server.run)
    assert [fetch["error"] for fetch in answer["fetches"]] == [
        "curl ended with status 127 before this fetch: its server has ended"]


def test_curl_linked_once_draws_from_the_kernel(tmp_path: Path) -> None:
    """So the seed of a trial decides what the server signs, and how long the signature is."""
    source, constant = tmp_path / "constant.c", tmp_path / "constant.so"
    source.write_text(CONSTANT)
    subprocess.run([*fork_server.COMPILE, "-o", constant, source], check=True)
    libraries = fork_server.libraries()
    without = [str(constant), str(libraries[FORK_SERVER])]
    with_kernels_random = [*without, str(libraries[KERNEL_RANDOM])]
    assert len({hello_of_curl(with_kernels_random, tmp_path) for _ in range(3)}) == 1
    assert len({hello_of_curl(without, tmp_path) for _ in range(3)}) == 3


def hello_of_curl(preload: list[str], folder: Path) -> bytes:
    """curl's first message of TLS, which has random numbers. preload: libraries that it loads."""
    server = http_client.ForkServer(preload, folder)
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor() as pool:
        port = listener.getsockname()[1]
        fetching = pool.submit(server.run, ["curl", "--silent", f"https://127.0.0.1:{port}/"])
        with listener.accept()[0] as connection:
            hello = connection.recv(4096)
        fetching.result()
    server.process.communicate()
    return hello


@pytest.mark.parametrize("curl", ["#!/bin/sh\nexec /usr/bin/curl \"$@\"\n", "#!/bin/sh\nexit 0\n"])
def test_a_wrapper_of_curl_is_started_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                               curl: str) -> None:
    """Curl linked once would run without the flags that a wrapper adds."""
    (tmp_path / "curl").write_text(curl)
    (tmp_path / "curl").chmod(0o700)
    monkeypatch.setitem(http_client.ENVIRONMENT, "PATH", str(tmp_path))
    library = fork_server.library()
    assert library is not None
    for preload in ([str(library)], ["/none.so"], []):
        assert http_client.load("curl", preload, tmp_path) is http_client.run_program


def test_the_library_of_curl_is_compiled_once_and_left_out_on_failure(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a compiler, or if it fails, there is no library and no file is left."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("SUDO_USER", raising=False)
    with monkeypatch.context() as patch:
        patch.setattr(fork_server, "COMPILE", ("false",))
        assert fork_server.library() is None
        patch.setattr(fork_server, "COMPILE", ("no-such-compiler",))
        assert fork_server.library() is None
    assert not [*tmp_path.rglob("*.so")] and not [*tmp_path.rglob(".*")]
    library = fork_server.library()
    assert library is not None and [*tmp_path.rglob("*.so")] == [library]
    before = library.stat()
    assert fork_server.library() == library and library.stat() == before


def test_a_think_time_counts_for_no_fetch(tmp_path: Path, server: tuple[Program, str],
                                          monkeypatch: pytest.MonkeyPatch) -> None:
    sleep, woke = time.sleep, []

    def thinking(seconds: float) -> None:
        sleep(seconds)
        woke.append(time.monotonic())

    monkeypatch.setattr(http_client.time, "sleep", thinking)
    began, url = time.monotonic(), f"{server[1]}/{SIZE}?for={tmp_path.name}"
    answers = fetched(tmp_path, "libcurl", url, url, url, think_s=[0, 0, 0.3], window_bytes=20_000)
    ended = time.monotonic()
    assert ended - began > 0.3 and [answer["sha256"] for answer in answers] == [DIGEST] * 3
    # The time of a later fetch begins after its think time.
    assert all(answer["ok"] for answer in answers)
    assert answers[2]["total_ms"] <= (ended - woke[2]) * 1000
    assert len({response["connection"] for response in responses(server[0], tmp_path, 3)}) == 1


@pytest.mark.parametrize("size", [1, 65_535, 65_536, 300_000])
def test_curls_library_uploads_and_reports_its_socket(server: tuple[Program, str], tmp_path: Path,
                                                      size: int) -> None:
    url = f"{server[1]}/{SIZE}?for={tmp_path.name}"
    digest = hashlib.sha256(body_of(size)).hexdigest()
    answers = fetched(tmp_path, "libcurl", url, url, request_bytes=size)
    told = responses(server[0], tmp_path, 2)
    assert [answer["sha256"] for answer in answers] == [DIGEST] * 2
    for answer, response in zip(answers, told):
        assert 0 < answer["first_byte_ms"] <= answer["total_ms"]
        assert (response["request_body_bytes"], response["request_sha256"]) == (size, digest)
        reported = answer["socket"]
        assert (reported["request_bytes"], reported["request_sha256"]) == (size, digest)
        # On the loopback data is acknowledged before curl says that the head has left.
        assert reported["initial_window"] >= told[0]["initial_window"]
        assert reported["congestion_control"] == response["congestion_control"]


def test_a_narrow_window_is_advertised_to_the_server(tmp_path: Path) -> None:
    """The client's first acknowledgement has it, so the server sees how much it may send."""
    windows: dict[int, int] = {}
    for window_bytes in (0, 30_000):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            def serve(window_bytes: int = window_bytes) -> None:
                accepted, _ = listener.accept()
                with accepted:
                    accepted.recv(4096)
                    windows[window_bytes] = TcpInfo.of_socket(accepted).send_window_bytes
                    accepted.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            thread = threading.Thread(target=serve)
            thread.start()
            url = f"http://127.0.0.1:{listener.getsockname()[1]}/2"
            fetched(tmp_path, "libcurl", url, think_s=[0], window_bytes=window_bytes)
            thread.join()
    assert windows[30_000] <= 30_000 < windows[0]


def test_a_client_answers_each_line_with_a_line(server: tuple[Program, str]) -> None:
    with running("client") as program:
        for size in (3, 4):
            program.ask({"program": "libcurl", "urls": [f"{server[1]}/{size}"],
                         "deadline_s": HANGS_S})
            (answer,) = program.line()["fetches"]
            assert answer["ok"] and answer["size"] == size
        assert program.process.stdin is not None
        program.process.stdin.close()
        assert program.process.wait(HANGS_S) == 0


@pytest.mark.parametrize("seconds, ms", [(0.0000004, 0.0), (0.1234567, 123.457), ("0.5", 500.0)])
def test_times_are_rounded_to_microseconds(seconds: float, ms: float) -> None:
    assert http_client.milliseconds(seconds) == ms
