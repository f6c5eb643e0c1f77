"""Alterations of a guest, each of one thing: in a trial's job, or in the programs that run there.

What the trial requests stays as it is, so a judge who sees everything refuses each alteration.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from firstflight.setting.setting import NetworkSetting
from firstflight.testbed.messages import Job

# Takes a trial and its job, and returns the altered job; None where the trial has nothing to alter.
Change = Callable[[NetworkSetting, Job], Job | None]
HOSTS = "firstflight/testbed/hosts"
# How long a server pauses that should not, and by how much a client's pauses differ.
PAUSE_MS = 3.0
# The places of the values in an object of a page, as a job has it.
SIZE, NAMED_BY, AT_BYTE, PARSE_MS, THINK_MS = range(5)


@dataclass(frozen=True)
class Edit:
    """A text of a program, and the text in its place; path is that of the file in the project."""

    path: str
    old: str
    new: str


@dataclass(frozen=True)
class Alteration:
    """One thing that differs from the request: in the job (change) or in programs (edits)."""

    name: str
    change: Change = lambda trial, job: job
    edits: tuple[Edit, ...] = ()


# Of a job -----------------------------------------------------------------------------

def _with(job: Job, **values: Any) -> Job:
    """A job like this one, with other values."""
    return cast(Job, {**cast(dict[str, Any], job), **values})


def _with_in_table(job: Job, name: str, **values: Any) -> Job:
    """A job like this one, with other values in the table of that name."""
    table: Mapping[str, Any] = cast(dict[str, Any], job).get(name, {})
    return _with(job, **{name: {**table, **values}})


def _network(**fields: Any) -> Change:
    """Change the network. A value may be a function of the requested value."""
    def change(trial: NetworkSetting, job: Job) -> Job | None:
        new = {name: value(getattr(trial, name)) if callable(value) else value
               for name, value in fields.items()}
        if all(getattr(trial, name) == value for name, value in new.items()):
            return None
        other = replace(trial, **new)
        of_seed = {"seed": other.seed} if other.seed else {}
        return _with(job, network=other.network_job, **of_seed)
    return change


def _sysctl(name: str, value: str) -> Change:
    """Change a sysctl of the server."""
    full = f"net.ipv4.tcp_{name}"
    return lambda trial, job: (_with_in_table(job, "sysctls", **{full: value})
                               if job.get("sysctls", {}).get(full) != value else None)


def _sysctl_of_both(name: str, value: str) -> Change:
    """Change a sysctl of both hosts."""
    return lambda trial, job: _with_in_table(job, "host_sysctls", **{f"net.ipv4.tcp_{name}": value})


def _buffer(name: str, value: str) -> Change:
    """Change the sizes of a receive buffer (rmem) or of a send buffer (wmem)."""
    return lambda trial, job: _with_in_table(job, "buffers", **{f"net.ipv4.tcp_{name}": value})


def _options(**options: int | bool) -> Change:
    """Change options of the hosts' routes."""
    def change(trial: NetworkSetting, job: Job) -> Job | None:
        before = cast(dict[str, Any], job.get("options", {}))
        new = {name: value for name, value in options.items() if before.get(name) != value}
        return _with_in_table(job, "options", **new) if new else None
    return change


def _window(by: int) -> Change:
    """Change the server's initial window by some segments."""
    return lambda trial, job: _with(job, initcwnd=max(1, job["initcwnd"] + by))


def _client_window(by: int) -> Change:
    """Change the client's initial receive window by some segments."""
    return lambda trial, job: _with(job, initrwnd=max(1, job["initrwnd"] + by))


def _control(name: str) -> Change:
    """Change the congestion control."""
    return lambda trial, job: (_with(job, congestion_control=name)
                               if job["congestion_control"] != name else None)


def _smaller_mss(trial: NetworkSetting, job: Job) -> Job | None:
    return _options(advertised_mss=trial.syn_mss - 1)(trial, job)


def _objects(place: int, change: Callable[[list[float]], float]) -> Change:
    """Change one value in each object of a page; place says which."""
    def changed(trial: NetworkSetting, job: Job) -> Job | None:
        if "objects" not in job:
            return None
        objects = [list(row) for row in job["objects"]]
        for row in objects:
            row[place] = change(row)
        return _with(job, objects=objects) if objects != job["objects"] else None
    return changed


def _named_later(by_bytes: int) -> Change:
    """Name each object so many bytes later, at the latest at the end of what names it."""
    def changed(trial: NetworkSetting, job: Job) -> Job | None:
        if "objects" not in job:
            return None
        sizes = [row[SIZE] for row in job["objects"]]

        def later(row: list[float]) -> float:
            if not row[NAMED_BY]:  # it is the document
                return row[AT_BYTE]
            return min(max(0, row[AT_BYTE] + by_bytes), sizes[int(row[NAMED_BY]) - 1])

        return _objects(AT_BYTE, later)(trial, job)
    return changed


def _client_pauses(by_ms: float) -> Change:
    """Make the pauses of a client so much longer; none becomes shorter than 0 ms."""
    def changed(trial: NetworkSetting, job: Job) -> Job | None:
        if not any(job.get("think_s", ())):
            return None
        return _with(job, think_s=[max(0.0, think_s + by_ms / 1000) if think_s else 0.0
                                   for think_s in job["think_s"]])
    return changed


def _connections(by: int) -> Change:
    """Change the number of a page's connections over HTTP/1.1."""
    return lambda trial, job: (_with(job, connections=job["connections"] + by)
                               if job.get("connections", 1) + by > 0
                               and "connections" in job and job.get("http") != "2" else None)


def _tls(**fields: Any) -> Change:
    """Change settings of TLS. A value may be a function of the requested value."""
    def changed(trial: NetworkSetting, job: Job) -> Job | None:
        if "tls" not in job:
            return None
        new: Any = copy.deepcopy(job["tls"])
        new.update({name: value(new[name]) if callable(value) else value
                    for name, value in fields.items()})
        return _with(job, tls=new) if new != job["tls"] else None
    return changed


def _of_server_py(trial: NetworkSetting, job: Job) -> Job | None:
    """Leave the job as it is, for an edit of server.py; None where another server answers."""
    return None if "server" in job else job


def _of_used_connection(trial: NetworkSetting, job: Job) -> Job | None:
    """Leave the job as it is, for an edit; None where no connection is used again."""
    return job if "objects" in job or len(job.get("paths", ())) > 1 else None


# Of a program -------------------------------------------------------------------------

_LONGER_REQUEST = (
    Edit(f"{HOSTS}/page_client.py", 'f"curl/{libcurl.version()}")',
         'f"curl/{libcurl.version()}" + 1200 * "x")'),
    Edit(f"{HOSTS}/http_client.py", 'f"curl/{pycurl.version_info()[1]}")',
         'f"curl/{pycurl.version_info()[1]}" + 1200 * "x")'),
    Edit(f"{HOSTS}/http_client.py", '"--write-out", "%{json}\\n",',
         '"--write-out", "%{json}\\n", "--header", "X: " + 1200 * "x",'))
_NEVER_REUSED = (
    Edit(f"{HOSTS}/page_client.py", "handle.setopt(libcurl.PROXY, \"\")",
         "handle.setopt(libcurl.PROXY, \"\"); handle.setopt(libcurl.FORBID_REUSE, 1)"),
    Edit(f"{HOSTS}/http_client.py", "handle.setopt(pycurl.PROXY, \"\")",
         "handle.setopt(pycurl.PROXY, \"\"); handle.setopt(pycurl.FORBID_REUSE, 1)"))
_LATE_ANSWER = (Edit(
    f"{HOSTS}/http_server.py", "        started_ns = time.monotonic_ns()\n",
    f"        time.sleep({PAUSE_MS / 1000})\n        started_ns = time.monotonic_ns()\n"),)
# It sends the first half of a response, pauses, and sends the rest.
_PAUSE_WITHIN = (Edit(
    f"{HOSTS}/http_server.py",
    "sent = connection.socket.sendmsg([response.pending], kernel.ACK_STAMP)\n",
    "pending = response.pending\n"
    "                if response.released - response.sent == len(response.payload) > 2000:\n"
    "                    half = len(pending) // 2\n"
    "                    connection.socket.send(pending[:half])\n"
    f"                    time.sleep({PAUSE_MS / 1000})\n"
    "                    sent = half + connection.socket.sendmsg([pending[half:]],"
    " kernel.ACK_STAMP)\n"
    "                else:\n"
    "                    sent = connection.socket.sendmsg([pending], kernel.ACK_STAMP)\n"),)


def _capped(kbps: int) -> tuple[Edit, ...]:
    """Cap the pacing rate of the server's sockets, after the server has read their state."""
    so_max_pacing_rate = 47  # which Python's socket does not name
    bytes_per_s = kbps * 125
    return (Edit(f"{HOSTS}/connections.py", "        accepted.setblocking(False)\n",
                 "        accepted.setblocking(False)\n"
                 f"        accepted.setsockopt(socket.SOL_SOCKET, {so_max_pacing_rate},"
                 f" {bytes_per_s})\n"),)


def _with_option(level: str, option: str, value: int) -> tuple[Edit, ...]:
    """Set an option of the server's sockets."""
    return (Edit(f"{HOSTS}/connections.py", "        kernel.number_bytes(accepted)\n",
                 f"        accepted.setsockopt({level}, {option}, {value})\n"
                 "        kernel.number_bytes(accepted)\n"),)


ALTERATIONS: tuple[Alteration, ...] = (
    Alteration("the client's receive buffer small", _buffer("rmem", "4096 30000 30000")),
    Alteration("the client's window a segment smaller", _client_window(-1)),
    Alteration("requests 1200 bytes longer", edits=_LONGER_REQUEST),
    Alteration("no SACK", _sysctl_of_both("sack", "0")),
    Alteration("no time stamps", _sysctl_of_both("timestamps", "0")),
    Alteration("no window scale", _sysctl_of_both("window_scaling", "0")),
    Alteration("an MSS 1 byte smaller", _smaller_mss),
    Alteration("path MTU probing", _sysctl("mtu_probing", "2")),
    Alteration("a client that acknowledges each segment", _options(quickack=True)),
    Alteration("connections used once", _of_used_connection, _NEVER_REUSED),
    Alteration("a connection more", _connections(1)),
    Alteration("a connection less", _connections(-1)),
    Alteration("no think times", _objects(THINK_MS, lambda row: 0.0)),
    Alteration("no parse times", _objects(PARSE_MS, lambda row: 0.0)),
    Alteration("a client's pauses 3 ms longer", _client_pauses(PAUSE_MS)),
    Alteration("a client's pauses 3 ms shorter", _client_pauses(-PAUSE_MS)),
    Alteration("objects named 3 kB late", _named_later(3000)),
    Alteration("objects named 3 kB early", _named_later(-3000)),
    Alteration("a send buffer of 30 kB", _buffer("wmem", "4096 16384 30000")),
    Alteration("SO_SNDBUF", _of_server_py, _with_option("socket.SOL_SOCKET", "socket.SO_SNDBUF",
                                                     30_000)),
    Alteration("Nagle's algorithm", _of_server_py, _with_option("socket.IPPROTO_TCP",
                                                            "socket.TCP_NODELAY", 0)),
    Alteration("a pacing cap of 16 Mbit/s", _of_server_py, _capped(16_000)),
    Alteration("a pacing cap of 3 Mbit/s", _of_server_py, _capped(3000)),
    Alteration("a server that pauses 3 ms before its answer", _of_server_py, _LATE_ANSWER),
    Alteration("a server that pauses 3 ms within its answer", _of_server_py, _PAUSE_WITHIN),
    Alteration("tcp_notsent_lowat of 16 kB", _sysctl("notsent_lowat", "16384")),
    Alteration("no tail loss probes", _sysctl("early_retrans", "0")),
    Alteration("no RACK", _sysctl("recovery", "0")),
    Alteration("no F-RTO", _sysctl("frto", "0")),
    Alteration("no DSACK", _sysctl_of_both("dsack", "0")),
    Alteration("tcp_reordering of 30", _sysctl("reordering", "30")),
    Alteration("no slow start after a pause", _sysctl("slow_start_after_idle", "0")),
    Alteration("a least timeout of 400 ms", _sysctl("rto_min_us", "400000")),
    Alteration("no compressed acknowledgements", _sysctl_of_both("comp_sack_nr", "0")),
    Alteration("records of 4 kB", _tls(record_bytes=4096)),
    Alteration("a chain 600 bytes longer", _tls(chain_bytes=lambda size: size + 600)),
    Alteration("a ticket less", _tls(tickets=lambda count: max(0, count - 1))),
    Alteration("a window of one segment more", _window(1)),
    Alteration("a window of one segment less", _window(-1)),
    Alteration("Reno", _control("reno")),
    Alteration("BBR", _control("bbr")),
    Alteration("an RTT 6 µs longer", _network(rtt_ms=lambda ms: ms + 0.006)),
    Alteration("a link 0.02 % faster", _network(bandwidth_kbps=lambda kbps: kbps * 1.0002)),
    Alteration("an uplink 1 % slower", _network(uplink_kbps=lambda kbps: kbps * 0.99)),
    Alteration("a queue of half the packets", _network(
        queue_packets=lambda packets: max(1, packets // 2))),
    Alteration("jitter of 10 µs", _network(jitter_ms=lambda ms: ms + 0.01, seed=3)),
    Alteration("another seed", _network(seed=lambda seed: seed + 1)),
    Alteration("1 % of loss", _network(loss_percent=lambda percent: percent + 1, seed=3)),
    Alteration("fq_codel", _network(qdisc="fq_codel")),
    Alteration("cake", _network(qdisc="cake")),
    Alteration("fq", _network(qdisc="fq")),
    Alteration("a first-in first-out queue", _network(qdisc="fifo")))
