"""Writes the objects of browser2026's pages, which libcurl fetches, as --page reads them in a HAR.

    /usr/bin/python3 -m benchmarks.outside.browser_objects RUN

RUN is a run of browser2026. A HAR that a user saves has the times of the user's network and, for
each request, the URL of what named it. Here the times are those of the run over 4G, HTTP/2 and ten
segments. What named each request is known from one more load in Chromium. This load needs no
network: DevTools answer each request from the recording. The program prints the tables
[[page.object]]. It needs root, since the browser runs as a user without rights.
"""

from __future__ import annotations

import base64
import csv
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple
from datetime import datetime, timedelta, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from benchmarks import command
from firstflight.base.errors import FirstFlightError
from firstflight.base.parser import Parser
from firstflight.runs import scenario_file, schema
from firstflight.scenario import writing
from firstflight.testbed import site_store
from firstflight.testbed.hosts.browser import client
from firstflight.testbed.hosts.browser.devtools import DevTools, Event
from firstflight.testbed.hosts.replay.recording import Recording, Replay
from firstflight.workloads.page import har
from firstflight.workloads.page.scenario import TABLES, ListedObject

BEGUN = datetime(2026, 1, 1, tzinfo=timezone.utc)
# A load event is waited for at most MOST_S; after it, requests are noted for QUIET_S.
MOST_S, QUIET_S = 60.0, 5.0


def initiators(recording: Recording, folder: Path) -> dict[str, Mapping[str, Any]]:
    """What named each request of a page, as Chromium reports it, by the request's URL."""
    found: dict[str, Mapping[str, Any]] = {}
    replay = Replay(recording)
    folder.chmod(0o777)
    tools = DevTools([str(client.PROGRAM), *client.QUIET, "--remote-debugging-pipe", "--no-sandbox",
                      f"--user-data-dir={folder}/profile"], client.NOBODY,
                     {"PATH": "/usr/bin:/bin", "HOME": str(folder), "TMPDIR": str(folder)},
                     folder / "log")
    is_over = False

    def heed(event: Event) -> None:
        nonlocal is_over
        values = event["params"]
        if event["method"] == "Network.requestWillBeSent":
            found.setdefault(values["request"]["url"], values.get("initiator", {}))
        elif event["method"] == "Fetch.requestPaused":
            answer(values["request"], values["requestId"])
        elif event["method"] == "Page.loadEventFired":
            is_over = True

    def answer(request: Mapping[str, Any], request_id: str) -> None:
        parts = urlsplit(request["url"])
        target = f"{parts.path}{f'?{parts.query}' if parts.query else ''}"
        place = replay.find(f"{parts.scheme}://{parts.netloc}", request["method"], target)
        if place is None:
            tools.send("Fetch.fulfillRequest", session, requestId=request_id, responseCode=404)
            return
        chosen = recording.answers[place]
        tools.send("Fetch.fulfillRequest", session, requestId=request_id,
                   responseCode=chosen.status, responseHeaders=[
                       {"name": name, "value": value} for name, value in chosen.headers
                       if name != "content-encoding"],
                   body=base64.b64encode(chosen.content).decode("ascii"))

    try:
        target = tools.call("Target.createTarget", url="about:blank")["targetId"]
        session = tools.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for method in ("Page.enable", "Network.enable", "Fetch.enable"):
            tools.call(method, session)
        tools.heed = heed
        tools.send("Page.navigate", session, url=recording.url)
        end = time.monotonic() + MOST_S
        while not is_over and time.monotonic() < end:
            tools.receive(0.1)
        end = time.monotonic() + QUIET_S
        while time.monotonic() < end:
            tools.receive(0.1)
    finally:
        tools.close()
    return found


def har_of(rows: Sequence[Mapping[str, str]], named: Mapping[str, Mapping[str, Any]]) -> bytes:
    """The HAR of one load, without contents, as Chromium's DevTools save it.

    rows are the load's requests.csv, and `named` is what `initiators` returns.
    """
    entries = []
    for row in rows:
        if not row["end_ms"]:
            continue
        start_ms, sent_ms, first_ms, end_ms = (
            float(row[name] or row["end_ms"])
            for name in ("start_ms", "sent_ms", "first_byte_ms", "end_ms"))
        kind = "text/html" if row["kind"] == "Document" else "application/octet-stream"
        entries.append({
            "startedDateTime": (BEGUN + timedelta(milliseconds=start_ms)).isoformat(),
            "time": end_ms - start_ms, "_initiator": named.get(row["url"], {}),
            "_resourceType": row["kind"].lower(), "connection": row["connection"],
            "request": {"method": row["method"], "url": row["url"], "httpVersion": "h2",
                        "headers": []},
            "response": {"status": int(row["status"]), "httpVersion": "h2", "headers": [],
                         "content": {"size": int(row["content_bytes"]), "mimeType": kind},
                         "_transferSize": int(row["body_bytes"]) + 100, "headersSize": -1,
                         "bodySize": int(row["body_bytes"])},
            "timings": {"blocked": sent_ms - start_ms, "send": 0, "wait": first_ms - sent_ms,
                        "receive": end_ms - first_ms}})
    log = {"version": "1.2", "creator": {"name": "WebInspector", "version": "537.36"},
           "entries": entries}
    return json.dumps({"log": log}).encode()


def tables(run: Path) -> Iterator[str]:
    """The lines of the tables of all pages. Raises FirstFlightError where the run lacks a page."""
    scenario = TABLES.read(scenario_file.find("browser2026"))
    sources = {name: source for sweep in scenario.sweeps
               for name, source in zip(sweep.page_names, sweep.sites)}
    for name, source in sources.items():
        recording = site_store.get(source.recorded()[0])
        files = sorted(run.glob(f"files/*mobile*-{name}-chromium-*http2-*-iw10-1-requests.csv"))
        if not files:
            raise FirstFlightError(f"{run} has no load of {name} over HTTP/2 with 10 segments")
        with files[0].open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        with TemporaryDirectory() as folder:
            named = initiators(recording, Path(folder))
        page = har.read(har_of(rows, named), name)
        yield f"# {name}: {len(page.objects)} objects"
        for page_object in page.objects:
            size_bytes, named_by, at_byte, *others = astuple(page_object)
            item = ListedObject(size_bytes, named_by or None, at_byte if named_by else None,
                                *others)
            yield from writing.table("[[page.object]]", schema.values_of(item))


def main(words: Sequence[str]) -> int:
    parser = Parser(prog="browser_objects", description="What libcurl fetches of browser2026.")
    parser.add_argument("run", type=Path, metavar="RUN", help="a run of browser2026")
    sys.stdout.writelines(f"{line}\n" for line in tables(parser.parse_args(words).run))
    return 0


if __name__ == "__main__":
    command.run("browser_objects", main)
