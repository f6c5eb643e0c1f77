"""Reads and checks scenarios of kind "trace"; lab.trace tells what stands in them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from lab.errors import UsageError
from lab.scenario import FLAGS, SCENARIOS, Overrides
from lab.toml_file import (QUANTITIES, Quantity, claim_line, congestion_control_name,
                           file_name_of, known_keys, nearest, number_of, one_of, plain,
                           read_toml, sysctls_of, table_of, tables_of, text_of, value_of)
from lab.trace.scenario import (EACH_THINK, Claim, Curve, Figure, Request, Schedule, Tcp,
                                Trace, TraceScenario, Write)

SCENARIO_KEYS = ("kind", "title", "source", "note", "sysctls", "defaults", "tcp", "schedule",
                 "trace", "figure", "claim")
DEFAULT_KEYS = ("rtt_ms", "bandwidth_kbps", "uplink", "queue_packets", "initcwnd", "mss",
                "receive_window", "rto_min_ms", "quickack", "nagle", "sample_ms", "outage_ms",
                "may_lose")
TRACE_KEYS = ("name", "title", "schedule", "tcp", "think_s") + DEFAULT_KEYS
TCP_KEYS = ("name", "title", "congestion_control", "validation", "sysctls")
SCHEDULE_KEYS = ("name", "writes", "requests")
WRITE_KEYS = ("at_s", "until_s", "every_s", "bytes", "segments")
REQUEST_KEYS = ("bytes", "think_s")
FIGURE_KEYS = ("name", "title", "kind", "curves", "from_s", "to_s", "rtt")
FIGURE_KINDS = ("window", "warm")
CLAIM_KEYS = tuple(column.name for column in fields(Claim))
RELATIONS = ("larger", "smaller", "equal", "percent_smaller", "is")
# lab.trace.findings measures them; their units are its own.
METRICS = ("window", "ssthresh", "burst", "finish_s", "lasts_s", "retransmissions", "lost",
           "timeouts", "rtt_ms", "longest_rtt_ms", "largest_window")

SEGMENT_BYTES = 1448  # of a write that counts in segments, unless the trace has another MSS
NUMBERS = {
    "mss": Quantity("a segment", "bytes", 88, 1448, whole=True),
    "receive_window": Quantity("a receive window", "segments", 0, 1000, whole=True),
    "rto_min_ms": Quantity("a least timeout", "ms", 0, 60_000, whole=True),
    "sample_ms": Quantity("an interval", "ms", 0.05, 60_000),
    "time_s": Quantity("a time", "s", 0, 86_400),
    "every_s": Quantity("an interval", "s", 0.0001, 86_400),
    "bytes": Quantity("a size", "bytes", 1, 2**30, whole=True),
    "segments": Quantity("a size", "segments", 1, 100_000, whole=True),
    "outage_ms": Quantity("a time", "ms", 0, 86_400_000),
    "at_s": Quantity("a time", "s", 0, 86_400),
    "published": Quantity("a published number", "", -1e9, 1e9),
    "within": Quantity("a tolerance", "", 0, 1e9),
}
MOST_WRITES = 50_000


def load(name: str, folder: Path = SCENARIOS) -> TraceScenario:
    """The scenario of one file, named like it. Raises UsageError."""
    text, raw = read_toml(folder / f"{name}.toml")
    return _scenario(name, raw, text, f"scenarios/{name}.toml")


def _scenario(name: str, raw: dict[str, Any], text: str, file: str) -> TraceScenario:
    known_keys(raw, SCENARIO_KEYS, file)
    defaults = table_of(raw, "defaults", file)
    known_keys(defaults, DEFAULT_KEYS, f"{file}: [defaults]")
    tcps = tuple(_tcp(table, where) for table, where in tables_of(raw, "tcp", "name", TCP_KEYS, file))
    tables = tables_of(raw, "schedule", "name", SCHEDULE_KEYS, file)
    traces = tuple(_trace({**defaults, **table}, tables, tcps, where) for table, where
                   in tables_of(raw, "trace", "name", TRACE_KEYS, file))
    if not traces:
        raise UsageError(f"{file}: has no [[trace]], so nothing to measure")
    figures = tuple(_figure(table, traces, where) for table, where
                    in tables_of(raw, "figure", "name", FIGURE_KEYS, file))
    return TraceScenario(
        name=name, title=text_of(raw, "title", file), claim=claim_line(text, file),
        source=text_of(raw, "source", file), text=text, sysctls=sysctls_of(raw, file, one_word=True), tcps=tcps,
        traces=traces, figures=figures, claims=tuple(
            _claim(table, traces, figures, where) for table, where
            in tables_of(raw, "claim", "says", CLAIM_KEYS, file)),
        note=text_of(raw, "note", file, ""))


def _tcp(table: dict[str, Any], where: str) -> Tcp:
    return Tcp(name=file_name_of(table, where), title=text_of(table, "title", where),
               congestion_control=congestion_control_name(
                   value_of(table, "congestion_control", where), where),
               validation=_flag(table, "validation", where), sysctls=tuple(
                   f"{key}={value}" for key, value in sysctls_of(table, where, one_word=True).items()))


def _flag(table: dict[str, Any], key: str, where: str, default: bool | None = None) -> bool:
    value = table.get(key, default) if default is not None else value_of(table, key, where)
    if not isinstance(value, bool):
        raise UsageError(f"{where}: {key} has to be true or false, it is {value!r}")
    return value


def _number(table: dict[str, Any], key: str, where: str, default: float | None = None,
            kind: str = "") -> Any:
    if key not in table and default is not None:
        return default
    return NUMBERS[kind or key].check(value_of(table, key, where), f"{where}: {key}")


# Schedules -------------------------------------------------------------------

def _schedule(table: dict[str, Any], where: str, segment_bytes: int) -> Schedule:
    name = file_name_of(table, where)
    if ("writes" in table) == ("requests" in table):
        raise UsageError(f"{where}: has to have either writes or requests")
    if "requests" in table:
        return Schedule(name, requests=tuple(
            _request(item, f"{where}: requests {number}") for number, item
            in _items(table, "requests", where)))
    writes: list[Write] = []
    for number, item in _items(table, "writes", where):
        place = f"{where}: writes {number}"
        write = _write(item, place, segment_bytes)
        if writes and write.at_s < writes[-1].last_s:
            raise UsageError(f"{place}: at_s: {plain(write.at_s)} s is before"
                             f" {plain(writes[-1].last_s)} s, where the write before it ends:"
                             " time goes backwards")
        writes.append(write)
    if sum(write.count for write in writes) > MOST_WRITES:
        raise UsageError(f"{where}: has more than {MOST_WRITES} writes")
    return Schedule(name, writes=tuple(writes))


def _items(table: dict[str, Any], key: str, where: str) -> list[tuple[int, dict[str, Any]]]:
    items = table[key]
    if not isinstance(items, list) or not items \
            or not all(isinstance(item, dict) for item in items):
        raise UsageError(f"{where}: {key} has to be a list of tables, such as"
                         " [{ at_s = 0.5, segments = 10 }]")
    return list(enumerate(items, start=1))


def _write(item: dict[str, Any], where: str, segment_bytes: int) -> Write:
    known_keys(item, WRITE_KEYS, where)
    if ("bytes" in item) == ("segments" in item):
        raise UsageError(f"{where}: has to have either bytes or segments")
    size_bytes = (_number(item, "bytes", where) if "bytes" in item
                  else _number(item, "segments", where) * segment_bytes)
    at_s = _number(item, "at_s", where, kind="time_s")
    if ("until_s" in item) != ("every_s" in item):
        raise UsageError(f"{where}: until_s and every_s go together")
    if "until_s" not in item:
        return Write(at_s, size_bytes)
    until_s = _number(item, "until_s", where, kind="time_s")
    if until_s <= at_s:
        raise UsageError(f"{where}: until_s: {plain(until_s)} s is not after at_s,"
                         f" {plain(at_s)} s: time goes backwards")
    return Write(at_s, size_bytes, until_s, _number(item, "every_s", where))


def _request(item: dict[str, Any], where: str) -> Request:
    known_keys(item, REQUEST_KEYS, where)
    think = item.get("think_s", 0)
    if think == EACH_THINK:
        return Request(_number(item, "bytes", where), None)
    return Request(_number(item, "bytes", where), _number(item, "think_s", where, 0.0, "time_s"))


# Traces ------------------------------------------------------------------------

def _trace(table: dict[str, Any], schedules: Sequence[tuple[dict[str, Any], str]],
           tcps: Sequence[Tcp], where: str) -> Trace:
    mss = _number(table, "mss", where, SEGMENT_BYTES)
    uplink = table.get("uplink", "same")
    wanted = text_of(table, "schedule", where)
    found = next(((other, place) for other, place in schedules if other.get("name") == wanted),
                 None)
    if found is None:
        known = [str(other.get("name")) for other, _ in schedules]
        raise UsageError(f"{where}: schedule: there is no [[schedule]] {wanted!r}"
                         f"{nearest(wanted, known)}; known: {', '.join(known) or 'none'}")
    schedule = _schedule(*found, mss)
    think_s = tuple(NUMBERS["time_s"].check(value, f"{where}: think_s")
                    for value in _list(table.get("think_s", []), f"{where}: think_s"))
    if bool(think_s) != any(request.think_s is None for request in schedule.requests):
        raise UsageError(f'{where}: think_s goes with a request of think_s = "{EACH_THINK}" in'
                         f" its schedule")
    return Trace(
        name=file_name_of(table, where), title=text_of(table, "title", where, ""),
        schedule=schedule, tcps=_tcp_names(table, tcps, where),
        rtt_ms=number_of(table, "rtt_ms", where),
        bandwidth_kbps=number_of(table, "bandwidth_kbps", where),
        uplink_kbps=None if uplink == "same" else number_of(table, "uplink", where),
        queue_packets=number_of(table, "queue_packets", where),
        initcwnd=_windows(table, where), mss=mss,
        receive_window=_number(table, "receive_window", where, 0),
        rto_min_ms=_number(table, "rto_min_ms", where, 0),
        quickack=_flag(table, "quickack", where, False),
        nagle=_flag(table, "nagle", where, False),
        sample_ms=_number(table, "sample_ms", where), outage_ms=_outage(table, where),
        think_s=think_s, may_lose=_flag(table, "may_lose", where, False))


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise UsageError(f"{where}: has to be a list, it is {value!r}")
    return value


def _windows(table: dict[str, Any], where: str) -> tuple[int, ...]:
    value = value_of(table, "initcwnd", where)
    values = value if isinstance(value, list) else [value]
    checked = tuple(int(QUANTITIES["initcwnd"].check(one, f"{where}: initcwnd"))
                    for one in values)
    if not checked or len(set(checked)) < len(checked):
        raise UsageError(f"{where}: initcwnd: has no value, or one twice")
    return checked


def _tcp_names(table: dict[str, Any], tcps: Sequence[Tcp], where: str) -> tuple[str, ...]:
    known = [tcp.name for tcp in tcps]
    names = _list(value_of(table, "tcp", where), f"{where}: tcp")
    if not names or len(set(map(str, names))) < len(names):
        raise UsageError(f"{where}: tcp: has no name, or one twice")
    return tuple(one_of(name, known, f"{where}: tcp") for name in names)


def _outage(table: dict[str, Any], where: str) -> tuple[float, float]:
    values = _list(table.get("outage_ms", []), f"{where}: outage_ms")
    if not values:
        return 0.0, 0.0
    times = [NUMBERS["outage_ms"].check(value, f"{where}: outage_ms") for value in values]
    if len(times) != 2 or times[0] >= times[1]:
        raise UsageError(f"{where}: outage_ms has to be two times, the first before the second")
    return times[0], times[1]


# Figures and claims --------------------------------------------------------------

def _figure(table: dict[str, Any], traces: Sequence[Trace], where: str) -> Figure:
    return Figure(
        name=file_name_of(table, where), title=text_of(table, "title", where),
        kind=one_of(value_of(table, "kind", where), FIGURE_KINDS, f"{where}: kind"),
        curves=tuple(_curve(text, traces, f"{where}: curves")
                     for text in _list(table.get("curves", []), f"{where}: curves")),
        from_s=_number(table, "from_s", where, 0.0, "time_s"),
        to_s=_number(table, "to_s", where, 0.0, "time_s"), rtt=_flag(table, "rtt", where, False))


def _curve(text: Any, traces: Sequence[Trace], where: str) -> Curve:
    match = re.fullmatch(r"(\w+)/(\w+)(?:/iw(\d+))?", text) if isinstance(text, str) else None
    if match is None:
        raise UsageError(f"{where}: {text!r} is not of the form \"trace/tcp\" or"
                         ' "trace/tcp/iw10"')
    curve = Curve(match[1], match[2], int(match[3]) if match[3] else None)
    for trace in traces:
        if trace.name == curve.trace and curve.tcp in trace.tcps \
                and curve.initcwnd in (None, *trace.initcwnd):
            return curve
    raise UsageError(f"{where}: no trace is {text!r}")


def _claim(table: dict[str, Any], traces: Sequence[Trace], figures: Sequence[Figure],
           where: str) -> Claim:
    relation = one_of(value_of(table, "relation", where), RELATIONS, f"{where}: relation")
    published = (_number(table, "published", where) if "published" in table else None)
    if (relation in ("is", "percent_smaller")) != (published is not None):
        raise UsageError(f'{where}: published goes with relation = "is" or "percent_smaller"')
    if (relation == "is") == ("second" in table):
        raise UsageError(f'{where}: second goes with every relation but "is"')
    return Claim(
        figure=one_of(value_of(table, "figure", where), [figure.name for figure in figures],
                      f"{where}: figure"),
        says=text_of(table, "says", where),
        metric=one_of(value_of(table, "metric", where), METRICS, f"{where}: metric"),
        first=_curve(value_of(table, "first", where), traces, f"{where}: first"),
        relation=relation,
        second=_curve(table["second"], traces, f"{where}: second") if "second" in table else None,
        at_s=_number(table, "at_s", where, 0.0), published=published,
        within=_number(table, "within", where, 0.0))


# The command line --------------------------------------------------------------

def overridden(scenario: TraceScenario, overrides: Overrides) -> TraceScenario:
    """The scenario with --rtt, --bw and --iw in place of its own. Raises UsageError."""
    for key in ("response_bytes", "repeat", "client", "congestion_control", "load"):
        if getattr(overrides, key) is not None:
            raise UsageError(f"{scenario.name}: {FLAGS[key]} does not go with a scenario of kind"
                             ' "trace": its schedules and TCPs stand in its file')
    changes: dict[str, Any] = {}
    for key, flag in (("rtt_ms", "--rtt"), ("bandwidth_kbps", "--bw")):
        values = getattr(overrides, key)
        if values is not None:
            if len(values) != 1:
                raise UsageError(f'{flag}: a scenario of kind "trace" takes one value')
            changes[key] = QUANTITIES[key].check(values[0], flag)
    if overrides.initcwnd is not None:
        changes["initcwnd"] = tuple(int(QUANTITIES["initcwnd"].check(value, "--iw"))
                                    for value in dict.fromkeys(overrides.initcwnd))
    return replace(scenario, traces=tuple(replace(trace, **changes) for trace in scenario.traces))
