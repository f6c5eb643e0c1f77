"""Groups the pages of a run by setting and window, and estimates what a window changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from firstflight.base.quantity import in_words
from firstflight.base.stats import Estimate, estimate
from firstflight.base.words import format_brief
from firstflight.figures.compare import VARIES_MS, Row, difference, student_by_seed
from firstflight.figures.kernel_changes import KernelChange
from firstflight.findings.difference import Difference
from firstflight.findings.quantities import quantity
from firstflight.parameters import PARAMETERS
from firstflight.runs.measuring import trial_file_path, read_trial_file
from firstflight.runs.results.cells import grouped
from firstflight.runs.results.records import varied
from firstflight.setting.draws import NOT_DRAWN
from firstflight.setting.kernels import pair_words
from firstflight.setting.server import HTTP_2
from firstflight.testbed.messages import CHROMIUM, LIBCURL
from firstflight.workloads.page.record import FILE, ObjectTimes, PageRecord, read_file
from firstflight.workloads.page.trial import OF_SETTING, PageTrial

CLIENT_NAMES = {LIBCURL: "libcurl", CHROMIUM: "Chromium"}
PAGE = "page_ms"
SAME_LOADS_MS = 0.1  # loads of a page in a browser that differ by less are alike
SAME_MS = 0.05  # pages that differ by less take equally long
BUSY = 0.95  # a link that sends for this share of the time is the limit
# The fields of a trial that distinguish settings. Of fields that vary together, a label names only
# the one that stands first here.
_FIRST = ("part", "page", "http", "client", "connections", "rtt_ms", "bandwidth_kbps",
          "uplink_kbps", "queue_packets", "loss_percent", "congestion_control", "server")
_DISTINGUISHING = (*_FIRST, *(row.field for name, row in PARAMETERS.items()
                              if name in OF_SETTING and row.field not in _FIRST))


def setting_of(trial: PageTrial) -> PageTrial:
    """The trial without its window, repeat and seed, and without what is drawn.

    It is equal for all trials of one setting.
    """
    return replace(trial, scenario="", initcwnd=0, repeat=0, seed=0, objects=(),
                   shared_certificates=(), phase_ms=None, **NOT_DRAWN)


@dataclass(frozen=True)
class WindowTimes:
    """The pages of one setting under one window."""

    window: int
    records: tuple[PageRecord, ...]  # only records that count
    excluded: int = 0  # how many records do not count

    def mean(self, column: str) -> float | None:
        """The mean of a column over the repeats; None where one of them has no value."""
        values = [getattr(record, column) for record in self.records]
        return None if not values or None in values else sum(values) / len(values)

    def distinct_records(self, column: str = PAGE) -> tuple[PageRecord, ...]:
        """All records that count, or only the first one where a time is alike in all of them.

        Times of loads in a browser are alike where they differ by less than SAME_LOADS_MS, other
        times where they differ by less than VARIES_MS.
        """
        times_ms = [getattr(record, column) or 0.0 for record in self.records]
        same_ms = SAME_LOADS_MS if self.records and self.records[0].trial.site else VARIES_MS
        varies = bool(times_ms) and max(times_ms) - min(times_ms) >= same_ms
        return self.records if varies else self.records[:1]

    def estimate(self, column: str) -> Estimate | None:
        """The mean of a time in ms; None where a record has none."""
        values = [getattr(record, column) for record in self.distinct_records(column)]
        return None if not values or None in values else estimate(values)

    def value_range(self, column: str) -> tuple[float, float] | None:
        """The least and the largest value of a column; None where a record has none."""
        values = [getattr(record, column) for record in self.records]
        return None if not values or None in values else (min(values), max(values))

    @property
    def page(self) -> Estimate:
        """The time of the whole page in ms."""
        return estimate([record.page_ms or 0.0 for record in self.distinct_records()])

    @property
    def idle_share(self) -> float:
        """The share of the time from the first byte on in which the link sent nothing.

        Until the first byte the link is taken as idle.
        """
        first_byte_ms = self.mean("first_byte_ms") or 0.0
        page_ms, idle_ms = self.mean(PAGE) or 0.0, self.mean("idle_ms") or 0.0
        if page_ms <= first_byte_ms:
            return 0.0
        return max(0.0, idle_ms - first_byte_ms) / (page_ms - first_byte_ms)


@dataclass(frozen=True)
class Setting:
    """The pages of one setting under all windows."""

    trial: PageTrial  # one trial of the setting
    windows: Mapping[int, WindowTimes]  # by requested window, the baseline first

    @property
    def counting(self) -> list[WindowTimes]:
        """The windows under which at least one page counts."""
        return [times for times in self.windows.values() if times.records]

    def saved(self, window: int, column: str = PAGE) -> Difference | None:
        """How much earlier a time is with a window than with the baseline, over paired repeats.

        The pages of a pair have the same losses, and their loads begin in the same phase of a
        browser's frame. None where no pair counts.
        """
        return _saved(next(iter(self.windows.values())), self.windows[window], column)

    def effect(self, window: int) -> int:
        """1 where the page is there earlier than with the baseline, −1 where it is there later.

        0 where neither is sure.
        """
        saved = self.saved(window)
        if saved is None or abs(saved.absolute.value) <= SAME_MS:
            return 0
        if saved.absolute.interval is not None:
            return saved.absolute.sign
        return 1 if saved.absolute.value > 0 else -1

    @property
    def fastest(self) -> WindowTimes:
        """The first window whose page takes at most SAME_MS more than the shortest page.

        The baseline is a candidate, and so is each window whose page is earlier for sure.
        """
        baseline, *others = self.counting
        candidates = [baseline, *(times for times in others if self.effect(times.window) > 0)]
        least_ms = min(times.page.value for times in candidates)
        return next(times for times in candidates if times.page.value <= least_ms + SAME_MS)


def group_settings(records: Iterable[PageRecord], part: str = "") -> list[Setting]:
    """The settings in some records, in the order in which they were measured.

    part: the name of the only sweep that counts; "" for all sweeps.
    """
    chosen = [record for record in records if part in ("", record.trial.part)]
    measured = []
    for of_setting in grouped(chosen, lambda record: setting_of(record.trial)).values():
        windows = {}
        by_window = grouped(of_setting, lambda record: record.trial.initcwnd)
        for window, of_window in by_window.items():
            counting = tuple(record for record in of_window if record.counts)
            windows[window] = WindowTimes(window, counting, len(of_window) - len(counting))
        measured.append(Setting(of_setting[0].trial, windows))
    return measured


def _saved(base: WindowTimes, other: WindowTimes, column: str = PAGE) -> Difference | None:
    """A time of the base less the same time of the other, over paired repeats.

    None where no pair counts.
    """
    both = (base, other)
    # If the time varies under one window only, its repeats need all of the other's as partners.
    varies = any(len(times.distinct_records(column)) > 1 for times in both)
    rows = []
    for side, times in enumerate(both):
        for record in times.records if varies else times.distinct_records(column):
            value = getattr(record, column)
            if value is not None:
                # All rows are of one cell, which needs no name.
                rows.append(Row(cell=None, window=side, unit=record.trial.repeat, weight=1.0,
                                value=value))
    try:
        return difference(rows, 0, 1, student_by_seed)
    except ValueError:
        return None


def kernel_changes(settings: Sequence[Setting], titles: Mapping[str, str]) -> list[KernelChange]:
    """How each further kernel changes the time of each page, under each window.

    titles: the titles of sweeps and pages, by name.
    """
    def without_kernel(setting: Setting) -> PageTrial:
        return replace(setting_of(setting.trial), kernel="", module_parameter="")

    by_cell = grouped([setting for setting in settings if setting.counting], without_kernel)
    cell_labels = labels([first for first, *_ in by_cell.values()], titles)
    changes = []
    for cell_label, (base, *others) in zip(cell_labels, by_cell.values()):
        for other in others:
            pair = pair_words(base.trial, other.trial)
            for window, times in other.windows.items():
                if window not in base.windows:
                    continue
                window_label = f"IW {window}" if len(other.windows) > 1 else ""
                where = ", ".join(filter(None, (cell_label, window_label)))
                saved = _saved(base.windows[window], times)
                if saved is not None:
                    changes.append(KernelChange(pair, where, saved))
    return changes


def labels(settings: Sequence[Setting], titles: Mapping[str, str]) -> list[str]:
    """What distinguishes each setting, in words.

    titles: the titles of sweeps and pages, by name.
    """
    trials = [setting.trial for setting in settings]
    values = {}
    for name in _DISTINGUISHING:
        values[name] = [getattr(trial, name) for trial in trials]
    names = varied(values)

    distinct = []
    for trial in trials:
        words = [_name_value(name, trial, titles) for name in names]
        distinct.append(", ".join(filter(None, words)))
    return distinct


def _name_value(name: str, trial: PageTrial, titles: Mapping[str, str]) -> str:
    """The value of a trial's field with its name, such as "RTT 20 ms".

    "" where there is nothing to say, as for the number of connections over HTTP/2.
    """
    value = getattr(trial, name)

    # Fields that are not written as name, value, and unit.
    if name == "http":
        return "HTTP/2" if trial.http == HTTP_2 else "HTTP/1.1"
    if name == "client":
        return CLIENT_NAMES[trial.client]
    if name == "connections":
        return "" if trial.http == HTTP_2 else f"{value} connection{'s' if value > 1 else ''}"
    if name == "queue_packets":
        return f"queue {value}"
    if name == "chain_bytes" and not value:
        return "without TLS"
    if name == "resumed":
        return "session resumed" if value else "new session"
    if name in ("part", "page", "congestion_control", "qdisc", "server"):
        return titles.get(str(value)) or str(value)

    return f"{quantity(name).head} {in_words(value, quantity(name).unit)}"


def objects_of(folder: Path, record: PageRecord) -> list[ObjectTimes]:
    """The times of a page's objects. Raises FirstFlightError where their file is missing."""
    path = trial_file_path(folder, record.trial.id, FILE)
    return read_file(read_trial_file(path), str(path))


def parse_times(record: PageRecord, objects: Sequence[ObjectTimes]) -> list[float]:
    """How long the client had to wait before it requested each object that it knew of, in ms.

    0 in a browser, which decides itself when it requests an object.
    """
    if record.trial.site:
        return [0.0] * len(objects)
    return [requested.parse_ms for requested in record.trial.requested]


def mean_parts(objects: Sequence[ObjectTimes], parse_ms: Sequence[float]) -> tuple[float, ...]:
    """Mean times in ms over all objects but the document.

    They are the wait for a connection, the wait for the first byte, and the time to arrive: each
    is 0 where the page has only a document.
    """
    rows = []
    for times, parsed_ms in list(zip(objects, parse_ms))[1:]:
        rows.append((times.start_ms - times.named_ms - parsed_ms,
                     times.first_byte_ms - times.start_ms, times.end_ms - times.first_byte_ms))
    return tuple(sum(column) / len(rows) for column in zip(*rows)) if rows else (0.0, 0.0, 0.0)


def waterfall_sentence(windows: Sequence[int], parts: Sequence[Sequence[float]], pages: int = 1
                       ) -> str:
    """Where the objects of a waterfall spend their time.

    parts: for each window the times of mean_parts. pages: how many were measured with each window.
    """
    waits = any(round(part[0], 1) for part in parts)
    named = []
    for window, (connection_ms, first_byte_ms, arriving_ms) in zip(windows, parts):
        connection = f"{format_brief(connection_ms)} ms for a connection and " if waits else ""
        named.append(f"with {window} segments an object waits {connection}"
                     f"{format_brief(first_byte_ms)} ms for its first byte, and takes"
                     f" {format_brief(arriving_ms)} ms to arrive")
    which = f"The first of {pages} pages: on average," if pages > 1 else "On average,"
    return f"{which} {'; '.join(named)}."
