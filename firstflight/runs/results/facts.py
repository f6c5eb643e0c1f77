"""Reads run.json and command.json, which may come from a stranger.

Types, sizes and depth are checked here, once. So a fact has its type wherever it is used, or it is
missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from firstflight.base import reading
from firstflight.base.untrusted import (MOST_WHOLE, Schema, any_text, anything, by_name, items,
                                        lenient_table, number, read, whole, yes_or_no)
from firstflight.runs.results.records import RecordsError

# The content of run.json. A fact has the type that RUN gives it, or is missing.
Facts = Mapping[str, Any]
Recipe = Mapping[str, object]  # from what a named kernel was built (vtime.uml.recipe_of)
MOST_BYTES = 16 << 20  # of such a file; a large scenario's has a tenth of this
MOST_CLOCK_S = 1 << 33  # of a command's clock, since the epoch: a date in the year 2242

_TEXT = any_text(1 << 20)
_TEXTS = items(any_text(1 << 20), 100_000)
_INTEGER = whole(-MOST_WHOLE)
_VALUES = by_name(anything(1), 1000, any_text(1000))
_TEXTS_BY_NAME = by_name(_TEXT, 1000, any_text(1000))
_KERNEL: dict[str, Schema[object]] = {"kernel_source": _TEXT, "kernel_origin": _TEXT,
                              "kernel_known": yes_or_no}
RUN = lenient_table({
    **dict.fromkeys(("scenario", "state", "engine", "kernel", "started_at", "finished_at"), _TEXT),
    **dict.fromkeys(("wall_s", "emulated_s", "first_record_after_s"), number),
    **dict.fromkeys(("virtual_time", "partial"), yes_or_no),
    **dict.fromkeys(("machine", "project", "trials", "what_ifs", "earlier_runs"), _VALUES),
    **dict.fromkeys(("tools", "asked"), _TEXTS_BY_NAME),
    **dict.fromkeys(("sysctls", "systems"), by_name(_TEXTS_BY_NAME, 1000, any_text(1000))),
    "scenario_file": any_text(MOST_BYTES), "arguments": _TEXTS, "seed": _INTEGER,
    "jobs": _INTEGER, "resumed": items(anything(), 100_000), **_KERNEL})
COMMAND = lenient_table({
    "command": _TEXTS, "folder": _TEXT, "seed": _INTEGER, "clock": whole(0, MOST_CLOCK_S),
    "status": _INTEGER, "files": _INTEGER, "virtual_s": number, "wall_s": number,
    "left_out": _TEXTS, "spinning": _TEXTS, "namespaces": _TEXTS, "calls": _TEXTS, **_KERNEL})


def read_facts_file(path: Path, schema: Schema[dict[str, object]]) -> dict[str, Any]:
    """The facts in a file. Raises RecordsError, also if a fact has another type than in the schema.
    """
    try:
        return read(reading.content(path, MOST_BYTES), schema, MOST_BYTES)
    except OSError as error:
        raise RecordsError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:  # also bytes that are no text
        raise RecordsError(f"{path}: is damaged ({error})") from error
