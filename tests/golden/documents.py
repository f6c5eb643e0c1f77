"""docs/REFERENCE.md and an example, made from the classes that read and write files, and
ONE_TRIAL.md, made from a stored trial.

`/usr/bin/python3 -m tests.golden.documents` writes them anew.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from firstflight.base.words import plain
from firstflight.findings.quantities import QUANTITIES, Length
from firstflight.findings.quantity import Quantity, Sizes, Windows, Word
from firstflight.runs.kinds import Overrides
from firstflight.runs.results import records
from firstflight.runs.results.records import columns_of, trial_class
from firstflight.study import registry
from firstflight.study.fetches.figures.kinds import FIGURES
from firstflight.study.fetches.scenario import scenario as fetches
from firstflight.study.fetches.scenario.population import Cause, Population
from firstflight.study.fetches.scenario.scenario import Claim, Defect, Raw
from firstflight.study.fetches.scenario.sweep import Sweep
from firstflight.study.fetches.verify.record import Record
from firstflight.study.load import scenario as load
from firstflight.study.load.record import LoadRecord
from firstflight.study.trace import scenario as trace
from firstflight.study.trace.record import TraceRecord
from firstflight.study.trace.scenario import Request, Schedule, Write
from tests.golden import one_trial

# Files of docs/examples, which describe keys in comments, or a scenario of that kind.
EXAMPLES = {"fetches": ("question", "fetches", "as_published"), "load": ("load",)}
LIKE = {"trace": "handley1999_idle"}
QUESTION = "examples/question.toml"
DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
_KEY = "firstflight.runs.schema"

# The tables of each kind of scenario: its head in a file, the class that reads it.
TABLES: dict[str, list[tuple[str, type[Any]]]] = {
    "fetches": [("[defaults] and [[sweep]]", Sweep), ("[[axis]]", fetches.Axis),
                ("[[figure]]", fetches.Figure), ("[[claim]]", Claim),
                ("[raw]", Raw), ("[[raw.defect]]", Defect),
                ("[[population]]", Population), ("[[step]]", Cause)],
    "load": [("[defaults] and [[sweep]]", load.LoadSweep),
             ("[[population]]", load.LoadPopulation), ("[[figure]]", load.LoadFigure),
             ("[[claim]]", load.LoadClaim)],
    "trace": [("[[tcp]]", trace.Tcp), ("[[schedule]]", Schedule),
              ("one of writes, of [[schedule]]", Write),
              ("one of requests, of [[schedule]]", Request),
              ("[defaults] and [[trace]]", trace.TraceSweep), ("[[figure]]", trace.TraceFigure),
              ("[[claim]]", trace.TraceClaim)],
}
RECORDS: dict[str, type[records.Record]] = {"fetches": Record, "load": LoadRecord,
                                            "trace": TraceRecord}
# What means the same in every table.
COMMON = {
    "name": "a name, unique in its table", "title": "one line", "figure": "the name of a figure",
    "says": "the published claim", "why": "the reason", "sweep": "the name of a sweep",
    "metric": "the compared column, such as total_ms", "by": "the quantity of the buckets",
    "abstract_only": "true: only the source's abstract was read, so reproduced counts as direction"}
# What no docstring or quantity describes alone, by table and key, or by key.
DESCRIBED = {
    "kind": "how it is drawn",
    "congestion_control": "a congestion control by the kernel's name",
    "initcwnd": "initial windows",
    "curves": "trace/tcp each, or trace/tcp/IW and its number",
    "at_s": "time after the request",
    "segments": "a size, in place of bytes",
    "until_s": "the end of repeated writes",
    "every_s": "the interval of repeated writes",
    "schedule": "the name of a schedule",
    "tcp": "names of [[tcp]] tables",
    "writes": "the writes of one response, in order of time",
    "requests": "requests, one after another",
    "sample_ms": "interval of the samples of the window",
    "outage_ms": "begin and end of an outage; both 0 for none",
    "Sweep.arp_ms": "the network is new: a host asks for an address, and again after so long",
    "Sweep.send_buffer_bytes": "the server's SO_SNDBUF; 0: not set",
    "Sweep.nagle": "Nagle's algorithm at the server",
    "Sweep.loss_probes": "tail loss probes",
    "Sweep.framing": "what ends the body: its length, or the connection's end",
    "Sweep.receive_rules": "the client's receive window by today's rules, or by Linux 3's",
    "Figure.down": "the quantity of a map's rows, or of the lines of steps",
    "Raw.defect": "published values that cannot be compared",
    "TraceClaim.published": "the published number",
    "Tcp.validation": "whether Linux's RFC 2861 is on",
    "Tcp.sysctls": "further settings of the server, name=value each",
    "Request.think_s": "pause after the response before; without: the trial's think time",
    "TraceSweep.rtt_ms": "the RTT without load",
    "TraceSweep.bandwidth_kbps": "the bottleneck's rate",
    "TraceSweep.uplink": "the uplink's rate; without: the same",
    "TraceSweep.think_s": "think times, for requests without their own",
    "TraceSweep.receive_window": "the largest window that the client offers; 0: what its"
    " buffers allow"}
UNITS = {"ms": "ms", "kbps": "kbit/s", "bytes": "bytes", "packets": "packets", "percent": "%",
         "s": "s", "segments": "segments", "bdp": "bandwidth-delay products"}
# Columns whose key has another name, or none.
RENAMED = {"uplink_kbps": "the key `uplink`", "own_server": "the flags of a server of one's own"}
RUN_JSON = {
    "arguments": "the command line", "asked": "digests of what the results follow from",
    "confined": "the walls around the guest; false: none; true, in older runs: Landlock and seccomp",
    "emulated_s": "network time", "engine": "uml or host",
    "started_at": "ISO 8601, UTC", "finished_at": "ISO 8601, UTC",
    "first_record_after_s": "time to the first record",
    "jobs": "guests side by side", "kernel": "release of the kernel that was measured",
    "kernel_known": "whether its source is a distribution's or kernel.org's, unchanged: only then the"
    " model of TCP is judged", "kernel_origin": "where its source came from",
    "kernel_source": "SHA-256 of that source",
    "machine": "its processor, cores, system and kernel",
    "partial": "whether it is a part of a scenario", "project": "commit, and whether changed",
    "scenario": "its name", "scenario_file": "its text", "seed": "of all random numbers",
    "state": "running or complete",
    "sysctls": "of each host, read back", "tools": "versions of the programs used",
    "trials": "rows and digest of trials.csv", "virtual_time": "whether time was virtual",
    "wall_s": "how long it took"}
LATER = {"kernel_known", "kernel_origin", "kernel_source"}  # which runs that were stored earlier lack
SELDOM = {"systems": "versions of the programs of other systems that trials ran in"}


def reference() -> str:
    return "\n".join([
        "# Reference", "",
        "Made from the code by `/usr/bin/python3 -m tests.golden.documents`. Terms:"
        " [GLOSSARY](GLOSSARY.md). Every flag: `./run.sh --help all`; one of them with its unit,"
        " range, default and an example: `./run.sh --help rtt`.", "", scenarios(), columns()])


def scenarios() -> str:
    lines = ["## Keys of a scenario file", "",
             "**Examples describe the keys, each in a comment:** "
             + ", ".join(f"[{name}.toml](examples/{name}.toml)" for name in EXAMPLES["fetches"])
             + " for `kind = \"fetches\"`, "
             + ", ".join(f"[{name}.toml](examples/{name}.toml)" for name in EXAMPLES["load"])
             + " for `kind = \"load\"`. The tables below, made from the classes that read a file,"
             " have all other keys.", "",
             "`./run.sh --new NAME` writes a file that runs as it is, with each key that is also a"
             " flag. `./run.sh --check FILE` reads a file, and names each value that is out of"
             " range, with the range.", "",
             "A file begins with a comment, the claim in one sentence. Then come `kind` (fetches,"
             " load or trace; default fetches), `title`, `source`, `note` and `[sysctls]`."
             " `about` says what is measured, and what of the published numbers is expected to"
             " agree. `result` says what came out, and quotes findings for numbers. A key without"
             " a default is required. A key that takes a list also takes one value. A unit is named"
             " where the key does not end in it.", "",
             "| key, the same in every table | what |", "|-|-|",
             *(f"| `{key}` | {what} |" for key, what in COMMON.items()), ""]
    for kind, tables in TABLES.items():
        rows = {heading: [*_keys(kind, heading, table)] for heading, table in tables}
        if any(rows.values()):
            lines += [f"### kind = \"{kind}\"", ""]
        if kind in LIKE:
            lines += [f"An example: [{LIKE[kind]}.toml](../scenarios/{LIKE[kind]}.toml).", ""]
        if kind == "fetches":
            lines += ["A file may have [[population]] tables in place of sweeps, with [[step]]s."
                      " `--users` writes a table [users].", ""]
        for heading in filter(rows.get, rows):
            lines += [f"#### {heading}", "", "| key | what | values | default |", "|-|-|-|-|",
                      *rows[heading], ""]
    return "\n".join(lines)


def _keys(kind: str, heading: str, table: type[Any]) -> Iterator[str]:
    """A row for each key of no example; keys in a row that are described alike have one."""
    elsewhere = of_examples(kind, heading)
    for alike, keys in itertools.groupby((row for row in _described(kind, table)
                                          if row[0] not in elsewhere), lambda row: row[1:]):
        yield f"| {', '.join(f'`{row[0]}`' for row in keys)} | {' | '.join(alike)} |"


def of_examples(kind: str, heading: str) -> set[str]:
    """The keys of a table that the examples of a kind have."""
    keys: set[str] = set()
    for name in EXAMPLES.get(kind, ()):
        text = (DOCS / "examples" / f"{name}.toml").read_text(encoding="utf-8")
        for table, content in re.findall(r"^\[+([\w.]+)\]+(.*?)(?=^\[|\Z)", text,
                                         re.DOTALL | re.MULTILINE):
            if table in re.findall(r"\[([\w.]+)\]", heading):
                keys |= {*re.findall(r"^(?:# )?(\w+) = ", content, re.MULTILINE)}
    return keys


def question() -> str:
    """What `./run.sh --new question` writes: a scenario whose keys are those of flags."""
    return f"{registry.own_question('question', Overrides({})).head.text}\n"


def _described(kind: str, table: type[Any]) -> Iterator[tuple[str, ...]]:
    """The name of each key, what it is, its values and its default."""
    of_trial = _told(trial_class(RECORDS[kind])) if kind in RECORDS else {}
    hints, told = get_type_hints(table), {**of_trial, **_told(table)}
    for field in fields(table):
        option = field.metadata.get(_KEY, {})
        if option.get("absent"):
            continue
        name = option.get("name") or field.name
        if name in COMMON and f"{table.__name__}.{name}" not in DESCRIBED:
            continue
        inner = get_args(hints[field.name]) if get_origin(hints[field.name]) is tuple else ()
        hint = inner[0] if inner else hints[field.name]
        known = QUANTITIES.get(option.get("quantity") or field.name)
        if hint is str and not isinstance(known, (Word, Length, Sizes, Windows)):
            known = None
        what = (DESCRIBED.get(f"{table.__name__}.{name}")
                or DESCRIBED.get(name) or told.get(field.name) or (known.what if known else ""))
        words = (FIGURES if (table, name) == (fetches.Figure, "kind") else
                 get_args(hint) if get_origin(hint) is Literal else
                 known.known if isinstance(known, Word) and hint is not bool else ())
        values = ", ".join(map(str, words)) or _unit(name, known)
        values = ": ".join(filter(None, (
            "list" if inner else "true or false" if hint is bool else "", values)))
        yield name, _cell(what), _cell(values), _default(field)


def _unit(name: str, known: Quantity | None) -> str:
    """The unit of a key whose name does not end in it."""
    unit = known.unit if known else ""
    return "" if unit == UNITS.get(name.rpartition("_")[2]) else unit


def _default(field: Field[Any]) -> str:
    if field.default is MISSING:
        return ""
    value = field.default
    if is_dataclass(value):
        return "its own"
    if value is None or value == () or value == "":
        return "none"
    shown = value if isinstance(value, tuple) else (value,)
    return ", ".join(part if isinstance(part, str) else str(part).lower()
                     if isinstance(part, bool) else plain(part) for part in shown)


def columns() -> str:
    told = _told(records.Record)
    every = [field.name for field in fields(records.Record) if field.name != "trial"]
    lines = ["## Columns of trials.csv", "",
             "An empty field is a missing value. A requested value has every digit. A measured"
             " value comes from the programs, the packets or the model, to the microsecond. A"
             " window is in segments. A column that has the name of a scenario's key is that key.",
             "",
             "| every kind | what |", "|-|-|",
             "| `scenario` | its name |", *_rows(every, told), ""]
    for kind, record in RECORDS.items():
        requested = {field.name for field in fields(trial_class(record))}
        keys = {field.name for _, table in TABLES[kind] for field in fields(table)
                if table in (Sweep, load.LoadSweep, trace.TraceSweep)} - {*RENAMED}
        told = {**_told(record), **_told(trial_class(record)), **RENAMED}
        rest = [column for column in columns_of(record) if column not in {"scenario", *every}]
        lines += [f"### Of kind {kind}", ""]
        for heading, wanted in (("other requested", requested - keys),
                                ("measured", {*rest} - requested)):
            lines += [f"| {heading} | what |", "|-|-|",
                      *_rows([column for column in rest if column in wanted], told), ""]
    lines += ["## Keys of run.json", "", "| key | what |", "|-|-|",
              *_rows([*RUN_JSON, *SELDOM], {**RUN_JSON, **SELDOM}), ""]
    return "\n".join(lines)


def _rows(names: Sequence[str], told: Mapping[str, str]) -> Iterator[str]:
    """A row for each column; columns that follow each other and are described alike have one."""
    for what, alike in itertools.groupby(names, lambda name: told.get(name) or _what(name)):
        yield f"| {', '.join(f'`{name}`' for name in alike)} | {_cell(what)} |"


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
        # What follows is of the class, not of its fields: "COLUMNS: …".
        text = re.split(r" (?=[A-Z_]{4,}: )", " ".join(paragraph.split()))[0]
        found = [match for match in re.finditer(r"((?:[a-z_0-9]+, )*[a-z_0-9]+): ", text)
                 if {*match[1].split(", ")} <= names]
        ends: Sequence[int] = [*(match.start() for match in found[1:]), len(text)]
        told |= {name: text[match.end():end].strip().rstrip(";.").strip()
                 for match, end in zip(found, ends) for name in match[1].split(", ")}
    return told


def _cell(text: str) -> str:
    return text.replace("|", " or ").replace("[", "(").replace("]", ")")


# The example comes first: REFERENCE.md has the keys that the examples lack.
DOCUMENTS = {QUESTION: question, "REFERENCE.md": reference, "ONE_TRIAL.md": one_trial.page}

if __name__ == "__main__":
    for name, make in DOCUMENTS.items():
        (DOCS / name).write_text(make(), encoding="utf-8")
