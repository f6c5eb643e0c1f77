"""What the figure of a panel shows: bars of improvements, or of values against windows."""

from __future__ import annotations

from lab.core.charts import Bar, BarChart, Chart, TimeBar, TimeChart
from lab.core.stats import Estimate
from lab.core.words import short
from lab.fetches.buckets import Bucket, Panel
from lab.fetches.claims import Judged, Recovery
from lab.fetches.scenario import LOSS, OF_EXPERIMENT
from lab.fetches.tables import averaged


def chart(judged: Judged, kernel: str) -> Chart:
    """kernel: release of the one that was measured, "" if not known."""
    return (_times if judged.panel.is_sweep else _improvements)(judged, kernel)


def _improvements(judged: Judged, kernel: str) -> BarChart:
    """Two bars a bucket like the paper's Figure 5."""
    panel, figure = judged.panel, judged.panel.figure
    return BarChart(
        f"{figure.title}: {figure.baseline_initcwnd} → {figure.experiment_initcwnd} segments",
        _context(panel, kernel), _foot(panel), _alarm(panel),
        bars=tuple(_bar(bucket, panel, judged.recoveries.get(bucket.label))
                   for bucket in panel.buckets),
        axis=panel.by.axis, unit=panel.metric.unit, publisher=_publisher(panel),
        percent_note=", as a part of the baseline" if figure.percent_of == OF_EXPERIMENT else "",
        even_scale=figure.kind == LOSS)


def _bar(bucket: Bucket, panel: Panel, recovery: Recovery | None) -> Bar:
    return Bar(bucket.label, Estimate(bucket.absolute, bucket.absolute_interval, bucket.n),
               Estimate(bucket.percent, bucket.percent_interval, bucket.n),
               bucket.published.absolute, bucket.published.percent, bucket.share_percent,
               bucket.n, bucket.excluded.total,
               ("", "") if recovery is None else _above(recovery, panel.metric.unit))


def _above(recovery: Recovery, unit: str) -> tuple[str, str]:
    ends = recovery.part.interval
    assert ends is not None
    return (f"beyond lossless: {short(recovery.part.value)} {unit}",
            f"{short(ends[0])} … {short(ends[1])} {unit}: {recovery.word}")


def _times(judged: Judged, kernel: str) -> TimeChart:
    """A bar for each window like the paper's Figure 2."""
    panel = judged.panel
    return TimeChart(
        panel.figure.title, _context(panel, kernel), _foot(panel), _alarm(panel),
        bars=tuple(TimeBar(
            bucket.label, Estimate(bucket.experiment, bucket.experiment_interval, bucket.n),
            None if panel.is_baseline(bucket) else bucket.percent, bucket.published.level,
            bucket.n, bucket.excluded.total) for bucket in panel.buckets),
        axis=panel.by.axis, unit=panel.metric.unit, publisher=_publisher(panel))


def _context(panel: Panel, kernel: str) -> tuple[str, ...]:
    """What was measured, and how."""
    over = averaged(panel.figure)
    metric = panel.metric.what.replace("the client's", f"{panel.client}'s")
    return (f"real Linux TCP{f' (kernel {kernel})' if kernel else ''},"
            f" {panel.congestion_control}; {metric}{f', averaged over {over}' if over else ''}",)


def _foot(panel: Panel) -> str:
    return (f"{panel.n} trials verified on the wire"
            + ("" if panel.excluded.total else "; none left out"))


def _alarm(panel: Panel) -> str:
    return f"left out: {panel.excluded}" if panel.excluded.total else ""


def _publisher(panel: Panel) -> str:
    """Behind "published" in the legend, "" for a figure without published values."""
    if not panel.figure.published:
        return ""
    return "in the paper" if panel.figure.published.startswith("paper_") else "by them"
