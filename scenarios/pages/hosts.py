#!/usr/bin/env python3
"""Writes hosts.har: a page of six hosts that nobody publishes, with contents, to keep here.

    scenarios/pages/hosts.py > scenarios/pages/hosts.har

A document names a style sheet, a script and pictures of two hosts of the same site, which share a
connection as on a CDN, and the script of another company. That script requests a list from a third
host, and the pictures of the list from a fourth one. Contents are drawn from a fixed seed, so that
nobody has rights in them.
"""

from __future__ import annotations

import base64
import json
import random
import struct
import sys
import zlib
from collections.abc import Iterator
from typing import Any

SITE, STATIC = "https://www.site.test", "https://static.site.test"
PICTURES, WIDGETS = "https://img.site.test", "https://widgets.test"
LIST, THUMBS = "https://api.widgets.test", "https://img.widgets.test"
CONNECTIONS = {SITE: "1", STATIC: "2", PICTURES: "2", WIDGETS: "3", LIST: "4", THUMBS: "5"}
DRAWN = random.Random(2026)


def picture(side: int) -> bytes:
    """A PNG of side × side grey pixels that nothing compresses."""
    rows = b"".join(b"\0" + DRAWN.randbytes(side) for _ in range(side))

    def chunk(kind: bytes, content: bytes) -> bytes:
        return (struct.pack(">I", len(content)) + kind + content
                + struct.pack(">I", zlib.crc32(kind + content)))

    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 1))
            + chunk(b"IEND", b""))


def padding(size: int) -> str:
    """Text of about a size, of which gzip saves a quarter."""
    return base64.b64encode(DRAWN.randbytes(size * 3 // 4)).decode("ascii")


def page() -> str:
    pictures = "".join(f'<p><img src="{PICTURES}/{number}.png" width=300 height=200 alt="">'
                       f" {padding(1800)}</p>\n" for number in range(8))
    return (f'<!doctype html><meta charset=utf-8><title>Six hosts</title>\n'
            f'<link rel=stylesheet href="{STATIC}/site.css">\n'
            f'<script src="{STATIC}/site.js"></script>\n'
            f'<script async src="{WIDGETS}/widget.js"></script>\n'
            f"<h1>A page of six hosts</h1>\n{pictures}<div id=widget></div>\n")


def entries() -> Iterator[dict[str, Any]]:
    """All entries of the HAR, in the order of their requests."""
    widget = (f'fetch("{LIST}/list.json").then(answer => answer.json()).then(list => {{\n'
              '    for (const name of list.names) {\n'
              '        const shown = new Image();\n'
              f'        shown.src = "{THUMBS}/" + name;\n'
              '        document.getElementById("widget").append(shown);\n    }\n'
              f'}});\n// {padding(16_000)}\n')
    names = [f"{number}.png" for number in range(4)]
    yield entry(f"{SITE}/", "text/html", page())
    yield entry(f"{STATIC}/site.css", "text/css",
                f"body {{ margin: 2em; overflow-wrap: anywhere; }}\n/* {padding(14_000)} */\n")
    yield entry(f"{STATIC}/site.js", "text/javascript",
                f'document.documentElement.className = "script";\n// {padding(32_000)}\n')
    yield entry(f"{WIDGETS}/widget.js", "text/javascript", widget)
    for number in range(8):
        yield entry(f"{PICTURES}/{number}.png", "image/png", picture(90))
    yield entry(f"{LIST}/list.json", "application/json",
                json.dumps({"names": names, "more": padding(3000)}))
    for name in names:
        yield entry(f"{THUMBS}/{name}", "image/png", picture(64))


def entry(url: str, kind: str, body: str | bytes) -> dict[str, Any]:
    """An entry of the HAR, in so far as it is read."""
    host = "/".join(url.split("/")[:3])
    headers = [{"name": "content-type", "value": kind},
               {"name": "access-control-allow-origin", "value": "*"}]
    if isinstance(body, str):
        headers.append({"name": "content-encoding", "value": "gzip"})
        content = {"mimeType": kind, "size": len(body), "text": body}
    else:
        content = {"mimeType": kind, "size": len(body), "encoding": "base64",
                   "text": base64.b64encode(body).decode("ascii")}
    return {"startedDateTime": "2026-01-01T00:00:00.000Z", "time": 0,
            "request": {"method": "GET", "url": url, "httpVersion": "h2", "headers": []},
            "response": {"status": 200, "httpVersion": "h2", "headers": headers,
                         "content": content},
            "timings": {"wait": 0}, "connection": CONNECTIONS[host]}


if __name__ == "__main__":
    log = {"version": "1.2", "creator": {"name": "First Flight", "version": "1"},
           "entries": list(entries())}
    json.dump({"log": log}, sys.stdout, indent=1)
    print()
