"""The findings on a sample of users: the window for all and for each group, and how to set it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy

from firstflight.base.words import format_interval, format_number, plain
from firstflight.findings.charts import Line, LineChart, Plot
from firstflight.findings.findings import (Answer, Cell, Column, Finding, Interval, Statement,
                                           Table, Tile)
from firstflight.net.queue_length import AUTO, LEAST_AUTO_PACKETS
from firstflight.study.fetches.record import Record
from firstflight.study.fetches.scenario.scenario import Scenario
from firstflight.study.fetches.scenario.users import PART, SCALES, UserSample
from firstflight.study.users import analysis, window_commands
from firstflight.study.users.analysis import PERCENTILES, Measured, Outcome, Recommendation

ALL, OTHERS = "all", "without a group"
ASIDE = 0.06  # of the distance between windows: groups stand next to each other
FEWEST_USERS = 20  # for a first answer
FEW_USERS = 30  # with fewer users the answer has a warning
LEAST_MEDIAN_MS, MOST_MEDIAN_MS = 0.5, 3000.0  # plausible median RTTs of users on the Internet
MOST_GROUPS = 6  # in the figure; the table has all groups
RULE = (f"The smallest window whose mean is within {100 * analysis.NOISE_PART:g} % of the"
        " best, or differs from it by less than the interval; and whose p99 is at most"
        f" {100 * analysis.WORST_P99_PART:g} % longer than the baseline's, with at most"
        f" {analysis.WORST_RETRANSMITTED_POINTS:g} points more of segments retransmitted. Where"
        " no window saves more than its interval, the baseline stays.")


def users_findings(scenario: Scenario, users: UserSample,
                   records: Sequence[Record]) -> tuple[list[Finding], tuple[Tile, ...]]:
    """The finding on the users, and the tile with the recommended window."""
    title = "Which window for these users"
    measured = analysis.measured(users, records)
    if not len(measured.weight):
        return [Finding("windows", title, missing="no user counts under every window")], ()
    advised = {ALL: analysis.recommend(measured, users.baseline_initcwnd)}
    if len(users.groups) > 1:
        advised |= _by_group(users, measured)
    whole = advised[ALL]
    keeps = whole.initcwnd == users.baseline_initcwnd
    sentence = f"{scenario.head.source}. {_choice(users, whole)}"
    depends = _depends(users, records, whole)
    edge = _edge(users, whole)
    commands = [] if keeps and len(set(_chosen(advised))) == 1 else [
        window_commands.table(whole.initcwnd, ((name, advice.initcwnd)
                                               for name, advice in advised.items()))]
    outcomes, choices = _outcomes_table(advised), _choice_table(users, advised)
    notes = (*_doubts(users), depends, edge, _exclusion(measured),
             "" if keeps else "To set it now; IPv6, how to keep it and how to undo it: see"
             " docs/QUESTIONS.md or the page:")
    finding = Finding(
        "windows", title,
        (outcomes, choices, *commands),
        (Statement("Which window?", sentence),
         *([Statement("What does the assumed bandwidth decide?", depends)] if depends else []),
         *([Statement("Is the list of windows long enough?", edge)] if edge else []),
         Statement("By which rule?", RULE),
         Statement("What cannot change?",
                   f"{format_number(whole.fits_percent)} % of the responses fit in"
                   f" {users.baseline_initcwnd} segments: a larger window does nothing for them."),
         Statement("What was assumed?", _assumed(scenario, users))),
        chart=_chart(scenario, users, advised, measured) if len(users.initcwnd) > 1 else None,
        answer=Answer(sentence, outcomes if len(advised) == 1 else _by_users(advised),
                      tuple(filter(None, notes)),
                      "" if keeps else window_commands.set_now(whole.initcwnd)))
    return [finding], (Tile(f"{whole.initcwnd} segments", "the window that the rule chooses"),)


def first_answer(users: UserSample, records: Sequence[Record]) -> str:
    """The recommendation from the users measured so far; "" while they are too few."""
    measured = analysis.measured(users, records)
    if len(measured.weight) < FEWEST_USERS or len(users.initcwnd) == 1:
        return ""
    chosen = analysis.recommend(measured, users.baseline_initcwnd)
    best = next(outcome for outcome in chosen.outcomes if outcome.initcwnd == chosen.initcwnd)
    absolute = best.saved.absolute
    saved = (f", which saves {absolute.value:.1f} ms (95 % interval"
             f" {format_interval(absolute.interval)} ms)"
             if absolute.sign else f": {chosen.why}")
    return (f"so far, by {chosen.users} of {len(users.rtt_ms)} rows: {chosen.initcwnd}"
            f" segments{saved}; more are measured")


def _choice(users: UserSample, whole: Recommendation) -> str:
    """The recommendation in a sentence; with a single window there is nothing to recommend."""
    if len(users.initcwnd) == 1:
        only = users.initcwnd[0]
        return (f"Nothing can be recommended: {only} is the only window that was measured."
                f" Compare several: --iw {only},{2 * only},{4 * only}.")
    does = "keep" if whole.initcwnd == users.baseline_initcwnd else "set"
    return f"For all of them {does} {whole.initcwnd} segments: {whole.why}."


def _depends(users: UserSample, records: Sequence[Record], whole: Recommendation) -> str:
    """The recommendation with half and with twice an assumed bandwidth; "" if none is assumed."""
    others = {}
    for part in users.parts:
        measured = analysis.measured(users, records, part)
        if part != PART and len(measured.weight):
            others[SCALES[part] * (users.assumed_kbps or 0)] = analysis.recommend(
                measured, users.baseline_initcwnd).initcwnd
    if not others or users.assumed_kbps is None or len(users.initcwnd) == 1:
        return ""
    assumed = f"{plain(users.assumed_kbps)} kbit/s is an assumption, not from the file"
    if set(others.values()) == {whole.initcwnd}:
        return (f"The bandwidth of {assumed}. The choice is the same from {plain(min(others))} to"
                f" {plain(max(others))} kbit/s.")
    chosen = " and ".join(f"{window} with {plain(kbps)} kbit/s"
                          for kbps, window in sorted(others.items()))
    return (f"The bandwidth of {assumed}, and it decides: the rule chooses {chosen}. Find out what"
            " bandwidth your users have.")


def _edge(users: UserSample, whole: Recommendation) -> str:
    """A hint that a still larger window may be better; "" unless the largest one is the best."""
    largest = max(users.initcwnd)
    if whole.initcwnd != largest or len(users.initcwnd) == 1 or largest == users.baseline_initcwnd:
        return ""
    windows = ",".join(map(str, (users.baseline_initcwnd, largest, 2 * largest, 4 * largest)))
    return (f"{largest} is the largest window measured, so a still larger one may be better: try"
            f" --iw {windows}.")


def _doubts(users: UserSample) -> list[str]:
    """Why the answer is doubtful: too few users, or RTTs of no Internet path."""
    doubts = []
    if len(users.rtt_ms) < FEW_USERS:
        doubts.append(f"Only {len(users.rtt_ms)} different users were measured: that is too few for"
                      f" a recommendation ({FEW_USERS} or more).")
    median_ms = float(numpy.median(numpy.repeat(users.rtt_ms, users.times)))
    if not LEAST_MEDIAN_MS <= median_ms <= MOST_MEDIAN_MS:
        doubts.append("No Internet path has a median round trip of"
                      f" {format_number(median_ms, 2)} ms: is this field the RTT,"
                      " and in this unit?")
    return doubts


def _exclusion(measured: Measured) -> str:
    """A sentence on how many users of the sample do not count; "" where all do."""
    return (f"{measured.excluded} of the sample excluded: a trial of theirs does not count."
            if measured.excluded else "")


def _assumed(scenario: Scenario, users: UserSample) -> str:
    """The assumptions on the users that are not from the file, in a sentence."""
    fields = users.template.fields
    length = users.template.lists["queue"][0]
    (uplink_kbps, *_) = users.template.lists["uplink_kbps"]
    holds = (f"one bandwidth-delay product, at least {LEAST_AUTO_PACKETS} packets"
             if length == AUTO else f"{length} packets" if length.isdigit() else length)
    network = [f"the bottleneck's queue holds {holds} ({fields['qdisc']})",
               "the uplink is as fast as the downlink" if uplink_kbps is None else
               f"the uplink has {plain(uplink_kbps)} kbit/s",
               f"{plain(fields['loss_percent'])} % of packets are lost at random"]
    if fields['jitter_ms']:
        network.append(f"the delay varies by {plain(fields['jitter_ms'])} ms")
    connection = (f"after {fields['kept']} earlier responses on it" if fields['kept'] else
                  "on a new connection")
    return (f"{scenario.head.note}{'. ' if scenario.head.note else ''}Each user fetches once,"
            f" {connection}, alone on the link, by {fields['congestion_control']}, and offers a"
            f" receive window of {fields['initrwnd']} segments; {', '.join(network)}.")


def _by_group(users: UserSample, measured: Measured) -> dict[str, Recommendation]:
    """The recommendation for each group with users that count; the table names the others."""
    made = {}
    for place, name in enumerate(users.groups):
        own = measured.only(place)
        if len(own.weight):
            made[name or OTHERS] = analysis.recommend(own, users.baseline_initcwnd)
    return made


def _chosen(advised: dict[str, Recommendation]) -> list[int]:
    return [advice.initcwnd for advice in advised.values()]


# Tables ------------------------------------------------------------------------------

def _outcomes_table(advised: dict[str, Recommendation]) -> Table:
    columns = (
        Column("users", is_text=True, is_filter=True), Column("IW"),
        Column("mean", "ms", "time to the last byte"),
        *(Column(f"p{percent}", "ms", "time to the last byte") for percent in PERCENTILES),
        Column("mean", "ms", "saved", signed=True), Column("95 % interval", "ms", "saved"),
        Column("mean", "%", "saved", signed=True),
        Column("faster", "% of users", rank=3),
        Column("slower", "% of users", rank=3),
        Column("retransmitted", "% of segments", digits=2, rank=2),
        Column("queue drops", "a user", digits=2, rank=1))
    return Table("", columns, tuple(
        (name, outcome.initcwnd, outcome.mean_ms, *outcome.percentiles_ms,
         *_saved(outcome), outcome.gain_percent, outcome.lose_percent,
         outcome.retransmitted_percent, outcome.queue_drops)
        for name, advice in advised.items() for outcome in advice.outcomes))


def _saved(outcome: Outcome) -> tuple[float | str | Interval, ...]:
    """What a window saves; "" for the baseline, which would be compared with itself."""
    absolute = outcome.saved.absolute
    if absolute.interval is None or absolute.interval == (0.0, 0.0):
        return "", "", ""
    return absolute.value, Interval(*absolute.interval), outcome.saved.percent.value


def _choice_table(users: UserSample, advised: dict[str, Recommendation]) -> Table:
    lost = [name or OTHERS for name in users.groups if (name or OTHERS) not in advised]
    notes = (f"No user of these groups counts under every window: {', '.join(lost)}.",)
    return Table(
        "The choice", (Column("users", is_text=True), Column("measured"), Column("IW"),
                       Column("why", is_text=True)),
        tuple((name, advice.users, advice.initcwnd, advice.why)
              for name, advice in advised.items()),
        notes if lost and len(users.groups) > 1 else ())


def _by_users(advised: dict[str, Recommendation]) -> Table:
    """What the rule chooses for each group, and what that saves."""
    rows: list[tuple[Cell, ...]] = []
    for name, advice in advised.items():
        chosen = next(outcome for outcome in advice.outcomes
                      if outcome.initcwnd == advice.initcwnd)
        rows.append((name, advice.users, advice.initcwnd, *_saved(chosen)))
    return Table("", (
        Column("users", is_text=True), Column("measured"), Column("IW"),
        Column("mean", "ms", "saved", signed=True), Column("95 % interval", "ms", "saved", rank=2),
        Column("mean", "%", "saved", signed=True)), tuple(rows))


# The figure --------------------------------------------------------------------------

def _chart(scenario: Scenario, users: UserSample, advised: dict[str, Recommendation],
           measured: Measured) -> LineChart:
    """Mean saving and 99th percentile by window, a line for each group."""
    shown = dict(list(advised.items())[:MOST_GROUPS])
    windows = sorted(users.initcwnd)
    ticks = tuple((float(place), str(window)) for place, window in enumerate(windows))

    def places(look: int) -> tuple[float, ...]:
        return tuple(place + (look - (len(shown) - 1) / 2) * ASIDE for place, _ in ticks)

    saved = tuple(Line(name, places(look),
                       tuple(outcome.saved.absolute.value for outcome in advice.outcomes),
                       tuple(outcome.saved.absolute.interval for outcome in advice.outcomes),
                       look=look)
                  for look, (name, advice) in enumerate(shown.items()))
    tails = tuple(Line(name, places(look), tuple(outcome.p99_ms for outcome in advice.outcomes),
                       look=look) for look, (name, advice) in enumerate(shown.items()))
    return LineChart(
        scenario.head.title, (scenario.head.source,),
        f"bars: 95 % intervals over {len(measured.weight)} users, the same under each window",
        (f"{measured.excluded} user{'' if measured.excluded == 1 else 's'} excluded: a verdict"
         " failed"
         if measured.excluded else ""),
        columns=((Plot("initial window (segments)",
                       f"mean saving against {users.baseline_initcwnd} (ms)", saved, ticks=ticks,
                       zero=True),),
                 (Plot("initial window (segments)", "99th percentile (ms)", tails,
                       ticks=ticks),)),
        legend=len(shown) > 1)
