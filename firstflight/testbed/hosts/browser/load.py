"""What a browser reports of one load of a page, from the events of its DevTools.

Times are ms since the document was requested. The browser takes them from the kernel's monotonic
clock; of the document's request it says both times, so that packets can be compared with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from firstflight.testbed.hosts.browser.devtools import Event

MOST_REQUESTS = 2000
MOST_STARTED = 500
MOST_DOCUMENTS = 20  # of a page that goes on to another one, as many as browsers follow redirects
MOST_URL, MOST_WORD = 2000, 100
# Names in events of a page's life, and in a trace.
PAINT, LARGEST = "firstContentfulPaint", "largestContentfulPaint::Candidate"


@dataclass
class Request:
    """A request of the page. Times in s of the monotonic clock, None for unknown."""

    number: str  # Chromium's name of it, in its session
    session: str
    url: str
    method: str
    kind: str  # of what is requested, such as "Image"
    priority: str
    started_s: float
    sent_s: float | None = None
    first_byte_s: float | None = None
    end_s: float | None = None
    connected_s: float | None = None  # when its connection was begun, if it was the first on it
    status: int = 0
    protocol: str = ""
    connection: int = 0  # Chromium's number of it, 0 for none
    port: int = 0  # of the server
    content_bytes: int = 0  # of the body, without its compression
    wire_bytes: int = 0  # that came, with headers
    is_cached: bool = False  # nothing was sent
    is_redirect: bool = False
    failure: str = ""  # why it failed, "" if it did not
    sha256: str = ""  # of the content

    def take_response(self, response: Mapping[str, Any]) -> None:
        """Take what an event reports of the response."""
        self.status = int(response.get("status") or 0)
        self.protocol = str(response.get("protocol") or "")[:MOST_WORD]
        self.is_cached = bool(response.get("fromDiskCache") or response.get("fromServiceWorker")
                              or response.get("fromPrefetchCache") or self.is_cached)
        self.connection = int(response.get("connectionId") or 0)
        self.port = int(response.get("remotePort") or 0)

        timing = response.get("timing") or {}
        begun_s = timing.get("requestTime")
        if begun_s:
            def at_s(name: str) -> float | None:
                value = timing.get(name, -1)
                return begun_s + value / 1000 if value >= 0 else None

            self.sent_s, self.connected_s = at_s("sendStart"), at_s("connectStart")
            self.first_byte_s = at_s("receiveHeadersStart") or at_s("receiveHeadersEnd")


@dataclass
class Load:
    """One load of a page; `take` is called with each of the browser's events.

    Times in s of the monotonic clock, None before they come.
    """

    # The session of the page's target; its frames of other sites and its workers have their own.
    session: str
    requests: list[Request] = field(default_factory=list)
    # Requests that have not ended, by their session and number.
    running: dict[tuple[str, str], Request] = field(default_factory=dict)
    started: set[str] = field(default_factory=set)  # sessions of what the page started
    current: str = ""  # the session of the event that is taken
    begun_s: float | None = None  # when its document was requested
    content_loaded_s: float | None = None
    loaded_s: float | None = None
    paint_s: float | None = None  # the first contentful paint
    largest_s: float | None = None  # the largest contentful paint
    is_traced: bool = False  # whether all that was traced has come
    dialogs: int = 0
    documents: int = 0  # that its main frame has requested
    fault: str = ""  # why the load does not count, "" if it does
    frame: str = ""  # the name of its main frame

    def take(self, event: Event) -> None:
        """Take an event of the browser's."""
        method = str(event["method"])
        self.current = event.get("sessionId", "")
        if method.startswith("Tracing."):
            self._take_trace(event)
            return

        is_own = self.current == self.session
        if not is_own and self.current not in self.started:
            if method == "Target.targetCrashed":
                self.fault = "the page's process crashed"
            return
        if not is_own and not method.startswith("Network."):
            return

        if len(self.requests) > MOST_REQUESTS:
            self.fault = f"the page made more than {MOST_REQUESTS:,} requests"
        taking = getattr(self, f"_{method.replace('.', '_')}", None)
        if taking is not None and not self.fault:
            taking(event["params"])

    def watch(self, event: Event) -> bool:
        """Take what the page has started as a part of it; whether it is one."""
        if event.get("sessionId") not in (self.session, *self.started):
            return False
        if len(self.started) >= MOST_STARTED:
            self.fault = f"the page started more than {MOST_STARTED} frames and workers"
        self.started.add(event["params"]["sessionId"])
        return True

    def since_ms(self, at_s: float | None) -> float | None:
        """A time of the monotonic clock in ms since the document was requested."""
        if at_s is None or self.begun_s is None:
            return None
        return round((at_s - self.begun_s) * 1000, 6)

    @property
    def is_over(self) -> bool:
        return self.loaded_s is not None or bool(self.fault)

    def _take_trace(self, event: Event) -> None:
        """Take what was traced: candidates for the largest paint, of which the last one counts."""
        for traced in event["params"].get("value", ()):
            if traced.get("name") == LARGEST and traced.get("args", {}).get("frame") == self.frame:
                self.largest_s = max(self.largest_s or 0.0, traced["ts"] / 1e6)
        self.is_traced |= event["method"] == "Tracing.tracingComplete"

    def _key(self, parameters: Mapping[str, Any]) -> tuple[str, str]:
        """The session and the number of an event's request."""
        return self.current, parameters["requestId"]

    # Each is called with the parameters of the event of its name.

    def _Network_requestWillBeSent(self, parameters: Mapping[str, Any]) -> None:
        key, at_s = self._key(parameters), parameters["timestamp"]
        is_document = parameters.get("type") == "Document"
        is_redirect = "redirectResponse" in parameters
        before = self.running.pop(key, None)
        if before is not None and is_redirect:
            before.take_response(parameters["redirectResponse"])
            before.end_s, before.is_redirect = at_s, True

        if self.begun_s is None:
            if not is_document or parameters["documentURL"].startswith("about:"):
                return
            self.begun_s = at_s
            self.frame = parameters.get("frameId", "")
        if is_document and parameters.get("frameId") == self.frame and not is_redirect:
            self.documents += 1
            if self.documents > MOST_DOCUMENTS:
                self.fault = ("the page loads itself or others again and again, more than"
                              f" {MOST_DOCUMENTS} times")

        sent = parameters["request"]
        if not sent["url"].startswith(("http://", "https://")):
            return
        request = Request(
            parameters["requestId"], self.current, sent["url"][:MOST_URL],
            method=sent["method"][:MOST_WORD], kind=str(parameters.get("type", "")),
            priority=sent.get("initialPriority", ""), started_s=at_s)
        self.requests.append(request)
        self.running[key] = request

    def _Network_requestServedFromCache(self, parameters: Mapping[str, Any]) -> None:
        if request := self.running.get(self._key(parameters)):
            request.is_cached = True

    def _Network_resourceChangedPriority(self, parameters: Mapping[str, Any]) -> None:
        if request := self.running.get(self._key(parameters)):
            request.priority = parameters.get("newPriority", request.priority)

    def _Network_responseReceived(self, parameters: Mapping[str, Any]) -> None:
        if request := self.running.get(self._key(parameters)):
            request.kind = str(parameters.get("type", request.kind))
            request.take_response(parameters["response"])

    def _Network_dataReceived(self, parameters: Mapping[str, Any]) -> None:
        if request := self.running.get(self._key(parameters)):
            request.content_bytes += parameters["dataLength"]

    def _Network_loadingFinished(self, parameters: Mapping[str, Any]) -> None:
        if request := self.running.pop(self._key(parameters), None):
            request.end_s = parameters["timestamp"]
            request.wire_bytes = round(parameters.get("encodedDataLength") or 0)

    def _Network_loadingFailed(self, parameters: Mapping[str, Any]) -> None:
        if request := self.running.pop(self._key(parameters), None):
            request.end_s = parameters["timestamp"]
            why = parameters.get("blockedReason") or parameters.get("errorText") or "it failed"
            request.failure = str(why)[:MOST_WORD]

    def _Page_domContentEventFired(self, parameters: Mapping[str, Any]) -> None:
        if self.begun_s is not None and self.content_loaded_s is None:
            self.content_loaded_s = parameters["timestamp"]

    def _Page_loadEventFired(self, parameters: Mapping[str, Any]) -> None:
        if self.begun_s is not None and self.loaded_s is None:
            self.loaded_s = parameters["timestamp"]

    def _Page_lifecycleEvent(self, parameters: Mapping[str, Any]) -> None:
        if (parameters["name"] == PAINT and self.paint_s is None and self.begun_s is not None
                and parameters["frameId"] == self.frame):
            self.paint_s = parameters["timestamp"]

    def _Inspector_targetCrashed(self, parameters: Mapping[str, Any]) -> None:
        self.fault = "the page's process crashed"
