"""What a trial installs and fetches, for a reader of its job (engines/worker/worker.py)."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from engines.network.routes import (ARP_RETRY, CLIENT_IP, SERVER_IP, RouteOptions, dumbbell_routes,
                                    star_routes, sysctls_of, urls_of)
from engines.network.shaping import DumbbellShape, Shape


def commands_of(job: dict[str, Any], said: Container[str] = ()) -> list[str]:
    """A trial in the words of tc, ip, sysctl and the client; netlink says the first two.

    said: the names of the sysctls that the scenario sets.
    """
    return _load_commands(job) if job["kind"] == "load" else _star_commands(job, said)


def _star_commands(job: dict[str, Any], said: Container[str]) -> list[str]:
    routes = star_routes(job["initcwnd"], job["initrwnd"], job["congestion_control"],
                         RouteOptions(**job.get("options", {})))
    shape = Shape(**job["shape"])
    return [*(command for port in (*shape.ports(), shape.server_interface)
              for command in port.commands),
            *(f"sysctl -w {key}='{value}'" for requested in sysctls_of(job, said).values()
              for key, value in requested.items()),
            *(route.command for route in routes),
            *([f"sysctl -w {ARP_RETRY}={job['arp_ms']}",
               f"ip neigh del {SERVER_IP} dev client-eth0",
               f"ip neigh del {CLIENT_IP} dev server-eth0"] if job.get("arp_ms") else ()),
            *_tls(job), *(f"{_client(job)} {url}" for url in urls_of(job))]


def _client(job: dict[str, Any]) -> str:
    if job.get("tls", {}).get("early_data_bytes"):
        return f"{job['client']} --tls-earlydata"
    return f"{job['client']} --http{job['http']}" if "http" in job else str(job["client"])


def _tls(job: dict[str, Any]) -> list[str]:
    """How the server speaks TLS, where it does."""
    if "tls" not in job:
        return [f"{job['server']}: HTTP"] if "server" in job else []
    tls = job["tls"]
    return [f"{job.get('server', 'server.py')}: TLS 1.3, a chain of {tls['chain_bytes']} bytes"
            f" with {tls['signature']},"
            f" {tls['intermediates']} intermediates, {tls['tickets']} tickets; records of"
            f" {tls['record_bytes']} bytes"
            + ("" if "server" in job else f", a buffer of {tls['buffer_bytes']}")
            + (", resumed" if tls["apart_s"] else "")
            + (", early data" if tls["early_data_bytes"] else "")]


def _load_commands(job: dict[str, Any]) -> list[str]:
    shape = DumbbellShape(**job["shape"])
    routes = dumbbell_routes("server1", job["initcwnd"], job["congestion_control"])
    return [*(command for port in (*shape.router_ports(), *shape.client_ports())
              for command in port.commands),
            *(route.command for route in routes),
            *(f"hosts/load_client.py on client{number}: {each['arrivals_per_s']:.2f} arrivals a"
              f" second, {each['connections']} connections each"
              for number, each in enumerate(job["traffic"], start=1))]
