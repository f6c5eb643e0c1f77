"""The browser of a page: over several connections it fetches each object once another names it.

Reads one JSON request a line from standard input, and writes one JSON answer a line:

    {"address": "10.0.0.2", "port": 80, "http": "1.1", "connections": 6, "deadline_s": 60,
     "objects": [[30000, 0, 0, 0, 0, 0], [15000, 1, 1500, 0, 0, 0]]}
    {"objects": [{"ok": true, "named_ms": 0.0, "start_ms": 0.0, "end_ms": …, …}, …],
     "libcurl": "7.88.1"}

An object is [bytes, number of the object that names it (0 for the document, which is number 1),
bytes of that object's body that have to be there, ms to parse them, ms until the server responds,
host]. It is due when it is named and parsed. It is requested when its host has a free connection,
of at most `connections` over HTTP/1.1; the object that was due first comes first. HTTP/2 has one
connection to a host, and requests at once.

With "tls" it speaks TLS 1.3, as over HTTP/2 always: {"trusted": files of root certificates,
"curves": key exchanges by OpenSSL's names, "" for its own choice, "apart_s": 0}. "certificates" has
then, by host, the first host that has the same certificate; of each certificate "trusted" has the
only root that its hosts are trusted by. Over HTTP/2 the hosts of a certificate share the connection
of the first one, as in browsers (RFC 9113, 9.1.1). Where there are several, "certificates" of the
answer are what each connection got: [port, "IP Address:10.0.0.2, DNS:host1.page.example"].

Each connection has a session of its own. With "apart_s" it first opens as many connections to each
host as the page may, and fetches a byte over each; so many seconds later the page's connections
resume these sessions. "session_ports" of the answer are the ports of the first.

With "library", that of kernel_random.c, OpenSSL draws from the kernel from then on.

curl's library makes the transfers (testbed.hosts.libcurl, its multi interface), with its reuse of
connections and its streams. Times are ms since the document was requested: named_ms when the bytes
that name an object were there, start_ms when the library got the request, first_byte_ms when the
first byte of the headers came, end_ms when everything was there.
"""

from __future__ import annotations

import ctypes
import select
import socket
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from firstflight.net.waiting import Timer
from firstflight.testbed.hosts import libcurl
from firstflight.testbed.hosts.bound_ports import all_ports, bind_next
from firstflight.testbed.hosts.control import report, requests
from firstflight.testbed.hosts.downloads import Download, below, downloads_of, host_name
from firstflight.testbed.hosts.libcurl import Curl

_WAIT_S = 1.0  # the longest wait for events of the library
_MOST_IDLE_S = 24 * 3600  # libcurl uses no connection again that was idle for longer
_NS_PER_MS = 1_000_000
FIRST_WITHOUT_KEPT_DATA = (8, 23)  # of libcurl; 7.88 and 8.14 keep data (_work)


class Browser:
    """Fetches one page. Raises OSError without curl's library."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        self.request = request
        self.tls: Mapping[str, Any] | None = request.get("tls")
        self.certificates: list[int] = request.get("certificates", [])
        self.roots: dict[int, str] = {}  # by certificate
        if self.tls is not None:
            self.roots = dict(zip(dict.fromkeys(self.certificates), self.tls["trusted"]))
        # What certificates are for, by the connection's port; of a page with several.
        self.certified: dict[int, str] = {}
        # By host: a session for each connection, since OpenSSL uses one of TLS 1.3 once.
        self.sessions: dict[int, list[libcurl.Sessions]] = {}
        self.opened: dict[int, int] = {}  # connections, by host

        self.downloads = downloads_of(request["objects"])
        self.by_handle: dict[Curl, Download] = {}
        self.waiting: deque[Download] = deque()  # for their time, or for a connection
        self.running: dict[int, int] = {}  # transfers, by host
        # Over HTTP/2, by host: the transfer that opens its connection, and those that wait for it.
        self.opening: dict[int, tuple[Download, list[Download]]] = {}
        self.left = len(self.downloads)

        self.multiplexes = request["http"] == "2"
        version = tuple(map(int, libcurl.version().split(".")[:2]))
        self.keeps_data = version < FIRST_WITHOUT_KEPT_DATA
        self.multi = self._make_multi()
        self.calls = 0  # of ours by the library, with headers or data
        self.reads = 0  # rounds of the library that are due, although they may bring nothing
        self.watched: set[int] = set()  # the library's sockets
        self.curl_ns = 0  # when the library's own timer is due, 0 for never
        self.ports = all_ports()
        self.timer = Timer()
        self.events = select.epoll()
        self.events.register(self.timer.fd, select.EPOLLIN)
        self.begun_ns = time.monotonic_ns()

    def _make_multi(self) -> libcurl.CurlMulti:
        multi = libcurl.CurlMulti()
        multi.setopt(libcurl.M_PIPELINING, libcurl.PIPE_MULTIPLEX if self.multiplexes
                     else libcurl.PIPE_NOTHING)
        multi.setopt(libcurl.M_MAX_HOST_CONNECTIONS, self.request["connections"])
        multi.setopt(libcurl.M_SOCKETFUNCTION, self._watch)
        multi.setopt(libcurl.M_TIMERFUNCTION, self._set_curl_timer)
        hosts = 1 + max(download.task.host for download in self.downloads)
        # Else it closes connections that it will need again, when few transfers are left.
        multi.setopt(libcurl.M_MAXCONNECTS, hosts * self.request["connections"] + 1)
        return multi

    def open_sessions(self) -> list[int]:
        """Open the connections whose sessions the page resumes; their ports, [] where it does not.

        Raises CurlError where one of them fails.
        """
        if self.tls is None or not self.tls["apart_s"]:
            return []
        by_host: dict[int, int] = {}  # objects
        for download in self.downloads:
            host = self._carrier(download.task.host)
            by_host[host] = by_host.get(host, 0) + 1

        ports: list[int] = []
        for host, count in by_host.items():
            for _ in range(min(count, self.request["connections"])):
                sessions = libcurl.Sessions()
                self.sessions.setdefault(host, []).append(sessions)
                handle = self._transfer(host, "1", sessions)
                # Over HTTP/2 libcurl 7.88 keeps no session that comes with its settings.
                handle.setopt(libcurl.HTTP_VERSION, libcurl.CURL_HTTP_VERSION_1_1)
                handle.setopt(libcurl.WRITEFUNCTION, lambda _: None)
                handle.setopt(libcurl.FORBID_REUSE, 1)
                handle.perform()
                ports.append(handle.getinfo(libcurl.LOCAL_PORT))
                self._note_certificate(handle)
                handle.close()

        self.timer.set(time.monotonic_ns() + round(self.tls["apart_s"] * 1e9))
        self.events.poll()
        self.timer.set(0)
        self.begun_ns = time.monotonic_ns()
        return ports

    def load(self) -> list[dict[str, object]]:
        """Fetch the page; the answer of each object."""
        deadline_ns = self.begun_ns + round(self.request["deadline_s"] * 1e9)
        self._name(self.downloads[0], self.begun_ns)
        ready: list[tuple[int, int]] = []
        while self.left:
            self._start_due()
            self._work(ready)
            ready = []
            if self._take_ended() or self._release() or self._is_due():
                continue
            now_ns = time.monotonic_ns()
            if now_ns > deadline_ns or not (self.running_count or self.waiting):
                break
            ready = self._wait(now_ns)
        return [self._answer(download) for download in self.downloads]

    def _work(self, ready: list[tuple[int, int]]) -> None:
        """Let the library work on the sockets that are ready, and on what is due.

        curl_multi_perform() would look at every transfer, and read the clock several times for
        each. Of a page with hundreds of transfers these are more reads than a guest gives free at
        one moment (vtime/kernel/clock.c): the page would take milliseconds longer.

        libcurl up to 8.14 may keep data of HTTP/2 that it has read; no socket then becomes readable
        for it. So it reads on there until it delivers nothing more.
        """
        for fd, events in ready:
            if fd in self.watched:  # until the library closed it for an earlier one
                self._act(fd, events)
        if self.curl_ns and self.curl_ns <= time.monotonic_ns():
            self.curl_ns = 0
            self._act(libcurl.SOCKET_TIMEOUT, 0)

        calls_before = -1 if self.multiplexes and self.keeps_data else self.calls
        while self.reads or calls_before != self.calls:
            calls_before, self.reads = self.calls, max(0, self.reads - 1)
            for fd in sorted(self.watched):
                self._act(fd, select.EPOLLIN)

    def _act(self, fd: int, events: int) -> None:
        """Let the library work on one socket, or on what is due."""
        flags = ((libcurl.CSELECT_IN if events & select.EPOLLIN else 0)
                 | (libcurl.CSELECT_OUT if events & select.EPOLLOUT else 0)
                 | (libcurl.CSELECT_ERR if events & (select.EPOLLERR | select.EPOLLHUP) else 0))
        self.multi.socket_action(fd, flags)

    def _watch(self, what: int, fd: int, _multi: object, _data: object) -> None:
        """Watch a socket for what the library waits for; it calls this."""
        if what == libcurl.POLL_REMOVE:
            if fd in self.watched:
                self.watched.remove(fd)
                self.events.unregister(fd)
            return

        events = ((select.EPOLLIN if what & libcurl.POLL_IN else 0)
                  | (select.EPOLLOUT if what & libcurl.POLL_OUT else 0))
        if fd in self.watched:
            self.events.modify(fd, events)
        else:
            self.watched.add(fd)
            self.events.register(fd, events)

    def _set_curl_timer(self, wait_ms: int) -> None:
        """Note when the library has to work without an event, -1 for never; it calls this."""
        self.curl_ns = 0 if wait_ms < 0 else time.monotonic_ns() + wait_ms * _NS_PER_MS

    def close(self) -> None:
        """Close all transfers and connections."""
        not_added: list[Download] = []
        for _, waiting in self.opening.values():
            not_added += waiting
        for download in self.downloads:
            if download.handle is not None:
                if download not in not_added:
                    self.multi.remove_handle(download.handle)
                download.handle.close()
        self.multi.close()
        for of_host in self.sessions.values():
            for sessions in of_host:
                sessions.close()
        self.events.close()
        self.timer.close()

    @property
    def running_count(self) -> int:
        return sum(self.running.values())

    def _name(self, download: Download, now_ns: int) -> None:
        """Note that an object is named; it waits then until it is parsed."""
        download.named_ns = now_ns
        download.due_ns = now_ns + round(download.task.parse_ms * _NS_PER_MS)
        self.waiting.append(download)

    def _may_start(self, download: Download, now_ns: int) -> bool:
        """Whether an object is due, and its host has a connection for it."""
        running = self.running.get(self._carrier(download.task.host), 0)
        has_room = self.multiplexes or running < self.request["connections"]
        return download.due_ns <= now_ns and has_room

    def _is_due(self) -> bool:
        now_ns = time.monotonic_ns()
        return any(self._may_start(download, now_ns) for download in self.waiting)

    def _start_due(self) -> None:
        """Start all objects that may be requested now; the one that was due first comes first."""
        now_ns = time.monotonic_ns()
        for download in sorted(self.waiting, key=lambda waiting: waiting.due_ns):
            if self._may_start(download, now_ns):
                self.waiting.remove(download)
                self._start(download)

    def _start(self, download: Download) -> None:
        task, carrier = download.task, self._carrier(download.task.host)
        download.start_ns = time.monotonic_ns()
        think = f"?think_ms={task.think_ms:g}" if task.think_ms else ""
        path = f"{task.size_bytes}{think}"
        handle = download.handle = self._transfer(task.host, path, self._sessions(carrier))
        self.by_handle[handle] = download
        handle.setopt(libcurl.HEADERFUNCTION, lambda _: self._note_first(download))
        handle.setopt(libcurl.WRITEFUNCTION, lambda data: self._take(download, data))

        is_first = carrier not in self.running
        self.running[carrier] = self.running.get(carrier, 0) + 1
        if carrier in self.opening:
            self.opening[carrier][1].append(download)
            return
        if self.multiplexes and is_first:
            self.opening[carrier] = download, []
        self._add(download)

    def _carrier(self, host: int) -> int:
        """The host over whose connections the objects of a host come."""
        return self.certificates[host] if self.multiplexes and self.certificates else host

    def _sessions(self, host: int) -> libcurl.Sessions | None:
        """Where the session of a transfer's connection is; None where none is resumed.

        A transfer opens a connection where none is free.
        """
        if host not in self.sessions:
            return None
        of_host, opened = self.sessions[host], self.opened.get(host, 0)
        if self.running.get(host, 0) < opened:  # it takes one that is free
            return of_host[0]
        self.opened[host] = opened + 1
        return of_host[min(opened, len(of_host) - 1)]

    def _transfer(self, host: int, path: str, sessions: libcurl.Sessions | None) -> Curl:
        """A transfer of a host's path, not yet added. sessions: of which it resumes one, if any."""
        address, port, carrier = self.request["address"], self.request["port"], self._carrier(host)
        is_secure = self.tls is not None
        scheme = "https" if is_secure else "http"
        version = libcurl.CURL_HTTP_VERSION_1_1
        if self.multiplexes:
            version = libcurl.CURL_HTTP_VERSION_2TLS
        name = host_name(carrier, is_secure) if carrier else address
        handle = libcurl.Curl()
        if carrier:
            handle.setopt(libcurl.RESOLVE, [f"{name}:{port}:{address}"])
        handle.setopt(libcurl.URL, f"{scheme}://{name}:{port}/{path}")
        # libcurl finds a connection again by the name in the URL; each request names its own host.
        if host != carrier:
            handle.setopt(libcurl.HTTPHEADER, [f"Host: {host_name(host)}:{port}"])
        handle.setopt(libcurl.HTTP_VERSION, version)
        handle.setopt(libcurl.PIPEWAIT, int(self.multiplexes))
        # Else the library would set SIGPIPE aside, which Python ignores, and back again for every
        # transfer in every round: half of all the client's system calls.
        handle.setopt(libcurl.NOSIGNAL, 1)
        handle.setopt(libcurl.PROXY, "")
        handle.setopt(libcurl.MAXAGE_CONN, _MOST_IDLE_S)
        handle.setopt(libcurl.SOCKOPTFUNCTION, self._bind)
        handle.setopt(libcurl.USERAGENT, f"curl/{libcurl.version()}")

        if self.tls is not None:
            handle.setopt(libcurl.CAINFO, self.roots[self.certificates[host]])
            handle.setopt(libcurl.CERTINFO, int(len(self.roots) > 1))
            handle.setopt(libcurl.SSLVERSION, libcurl.TLS_1_3)
            if self.tls["curves"]:
                handle.setopt(libcurl.SSL_EC_CURVES, self.tls["curves"])
            if sessions is None:
                handle.setopt(libcurl.SSL_SESSIONID_CACHE, 0)
            else:
                handle.share(sessions)
        return handle

    def _bind(self, fd: int, _purpose: int) -> int:
        """Give a new socket of the library its port."""
        opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM, fileno=fd)
        try:
            bind_next(opened, self.ports)
        finally:
            opened.detach()  # it is the library's
        return libcurl.SOCKOPT_OK

    def _add(self, download: Download) -> None:
        """Give the library one more transfer, and let it connect or send the request at once.

        So the kernel reads the clock, too. Where hundreds of transfers were added in a row, whose
        clock only the library reads, a guest would take it for a program that waits for the clock.
        """
        assert download.handle is not None
        self.multi.add_handle(download.handle)
        self._act(libcurl.SOCKET_TIMEOUT, 0)

    def _release(self) -> bool:
        """Give the library what waited for a connection that is open now; whether anything did.

        It could wait for itself (PIPEWAIT), but it takes one such transfer at a time out of a line
        that all hosts share (7.88).
        """
        open_now = [host for host, (first, _) in self.opening.items()  # or it has ended already
                    if first.handle is None or first.handle.getinfo(libcurl.PRETRANSFER_TIME) > 0]
        released: list[Download] = []
        for host in open_now:
            _, waiting = self.opening.pop(host)
            released += waiting
        for download in released:
            self._add(download)
        return bool(released)

    def _note_first(self, download: Download) -> None:
        """Note when the first byte of an object came."""
        self.calls += 1
        download.first_ns = download.first_ns or time.monotonic_ns()

    def _take(self, download: Download, data: bytes) -> None:
        """Take a part of an object's body, and name the objects that it names."""
        self.calls += 1
        download.digest.update(data)
        download.got_bytes += len(data)
        now_ns = time.monotonic_ns()
        while download.names and download.names[0].task.at_byte <= download.got_bytes:
            self._name(download.names.pop(0), now_ns)

    def _take_ended(self) -> bool:
        """Note the transfers that have ended; return whether any has."""
        hosts: set[int] = set()
        while True:
            queued, succeeded, failed = self.multi.info_read()
            now_ns = time.monotonic_ns()
            ended = [(handle, "") for handle in succeeded]
            ended += [(handle, f"curl {code}: {reason or 'failed'}")
                      for handle, code, reason in failed]
            for handle, error in ended:
                hosts.add(self._carrier(self.by_handle[handle].task.host))
                self._end(handle, now_ns, error)
            if not queued:
                break

        if self.multiplexes and self.keeps_data:
            for host in hosts:
                self._read_on(host)
        return bool(hosts)

    def _end(self, handle: Curl, now_ns: int, error: str) -> None:
        """Note how a transfer has ended, and close it. error: the library's, "" for none."""
        download = self.by_handle.pop(handle)
        status = handle.getinfo(libcurl.RESPONSE_CODE)
        if not error and status != 200:
            error = f"HTTP status {status}"
        if not error and self.multiplexes:
            if handle.getinfo(libcurl.INFO_HTTP_VERSION) != libcurl.CURL_HTTP_VERSION_2_0:
                error = "the server agreed to no HTTP/2 (ALPN)"

        download.end_ns = now_ns
        download.answer = {
            "ok": not error, "error": error, "port": max(0, handle.getinfo(libcurl.LOCAL_PORT)),
            "connects": handle.getinfo(libcurl.NUM_CONNECTS),
            "header_bytes": handle.getinfo(libcurl.HEADER_SIZE)}
        self._note_certificate(handle)

        self.running[self._carrier(download.task.host)] -= 1
        self.left -= 1
        self.multi.remove_handle(handle)
        handle.close()
        download.handle = None
        if error:  # what it would have named is never requested
            self.left -= len(below(download))
            download.names.clear()

    def _note_certificate(self, handle: Curl) -> None:
        """Note what the certificate of a transfer's connection is for, if it opened one."""
        if len(self.roots) > 1 and handle.getinfo(libcurl.NUM_CONNECTS):
            self.certified[handle.getinfo(libcurl.LOCAL_PORT)] = handle.certified_names()

    def _read_on(self, host: int) -> None:
        """Make the library read what it holds of a host's connection, when a transfer has ended.

        Where a stream's buffer is full, libcurl up to 8.0 stops in the midst of what it has read
        of the connection. If that stream then ends (http2_data_done in lib/http2.c), nobody reads
        the rest, since no socket becomes readable for it. The library reads a transfer that was
        paused at once; what it reads for another one takes a second round.
        """
        for download in self.downloads:
            handle = download.handle
            if (handle is not None and self._carrier(download.task.host) == host
                    and handle.getinfo(libcurl.PRETRANSFER_TIME) > 0):
                handle.pause(libcurl.PAUSE_RECV)
                handle.pause(libcurl.PAUSE_CONT)
                self.reads = 2
                return

    def _answer(self, download: Download) -> dict[str, object]:
        answer: dict[str, object] = {
            "ok": False, "error": download.why_not_ended(self.request["deadline_s"]), "port": 0,
            "connects": 0, "header_bytes": 0}
        answer.update(download.answer)
        for name, at_ns in (("named_ms", download.named_ns), ("start_ms", download.start_ns),
                            ("first_byte_ms", download.first_ns), ("end_ms", download.end_ns)):
            answer[name] = round((at_ns - self.begun_ns) / _NS_PER_MS, 6) if at_ns else None
        answer.update(size=download.got_bytes, sha256=download.digest.hexdigest())
        return answer

    def _wait(self, now_ns: int) -> list[tuple[int, int]]:
        """Wait until something comes, or exactly until something is due (net.waiting).

        Return the sockets that are ready, with their events.
        """
        due_ns = [download.due_ns for download in self.waiting if download.due_ns > now_ns]
        if self.curl_ns:
            due_ns.append(self.curl_ns)
        self.timer.set(min(due_ns, default=0))
        return [(fd, events) for fd, events in self.events.poll(_WAIT_S) if fd != self.timer.fd]


def load_page(request: Mapping[str, Any]) -> dict[str, object]:
    """The answer to a request."""
    browser = Browser(request)
    if request.get("library"):
        ctypes.CDLL(request["library"])  # behind libcurl, which has loaded OpenSSL
    try:
        ports = browser.open_sessions()
        objects = browser.load()
        return {"objects": objects, "session_ports": ports, "libcurl": libcurl.version(),
                "certificates": sorted(browser.certified.items())}
    finally:
        browser.close()


def main() -> int:
    for request in requests():
        number = {"number": request["number"]} if "number" in request else {}
        try:
            answer: dict[str, Any] = dict(load_page(request))
        except (OSError, libcurl.CurlError) as error:
            answer = {"objects": [], "error": str(error)}
        report({**answer, **number})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
