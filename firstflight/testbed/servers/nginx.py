"""nginx as the server of a trial: where it is, and the configuration for the trial."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from firstflight.testbed.hosts.certificates import HostChain
from firstflight.testbed.messages import Tls

NAME = "nginx"
MISSING = "nginx is missing: ./install.sh --with-nginx brings it"
_PATH = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin"
_TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")

# Where connections run out nginx closes idle ones, which a browser would use again. A page may have
# a connection for each of its objects.
CONNECTIONS = 2048
# How files are sent is as in Debian's nginx.conf; the rest are defaults that other versions had
# otherwise.
MAIN = """\
daemon off;
master_process off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections {connections}; }}
"""
_CONFIGURATION = MAIN + """\
http {{
    access_log off;
    sendfile on;
    sendfile_max_chunk 2m;
    tcp_nopush on;
    tcp_nodelay on;
    keepalive_requests 1000;
    types {{ }}
    default_type application/octet-stream;
{temporary}
{servers}}}
"""
# The first server also answers clients that name no host.
_SERVER = """\
    server {{
        listen {address}:{port}{listen};
        root {bodies};
{secure}    }}
"""
SECURE = """\
        ssl_certificate {chain};
        ssl_certificate_key {key};
        ssl_protocols TLSv1.3;
        ssl_session_tickets on;
        ssl_conf_command NumTickets {tickets};
        ssl_buffer_size {record_bytes};
"""
# The request may leave with the client's hello (RFC 8446, 2.3). By default nginx closes right after
# its response; the client's Finished, which comes later, would then reset the connection.
_EARLY = """\
        ssl_early_data on;
        lingering_close always;
"""
_PATIENT = """\
        send_timeout 1d;
        keepalive_timeout 1d;
        ssl_session_timeout 1d;
"""


@dataclass(frozen=True)
class Settings:
    """The settings of a configuration."""

    address: str
    port: int
    # () for plain HTTP, which is version 1.1; with TLS both versions are offered.
    chains: tuple[HostChain, ...]
    tickets: int = 0  # after each handshake
    record_bytes: int = 0  # the most text in a record
    takes_early_data: bool = False
    is_page: bool = False  # for a page, whose objects may wait for each other for minutes

    @classmethod
    def of_trial(cls, address: str, port: int, chains: Sequence[HostChain], tls: Tls | None,
                 is_page: bool = False) -> Settings:
        if not chains or tls is None:
            return cls(address, port, (), is_page=is_page)
        return cls(address, port, tuple(chains), tickets=tls["tickets"],
                   record_bytes=tls["record_bytes"],
                   takes_early_data=bool(tls["early_data_bytes"]), is_page=is_page)


def program() -> str | None:
    """The path of nginx, None if it is missing."""
    return shutil.which(NAME, path=_PATH)


def configuration(settings: Settings, folder: Path, bodies: Path) -> str:
    """The text of nginx.conf. folder: where nginx may write. bodies: the files that it serves."""
    servers = "".join(_server(settings, chain, bodies) for chain in settings.chains or (None,))
    return _CONFIGURATION.format(folder=folder, connections=CONNECTIONS, servers=servers,
                                 temporary=temporary_paths(folder))


def temporary_paths(folder: Path) -> str:
    """The lines of a configuration that let nginx put temporary files into a folder."""
    return "\n".join(f"    {name}_temp_path {folder}/{name};" for name in _TEMPORARY)


def _server(settings: Settings, chain: HostChain | None, bodies: Path) -> str:
    """The server of the hosts that have a chain; None for all hosts, without TLS."""
    secure = ""
    if chain is not None:
        secure = f"        server_name {' '.join(chain.names)};\n" if chain.names else ""
        secure += SECURE.format(chain=chain.files.chain, key=chain.files.key,
                                tickets=settings.tickets, record_bytes=settings.record_bytes)
    secure += _EARLY if settings.takes_early_data else ""
    secure += _PATIENT if settings.is_page else ""
    return _SERVER.format(address=settings.address, port=settings.port,
                          listen=" ssl http2" if chain is not None else "", bodies=bodies,
                          secure=secure)


def command(settings: Settings, folder: Path, bodies: Path) -> list[str]:
    """Write the configuration into nginx's folder; return the command that starts nginx."""
    path = folder / "nginx.conf"
    path.write_text(configuration(settings, folder, bodies))
    os.chmod(path, 0o600)
    return [str(program()), "-p", str(folder), "-c", str(path), "-e", "stderr"]
