"""The defaults of the fields of charts, tables, reports, scenarios, trials and records."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

from firstflight.findings import charts
from firstflight.findings.bar import Bar
from firstflight.findings.claims import Published
from firstflight.findings.difference import Difference
from firstflight.findings.findings import Column, Finding, Report, Rounded, Statement, Table
from firstflight.model.transfer import Transfer
from firstflight.parameters import PARAMETERS
from firstflight.runs.kinds import Overrides
from firstflight.runs.schema import items_of
from firstflight.setting import server
from firstflight.study.questions import page as page_question
from firstflight.workloads.fetch.record import record
from firstflight.workloads.fetch.scenario import (causes, population, requested_users, scenario,
                                                  sweep)
from firstflight.workloads.fetch import trial
from firstflight.workloads.load import (record as load_record, scenario as load_scenario,
                                        traffic)
from firstflight.workloads.page import objects, scenario as page_scenario
from firstflight.workloads.trace import (record as trace_record, scenario as trace_scenario,
                                         trial as trace_trial)
from firstflight.workloads.trace.schedule import Request, Schedule, Write


def text() -> str:
    """A paragraph for each class, with a line for each of its fields that has a default."""
    drawn: tuple[Any, ...] = (
        charts.Chart, Bar, Published, Difference, charts.BarChart,
        charts.TimeChart, charts.BarPage, charts.Line, charts.Plot, charts.LineChart,
        charts.TraceRow, charts.TraceChart, charts.GridChart, charts.GroupChart, charts.Square,
        charts.PageBar, charts.PageChart, charts.ObjectBar, charts.ObjectPanel, charts.ObjectChart,
        charts.SquareChart, charts.StepChart, charts.Timeline, charts.PacketsChart)
    reported: tuple[Any, ...] = (Column, Table, Statement, Finding, Report, Rounded)
    requested: tuple[Any, ...] = (
        Overrides, sweep.Sweep, trial.Trial, scenario.Figure, scenario.Raw, scenario.Axis,
        population.Population, scenario.Claim, server.OwnServer,
        causes.ClockReading, causes.AsPublished, load_scenario.LoadSweep, load_scenario.LoadFigure,
        load_scenario.LoadClaim, traffic.ClientHost, load_scenario.PopulationHost,
        objects.PageObject, page_scenario.ListedObject, page_scenario.Page,
        page_scenario.PageSweep,
        page_scenario.PageFigure, page_question.RequestedPage, trace_scenario.Tcp,
        trace_scenario.TraceSweep,
        trace_scenario.TraceFigure, trace_scenario.TraceClaim, trace_trial.TraceTrial, Write,
        Request, Schedule, Transfer, requested_users.Requested)
    measured: tuple[Any, ...] = (record.Record, load_record.LoadRecord, trace_record.TraceRecord)
    return "\n".join("\n".join(_lines(kind))
                     for kind in (*drawn, *reported, *requested, *measured)) + "\n"


def _lines(kind: Any) -> list[str]:
    """The name of a class, and its defaults; then those of the parameters that its fields read."""
    lines = [f"{kind.__module__}.{kind.__name__}"]
    lines += [f"  {field.name} = {field.default!r}" for field in fields(kind)
              if field.default is not MISSING]

    for field in fields(kind):
        for item in items_of(field):
            row = PARAMETERS[item.name]
            if not row.required and not row.follows:
                lines.append(f"  {item.name} = {row.quantity.defaults!r}")
    return lines
