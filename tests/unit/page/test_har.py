"""HAR files: what is kept of them, and what is refused."""

from __future__ import annotations

import gc
import gzip
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies

from firstflight.base.errors import UsageError
from firstflight.runs import scenario_file
from firstflight.runs.kinds import Overrides
from firstflight.study import registry
from firstflight.study.questions import page as question
from firstflight.workloads.page import har, har_file, page_files
from firstflight.workloads.page.objects import PageObject
from tests.unit.page import saved

OBJECTS = (
    PageObject(20_000, is_early=True),
    # The document came in 100 ms. After 25 ms, a quarter of its bytes, one object was requested,
    # after 50 ms the next.
    PageObject(40_000, named_by=1, at_byte=5_000, host=1),
    PageObject(8_000, named_by=1, at_byte=10_000, is_early=True),
    PageObject(30_000, named_by=3, at_byte=4_000, host=1),
    PageObject(15_000, named_by=2, at_byte=40_000))


def test_a_har_of_chrome_yields_its_objects_and_http_version() -> None:
    page = har.read(saved.har(), "here")
    assert page.objects == OBJECTS and page.http == "2"
    assert page.note.startswith("2 of 5 objects came from other hosts") and page.is_secure
    plain = har.read(saved.har().replace(b"https:", b"http:"), "here")
    assert plain.objects == OBJECTS and not plain.is_secure


def test_a_har_of_firefox_yields_the_same_objects() -> None:
    assert har.read(saved.firefox(), "here").objects == OBJECTS


def test_redirects_and_unmodified_objects_count_and_failed_requests_do_not() -> None:
    page = har.read(saved.browsers(), "here")
    assert page.objects == (
        *OBJECTS[:4],
        # A redirect, requested when the whole document was there. A header counts as one byte.
        PageObject(1, named_by=1, at_byte=20_000),
        # Not modified.
        PageObject(1, named_by=3, at_byte=8_000),
        # What the redirect leads to.
        PageObject(3_670, named_by=5, at_byte=1),
        # Requested by a promise of the script.
        PageObject(2_000, named_by=2, at_byte=34_000),
        PageObject(15_000, named_by=2, at_byte=40_000))


def test_a_page_with_a_connection_for_each_object_has_a_note_of_it() -> None:
    def number_connections(log: dict[str, Any], lowest: int = 0) -> None:
        for number, entry in enumerate(log["entries"]):
            entry.update(_connectionId=str(max(number, lowest)))
            entry["response"]["httpVersion"] = "HTTP/1.1"

    def name_each_connection(log: dict[str, Any]) -> None:
        number_connections(log)
        log["entries"][0]["_connectionId"] = "70"

    # Chrome's "0" names no connection. With lowest=2 the first three objects share connection 2.
    for lowest in (0, 2):
        content = saved.har(lambda log, lowest=lowest: number_connections(log, lowest))
        assert har.ONE_EACH not in har.read(content, "here").note
    assert har.ONE_EACH in har.read(saved.har(name_each_connection), "here").note


@pytest.mark.parametrize(("values", "hosts"), [
    ({}, ((0, 1),)), ({"serverIPAddress": "192.0.2.1"}, ((0, 1),)),
    ({"_connectionId": "443"}, ()),  # a port, which is no name
    ({"_connectionId": "0"}, ())])
def test_hosts_that_shared_a_connection_share_a_certificate(
        values: dict[str, str], hosts: tuple[tuple[int, ...], ...]) -> None:
    def change(log: dict[str, Any]) -> None:
        for each in log["entries"]:
            each.update({"_connectionId": "70", **values})
    page = har.read(saved.har(change), "here")
    assert tuple(certificate.hosts for certificate in page.certificates) == hosts
    assert ("2 of its 2 hosts shared connections" in page.source) == bool(hosts)


@pytest.mark.parametrize("other", [
    {"serverIPAddress": "192.0.2.2"}, {"_connectionId": "71"},
    {"response": {**saved.PAGE["log"]["entries"][2]["response"], "httpVersion": "http/1.1"}}])
def test_a_connections_name_with_two_addresses_or_versions_gives_no_certificate(
        other: dict[str, Any]) -> None:
    """Some of its objects came over another version, or from another address."""
    def change(log: dict[str, Any]) -> None:
        for each in log["entries"]:
            each.update({"_connectionId": "70", "serverIPAddress": "192.0.2.1"})
            if "cdn.example" in each["request"]["url"]:
                each.update(other)
    assert not har.read(saved.har(change), "here").certificates


def test_the_scenario_of_a_har_has_its_certificates(tmp_path: Path) -> None:
    path = tmp_path / "page.har"
    path.write_bytes(saved.browsers())
    made = question.scenario("mine", question.RequestedPage(path, None), Overrides({}))
    assert "[[page.certificate]]\nhosts = [0, 1]\n" in made.head.text
    again = registry.study_of(scenario_file.parse("mine", made.head.text, "it"), Overrides({}), 1)
    assert [trial.carriers for trial in again.trials] == [(0, 0)] * len(again.trials)


def test_nothing_of_a_har_is_kept_but_numbers(tmp_path: Path) -> None:
    path = tmp_path / "page.har"
    path.write_bytes(saved.har())
    made = question.scenario("mine", question.RequestedPage(path, None),
                             Overrides({"http": ["1.1"]}))
    for word in (saved.SECRET, "example", "style", "css", "cookie", "http:", "https:"):
        assert word not in re.sub("  # .*", "", made.head.text.lower()), word


def of_entry(number: int, **values: Any) -> Callable[[dict[str, Any]], object]:
    return lambda log: log["entries"][number].update(values)


def of_response(number: int, **values: Any) -> Callable[[dict[str, Any]], object]:
    return lambda log: log["entries"][number]["response"].update(values)


@pytest.mark.parametrize(("change", "sizes"), [
    (of_response(1, _transferSize=None, content={"size": 700}), [700]),
    (of_response(1, _transferSize=-5, content={"size": 700, "compression": 200}), [500]),
    (of_response(1, _transferSize=-5, content={"size": 700, "compression": 900}), []),
    (of_response(1, bodySize=600), [600]), (of_response(1, headersSize=500), [7_500]),
    (of_response(1, content={"size": 7_900}), [7_900]),
    (of_response(1, _transferSize=None, bodySize=0), []),  # Firefox's cache
    (of_response(1, _transferSize=None, content={}), []),
    (of_response(1, _transferSize=None, content={"size": -700}), []),
    (of_response(1, _transferSize="8000", content=[]), []),
    (of_response(1, _transferSize=1e400, content=None), []),
    (of_response(1, status=0), []), (of_response(1, _transferSize=0), []),
    (of_response(1, status=304, bodySize=0), [1])])
def test_a_size_is_what_came_on_the_wire(change: Callable[[dict[str, Any]], object],
                                         sizes: list[int]) -> None:
    """sizes: of the object of entry 1, the 8,000 bytes of OBJECTS; [] where it is left out."""
    page = har.read(saved.har(change), "here")
    others = [each.size_bytes for each in OBJECTS if each.size_bytes != 8_000]
    assert sorted(each.size_bytes for each in page.objects) == sorted([*others, *sizes])


def test_a_document_that_was_not_modified_stays_the_document() -> None:
    page = har.read(saved.har(of_response(0, status=304, bodySize=0)), "here")
    assert page.objects[0] == PageObject(1, is_early=True) and len(page.objects) == 5


def test_redirects_before_the_document_are_excluded() -> None:
    def change(log: dict[str, Any]) -> None:
        redirect = saved.entry("go", at_ms=-100, took_ms=50, receive_ms=0, size=300)
        redirect["response"]["status"] = 301
        log["entries"].insert(0, redirect)
    page = har.read(saved.har(change), "here")
    assert page.objects == OBJECTS


@pytest.mark.parametrize(("entries", "end", "why"), [
    (har_file.MOST_ENTRIES + 1, b"]}}", "has more than 20,000 entries"),
    (har_file.MOST_ENTRIES, b"]}}", "no entry that was"), (1, b"", "cut off")])
def test_a_har_that_has_too_many_entries_or_is_cut_off_is_refused(entries: int, end: bytes,
                                                                  why: str) -> None:
    with pytest.raises(UsageError, match=why):
        har.read(b'{"log":{"entries":[' + b",".join([b"[]"] * entries) + end, "page.har")
    assert gc.isenabled()  # reading large JSON stops it for a while (base.large_json)


def test_an_object_without_a_known_initiator_is_named_by_the_document() -> None:
    """This holds for two that name each other, too: only what began before can name."""
    def change(log: dict[str, Any]) -> None:
        log["entries"][1].update(saved.initiated("font.woff", "cdn.example"))
        log["entries"][2]["_initiator"] = {"type": "other"}
        log["entries"][4].update(saved.initiated("late.png"))
    assert [each.named_by for each in har.read(saved.har(change), "here").objects] == [
        0, 1, 1, 3, 1]


def test_a_har_of_half_a_gigabyte_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "page.har"
    with path.open("wb") as file:
        file.write(b'{"log": ')
        file.truncate(500 << 20)
    with pytest.raises(UsageError, match="it has more than 64 MB; save it without its contents"):
        page_files.read(path)


def test_names_with_control_characters_are_never_shown() -> None:
    def change(log: dict[str, Any]) -> None:
        for each in log["entries"]:
            each["request"]["url"] += "\x1b[2J\x00\r\n\ud800"
            each["pageref"] = "page_1"  # also of the sixth object, which was of page_2
        log["pages"][0]["title"] = "\x1b]0;\x07"
    page = har.read(saved.har(change), "here")
    assert len(page.objects) == 6 and page.note.isprintable()


ANYTHING = strategies.recursive(
    strategies.none() | strategies.booleans() | strategies.integers() | strategies.floats()
    | strategies.text(max_size=8), lambda inner: strategies.lists(inner, max_size=3)
    | strategies.dictionaries(strategies.sampled_from(
        ("log", "entries", "request", "response", "url", "content", "size", "bodySize", "timings",
         "status", "time", "startedDateTime", "_initiator", "stack", "callFrames", "pages")),
        inner, max_size=4), max_leaves=20)
PLACES = strategies.sampled_from((
    ("entries", 0, "request"), ("entries", 1, "response"), ("entries", 2), ("entries", 3, "time"),
    ("entries", 2, "timings"), ("entries", 1, "startedDateTime"), ("pages",), ("pages", 0),
    ("entries", 4, "_initiator"), ("entries", 0, "response", "content"), ("entries",),
    ("entries", 3, "request", "headers"), ("entries", 1, "request", "url")))


@settings(deadline=None, max_examples=300)
@given(PLACES, ANYTHING)
def test_any_value_in_a_har_yields_a_page_or_a_refusal_of_one_line(place: tuple[Any, ...],
                                                                   value: Any) -> None:
    def change(log: dict[str, Any]) -> None:
        inner: Any = log
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = value
    try:
        page = har.read(saved.har(change), "here")
    except UsageError as error:
        assert "\n" not in str(error)
    else:
        assert page.objects[0].named_by == 0 and not page_files.fault_of(page.objects)


@pytest.mark.parametrize("name", ["page.har.gz", "page.gz", "page.har"])
def test_a_compressed_har_is_read(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(saved.har()))
    assert page_files.read(path).objects == OBJECTS
