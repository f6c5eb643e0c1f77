"""run.sh --find-cliff: the largest chain or response of one flight, measured to the byte."""

from __future__ import annotations

import argparse
import itertools
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engines.engine import choose_engine
from engines.job import EngineCannot, EngineError
from lab import registry
from lab.core import errors, files
from lab.core.command_line import say
from lab.core.errors import CannotError, FirstFlightError
from lab.core.kinds import Overrides


def find(arguments: argparse.Namespace, asked: Overrides) -> int:
    """Print where one byte more costs a round trip, window by window; the exit status.

    Nothing is kept but what is printed. Raises UsageError, FirstFlightError.
    """
    what, results = arguments.find_cliff, arguments.results
    study = registry.cliff_question(what, asked)
    try:
        engine = choose_engine(arguments.engine, arguments.jobs)
    except EngineCannot as error:
        raise CannotError(str(error)) from error
    if engine.warning:
        say(f"run.sh: {engine.warning}")
    rounds = itertools.count(1)

    def measured(trials: Sequence[Any]) -> dict[Any, Any]:
        """The records of some trials, judged as those of any run."""
        say(f"--find-cliff: {len(trials)} trials")
        by_id = {trial.id: trial for trial in trials}
        seen_by = engine.run([trial.job() for trial in trials], study.head.sysctls,
                             Path(folder) / f"round{next(rounds)}")
        return {by_id[seen.trial_id]: study.judge(by_id[seen.trial_id], seen, engine.exact,
                                                  study.head.sysctls)[0] for seen in seen_by}

    agreed = []
    try:
        with tempfile.TemporaryDirectory(prefix="cliff-", dir=files.make_folder(results)
                                         ) as folder:
            for agrees, lines in registry.cliffs(what, study, measured):
                print("\n".join(lines), flush=True)
                agreed.append(agrees)
    except EngineCannot as error:
        raise CannotError(str(error)) from error
    except EngineError as error:
        raise FirstFlightError(str(error)) from error
    return errors.OK if all(agreed) else errors.VERDICT
