"""Recorded sites for a browser, read from a folder or a HAR; hostile folders and HARs as well."""

from __future__ import annotations

import base64
import gzip
import json
import os
from pathlib import Path
from typing import Any

import brotli
import pytest

from firstflight.base.errors import UsageError
from firstflight.testbed.hosts.replay.recording import Replay, unpack
from firstflight.workloads.page import site

PAGE = "<!doctype html><title>x</title><p>word</p>"


def folder_of(tmp_path: Path, files: dict[str, str | bytes]) -> Path:
    """Writes these files, by name, into a folder, and returns the folder's path."""
    for name, content in files.items():
        place = tmp_path / "site" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else content.encode())
    return tmp_path / "site"


def entry(url: str, text: str | None = "x", kind: str = "text/plain", at_s: float = 0.0,
          **others: Any) -> dict[str, Any]:
    """An entry of a HAR.

    text: of the response, None for an entry without contents. kind: its media type. others:
    status, headers, http, method, encoding and connection; connect, ssl and wait in ms.
    """
    content: dict[str, Any] = {"size": 1 if text is None else len(text), "mimeType": kind}
    if text is not None:
        content["text"] = text
    if "encoding" in others:
        content["encoding"] = others["encoding"]
    return {
        "startedDateTime": f"2026-01-01T00:00:{at_s:06.3f}Z",
        "_connectionId": others.get("connection", "0"),
        "request": {"method": others.get("method", "GET"), "url": url, "httpVersion": "h2"},
        "response": {"status": others.get("status", 200), "httpVersion": others.get("http", "h2"),
                     "headers": [{"name": name, "value": value} for name, value
                                 in others.get("headers", {}).items()], "content": content},
        "timings": {"connect": others.get("connect", -1), "ssl": others.get("ssl", -1),
                    "wait": others.get("wait", 0)}}


def har_of(tmp_path: Path, *entries: Any) -> Path:
    """Writes a HAR with these entries, and returns its path."""
    place = tmp_path / "page.har"
    place.write_text(json.dumps({"log": {"creator": {"name": "WebInspector"},
                                         "entries": list(entries)}}))
    return place


DOCUMENT = entry("https://example.org/", PAGE, "text/html")


def answers_of(found: site.Site) -> dict[str, Any]:
    """The answers of a site by URL."""
    recorded = found.recording
    return {f"{recorded.origins[answer.origin].name}{answer.target}": answer
            for answer in recorded.answers}


# A folder ------------------------------------------------------------------------------

def test_a_folder_is_served_compressed_with_redirects_and_without_hidden_files(
        tmp_path: Path) -> None:
    found = site.read(folder_of(tmp_path, {
        "index.html": PAGE, "docs/index.html": PAGE, "a b/é.js": "let x;" * 1000,
        "p.png": b"\x89PNG" + bytes(5000), ".git/config": "secret", ".env": "secret"}))
    answers = answers_of(found)
    assert found.recording.url == "https://page.test/"
    assert set(answers) == {f"https://page.test{path}" for path in (
        "/", "/index.html", "/docs/", "/docs/index.html", "/docs", "/a%20b/%C3%A9.js", "/p.png")}
    script = answers["https://page.test/a%20b/%C3%A9.js"]
    assert dict(script.headers) == {
        "content-type": "text/javascript; charset=utf-8", "content-encoding": "gzip",
        "vary": "accept-encoding"}
    assert script.content == b"let x;" * 1000 and len(script.body) < 200
    picture = answers["https://page.test/p.png"]
    assert picture.headers == (("content-type", "image/png"),) and len(picture.body) == 5004
    moved = answers["https://page.test/docs"]
    assert (moved.status, moved.headers) == (301, (("location", "/docs/"),))
    assert "1 hidden folder and 1 hidden file" in found.source


def test_links_and_pipes_lead_to_nothing_outside_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    folder = folder_of(tmp_path, {"index.html": PAGE})
    (folder / "link.txt").symlink_to(tmp_path / "secret")
    (folder / "above").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    found = site.read(folder)
    assert {answer.target for answer in found.recording.answers} == {"/", "/index.html"}
    assert b"secret" not in found.recording.pack()


def test_links_within_a_folder_and_to_files_that_packages_share_are_followed(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In Debian's packages, pages have links to scripts and fonts of other packages."""
    shared = folder_of(tmp_path / "usr", {"jquery.js": "let x;"})
    folder = folder_of(tmp_path, {"index.html": PAGE, "b.css": "p {}"})
    monkeypatch.setattr(site, "SHARED", shared)
    for name, target in (("a.css", "b.css"), ("jquery.js", shared / "jquery.js"),
                         ("gone.js", "none"), ("out.js", shared / "../../secret.js"),
                         ("fonts", shared)):
        (folder / name).symlink_to(target)
    (tmp_path / "secret.js").write_text("secret")
    found = site.read(folder)
    assert {answer.target for answer in found.recording.answers} == {
        "/", "/index.html", "/a.css", "/b.css", "/jquery.js"}
    assert "left out: 3 links" in found.source


def test_only_the_files_of_a_pattern_are_read_of_a_folder(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, {"index.html": PAGE, "css/a.css": "p {}", "css/b/c.css": "p {}",
                                  "d.css": "p {}"})
    found = site.read(folder, files=["index.html", "css/*"])
    assert {answer.target for answer in found.recording.answers} == {
        "/", "/index.html", "/css/a.css", "/css/b/c.css"}


def test_url_path_names_the_page_of_a_folder(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, {"a/b.html": PAGE})
    assert site.read(folder, "/a/b.html?x=1").recording.url == "https://page.test/a/b.html?x=1"
    with pytest.raises(UsageError, match=r"has no /: name the page by url_path"):
        site.read(folder)


@pytest.mark.parametrize(("limit", "value"), [("MOST_FILES", 2), ("MOST_BYTES", 100)])
def test_a_folder_with_too_many_files_or_bytes_is_refused(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int) -> None:
    folder = folder_of(tmp_path, {"index.html": PAGE, "b": "x" * 60, "c": "y"})
    site.read(folder)
    monkeypatch.setattr(site, limit, value)
    with pytest.raises(UsageError, match="has more than .*: name the folder of the site alone"):
        site.read(folder)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no file to serve"):
        site.read(tmp_path)


# A HAR ----------------------------------------------------------------------------------

def test_a_har_is_answered_as_it_was_recorded(tmp_path: Path) -> None:
    found = site.read(har_of(
        tmp_path,
        entry("http://example.org/#top", "", "text/html", status=301, connect=31,
              headers={"Location": "https://example.org/", "Alt-Svc": "h3"}),
        entry("https://example.org/", PAGE * 100, "text/html", 0.1, connection="1",
              headers={"Content-Encoding": "br", "X-One": "1", "Content-Length": "7"}),
        entry("https://cdn.example.net/p.png", base64.b64encode(b"\x89P").decode(), "image/png",
              0.2, encoding="base64", connection="1"),
        entry("https://other.example:8443/x", "", status=204, at_s=0.3, connection="2")))
    recorded, answers = found.recording, answers_of(found)
    assert recorded.url == "http://example.org/"
    assert [origin.name for origin in recorded.origins] == [
        "http://example.org", "https://example.org", "https://cdn.example.net",
        "https://other.example:8443"]
    groups = [origin.group for origin in recorded.origins]
    assert groups[1] == groups[2] and len(set(groups)) == 3, "two hosts share a connection again"
    assert dict(answers["http://example.org/"].headers)["location"] == "https://example.org/"
    assert "alt-svc" not in dict(answers["http://example.org/"].headers)
    document = answers["https://example.org/"]
    assert document.content == (PAGE * 100).encode() and len(document.body) < len(document.content)
    assert dict(document.headers)["content-encoding"] == "br"
    assert dict(document.headers)["x-one"] == "1" and "content-length" not in dict(document.headers)
    assert answers["https://cdn.example.net/p.png"].body == b"\x89P"
    assert answers["https://other.example:8443/x"].status == 204


def test_an_answer_waits_as_the_server_did(tmp_path: Path) -> None:
    """An answer waits for the recorded wait less the RTT of its host.

    The RTT is the time to connect without TLS, or the least wait where none was recorded.
    """
    har = har_of(tmp_path,
                 entry("https://example.org/", PAGE, "text/html", wait=130, connect=50, ssl=20),
                 entry("https://example.org/2", at_s=0.1, wait=20),
                 entry("https://cdn.example.net/3", at_s=0.2, wait=40),
                 entry("https://cdn.example.net/4", at_s=0.3, wait=45))
    assert [answer.wait_ms for answer in site.read(har).recording.answers] == [100, 0, 0, 5]
    found = site.read(har, with_server_time=False)
    assert [answer.wait_ms for answer in found.recording.answers] == [0] * 4
    assert not found.notes


def test_an_answer_with_cut_contents_is_excluded_and_counted(tmp_path: Path) -> None:
    cut = entry("https://a.test/cut", "x" * 100)
    cut["response"]["content"]["size"] = 1_000_000
    found = site.read(har_of(tmp_path, DOCUMENT, cut))
    assert len(found.recording.answers) == 1 and "1 without contents" in found.source


@pytest.mark.parametrize(("entries", "why"), [
    ([entry("https://a.test/", None, "text/html")], "has no contents of what was loaded"),
    ([entry("https://a.test/x.js", "x", "text/javascript")], "none of its 1 entries is a document"),
    ([], "none of its 0 entries is a document"),
    ([DOCUMENT, *(entry(f"https://h{place}.test/") for place in range(200))],
     "a page of 201 hosts; at most 200 fit"),
    ([DOCUMENT] * 10_001, "has more than 10,000 entries")])
def test_a_har_that_no_browser_can_load_is_refused_in_one_line(
        tmp_path: Path, entries: list[Any], why: str) -> None:
    with pytest.raises(UsageError, match=why) as refused:
        site.read(har_of(tmp_path, *entries))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("wrong", [
    entry("file:///etc/passwd"), entry("https://a.test/\r\nx"), entry("https://a.test/ x"),
    entry("https://[::1/"), entry("https://a.test:x/"), entry("https://{}/"), entry("https:///x"),
    entry("data:text/plain,x"), entry("https://a.test/", method="GET X"),
    entry("https://a.test/", status=101), entry("https://a.test/" + "x" * 9000), 7, None, {}, []])
def test_an_entry_that_cannot_be_requested_is_excluded_and_counted(tmp_path: Path,
                                                                   wrong: Any) -> None:
    found = site.read(har_of(tmp_path, DOCUMENT, wrong))
    assert len(found.recording.answers) == 1
    assert "1 that cannot be replayed" in found.source


@pytest.mark.parametrize(("name", "value"), [
    ("x", "a\r\nset-cookie: b"), ("x: y", "z"), ("", "z"), ("x\n", "z"), ("x", "é"),
    ("x", "y" * 9000), ("transfer-encoding", "chunked"), ("content-length", "1"),
    ("connection", "close"), ("alt-svc", "h3"), ("content-encoding", "identity")])
def test_a_malformed_or_misleading_header_is_not_sent(tmp_path: Path, name: str,
                                                      value: str) -> None:
    found = site.read(har_of(tmp_path, entry("https://a.test/", PAGE, "text/html",
                                             headers={name: value})))
    assert found.recording.answers[0].headers == (("content-type", "text/html"),)


def test_a_text_longer_than_the_readers_window_is_read_whole(tmp_path: Path) -> None:
    text = 'a "quoted" \\ word ' * 400_000
    found = site.read(har_of(tmp_path, entry("https://a.test/", PAGE, "text/html"),
                             entry("https://a.test/long", text, at_s=1)))
    assert found.recording.answers[1].content.decode() == text


def test_a_har_of_millions_of_brackets_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "page.har"
    place.write_text('{"log": {"entries": [' + "[[],[]]," * 600_000 + "[]]}}")
    with pytest.raises(UsageError, match="has more than"):
        site.read(place)
    place.write_text('{"log": {"entries": [{"a": [' + "[]," * 1_500_000 + "[]]}]}}")
    with pytest.raises(UsageError, match="has more than 2 MB besides long texts in entry 1"):
        site.read(place)


# The recording ------------------------------------------------------------------------

def test_a_recording_is_read_back_equal_and_a_damaged_one_refused(tmp_path: Path) -> None:
    recorded = site.read(folder_of(tmp_path, {"index.html": PAGE * 99, "p": b"\n\0\xff"})).recording
    assert unpack(recorded.pack()) == recorded
    for damaged in (b"", b"{}", recorded.pack()[:-1], b"[" * 10_000):
        with pytest.raises(ValueError, match="the recording is damaged"):
            unpack(damaged)


def replay_of(tmp_path: Path, *entries: Any) -> Replay:
    """The replay of a recorded HAR with DOCUMENT, which is answer 0, and these entries."""
    return Replay(site.read(har_of(tmp_path, DOCUMENT, *entries)).recording)


def test_a_request_with_other_parameters_finds_the_answer_with_the_most_equal_ones(
        tmp_path: Path) -> None:
    replay = replay_of(tmp_path, *(
        entry(f"https://a.test/api?id={number}&r=0.{number}&t=17", at_s=number)
        for number in (1, 2, 3)), entry("https://a.test/api", at_s=4))
    assert replay.find("https://a.test", "GET", "/api?id=2&r=0.9&t=18") == 2
    assert replay.find("https://a.test", "GET", "/api?id=3") == 3
    assert replay.find("https://a.test", "GET", "/api") == 4
    for origin, method, target in (("https://a.test", "GET", "/other?id=1"),
                                   ("https://a.test", "POST", "/api"),
                                   ("http://a.test", "GET", "/api"),
                                   ("https://b.test", "GET", "/api")):
        assert replay.find(origin, method, target) is None


def test_answers_that_were_recorded_twice_are_replayed_in_turn(tmp_path: Path) -> None:
    replay = replay_of(tmp_path, *(entry("https://a.test/poll", f"{number}", at_s=number)
                                   for number in (1, 2)))
    assert [replay.find("https://a.test", "GET", "/poll") for _ in range(3)] == [1, 2, 2]
    assert replay.find("https://a.test", "HEAD", "/poll") == 2


def test_a_request_with_a_body_finds_the_answer_to_the_nearest_one(tmp_path: Path) -> None:
    """The bodies: JSON with a date, fields of a form, and a long text."""
    def posted(at_s: float, **data: Any) -> dict[str, Any]:
        post = entry("https://a.test/api", method="POST", at_s=at_s)
        post["request"]["postData"] = data
        return post

    long = "y" * 5000
    replay = replay_of(tmp_path, posted(1, text='{"query": "menu", "at": 17}'),
                       posted(2, text='{"query": "user", "at": 18}'),
                       posted(3, params=[{"name": "id", "value": "7"}]), posted(4, text=long))
    found = replay_of(tmp_path, posted(1, text="a")).recording
    assert unpack(found.pack()) == found and found.answers[1].request_text == "a"
    for body, number in ((b'{"query": "user", "at": 99}', 2), (b"id=7", 3), (long.encode(), 4),
                         (b'{"query": "menu", "at": 99}', 1)):
        assert replay.find("https://a.test", "POST", "/api", body) == number


@pytest.mark.parametrize(("coding", "quality", "expected"), [
    ("gzip", 1, "gzip"), ("gzip", 9, "gzip"), ("br", 2, "br"), ("br", 11, "br"), ("zstd", 7, "br"),
    ("deflate", 9, "gzip")])
def test_contents_are_compressed_to_the_size_that_the_har_reports(
        tmp_path: Path, coding: str, quality: int, expected: str) -> None:
    text = Path(site.__file__).read_text()
    if expected == "br":
        reported_bytes = len(brotli.compress(text.encode(), quality=quality))
    else:
        reported_bytes = len(gzip.compress(text.encode(), quality))

    compressed = entry("https://a.test/", text, "text/html",
                       headers={"content-encoding": coding})
    without_size = site.read(har_of(tmp_path, compressed))
    assert not without_size.notes

    response = compressed["response"]
    for key, value in (("bodySize", reported_bytes), ("_transferSize", reported_bytes),
                       ("compression", len(text) - reported_bytes)):
        response["bodySize"] = -1
        (response["content"] if key == "compression" else response)[key] = value
        found = site.read(har_of(tmp_path, compressed))
        answer = found.recording.answers[0]
        assert len(answer.body) == reported_bytes
        assert dict(answer.headers)["content-encoding"] == expected
        assert answer.content.decode() == text and len(found.notes) == 1
        for other_key in ("bodySize", "_transferSize"):
            response.pop(other_key, None)
        response["content"].pop("compression", None)


def test_an_address_as_the_host_of_a_har_is_recorded_as_a_name(tmp_path: Path) -> None:
    """Even this machine's own address reaches nothing but the recording."""
    names = ("127.0.0.1", "localhost", "169.254.169.254", "10.0.0.2")
    found = site.read(har_of(tmp_path, DOCUMENT, *(
        entry(f"http://{name}/x", at_s=1) for name in names)))
    assert {origin.host for origin in found.recording.origins} == {"example.org", *names}


@pytest.mark.parametrize("broken", ["%%%", "\u0000", "A", "é" * 10])
def test_an_answer_with_invalid_base64_is_excluded_and_counted(tmp_path: Path, broken: str) -> None:
    wrong = entry("https://a.test/p", broken, encoding="base64")
    wrong["response"]["content"]["size"] = 1000
    found = site.read(har_of(tmp_path, DOCUMENT, wrong))
    assert len(found.recording.answers) == 1 and "1 without contents" in found.source


def test_a_har_that_is_cut_anywhere_is_refused_in_one_line(tmp_path: Path) -> None:
    place = har_of(tmp_path, DOCUMENT, entry("https://a.test/p", "x" * 50))
    content = place.read_bytes()
    for end in range(0, len(content), 7):
        place.write_bytes(content[:end])
        with pytest.raises(UsageError, match="cut off|is not") as refused:
            site.read(place)
        assert "\n" not in str(refused.value)


def test_a_small_har_that_inflates_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "page.har"
    place.write_bytes(gzip.compress(b" " * (200 << 20)))
    with pytest.raises(UsageError, match="has more than 134 MB|has more than 128 MB"):
        site.read(place)
