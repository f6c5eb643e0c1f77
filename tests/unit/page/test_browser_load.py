"""A load as the browser's client builds it of Chromium's events."""

from __future__ import annotations

from typing import Any

import pytest

from firstflight.testbed.hosts.browser import frames
from firstflight.testbed.hosts.browser import load as loads
from firstflight.testbed.hosts.browser.client import summary
from firstflight.testbed.hosts.browser.load import Load

SESSION, FRAME = "S", "F"


def event(method: str, session: str = SESSION, **parameters: Any) -> dict[str, Any]:
    """An event of Chromium's DevTools protocol."""
    return {"method": method, "sessionId": session, "params": parameters}


def request_sent(number: str, at_s: float, url: str, kind: str = "Document", **more: Any
                 ) -> dict[str, Any]:
    """The event of a request. number: its id. at_s: on Chromium's monotonic clock."""
    return event("Network.requestWillBeSent", requestId=number, timestamp=at_s, type=kind,
                 documentURL="https://a.test/", frameId=FRAME, wallTime=1000 + at_s,
                 request={"url": url, "method": "GET", "initialPriority": "High"}, **more)


def answer(status: int = 200, at_s: float = 1.0) -> dict[str, Any]:
    """A response to a request of at_s, whose times follow in ms."""
    return {"status": status, "protocol": "h2", "connectionId": 7, "remotePort": 800,
            "timing": {"requestTime": at_s, "sendStart": 50, "connectStart": 1,
                       "receiveHeadersStart": 100, "receiveHeadersEnd": 101}}


def loaded(*events: dict[str, Any]) -> Load:
    load = Load(SESSION)
    for one_event in events:
        load.take(one_event)
    return load


def test_times_count_from_the_request_of_the_document() -> None:
    load = loaded(
        event("Page.loadEventFired", timestamp=0.5),  # about:blank has loaded
        request_sent("1", 1.0, "https://a.test/"),
        event("Network.responseReceived", requestId="1", type="Document", response=answer()),
        event("Network.dataReceived", requestId="1", dataLength=300),
        event("Network.loadingFinished", requestId="1", timestamp=1.2, encodedDataLength=120.0),
        event("Page.lifecycleEvent", name="firstContentfulPaint", frameId=FRAME, timestamp=1.3),
        event("Page.lifecycleEvent", name="firstContentfulPaint", frameId="other", timestamp=1.1),
        {"method": "Tracing.dataCollected", "params": {"value": [
            {"name": loads.LARGEST, "ts": 1_400_000, "args": {"frame": FRAME}},
            {"name": loads.LARGEST, "ts": 1_350_000, "args": {"frame": FRAME}},
            {"name": loads.LARGEST, "ts": 1_450_000, "args": {"frame": "other"}},
            {"name": "InputLatency", "ts": 1_460_000}]}},
        event("Page.domContentEventFired", timestamp=1.25),
        event("Page.loadEventFired", timestamp=1.5))
    assert load.is_over and not load.is_traced
    load.take({"method": "Tracing.tracingComplete", "params": {}})
    assert load.is_traced
    found: dict[str, Any] = summary(load, shift_ns=10**9)
    assert (found["begun_ns"], found["content_loaded_ms"], found["load_ms"], found["paint_ms"],
            found["largest_paint_ms"]) == (2 * 10**9, 250, 500, 300, 400)
    assert found["phase_ms"] == pytest.approx(10**9 % frames.FRAME_NS / 1e6)
    (request,) = found["requests"]
    assert [request[name] for name in ("start_ms", "sent_ms", "first_byte_ms", "end_ms", "status",
                                       "content_bytes", "wire_bytes", "connection")] == [
        0, 50, 100, 200, 200, 300, 120, 7]


def test_a_redirect_is_a_request_of_its_own() -> None:
    load = loaded(request_sent("1", 1.0, "http://a.test/"),
                  request_sent("1", 1.1, "https://a.test/", redirectResponse=answer(301)),
                  event("Network.responseReceived", requestId="1", response=answer(200, 1.1)),
                  event("Network.loadingFinished", requestId="1", timestamp=1.4))
    first, second = load.requests
    assert (first.status, first.is_redirect, load.since_ms(first.end_s)) == (301, True, 100)
    assert (second.status, second.is_redirect, load.since_ms(second.end_s)) == (200, False, 400)


def test_a_request_says_whether_it_was_cached_or_why_it_failed() -> None:
    load = loaded(request_sent("1", 1.0, "https://a.test/"),
                  request_sent("2", 1.1, "https://a.test/x", "Image"),
                  event("Network.requestServedFromCache", requestId="2"),
                  request_sent("3", 1.1, "https://b.test/", "Script"),
                  event("Network.loadingFailed", requestId="3", timestamp=1.2,
                        errorText="net::ERR_NAME_NOT_RESOLVED"),
                  request_sent("4", 1.1, "data:text/plain,x", "Image"))
    assert [(request.is_cached, request.failure) for request in load.requests] == [
        (False, ""), (True, ""), (False, "net::ERR_NAME_NOT_RESOLVED")]


@pytest.mark.parametrize("crash", [event("Inspector.targetCrashed"),
                                   {"method": "Target.targetCrashed", "params": {}}])
def test_a_page_that_crashes_is_over_with_a_fault(crash: dict[str, Any]) -> None:
    load = loaded(request_sent("1", 1.0, "https://a.test/"), crash)
    assert load.is_over and load.fault == "the page's process crashed"


def test_a_page_with_too_many_requests_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loads, "MOST_REQUESTS", 3)
    load = loaded(*(request_sent(f"{number}", 1.0, "https://a.test/")
                    for number in range(6)))
    assert load.fault == "the page made more than 3 requests" and len(load.requests) == 4


def test_events_of_other_pages_do_not_count() -> None:
    load = loaded(request_sent("1", 1.0, "https://a.test/"),
                  event("Page.loadEventFired", "other", timestamp=1.5))
    assert not load.is_over


def test_requests_of_a_pages_worker_count_and_its_load_event_does_not() -> None:
    """The same holds for a frame of another site."""
    load = loaded(request_sent("1", 1.0, "https://a.test/"))
    attached = event("Target.attachedToTarget", sessionId="W")
    assert load.watch({**attached, "params": {"sessionId": "W"}})
    assert not load.watch({**attached, "sessionId": "other", "params": {"sessionId": "V"}})
    for session in ("W", "V"):
        fetch = request_sent("1", 1.1, f"https://a.test/{session}", "Fetch")
        load.take({**fetch, "sessionId": session})
        load.take(event("Page.loadEventFired", session, timestamp=1.2))
    assert [request.url for request in load.requests] == ["https://a.test/", "https://a.test/W"]
    assert not load.is_over
    load.take(event("Network.loadingFinished", "W", requestId="1", timestamp=1.3))
    assert load.requests[0].end_s is None and load.requests[1].end_s == 1.3


def test_a_page_that_starts_too_many_frames_and_workers_is_stopped(
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loads, "MOST_STARTED", 2)
    load = loaded(request_sent("1", 1.0, "https://a.test/"))
    for number in range(3):
        load.watch({"sessionId": SESSION, "params": {"sessionId": f"{number}"}})
    assert load.fault == "the page started more than 2 frames and workers"


def test_a_page_that_loads_documents_for_ever_is_stopped() -> None:
    """Documents of its frames and redirects are not counted."""
    load = loaded(*(request_sent(str(number), number, "https://a.test/")
                    for number in range(loads.MOST_DOCUMENTS)))
    of_frame = request_sent("f", 90.0, "https://b.test/")
    of_frame["params"]["frameId"] = "other"
    load.take(of_frame)
    load.take(request_sent("1", 91.0, "https://a.test/x", redirectResponse=answer(301)))
    assert not load.fault
    load.take(request_sent("last", 92.0, "https://a.test/"))
    assert "loads itself or others again and again, more than 20 times" in load.fault


def test_eight_loads_begin_one_in_each_eighth_of_a_frame() -> None:
    for first in (1, 9):
        phases = [frames.drawn_phase_ms(1, repeat) for repeat in range(first, first + 8)]
        parts = sorted(int(phase * frames.PHASES / frames.FRAME_MS) for phase in phases)
        assert parts == [*range(frames.PHASES)]
        assert phases != [frames.drawn_phase_ms(2, repeat) for repeat in range(first, first + 8)]


@pytest.mark.parametrize("now_ns", [0, 4_596_523_111, 70_132_504_000])
@pytest.mark.parametrize("phase_ms", [0.0, 3.3, 8.0, 16.6])
def test_a_load_begins_at_its_phase_on_a_slot_of_the_timer_wheel(now_ns: int, phase_ms: float
                                                                 ) -> None:
    start_ns = frames.next_start_ns(now_ns, phase_ms)
    assert start_ns % 8_000_000 == 0 and 0 <= start_ns - now_ns <= 200_000_000
    away_ms = abs(frames.phase_of(start_ns / 1e9) - phase_ms)
    assert min(away_ms, frames.FRAME_MS - away_ms) <= 0.35
