"""What the project's command lines share: one line for what is wrong, on standard error."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from lab.core.errors import FAILED, INTERRUPTED, USAGE, FirstFlightError


def say(message: str) -> None:
    """One message line to standard error."""
    print(message, file=sys.stderr, flush=True)


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, and leaves the flags to --help."""

    def error(self, message: str) -> NoReturn:
        say(f"{self.prog}: {message} (--help shows every flag)")
        sys.exit(USAGE)


def run_main(program: str, main: Callable[[Sequence[str]], int], kept: str = "") -> NoReturn:
    """Run a command's main and exit with its status; no traceback reaches the user.

    kept: what to add for a command that was stopped on its way.
    """
    try:
        status = main(sys.argv[1:])
    except FirstFlightError as error:
        say(f"{program}: {error}")
        status = error.exit_status
    except KeyboardInterrupt:
        say(f"{program}: interrupted{kept}")
        status = INTERRUPTED
    except OSError as error:
        say(f"{program}: {error.filename or 'writing'}: {error.strerror}{kept}")
        status = FAILED
    except Exception as error:  # a mistake of ours: the user gets a line, we the rest
        crash = Path(tempfile.gettempdir()) / f"first-flight-crash-{os.getpid()}.txt"
        crash.write_text(traceback.format_exc())
        say(f"{program}: internal error, {type(error).__name__}: {error}; please report it with"
            f" {crash}{kept}")
        status = FAILED
    sys.exit(status)
