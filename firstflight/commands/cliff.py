"""run.sh --find-cliff: the largest chain or response of one flight, measured to the byte."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Container, Sequence
from typing import Any

from firstflight.base import errors
from firstflight.base.terminal import say, terminal_width
from firstflight.base.words import escaped
from firstflight.commands.dry_run import dry_run
from firstflight.commands.overrides import overrides_of
from firstflight.runs.kinds import Study
from firstflight.study import registry


def add_flags(add: Callable[..., object]) -> None:
    add("--find-cliff", choices=("chain", "response", "early"),
        help="find to the byte, for each --iw, the largest certificate chain, response or early"
             " data that a first flight holds, with the writes and segments that explain it")


def wrong(arguments: argparse.Namespace, given: Container[str], questions: Sequence[str]) -> str:
    """Why the flags do not go with --find-cliff; "" if they do. given: flags of network and TCP."""
    if arguments.find_cliff and (arguments.scenario or len(questions) > 1 or arguments.name
                                 or arguments.repeat or arguments.export):
        return ("--find-cliff is a question of its own: it takes flags of a network, TCP and TLS,"
                " and no scenario, --users, --name, --repeat or --export")
    return ""


def read(arguments: argparse.Namespace) -> list[Study]:
    """The network and windows of the search. Raises UsageError."""
    return [registry.cliff_question(arguments.find_cliff, overrides_of(arguments))]


def run(arguments: argparse.Namespace) -> int:
    """Print where one byte more costs a round trip, window by window; the exit status.

    Nothing is kept but what is printed. Raises UsageError, FirstFlightError.
    """
    what, agreed = arguments.find_cliff, []
    study, = read(arguments)
    if arguments.dry_run:
        return dry(study, arguments)
    # What boots guests, judges and renders, which a dry run does not load.
    from firstflight.commands.runners import rounds
    from firstflight.findings.render.text import wrapped
    with rounds(study, arguments) as records:
        is_quiet = arguments.quiet

        def measured(trials: Sequence[Any]) -> dict[Any, Any]:
            """The records of some trials, judged as those of any run."""
            nonlocal is_quiet
            if not is_quiet:
                say(f"--find-cliff: measures {len(trials)} sizes at a time, until one byte decides")
            is_quiet = True
            return {record.trial: record for record in records(study, trials)}

        for agrees, lines in registry.cliffs(what, study, measured):
            for line in lines:
                detail = line.startswith("  ")
                print(escaped(wrapped(line.strip(), terminal_width(), "    " if detail else "  ",
                                      "  " if detail else "")), flush=True)
            agreed.append(agrees)
    return errors.OK if all(agreed) else errors.VERDICT


def dry(study: Study, arguments: argparse.Namespace) -> int:
    """Print what a search would measure."""
    dry_run(study, arguments)
    print("--find-cliff: measures other sizes of each trial, round after round, until the largest"
          " that fits and the smallest that does not are one byte apart; the expected time is that"
          " of one round")
    return errors.OK
