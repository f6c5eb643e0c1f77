"""Scenarios of kind "arithmetic": printed buckets that are to add up to a printed mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from lab.core.errors import UsageError
from lab.core.run.kinds import NOTHING, Overrides
from lab.core.scenario import published, schema
from lab.core.scenario.published import PublishedBucket
from lab.core.scenario.scenario_file import HEAD_KEYS, Head, ScenarioFile
from lab.core.scenario.schema import key

MEANS_COLUMNS = ("data_center", "experiment_ms", "baseline_ms")


@dataclass(frozen=True)
class Means:
    """The two means that are printed of a data center, in ms."""

    experiment_ms: float
    baseline_ms: float


@dataclass(frozen=True)
class PublishedPanel:
    """A published panel. published: file in paper/; panel: of it; unit: of its buckets' names."""

    title: str
    data_center: str
    published: str
    unit: str
    name: str = key(reader=schema.file_name)
    panel: str = ""
    buckets: tuple[PublishedBucket, ...] = key((), absent=True)
    means: Means = key(Means(0.0, 0.0), absent=True)


@dataclass(frozen=True)
class Arithmetic:
    """A scenario. means: file in paper/ with the means of each data center."""

    means: str
    baseline_initcwnd: int = key(quantity="initcwnd")
    experiment_initcwnd: int = key(quantity="initcwnd")
    head: Head = key(absent=True)
    panels: tuple[PublishedPanel, ...] = key(absent=True)


def read(file: ScenarioFile, overrides: Overrides = NOTHING) -> Arithmetic:
    """The scenario with the published numbers that it names. Raises UsageError."""
    top = {name: value for name, value in file.raw.items() if name not in (*HEAD_KEYS, "panel")}
    panels = schema.read_tables(PublishedPanel, file.raw, "panel", file.where)
    if not panels:
        raise UsageError(f"{file.where}: has no [[panel]]")
    scenario = schema.read(Arithmetic, top, file.where, head=file.head(), panels=panels)
    means = _means(scenario.means)
    return replace(scenario, panels=tuple(
        _with_numbers(panel, means, f'{file.where}: [[panel]] "{panel.name}"')
        for panel in panels))


def _means(file: str) -> dict[str, Means]:
    """By the name of the data center. Raises UsageError."""
    rows = published.rows(published.path_of(file), MEANS_COLUMNS)
    return {row["data_center"]: Means(published.number(row, "experiment_ms", file),
                                      published.number(row, "baseline_ms", file))
            for row in rows}


def _with_numbers(panel: PublishedPanel, means: Mapping[str, Means], where: str) -> PublishedPanel:
    center = schema.one_of(panel.data_center, list(means), f"{where}: data_center")
    buckets = tuple(published.buckets(panel.published, panel.panel).values())
    for bucket in buckets:
        if not bucket.responses_percent or not bucket.absolute_ms or not bucket.percent:
            raise UsageError(f"{where}: bucket {bucket.label} of paper/{panel.published} has to"
                             " have a share, and an improvement in ms and percent")
    return replace(panel, buckets=buckets, means=means[center])
