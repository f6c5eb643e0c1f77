"""--probe reports the first flight of servers with known windows, over netem in the guest."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from firstflight.testbed.hosts.tls_records import newer_openssl
from tests.live.test_engines import in_guest
from vtime.kernel.init import RESULTS

FAST = 100_000  # kbit/s
# By name: RTT in ms, kbit/s, the server's window, the client's receive window, the server and path
# of the request, and whether the probe may capture.
CASES = {
    "ten": (40, FAST, 10, 64, "http /200000", True),
    "thirty-two": (40, FAST, 32, 64, "http /200000", True),
    "slow link": (50, 1000, 32, 64, "http /200000", True),
    "small response": (40, FAST, 32, 64, "http /14000", True),
    "page of 20 kB": (40, FAST, 32, 64, "nagle /20000", True),
    "page that decides": (40, FAST, 32, 64, "nagle /65704", True),
    "page of 20 kB, counted": (40, FAST, 32, 64, "nagle /20000", False),
    "small receive window": (40, FAST, 32, 20, "http /200000", True),
    "slow program": (40, FAST, 32, 64, "http /200000?burst=14000&gap_ms=2000", True),
    "ten, counted": (40, FAST, 10, 64, "http /200000", False),
    "slow link, counted": (50, 1000, 10, 64, "http /200000", False),
    "TLS": (40, FAST, 10, 64, "https /", True),
    "not there": (40, FAST, 10, 64, "http /none", True),
    "nobody": (40, FAST, 10, 64, "closed /", True),
}
# This runs in the guest: one network that is shaped for each case, and a probe by its client.
MEASURE = """
import json, subprocess, sys, time
from pathlib import Path
from firstflight.net import link
from firstflight.testbed.bench import LineProcess
from firstflight.testbed.network.links import SERVER_IP
from firstflight.testbed.network.topology import Star

folder, (cases, program, nagle, certificate) = Path(sys.argv[1]), json.loads(sys.argv[2])
(folder / "own.pem").write_text(certificate)
star = Star({})
server = LineProcess.python(star.server, Path.cwd(), "server", "--address", SERVER_IP)
server.receive(30, "listening socket")
secured = star.server.popen([sys.executable, "-c", program, str(folder), SERVER_IP],
                            stdout=subprocess.PIPE)
secured.stdout.readline()
plain = star.server.popen([sys.executable, "-c", nagle, SERVER_IP], stdout=subprocess.PIPE)
plain.stdout.readline()
found = {}
star.install(link.Path.between(1, 1000, 1000, 1000))
for name, (rtt_ms, kbps, window, receive, what, captured) in cases.items():
    star.drain(60)
    star.install(link.Path.between(rtt_ms, kbps, kbps, 1000))
    star.set_routes(window, receive, "cubic")
    scheme, path = what.split()
    url = {"closed": f"http://{SERVER_IP}:81/", "nagle": f"http://{SERVER_IP}:82{path}"}.get(
        scheme, f"{scheme}://{SERVER_IP}{path}")
    drop = [] if captured else ["setpriv", "--bounding-set", "-net_raw", "--inh-caps", "-net_raw"]
    done = star.client.popen([*drop, sys.executable, "experiment.py", "--probe", url],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, said = done.communicate(timeout=300)
    found[name] = [done.returncode, out, said]
(folder / "found.json").write_text(json.dumps(found))
star.stop()
"""
SECURED = """
import socket, ssl, sys
folder, address = sys.argv[1:]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(f"{folder}/own.pem")
listener = socket.create_server((address, 443))
print("listening", flush=True)
while True:
    connection, _ = listener.accept()
    try:
        with context.wrap_socket(connection, server_side=True) as secured:
            secured.recv(65536)
            head = b"HTTP/1.1 200 OK\\r\\nContent-Length: 200000\\r\\n\\r\\n"
            secured.sendall(head + bytes(200000))
    except OSError:
        pass
"""

# A server that sets no TCP_NODELAY and closes after the client. Its head is a small segment, so the
# last segment of the body waits for an acknowledgement (tcp_minshall_check).
NAGLE = """
import socket, sys
listener = socket.create_server((sys.argv[1], 82))
print("listening", flush=True)
while True:
    connection, _ = listener.accept()
    with connection:
        size = int(connection.recv(65536).split()[1][1:])
        connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n" % size)
        connection.sendall(bytes(size))
        connection.recv(1)
"""


@pytest.fixture(scope="module")
def found(kernel: Path,
          tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str, str]]:
    """The exit status, standard output and standard error of each case."""
    home = tmp_path_factory.mktemp("probe")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=own",
                    "-keyout", "key.pem", "-out", "certificate.pem"], cwd=home, check=True,
                   capture_output=True)
    requested = [CASES, SECURED, NAGLE,
                 (home / "certificate.pem").read_text() + (home / "key.pem").read_text()]
    folder = home / "guest"
    status = in_guest(kernel, folder,
                      ["/usr/bin/python3", "-c", MEASURE, RESULTS, json.dumps(requested)])
    assert status == 0, (folder / "console.log").read_text()
    told: dict[str, tuple[int, str, str]] = json.loads((folder / "found.json").read_text())
    return told


@pytest.mark.parametrize(("name", "flight", "limit"), [
    ("ten", "10 segments, 14480 bytes", "the server's initial window"),
    ("thirty-two", "32 segments, 46336 bytes", "the server's initial window"),
    ("slow link", "32 segments, 46336 bytes", "the server's initial window"),
    ("small response", "10 segments, 14061 bytes", "the response, all of which is in it: the"
     " server's initial window is at least 10 segments"),
    ("page of 20 kB", "14 segments, 18866 bytes", "the response, which ends within a segment of"
     " it: the server's initial window is at least 14 segments"),
    ("page that decides", "32 segments, 44930 bytes", "the server's initial window: the response"),
    ("page of 20 kB, counted", "14 segments, at most 20272 bytes",
     "the response, which ends within"),
    ("small receive window", "20 segments, 28960 bytes", "the receive window that this client"),
    ("slow program", "10 segments, 14062 bytes", "the server's program, which had written no more"),
    ("ten, counted", "10 segments, at most 14480 bytes", "the server's initial window, or"),
    ("slow link, counted", "at most 11 segments, at most 15928 bytes", "the server's initial"),
    ("TLS", "10 segments, 14480 bytes", "the server's window, which may have grown by the"
     f" {4 if newer_openssl() else 3}"),  # measured on Debian 13 and on Debian 12
])
def test_a_probe_reports_the_first_flight_and_what_limits_it(
        found: dict[str, tuple[int, str, str]], name: str, flight: str, limit: str) -> None:
    status, out, said = found[name]
    assert status == 0 and said == ""
    lines = [line.strip() for line in out.splitlines()]
    assert lines[1] == f"first flight: {flight}" and lines[2].startswith(f"limited by {limit}")
    rtt_ms, kbps, *_ = CASES[name]
    (told,) = [float(line.split()[1]) for line in lines if line.startswith("RTT")]
    serialised_ms = 2 * 80 * 8 / kbps
    assert rtt_ms - 0.1 <= told <= rtt_ms + serialised_ms + 1.1


def test_a_probe_of_a_small_page_names_the_size_that_decides(
        found: dict[str, tuple[int, str, str]]) -> None:
    out = found["page of 20 kB"][1]
    assert "probe a page of 65704 bytes or more" in out and "--iw" not in out
    out = found["page that decides"][1]
    assert "probe a page" not in out and "--iw 32,64" in out


def test_an_address_that_cannot_be_probed_is_refused_in_one_line(
        found: dict[str, tuple[int, str, str]]) -> None:
    for name, words in (("not there", "answers with status 404: name a page"),
                        ("nobody", "cannot be reached: Connection refused")):
        status, out, said = found[name]
        assert status == 1 and out == "" and words in said and said.count("\n") == 1
