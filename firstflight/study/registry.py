"""Finds the kind of a study. No other module knows all kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from firstflight.base.errors import UsageError
from firstflight.base.removed import REMOVED
from firstflight.findings.quantities import QUANTITIES
from firstflight.runs import runs, scenario_file, schema
from firstflight.runs.kinds import NOTHING, AnyKind, AnyRun, AnyScenario, AnyStudy, Overrides
from firstflight.runs.scenario_file import ScenarioFile

if TYPE_CHECKING:
    from firstflight.findings.findings import Report
    from firstflight.study.fetches import FetchStudy
    from firstflight.workloads.fetch.record.record import Record
    from firstflight.workloads.fetch.scenario.scenario import Scenario
    from firstflight.workloads.fetch.trial import Trial

# The module of each `kind` of a scenario file. It is imported only where it is needed, and its
# KIND is the kind. To remove a kind, remove its line and its folder: nothing else names it.
KINDS = {
    "fetches": "firstflight.study.fetches",  # one transfer at a time on the star
    "load": "firstflight.study.loads",  # many connections on a shared link
    "page": "firstflight.study.pages",  # a document and its objects over several connections
    "trace": "firstflight.study.traces",  # one connection's window over time
}


def kind(name: str) -> AnyKind:
    """The kind of that name. Raises ValueError."""
    if name not in KINDS:
        raise ValueError(f"there is no kind {name!r} of study")
    kind_of_study: AnyKind = import_module(KINDS[name]).KIND
    return kind_of_study


def study_of(file: ScenarioFile, overrides: Overrides = NOTHING, seed: int = 1) -> AnyStudy:
    """The study of a scenario file, with the command line's overrides. Raises UsageError."""
    QUANTITIES["seed"].check(seed, "--seed")
    if file.raw.get("kind") == "arithmetic":
        raise UsageError(f"{file.where}: {REMOVED['paper_arithmetic']}")
    name = schema.one_of(file.raw.get("kind", "fetches"), list(KINDS), f"{file.where}: kind")
    return kind(name).study(file, overrides, seed)


def fetches_of(scenario: Scenario, many: bool, seed: int) -> FetchStudy:
    """The study of a scenario of kind fetches that is built already. Raises UsageError.

    many: more than 100,000 trials are allowed.
    """
    return _study_of_built("fetches", scenario, many, seed)


def _study_of_built(name: str, scenario: AnyScenario, many: bool, seed: int) -> AnyStudy:
    QUANTITIES["seed"].check(seed, "--seed")
    return kind(name).study_of(scenario, Overrides({}, many=many), seed)


def own_question(name: str, requested: Overrides, seed: int = 1) -> FetchStudy:
    """The study of one response on a network that flags describe. Raises UsageError."""
    from firstflight.study.questions import question
    with question.errors_by_flags():
        return fetches_of(question.scenario(name, requested), requested.many, seed)


class PageFields(TypedDict, total=False):
    """The fields of study.questions.page.RequestedPage, except the page's file."""

    objects: int | None
    document_bytes: int | None
    connections: Sequence[int]
    mine: Sequence[str]
    client: str
    url_path: str
    with_server_time: bool


def page_question(name: str, path: Path | None, fields: PageFields, requested: Overrides,
                  seed: int = 1) -> AnyStudy:
    """The study of a page that flags describe. Raises UsageError.

    path: the file that the page is read from; None for a page of equal objects.
    """
    from firstflight.study.questions import page as question
    page = question.RequestedPage(path, **fields)
    with question.errors_by_flags():
        scenario = question.scenario(name, page, requested)
        return _study_of_built("page", scenario, requested.many, seed)


def cliff_question(what: str, requested: Overrides) -> FetchStudy:
    """The study whose trials are the networks and servers on which a cliff is searched.

    what: a key of study.cliff.search.TARGETS. Raises UsageError.
    """
    from firstflight.study.cliff import search
    return own_question("cliff", search.overrides_for(what, requested))


class FoundCliff(NamedTuple):
    """What was found of one cliff; or, after the last one, what else a user has to consider."""

    # Whether the model of TCP has the cliff at the same size. True where it does not know the
    # server's writes, and for what else to consider.
    agrees: bool
    # The description that a user reads.
    lines: list[str]
    # The same for programs; None for what else to consider.
    values: Mapping[str, str | int | None] | None = None


def cliffs(what: str, study: FetchStudy,
           measure: Callable[[Sequence[Trial]], Mapping[Trial, Record]]) -> Iterator[FoundCliff]:
    """Search for the cliffs; yield each, and last what else to consider, if there is anything.

    what: a key of study.cliff.search.TARGETS. measure: takes trials, and returns their records.
    Raises FirstFlightError.
    """
    from firstflight.study.cliff import findings, search
    measured = search.search(what, study.trials, study.head.sysctls, measure)
    for cliff, distinction in zip(measured, findings.distinctions(study.trials)):
        lines = list(findings.sentences(what, cliff, distinction, study.head.sysctls))
        yield FoundCliff(cliff.agrees, lines, findings.values_of(cliff, distinction))
    if besides := list(findings.besides(what, measured)):
        yield FoundCliff(True, besides)


def stored_report(folder: Path) -> Report:
    """The report of a stored run, whatever its kind. Raises FirstFlightError."""
    study, run = stored_run(folder)
    return study.report(run)


def stored_run(folder: Path) -> tuple[AnyStudy, AnyRun]:
    """A stored run with its study, whatever its kind. Raises FirstFlightError."""
    name = runs.scenario_of(folder)
    text = runs.read_facts(folder).get("scenario_file")
    study = study_of(scenario_file.of_run(name, text if isinstance(text, str) else ""))
    run = runs.load_run(folder, study)
    return replace(study, whole=not run.facts.get("partial")), run
