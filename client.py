#!/usr/bin/env python3
"""Timed fetches with curl or wget, on the client host.

Reads one JSON request a line from standard input, runs the program, writes
one JSON answer a line to standard output:

    {"program": "curl", "urls": ["http://…"], "deadline_s": 60}
    {"fetches": [{"ok": true, "total_ms": …, "sha256": "…", …}]}

One process fetches all the URLs of a request, each on a connection of its
own. Times are curl's: connect_ms to the end of the handshake, first_byte_ms
to the first byte of the response, total_ms to its last. wget tells no times:
its total_ms is how long the process ran, and it runs once per URL.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

# Nothing of the caller's environment: a proxy or a .curlrc would change what is measured.
ENVIRONMENT = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C", "HOME": "/nonexistent"}


def fetch_with_curl(urls: list[str], deadline_s: float, folder: Path) -> list[dict[str, Any]]:
    """Fetch with one curl process; one answer per URL, in order."""
    command = ["curl", "-q", "--silent", "--http1.1", "--write-out", "%{json}\n",
               "--max-time", f"{deadline_s:.3f}", "--header", "Connection: close"]
    bodies = [folder / f"body{number}" for number in range(len(urls))]
    for url, body in zip(urls, bodies):
        command += ["--output", str(body), url]
    done = subprocess.run(command, env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                          capture_output=True, check=False)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(b"{")]
    return [curl_answer(row, body) for row, body in zip(rows, bodies)] + [
        failure(f"curl ended with status {done.returncode} before this fetch")
        for _ in urls[len(rows):]]


def curl_answer(row: dict[str, Any], body: Path) -> dict[str, Any]:
    """What curl's --write-out '%{json}' says of one transfer."""
    answer = {
        "connect_ms": milliseconds(row["time_connect"]),
        "first_byte_ms": milliseconds(row["time_starttransfer"]),
        "total_ms": milliseconds(row["time_total"]),
        "port": int(row.get("local_port") or 0), "exit_status": int(row["exitcode"]),
        "http_status": int(row["http_code"]), **digest(body)}
    if answer["exit_status"] != 0:
        return {**answer, "ok": False,
                "error": f"curl {answer['exit_status']}: {row.get('errormsg') or 'failed'}"}
    if answer["http_status"] != 200:
        return {**answer, "ok": False, "error": f"HTTP status {answer['http_status']}"}
    return {**answer, "ok": True, "error": ""}


def fetch_with_wget(urls: list[str], deadline_s: float, folder: Path) -> list[dict[str, Any]]:
    """Fetch with one wget process per URL; one answer per URL, in order."""
    answers = []
    for number, url in enumerate(urls):
        body = folder / f"body{number}"
        command = ["wget", "--no-config", "--quiet", "--no-proxy", "--tries=1",
                   "--header=Connection: close", f"--output-document={body}", url]
        start = time.monotonic()
        try:
            done = subprocess.run(command, env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                                  capture_output=True, timeout=deadline_s, check=False)
        except subprocess.TimeoutExpired:
            answers.append(failure(f"wget did not finish in {deadline_s:g} s"))
            continue
        elapsed_ms = round((time.monotonic() - start) * 1000, 3)
        answer = {"connect_ms": None, "first_byte_ms": None, "total_ms": elapsed_ms, "port": 0,
                  "exit_status": done.returncode, "http_status": None, **digest(body)}
        error = f"wget {done.returncode}: {WGET_ERRORS.get(done.returncode, 'failed')}"
        answers.append({**answer, "ok": done.returncode == 0,
                        "error": "" if done.returncode == 0 else error})
    return answers


# wget(1), EXIT STATUS
WGET_ERRORS = {1: "generic error", 2: "parse error", 3: "file I/O error", 4: "network failure",
               6: "authentication failure", 7: "protocol error", 8: "server error response"}

PROGRAMS = {"curl": fetch_with_curl, "wget": fetch_with_wget}


def failure(reason: str) -> dict[str, Any]:
    return {"connect_ms": None, "first_byte_ms": None, "total_ms": None, "port": 0,
            "exit_status": None, "http_status": None, "size": 0, "sha256": "",
            "ok": False, "error": reason}


def digest(body: Path) -> dict[str, Any]:
    """Size and SHA-256 of a body, which is then deleted."""
    try:
        data = body.read_bytes()
        body.unlink()
    except FileNotFoundError:
        data = b""
    return {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def milliseconds(seconds: float) -> float:
    """curl counts in whole microseconds: three decimals keep them all."""
    return round(float(seconds) * 1000, 3)


def answer_request(request: dict[str, Any], folder: Path) -> dict[str, Any]:
    program = request["program"]
    try:
        fetches = PROGRAMS[program](request["urls"], float(request["deadline_s"]), folder)
    except FileNotFoundError:
        fetches = [failure(f"{program} is not installed") for _ in request["urls"]]
    return {"fetches": fetches}


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="first-flight-") as folder:
        for line in sys.stdin:
            print(json.dumps(answer_request(json.loads(line), Path(folder))), flush=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
