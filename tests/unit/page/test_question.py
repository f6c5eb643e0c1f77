"""Pages by flags: what is written as their scenario, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firstflight.runs import scenario_file
from firstflight.runs.kinds import Overrides
from firstflight.study import registry
from firstflight.study.page import question
from firstflight.study.page.har import SavedPage
from firstflight.study.page.objects import PageObject
from firstflight.study.page.scenario import Page, read_scenario
from tests.unit.page import saved


def trials(lists: dict[str, list[Any]] | None = None, path: Path | None = None, repeat: int | None
           = None, **made: Any) -> tuple[Any, ...]:
    made = made if made or path else {"objects": 3}
    made.setdefault("objects", None)
    return tuple(registry.page_question("own", path, made, Overrides(lists or {}, repeat)).trials)


def test_what_is_not_said_has_the_default_of_help() -> None:
    small, large = trials()
    assert (small.initcwnd, large.initcwnd) == (10, 30)
    assert (small.rtt_ms, small.bandwidth_kbps, small.uplink_kbps, small.queue_packets) == (
        50, 10_000, 10_000, 100)
    assert (small.http, small.connections, small.server) == ("1.1", 6, "builtin")
    assert small.requested == (PageObject(15_000), *(
        PageObject(15_000, 1, round(15_000 * place / 4)) for place in (1, 2, 3)))


def test_every_flag_reaches_the_page() -> None:
    made = trials({"rtt_ms": [20], "bandwidth_kbps": [900], "uplink_kbps": [300], "queue": ["7"],
                   "loss_percent": [2], "initcwnd": [4], "initrwnd": [70], "http": ["1.1", "2"],
                   "congestion_control": ["reno"], "response_bytes": [5000]}, repeat=2,
                  objects=2, document_bytes=9000, connections=(1, 3))
    assert [(trial.http, trial.connections, trial.repeat) for trial in made] == [
        ("1.1", 1, 1), ("1.1", 1, 2), ("1.1", 3, 1), ("1.1", 3, 2), ("2", 1, 1), ("2", 1, 2)]
    first = made[0]
    assert (first.rtt_ms, first.bandwidth_kbps, first.uplink_kbps, first.queue_packets,
            first.loss_percent, first.initcwnd, first.initrwnd, first.congestion_control) == (
                20, 900, 300, 7, 2, 4, 70, "reno")
    assert [each.size_bytes for each in first.requested] == [9000, 5000, 5000]


def test_a_list_and_a_har_are_pages(tmp_path: Path) -> None:
    path = tmp_path / "list.toml"
    path.write_text("[[object]]\nbytes = 900\n[[object]]\nbytes = 50\nat_byte = 20\n")
    assert trials(path=path)[0].requested == (PageObject(900), PageObject(50, 1, 20))
    path = tmp_path / "page"
    path.write_bytes(saved.har())
    assert len(trials(path=path)[0].requested) == 5


def test_a_har_is_measured_over_the_http_that_it_has(tmp_path: Path) -> None:
    path = tmp_path / "page.har"
    path.write_bytes(saved.har())
    assert {(trial.http, trial.server) for trial in trials(path=path)} == {("2", "nginx")}
    for flags, http in (({"http": ["1.1"]}, "1.1"), ({"server": ["builtin"]}, "1.1"),
                        ({"server": ["nginx"]}, "2")):
        made = registry.page_question("own", path, {"objects": None}, Overrides(flags))
        assert {trial.http for trial in made.trials} == {http}
        assert ("Measured over HTTP/2" in made.scenario.head.note) == (http == "2")


HOSTILE = 'of "a\\", \n[[sweep]]\nname = \'x\' # \x00 \x7f \u2028 ü \U0001f600 """ \\u0041'
LISTED = (PageObject(9000, is_early=True), PageObject(50, 1, 0, 0.125, 20.0, 3, True),
          PageObject(700, 1, 9000), PageObject(7, 2, 50))


@pytest.mark.parametrize(("lists", "page", "sysctls"), [
    ({}, question.RequestedPage(None, 3), ()),
    ({"rtt_ms": [0.2], "bandwidth_kbps": [900], "uplink_kbps": [300.5], "queue": ["7", "0.5bdp"],
      "loss_percent": [0, 2], "initcwnd": [4, 10, 32], "initrwnd": [70], "http": ["1.1", "2"],
      "congestion_control": ["reno", "bbr"], "server": ["nginx"], "response_bytes": [5000]},
     question.RequestedPage(None, 2, 9000, (1, 3)),
     ("net.ipv4.tcp_sack=0", "net.ipv4.tcp_rmem=4096 65536 65536")),
    ({"initcwnd": [4]}, question.RequestedPage(Path("x"), None), ())])
def test_a_page_is_written_so_that_an_equal_one_is_read(
        lists: dict[str, list[Any]], page: question.RequestedPage, sysctls: tuple[str, ...],
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(question.page_files, "read", lambda path: SavedPage(LISTED, HOSTILE))
    made = question.scenario("own", page, Overrides(lists, sysctls=sysctls))
    assert made.head.note == (HOSTILE if page.file else "")
    assert read_scenario(scenario_file.parsed("own", made.head.text)) == made


def test_names_from_strangers_stay_within_their_strings() -> None:
    """Whatever a title, a source or a note has, the file has no other table and no other key."""
    made = question.scenario("own", question.RequestedPage(None, 3), Overrides({}))
    head = replace(made.head, title=HOSTILE, source=HOSTILE, note=HOSTILE, text="")
    made = replace(made, head=head)
    text = question.text(made, Page("own", 3, question.OBJECT_BYTES, question.OBJECT_BYTES))
    assert read_scenario(scenario_file.parsed("own", text)) == replace(
        made, head=replace(head, text=text))
