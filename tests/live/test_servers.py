"""A guest measures other servers than the project's, TLS, and Debian 13's programs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from firstflight.base import errors
from firstflight.runs import runs
from firstflight.testbed.hosts import certificates
from firstflight.testbed.hosts.certificates import ChainSpec
from firstflight.testbed.hosts.tls_records import newer_openssl
from tests.live.conftest import Driver, command, rows, unwrapped
from tests.running import run_program
from vtime import system

NETWORK = ("--rtt", "100", "--bw", "10000", "--iw", "10", "--no-figures")
# A server in which a test puts the lines for {do}: what it does with a request.
SERVER = """
import http.server, os, ssl, sys
class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *words): pass
    def do_GET(self):
        {do}
server = http.server.HTTPServer(("", int(sys.argv[1])), Answer)
if len(sys.argv) > 2:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2], sys.argv[3])
    server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""
WHOLE = """body = b"x" * int(self.path[1:]) if self.path[1:].isdigit() else b""
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "server"
    made.mkdir()
    return made


def own(folder: Path, do: str, *arguments: str) -> list[str]:
    """The flags that measure a server whose answer is `do`; it gets the arguments, too."""
    (folder / "server.py").write_text(SERVER.format(do=do))
    return ["--server-command", " ".join(["python3 server.py {p}", *arguments]),
            "--server-folder", str(folder), *NETWORK]


def test_nginx_is_measured_beside_the_server_of_ours(drive: Driver, results: Path) -> None:
    """The window of nginx is read by sock_diag, its flight and its latency from the packets."""
    done = drive(*NETWORK, "--size", "10000", "--chain", "4000,14000", "--server",
                 "builtin,nginx", "--repeat", "2", "--full")
    assert done.returncode == 0, done.stdout + done.stderr
    found = {(row["server"], row["chain_bytes"], row["repeat"]): row
             for row in rows(results, "own")}
    assert all(row["verdict"] == "pass" for row in found.values()) and len(found) == 8
    for chain, trips, window in (("4000", "1", "10"), ("14000", "2", "21")):
        (ours, _), (theirs, again) = ([found[server, chain, repeat] for repeat in ("1", "2")]
                                      for server in ("builtin", "nginx"))
        for row in (ours, theirs):
            assert (row["seen_initcwnd"], row["handshake_round_trips"],
                    row["window_after_handshake"]) == ("10", trips, window)
        assert abs(float(theirs["latency_ms"]) - float(ours["latency_ms"])) < 1
        assert theirs["model_ms"] == "" and theirs["total_ms"] == again["total_ms"]
    assert "The writes of nginx are not known, so 4 of 8 trials have no model" \
        in unwrapped(done)


def test_nginx_measures_over_http_2_and_resumes_sessions(drive: Driver, results: Path) -> None:
    done = drive(*NETWORK, "--size", "20000", "--chain", "14000", "--server", "nginx", "--http",
                 "1.1,2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {row["http"] for row in rows(results, "own")} == {"1.1", "2"}
    done = drive(*NETWORK, "--chain", "14000", "--server", "nginx", "--resumed", "0,1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert [row["handshake_round_trips"] for row in rows(results, "own")] == ["2", "1"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can hide a program")
def test_trials_with_a_missing_nginx_are_skipped(results: Path, kernel: Path) -> None:
    hidden = "mount --bind /dev/null /usr/sbin/nginx; exec \"$@\""
    done = run_program(["unshare", "--mount", "sh", "-c", hidden, "sh",
                        *command(results, *NETWORK, "--server", "builtin,nginx")])
    assert done.returncode == 0 and "1 of 2 trials do not count:" in done.stdout
    assert "- skipped: nginx is missing: ./install.sh --with-nginx brings it" in done.stdout
    assert sorted(row["verdict"] for row in rows(results, "own")) == ["pass", "skipped"]


def test_a_server_may_show_its_own_certificate_or_the_projects(drive: Driver, results: Path,
                                                               folder: Path) -> None:
    """curl trusts the name that the certificate is issued for; other roots: test_tls.py."""
    files = certificates.make_chain(folder / "tls", ChainSpec(4000, "ed25519", 0, "10.0.0.2"))
    flags = own(folder, WHOLE, "tls/chain.pem", "tls/key.pem")
    done = drive(*flags, "--ca", str(files.root))
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = rows(results, "own")
    # Without TCP_NODELAY the second of its two writes waits for an acknowledgement (Nagle).
    assert int(row["flight_bytes"]) > 4000 and row["handshake_round_trips"] == "2"
    named = drive(*flags, "--ca", str(files.root), "--server-name", "example.org")
    assert named.returncode == errors.FAILED
    assert "curl 60: SSL: no alternative" in unwrapped(named)
    given = drive(*own(folder, WHOLE, "{chain}", "{key}"), "--chain", "14000", "--http", "1.1,2")
    assert given.returncode == errors.FAILED
    assert "the server agreed to no other (ALPN), expected 2" in unwrapped(given)
    one, two = rows(results, "own")
    assert (one["http"], one["ok"], two["ok"]) == ("1.1", "true", "false")
    assert int(one["flight_bytes"]) > 14000


HALF = """self.send_response(200)
        self.send_header("Content-Length", "30000")
        self.end_headers()
        self.wfile.write(b"x" * 9000)
        print("out of memory", file=sys.stderr, flush=True)
        os._exit(3)"""
BUSY = """self.send_error(503)
        print("out of memory", file=sys.stderr, flush=True)"""


@pytest.mark.parametrize(("do", "words"), [
    (HALF, "the server has ended (status 3); it said: out of memory"),
    (BUSY, "HTTP status 503"),
    (WHOLE.replace("int(self.path[1:])", "29999"),
     "observed 29999 bytes of 30000 sent, expected 30000")])
def test_a_servers_fault_is_the_reason_of_the_failed_trial(
        drive: Driver, results: Path, folder: Path, do: str, words: str) -> None:
    """A server that has ended is started again for the next trial, and its output is kept."""
    done = drive(*own(folder, do), "--repeat", "2")
    assert done.returncode == errors.FAILED and words in " ".join(done.stdout.split())
    assert len(rows(results, "own")) == 2 and "Traceback" not in done.stdout + done.stderr
    kept = list(results.glob("own/*/files/*-server.log"))
    assert not kept if "29999" in words else any(
        "out of memory" in each.read_text() for each in kept)


@pytest.mark.parametrize(("words", "says"), [
    ("sleep 1000 {p}", "was not ready in 20 s: nothing listens on port 8080; it said nothing"),
    ("sh -c 'exec python3 -m http.server 9000' {p}", "it listens on port 9000, not on 8080"),
    ("nosuchprogram {p}", "the server has ended (status 1); it said: nosuchprogram: No such file")])
def test_a_server_that_does_not_start_is_reported_with_the_reason(drive: Driver, results: Path,
                                                                  words: str, says: str) -> None:
    done = drive("--server-command", words, *NETWORK)
    assert done.returncode == errors.FAILED and says in " ".join(done.stdout.split())
    (row,) = rows(results, "own")
    assert "Traceback" not in done.stdout + done.stderr and says in row["error"]


def test_a_server_of_ones_own_sees_no_private_files_and_writes_to_memory(
        drive: Driver, results: Path, folder: Path) -> None:
    """Others' files below /tmp and /var are hidden, and what it writes there is gone with it."""
    secret = folder.parent / "secret"
    secret.write_text("secret")
    ours = Path("/usr/bin/env")
    written = [f"{above}/mine-{os.getpid()}" for above in ("/var/log", "/tmp")]
    do = (f"for path in {written}: open(path, 'w').write('x')\n"
          f"        assert not os.path.exists({str(secret)!r}) and os.path.exists({str(ours)!r})\n"
          f"        {WHOLE}")
    done = drive(*own(folder, do), "--size", "20000", "--repeat", "2", "--server-ready", "/1")
    assert done.returncode == 0, done.stdout + done.stderr
    one, other = rows(results, "own")
    assert (one["verdict"], one["seen_initcwnd"], one["seen_first_flight"]) == ("pass", "10", "10")
    assert one["total_ms"] == other["total_ms"]
    assert not any(map(os.path.exists, written))


# TLS in the guest ---------------------------------------------------------------------

def test_chains_that_fit_the_window_take_one_round_trip_as_the_model_says(drive: Driver,
                                                                          results: Path) -> None:
    """A chain of `fits` bytes leaves in OpenSSL's writes within IW 10; one byte more does not."""
    fits = 12_566 if newer_openssl() else 12_588  # Debian 13, Debian 12
    chains = ("4000", str(fits), str(fits + 1))
    done = drive("--rtt", "100", "--bw", "100000", "--iw", "3,10", "--size", "10000", "--client",
                 "curl", "--chain", ",".join(chains), "--resumed", "0,1", "--no-reasons",
                 "--no-figures")
    assert done.returncode == 0, done.stdout + done.stderr
    found = {(row["initcwnd"], row["chain_bytes"], row["resumed"]): row
             for row in rows(results, "own")}
    assert all(row["verdict"] == "pass" for row in found.values()) and len(found) == 12
    assert [found["10", chain, "0"]["handshake_round_trips"]
            for chain in chains] == ["1", "1", "2"]
    assert {row["handshake_round_trips"] for (_, _, resumed), row in found.items()
            if resumed == "1"} == {"1"}


def test_repeats_over_tls_are_identical(drive: Driver, results: Path) -> None:
    """ECDSA is left out: its signatures differ in length from repeat to repeat."""
    done = drive("--rtt", "50", "--bw", "10000", "--iw", "10", "--client", "curl", "--chain",
                 "16000", "--signature", "ed25519,rsa2048", "--repeat", "2", "--no-figures")
    assert done.returncode == 0, done.stdout + done.stderr
    times = {(row["signature"], row["appconnect_ms"], row["first_byte_ms"], row["total_ms"])
             for row in rows(results, "own")}
    assert len(times) == 2


# What Debian 13's programs bring, in guests -------------------------------------------

IS_HERE = system.folder().is_dir()
needs = pytest.mark.skipif(not IS_HERE, reason=system.MISSING)


@needs
@pytest.mark.parametrize(("signature", "chain", "intermediates", "key_share"), [
    ("mldsa65", "16598", "2", "x25519,x25519mlkem768"), ("slhdsa128s", "16314", "1", "x25519"),
    ("ed25519", "12588,12566,12567", "0", "x25519")])
def test_handshakes_of_openssl_3_5_take_the_models_time(drive: Driver, results: Path,
                                                        signature: str, chain: str,
                                                        intermediates: str, key_share: str) -> None:
    done = drive("--rtt", "100", "--bw", "10000", "--iw", "3,10", "--size", "10000", "--signature",
                 signature, "--chain", chain, "--intermediates", intermediates, "--key-share",
                 key_share, "--system", "debian13", "--repeat", "2", "--no-reasons",
                 "--no-figures")
    assert done.returncode == 0, done.stdout + done.stderr
    found = rows(results, "own")
    assert all(row["verdict"] == "pass" and row["model_appconnect_ms"] for row in found)
    assert all(abs(float(row["total_ms"]) - float(row["model_ms"])) < 0.1 for row in found)
    assert len({(row["initcwnd"], row["chain_bytes"], row["key_share"], row["total_ms"])
                for row in found}) == len(found) / 2, "repeats are identical"
    facts = json.loads((runs.newest_first(results / "own")[0] / "run.json").read_text())
    assert facts["systems"]["debian13"]["libssl3t64"].startswith("3.5")


def test_trials_with_a_missing_debian_13_are_skipped(
        results: Path, drive: Driver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kernels = system.cache().parent / "kernel"
    (tmp_path / "cache" / "first-flight").mkdir(parents=True)
    (tmp_path / "cache" / "first-flight" / "kernel").symlink_to(kernels)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    done = drive("--rtt", "20", "--chain", "4000", "--system", "here,debian13", "--no-figures")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {(row["system"], row["verdict"]) for row in rows(results, "own")} == {
        ("here", "pass"), ("debian13", "skipped")}
    assert system.MISSING in unwrapped(done)


@needs
def test_early_data_saves_a_round_trip_unless_it_exceeds_the_window(drive: Driver,
                                                                    results: Path) -> None:
    """The base of the comparison is the same resumed session without early data."""
    done = drive("--rtt", "100", "--bw", "100000", "--iw", "10", "--size", "9000", "--server",
                 "nginx", "--chain", "4000", "--resumed", "1", "--early-data", "0,1,3000,16384",
                 "--repeat", "2", "--no-figures")
    assert done.returncode == 0, done.stdout + done.stderr
    found = {row["early_data_bytes"]: row for row in rows(results, "own")}
    assert {row["verdict"] for row in rows(results, "own")} == {"pass"}
    times = {size: float(row["first_byte_ms"]) for size, row in found.items()}
    assert all(abs(times["0"] - times[size] - 100) < 1 for size in ("1", "3000")), times
    assert abs(times["0"] - times["16384"]) < 2
    assert [found[size]["accepted_early_bytes"] for size in ("0", "3000", "16384")] == [
        "", "3000", "16384"]
    assert [found[size]["request_round_trips"] for size in ("1", "3000", "16384")] == [
        "1", "1", "2"]


@needs
def test_the_cliff_of_early_data_is_the_clients_ten_segments(drive: Driver) -> None:
    """The client's hello is in the first three segments, which end with a write of 4096 bytes."""
    done = drive("--find-cliff", "early", "--rtt", "100", "--bw", "100000")
    assert done.returncode == 0, done.stdout + done.stderr
    hello_bytes, record_bytes = 554, 22  # record_bytes: what TLS adds to the early data
    most = 4096 + 7 * 1448 - hello_bytes - record_bytes
    assert f"is {most} bytes, measured of the server nginx" in unwrapped(done)
    assert "it leaves in 10 segments" in unwrapped(done)
