"""Loads pages in Chromium, and reports what the browser did and when.

Reads one JSON request a line from standard input, and writes one JSON answer a line:

    {"start": {"rules": "MAP page.test:443 10.0.0.2:9443", "keys": "…"}}
    {"error": "", "version": "Chrome/156…"}
    {"prepare": true}                                  a new, empty browser context
    {"error": ""}
    {"url": "https://page.test/index.html", "deadline_s": 60, "phase_ms": 7.5}
    {"error": "", "load": {"load_ms": …, "requests": [{…}, …], …}}

The browser runs as a user of no rights, in a folder of its own, and with its sandbox. For each load
it has a new context: no cookie, no cache, no connection. Its names and certificates are those of
the page's server; other names fail.
"""

from __future__ import annotations

import base64
import hashlib
import os
import signal
import time
from pathlib import Path
from typing import Any

from firstflight.testbed.hosts.browser.devtools import (CALL_S, BrowserEnded, BrowserError,
                                                        DevTools, Event)
from firstflight.testbed.hosts.browser.film import CASTING, Film
from firstflight.testbed.hosts.browser.frames import next_start_ns, phase_of
from firstflight.testbed.hosts.browser.load import Load, Request
from firstflight.testbed.hosts.control import report, requests

PROGRAM = Path("/usr/lib/chromium/chromium-headless-shell")
FOLDER = Path("/run/browser")
SHARED_MEMORY = Path("/dev/shm")
MISSING = "the browser is missing: ./install.sh --with-browser brings it"
NOBODY = 65534
# Its TLS draws from the kernel, whose numbers follow from the trial's seed, and not from the
# processor (BoringSSL's crypto/cpu_intel.cc). The length of a ClientHello is drawn (GREASE of ECH).
WITHOUT_RDRAND = "~0x4000000000000000"
NETWORK_PROCESS = b"--utility-sub-type=network.mojom.NetworkService"
# About two seconds between two loads: with none some connections begin some 30 ms later.
PAUSE_S = 2.0
STARTS_S = 0.5  # for its network process, before each load
QUIET_S, MOST_AFTER_S, LOOK_S = 0.5, 5.0, 0.1  # after the load event
MOST_BUFFER, MOST_BODY = 256 << 20, 64 << 20
BUFFERS = {"maxTotalBufferSize": MOST_BUFFER, "maxResourceBufferSize": MOST_BODY}
# Traced are the paints: elsewhere Chromium rounds the largest one to 4 ms.
TRACED = {"includedCategories": ["rail"], "excludedCategories": ["*"],
          "recordMode": "recordUntilFull", "traceBufferSizeInKb": 8 << 10}
ATTACHING = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True}
WINDOW = (1366, 768)
# What a browser does besides loading a page, switched off.
QUIET = ("--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-default-apps", "--disable-sync",
         "--disable-domain-reliability", "--disable-client-side-phishing-detection",
         "--disable-breakpad", "--disable-crash-reporter", "--disable-extensions",
         "--disable-quic", "--no-pings", "--mute-audio",
         "--block-new-web-contents",
         "--hide-scrollbars", "--metrics-recording-only", "--no-default-browser-check",
         # http:// would be tried as https:// first.
         "--disable-features=HttpsUpgrades,HttpsFirstBalancedMode,OptimizationHints,MediaRouter,"
         "Translate,AutofillServerCommunication",
         # With threads of V8 the end of a long script was 0.256 ms late in 3 of 70 loads on a busy
         # machine, without in 0 of 90: before reads of the clock were free (browser_clock.c), and
         # threads took turns (turns.py). A guest has one processor for them anyway.
         "--js-flags=--random-seed=1 --single-threaded")


class Browser:
    """Chromium, once it was started. Raises BrowserError."""

    def __init__(self) -> None:
        self.tools: DevTools | None = None
        self.context = self.session = ""
        self.version = ""
        self.film = Film(0.0)

    def start(self, rules: str, keys: str, libraries: str = "") -> str:
        """Start the browser, in place of the one that runs; its version.

        rules: --host-resolver-rules. keys: digests of the certificates' keys that it takes.
        libraries: those of browser_random.c and browser_clock.c, as LD_PRELOAD has them.
        """
        self.stop()
        home = FOLDER / "home"
        for folder in (FOLDER, home):
            folder.mkdir(exist_ok=True)
            os.chown(folder, NOBODY, NOBODY)

        command = [str(PROGRAM), *QUIET, "--remote-debugging-pipe",
                   f"--user-data-dir={home}/profile", f"--window-size={WINDOW[0]},{WINDOW[1]}",
                   f"--host-resolver-rules={rules}",
                   f"--ignore-certificate-errors-spki-list={keys}"]
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(home), "TMPDIR": str(home),
                       "XDG_CACHE_HOME": str(home), "LANG": "C.UTF-8", "TZ": "UTC",
                       "OPENSSL_ia32cap": WITHOUT_RDRAND}
        if libraries:
            environment["LD_PRELOAD"] = libraries

        self.tools = DevTools(command, NOBODY, environment, log=FOLDER / "log")
        self.version = str(self.tools.call("Browser.getVersion")["product"])
        self.tools.call("Target.setDiscoverTargets", discover=True)
        return self.version

    def prepare(self) -> None:
        """Have an empty page in a new context, ready to load."""
        tools = self._tools
        self._forget()
        self.context = tools.call("Target.createBrowserContext")["browserContextId"]
        tools.call("Browser.setDownloadBehavior", behavior="deny", browserContextId=self.context)
        target = tools.call("Target.createTarget", url="about:blank",
                            browserContextId=self.context)["targetId"]
        self.session = tools.call("Target.attachToTarget", targetId=target,
                                  flatten=True)["sessionId"]

        for method in ("Page.enable", "Inspector.enable"):
            tools.call(method, self.session)
        tools.call("Network.enable", self.session, **BUFFERS)
        tools.call("Target.setAutoAttach", self.session, **ATTACHING)
        tools.call("Page.setLifecycleEventsEnabled", self.session, enabled=True)

        time.sleep(PAUSE_S)
        while tools.receive(0):
            pass

    def load(self, url: str, deadline_s: float, phase_ms: float | None = None,
             with_pictures: bool = False) -> tuple[dict[str, object], dict[str, str]]:
        """Load a page; what the browser did, and pictures of the page, by name.

        phase_ms: after a frame, when the load is to begin; None for at once. Raises BrowserError
        where the page did not end to load; the browser is then ended, too.
        """
        load = Load(self.session)
        shift_ns = time.time_ns() - time.monotonic_ns()
        self.film = Film(shift_ns / 1e9)
        try:
            begins_ns = start_ns(phase_ms)
            self._renew_network(begins_ns / 1e9 - STARTS_S)
            self._record(with_pictures)
            self._receive_until(begins_ns / 1e9)
            self._tools.heed = lambda event: self._heed(load, event)
            self._navigate(load, url, deadline_s)
            self._wait_until_quiet(load)
            if load.fault:
                raise BrowserError(load.fault)

            for request in load.requests:
                self._add_digest(request)
            self._end_trace(load)
            self._tools.heed = lambda event: None
            self._forget()
            return summary(load, shift_ns), self.film.pictures(load)
        except BrowserError:
            self.stop()  # it may be busy with the page for long
            raise

    def _record(self, with_pictures: bool) -> None:
        """Let the browser trace its paints from now on, and send pictures of the page."""
        if with_pictures:
            self._tools.call("Page.startScreencast", self.session, **CASTING)
        self._tools.call("Tracing.start", transferMode="ReportEvents", traceConfig=TRACED)

    def _navigate(self, load: Load, url: str, deadline_s: float) -> None:
        """Have the page load, until its load event. Raises BrowserError."""
        deadline = time.monotonic() + deadline_s
        answer = self._tools.call("Page.navigate", self.session, within_s=deadline_s, url=url)
        if answer.get("errorText"):
            raise BrowserError(f"the browser cannot load the page: {answer['errorText']}")
        while not load.is_over:
            if time.monotonic() >= deadline:
                raise BrowserError(f"the page did not end to load within {deadline_s:g} s")
            self._tools.receive(deadline - time.monotonic())

    def _renew_network(self, monotonic_s: float) -> None:
        """Let the browser start its network process anew at a time, after the trial has begun.

        What this process draws at random is then the same in each trial (browser_random.c). Without
        the library it depends on the trials before: a ClientHello has one of two lengths in place
        of four (observed with 156). Requests that wait for one connection leave by their places in
        the process's memory (SpdySessionPool's RequestSet), which follow from all that it did. So
        the process is of the same age in each load.
        """
        self._receive_until(monotonic_s)
        end_network_process()

    def _receive_until(self, monotonic_s: float) -> None:
        while (left := monotonic_s - time.monotonic()) > 0:
            self._tools.receive(left)

    def stop(self) -> None:
        if self.tools is not None:
            self.tools.close()
        self.tools, self.context, self.session = None, "", ""

    @property
    def _tools(self) -> DevTools:
        if self.tools is None:
            raise BrowserEnded("no browser was started")
        return self.tools

    def _forget(self) -> None:
        """Close the page, its context and all its connections."""
        context, self.context, self.session = self.context, "", ""
        if context:
            self._tools.call("Target.disposeBrowserContext", browserContextId=context)

    def _heed(self, load: Load, event: Event) -> None:
        """Let a load take an event.

        Close a dialog, which would stop the page for ever. Watch what the page starts: frames of
        other sites and workers, which wait for that.
        """
        load.take(event)
        method = event["method"]
        if method == "Page.screencastFrame":
            self.film.take(event["params"])
            self._tools.send("Page.screencastFrameAck", self.session,
                             sessionId=event["params"]["sessionId"])
        elif method == "Page.javascriptDialogOpening":
            load.dialogs += 1
            self._tools.send("Page.handleJavaScriptDialog", event.get("sessionId", ""),
                             accept=True)
        elif method == "Target.attachedToTarget":
            started = event["params"]["sessionId"]
            if load.watch(event):
                self._tools.send("Network.enable", started, **BUFFERS)
                self._tools.send("Page.enable", started)
                self._tools.send("Target.setAutoAttach", started, **ATTACHING)
            self._tools.send("Runtime.runIfWaitingForDebugger", started)

    def _wait_until_quiet(self, load: Load) -> None:
        """Wait until nothing was requested for a while, but not for ever."""
        end = time.monotonic() + MOST_AFTER_S
        quiet_since = time.monotonic()
        while time.monotonic() < end and not load.fault:
            if load.running:
                quiet_since = time.monotonic()
            elif time.monotonic() - quiet_since >= QUIET_S:
                return
            self._tools.receive(LOOK_S)

    def _end_trace(self, load: Load) -> None:
        """Let the load take what was traced of it. Raises BrowserError."""
        self._tools.call("Tracing.end")
        end = time.monotonic() + CALL_S
        while not load.is_traced:
            if time.monotonic() >= end:
                raise BrowserError(f"the browser did not give its trace within {CALL_S:g} s")
            self._tools.receive(end - time.monotonic())

    def _add_digest(self, request: Request) -> None:
        """Add the SHA-256 of what the page got, where the browser still has it."""
        if request.failure or request.is_redirect or request.end_s is None:
            return
        try:
            body = self._tools.call("Network.getResponseBody", request.session,
                                    requestId=request.number)
        except BrowserEnded:
            raise
        except BrowserError:
            return

        if body.get("base64Encoded"):
            content = base64.b64decode(body["body"])
        else:
            content = str(body["body"]).encode("utf-8", "surrogatepass")
        if request.content_bytes and not content:
            return  # the page has dropped it, as an image that is none
        request.sha256 = hashlib.sha256(content).hexdigest()


def start_ns(phase_ms: float | None) -> int:
    """When to begin a load, in ns of the monotonic clock.

    The network process has STARTS_S before that. phase_ms: a frame is due about so long before;
    None for as soon as possible.
    """
    earliest_ns = time.monotonic_ns() + round((STARTS_S + LOOK_S) * 1e9)
    if phase_ms is None:
        return earliest_ns
    return next_start_ns(earliest_ns, phase_ms)


def end_network_process() -> None:
    """Kill the browser's network process; the browser starts another one."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            command_line = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if NETWORK_PROCESS in command_line:
            os.kill(int(entry.name), signal.SIGKILL)


def summary(load: Load, shift_ns: int) -> dict[str, object]:
    """A load as the answer reports it. shift_ns: from the monotonic clock to that of the day."""
    begun_s = load.begun_s or 0.0
    return {"begun_ns": round(begun_s * 1e9) + shift_ns,
            "content_loaded_ms": load.since_ms(load.content_loaded_s),
            "load_ms": load.since_ms(load.loaded_s),
            "paint_ms": load.since_ms(load.paint_s),
            "largest_paint_ms": load.since_ms(load.largest_s),
            "dialogs": load.dialogs,
            "phase_ms": phase_of(begun_s),
            "requests": [_row(load, request) for request in load.requests]}


def _row(load: Load, request: Request) -> dict[str, object]:
    """A request as the answer reports it."""
    return {"url": request.url, "method": request.method, "kind": request.kind,
            "priority": request.priority, "status": request.status, "protocol": request.protocol,
            "connection": request.connection, "server_port": request.port,
            "start_ms": load.since_ms(request.started_s),
            "connect_ms": load.since_ms(request.connected_s),
            "sent_ms": load.since_ms(request.sent_s),
            "first_byte_ms": load.since_ms(request.first_byte_s),
            "end_ms": load.since_ms(request.end_s),
            "content_bytes": request.content_bytes, "wire_bytes": request.wire_bytes,
            "sha256": request.sha256, "cached": request.is_cached, "failure": request.failure}


def answer_to(browser: Browser, request: dict[str, Any]) -> dict[str, object]:
    """Do what is requested. A browser that has ended is started again when it is next needed."""
    try:
        if "start" in request:
            return {"error": "", "version": browser.start(**request["start"])}
        if "prepare" in request:
            browser.prepare()
            return {"error": ""}
        load, pictures = browser.load(
            request["url"], request["deadline_s"], request.get("phase_ms"),
            with_pictures=request.get("filmed", False))
        return {"error": "", "load": load, "pictures": pictures}
    except BrowserEnded as error:
        browser.stop()
        return {"error": str(error), "ended": True}
    except BrowserError as error:
        return {"error": str(error)}


def main() -> None:
    from firstflight.testbed.servers.launch import mount
    SHARED_MEMORY.mkdir(exist_ok=True)
    mount("tmpfs", str(SHARED_MEMORY), "tmpfs")
    SHARED_MEMORY.chmod(0o1777)
    browser = Browser()
    for request in requests():
        report({"number": request["number"], **answer_to(browser, request)})
    browser.stop()


if __name__ == "__main__":
    main()
