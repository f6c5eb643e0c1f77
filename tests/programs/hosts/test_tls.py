"""The server's chains have an exact size, and it writes over TLS as OpenSSL itself does."""

from __future__ import annotations

import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from firstflight.testbed import fork_server
from firstflight.testbed.hosts import tls
from firstflight.testbed.hosts.certificates import (ALGORITHMS, LEAST_BYTES, CertificateError,
                                                    ChainFiles, ChainSpec, make_chain,
                                                    padding_lines)
from firstflight.testbed.hosts.tls_records import (GROUPS_BYTES, flight_of, newer_openssl, records,
                                                   writes_of)
from firstflight.testbed.messages import KERNEL_RANDOM
from tests.programs.hosts.running import Program, connect, received, running
from tests.running import HANGS_S

ADDRESS = "127.0.0.1"
# Prints whether OpenSSL draws random numbers by itself, and how many of ten differ: before and
# after the library of kernel_random.c is loaded.
DRAWS = """
import ctypes, ssl, sys
crypto = ctypes.CDLL("libcrypto.so.3")
for name in ("RAND_get_rand_method", "RAND_OpenSSL"):
    getattr(crypto, name).restype = ctypes.c_void_p
for library in ("", sys.argv[1]):
    ctypes.CDLL(library or None)
    drawn = {ssl.RAND_bytes(5000) for _ in range(10)}
    print(crypto.RAND_get_rand_method() == crypto.RAND_OpenSSL(), len(drawn), end=" ")
"""
HOW = {"tickets": 2, "record_bytes": 16384, "buffer_bytes": 4096}  # the server's settings of TLS


def chain_of(folder: Path, size: int, signature: str = "ed25519", intermediates: int = 0
             ) -> ChainFiles:
    return make_chain(folder / "tls", ChainSpec(size, signature, intermediates, ADDRESS))


def der_bytes(pem: Path) -> int:
    """How many bytes the certificates of a file have on the wire."""
    end = "-----END CERTIFICATE-----\n"
    *certificates, _ = pem.read_text().split(end)
    return sum(len(ssl.PEM_cert_to_DER_cert(f"{text}{end}")) for text in certificates)


def trusting(files: ChainFiles) -> ssl.SSLContext:
    """A client's context that trusts the root of a chain, with the key share of trials."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(files.root)
    if newer_openssl():
        context.set_ecdh_curve("X25519")
    return context


def client_of(files: ChainFiles) -> tuple[ssl.SSLObject, ssl.MemoryBIO, ssl.MemoryBIO]:
    """A client that trusts a chain: its TLS, what it reads, and what it writes."""
    context = trusting(files)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    return context.wrap_bio(incoming, outgoing, server_hostname=ADDRESS), incoming, outgoing


class Packets(socket.socket):
    """A socket that keeps each write in a packet, and that says to ssl that it is a stream."""

    def getsockopt(self, *requested: Any) -> Any:
        if requested == (socket.SOL_SOCKET, socket.SO_TYPE):
            return socket.SOCK_STREAM
        return super().getsockopt(*requested)


def writes_of_the_library(files: ChainFiles, body_bytes: int) -> list[int]:
    """The size of each write of OpenSSL into a socket: of its flight, its tickets, and a body."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    theirs.settimeout(HANGS_S)
    context = tls.tls_settings({"chain": files.chain, "key": files.key, **HOW}).context

    def serve() -> None:
        with context.wrap_socket(Packets(fileno=ours.detach()), server_side=True) as secure:
            secure.sendall(bytes(body_bytes))

    threading.Thread(target=serve, daemon=True).start()
    client, incoming, outgoing = client_of(files)
    seen: list[int] = []

    def send() -> None:
        # OpenSSL reads a record's header first. The rest of the same packet would be lost.
        message = outgoing.read()
        for size in records(message):
            theirs.send(message[:5])
            theirs.send(message[5:size])
            message = message[size:]

    def take() -> None:
        data = theirs.recv(1 << 20)
        seen.append(len(data))
        incoming.write(data)

    while True:
        try:
            client.do_handshake()
            break
        except ssl.SSLWantReadError:
            send()
            take()
    send()
    read = 0
    while read < body_bytes:
        try:
            read += len(client.read(1 << 16))
        except ssl.SSLWantReadError:
            take()
    theirs.close()
    return seen


@pytest.mark.parametrize(("name", "has_other"), [("a.test", True), ("b.test", False)])
def test_a_client_gets_the_certificate_of_the_host_that_it_names(
        tmp_path: Path, name: str, has_other: bool) -> None:
    files = chain_of(tmp_path, 1000)
    other = make_chain(tmp_path / "other", ChainSpec(1000, "ed25519", 0, "", ("a.test",)))
    settings = tls.tls_settings({"chain": files.chain, "key": files.key, **HOW, "others": [
        {"names": ["a.test"], "chain": other.chain, "key": other.key}]})
    server = tls.Tls(settings)
    context = trusting(other if has_other else files)
    context.check_hostname = has_other
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    incoming.write(server.continue_handshake(outgoing.read())[0])
    client.do_handshake()
    server.continue_handshake(outgoing.read())
    certificate = client.getpeercert() or {}
    assert certificate["subjectAltName"] == (
        (("DNS", "a.test"),) if has_other else (("IP Address", ADDRESS),))
    assert server.report((), 10)["tickets"] == server.tickets and len(server.tickets) == 2


@pytest.mark.parametrize("size", [400, 420, 551, 1000, 3732, 3733, 12588, 17000, 42869])
def test_the_servers_tls_writes_are_those_of_the_library(tmp_path: Path, size: int) -> None:
    files = chain_of(tmp_path, size)
    assert der_bytes(files.chain) == size
    server = tls.Tls(tls.tls_settings({"chain": files.chain, "key": files.key, **HOW}))
    client, incoming, outgoing = client_of(files)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    flight, writes = server.continue_handshake(outgoing.read())
    incoming.write(flight)
    client.do_handshake()
    _, tickets = server.continue_handshake(outgoing.read())
    _, body = server.encrypt(memoryview(bytes(40_000)))
    assert [*writes, *tickets, *body] == writes_of_the_library(files, 40_000)
    assert tuple(records(flight)) == tuple(
        flight_of(size, 1, "ed25519", sends_groups=newer_openssl()))
    report = server.report((), 10)
    assert report["group"] == "X25519" and report["version"] == "TLSv1.3"


@pytest.mark.parametrize(("signature", "intermediates"), [
    ("rsa2048", 1),  # only once, since a key of RSA takes a second
    *((signature, count) for signature in sorted(LEAST_BYTES.keys() - ALGORITHMS.keys())
      if signature != "rsa2048" for count in (0, 2))])
def test_a_chain_has_its_size_and_only_its_owner_may_read_it(tmp_path: Path, signature: str,
                                                             intermediates: int) -> None:
    size = LEAST_BYTES[signature] * (1 + intermediates) + 17
    files = chain_of(tmp_path, size, signature, intermediates)
    assert der_bytes(files.chain) == size
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "tls").iterdir()} == {0o600}
    assert (tmp_path / "tls").stat().st_mode & 0o777 == 0o700


def test_a_chain_that_is_too_small_for_its_parts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CertificateError, match="1199 bytes is too small for 3 certificates"):
        chain_of(tmp_path, 1199, intermediates=2)
    assert not (tmp_path / "tls").exists()


@pytest.mark.parametrize(("sizes", "buffer_bytes", "writes"), [
    ((10, 20), 4096, (30,)), ((4096,), 4096, (4096,)), ((4000, 97), 4096, (4096, 1)),
    ((100, 9000, 50), 4096, (4096, 5004, 50)), ((4096, 4096), 4096, (4096, 4096)),
    ((100, 9000, 50), 0, (9150,)), ((), 4096, ())])
def test_writes_follow_from_the_buffers_size(sizes: tuple[int, ...], buffer_bytes: int,
                                             writes: tuple[int, ...]) -> None:
    assert writes_of(sizes, buffer_bytes) == writes
    assert sum(writes) == sum(sizes)


def test_a_response_over_tls_is_reported_with_its_handshake(tmp_path: Path) -> None:
    files = chain_of(tmp_path, 5000)
    with running("server", "--port", "0", "--secure-port", "0") as program:
        port = program.line()["secure_port"]
        program.ask({"chain": str(files.chain), "key": str(tmp_path / "none"), **HOW})
        assert "FileNotFoundError" in program.line()["error"]
        with connect(port) as refused:
            assert received(refused, 1) == b""
        program.ask({"chain": str(files.chain), "key": str(files.key), **HOW})
        assert program.line() == {"event": "secured", "error": ""}
        context = trusting(files)
        with context.wrap_socket(connect(port), server_hostname=ADDRESS) as client:
            client.sendall(b"GET /20000?burst=100&gap_ms=100 HTTP/1.1\r\nConnection: close\r\n\r\n")
            size = 20_000 + len("HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n"
                                "Connection: close\r\n\r\n")
            got = b""
            while len(got) < size and (more := client.recv(1 << 16)):
                got += more
            assert len(got) == size
        report = program.line()
        assert report["event"] == "response" and report["latency_ms"] > 5
        # The chain of 5000 bytes, and 364 of the other messages of the flight.
        flight_bytes = 5000 + 364 + (GROUPS_BYTES if newer_openssl() else 0)
        assert sum(report["tls"]["flight"]) == flight_bytes and report["tls"]["window"] > 0
        # Records of the head with 100 bytes, of 16384 and of 3516; each has 22 bytes more.
        assert report["tls"]["response"] == [size - 20_000 + 122, 16406, 3538]

        with connect(port) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert received(stranger, 1) == b""
        while (report := program.line())["error"] == "":
            pass
        assert "SSL" in report["error"]


@contextmanager
def serving(files: ChainFiles, *words: str) -> Iterator[tuple[Program, int]]:
    """A server that shows a chain, and its port."""
    with running("server", "--port", "0", "--secure-port", "0", *words) as program:
        port = program.line()["secure_port"]
        program.ask({"chain": str(files.chain), "key": str(files.key), **HOW})
        assert program.line() == {"event": "secured", "error": ""}
        yield program, port


def fetched(program: Program, port: int, files: ChainFiles, *paths: str, apart_s: int = 0
            ) -> list[dict[str, Any]]:
    """Let a server show a chain, fetch these paths by client.py's curl, and return its report.

    apart_s: the pause between two fetches, each of which has another connection.
    """
    program.ask({"chain": str(files.chain), "key": str(files.key), **HOW})
    while (line := program.line())["event"] != "secured":
        pass
    assert line["error"] == ""
    with running("client") as client:
        client.ask({"program": "curl", "deadline_s": HANGS_S, "trusted": str(files.root),
                    "apart_s": apart_s, "curves": "X25519",
                    "urls": [f"https://{ADDRESS}:{port}{path}" for path in paths]})
        fetches: list[dict[str, Any]] = client.line()["fetches"]
        assert client.process.stdin is not None
        client.process.stdin.close()  # it ends, and removes its folder
        assert client.process.wait(HANGS_S) == 0
        return fetches


def test_curl_trusts_only_the_given_root(tmp_path: Path) -> None:
    files = chain_of(tmp_path / "one", 2000)
    other = make_chain(tmp_path / "other", ChainSpec(2000, "ed25519", 0, ADDRESS))
    elsewhere = make_chain(tmp_path / "elsewhere", ChainSpec(2000, "ed25519", 0, "192.0.2.1"))
    with serving(files) as (program, port):
        (good,) = fetched(program, port, files, "/3000")
        assert good["ok"] and good["size"] == 3000
        assert good["connect_ms"] < good["appconnect_ms"] < good["first_byte_ms"]
        for wrong in (ChainFiles(files.chain, files.key, other.root), elsewhere):
            (bad,) = fetched(program, port, wrong, "/3000")
            assert not bad["ok"] and bad["error"].startswith(("curl 60: SSL", "curl 35: "))
            assert "\n" not in bad["error"]


def test_a_later_connection_resumes_the_session(tmp_path: Path) -> None:
    files = chain_of(tmp_path, 2000)
    with serving(files) as (program, port):
        fetches = fetched(program, port, files, "/1", "/3000", apart_s=1)
        assert [fetch["ok"] for fetch in fetches] == [True, True]
        reports = []
        while len(reports) < 2:
            line = program.line()
            if line["event"] == "response":
                reports.append(line["tls"])
    first, later = reports
    assert not first["resumed"] and later["resumed"]
    assert sum(later["flight"]) < 300 and len(later["tickets"]) == 1


def test_data_after_the_end_of_a_tls_stream_is_no_failure(tmp_path: Path) -> None:
    """Clients with OpenSSL 3.5 send an alert if a stream ends without close_notify."""
    files = chain_of(tmp_path, 2000)
    with serving(files) as (program, port):
        context = trusting(files)
        with connect(port) as plain:
            client = context.wrap_socket(plain.dup(), server_hostname=ADDRESS)
            client.sendall(b"GET /10 HTTP/1.1\r\nConnection: close\r\n\r\n")
            while client.recv(4096):
                pass
            plain.sendall(b"no record of TLS")
            client.close()
        response, closed = program.line(), program.line()
    assert (response["event"], closed["event"]) == ("response", "closed")
    assert closed["error"] == ""


def test_an_unfinished_handshake_is_ended_at_the_deadline(tmp_path: Path) -> None:
    """The handshake may not have begun, or have stopped within its first message."""
    files = chain_of(tmp_path, 2000)
    with serving(files, "--deadline", "1") as (program, port):
        client, _, outgoing = client_of(files)
        with pytest.raises(ssl.SSLWantReadError):
            client.do_handshake()
        for hello in (b"", outgoing.read()[:50]):
            with connect(port) as slow:
                slow.sendall(hello)
                assert received(slow, 1) == b""
            assert program.line()["error"] == "no whole handshake in 1 s"


def test_a_signature_that_openssl_lacks_is_refused_in_its_words(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ALGORITHMS, "mldsa44", "ML-DSA-4444")
    with pytest.raises(CertificateError, match="openssl genpkey ended with status 1: .*4444|rror"):
        chain_of(tmp_path, 4000, "mldsa44")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CertificateError, match="openssl: .*No such file"):
        chain_of(tmp_path, 4000, "mldsa44")
    assert not (tmp_path / "tls").exists()


def test_a_large_filler_is_several_extensions() -> None:
    lines = list(padding_lines("1.2.3", 70_001))
    assert [line.partition(" = DER:")[0] for line in lines] == ["1.2.3.1", "1.2.3.2", "1.2.3.3"]
    assert sum(line.count("00") for line in lines) == 70_001 and max(map(len, lines)) < 65_536
    assert not list(padding_lines("1.2.3", 0))


def test_a_servers_openssl_draws_from_the_kernel_with_the_library() -> None:
    """So the seed of a trial decides the length of its signatures."""
    library = fork_server.libraries()[KERNEL_RANDOM]
    done = subprocess.run([sys.executable, "-c", DRAWS, library], check=True, capture_output=True,
                          text=True)
    assert done.stdout == "True 10 False 10 "
