"""What a job installs and fetches, for the worker, and as commands that people can read."""

from __future__ import annotations

from collections.abc import Container

from firstflight.net.link import Path
from firstflight.testbed.hosts.tls_records import KEY_SHARES, newer_openssl
from firstflight.testbed.messages import Job
from firstflight.testbed.network.links import (ARP_RETRY, CLIENT_IP, SERVER_IP, RouteOptions,
                                               client_route, dumbbell_routes, star_routes)
from firstflight.testbed.network.shaping import (DumbbellLinks, server_interface, server_port,
                                                 star_ports)

RECEIVE_BUFFERS, SEND_BUFFERS = "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"
# Ports of servers other than server.py, which listen at the same time: HTTP, and with TLS.
OTHER_PORT, OTHER_SECURE_PORT = 8080, 8443


def sysctls_of(job: Job, from_scenario: Container[str]
               ) -> dict[str, dict[str, str]]:
    """A trial's own sysctls, by host. The client's buffer follows its receive window.

    from_scenario: names that the scenario sets; the trial does not change them.
    """
    both = job.get("host_sysctls", {})
    own = {name: value for name, value in job.get("buffers", {}).items()
           if name not in from_scenario}
    return {"client": {**both, **{name: own[name] for name in own if name == RECEIVE_BUFFERS}},
            "server": {**both, **job.get("sysctls", {}),
                       **{name: own[name] for name in own if name == SEND_BUFFERS}}}


def urls_of(job: Job) -> list[str]:
    """The URLs that the client of a trial on the star fetches, in order."""
    scheme = "https" if "tls" in job else "http"
    own = job.get("own", {})
    port = "" if "server" not in job else f":{OTHER_SECURE_PORT if 'tls' in job else OTHER_PORT}"
    host = own.get("name") or SERVER_IP
    return [f"{scheme}://{host}{port}{path}" for path in job["paths"]]


def curves_of(job: Job) -> str:
    """The key exchanges that a trial's client has to offer, "" for its own choice.

    OpenSSL offers X25519 by default; from 3.5 on it would also offer ML-KEM.
    """
    newer = "system" in job or newer_openssl()
    return KEY_SHARES[job["tls"]["key_share"]] if newer and "tls" in job else ""


def named_of(job: Job) -> str:
    """The address of the name in a server's certificate, for curl; "" without a name."""
    name = job.get("own", {}).get("name")
    return f"{name}:{OTHER_SECURE_PORT}:{SERVER_IP}" if name else ""


# As commands of tc, ip, sysctl and the client -----------------------------------------

def commands_of(job: Job, from_scenario: Container[str] = ()) -> list[str]:
    """A trial as commands of tc, ip, sysctl and the client. In fact netlink replaces tc and ip.

    from_scenario: as in sysctls_of.
    """
    of_kind = _load_commands if job["kind"] == "load" else _star_commands
    return of_kind(job, from_scenario)


def _star_commands(job: Job, from_scenario: Container[str]) -> list[str]:
    routes = star_routes(job["initcwnd"], job["initrwnd"], job["congestion_control"],
                         RouteOptions(**job.get("options", {})))
    path = Path.from_json(job["network"])
    return [*(command for port in (*star_ports(path), server_interface(path))
              for command in port.commands),
            *_sysctl_commands(job, from_scenario),
            *(route.command for route in routes),
            *([f"sysctl -w {ARP_RETRY}={job['arp_ms']}",
               f"ip neigh del {SERVER_IP} dev client-eth0",
               f"ip neigh del {CLIENT_IP} dev server-eth0"] if job.get("arp_ms") else ()),
            *_tls(job), *_requests(job)]


def _sysctl_commands(job: Job, from_scenario: Container[str]) -> list[str]:
    """The sysctls of a trial's hosts, without repetition."""
    return list(dict.fromkeys(f"sysctl -w {key}='{value}'"
                              for requested in sysctls_of(job, from_scenario).values()
                              for key, value in requested.items()))


def _requests(job: Job) -> list[str]:
    """How the client of a trial fetches."""
    if "site" in job:
        return [f"{job['client']}: the recorded site {job['site'][:8]} over HTTP/{job['http']}"]
    if "objects" in job:
        return _page(job)
    return [f"{_client(job)} {url}" for url in urls_of(job)]


def _page(job: Job) -> list[str]:
    """How the browser of a page fetches it."""
    return [f"firstflight/testbed/hosts/page_client.py: {len(job['objects'])} objects over"
            f" HTTP/{job['http']}, at most {job['connections']}"
            f" connection{'s' if job['connections'] > 1 else ''} to a host"]


def _client(job: Job) -> str:
    if "request_bytes" in job:
        return (f"head -c {job['request_bytes']} /dev/zero | {job['client']} --data-binary @-"
                " --header Expect:")
    if job.get("tls", {}).get("early_data_bytes"):
        return f"{job['client']} --tls-earlydata"
    return f"{job['client']} --http{job['http']}" if "http" in job else str(job["client"])


def _tls(job: Job) -> list[str]:
    """How the server speaks TLS; [] if it does not."""
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


def _load_commands(job: Job, from_scenario: Container[str]) -> list[str]:
    """The first server and the first client stand for all."""
    links = DumbbellLinks.from_json(job["network"])
    pacing = [server_port("server1-eth0", True)] if links.is_paced else []
    mss = job.get("options", {}).get("advertised_mss", 0)
    routes = [*dumbbell_routes("server1", job["client_initcwnd"], job["congestion_control"]),
              client_route("client1", job["initrwnd"], mss)]
    return [*(command for port in (*links.router_ports(), *links.client_ports(), *pacing)
              for command in port.commands),
            *_sysctl_commands(job, from_scenario),
            *(route.command for route in routes),
            *(f"firstflight/testbed/hosts/load_client.py on client{number}:"
              f" {traffic['arrivals_per_s']:.2f} arrivals a second,"
              f" {traffic['connections']} connections each"
              for number, traffic in enumerate(job["traffic"], start=1))]
