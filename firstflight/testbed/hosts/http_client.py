"""Timed fetches with curl or wget, on the client host.

Reads one JSON request a line from standard input, runs the program, writes
one JSON answer a line to standard output:

    {"program": "curl", "urls": ["http://…"], "deadline_s": 60}
    {"fetches": [{"ok": true, "total_ms": …, "sha256": "…", …}]}
    {"load": "curl", "preload": ["…/fork_server.so", "…/kernel_random.so"]}
    {"loaded": "curl"}

The URLs of one request are fetched in order on one connection. Times are curl's: connect_ms to the
end of TCP's handshake, appconnect_ms to that of TLS, first_byte_ms to the first byte of the
response, total_ms to its last. Other keys of a request:

    trusted       file of a root certificate, the only one that curl then trusts
    apart_s       seconds between the URLs, each then on a connection of its own; the later ones
                  resume the session of the first
    http          "1.1" or "2"
    curves        key exchanges that curl offers, by OpenSSL's names; "" for its own choice
    early_bytes   length of the later requests, which then leave with the hello
                  (firstflight.testbed.hosts.tls_records); "early_data_bytes" of their answers is
                  negative if the server refused them
    named         NAME:PORT:ADDRESS, the address of a host's name
    number        any value, which the answer repeats

The program "libcurl" is curl's library in this process (pycurl): the same transfers without a
process each, for many thousands of them. Its own keys:

    think_s       seconds to wait before each URL
    window_bytes  the largest receive window
    request_bytes the body of each request, which makes it a POST; then "socket" of its answers has
                  what the kernel reports of the client's socket

wget reports no times: its total_ms is how long the process ran for all URLs together.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import importlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firstflight.testbed.hosts import tls_records
from firstflight.testbed.hosts.control import report, requests
from firstflight.testbed.hosts.transfers import Body, NarrowBody, Upload

if TYPE_CHECKING:
    import pycurl

    from firstflight.testbed.messages import Fetch

# The caller's environment is not used: a proxy or a .curlrc would change the measurement.
ENVIRONMENT = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C",
               "HOME": "/nonexistent"}
HTTP_FLAGS = {"1.1": "--http1.1", "2": "--http2"}  # curl's, by the version of HTTP
# curl 8 writes this, which is not JSON, if certificates are too long for it.
NO_CERTIFICATES = b'{"certs":,'
CURL_LIBRARY = "libcurl.so.4"
NOT_STARTED = 127  # the exit status of a shell that could not start a program
INT_BYTES = 4  # of the integers that a fork server reads and writes
# libcurl uses no connection again that was idle for longer (CURLOPT_MAXAGE_CONN, default 118 s).
MOST_IDLE_S = 24 * 3600


# curl and wget, a process each --------------------------------------------------------

Run = Callable[[Sequence[str]], "subprocess.CompletedProcess[bytes]"]


def run_program(command: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
    """Start a program and wait for its end. Raises FileNotFoundError."""
    return subprocess.run(command, env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True,
                          check=False)


class ForkServer:
    """A curl that is started once, and forks for each command line (fork_server.c).

    So its libraries are loaded and linked once, not for each fetch.
    """

    def __init__(self, preload: Sequence[str], folder: Path) -> None:
        """preload: libraries, fork_server.c's among them. folder: for what curl prints.

        Raises OSError if this curl does not become a fork server.
        """
        self.printed, self.errors = folder / "printed", folder / "errors"
        environment = {**ENVIRONMENT, "LD_PRELOAD": ":".join(preload), "LD_BIND_NOW": "1"}
        self.process = subprocess.Popen(
            ["curl"], env=environment, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL)
        if self._status() != 0:
            self.process.kill()
            self.process.communicate()
            raise OSError("curl did not start as a fork server")

    def run(self, command: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
        """As run_program; if the server has ended, the status is NOT_STARTED."""
        assert self.process.stdin is not None
        texts = str(self.printed), str(self.errors), *command
        words = b"".join(os.fsencode(text) + b"\0" for text in texts)
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(len(words).to_bytes(INT_BYTES, sys.byteorder) + words)
        status = self._status()
        if status is None:
            return subprocess.CompletedProcess(command, NOT_STARTED, stdout=b"",
                                               stderr=b"its server has ended")
        return subprocess.CompletedProcess(command, os.waitstatus_to_exitcode(status),
                                           stdout=take_file(self.printed),
                                           stderr=take_file(self.errors))

    def _status(self) -> int | None:
        assert self.process.stdout is not None
        status = self.process.stdout.read(INT_BYTES)
        return int.from_bytes(status, sys.byteorder) if len(status) == INT_BYTES else None


def fetch_with_curl(urls: list[str], deadline_s: float, folder: Path, trusted: str = "",
                    apart_s: int = 0, http: str = "1.1", curves: str = "", named: str = "",
                    early_bytes: int = 0, run: Run = run_program) -> list[Fetch]:
    """Fetch with one curl process; one answer per URL, in order. run: how curl is started."""
    command = ["curl", "-q", "--silent", HTTP_FLAGS[http], "--write-out", "%{json}\n",
               "--max-time", f"{deadline_s:.3f}"]
    if http == "1.1" and (len(urls) == 1 or apart_s):
        command += ["--header", "Connection: close"]
    if named:
        command += ["--resolve", named]
    if trusted:
        command += ["--cacert", trusted, "--tlsv1.3"]
    if trusted and curves:
        command += ["--curves", curves]
    if apart_s:  # packets of the connection before must not meet those of the next one
        command += ["--rate", f"{max(3600 // apart_s, 1)}/h"]
    if early_bytes:
        command += tls_records.flags(urls[-1], early_bytes)

    bodies = [folder / f"body{number}" for number in range(len(urls))]
    for url, body in zip(urls, bodies):
        command += ["--output", str(body), url]
    done = run(command)

    answers: list[Fetch] = []
    for line in done.stdout.splitlines():
        if line.startswith(b"{"):
            row = json.loads(line.replace(NO_CERTIFICATES, b"{", 1))
            answers.append(curl_answer(row, bodies[len(answers)]))
    reason = (f"curl ended with status {done.returncode} before this fetch"
              f"{_first_line(done.stderr)}")
    return answers + [failure(reason) for _ in urls[len(answers):]]


def _first_line(printed: bytes) -> str:
    lines = printed.decode(errors="replace").strip().splitlines()
    return f": {lines[0]}" if lines else ""


def curl_answer(row: Mapping[str, Any], body: Path) -> Fetch:
    """The answer, from curl's --write-out '%{json}' of one transfer."""
    answer: Fetch = {
        "connect_ms": milliseconds(row["time_connect"]),
        "appconnect_ms": milliseconds(row["time_appconnect"]) or None,
        "first_byte_ms": milliseconds(row["time_starttransfer"]),
        "total_ms": milliseconds(row["time_total"]),
        "port": port_or_zero(row.get("local_port") or 0),
        "exit_status": int(row["exitcode"]),
        "early_data_bytes": int(row.get("tls_earlydata", 0)),
        "http_status": int(row["http_code"]),
        "http_version": str(row.get("http_version", ""))}
    return with_result(answer, take_file(body), row.get("errormsg") or "")


def fetch_with_wget(urls: list[str], deadline_s: float, folder: Path) -> list[Fetch]:
    """Fetch with one wget process; one answer for all the URLs together."""
    body = folder / "body"
    command = ["wget", "--no-config", "--quiet", "--no-proxy", "--tries=1",
               f"--output-document={body}", *urls]
    if len(urls) == 1:
        command.insert(1, "--header=Connection: close")

    start = time.monotonic()
    with subprocess.Popen(command, env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as wget:
        # wait() would poll, and sleep for a millisecond if it looked a moment too early.
        ended = os.pidfd_open(wget.pid)
        in_time, _, _ = select.select([ended], [], [], deadline_s)
        elapsed_ms = round((time.monotonic() - start) * 1000, 3)
        os.close(ended)
        if not in_time:
            wget.kill()
            return [failure(f"wget did not finish in {deadline_s:g} s")]
        status = wget.wait()

    error = f"wget {status}: {WGET_ERRORS.get(status, 'failed')}" if status else ""
    answer: Fetch = {
        "connect_ms": None, "first_byte_ms": None, "total_ms": elapsed_ms, "port": 0,
        "exit_status": status, "http_status": None, "ok": not error, "error": error}
    return [with_digest(answer, take_file(body))]


# wget(1), EXIT STATUS
WGET_ERRORS = {1: "generic error", 2: "parse error", 3: "file I/O error", 4: "network failure",
               6: "authentication failure", 7: "protocol error", 8: "server error response"}


# curl's library, in this process (pycurl): many thousands of fetches -------------------

def fetch_with_libcurl(urls: list[str], deadline_s: float, folder: Path,
                       think_s: Sequence[float] = (), window_bytes: int = 0,
                       request_bytes: int = 0) -> list[Fetch]:
    """Fetch with libcurl in this process; one answer per URL, in order.

    think_s: seconds to wait before each of them. deadline_s: for each of them. window_bytes: the
    largest window that the connection advertises, 0 for no limit. request_bytes: of the body of
    each request.
    """
    import pycurl
    handle = pycurl.Curl()
    handle.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1)
    handle.setopt(pycurl.TIMEOUT_MS, int(deadline_s * 1000))
    handle.setopt(pycurl.USERAGENT, f"curl/{pycurl.version_info()[1]}")  # as long as curl's
    handle.setopt(pycurl.PROXY, "")
    handle.setopt(pycurl.MAXAGE_CONN, MOST_IDLE_S)

    body = NarrowBody(handle, window_bytes) if window_bytes else Body(handle)
    upload = Upload(handle, body, request_bytes) if request_bytes else None
    headers = ["Connection: close"] if len(urls) == 1 else []
    if upload is not None:
        headers += Upload.HEADERS
    if headers:
        handle.setopt(pycurl.HTTPHEADER, headers)

    try:
        answers = []
        for number, url in enumerate(urls):
            if number < len(think_s):
                time.sleep(think_s[number])
            answers.append(libcurl_answer(handle, url, body, upload))
            if upload is not None:
                upload.add_to(answers[-1])
        return answers
    finally:
        handle.close()


def libcurl_answer(handle: pycurl.Curl, url: str, body: Body, upload: Upload | None) -> Fetch:
    """Perform one transfer; the answer is as from curl's --write-out '%{json}'."""
    import pycurl
    handle.setopt(pycurl.URL, url)
    status, reason = 0, ""
    try:
        handle.perform()
    except pycurl.error as error:
        status, reason = error.args

    total_ms = milliseconds(handle.getinfo(pycurl.TOTAL_TIME))
    first_byte_ms: float | None = milliseconds(handle.getinfo(pycurl.STARTTRANSFER_TIME))
    if upload is not None:
        first_byte_ms = upload.first_byte_ms(total_ms)
    answer: Fetch = {
        "connect_ms": milliseconds(handle.getinfo(pycurl.CONNECT_TIME)),
        "first_byte_ms": first_byte_ms,
        "total_ms": total_ms,
        "port": port_or_zero(handle.getinfo(pycurl.LOCAL_PORT)),
        "exit_status": status,
        "http_status": handle.getinfo(pycurl.RESPONSE_CODE)}
    return with_result(answer, body.take(), reason)


# The answer about a fetch, whatever program made it ------------------------------------

def with_result(answer: Fetch, body: bytes, reason: str) -> Fetch:
    """The answer with size and digest of its body, and whether curl's fetch succeeded.

    Its "error" is of curl's exit status or of the HTTP status. reason: curl's words.
    """
    error = ""
    if answer["exit_status"] != 0:
        error = f"curl {answer['exit_status']}: {reason or 'failed'}"
    elif answer["http_status"] != 200:
        error = f"HTTP status {answer['http_status']}"
    answer["ok"], answer["error"] = not error, error
    return with_digest(answer, body)


def with_digest(answer: Fetch, body: bytes) -> Fetch:
    """The answer with size and digest of its body."""
    answer["size"], answer["sha256"] = len(body), hashlib.sha256(body).hexdigest()
    return answer


def failure(reason: str) -> Fetch:
    """The answer about a fetch of which no program reported anything."""
    return {"connect_ms": None, "first_byte_ms": None, "total_ms": None, "port": 0,
            "exit_status": None, "http_status": None, "size": 0, "sha256": "",
            "ok": False, "error": reason}


def take_file(path: Path) -> bytes:
    """Read what a program wrote into a file, and delete the file; b"" where there is none."""
    try:
        data = path.read_bytes()
        path.unlink()
    except FileNotFoundError:
        return b""
    return data


def port_or_zero(port: int) -> int:
    """The client's port, 0 for none: curl 8.14 reports -1 if it never connected."""
    return max(0, port)


def milliseconds(seconds: float) -> float:
    """curl counts in whole microseconds: three decimals keep them all."""
    return round(float(seconds) * 1000, 3)


# Requests ------------------------------------------------------------------------------

PROGRAMS: dict[str, Callable[[list[str], float, Path], list[Fetch]]] = {
    "libcurl": fetch_with_libcurl, "wget": fetch_with_wget}
# What only curl's library can do: it fetches a request with such a key, whatever its program.
ONLY_LIBCURL = ("think_s", "window_bytes", "request_bytes")


def answer_request(request: Mapping[str, Any], folder: Path, run: Run = run_program
                   ) -> dict[str, list[Fetch]]:
    """The answer to a request. run: how curl is started."""
    program = request["program"]
    urls, deadline_s = request["urls"], float(request["deadline_s"])
    try:
        if any(key in request for key in ONLY_LIBCURL):
            fetches = fetch_with_libcurl(
                urls, deadline_s, folder, think_s=request.get("think_s", ()),
                window_bytes=request.get("window_bytes", 0),
                request_bytes=request.get("request_bytes", 0))
        elif "trusted" in request:
            fetches = fetch_with_curl(
                urls, deadline_s, folder, trusted=request["trusted"],
                apart_s=request["apart_s"], http=request.get("http", "1.1"),
                curves=request.get("curves", ""), named=request.get("named", ""),
                early_bytes=request.get("early_bytes", 0), run=run)
        elif program == "curl":
            fetches = fetch_with_curl(urls, deadline_s, folder, run=run)
        else:
            fetches = PROGRAMS[program](urls, deadline_s, folder)
    except (FileNotFoundError, ImportError):
        fetches = [failure(f"{program} is not installed") for _ in urls]
    return {"fetches": fetches}


def import_library() -> None:
    """Import curl's library where it is installed; else each fetch reports that it is not."""
    with contextlib.suppress(ImportError):
        importlib.import_module("pycurl")


def load(program: str, preload: Sequence[str], folder: Path) -> Run:
    """Load a program before the first fetch that counts; return how curl is started from then on.

    A guest's clock counts a microsecond for every failing system call, and loading makes some: the
    first fetch would begin later within a jiffy than the others. preload: libraries for curl
    (hosts/*.c).
    """
    if program == "libcurl":
        import site
        site.main()  # started with -S, for speed: only this needs Debian's packages
        import_library()
    elif program == "curl":
        with contextlib.suppress(OSError):
            if preload:
                return ForkServer(preload, folder).run
        # A guest drops a file's content from memory once nobody has it open, and would read some
        # forty libraries again for every process.
        with contextlib.suppress(OSError):
            ctypes.CDLL(CURL_LIBRARY)
    return run_program


class RequestError(Exception):
    """A request that cannot be answered, in words."""


# What every fetch names: a key, its type, and this type in words.
NEEDED: tuple[tuple[str, type | tuple[type, ...], str], ...] = (
    ("program", str, "a string"), ("urls", list, "a list"),
    ("deadline_s", (int, float), "a number"))


def check_request(request: object) -> None:
    """Check what a user may have typed wrong. Raises RequestError."""
    if not isinstance(request, dict):
        raise RequestError("a request is an object, {…}")
    if "load" in request:
        return

    for key, type_, words in NEEDED:
        if key not in request:
            raise RequestError(f'the request has no "{key}"')
        if not isinstance(request[key], type_) or isinstance(request[key], bool):
            raise RequestError(f'"{key}" has to be {words}')

    if request["program"] not in ("curl", *PROGRAMS):
        raise RequestError(f'"program" is {request["program"]!r}, and has to be curl or'
                           f" {' or '.join(PROGRAMS)}")
    if not all(isinstance(url, str) for url in request["urls"]) or not request["urls"]:
        raise RequestError('"urls" has to be a list of strings')
    if request["deadline_s"] <= 0:
        raise RequestError('"deadline_s" has to be above 0')


def main() -> int:
    try:
        return answer_requests()
    except KeyboardInterrupt:
        return 130
    except (json.JSONDecodeError, RecursionError) as error:
        return refuse(f"not JSON: {error}")
    except RequestError as error:
        return refuse(str(error))


def answer_requests() -> int:
    """Answer all of standard input; return the exit status."""
    if len(sys.argv) > 1 or sys.stdin.isatty():
        return refuse()

    import tempfile  # not for the worker, which fetches by libcurl itself
    has_read = False
    run: Run = run_program
    with tempfile.TemporaryDirectory(prefix="first-flight-") as folder:
        for request in requests():
            has_read = True
            check_request(request)
            number = {"number": request["number"]} if "number" in request else {}
            if "load" in request:
                run = load(request["load"], request.get("preload", []), Path(folder))
                report({"loaded": request["load"], **number})
            else:
                report({**answer_request(request, Path(folder), run), **number})
    return 0 if has_read else refuse()


def refuse(why: str = "takes no flags") -> int:
    """Print what standard input has to hold; return the exit status."""
    print(f"client.py: {why}; it reads a JSON request a line from standard input, such"
          ' as {"program": "curl", "urls": ["http://127.0.0.1:8080/1000"], "deadline_s": 60}',
          file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
