"""What the loads of a page in a browser show besides the time of the page: requests and paints."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from firstflight.base.words import format_brief, join_words
from firstflight.findings.charts import ObjectBar, ObjectPanel
from firstflight.findings.findings import Cell, Column, Table
from firstflight.testbed.hosts.browser.frames import FRAME_MS
from firstflight.workloads.page import loads
from firstflight.workloads.page.analysis import SAME_LOADS_MS, Setting, WindowTimes
from firstflight.workloads.page.record import PageRecord

FIRST_PAINT, LARGEST_PAINT = "paint_ms", "largest_paint_ms"
_PAINTS = {FIRST_PAINT: "first contentful paint", LARGEST_PAINT: "largest contentful paint"}


def paint_tables(settings: Sequence[Setting], names: Sequence[str]) -> list[Table]:
    """One table with mean and range of both paints, a row for each setting and window.

    Only windows with a load that counts have a row (Setting.counting). names: what distinguishes
    each setting, in words. [] where no load has a paint.
    """
    rows: list[tuple[Cell, ...]] = []
    for setting, name in zip(settings, names):
        for times in setting.counting:
            first = _paint_cells(setting, times, FIRST_PAINT)
            largest = _paint_cells(setting, times, LARGEST_PAINT)
            if first[0] is not None or largest[0] is not None:
                rows.append((name, times.window, *first, *largest, len(times.records)))
    if not rows:
        return []

    columns = [Column("", is_text=True), Column("IW", digits=0)]
    for paint in _PAINTS.values():
        columns += [Column("mean", "ms", group=paint), Column("least", "ms", group=paint),
                    Column("most", "ms", group=paint),
                    Column("earlier", "ms", group=paint, signed=True)]
    columns.append(Column("loads", digits=0))
    return [Table("Paints, over loads at drawn phases of a frame", tuple(columns), tuple(rows)
                  ).without_empty()]


def _paint_cells(setting: Setting, times: WindowTimes, column: str) -> tuple[Cell, ...]:
    """The cells of a paint: mean, least, most, and how much earlier than with the baseline.

    The last cell is "" for the baseline itself, and None where no pair of loads counts.
    """
    least_and_most = times.value_range(column)
    if least_and_most is None:
        return (None,) * 4
    earlier: Cell = ""
    baseline = next(iter(setting.windows.values()))  # the first window
    if times is not baseline:
        saved = setting.saved(times.window, column)
        earlier = None if saved is None else saved.absolute
    return (times.estimate(column), *least_and_most, earlier)


def panel(folder: Path, record: PageRecord) -> ObjectPanel:
    """The waterfall of a load: a row for each request, and marks at paints and events.

    Raises FirstFlightError where the file of its requests is missing.
    """
    opened: set[int] = set()
    bars = []
    for request in loads.requests_of(folder, record):
        start_ms = request.start_ms or 0.0
        end_ms = start_ms if request.end_ms is None else request.end_ms
        sent_ms = end_ms if request.sent_ms is None else request.sent_ms
        first_byte_ms = end_ms if request.first_byte_ms is None else request.first_byte_ms
        opens = request.connection > 0 and request.connection not in opened
        opened.add(request.connection)
        # When the browser knew of an object is not known: the bar begins with the request.
        bars.append(ObjectBar(start_ms, start_ms, sent_ms, first_byte_ms=first_byte_ms,
                              end_ms=end_ms, opens=opens, host=request.host))

    moments = ((record.paint_ms, _PAINTS[FIRST_PAINT]),
               (record.largest_paint_ms, _PAINTS[LARGEST_PAINT]),
               (record.content_loaded_ms, "DOMContentLoaded"), (record.page_ms, "load"))
    marks = tuple((at_ms, name) for at_ms, name in moments if at_ms is not None)
    return ObjectPanel(
        f"Initial window {record.trial.initcwnd}: load {format_brief(record.page_ms)} ms",
        tuple(bars), marks)


def browser_notes(setting: Setting, place: str) -> list[str]:
    """How many requests the browser made, how many the recording lacks, and when it painted.

    place: names the setting in front of each sentence; "" for the only setting.
    """
    counting = setting.counting
    requests = [f"{times.records[0].requests or 0} requests with {times.window}"
                for times in counting]
    lines = [f"{place}the browser made {join_words(requests)}; the page is there when its load"
             " event fires."]

    records = chain.from_iterable(times.records for times in counting)
    lacking = max(record.not_recorded or 0 for record in records)
    if lacking:
        lines.append(f"{place}{lacking} of its requests {'are' if lacking > 1 else 'is'} not in the"
                     " recording, and got status 404 (recorded = 0 in requests.csv).")
    return lines + _paint_notes(counting, place)


def _paint_notes(counting: Sequence[WindowTimes], place: str) -> list[str]:
    """One sentence on when the page is painted, with ranges; [] where no load has a paint."""
    parts, has_range = [], False
    for column, paint in _PAINTS.items():
        words = []
        for times in counting:
            least_and_most = times.value_range(column)
            if least_and_most is not None:
                least, most = least_and_most
                paint_time = _format_with_range(times.mean(column), least, most)
                words.append(f"{paint_time} with {times.window}")
                has_range |= most - least > SAME_LOADS_MS
        if words:
            parts.append(f"the {paint} comes after {join_words(words)}")
    if not parts:
        return []

    count = max(len(times.records) for times in counting)
    if has_range:
        how = (f"{count} loads begin at drawn phases of the browser's frame of"
               f" {format_brief(FRAME_MS)} ms, and the range is theirs")
    elif count > 1:
        how = f"so in each of {count} loads, which begin at drawn phases of a frame"
    else:
        how = f"it was loaded once, and a frame of {format_brief(FRAME_MS)} ms may hide as much"
    return [f"{place}{', '.join(parts)}; {how}."]


def _format_with_range(mean_ms: float | None, least_ms: float, most_ms: float) -> str:
    """A mean with its range, such as "490 ms (484 to 496)"; only the mean where all are alike."""
    mean = format_brief(mean_ms)
    if most_ms - least_ms <= SAME_LOADS_MS:
        return f"{mean} ms"
    return f"{mean} ms ({format_brief(least_ms)} to {format_brief(most_ms)})"
