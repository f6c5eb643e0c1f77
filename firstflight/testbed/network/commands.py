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
    client = dict(job.get("host_sysctls", {}))
    server = {**client, **job.get("sysctls", {})}
    for host, name in ((client, RECEIVE_BUFFERS), (server, SEND_BUFFERS)):
        buffers = job.get("buffers", {}).get(name)
        if buffers is not None and name not in from_scenario:
            host[name] = buffers
    return {"client": client, "server": server}


def urls_of(job: Job) -> list[str]:
    """The URLs that the client of a trial on the star fetches, in order."""
    origin = origin_of("tls" in job, is_other="server" in job,
                       name=job.get("own", {}).get("name", ""))
    return [f"{origin}{path}" for path in job["paths"]]


def origin_of(is_secure: bool, is_other: bool, name: str) -> str:
    """What a URL of the server has before its path.

    is_other: whether the server is another one than server.py. name: in its certificate; "" for the
    address.
    """
    port = ""
    if is_other:
        port = f":{OTHER_SECURE_PORT if is_secure else OTHER_PORT}"
    return f"{'https' if is_secure else 'http'}://{name or SERVER_IP}{port}"


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
    commands = []
    for port in (*star_ports(path), server_interface(path)):
        commands += port.commands
    commands += _sysctl_commands(job, from_scenario)
    commands += [route.command for route in routes]
    if job.get("arp_ms"):
        commands += [f"sysctl -w {ARP_RETRY}={job['arp_ms']}",
                     f"ip neigh del {SERVER_IP} dev client-eth0",
                     f"ip neigh del {CLIENT_IP} dev server-eth0"]
    return [*commands, *_tls(job), *_requests(job)]


def _sysctl_commands(job: Job, from_scenario: Container[str]) -> list[str]:
    """The sysctls of a trial's hosts, without repetition."""
    commands = []
    for requested in sysctls_of(job, from_scenario).values():
        commands += [f"sysctl -w {key}='{value}'" for key, value in requested.items()]
    return list(dict.fromkeys(commands))


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
    line = (f"{job.get('server', 'server.py')}: TLS 1.3, a chain of {tls['chain_bytes']} bytes"
            f" with {tls['signature']}, {tls['intermediates']} intermediates,"
            f" {tls['tickets']} tickets; records of {tls['record_bytes']} bytes")
    if "server" not in job:
        line += f", a buffer of {tls['buffer_bytes']}"
    if tls["apart_s"]:
        line += ", resumed"
    if tls["early_data_bytes"]:
        line += ", early data"
    return [line]


def _load_commands(job: Job, from_scenario: Container[str]) -> list[str]:
    """The commands of a load. The first server and the first client stand for all."""
    links = DumbbellLinks.from_json(job["network"])
    ports = [*links.router_ports(), *links.client_ports()]
    if links.is_paced:
        ports.append(server_port("server1-eth0", True))
    mss = job.get("options", {}).get("advertised_mss", 0)
    routes = [*dumbbell_routes("server1", job["client_initcwnd"], job["congestion_control"]),
              client_route("client1", job["initrwnd"], mss)]

    commands = []
    for port in ports:
        commands += port.commands
    commands += _sysctl_commands(job, from_scenario)
    commands += [route.command for route in routes]
    for number, traffic in enumerate(job["traffic"], start=1):
        commands.append(f"firstflight/testbed/hosts/load_client.py on client{number}:"
                        f" {traffic['arrivals_per_s']:.2f} arrivals a second,"
                        f" {traffic['connections']} connections each")
    return commands
