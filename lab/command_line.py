"""What the project's command lines share: one line for what is wrong, on standard error."""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn

from lab.errors import USAGE


def say(message: str) -> None:
    """One message line to standard error."""
    print(message, file=sys.stderr, flush=True)


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, and leaves the flags to --help."""

    def error(self, message: str) -> NoReturn:
        say(f"{self.prog}: {message} (--help shows every flag)")
        sys.exit(USAGE)
