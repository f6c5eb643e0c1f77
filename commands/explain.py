"""run.sh --explain: which part of an observed time the window explains, and what else could."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Container, Mapping, Sequence

from base import errors, typed
from base.command_line import printed, say, terminal_width
from commands import run as measure
from commands.runners import check_rights, rounds
from findings.render.text import wrapped
from runs.kinds import Overrides, Study
from study import registry

INDENT = "  "
LEAST_MS = 0.001  # nobody has seen a shorter transfer


def milliseconds(word: str) -> float:
    """Reads a time, such as 3500ms or 3.5s. Raises argparse.ArgumentTypeError."""
    try:
        value = typed.number(word, "ms")
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if not LEAST_MS <= value <= 1e9:
        raise argparse.ArgumentTypeError(f"{word!r} is not a time; write 3500ms or 3.5s")
    return value


def add_flags(add: Callable[..., object]) -> None:
    add("--explain", type=milliseconds, metavar="TIME",
        help="with a question by flags: a time that you observed, like 3500ms; prints which part"
             " of it the window can explain, and which bandwidth, RTT or loss would explain the"
             " rest")


def wrong(arguments: argparse.Namespace, given: Container[str], questions: Sequence[str]) -> str:
    """Which flags do not go with --explain, "" for none; given: those of a network and TCP."""
    if not arguments.explain:
        return ""
    if arguments.scenario or len(questions) > 1 or arguments.export:
        return ("--explain goes with a question by flags (--rtt, --bw, --size, --iw): without a"
                " scenario, --users, --find-cliff and --export")
    return ""


def read(arguments: argparse.Namespace) -> list[Study]:
    """The question. Raises UsageError where it is of several networks."""
    from study.fetches.features.explain import search as explain
    study = measure.study_of("", arguments)
    explain.check(study.trials)
    return [study]


def run(arguments: argparse.Namespace) -> int:
    """Answer the question, then print what would make up the rest of the time; the exit status."""
    from study.fetches.features.explain import search as explain
    if arguments.dry_run:
        return measure.run(arguments, read)
    check_rights(arguments)
    study, = read(arguments)
    data = measure.measured(study, arguments)
    status = measure.show(study, data, arguments)
    times = explain.times(data.records)
    if times is None:
        return status
    _print(explain.of_window(arguments.explain, times), first="")
    if arguments.explain <= times.base_ms * (1 + explain.NEAR):
        return status
    _print("Each of these alone would make it about as long, measured here:", first="")
    if not arguments.quiet:
        say("--explain: searches for them by measuring")
    with rounds(study, arguments) as records:

        def mean_times(requested: Overrides, by: str) -> Mapping[float, float]:
            """A question measured: its mean times in ms by the values of a quantity."""
            study = registry.own_question("own", requested, arguments.seed)
            return explain.mean_times(list(records(study, study.trials)), by)

        for line in explain.causes(arguments.explain, times, measure.overrides_of(arguments),
                                   mean_times):
            if not _print(line):
                return status or errors.UNREAD
    return status


def _print(line: str, first: str = "- ") -> bool:
    return printed(wrapped(f"{first}{line}", terminal_width(), INDENT * 2, INDENT))
