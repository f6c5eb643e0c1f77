"""Serves a recorded site on the server's host: nginx in front, a backend that knows the answers.

Each group of origins that share connections has a port of its own, on one address, so that a
browser does not share what the recording did not. Its certificate names the hosts of its group.
"""

from __future__ import annotations

import base64
import ctypes
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from firstflight.net.segments import PLAIN_SITE_PORTS, SECURE_SITE_PORTS
from firstflight.testbed.bench import TOOL_DEADLINE_S, Lacking, LineProcess, WorkerError
from firstflight.testbed.hosts import certificates
from firstflight.testbed.hosts.certificates import CertificateError, ChainFiles, ChainSpec
from firstflight.testbed.hosts.replay import recording
from firstflight.testbed.hosts.replay.recording import Recording
from firstflight.testbed.messages import KERNEL_RANDOM, Tls
from firstflight.testbed.network.kernel import Host
from firstflight.testbed.network.links import SERVER_IP
from firstflight.testbed.restart import drawn_alike
from firstflight.testbed.servers import nginx
from firstflight.testbed.servers.external import drawing_from_kernel
from firstflight.testbed.servers.program import LOG_BYTES, Program, takes_connections

LOG = "server.log"
HTTP_2 = "2"
_CONFIGURATION = nginx.MAIN + """\
http {{
    access_log off;
    tcp_nopush on;
    tcp_nodelay on;
    keepalive_requests 10000;
    keepalive_timeout 1d;
    send_timeout 1d;
    client_max_body_size 64m;
    large_client_header_buffers 16 64k;
    types {{ }}
{temporary}
    upstream recorded {{ server unix:{socket}; keepalive 64; }}
    proxy_http_version 1.1;
    proxy_read_timeout 1d;
    proxy_buffer_size 128k;
    proxy_buffers 64 128k;
    proxy_busy_buffers_size 1m;
    proxy_max_temp_file_size 0;
    proxy_set_header Connection "";
    proxy_set_header Host $http_host;
    proxy_set_header X-First-Flight "$scheme $remote_port";
{servers}}}
"""
_SERVER = """\
    server {{
        listen {address}:{port}{listen};
{secure}        location / {{ proxy_pass http://recorded; }}
    }}
"""


@dataclass(frozen=True)
class ReplaySettings:
    """What nginx was started for; other settings need another process."""

    site: str
    http: str
    tls: tuple[tuple[str, Any], ...]
    inherited: tuple[tuple[str, str], ...]


class ReplayServer:
    """nginx and its backend. Closed by `close`."""

    def __init__(self, host: Host, folder: Path, project: Path) -> None:
        self.host, self.worker_folder = host, folder
        if (library := folder / KERNEL_RANDOM).exists():
            ctypes.CDLL(str(library))  # for the keys that this process makes
        self.folder = Path(tempfile.mkdtemp(prefix="first-flight-site-"))
        self.socket = self.folder / "backend"
        self.backend = LineProcess.python(host, project, "firstflight.testbed.hosts.replay.backend",
                                          str(self.socket))
        self.recordings: dict[str, Recording] = {}
        self.chains: dict[ChainSpec, ChainFiles] = {}
        self.running: Program | None = None
        self.settings: ReplaySettings | None = None

    def close(self) -> None:
        if self.running is not None:
            self.running.stop()
        self.backend.process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def prepare(self, site: Path, http: str, tls: Tls, inherited: Mapping[str, str]) -> Recording:
        """Have the servers of a site run. Raises Lacking, WorkerError.

        inherited: as of ExternalServers.prepare.
        """
        if nginx.program() is None:
            raise Lacking(nginx.MISSING)
        recorded = self._recording(site)
        settings = ReplaySettings(str(site), http, tuple(sorted(tls.items())),
                                  tuple(sorted(inherited.items())))
        if settings != self.settings or self.running is None \
                or self.running.process.poll() is not None:
            self._start(recorded, http, tls)
            self.settings = settings

        self.begin(site)
        return recorded

    def begin(self, site: Path) -> None:
        """Answer from now on as at the beginning of a load. Raises WorkerError."""
        self.backend.order({"begin": str(site)})
        answer = self.backend.answer(TOOL_DEADLINE_S, "word on its recording")
        if answer["error"]:
            raise WorkerError(f"the server's recording: {answer['error']}")

    def served(self) -> list[list[Any]]:
        """What was answered since (testbed.hosts.replay.backend). Raises WorkerError."""
        self.backend.order({"report": True})
        answer = self.backend.answer(TOOL_DEADLINE_S, "report of its answers")
        rows: list[list[Any]] = answer["served"]
        return rows

    def rules(self, recorded: Recording) -> str:
        """The browser's rules for names: those of the site are here, others fail."""
        known = [f"MAP {origin.host}:{origin.port} {SERVER_IP}:{port_of(origin)}"
                 for origin in recorded.origins]
        return ", ".join([*known, "MAP * ~NOTFOUND"])

    def keys(self, recorded: Recording, tls: Tls) -> str:
        """The digests of the certificates' keys, as the browser takes them. Raises WorkerError."""
        digests = {key_digest(self._chain(names, tls).chain)
                   for _, names in groups(recorded, secure=True)}
        return ",".join(sorted(digests))

    def log(self) -> bytes:
        """The end of what nginx wrote."""
        return b"" if self.running is None else self.running.log.read_bytes()[-LOG_BYTES:]

    def check(self) -> None:
        """Raises WorkerError where nginx has ended."""
        if self.running is not None:
            self.running.check()

    def _recording(self, site: Path) -> Recording:
        key = str(site)
        if key not in self.recordings:
            try:
                self.recordings[key] = recording.read(site)
            except (OSError, ValueError) as error:
                raise WorkerError(f"the recording of the page: {error}") from error
        return self.recordings[key]

    def _start(self, recorded: Recording, http: str, tls: Tls) -> None:
        if self.running is not None:
            self.running.stop()

        path = self.folder / "nginx.conf"
        servers = [*self._plain_servers(recorded), *self._secure_servers(recorded, http, tls)]
        path.write_text(_CONFIGURATION.format(
            folder=self.folder, connections=nginx.CONNECTIONS, socket=self.socket,
            servers="".join(servers), temporary=nginx.temporary_paths(self.folder)))
        os.chmod(path, 0o600)

        command = [*drawing_from_kernel(self.worker_folder), str(nginx.program()), "-p",
                   str(self.folder), "-c", str(path), "-e", "stderr"]
        self.running = Program(nginx.NAME, self.host, command, log=self.folder / LOG,
                               folder=self.folder)
        for port in ports_of(recorded):
            self.running.wait_until(partial(takes_connections, self.host, port), port)

    def _plain_servers(self, recorded: Recording) -> Iterator[str]:
        for group, _ in groups(recorded, secure=False):
            port = PLAIN_SITE_PORTS + group
            yield _SERVER.format(address=SERVER_IP, port=port, listen="", secure="")

    def _secure_servers(self, recorded: Recording, http: str, tls: Tls) -> Iterator[str]:
        for group, names in groups(recorded, secure=True):
            files = self._chain(names, tls)
            secure = nginx.SECURE.format(chain=files.chain, key=files.key, tickets=tls["tickets"],
                                         record_bytes=tls["record_bytes"])
            yield _SERVER.format(address=SERVER_IP, port=SECURE_SITE_PORTS + group,
                                 listen=" ssl http2" if http == HTTP_2 else " ssl",
                                 secure=secure)

    def _chain(self, names: Sequence[str], tls: Tls) -> ChainFiles:
        """The certificates of a group's hosts. Raises WorkerError."""
        requested = ChainSpec(tls["chain_bytes"], tls["signature"], tls["intermediates"],
                              address=SERVER_IP, names=tuple(names))
        if requested not in self.chains:
            folder = self.folder / f"tls{len(self.chains)}"
            try:
                with drawn_alike():
                    self.chains[requested] = certificates.make_chain(folder, requested)
            except (CertificateError, OSError) as error:
                raise WorkerError(f"certificates: {error}") from error
        return self.chains[requested]


def groups(recorded: Recording, secure: bool) -> list[tuple[int, list[str]]]:
    """The groups of origins with TLS, or without, each with the names of its hosts."""
    hosts: dict[int, dict[str, None]] = {}  # in their order
    for origin in recorded.origins:
        if origin.is_secure == secure:
            hosts.setdefault(origin.group, {})[origin.host] = None
    return [(group, list(names)) for group, names in sorted(hosts.items())]


def port_of(origin: recording.Origin) -> int:
    """The port on which the server of an origin's group listens."""
    return (SECURE_SITE_PORTS if origin.is_secure else PLAIN_SITE_PORTS) + origin.group


def ports_of(recorded: Recording) -> list[int]:
    """The ports on which the servers of a site listen."""
    return sorted({port_of(origin) for origin in recorded.origins})


def key_digest(chain: Path) -> str:
    """The SHA-256 of the public key of a chain's first certificate, in base64."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
    certificate = x509.load_pem_x509_certificate(chain.read_bytes())
    key = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(hashlib.sha256(key).digest()).decode("ascii")
