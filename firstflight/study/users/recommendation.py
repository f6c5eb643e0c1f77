"""The findings on a sample of users: the window for all and for each group, and how to set it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy

from firstflight.base.words import format_interval, format_number, plain
from firstflight.findings.charts import Line, LineChart, Plot
from firstflight.findings.findings import (Answer, Cell, Column, Finding, Interval, Statement,
                                           Table)
from firstflight.net.queue_length import AUTO, LEAST_AUTO_PACKETS
from firstflight.study.users import analysis, varied, window_commands
from firstflight.study.users.analysis import PERCENTILES, Measured, Outcome, Recommendation
from firstflight.study.users.varied import ALL, FEW_USERS, OTHERS, Choice
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.scenario.scenario import Scenario
from firstflight.workloads.fetch.scenario.users import PART, Option, UserSample

# The distance between the points of two groups, as a share of that between windows.
ASIDE = 0.06
FEWEST_USERS = 20  # that a first answer needs
LEAST_MEDIAN_MS, MOST_MEDIAN_MS = 0.5, 3000.0  # plausible median RTTs of users on the Internet
MOST_DRAWN_GROUPS = 6  # the table has all groups
MOST_NAMED_GROUPS = 6  # in a sentence
NO_OPTION: Option = MappingProxyType({})
HOW_TO_SET = ("To set it now; IPv6, how to keep it, what to watch and how to undo it: see"
              " docs/QUESTIONS.md or the page:")
RULE = (f"The smallest window whose mean is within {100 * analysis.NOISE_SHARE:g} % of the"
        " best, or differs from it by less than the interval; and whose p99 is at most"
        f" {100 * analysis.MOST_P99_SHARE:g} % longer than the baseline's, with at most"
        f" {analysis.MOST_RETRANSMITTED_POINTS:g} points more of segments retransmitted. Where"
        " no window saves more than its interval, the baseline stays. It has to hold with each"
        " other value of what the file does not say; where none does, none is recommended.")


def recommended(scenario: Scenario, users: UserSample, records: Sequence[Record],
                option: Option = NO_OPTION) -> tuple[Finding, Mapping[str, Choice]]:
    """The finding on the users with one option, and the choice for all and for each group.

    option: the values of what the operator chooses; NO_OPTION where nothing has several values.
    The choices are {} where no user counts.
    """
    name = "_".join(("windows", *map(_in_a_name, option.values())))
    title = f"Which window for these users{_with(option)}"
    records = varied.with_option(records, option)
    choices = varied.choices(users, records)
    if not choices:
        return Finding(name, title, missing="no user counts under every window"), {}
    measured = analysis.measured(users, records)
    advised = {name: choice.whole for name, choice in choices.items()}
    whole = choices[ALL]

    windows = windows_of(choices)
    commands = window_commands.commands(windows, users.baseline_initcwnd)
    outcomes = _outcomes_table(advised)
    tables = [outcomes, _choice_table(users, choices)]
    if len(whole.advice) > 1:
        tables.append(_conditions_table(users, whole))
    if commands:
        tables.append(window_commands.table(windows, users.baseline_initcwnd))

    sentence = f"{scenario.head.source}. {choice_in_words(users, whole)}"
    unsaid, edge = varied.remarks(users, whole), _hint_at_larger_window(users, whole)
    statements = [Statement("Which window?", sentence)]
    if unsaid:
        statements.append(Statement("What does the file not say?", " ".join(unsaid)))
    if edge:
        statements.append(Statement("Is the list of windows long enough?", edge))
    statements += [
        Statement("By which rule?", RULE),
        Statement("What cannot change?",
                  f"{format_number(whole.whole.fits_percent)} % of the responses fit in"
                  f" {users.baseline_initcwnd} segments: a larger window does nothing for them."),
        Statement("What was assumed?", _assumed(scenario, users, option))]

    notes = (*doubts(users), *unsaid, *_groups_apart(choices), edge, _exclusion(measured),
             HOW_TO_SET if commands else "")
    table = outcomes if len(advised) == 1 else _by_users(choices)
    answer = Answer(sentence, table, tuple(filter(None, notes)), "\n".join(commands))
    chart = None
    if len(users.initcwnd) > 1:
        chart = _chart(scenario, users, choices, measured, option)
    finding = Finding(name, title, tuple(tables), tuple(statements), chart=chart, answer=answer)
    return finding, choices


def in_words(option: Option) -> str:
    """An option in words: "kernel mine, bbr"; "" for none."""
    heads = {"kernel": "kernel ", "module_parameter": "module parameter "}
    return ", ".join(f"{heads.get(name, '')}{value}" for name, value in option.items())


def _with(option: Option) -> str:
    return f", with {in_words(option)}" if option else ""


def _in_a_name(value: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", value.lower()).strip("_")


def windows_of(choices: Mapping[str, Choice]) -> dict[str, int | None]:
    """The window for all users and for each group; None where none holds."""
    return {name: choice.initcwnd for name, choice in choices.items()}


def first_answer(users: UserSample, records: Sequence[Record]) -> str:
    """The recommendation from the users measured so far; "" while they are too few."""
    measured = analysis.measured(users, varied.with_option(records, users.options[0]))
    if len(measured.weight) < FEWEST_USERS or len(users.initcwnd) == 1:
        return ""
    chosen = analysis.recommend(measured, users.baseline_initcwnd)
    absolute = chosen.outcome(chosen.initcwnd).saved.absolute
    saved = (f", which saves {absolute.value:.1f} ms (95 % interval"
             f" {format_interval(absolute.interval)} ms)"
             if absolute.sign else f": {chosen.why}")
    unsaid = ", and then what the file does not say is varied" if len(users.parts) > 1 else ""
    return (f"so far, by {chosen.users} of {len(users.rtt_ms)} rows{_with(users.options[0])}:"
            f" {chosen.initcwnd} segments{saved}; more are measured{unsaid}")


def choice_in_words(users: UserSample, whole: Choice) -> str:
    """The recommendation in a sentence; with a single window there is nothing to recommend."""
    if len(users.initcwnd) == 1:
        only = users.initcwnd[0]
        return (f"Nothing can be recommended: {only} is the only window that was measured."
                f" Compare several: --iw {only},{2 * only},{4 * only}.")
    if whole.initcwnd is None:
        first = whole.whole.initcwnd
        does = "keep" if first == users.baseline_initcwnd else "set"
        return (f"No window holds for all of them, as {_why_none(whole)}. As measured, the rule"
                f" would {does} {first} segments: {whole.whole.why}.")
    does = "keep" if whole.initcwnd == users.baseline_initcwnd else "set"
    return f"For all of them {does} {whole.initcwnd} segments: {whole.why}."


def _why_none(whole: Choice) -> str:
    """Why no window holds."""
    return "what the file does not say decides" if whole.deciding else "each one harms a group"


def _groups_apart(choices: Mapping[str, Choice]) -> list[str]:
    """A sentence on the groups that need another window, and cannot have it by a route.

    [] where there are none. A route needs a prefix, by which these groups are not named.
    """
    everybody = choices[ALL].initcwnd
    apart = [f"{name} ({choice.initcwnd or 'no window holds'})" for name, choice in choices.items()
             if choice.initcwnd != everybody and everybody not in choice.holding
             and not window_commands.is_prefix(name)]
    if not apart:
        return []
    named = ", ".join(apart[:MOST_NAMED_GROUPS])
    more = ""
    if len(apart) > MOST_NAMED_GROUPS:
        more = f" and {len(apart) - MOST_NAMED_GROUPS} more"
    return [f"Groups that need another window: {named}{more}. A route is for addresses: name"
            " the groups by their prefixes, such as 192.0.2.0/24."]


def _hint_at_larger_window(users: UserSample, whole: Choice) -> str:
    """A hint that a still larger window may be better; "" unless the largest one was chosen."""
    largest = max(users.initcwnd)
    if whole.initcwnd != largest or len(users.initcwnd) == 1 or largest == users.baseline_initcwnd:
        return ""
    windows = ",".join(map(str, (users.baseline_initcwnd, largest, 2 * largest, 4 * largest)))
    return (f"{largest} is the largest window measured, so a still larger one may be better: try"
            f" --iw {windows}.")


def doubts(users: UserSample) -> list[str]:
    """Sentences on why the answer is doubtful; [] if it is not.

    It is doubtful with few users, and with RTTs that no path of the Internet has.
    """
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


def _assumed(scenario: Scenario, users: UserSample, option: Option) -> str:
    """The assumptions on the users that are not from the file, in a sentence."""
    fields = {**users.template.fields, **option}
    length = users.template.lists["queue"][0]
    uplink_kbps = users.template.lists["uplink_kbps"][0]
    if length == AUTO:
        holds = f"one bandwidth-delay product, at least {LEAST_AUTO_PACKETS} packets"
    else:
        holds = f"{length} packets" if length.isdigit() else length

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


# Tables ------------------------------------------------------------------------------

def _outcomes_table(advised: Mapping[str, Recommendation]) -> Table:
    """What each window does to each group of users."""
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

    rows: list[tuple[Cell, ...]] = []
    for name, advice in advised.items():
        for outcome in advice.outcomes:
            rows.append((
                name, outcome.initcwnd, outcome.mean_ms, *outcome.percentiles_ms,
                *_saved(outcome), outcome.gain_percent, outcome.lose_percent,
                outcome.retransmitted_percent, outcome.queue_drops))
    return Table("", columns, tuple(rows))


def _saved(outcome: Outcome) -> tuple[float | str | Interval, ...]:
    """The saving of the mean, its interval, and its percentage.

    Each is "" for the baseline, which would be compared with itself.
    """
    absolute = outcome.saved.absolute
    if absolute.interval is None or absolute.interval == (0.0, 0.0):
        return "", "", ""
    return absolute.value, Interval(*absolute.interval), outcome.saved.percent.value


def _choice_table(users: UserSample, choices: Mapping[str, Choice]) -> Table:
    """The window for each group, and why. A note names the groups of which no user counts."""
    rows: list[tuple[Cell, ...]] = []
    for name, choice in choices.items():
        why = choice.why if choice.initcwnd is not None else "no window holds"
        rows.append((name, choice.whole.users, _window(choice), why))

    notes: tuple[str, ...] = ()
    groups = [name or OTHERS for name in users.groups]
    lost = [name for name in groups if name not in choices]
    if lost and len(groups) > 1:
        notes = (f"No user of these groups counts under every window: {', '.join(lost)}.",)
    return Table(
        "The choice", (Column("users", is_text=True), Column("measured"), Column("IW"),
                       Column("why", is_text=True)), tuple(rows), notes)


def _window(choice: Choice) -> Cell:
    return "" if choice.initcwnd is None else choice.initcwnd


def _conditions_table(users: UserSample, whole: Choice) -> Table:
    """What the rule chooses for all users, and which windows hold, under each condition."""
    rows: list[tuple[Cell, ...]] = []
    for part, advice in whole.advice.items():
        condition = "as measured" if part == PART else varied.condition_in_words(part, users)
        holding = ", ".join(map(str, sorted(advice.holding)))
        rows.append((condition, advice.initcwnd, holding, advice.why))
    return Table(
        "With what the file does not say",
        (Column("condition", is_text=True), Column("IW"), Column("holding", is_text=True),
         Column("why", is_text=True)), tuple(rows))


def _by_users(choices: Mapping[str, Choice]) -> Table:
    """The window for each group, and what it saves."""
    rows: list[tuple[Cell, ...]] = []
    for name, choice in choices.items():
        saved = (("", "", "") if choice.initcwnd is None else
                 _saved(choice.whole.outcome(choice.initcwnd)))
        rows.append((name, choice.whole.users, _window(choice), *saved))
    return Table("", (
        Column("users", is_text=True), Column("measured"), Column("IW"),
        Column("mean", "ms", "saved", signed=True), Column("95 % interval", "ms", "saved", rank=2),
        Column("mean", "%", "saved", signed=True)), tuple(rows))


# The figure --------------------------------------------------------------------------

def _chart(scenario: Scenario, users: UserSample, choices: Mapping[str, Choice],
           measured: Measured, option: Option) -> LineChart:
    """The mean saving and the 99th percentile by window, a line for each group.

    Above them stands what the rule chooses: the lines alone would suggest the window that is best
    as measured, which may not hold under other conditions.
    """
    shown = {name: choice.whole for name, choice in list(choices.items())[:MOST_DRAWN_GROUPS]}
    whole = choices[ALL]
    chosen = (f"The rule chooses {whole.initcwnd} segments." if whole.initcwnd is not None else
              f"No window holds: {_why_none(whole)}.")
    windows = sorted(users.initcwnd)
    ticks = tuple((float(place), str(window)) for place, window in enumerate(windows))

    saved, tails = [], []
    for look, (name, advice) in enumerate(shown.items()):
        aside = (look - (len(shown) - 1) / 2) * ASIDE  # the middle group stands at the tick
        places = tuple(place + aside for place, _ in ticks)
        estimates = [outcome.saved.absolute for outcome in advice.outcomes]
        saved.append(Line(name, places, tuple(estimate.value for estimate in estimates),
                          tuple(estimate.interval for estimate in estimates), look=look))
        tails.append(Line(name, places, tuple(outcome.p99_ms for outcome in advice.outcomes),
                          look=look))

    excluded = ""
    if measured.excluded:
        plural = "" if measured.excluded == 1 else "s"
        excluded = f"{measured.excluded} user{plural} excluded: a verdict failed"
    saving = Plot("initial window (segments)",
                  f"mean saving against {users.baseline_initcwnd} (ms)", tuple(saved),
                  ticks=ticks, zero=True)
    tail = Plot("initial window (segments)", "99th percentile (ms)", tuple(tails), ticks=ticks)
    return LineChart(
        f"{scenario.head.title.removesuffix('?')}{_with(option)}?", (scenario.head.source, chosen),
        f"bars: 95 % intervals over {len(measured.weight)} users, the same under each window",
        excluded, columns=((saving,), (tail,)),
        legend=len(shown) > 1)
