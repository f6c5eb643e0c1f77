"""The browser's part before libcurl: which transfers the library is given, and when."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from firstflight.testbed.hosts.page_client import Browser

OBJECTS = [[900, 0, 0, 0, 0, 0], [5, 1, 1, 0, 0, 1], [6, 1, 1, 0, 0, 1], [7, 1, 1, 0, 0, 2],
           [8, 1, 1, 0, 0, 2]]


class Handle:
    """A transfer that says when its connection is there."""

    def __init__(self) -> None:
        self.is_open = False
        self.paused: list[int] = []

    def setopt(self, *_: Any) -> None:
        pass

    def getinfo(self, _: Any) -> float:
        return 0.2 if self.is_open else 0.0

    def pause(self, bits: int) -> None:
        self.paused.append(bits)

    def close(self) -> None:
        self.is_open = False


@pytest.fixture()
def given(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the objects that the library was given."""
    numbers: list[int] = []
    multi = SimpleNamespace(setopt=lambda *_: None,
                            add_handle=lambda handle: numbers.append(handle.download.number),
                            remove_handle=lambda _: None, perform=lambda: (0, 3))
    names = ("M_PIPELINING", "PIPE_MULTIPLEX", "PIPE_NOTHING", "M_MAX_HOST_CONNECTIONS",
             "M_MAXCONNECTS", "URL", "HTTP_VERSION", "PIPEWAIT", "PROXY", "MAXAGE_CONN",
             "USERAGENT", "HEADERFUNCTION", "WRITEFUNCTION", "RESOLVE", "PRETRANSFER_TIME",
             "CURL_HTTP_VERSION_1_1", "CURL_HTTP_VERSION_2_0",
             "CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE", "E_CALL_MULTI_PERFORM", "RESPONSE_CODE",
             "LOCAL_PORT", "NUM_CONNECTS", "HEADER_SIZE")
    monkeypatch.setitem(sys.modules, "pycurl", SimpleNamespace(
        CurlMulti=lambda: multi, Curl=Handle, version_info=lambda: (0, "7.88.1"), PAUSE_RECV=4,
        PAUSE_CONT=0, **dict.fromkeys(names, 1)))
    return numbers


def started(http: str) -> Browser:
    """A browser that has requested all objects."""
    browser = Browser({"address": "10.0.0.2", "port": 80, "http": http, "connections": 6,
                       "deadline_s": 60, "objects": OBJECTS})
    for download in browser.downloads:
        browser._start(download, 5)
    return browser


def test_over_http2_others_wait_until_their_host_has_its_connection(given: list[int]) -> None:
    browser = started("2")
    assert given == [1, 2, 4] and not browser._release()
    browser.downloads[3].handle.is_open = True
    assert browser._release() and given == [1, 2, 4, 5]
    browser.downloads[1].handle = None  # it has ended: the next one opens another connection
    assert browser._release() and given == [1, 2, 4, 5, 3]
    browser._start(browser.downloads[2], 9)
    assert given[-1] == 3 and not browser._release()
    assert [download.start_ns for download in browser.downloads] == [5, 5, 9, 5, 5]


def test_over_http_1_nothing_waits(given: list[int]) -> None:
    browser = started("1.1")
    assert given == [1, 2, 3, 4, 5] and not browser._release()


@pytest.mark.parametrize(("http", "version", "reads"), [
    ("2", "7.88.1", True), ("2", "8.14.1", True), ("2", "8.23.0", False), ("1.1", "7.88.1", False)])
def test_over_http2_the_end_of_a_transfer_lets_another_one_of_its_host_read(
        given: list[int], monkeypatch: pytest.MonkeyPatch, http: str, version: str,
        reads: bool) -> None:
    """libcurl 7.88 may keep what it has read behind the data of the transfer that ended."""
    monkeypatch.setattr(sys.modules["pycurl"], "version_info", lambda: (0, version))
    browser = started(http)
    handles = [download.handle for download in browser.downloads]
    for handle in handles:
        handle.is_open = True
    browser._release()
    rounds: list[int] = []
    browser.multi.perform = lambda: (rounds.append(1) or 0, 3)
    ended = [handles[3]]
    browser.multi.info_read = lambda: (0, [ended.pop()] if ended else [], [])
    assert browser._take_ended()
    assert [handle.paused for handle in handles] == [[], [], [], [], [4, 0] if reads else []]
    browser._perform()
    assert len(rounds) == (2 if reads else 1)
    assert not browser._take_ended() and handles[4].paused == ([4, 0] if reads else [])
