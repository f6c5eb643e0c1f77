"""HAR files as Chrome and Firefox write them, with keys that are read and keys that are not."""

from __future__ import annotations

import copy
import json
from typing import Any

SECRET = "secret-0x1f"  # in every URL, cookie, header and content


def entry(path: str, at_ms: float, took_ms: float, receive_ms: float, size: int, *,
          host: str = "a.example", **more: Any) -> dict[str, Any]:
    """An entry as Chrome writes it.

    at_ms: when it began, counted from the page's start. took_ms: until its end, of which the
    response's body took receive_ms. size: of the response with its headers, in bytes. more: other
    keys of the entry.
    """
    return {
        "startedDateTime": f"2026-01-02T03:04:{5 + at_ms / 1000:06.3f}Z", "time": took_ms,
        "request": {"method": "GET", "url": f"https://{host}/{path}?{SECRET}",
                    "cookies": [{"name": "sid", "value": SECRET}],
                    "headers": [{"name": "Cookie", "value": SECRET}]},
        "response": {"status": 200, "httpVersion": "h2", "headersSize": -1, "bodySize": -1,
                     "_transferSize": size, "headers": [{"name": "Set-Cookie", "value": SECRET}],
                     "content": {"size": 3 * size, "mimeType": "text/css" if path else "text/html",
                                 "text": SECRET}},
        "timings": {"blocked": 1, "wait": took_ms - receive_ms, "receive": receive_ms},
        "pageref": "page_1", "connection": "443", **more}


def initiated(path: str, host: str = "a.example") -> dict[str, Any]:
    """The key of an entry with which Chrome says that this object requested it."""
    return {"_initiator": {"type": "parser", "url": f"https://{host}/{path}?{SECRET}"}}


PAGE = {"log": {
    "version": "1.2", "creator": {"name": "WebInspector"},
    "pages": [{"id": "page_1", "startedDateTime": "2026-01-02T03:04:05.000Z", "title": SECRET,
               "pageTimings": {"onContentLoad": 300, "onLoad": 700}}],
    "entries": [
        entry("", 0, 200, 100, 20_000),
        entry("style.css", 150, 100, 20, 8_000, **initiated("")),
        entry("app.js", 125, 250, 100, 40_000, host="cdn.example", **initiated("")),
        entry("font.woff", 240, 90, 10, 30_000, host="cdn.example", **initiated("style.css")),
        entry("late.png", 500, 90, 40, 15_000, **initiated("app.js", "cdn.example")),
        entry("seen.png", 510, 0, 0, 0, _fromCache="memory"),
        entry("other", 0, 10, 1, 500, pageref="page_2")]}}


def har(change: Any = lambda log: None) -> bytes:
    """The bytes of PAGE. change: alters its log."""
    page = copy.deepcopy(PAGE)
    change(page["log"])
    return json.dumps(page).encode()


def firefox() -> bytes:
    """The page as Firefox 153 writes it, without the object that came from the cache.

    bodySize counts the headers as well, and the header Referer names the object that requested it.
    """
    def change(log: dict[str, Any]) -> None:
        log["creator"]["name"] = "Firefox"
        for item in log["entries"]:
            requested_by = item.pop("_initiator", {}).get("url", "")
            item["request"]["headers"].append({"name": "Referer", "value": requested_by})
            size = item["response"].pop("_transferSize")
            item["response"] |= {"headersSize": 240, "bodySize": size + 240 if size else 0}
            item["startedDateTime"] = item["startedDateTime"].replace("Z", "+00:00")
        del log["entries"][5]  # seen.png
    return har(change)


def browsers() -> bytes:
    """The page with other entries of Chrome 156: never sent, failed, redirected, not modified."""
    def change(log: dict[str, Any]) -> None:
        document = log["entries"][0]
        by_script = {"_initiator": {"type": "script", "stack": {"callFrames": [], "parent": {
            "callFrames": [{"url": f"https://cdn.example/app.js?{SECRET}"}]}}}}
        moved = entry("moved", 320, 20, 1, 90, **initiated(""))
        moved["response"] |= {"status": 301, "redirectURL": f"/here?{SECRET}#top",
                              "content": {"size": 0}}
        checked = entry("checked.png", 330, 15, 0, 37_503, **initiated("style.css"))
        checked["response"] |= {"status": 304, "bodySize": 0}
        refused = entry("cors", 340, 40, -3, 0, host="other.example", **by_script)
        refused["response"] |= {"status": 404, "bodySize": -210, "_error": "net::ERR_FAILED"}
        blocked = entry("port", 340, 40, 1, -1, host="other.example", **by_script)
        blocked["response"] |= {"status": 0, "_error": "net::ERR_UNSAFE_PORT"}
        upgraded = entry("live", 350, 9, 1, 200)
        upgraded["response"]["status"] = 101
        first = entry("", -30, 12, 1, 164)
        first["response"] |= {"status": 302, "redirectURL": document["request"]["url"]}
        first["startedDateTime"] = "2026-01-02T03:04:04.970Z"
        log["entries"] += [
            first, moved, entry("here", 345, -7, 2, 3_670, **initiated("")), checked, refused,
            blocked, upgraded, entry("data.json", 360, 70, 5, 2_000, **by_script)]
        for scheme in ("data:image/gif;base64,R0lG", "blob:https://a.example/1", "wss://a.example"):
            log["entries"].append(entry("", 370, 0, 0, 0))
            log["entries"][-1]["request"]["url"] = f"{scheme}/{SECRET}"
        # The hosts have one certificate and one address, so HTTP/2 takes one connection for all.
        for item in log["entries"]:
            item["_connectionId"] = "1131"
            item["response"]["httpVersion"] = "http/2.0"
    return har(change)
