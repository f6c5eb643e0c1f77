"""docs/SCENARIOS.md and docs/COLUMNS.md, made from the classes that read and write them.

`/usr/bin/python3 -m tests.golden.documents` writes them anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from base.words import plain
from findings.quantities import QUANTITIES, Length
from findings.quantity import Sizes, Windows, Word
from runs.results import records
from runs.results.records import columns_of, trial_class
from study.fetches.figures.kinds import FIGURES
from study.fetches.scenario import scenario as fetches
from study.fetches.scenario.population import Cause, Population
from study.fetches.scenario.scenario import Claim, Defect, Raw
from study.fetches.scenario.sweep import Sweep
from study.fetches.scenario.users import Users
from study.fetches.verify.record import Record
from study.load import scenario as load
from study.load.record import LoadRecord
from study.trace import scenario as trace
from study.trace.record import TraceRecord
from study.trace.scenario import Request, Schedule, Write

# How the tables of a kind go together: files of docs/examples, or a scenario of that kind.
EXAMPLES = {"fetches": ("fetches", "as_published"), "load": ("load",)}
LIKE = {"trace": "handley1999_idle", "arithmetic": "paper_arithmetic"}
DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
_KEY = "runs.schema"

# The tables of each kind of scenario: its head in a file, the class that reads it.
TABLES: dict[str, list[tuple[str, type[Any]]]] = {
    "fetches": [("[defaults] and [[sweep]]", Sweep), ("[[axis]]", fetches.Axis),
                ("[[figure]]", fetches.Figure), ("[[claim]]", Claim),
                ("[raw]", Raw), ("[[raw.defect]]", Defect),
                ("[[population]]", Population), ("[[step]]", Cause),
                ("[users], which --users writes", Users)],
    "load": [("[defaults] and [[sweep]]", load.LoadSweep),
             ("[[population]]", load.LoadPopulation), ("[[figure]]", load.LoadFigure),
             ("[[claim]]", load.LoadClaim)],
    "trace": [("[[tcp]]", trace.Tcp), ("[[schedule]]", Schedule),
              ("one of writes, of [[schedule]]", Write),
              ("one of requests, of [[schedule]]", Request),
              ("[defaults] and [[trace]]", trace.TraceSetup), ("[[figure]]", trace.TraceFigure),
              ("[[claim]]", trace.TraceClaim)],
}
RECORDS: dict[str, type[records.Record]] = {"fetches": Record, "load": LoadRecord,
                                            "trace": TraceRecord}
# Of what several tables have, or what says itself to those who know the file.
COMMON = {
    "sizes": "a distribution of sizes by its name, or fixed",
    "compares": "what the claim is about", "quantity": "of what it is",
    "name": "tells it from the others", "title": "one line", "sweep": "the sweep, by its name",
    "figure": "the figure, by its name", "by": "the quantity that buckets are of",
    "values": "its buckets", "labels": "of the buckets; without any, the values",
    "metric": "what is compared, a column of the records, like total_ms",
    "kind": "how it is drawn", "says": "what was published, in words", "client": "what fetches",
    "file": "in paper/", "why": "in words", "mark": "a letter", "extra_why": "in words",
    "series": "the quantity that lines are of", "panel": "of the published file",
    "defect": "tables of their own", "paced": "whether fq paces the servers",
    "population": "who the clients are, by its name", "clients": "who they are, or how many",
    "writes": "of one response, in order of time", "requests": "one after another",
    "schedule": "by its name", "at_s": "when, after the request", "curves": "trace/tcp each, or"
    " trace/tcp/IW and its number", "segments": "in place of bytes",
    "data_center": "of the means that it is to add up to", "bytes": "how many",
    "means": "file in paper/ with the means of each data center", "mixes": "lists of [initcwnd, share]",
    "congestion_control": "as the kernel names it", "published": "a file in paper/"}
UNITS = {"ms": "ms", "kbps": "kbit/s", "bytes": "bytes", "packets": "packets", "percent": "%",
         "s": "s"}
RUN_JSON = {
    "arguments": "the command line", "asked": "digests of what the results follow from",
    "confined": "the walls around the guest: version of Landlock, which system calls, namespaces;"
                " false: none; true: runs of before, by Landlock and seccomp",
    "emulated_s": "seconds of network time", "engine": "uml or host",
    "finished_at": "ISO 8601, UTC", "first_record_after_s": "seconds to the first record",
    "jobs": "guests side by side", "kernel": "release of the kernel that was measured",
    "kernel_known": "whether its source is a distribution's or kernel.org's, unchanged: only then the"
    " model of TCP is judged", "kernel_origin": "where the source of the guest's kernel came from",
    "kernel_source": "SHA-256 of that source",
    "machine": "processor, cores, system and kernel of the machine",
    "partial": "whether it is a part of a scenario", "project": "commit, and whether changed",
    "scenario": "its name", "scenario_file": "its text", "seed": "of what is random",
    "started_at": "ISO 8601, UTC", "state": "running or complete",
    "sysctls": "of each host, read back", "tools": "versions of the programs used",
    "trials": "rows and digest of trials.csv", "virtual_time": "whether time was virtual",
    "wall_s": "seconds that it took"}
LATER = {"kernel_known", "kernel_origin", "kernel_source"}  # which runs that were stored earlier lack
SELDOM = {"systems": "versions of the programs of each system but the machine's that trials ran in"}
def scenarios() -> str:
    lines = ["# Every key of a scenario file", "",
             "Made from the classes that read them; a test keeps it current. `./run.sh --new NAME`"
             " writes a file that runs as it is, `./run.sh --check FILE` reads one.", "",
             "A file opens with a comment line, the claim in one sentence. Then `kind` (fetches,"
             " load or trace; default fetches), `title`, `source`, `note` and"
             " `[sysctls]`; and, for who reads the answer of a whole run, `about` (what is measured,"
             " and what of the published numbers is expected to agree) and `result` (what came out,"
             " with quotes of findings for numbers: findings/render/values.py).", ""]
    for kind, tables in TABLES.items():
        lines += [f"## kind = \"{kind}\"", "",
                  *(_example(name) for name in EXAMPLES.get(kind, ())),
                  *([f"How its tables go together: `scenarios/{LIKE[kind]}.toml`.", ""]
                    if kind in LIKE else [])]
        if kind == "fetches":
            lines += ["A file may have [[population]] tables in place of sweeps, with [[step]]s.", ""]
        for head, of in tables:
            lines += [f"### {head}", "", "| key | type | what | unit and range | default |",
                      "|---|---|---|---|---|",
                      *_keys(kind, of), ""]
    return "\n".join(lines)


def _example(name: str) -> str:
    text = (DOCS / "examples" / f"{name}.toml").read_text(encoding="utf-8")
    return f"An example, `docs/examples/{name}.toml`:\n\n```toml\n{text}```\n"


def _keys(kind: str, of: type[Any]) -> Iterator[str]:
    of_trial = _told(trial_class(RECORDS[kind])) if kind in RECORDS else {}
    hints, told = get_type_hints(of), {**of_trial, **_told(of)}
    for each in fields(of):
        option = each.metadata.get(_KEY, {})
        if option.get("absent"):
            continue
        name = option.get("name") or each.name
        inner = get_args(hints[each.name]) if get_origin(hints[each.name]) is tuple else ()
        hint = inner[0] if inner else hints[each.name]
        known = QUANTITIES.get(option.get("quantity") or each.name)
        if hint is str and not isinstance(known, (Word, Length, Sizes, Windows)):
            known = None
        what = (known.flag_help if known and of is Sweep else "") or told.get(each.name) or (
            COMMON.get(each.name) or (known.what if known else ""))
        words = (FIGURES if (of, name) == (fetches.Figure, "kind") else
                 get_args(hint) if get_origin(hint) is Literal else ())
        span = " or ".join(map(str, words)) or (
            known.range if known and "inf" not in known.range else "")
        type_ = "list" if inner else "word" if words else {str: "text", int: "whole number", float: "number",
                                     bool: "true or false"}.get(hint, "")
        yield f"| `{name}` | {type_} | {_cell(what)} | {_cell(span)} | {_default(each)} |"


def _default(each: Field[Any]) -> str:
    if each.default is MISSING:
        return "required"
    value = each.default
    if is_dataclass(value):
        return "its own"
    if value is None or value == () or value == "":
        return "none"
    shown = value if isinstance(value, tuple) else (value,)
    return ", ".join(each if isinstance(each, str) else str(each).lower()
                     if isinstance(each, bool) else plain(each) for each in shown)


def columns() -> str:
    lines = ["# Every column of trials.csv and key of run.json", "",
             "Made from the classes of the records; a test keeps it current. A missing value is an"
             " empty field. Asked: a part of the trial, every digit of it; measured: read off what"
             " the programs said, the packets or the model, to the microsecond.", ""]
    for kind, of in RECORDS.items():
        requested = {each.name for each in fields(trial_class(of))}
        told = {**_told(records.Record), **_told(of), **_told(trial_class(of))}
        lines += [f"## kind {kind}", "", "| column | unit | from | what |", "|---|---|---|---|"]
        for column in columns_of(of):
            lines.append(f"| `{column}` | {_unit(column)} | "
                         f"{'requested' if column in requested else 'measured'} |"
                         f" {_cell(told.get(column) or _what(column))} |")
        lines.append("")
    lines += ["## run.json", "", "| key | what |", "|---|---|",
              *(f"| `{key}` | {what} |" for key, what in {**RUN_JSON, **SELDOM}.items()), ""]
    return "\n".join(lines)


def _unit(column: str) -> str:
    known = QUANTITIES.get(column)
    return known.unit if known else UNITS.get(column.rpartition("_")[2], "")


def _what(column: str) -> str:
    known = QUANTITIES.get(column)
    return (known.label or known.what) if known else column.replace("_", " ")


def _told(of: type[Any]) -> dict[str, str]:
    """What the docstring of a class says of its fields: "name, other: what they are"."""
    names = {each.name for each in fields(of)}
    told: dict[str, str] = {}
    # Of its subjects as well; a class that nobody wrote has its signature for a docstring.
    documented = [base.__doc__ for base in of.__mro__ if is_dataclass(base) and base.__doc__
                  and not base.__doc__.startswith(f"{base.__name__}(")]
    for paragraph in "\n\n".join(documented).split("\n\n"):
        text = " ".join(paragraph.split())
        found = [match for match in re.finditer(r"((?:[a-z_0-9]+, )*[a-z_0-9]+): ", text)
                 if {*match[1].split(", ")} <= names]
        ends: Sequence[int] = [*(match.start() for match in found[1:]), len(text)]
        told |= {name: text[match.end():end].strip().rstrip(";.").strip()
                 for match, end in zip(found, ends) for name in match[1].split(", ")}
    return told


def _cell(text: str) -> str:
    return text.replace("|", " or ").replace("[", "(").replace("]", ")")


DOCUMENTS = {"SCENARIOS.md": scenarios, "COLUMNS.md": columns}

if __name__ == "__main__":
    for name, make in DOCUMENTS.items():
        (DOCS / name).write_text(make(), encoding="utf-8")
