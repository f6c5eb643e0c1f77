"""Answers on records that are built by hand, for sentences that no stored run has.

They are on single cells and their reasons, on claims about load, on cliffs, on the window that
users are recommended, on pages and on traces. Values lie near where a sentence changes.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from firstflight.runs.scenario_file import parse
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
    """A paragraph for each case: its name, and a line for each sentence."""
    lines: list[str] = []
    for name, sentences in (*_of_cells(), *reasons.paragraphs(), *page_reasons.paragraphs(),
                       *trace_reasons.paragraphs(),
                       *_of_limits(), *_of_load(), *_of_cliffs(), *_of_users(), *_of_pages(),
                       *page_files.paragraphs(), *_of_traces()):
        lines += [f"# {name}", *sentences]
    return "\n".join(lines) + "\n"


def _sentences(answer_found: Answer) -> list[str]:
    return [answer_found.sentence, *answer_found.notes]


# Single cells -------------------------------------------------------------------------

# A stored record over 100 ms and 1 Mbit/s.
ONE = next(record for record in stored_fetches.stored("zhao2019")
           if (record.trial.rtt_ms, record.trial.bandwidth_kbps) == (100, 1000))


def cell(initcwnd: int, *total_ms: float, queue_drops: int = 0, **requested: Any) -> CellSetting:
    """A cell with a response of 60,000 bytes, and with one repeat for each time.

    requested: other columns of its trials.
    """
    records = [replace(ONE, total_ms=time_ms, queue_drops=queue_drops,
                       trial=replace(ONE.trial, initcwnd=initcwnd, repeat=repeat,
                                     response_bytes=60_000, **requested))
               for repeat, time_ms in enumerate(total_ms, 1)]
    return CellSetting(records[0].trial, records)


def upload_cell(client_initcwnd: int, total_ms: float, **requested: Any) -> CellSetting:
    """A cell with a request of 30 kB, whose 21 segments leave in one flight or in two."""
    one = cell(10, total_ms, client_initcwnd=client_initcwnd,
               **{"request_bytes": 30_000, **requested})
    trips, flights = (1, "21") if client_initcwnd > 20 else (2, "10+11")
    return replace(one, records=[replace(record, upload_round_trips=trips, upload_flights=flights,
                                         link_idle_ms=total_ms) for record in one.records])


def draw_rtt(one: CellSetting) -> CellSetting:
    """The cell, but from its second repeat on an RTT of 100.5 ms was drawn."""
    return replace(one, records=[replace(record, trial=replace(
        record.trial, drawn_rtt_ms=None if record.trial.repeat == 1 else 100.5))
        for record in one.records])


def answered(*cells: CellSetting, is_question: bool = True) -> Answer:
    """The answer to cells that differ by their window. is_question: as answer_of_cells has it."""
    return answer.answer_of_cells(cells, changes(cells), is_question)


def _of_cells() -> Iterator[tuple[str, list[str]]]:
    cells_of = {
        "three windows": (cell(10, 200.0), cell(20, 160.0), cell(40, 150.0)),
        "a client's windows": (
            upload_cell(10, 675.0), upload_cell(32, 466.0), upload_cell(100, 460.0)),
        "a client's windows on two paths": (
            upload_cell(10, 675.0), upload_cell(32, 466.0),
            upload_cell(10, 675.0, queue_packets=50), upload_cell(32, 875.0, queue_packets=50)),
        "one window of the client": (upload_cell(0, 675.0),),
        "a large request to a slow uplink": (
            upload_cell(10, 675.0, request_bytes=300_000, uplink_kbps=100.0),
            upload_cell(32, 466.0, request_bytes=300_000, uplink_kbps=100.0)),
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
        "one window, drawn": (draw_rtt(cell(10, 200.0, 215.0, 190.0)),),
        "drawn, and by chance": (draw_rtt(cell(10, 200.0, 205.0, 203.0)),
                                 draw_rtt(cell(20, 150.0, 260.0, 190.0))),
        "one of two windows counts": (cell(2, 200.0), replace(cell(199, 1.0), records=[]))}
    for name, cells in cells_of.items():
        yield f"cells: {name}", _sentences(answered(*cells))

    # The bandwidth-delay product is 8.3 packets: queues of less, of about as much, and of more.
    for queue, drops in ((3, 2), (3, 0), (100, 0), (10, 0)):
        cells = [cell(window, time_ms, queue_drops=drops, queue_packets=queue)
                 for window, time_ms in ((10, 200.0), (20, 150.0))]
        for is_question in (True, False):
            yield (f"cells: queue {queue}, {drops} dropped, "
                   f"{'a question' if is_question else 'a part of a scenario'}"), _sentences(
                       answered(*cells, is_question=is_question))


# What limits a transfer besides its window --------------------------------------------

def _of_limits() -> Iterator[tuple[str, list[str]]]:
    columns_of: dict[str, dict[str, Any]] = {limit: {"limited_by": limit} for limit in (
        "receive window", "send buffer", "repeated handshake", "response size", "first write")}
    columns_of |= {
        "later, once": {"receive_window_waits": 1, "least_offered_segments": 9,
                        "most_offered_segments": 9},
        "later, often": {"receive_window_waits": 24, "least_offered_segments": 44.4,
                         "most_offered_segments": 232.3},
        "at first and later": {"limited_by": "receive window", "receive_window_waits": 24,
                               "least_offered_segments": 44.4}}
    for name, columns in columns_of.items():
        record: Any = replace(ONE, trial=replace(ONE.trial, initcwnd=10), seen_first_flight=2,
                              **columns)
        yield f"limits: {name}", [notes.limit_note(record), *notes.limits(record),
                                  *notes.limiting_notes([ONE, record])]


# Load ---------------------------------------------------------------------------------

def stated(expects: Any, *saved: tuple[float, ...], **published: Any) -> Statement:
    """The result of a claim about what ten segments save of a mean of 100 ms.

    saved: for each of both loads the ms of each seed, of which there are one or two.
    published: what the claim says of published numbers.
    """
    records: list[Any] = []
    for record in stored_load.run().records:
        trial: Any = record.trial
        saved_at_load = saved[(0.5, 0.9).index(trial.load)]
        seed = trial.repeat - 1
        if seed < len(saved_at_load):
            less_ms = saved_at_load[seed] if trial.window == "10" else 0
            records.append(replace(record, mean_ms=100.0 - less_ms))
    return load_findings.judge_claim(
        Runs.of_figure(_figure("gain"), records, stored_load.RUN),
        LoadClaim(figure="gain", says="x", compares=(Compared("3"), Compared("10")),
                  metric="mean_ms", expects=expects, **published))


def _figure(kind: str) -> Any:
    return next(figure for figure in stored_load.study().scenario.figures if figure.kind == kind)


def _of_load() -> Iterator[tuple[str, list[str]]]:
    for name, statement in {
            "saves in one cell": stated("less", (10, 10), (-30, -30)),
            "saves in both": stated("less", (10, 10), (10, 10)),
            "of one seed": stated("less", (10,), (-30,)),
            "seeds that differ": stated("alike", (10, 12), (20, 21)),
            "the other way": stated("more", (10, 10.1), (20, 20.1)),
            "as published": stated("less", (10, 10.1), (10, 10.1), published=12, within=3),
            "of an abstract": stated("alike", (1, 1), (1, 1), abstract_only=True),
            "why it is so": stated("less", (10, 10), (10, 10), why="Because of it.")}.items():
        yield f"load: {name}", [statement.measured]
    for mean_ms in (800.0, 1200.0, 995.0):
        effect = load_findings._effect_of_mixing(_distribution("IW 3 in the mix", mean_ms),
                                                 _distribution("IW 3", 1000.0))
        assert effect is not None
        yield f"load: a group of {mean_ms:g} ms beside 1000", [f"{effect.text} {effect.measured}"]
    for apart_ms in (80, 1):
        yield f"load: the tail alone, seeds {apart_ms} ms apart", [
            f"{statement.text} {statement.measured}" for statement in _slower_tail(apart_ms)]


def _distribution(name: str, mean_ms: float) -> Distribution:
    return Distribution(name, name, numpy.array([mean_ms]), 1, Estimate(0.0), {None: {1: mean_ms}},
                        1.0)


def _slower_tail(apart_ms: int) -> list[Statement]:
    """The answer where ten segments change no mean, and make the 99th percentile longer.

    It is longer by 20 ms or more at the smaller load, and by more than 30 at the larger one.
    apart_ms: by how much two seeds differ at the smaller load.
    """
    records: list[Any] = []
    for record in stored_load.run().records:
        trial: Any = record.trial
        slower_ms = 0
        if trial.window == "10":
            slower_ms = 30 + trial.repeat if trial.load > 0.5 else (
                20 + apart_ms * (trial.repeat - 1))
        records.append(replace(record, mean_ms=100.0, p99_ms=100.0 + slower_ms))
    runs = Runs.of_figure(_figure("gain"), records, stored_load.RUN)
    return load_findings._gain_answers(runs, analysis.points(runs))


# Cliffs -------------------------------------------------------------------------------

GOOD = stored.load("https").judge()
WITH_FLAGS = {"rtt_ms": [100], "bandwidth_kbps": [100_000]}
# OpenSSL's version, by which the model knows how many bytes a handshake has.
DEBIAN_12 = (3, 0, 0, 0, 0)


def trials(what: str = search.CHAIN, **lists: Any) -> Sequence[Trial]:
    return registry.cliff_question(what, Overrides({**WITH_FLAGS, **lists})).trials


def by_model(requested: Sequence[Trial], shift: int = 0,
             sysctls: Mapping[str, str] = MappingProxyType({})) -> Mapping[Trial, Record]:
    """Records with the round trips that the model computes.

    shift: by how many bytes a chain is larger than its trial says, or smaller if below 0.
    """
    found = {}
    for trial in requested:
        size = max(400, trial.chain_bytes + shift) if trial.chain_bytes else 0
        prediction = predict(computed(replace(trial, chain_bytes=size), sysctls))
        found[trial] = replace(GOOD, trial=trial,
                               handshake_round_trips=prediction.handshake_round_trips,
                               response_round_trips=prediction.response_round_trips)
    return found


def early(some: Sequence[Trial]) -> Mapping[Trial, Record]:
    """Records of curl with early data, under a client's window of ten segments.

    A hello of 554 bytes and early data in a record with 22 bytes around it leave in writes of
    4096 bytes. So the first three segments end with the first write.
    """
    found = {}
    for trial in some:
        sent_bytes = 554 + trial.early_data_bytes + 22
        segments = -(-sent_bytes // 1448)
        if sent_bytes > 4096:
            segments = 3 + -(-(sent_bytes - 4096) // 1448)
        found[trial] = replace(GOOD, trial=trial, request_segments=segments,
                               request_round_trips=2 if segments > 10 else 1)
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


def _lines(what: str, cliffs: Any, sysctls: Mapping[str, str] = MappingProxyType({})) -> list[str]:
    """What is told of the cliffs of a search; what: it searched for."""
    lines = [line for cliff in cliffs
             for line in cliff_findings.sentences(what, cliff, sysctls=sysctls)]
    return [*lines, *cliff_findings.besides(what, cliffs)]


# Users --------------------------------------------------------------------------------

COUNT = 200  # users


def found_users(saved_ms: Any, again: float = 0.0, segments: float = 40.0) -> Measured:
    """Users whose transfers take 300 ms with a window of 10, and less with one of 32.

    saved_ms: with 32, of all users or of each. again: retransmissions of each with 32. segments:
    of each response.
    """
    base_ms = numpy.full(COUNT, 300.0)
    zero = numpy.zeros(COUNT)
    return Measured(
        total_ms={10: base_ms, 32: base_ms - saved_ms}, retransmitted={10: zero, 32: zero + again},
        queue_drops={10: zero, 32: zero}, weight=numpy.ones(COUNT),
        group=numpy.zeros(COUNT, dtype=int), segments=numpy.full(COUNT, segments), excluded=0,
        user=numpy.arange(COUNT))


def spread(low: float, high: float) -> Any:
    """A value for each user, evenly from `low` to `high`."""
    return numpy.linspace(low, high, COUNT)


def three_windows(again: float = 0.0) -> Measured:
    """Users with three windows: 20 saves 22 to 42 ms against 10, and 32 saves 4 ms more.

    again: retransmissions of each with 32.
    """
    one = found_users(spread(26, 46))
    zero = numpy.zeros(COUNT)
    return replace(one, total_ms={**one.total_ms, 20: one.total_ms[32] + 4.0},
                   retransmitted={10: zero, 20: zero, 32: zero + again},
                   queue_drops={10: zero, 20: zero, 32: zero})


def recommended(initcwnd: str = "10, 32", assumed: str = "assumed_kbps = 9000",
                saves: Mapping[float, int] = MappingProxyType({}), harmed: str = "") -> Answer:
    """The answer for three users, whose transfers take three round trips, or fewer, or more.

    initcwnd: the windows measured. assumed: more keys of [users], in TOML. saves: by bandwidth
    (kbit/s) the least window with two round trips. harmed: the part in which a window of 32 takes
    six round trips.
    """
    text = FEW_USERS.replace("[10, 32]", f"[{initcwnd}]").replace("groups", f"{assumed}\ngroups")

    def round_trips(trial: Any) -> int:
        if (trial.part, trial.initcwnd) == (harmed, 32):
            return 6
        return 2 if trial.initcwnd >= saves.get(trial.bandwidth_kbps, 99) else 3

    (answer_found,) = _users_answers(text, round_trips)
    return answer_found


def of_options(saves: Mapping[tuple[str, str], int], unknown: str = "") -> Answer:
    """The answer for three users, measured with CUBIC and with BBR.

    saves: by part and congestion control the least window with two round trips instead of three.
    unknown: more keys of [users], in TOML.
    """
    text = FEW_USERS.replace('"cubic"', '["cubic", "bbr"]').replace(
        "[10, 32]", "[10, 20, 32]").replace("groups", f"{unknown}\ngroups")

    def round_trips(trial: Any) -> int:
        least = saves.get((trial.part, trial.congestion_control), 99)
        return 2 if trial.initcwnd >= least else 3

    return _users_answers(text, round_trips)[0]


def _users_answers(text: str, round_trips: Callable[[Any], int]) -> list[Answer]:
    """The answer of each finding on users. round_trips: how many a trial of the scenario takes."""
    study = KIND.study(parse("users_of_x", text))
    records = [Record(trial, True, total_ms=trial.rtt_ms * round_trips(trial), retransmissions=0,
                      queue_drops=0, verdict="pass") for trial in study.trials]
    findings, _ = users_findings(study.scenario, study.scenario.users, records)
    answers = [finding.answer for finding in findings if finding.answer is not None]
    assert findings[0].answer is not None
    return answers


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
    """Pages in several settings, which differ by their queue, under two windows each.

    pages_ms: for each setting the time of each repeat with 10 segments; 3 always take 300 ms.
    window: the larger window of the last setting, in place of 10.
    """
    found = []
    for queue_packets, times_ms in enumerate(pages_ms, start=1):
        windows = (3, window if queue_packets == len(pages_ms) else 10)
        for repeat, page_ms in enumerate(times_ms, start=1):
            for record, took_ms, initcwnd in zip(stored_page.two(), (300.0, page_ms), windows):
                trial = replace(record.trial, queue_packets=queue_packets, repeat=repeat,
                                initcwnd=initcwnd)
                found.append(replace(record, page_ms=took_ms, trial=trial))
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
        measured = page_analysis.group_settings(records)
        notes_of_first = [note for setting in measured[:1]
                          for note in page_sentences.notes(setting, "")]
        yield f"page: {name}", [
            page_sentences.sentence(measured, page_analysis.labels(measured, {})), *notes_of_first]


def browsed_pages() -> list[PageRecord]:
    """A page in a browser under 4 and 10 segments."""
    with patch.object(site_store, "folder", lambda: stored_browsed.SITES):
        one = stored_browsed.load("http2").judge()
    return [one, replace(one, page_ms=700.0, not_recorded=2,
                         trial=replace(one.trial, initcwnd=10))]


def browsed_phases() -> list[PageRecord]:
    """Eight loads under each of 4 and 10 segments; the largest paint waits for the next frame.

    It is painted at 600 ms or later under 4 segments, and at 700 ms or later under 10.
    """
    waits_ms = (3.0, 14.0, 6.0, 2.0, 10.0, 16.0, 5.0, 11.0)  # less than a frame of 16.7 ms
    return [replace(page, largest_paint_ms=600.0 + 100 * place + wait_ms,
                    page_ms=(page.page_ms or 0.0) + wait_ms / 1000,
                    trial=replace(page.trial, repeat=repeat))
            for place, page in enumerate(browsed_pages())
            for repeat, wait_ms in enumerate(waits_ms, 1)]


def drawn_pages(*by_window: tuple[float, ...]) -> list[PageRecord]:
    """Pages in one setting under 3, 10, 25 and 40 segments, as far as times are given.

    by_window: for each window the time of each repeat. From the second repeat on the RTT is drawn.
    """
    one = stored_page.two()[0]
    return [replace(one, page_ms=page_ms, trial=replace(
        one.trial, initcwnd=window, repeat=repeat,
        drawn_rtt_ms=None if repeat == 1 else one.trial.rtt_ms))
        for window, times_ms in zip((3, 10, 25, 40), by_window)
        for repeat, page_ms in enumerate(times_ms, 1)]


# Traces -------------------------------------------------------------------------------

def answer_of_think_times(times: Mapping[float, Mapping[int, float]]) -> str:
    """The sentence that says after which think times a larger window is faster.

    times: by think time in s, and by window in segments, the latency in ms.
    """
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
        yield f"think times: {name}", [answer_of_think_times(times)]
    for name, metric in METRICS.items():
        yield f"trace: {name}", [metric.words(value) + metric.when(2.5)
                                 for value in (1, 2.5, 99.6, INFINITE)]
