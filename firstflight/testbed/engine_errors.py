"""Turns the errors of an engine into messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from firstflight.base.errors import CannotError, FirstFlightError, resume_hint
from vtime.console import EngineCannot, EngineError


@contextmanager
def engine_errors() -> Iterator[None]:
    """Turn an engine's errors into errors that a user reads in one line."""
    try:
        yield
    except EngineCannot as error:
        raise CannotError(str(error)) from error
    except EngineError as error:
        raise FirstFlightError(f"{error}{resume_hint(error)}") from error
