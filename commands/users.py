"""run.sh --users: which window for the users of a file, as scenarios of their own."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from base import typed
from base.command_line import file_path, positive, say
from base.errors import UsageError
from commands import run as measure
from commands.runners import check_rights
from findings.quantities import FLAGS, QUANTITIES
from runs import scenario_file
from runs.kinds import Overrides, RunData, Study
from runs.measuring import Refining
from study import registry
from study.fetches.features.users.requested import (LARGEST_WINDOW, LOAD, QUANTITY_NAMES, TRIALS,
                                                    WINDOWS, Requested)


def add_flags(add: Callable[..., object]) -> None:
    add("--users", type=file_path, metavar="FILE",
        help="which window for the users of a file: a CSV with rtt_ms,bandwidth_kbps,"
             "response_bytes[,group][,weight], nginx's access log with $tcpinfo_rtt, the output of"
             " ss -tin, a capture of a server; --iw, --bw and --size for what it does not know")
    add("--trials", type=positive, metavar="N",
        help=f"with --users: how many users are measured under each window (default {TRIALS})")
    add("--share-link", type=kbps, metavar="KBPS",
        help="with --users: also measure what larger windows cost others on a shared link of this"
             " many kbit/s. Half of its connections are your users'; --load says how full it is"
             " (default"
             f" {LOAD:g})")


def kbps(word: str) -> float:
    """Reads a bandwidth, such as 20M. Raises argparse.ArgumentTypeError."""
    try:
        return typed.number(word, "kbit/s")
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def wrong(arguments: argparse.Namespace, given: Mapping[str, str],
          questions: Sequence[str]) -> str:
    """Which flags do not go together, "" for none; given: those of a network, TCP and a trial."""
    if arguments.users and (arguments.scenario or {"repeat", "client", "sysctl"} & {*given}):
        return "--users goes without a scenario, --repeat, --client and --sysctl"
    if arguments.share_link is not None and not arguments.users:
        return "--share-link goes only with --users FILE"
    if arguments.trials and not arguments.users:
        return "--trials goes only with --users FILE"
    return ""


def read(arguments: argparse.Namespace) -> list[Study]:
    """A sample of the users of a file; with others on a link if requested. Raises UsageError."""
    return list(_studies(arguments, requested_of(arguments)))


def _studies(arguments: argparse.Namespace, requested: Requested) -> Iterator[Study]:
    from study.fetches.features.users import logs, sample, shared
    users = logs.read_file(arguments.users)
    for make in [sample.scenario] if requested.shared_kbps is None else [sample.scenario,
                                                                     shared.scenario]:
        yield registry.study_of(make(users, requested, arguments.users, arguments.seed),
                                Overrides({}, many=arguments.yes), arguments.seed)


def run(arguments: argparse.Namespace) -> int:
    """Measure; where no windows are named, larger ones too while the largest is the best."""
    if arguments.dry_run:
        return measure.run(arguments, read)
    check_rights(arguments)
    requested = requested_of(arguments)
    while True:
        first, *others = list(_studies(arguments, requested))
        measured = measure.measured(first, arguments, _refining(first))
        largest = max(requested.windows)
        if (arguments.initcwnd is not None or largest >= LARGEST_WINDOW
                or _chosen(first, measured) != largest):
            break
        say(f"run.sh: {largest} segments, the largest window so far, is the best:"
            f" {2 * largest} are measured too (--iw with a list of windows prevents this)")
        requested = replace(requested, windows=(*requested.windows, 2 * largest))
    return measure.worst([measure.show(first, measured, arguments),
                          *(measure.run_study(study, arguments) for study in others)])


def _refining(study: Study) -> Refining:
    """What is measured is kept; a first answer comes early."""
    from study.fetches.features.users.findings import first_answer
    from study.fetches.scenario.users import content, order
    return Refining(content, order, lambda records: first_answer(study.scenario.users, records))


def _chosen(study: Study, measured: RunData) -> int:
    """The window that the rule chooses for all users; 0 where none of them counts."""
    from study.fetches.features.users import analysis
    users = study.scenario.users
    counting = analysis.measured(users, measured.records)
    if not len(counting.weight):
        return 0
    return analysis.verdict(counting, users.baseline_initcwnd).initcwnd


def requested_of(arguments: argparse.Namespace) -> Requested:
    """What the flags request of --users. Raises UsageError."""
    given = measure.overrides_of(arguments).checked()
    windows = given.pop("initcwnd", WINDOWS)
    link_kbps = arguments.share_link
    if link_kbps is not None:
        link_kbps = QUANTITIES["bandwidth_kbps"].check(link_kbps, "--share-link")
        if len(windows) < 2:
            raise UsageError("--share-link: compares windows; give several with --iw")
    if "load" in given and link_kbps is None:
        raise UsageError("--load: --users takes it with --share-link KBPS only")
    for name, values in given.items():
        if len(values) != 1:
            raise UsageError(f"{FLAGS[name].flag}: --users takes one value of this flag, the same"
                             " for everybody; only --iw takes a list")
    scenario_file.check_count(len(windows) * (arguments.trials or TRIALS),
                              many=arguments.yes or arguments.dry_run)
    single = {name: values[0] for name, values in given.items()}
    load = single.pop("load", LOAD)
    return Requested(
        windows, arguments.trials or TRIALS,
        {name: value for name, value in single.items() if name in QUANTITY_NAMES},
        {name: value for name, value in single.items() if name not in QUANTITY_NAMES},
        link_kbps, load)
