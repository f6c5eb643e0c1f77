"""How what is told becomes a file: whole at any moment, and its reader's own."""

from __future__ import annotations

from pathlib import Path

from lab.core import runs
from lab.core.errors import FirstFlightError


def write(path: Path, text: str) -> Path:
    """Write aside, then rename; return the path. Raises FirstFlightError."""
    aside = path.with_name(f".{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        aside.write_text(text, encoding="utf-8")
        aside.replace(path)
    except OSError as error:
        raise FirstFlightError(f"{path}: cannot be written: {error.strerror or error}") from error
    runs.give_to_invoking_user(path)
    return path
