"""Makes documents from the code and from stored trials.

docs/REFERENCE.md and an example come from the classes that read and write files. ONE_TRIAL.md comes
from two stored trials. Of METHOD.md only the tables are made, from the list of checks.
`/usr/bin/python3 -m tests.golden.documents` writes them again.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from firstflight.findings.quantities import QUANTITIES
from firstflight.judge import checklist
from firstflight.parameters import PARAMETERS
from firstflight.runs import schema
from firstflight.runs.kinds import Overrides
from firstflight.runs.results import records
from firstflight.runs.results.records import columns_of, metrics, trial_class
from firstflight.study import registry
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.scenario import causes, scenario as fetches
from firstflight.workloads.fetch.scenario.population import Cause, Population
from firstflight.workloads.fetch.scenario.scenario import Claim, Defect, Raw
from firstflight.workloads.fetch.scenario.sweep import Sweep
from firstflight.workloads.load import scenario as load
from firstflight.workloads.load.record import LoadRecord
from firstflight.workloads.page import scenario as page
from firstflight.workloads.page.record import PageRecord
from firstflight.workloads.trace import scenario as trace
from firstflight.workloads.trace.record import TraceRecord
from firstflight.workloads.trace.schedule import Request, Schedule, Write
from tests.golden import one_page, one_trial

# Files of docs/examples, which describe keys in comments.
EXAMPLES = {"fetches": ("question", "fetches", "as_published"), "load": ("load",),
            "page": ("page",), "trace": ("trace",)}
METHOD = "METHOD.md"  # the rest of which is written by hand
QUESTION = "examples/question.toml"
DOCS = Path(__file__).resolve().parent.parent.parent / "docs"

# The tables of each kind of scenario: its head in a file, the class that reads it.
TABLES: dict[str, list[tuple[str, type[Any]]]] = {
    "fetches": [("[defaults] and [[sweep]]", Sweep), ("[[axis]]", fetches.Axis),
                ("[[figure]]", fetches.Figure), ("[[claim]]", Claim),
                ("[raw]", Raw), ("[[raw.defect]]", Defect),
                ("[[population]]", Population), ("[[step]]", Cause),
                ("[as_published]", causes.AsPublished), ("[[cause]]", causes.Cause)],
    "load": [("[defaults] and [[sweep]]", load.LoadSweep),
             ("[[population]]", load.LoadPopulation), ("[[figure]]", load.LoadFigure),
             ("[[claim]]", load.LoadClaim)],
    "page": [("[[page]]", page.Page), ("[[page.object]]", page.ListedObject),
             ("[defaults] and [[sweep]]", page.PageSweep), ("[[figure]]", page.PageFigure)],
    "trace": [("[[tcp]]", trace.Tcp), ("[[schedule]]", Schedule),
              ("one of writes, of [[schedule]]", Write),
              ("one of requests, of [[schedule]]", Request),
              ("[defaults] and [[trace]]", trace.TraceSweep), ("[[figure]]", trace.TraceFigure),
              ("[[claim]]", trace.TraceClaim)],
}
RECORDS: dict[str, type[records.Record]] = {"fetches": Record, "load": LoadRecord,
                                            "page": PageRecord, "trace": TraceRecord}
# Columns whose key has another name, or none.
RENAMED = {"uplink_kbps": "the key `uplink`", "own_server": "the flags of a server of one's own"}
RUN_JSON = {
    "arguments": "the command line", "asked": "digests of what the results follow from",
    "confined": "the walls around the guest; false: none",
    "emulated_s": "network time", "engine": "uml or host",
    "started_at": "ISO 8601, UTC", "finished_at": "ISO 8601, UTC",
    "first_record_after_s": "time to the first record",
    "jobs": "guests side by side", "kernel": "release of the kernel that was measured",
    "kernel_known": "whether its source is a distribution's or kernel.org's, unchanged:"
                    " only then the model of TCP is judged",
                    "kernel_origin": "where its source came from",
    "kernel_source": "SHA-256 of that source",
    "machine": "its processor, cores, system and kernel",
    "partial": "whether it is a part of a scenario", "project": "commit, and whether changed",
    "scenario": "its name", "scenario_file": "its text", "seed": "of all random numbers",
    "state": "running or complete",
    "sysctls": "of each host, read back", "tools": "versions of the programs used",
    "trials": "rows and digest of trials.csv",
    "virtual_time": "whether time was virtual",
    "wall_s": "how long it took"}
# Keys of run.json that stored runs may lack, since they are older.
LATER = {"kernel_known", "kernel_origin", "kernel_source"}
# Keys that a run.json has only in some runs.
SELDOM = {"systems": "versions of the programs of other systems that trials ran in",
          "what_ifs": "rows and digest of what_if.csv",
          "earlier_runs": "how many trials were taken from which earlier run (`--users`)"}


def reference() -> str:
    return "\n".join([
        "# Reference", "",
        "Made from the code by `/usr/bin/python3 -m tests.golden.documents`. Terms:"
        " [GLOSSARY](GLOSSARY.md). Every flag: `./run.sh --help all`; one of them with its unit,"
        " range, default and an example: `./run.sh --help rtt`.", "", scenarios(), columns()])


def scenarios() -> str:
    return "\n".join([
        "## Keys of a scenario file", "",
        "Examples have all keys, each with a comment: "
        + "; ".join(f"`kind = \"{kind}\"` " + ", ".join(
            f"[{name}.toml](examples/{name}.toml)" for name in names)
            for kind, names in EXAMPLES.items()) + ".", "",
        "`./run.sh --new NAME` writes a file that runs as it is, with each key that is also a flag."
        " `./run.sh --check FILE` reads a file, and names each value that is out of range, with the"
        " range.", "",
        "A flag of a question is the key of the same name, with _ for -. Others: " + ", ".join(
            f"`{row.quantity.flag}` `{row.key}`" for row in PARAMETERS.values()
            if row.quantity.flag and row.quantity.flag != f"--{row.key.replace('_', '-')}")
        + ".", "",
        "A file begins with a comment, the claim in one sentence. Then come `kind` (default"
        " fetches), `title`, `source`, `note` and `[sysctls]`. `about` says what is measured,"
        " and what of the published numbers is expected to agree. `result` says what"
        " came out, and quotes findings for numbers. A key that takes a list also takes one value."
        " `--users` writes a table [users].", ""])


def of_examples(kind: str, heading: str) -> set[str]:
    """The keys that the examples of a kind of scenario have in a table, such as "[[figure]]"."""
    keys: set[str] = set()
    for name in EXAMPLES.get(kind, ()):
        text = (DOCS / "examples" / f"{name}.toml").read_text(encoding="utf-8")
        for table, content in re.findall(r"^(?:# )?\[+([\w.]+)\]+(.*?)(?=^(?:# )?\[|\Z)", text,
                                         re.DOTALL | re.MULTILINE):
            parent, _, part = table.rpartition(".")
            if parent and parent in re.findall(r"\[([\w.]+)\]", heading):
                keys |= {part}
            if table in re.findall(r"\[([\w.]+)\]", heading):
                keys |= {*re.findall(r"(?:^(?:# )?|[{,] ?)(\w+) = ", content, re.MULTILINE)}
    return keys


def question() -> str:
    """What `./run.sh --new question` writes: a scenario whose keys are those of flags."""
    return f"{registry.own_question('question', Overrides({})).head.text}\n"


def columns() -> str:
    described = _describe_fields(records.Record)
    every = [field.name for field in fields(records.Record) if field.name != "trial"]
    lines = ["## Columns of trials.csv", "",
             "An empty field is a missing value. A requested value has every digit. A measured"
             " value comes from the programs, the packets or the model, to the microsecond. A"
             " window is in segments. A column that has the name of a scenario's key is that key.",
             "",
             "Trials that were added to find a reason are in `what_if.csv`, which has the column"
             " `what_if` as well. They were not requested, and no mean has them.", "",
             "| every kind | what |", "|-|-|",
             "| `scenario` | its name |", *_rows(every, described), ""]
    for kind, record in RECORDS.items():
        requested = {field.name for field in fields(trial_class(record))}
        keys = {name for head, table in TABLES[kind] for field in fields(table)
                if head.startswith("[defaults]")
                for name in ([item.name for item in schema.items_of(field)] or [field.name])
                } - {*RENAMED}
        labels = {name: metric.label for name, metric in metrics(record).items()}
        described = {**labels, **_describe_fields(record), **_describe_fields(trial_class(record)),
                     **RENAMED}
        rest = [column for column in columns_of(record, what_if=True)
                if column not in {"scenario", *every}]
        lines += [f"### Of kind {kind}", ""]
        for heading, wanted in (("other requested", requested - keys),
                                ("measured", {*rest} - requested)):
            lines += [f"| {heading} | what |", "|-|-|",
                      *_rows([column for column in rest if column in wanted], described), ""]
    lines += ["## Keys of run.json", "", "| key | what |", "|-|-|",
              *_rows([*RUN_JSON, *SELDOM], {**RUN_JSON, **SELDOM}), ""]
    return "\n".join(lines)


def _rows(names: Sequence[str], described: Mapping[str, str]) -> Iterator[str]:
    """A row for each description: columns that stand together and are described alike share it.

    described: the description by the column; for others the quantity's own words.
    """
    for text, alike in itertools.groupby(
            names, lambda name: described.get(name) or _describe_quantity(name)):
        yield f"| {', '.join(f'`{name}`' for name in alike)} | {_cell(text)} |"


def _describe_quantity(column: str) -> str:
    known = QUANTITIES.get(column)
    return (known.label or known.what) if known else column.replace("_", " ")


def _describe_fields(kind: type[Any]) -> dict[str, str]:
    """The description of each field in a class's docstring: "name, other: what they are"."""
    names = {field.name for field in fields(kind)}
    described: dict[str, str] = {}
    # Docstrings of base classes count too. A dataclass that has none has its signature there.
    docstrings = [base.__doc__ for base in kind.__mro__ if is_dataclass(base) and base.__doc__
                  and not base.__doc__.startswith(f"{base.__name__}(")]
    for paragraph in "\n\n".join(docstrings).split("\n\n"):
        # From "COLUMNS: …" on the docstring describes the class, not its fields.
        text = re.split(r" (?=[A-Z_]{4,}: )", " ".join(paragraph.split()))[0]
        heads = [match for match in re.finditer(r"((?:[a-z_0-9]+, )*[a-z_0-9]+): ", text)
                 if {*match[1].split(", ")} <= names]
        ends: Sequence[int] = [*(match.start() for match in heads[1:]), len(text)]
        for head, end in zip(heads, ends):
            description = text[head.end():end].strip().rstrip(";.").strip()
            described |= dict.fromkeys(head[1].split(", "), description)
    return described


def _cell(text: str) -> str:
    return text.replace("|", " or ").replace("[", "(").replace("]", ")")


def method() -> str:
    """METHOD.md, in which the tables of checks are replaced by those of judge/checklist.py."""
    text = (DOCS / METHOD).read_text(encoding="utf-8")
    for table in (checks(), checks_of_load()):
        head = table.partition("\n")[0]
        before, _, rest = text.partition(head)
        text = f"{before}{table}\n\n{rest.partition(f'{chr(10)}{chr(10)}')[2]}"
    return text


def checks() -> str:
    """A table of all checks: what each compares, and which workloads it judges."""
    rows = ["| check | requested | observed | of |", "|---|---|---|---|"]
    for looks_at, listed in itertools.groupby(checklist.LIST, lambda row: row.looks_at):
        rows.append(f"| *{looks_at}* | | | |")
        for row in listed:
            judged = "all" if row.judges == checklist.WORKLOADS else ", ".join(row.judges)
            limits = [*(["in virtual time"] if row.exact_only else []),
                      *([row.only] if row.only else [])]
            rows.append(f"| {row.name} | {row.requested} | {row.observed} |"
                        f" {': '.join([judged, *limits])} |")
    return "\n".join(rows)


def checks_of_load() -> str:
    """A table of which connections of a load each check judges.

    Its last row has the checks that judge a fetch and no load.
    """
    judged: dict[str, list[str]] = {}
    for row in checklist.LIST:
        if checklist.LOAD in row.judges:
            judged.setdefault(row.of_load, []).append(row.name)
    missing = [row.name for row in checklist.LIST if checklist.LOAD not in row.judges
               and checklist.FETCH in row.judges and not row.only]
    return "\n".join(["| seen of a load | by the checks |", "|---|---|",
                      *(f"| {which} | {', '.join(names)} |" for which, names in judged.items()),
                      f"| not seen, of what judges a fetch | {', '.join(missing)} |"])


def one_trial_and_page() -> str:
    return f"{one_trial.page()}\n{one_page.section()}"


# The example comes first, since REFERENCE.md says which keys the examples lack.
DOCUMENTS = {QUESTION: question, "REFERENCE.md": reference, "ONE_TRIAL.md": one_trial_and_page,
             METHOD: method}

if __name__ == "__main__":
    for name, make in DOCUMENTS.items():
        (DOCS / name).write_text(make(), encoding="utf-8")
