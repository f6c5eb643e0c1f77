"""Answers in sentences on data made by hand, each where it turns: which no stored run says.

Of single cells and their reasons, of claims on load, of cliffs, and which window users are
recommended.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any
from unittest.mock import patch

import numpy

from firstflight.base.stats import Estimate
from firstflight.findings.findings import Answer, Statement
from firstflight.model.predict import predict
from firstflight.runs.kinds import Overrides
from firstflight.runs.results.records import FAIL, PASS
from firstflight.runs.scenario_file import parsed
from firstflight.study import registry
from firstflight.study.cliff import findings as cliff_findings, search
from firstflight.study.fetches import KIND
from firstflight.study.population.ablation import Step
from firstflight.study.population.findings import _slower
from firstflight.study.users.analysis import Measured, recommend
from firstflight.study.users.findings import users_findings
from firstflight.testbed import site_store
from firstflight.workloads.fetch.figures import answer
from firstflight.workloads.fetch.figures.cells import CellSetting, changes
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.trial import Trial
from firstflight.workloads.fetch.verify import notes
from firstflight.workloads.fetch.record.transfers import computed
from firstflight.workloads.load import analysis, findings as load_findings
from firstflight.workloads.load.analysis import Distribution, Runs
from firstflight.workloads.load.scenario import Compared, LoadClaim
from firstflight.workloads.page import analysis as page_analysis, sentences as page_sentences
from firstflight.workloads.page.record import PageRecord
from firstflight.workloads.trace import findings as trace_findings
from firstflight.workloads.trace.record import TraceRecord
from firstflight.workloads.trace.scenario import TraceCurve
from firstflight.workloads.trace.view import METRICS
from firstflight.workloads.trace.window import INFINITE
from tests.golden import (page_files, page_reasons, reasons, stored, stored_browsed, stored_fetches,
                          stored_load, stored_page, stored_trace, trace_reasons)
from tests.unit.fetches.small import FEW_USERS


def text() -> str:
    """A paragraph a case: its name, and a line a sentence."""
    lines: list[str] = []
    for name, said in (*_of_cells(), *reasons.paragraphs(), *page_reasons.paragraphs(),
                       *trace_reasons.paragraphs(),
                       *_of_limits(), *_of_load(), *_of_cliffs(), *_of_users(), *_of_pages(),
                       *page_files.paragraphs(), *_of_traces()):
        lines += [f"# {name}", *said]
    return "\n".join(lines) + "\n"


def _sentences(of: Answer) -> list[str]:
    return [of.sentence, *of.notes]


# Single cells -------------------------------------------------------------------------

ONE = next(record for record in stored_fetches.stored("zhao2019")
           if (record.trial.rtt_ms, record.trial.bandwidth_kbps) == (100, 1000))


def cell(initcwnd: int, *total_ms: float, queue_drops: int = 0, **requested: Any) -> CellSetting:
    """A cell of 60,000 bytes over 100 ms and 1 Mbit/s, with one transfer for each time."""
    records = [replace(ONE, total_ms=time_ms, queue_drops=queue_drops,
                       trial=replace(ONE.trial, initcwnd=initcwnd, repeat=repeat,
                                     response_bytes=60_000, **requested))
               for repeat, time_ms in enumerate(total_ms, 1)]
    return CellSetting(records[0].trial, records)


def uploaded(client_initcwnd: int, total_ms: float, **requested: Any) -> CellSetting:
    """A cell with a request of 30 kB, sent in two flights or in one."""
    one = cell(10, total_ms, client_initcwnd=client_initcwnd,
               **{"request_bytes": 30_000, **requested})
    trips, flights = (1, "21") if client_initcwnd > 20 else (2, "10+11")
    return replace(one, records=[replace(record, upload_round_trips=trips, upload_flights=flights,
                                         link_idle_ms=total_ms) for record in one.records])


def drawn(one: CellSetting) -> CellSetting:
    """The cell with other networks from its second repeat on."""
    return replace(one, records=[replace(record, trial=replace(
        record.trial, drawn_rtt_ms=None if record.trial.repeat == 1 else 100.5))
        for record in one.records])


def answered(*cells: CellSetting, is_question: bool = True) -> Answer:
    return answer.answer_of_cells(cells, changes(cells), is_question)


def _of_cells() -> Iterator[tuple[str, list[str]]]:
    made = {
        "three windows": (cell(10, 200.0), cell(20, 160.0), cell(40, 150.0)),
        "a client's windows": (uploaded(10, 675.0), uploaded(32, 466.0), uploaded(100, 460.0)),
        "a client's windows on two paths": (
            uploaded(10, 675.0), uploaded(32, 466.0),
            uploaded(10, 675.0, queue_packets=50), uploaded(32, 875.0, queue_packets=50)),
        "one window of the client": (uploaded(0, 675.0),),
        "a large request to a slow uplink": (
            uploaded(10, 675.0, request_bytes=300_000, uplink_kbps=100.0),
            uploaded(32, 466.0, request_bytes=300_000, uplink_kbps=100.0)),
        "one is the fastest": (cell(10, 200.0), cell(20, 150.0), cell(40, 160.0)),
        "two are as fast": (cell(10, 200.0), cell(20, 160.0), cell(40, 160.0)),
        "less than half a millisecond": (cell(10, 200.0), cell(20, 199.7)),
        "the largest effect is a loss": (
            cell(10, 200.0, queue_packets=50), cell(20, 150.0, queue_packets=50),
            cell(10, 200.0), cell(20, 500.0)),
        "the largest effect is a saving": (
            cell(10, 200.0, queue_packets=50), cell(20, 150.0, queue_packets=50),
            cell(10, 200.0), cell(20, 220.0)),
        "faster for certain": (cell(10, 200.0, 200.0, 200.0), cell(20, 180.0, 181.0, 179.0)),
        "by chance": (cell(10, 200.0, 200.0, 200.0), cell(20, 150.0, 260.0, 190.0)),
        "slower for certain": (cell(10, 200.0, 200.0, 200.0), cell(20, 220.0, 221.0, 219.0)),
        "one window": (cell(10, 200.0),), "nothing counts": (),
        "two kernels, one window by route": (cell(10, 200.0), cell(10, 190.0, kernel="mine")),
        "two kernels, their own windows": (
            cell(10, 200.0, window_by="kernel"),
            cell(10, 190.0, window_by="kernel", kernel="mine")),
        "a kernel's own window": (cell(10, 200.0, window_by="kernel"),),
        "one window, drawn": (drawn(cell(10, 200.0, 215.0, 190.0)),),
        "drawn, and by chance": (drawn(cell(10, 200.0, 205.0, 203.0)),
                                 drawn(cell(20, 150.0, 260.0, 190.0))),
        "one of two windows counts": (cell(2, 200.0), replace(cell(199, 1.0), records=[]))}
    for name, cells in made.items():
        yield f"cells: {name}", _sentences(answered(*cells))
    # 100 ms at 1 Mbit/s are 8.3 packets.
    for queue, drops in ((3, 2), (3, 0), (100, 0), (10, 0)):
        cells = [cell(window, time_ms, queue_drops=drops, queue_packets=queue)
                 for window, time_ms in ((10, 200.0), (20, 150.0))]
        for is_question in (True, False):
            yield (f"cells: queue {queue}, {drops} dropped, "
                   f"{'a question' if is_question else 'a part of a scenario'}"), _sentences(
                       answered(*cells, is_question=is_question))


# What limits a transfer besides its window --------------------------------------------

def _of_limits() -> Iterator[tuple[str, list[str]]]:
    for name, columns in {
            **{limit: {"limited_by": limit} for limit in (
                "receive window", "send buffer", "repeated handshake", "response size",
                "first write")},
            "later, once": {"receive_window_waits": 1, "least_offered_segments": 9,
                            "most_offered_segments": 9},
            "later, often": {"receive_window_waits": 24, "least_offered_segments": 44.4,
                             "most_offered_segments": 232.3},
            "at first and later": {"limited_by": "receive window", "receive_window_waits": 24,
                                   "least_offered_segments": 44.4}}.items():
        record: Any = replace(ONE, trial=replace(ONE.trial, initcwnd=10), seen_first_flight=2,
                              **columns)  # type: ignore[arg-type]
        yield f"limits: {name}", [notes.limit_note(record), *notes.limits(record),
                                  *notes.limiting_notes([ONE, record])]


# Load ---------------------------------------------------------------------------------

def stated(expects: Any, *saved: tuple[float, ...], **published: Any) -> Statement:
    """Of 100 ms so many are saved: by load, each of the two seeds, or of one."""
    records: list[Any] = []
    for record in stored_load.run().records:
        trial: Any = record.trial
        load, seed = (0.5, 0.9).index(trial.load), trial.repeat - 1
        if seed < len(saved[load]):
            less = saved[load][seed] if trial.window == "10" else 0
            records.append(replace(record, mean_ms=100.0 - less))
    return load_findings.judge_claim(
        Runs.of_figure(_figure("gain"), records, stored_load.RUN),
        LoadClaim(figure="gain", says="x", compares=(Compared("3"), Compared("10")),
                  metric="mean_ms", expects=expects, **published))


def _figure(kind: str) -> Any:
    return next(figure for figure in stored_load.study().scenario.figures if figure.kind == kind)


def _of_load() -> Iterator[tuple[str, list[str]]]:
    for name, made in {
            "saves in one cell": stated("less", (10, 10), (-30, -30)),
            "saves in both": stated("less", (10, 10), (10, 10)),
            "of one seed": stated("less", (10,), (-30,)),
            "seeds that differ": stated("alike", (10, 12), (20, 21)),
            "the other way": stated("more", (10, 10.1), (20, 20.1)),
            "as published": stated("less", (10, 10.1), (10, 10.1), published=12, within=3),
            "of an abstract": stated("alike", (1, 1), (1, 1), abstract_only=True),
            "why it is so": stated("less", (10, 10), (10, 10), why="Because of it.")}.items():
        yield f"load: {name}", [made.measured]
    for mean_ms in (800.0, 1200.0, 995.0):
        of_own = load_findings._effect_of_mixing(_distribution("IW 3 in the mix", mean_ms),
                                                  _distribution("IW 3", 1000.0))
        assert of_own is not None
        yield f"load: a group of {mean_ms:g} ms beside 1000", [f"{of_own.text} {of_own.measured}"]
    for by in (80, 1):
        yield f"load: the tail alone, seeds {by} ms apart", [
            f"{each.text} {each.measured}" for each in _slower_tail(by)]


def _distribution(name: str, mean_ms: float) -> Distribution:
    return Distribution(name, name, numpy.array([mean_ms]), 1, Estimate(0.0), {None: {1: mean_ms}},
                        1.0)


def _slower_tail(by: int) -> list[Statement]:
    """In each cell, how far the seeds are apart; the mean is the same."""
    records: list[Any] = []
    for record in stored_load.run().records:
        trial: Any = record.trial
        slower = trial.window == "10" and (30 + trial.repeat if trial.load > 0.5 else
                                           20 + by * (trial.repeat - 1))
        records.append(replace(record, mean_ms=100.0, p99_ms=100.0 + slower))
    runs = Runs.of_figure(_figure("gain"), records, stored_load.RUN)
    return load_findings._gain_answers(runs, analysis.points(runs))


# Cliffs -------------------------------------------------------------------------------

GOOD = stored.load("https").judge()
WITH_FLAGS = {"rtt_ms": [100], "bandwidth_kbps": [100_000]}
DEBIAN_12 = (3, 0, 0, 0, 0)  # the bytes of a handshake are those of the machine's OpenSSL


def trials(what: str = search.CHAIN, **lists: Any) -> Sequence[Trial]:
    return registry.cliff_question(what, Overrides({**WITH_FLAGS, **lists})).trials


def by_model(requested: Sequence[Trial], shift: int = 0,
             sysctls: Mapping[str, str] = MappingProxyType({})) -> Mapping[Trial, Record]:
    """Records as the model has them, of chains that are larger by `shift`."""
    found = {}
    for trial in requested:
        size = max(400, trial.chain_bytes + shift) if trial.chain_bytes else 0
        prediction = predict(computed(replace(trial, chain_bytes=size), sysctls))
        found[trial] = replace(GOOD, trial=trial,
                               handshake_round_trips=prediction.handshake_round_trips,
                               response_round_trips=prediction.response_round_trips)
    return found


def early(some: Sequence[Trial]) -> Mapping[Trial, Record]:
    """Records as of curl: hello and early data in writes of 4096 bytes, under ten segments."""
    found = {}
    for trial in some:
        sent = 554 + trial.early_data_bytes + 22
        segments = (3 + -(-(sent - 4096) // 1448)) if sent > 4096 else -(-sent // 1448)
        found[trial] = replace(GOOD, trial=trial, request_segments=segments,
                               request_round_trips=1 + (segments > 10))
    return found


def _of_cliffs() -> Iterator[tuple[str, list[str]]]:
    with patch.object(ssl, "OPENSSL_VERSION_INFO", DEBIAN_12):
        for name, what, lists in (
                ("chains", search.CHAIN, {"initcwnd": [3, 10]}),
                ("chains, the key share offered", search.CHAIN,
                 {"initcwnd": [10], "key_share": ["x25519mlkem768"]}),
                ("the smallest chain does not fit", search.CHAIN,
                 {"initcwnd": [1], "intermediates": [3]}),
                ("response", search.RESPONSE, {"initcwnd": [10]}),
                ("response behind a chain", search.RESPONSE,
                 {"initcwnd": [10], "chain_bytes": [2000]})):
            found = search.search(what, trials(what, **lists), {}, by_model)
            yield f"cliff: {name}", _lines(what, found)
        found = search.search(search.CHAIN, trials(initcwnd=[10]), {},
                              lambda some: by_model(some, shift=5))
        yield "cliff: measured otherwise than modelled", _lines(search.CHAIN, found)
        for restart in ("1", "0"):
            question = registry.cliff_question(search.RESPONSE, Overrides(
                {"rtt_ms": [50], "initcwnd": [10], "idle_ms": [600_000],
                 "sysctl": [f"net.ipv4.tcp_slow_start_after_idle={restart}"]}))
            sysctls = question.head.sysctls
            found = search.search(search.RESPONSE, question.trials, sysctls,
                                  lambda some: by_model(some, sysctls=sysctls))
            yield (f"cliff: after a pause, restart {restart}",
                   _lines(search.RESPONSE, found, sysctls))
        nginx = registry.cliff_question(search.CHAIN, Overrides(
            {**WITH_FLAGS, "server": ["nginx"], "initcwnd": [10]}))
        for name, what, study, measure in (
                ("early data", search.EARLY,
                 registry.cliff_question(search.EARLY, Overrides(WITH_FLAGS)), early),
                ("of nginx", search.CHAIN, nginx, lambda some: {
                    trial: replace(record, flight_bytes=12_952, flight_segments=10)
                    for trial, record in by_model(some, shift=15).items()})):
            yield f"cliff: {name}", [line for _, lines, _ in registry.cliffs(what, study, measure)
                                     for line in lines]


def _lines(what: str, found: Any, sysctls: Mapping[str, str] = MappingProxyType({})) -> list[str]:
    lines = [line for each in found
             for line in cliff_findings.sentences(what, each, sysctls=sysctls)]
    return [*lines, *cliff_findings.besides(what, found)]


# Users --------------------------------------------------------------------------------

COUNT = 200


def found_users(saved_ms: Any, again: float = 0.0, segments: float = 40.0) -> Measured:
    """Users of 300 ms with a window of 10; with 32 they save so many."""
    base = numpy.full(COUNT, 300.0)
    zero = numpy.zeros(COUNT)
    return Measured({10: base, 32: base - saved_ms}, {10: zero, 32: zero + again},
                    {10: zero, 32: zero}, numpy.ones(COUNT), numpy.zeros(COUNT, dtype=int),
                    numpy.full(COUNT, segments), 0, numpy.arange(COUNT))


def spread(low: float, high: float) -> Any:
    return numpy.linspace(low, high, COUNT)


def three_windows(again: float = 0.0) -> Measured:
    """Windows of 10, of 20, which saves 22 to 42 ms, and of 32, which saves 4 ms more."""
    one = found_users(spread(26, 46))
    zero = numpy.zeros(COUNT)
    return replace(one, total_ms={**one.total_ms, 20: one.total_ms[32] + 4.0},
                   retransmitted={10: zero, 20: zero, 32: zero + again},
                   queue_drops={10: zero, 20: zero, 32: zero})


def recommended(initcwnd: str = "10, 32", assumed: str = "assumed_kbps = 9000",
                saves: Mapping[float, int] = MappingProxyType({}), harmed: str = "") -> Answer:
    """Of three users; saves: the least window with two round trips, by the bandwidth.

    harmed: the part in which a window of 32 takes six round trips.
    """
    made = KIND.study(parsed("users_of_x", FEW_USERS.replace("[10, 32]", f"[{initcwnd}]").replace(
        "groups", f"{assumed}\ngroups")))
    records = [Record(trial, True, total_ms=trial.rtt_ms * (
        6 if (trial.part, trial.initcwnd) == (harmed, 32) else
        2 if trial.initcwnd >= saves.get(trial.bandwidth_kbps, 99) else 3),
        retransmissions=0, queue_drops=0, verdict="pass") for trial in made.trials]
    (finding,), _ = users_findings(made.scenario, made.scenario.users, records)
    assert finding.answer is not None
    return finding.answer


def of_options(saves: Mapping[tuple[str, str], int], unknown: str = "") -> Answer:
    """Of three users with CUBIC and BBR.

    saves: the least window with two round trips instead of three, by part and congestion control.
    """
    text = FEW_USERS.replace('"cubic"', '["cubic", "bbr"]').replace(
        "[10, 32]", "[10, 20, 32]").replace("groups", f"{unknown}\ngroups")
    made = KIND.study(parsed("users_of_x", text))
    records = [Record(trial, True, total_ms=trial.rtt_ms * (
        2 if trial.initcwnd >= saves.get((trial.part, trial.congestion_control), 99) else 3),
        retransmissions=0, queue_drops=0, verdict="pass") for trial in made.trials]
    findings, _ = users_findings(made.scenario, made.scenario.users, records)
    assert findings[0].answer is not None
    return findings[0].answer


def _of_users() -> Iterator[tuple[str, list[str]]]:
    one = found_users(0.0)
    for name, measured in {
            "it saves time": found_users(spread(20, 40)), "noise": found_users(spread(-30, 30.5)),
            "under 1 %": found_users(spread(2.0, 2.4)), "slower": found_users(spread(-9, -1)),
            "all fits": found_users(spread(0, 0), segments=7.0),
            "sent again": found_users(spread(20, 40), again=0.3),
            "a long tail": found_users(numpy.where(numpy.arange(COUNT) < 4, -20.0, 40.0)),
            "three windows": three_windows(),
            "three windows, the largest sends again": three_windows(again=0.4),
            "no other window": replace(one, total_ms={10: one.total_ms[10]})}.items():
        chosen = recommend(measured, 10)
        yield f"users: {name}", [f"{chosen.initcwnd}: {chosen.why}"]
    for causes in ({"loss": 2, "the queue": 7, "a timer": 3}, {}):
        yield f"population: {len(causes)} causes of slower responses", [_slower(Step(
            "clean", (3, 10), 100.0, 90.0, {}, 50, causes))]
    more = "10, 20, 32"
    unsaid = 'assumed_kbps = 9000\nunknown = ["queue", "kept"]'
    faster = dict.fromkeys((4500, 9000, 18000), 32)

    for name, said in {
            "an assumed bandwidth decides": recommended(
                more, saves={4500: 20, 9000: 32, 18000: 32}),
            "an assumed bandwidth does not": recommended(
                more, saves={4500: 20, 9000: 20, 18000: 20}),
            "nothing that is unsaid decides": recommended(more, unsaid, faster),
            "an unsaid queue decides": recommended(more, unsaid, faster, "users_queue"),
            "unsaid reuse decides, a smaller window saves too": recommended(
                more, unsaid, {4500: 20, 9000: 20, 18000: 32}, "users_kept"),
            "harm by half the bandwidth": recommended(more, unsaid, faster, "users_half"),
            "a known bandwidth": recommended(more, assumed="", saves={9000: 20}),
            "the largest is chosen": recommended(saves={9000: 32}),
            "the baseline stays": recommended(), "one window": recommended("10")}.items():
            yield f"users: {name}", _sentences(said)

    with_queue = 'unknown = ["queue"]'
    for name, said in {
            "options with one window": of_options({("users", "cubic"): 20, ("users", "bbr"): 20}),
            "options with two windows": of_options({("users", "cubic"): 32, ("users", "bbr"): 20}),
            "an unsaid queue decides between options": of_options(
                {("users", "bbr"): 20, ("users_queue", "cubic"): 20}, with_queue),
            "an option without gain": of_options({("users", "bbr"): 10})}.items():
        yield f"users: {name}", _sentences(said)


# Pages --------------------------------------------------------------------------------

def settings(*pages_ms: tuple[float, ...], window: int = 10) -> list[PageRecord]:
    """A setting for each: 300 ms with 3 segments, these times with 10; the last one's window."""
    found = []
    for number, times in enumerate(pages_ms, start=1):
        larger = window if number == len(pages_ms) else 10
        for repeat, page_ms in enumerate(times, start=1):
            found += [replace(record, page_ms=at_ms, trial=replace(
                record.trial, queue_packets=number, repeat=repeat, initcwnd=iw))
                for record, at_ms, iw in zip(stored_page.two(), (300.0, page_ms), (3, larger))]
    return found


def _of_pages() -> Iterator[tuple[str, list[str]]]:
    two = stored_page.two
    of_part = {part: [record for record in stored_page.run().records if record.trial.part == part]
               for part in ("nginx", "lossy")}
    for name, records in {
            "faster": two(page_ms=200.0, document_ms=100.0, queue_drops=4),
            "slower": two(page_ms=300.0), "no window changes it": two(page_ms=two()[0].page_ms),
            "a window that does not count": [two()[0], replace(two()[1], verdict=FAIL)],
            "drawn, and faster": drawn_pages((300.0, 302.0, 301.0), (250.0, 251.0, 250.5),
                                             (400.0, 150.0, 180.0)),
            "drawn, and slower": drawn_pages((300.0, 302.0, 301.0), (350.0, 351.0, 350.5),
                                             (400.0, 150.0, 180.0), (301.0, 303.0, 302.0)),
            "drawn, and by chance": drawn_pages((300.0, 302.0, 301.0), (400.0, 150.0, 180.0)),
            "settings, earlier and later": settings(
                (270.0, 270.0), (330.0, 330.0), (100.0, 500.0), (210.0, 210.0), (299.0, 301.0)),
            "settings, other windows": settings(*[(270.0,)] * 4, (150.0,), window=32),
            "settings, one that differs": settings(*[(100.0, 500.0)] * 4, (240.0, 240.0)),
            "settings, none that differs": settings(*[(100.0, 500.0)] * 5),
            "in a browser": browsed_pages(), "in a browser, at eight phases": browsed_phases(),
            **of_part}.items():
        those = page_analysis.settings(records)
        yield f"page: {name}", [
            page_sentences.sentence(those, page_analysis.labels(those, {})),
            *(note for each in those[:1] for note in page_sentences.notes(each, ""))]


def browsed_pages() -> list[PageRecord]:
    """A page in a browser under 4 and 10 segments."""
    with patch.object(site_store, "folder", lambda: stored_browsed.SITES):
        one = stored_browsed.load("http2").judge()
    return [one, replace(one, page_ms=700.0, not_recorded=2,
                         trial=replace(one.trial, initcwnd=10))]


def browsed_phases() -> list[PageRecord]:
    """Eight loads under 4 and 10 segments, whose largest paints wait for a frame."""
    return [replace(each, largest_paint_ms=600.0 + 100 * place + later_ms,
                    page_ms=(each.page_ms or 0.0) + later_ms / 1000,
                    trial=replace(each.trial, repeat=repeat))
            for place, each in enumerate(browsed_pages())
            for repeat, later_ms in enumerate((3.0, 14.0, 6.0, 2.0, 10.0, 16.0, 5.0, 11.0), 1)]


def drawn_pages(*by_window: tuple[float, ...]) -> list[PageRecord]:
    """Pages of one setting under windows of 3, 10, … segments, with the times of their repeats."""
    one = stored_page.two()[0]
    return [replace(one, page_ms=page_ms, trial=replace(
        one.trial, initcwnd=window, repeat=repeat,
        drawn_rtt_ms=None if repeat == 1 else one.trial.rtt_ms))
        for window, times_ms in zip((3, 10, 25, 40), by_window)
        for repeat, page_ms in enumerate(times_ms, 1)]


# Traces -------------------------------------------------------------------------------

def thinking(times: Mapping[float, Mapping[int, float]]) -> str:
    """After which think times a window is faster; times: think time (s), window, latency (ms)."""
    one = stored_trace.warm_study().trials[0]
    curve = TraceCurve(one.trace, one.tcp)
    records = [TraceRecord(replace(one, think_s=think_s, initcwnd=window), True, latency_ms=ms,
                           last_window=window, last_retransmissions=0, verdict=PASS)
               for think_s, line in times.items() for window, ms in line.items()]
    return trace_findings._warm_answer(
        curve, trace_findings.by_think_time(records, curve)).measured


def _of_traces() -> Iterator[tuple[str, list[str]]]:
    for name, times in {
            "every time faster": {1: {3: 100, 10: 50}, 2: {3: 90, 10: 40}},
            "every time slower": {1: {3: 50, 10: 100}, 0.5: {3: 50, 10: 51}},
            "from a time on": {1: {3: 100, 10: 100}, 2.5: {3: 100, 10: 50}},
            "some times": {1: {3: 100, 10: 50}, 2: {3: 100, 10: 100}, 3: {3: 100, 10: 70},
                           4: {3: 8, 10: 8}},
            "faster, then slower": {1: {3: 100, 10: 50}, 2: {3: 50, 10: 100}},
            "the next smaller": {1: {3: 100, 10: 50, 16: 50}, 2: {3: 100, 16: 20}},
            "never": {1: {3: 100.5, 10: 100}, 2: {3: 100, 10: 100.5}},
            "by 0.75 ms": {1: {3: 100.75, 10: 100}}}.items():
        yield f"think times: {name}", [thinking(times)]
    for name, metric in METRICS.items():
        yield f"trace: {name}", [metric.words(value) + metric.when(2.5)
                                 for value in (1, 2.5, 99.6, INFINITE)]
