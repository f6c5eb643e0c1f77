"""HAR files as each program writes them: sizes, the cache, versions of HTTP, and the document.

hars/ has files that the programs of Debian, npm and pip wrote of one small site: Chromium 156 (its
DevTools), Firefox 153, Playwright 1.65, chrome-har 1.3 (Browsertime's) and mitmproxy 11. Headers
and cookies that nobody reads were taken out. The others (Safari, Charles, WebPageTest, and old
versions) are entries in the shape that those programs' sources give them.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from firstflight.base.errors import UsageError
from firstflight.workloads.page import exporters, har
from firstflight.workloads.page.exporters import Entry
from tests.golden.page_files import FOLDER

# What the server logged for its files.
DOCUMENT, STYLE, SCRIPT, MOVED, DATA, PICTURE, OTHER_PICTURE, FONT = (
    2954, 1451, 5092, 169, 268, 7000, 3000, 5000)
HTTP_2_HEAD = 160  # bytes of headers and frames that Chrome counts over HTTP/2, at most


def read(name: str) -> har.SavedPage:
    return har.read((FOLDER / f"{name}.har").read_bytes(), name)


@pytest.mark.parametrize(("name", "http", "wanted"), [
    ("firefox", "1.1", {DOCUMENT, STYLE, SCRIPT, MOVED, DATA, PICTURE, OTHER_PICTURE, FONT}),
    ("mitmproxy", "2", {DOCUMENT, STYLE, SCRIPT, MOVED, DATA, PICTURE, OTHER_PICTURE, FONT}),
    ("playwright", "1.1", {PICTURE, OTHER_PICTURE, FONT, MOVED}),
    ("chrome", "2", {PICTURE, OTHER_PICTURE, FONT}),
    ("browsertime", "2", {PICTURE, OTHER_PICTURE, FONT})])
def test_sizes_are_what_the_server_sent(name: str, http: str, wanted: set[int]) -> None:
    page = read(name)
    sizes = [page_object.size_bytes for page_object in page.objects]
    assert wanted <= set(sizes) and page.http == http
    document = page.objects[0].size_bytes
    assert DOCUMENT <= document <= DOCUMENT + HTTP_2_HEAD


def test_an_object_that_chrome_has_in_memory_is_excluded() -> None:
    """Chrome names the cache for scripts only. A cached picture has the size that once came."""
    sizes = [page_object.size_bytes for page_object in read("chrome_warm").objects]
    assert PICTURE not in sizes and len(sizes) == 3


def test_a_page_whose_document_is_from_the_cache_is_refused() -> None:
    with pytest.raises(UsageError, match="document, entry 1, is from the cache"):
        read("firefox_warm")


def test_a_page_that_was_loaded_twice_is_read_once() -> None:
    page = read("playwright_again")
    sizes = [page_object.size_bytes for page_object in page.objects]
    assert sizes.count(PICTURE) == sizes.count(FONT) == 1


# Sizes of one entry --------------------------------------------------------------------

def entry(status: int = 200, headers: dict[str, str] | None = None, content: Any = None,
          method: str = "GET", own: Any = None, **response: Any) -> Entry:
    """An entry as har_file reads it. own: keys of the entry itself. response: of its response."""
    return Entry({"request": {"method": method, "url": "https://a.example/x"}, **(own or {}),
                  "response": {"status": status, "headers": headers or {},
                               "content": content or {}, **response}}, names_connections=True)


def exporter_of(creator: str) -> exporters.Exporter:
    """The exporter of a creator, which is a name, a blank and a version."""
    name, _, version = creator.rpartition(" ")
    return exporters.exporter_of({"creator": {"name": name, "version": version}})[0]


GZIP = {"content-encoding": "gzip"}


@pytest.mark.parametrize(("creator", "values", "size", "field"), [
    ("WebInspector 537.36", {"bodySize": 900, "_transferSize": 1200}, 900, "bodySize"),
    ("WebInspector 537.36", {"bodySize": -1, "_transferSize": 1200, "headersSize": 200,
                             "content": {"size": 5000}}, 1000, "_transferSize"),
    # Chrome before _transferSize: bodySize is negative, and compression exceeds the content's size.
    ("WebInspector 537.1", {"bodySize": -430, "headersSize": 430, "headers": {
        **GZIP, "content-length": "38876"}, "content": {"size": 108_207, "compression": 108_637}},
     38_876, "Content-Length"),
    ("WebInspector 537.36", {"bodySize": -1, "content": {"size": 700}}, 700, "content.size"),
    ("WebInspector 537.36", {"bodySize": -1, "content": {"size": 700}, "headers": GZIP}, -1, ""),
    ("Firefox 43.0.4", {"bodySize": 3485, "headersSize": 592, "headers": GZIP}, 3485, "bodySize"),
    ("Firefox 111.0.1", {"bodySize": 11_686, "headersSize": 1204, "headers": {
        **GZIP, "content-length": "10482"}, "content": {"size": 45_568}}, 10_482, "bodySize"),
    ("Firefox 111.0.1", {"bodySize": 3485, "headersSize": 592, "headers": GZIP}, 2893, "bodySize"),
    ("Firebug 1.12", {"bodySize": 238, "headersSize": 338, "headers": GZIP}, 238, "bodySize"),
    ("WebKit Web Inspector 1.0", {"bodySize": 5150, "_transferSize": 5495, "headersSize": 345,
                                  "content": {"size": 23_866, "compression": 18_716}},
     5150, "bodySize"),
    ("WebPagetest 2.17", {"bodySize": 0, "headersSize": 857, "own": {
        "_bytesIn": "17283", "_objectSize": "0"}}, 16_426, "_bytesIn"),
    ("WebPagetest 2.17", {"bodySize": 71_133, "headersSize": 314, "own": {
        "_bytesIn": "71449", "_objectSize": "71133"}, "content": {"size": 71_133},
        "headers": GZIP}, 71_133, "_objectSize"),
    # SPDY compresses headers, and headersSize is their size before compression.
    ("WebPagetest 2.17", {"bodySize": 0, "headersSize": 709, "own": {"_bytesIn": 5391},
                          "headers": {**GZIP, "content-length": "5248"}}, 5248, "_bytesIn"),
    ("WebPagetest 3.0", {"bodySize": 2270, "content": {"size": 2270}}, 2270, "bodySize"),
    ("WebPagetest 2.17", {"bodySize": 0, "content": {"size": 0}}, -1, ""),
    # Playwright reads the size too early, and subtracts headers that were not counted.
    ("Playwright 1.65.1", {"bodySize": 3560, "headersSize": 268, "_transferSize": 3828, "headers": {
        "content-length": "7000"}, "content": {"size": 7000, "compression": 3440}},
     7000, "Content-Length"),
    ("Browsertime 1.0", {"bodySize": 12_311, "headersSize": 582, "headers": GZIP,
                         "content": {"size": 12_311, "compression": 8279}}, 4032, "content.size"),
    ("chrome-har 0.5.0", {"bodySize": 3198, "headersSize": -1, "content": {"size": 5898},
                          "headers": {**GZIP, "content-length": "2270"}}, 2270, "bodySize"),
    # The Content-Length belongs to another response, a redirect.
    ("chrome-har 1.3.1", {"bodySize": 3000, "headersSize": -1, "_transferSize": 3000,
                          "content": {"size": 3000}, "headers": {"content-length": "169"}},
     3000, "_transferSize"),
    ("chrome-har 1.3.0", {"bodySize": 31_977, "headersSize": -1, "_transferSize": 31_977,
                          "content": {"size": 120_318, "compression": 88_341},
                          "headers": {"content-length": "169"}}, 31_977, "_transferSize"),
    ("Charles Proxy 4.6.3", {"bodySize": 616, "headersSize": 0, "content": {
        "size": 1256, "compression": 640}}, 616, "bodySize"),
    ("mitmproxy 11.0.2", {"bodySize": 2954, "content": {"size": 2954, "compression": 4224},
                          "headers": GZIP}, 2954, "bodySize"),
    ("Internet Explorer Network Inspector 11.0", {"bodySize": 23_640, "headers": {
        "content-length": "6,219"}, "content": {"size": 23_640}}, 6219, "Content-Length"),
    ("Fiddler 4.6.2.2", {"bodySize": 529, "content": {"size": 893, "compression": 364}},
     529, "bodySize"),
    ("PhantomJS 1.9.2", {"bodySize": 2336, "content": {"size": 2336}, "headers": {
        "content-length": "9760"}}, 9760, "Content-Length"),
    ("PhantomJS 1.9.2", {"bodySize": 2336, "content": {"size": 2336}, "headers": GZIP}, -1, ""),
    # A response that was not modified has no body: files have the size in the cache.
    *((creator, {"status": 304, "bodySize": 5509, "headersSize": 386}, 0, "")
      for creator in ("Firefox 111.0.1", "Firebug 1.7", "WebInspector 537.36")),
    ("Firefox 111.0.1", {"status": 204, "bodySize": 110, "headersSize": 110}, 0, ""),
    ("Charles Proxy 4.6.3", {"method": "HEAD", "bodySize": -1, "headers": {
        "content-length": "9000"}}, 0, "")])
def test_a_size_is_read_where_its_program_writes_it(creator: str, values: dict[str, Any],
                                                    size: int, field: str) -> None:
    assert exporters.size_of(entry(**values), exporter_of(creator)) == (size, field)


@pytest.mark.parametrize(("creator", "values", "is_cached"), [
    ("Firefox 111.0.1", {"bodySize": -1, "own": {"time": 0}}, True),
    ("Firefox 111.0.1", {"bodySize": 4002, "headersSize": 0, "httpVersion": "HTTP/2",
                         "own": {"time": 0}}, True),
    ("Firefox 111.0.1", {"bodySize": 4388, "headersSize": 386, "httpVersion": "HTTP/2",
                         "own": {"time": 0}}, False),
    ("Firefox 54.0", {"status": 0, "bodySize": 39_082}, True),
    ("Firefox 54.0", {"status": 0, "bodySize": -1}, False),
    ("Firebug 1.12", {"bodySize": 900, "own": {"cache": {"afterRequest": None}}}, True),
    ("Firebug 1.12", {"status": 304, "own": {"cache": {"afterRequest": None}}}, False),
    ("WebKit Web Inspector 1.0", {"bodySize": -1, "own": {"_fetchType": "Memory Cache"}}, True),
    ("WebKit Web Inspector 1.0", {"bodySize": 9, "own": {"_fetchType": "Network Load"}}, False),
    ("WebInspector 537.36", {"_transferSize": 0}, True),
    ("WebInspector 537.1", {"bodySize": 0, "content": {"size": 900}}, True),
    ("WebInspector 537.36", {"_transferSize": 900, "httpVersion": "http/1.1",
                             "own": {"connection": "443"}}, True),
    ("WebInspector 537.36", {"_transferSize": 900, "httpVersion": "http/1.1",
                             "own": {"connection": "443", "_connectionId": "19"}}, False),
    ("WebInspector 537.36", {"_transferSize": 900, "httpVersion": "h2",
                             "own": {"connection": "2547177"}}, False),
    ("WebInspector 537.36", {"_transferSize": 900, "httpVersion": "h3",
                             "own": {"connection": "443"}}, False),
    ("chrome-har 1.3.1", {"_transferSize": 900, "own": {"cache": {"beforeRequest": None}}}, True),
    ("Playwright 1.65.1", {"_transferSize": 0, "bodySize": -222, "content": {"size": 3501}}, True),
    ("Playwright 1.65.1", {"status": 204, "_transferSize": 0, "content": {"size": -1}}, False),
    ("Charles Proxy 4.6.3", {"bodySize": 0, "content": {"size": 900}}, False)])
def test_a_cached_object_is_recognised_by_what_its_program_writes(
        creator: str, values: dict[str, Any], is_cached: bool) -> None:
    assert exporter_of(creator).is_cached(entry(**values)) == is_cached


@pytest.mark.parametrize(("words", "version"), [
    *((words, "1.1") for words in ("HTTP/1.1", "http/1.1", "HTTP/1.0", "1.1")),
    *((words, "2") for words in ("h2", "HTTP/2", "http/2.0", "2.0", "spdy", "spdy/3.1", "2 2")),
    *((words, "3") for words in ("h3", "HTTP/3", "h3-29", "h3-Q050", "http/2.0+quic/46", "QUIC")),
    *((words, "") for words in ("unknown", "", "us:", "K", "data", "HTTP/22", None, 2))])
def test_every_name_of_an_http_version_is_read(words: Any, version: str) -> None:
    assert exporters.version_of(entry(httpVersion=words), exporters.CHROME)[0] == version


def test_webpagetests_http_version_is_read_from_its_own_field() -> None:
    """Its httpVersion was cut out of a status line, which HTTP/2 does not have."""
    webpagetest = exporter_of("WebPagetest 3.0")
    found = entry(httpVersion="us:", own={"_protocol": "HTTP/2"})
    assert exporters.version_of(found, webpagetest) == ("2", "_protocol")
    assert exporters.version_of(found, exporters.CHROME) == ("", "")


# Pages ---------------------------------------------------------------------------------

def saved(*entries: dict[str, Any], creator: str = "WebPagetest 2.17") -> bytes:
    """A HAR with these entries."""
    name, _, version = creator.rpartition(" ")
    return json.dumps({"log": {"creator": {"name": name, "version": version},
                               "entries": entries}}).encode()


def item(second: int, size: int = 500, status: int = 200, mime: str = "image/gif",
         **own: Any) -> dict[str, Any]:
    """An entry of a HAR that began at this second. own: other keys of the entry."""
    return {"startedDateTime": f"2026-11-01T10:00:{second:02}Z", "time": 10, **own,
            "request": {"method": "GET", "url": f"https://a.example/{second}"},
            "response": {"status": status, "httpVersion": "1.1", "bodySize": size,
                         "content": {"size": size, "mimeType": mime}}}


def test_the_document_is_the_marked_base_page_or_the_first_html_that_came() -> None:
    page = har.read(saved(item(1, 472, mime="application/ocsp-response"),
                          item(2, 600, mime="text/html"),
                          item(3, 900, mime="text/html", _is_base_page=1), item(4)), "x")
    assert [page_object.size_bytes for page_object in page.objects] == [900, 500]
    page = har.read(saved(item(1, 43), item(2, 600, 404, "text/html"),
                          item(3, 700, mime="text/html; charset=utf-8"), item(4)), "x")
    assert [page_object.size_bytes for page_object in page.objects] == [700, 500]


def test_a_har_without_a_document_is_refused() -> None:
    with pytest.raises(UsageError, match="none of its 2 entries is a document"):
        har.read(saved(item(1), item(2, mime="application/json")), "x")


@pytest.mark.parametrize(("unknown", "is_read"), [(1, True), (2, False)])
def test_a_page_with_a_quarter_of_unknown_sizes_is_refused(unknown: int, is_read: bool) -> None:
    entries = [item(1, mime="text/html"), *(item(second) for second in range(2, 7)),
               *(item(20 + second, 0) for second in range(unknown))]
    if is_read:
        assert len(har.read(saved(*entries), "x").objects) == 6
    else:
        with pytest.raises(UsageError, match="^x: 2 of its 8 objects have no known size"):
            har.read(saved(*entries), "x")


def test_an_object_without_a_start_time_is_excluded() -> None:
    undated = {**item(3), "startedDateTime": ""}
    page = har.read(saved(item(1, mime="text/html"), *(item(second) for second in range(4, 9)),
                          undated), "x")
    assert len(page.objects) == 6


def test_the_version_is_that_of_most_objects_or_unknown() -> None:
    def version(*words: str) -> str:
        entries = [item(second, mime="text/html") for second in range(1, len(words) + 1)]
        for entry_of_word, word in zip(entries, words):
            entry_of_word["response"]["httpVersion"] = word
            entry_of_word["request"]["url"] += f"/{word}"
        return har.read(saved(*entries, creator="WebInspector 537.36"), "x").http
    assert version("unknown", "unknown", "HTTP/1.1") == ""
    assert version("unknown", "HTTP/1.1") == "1.1"
    assert version("h2", "h3", "HTTP/1.1") == "2"


def test_only_the_first_page_with_entries_is_read() -> None:
    content = json.loads(saved(item(1, mime="text/html", pageref="b"), item(2, pageref="b"),
                               item(3, mime="text/html", pageref="c")))
    content["log"]["pages"] = [{"id": "a"}, {"id": "b"}, {"id": "c"}]
    assert len(har.read(json.dumps(content).encode(), "x").objects) == 2
