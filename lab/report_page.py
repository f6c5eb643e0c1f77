"""What every report page shares: the template engine, pictures inside the page, one file."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import jinja2

from lab import report_texts, runs
from lab.errors import FirstFlightError

PAGE = "report.html"


class ReportError(FirstFlightError):
    """A run folder from which no page can be built."""


def render(template: str, **values: Any) -> str:
    """A page from one of the templates beside this file; every value is escaped."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).resolve().parent), autoescape=True,
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True)
    environment.filters["tight"] = report_texts.tight
    return environment.get_template(template).render(**values)


def address(drawing: bytes) -> str:
    """A PNG file as a data: address."""
    return "data:image/png;base64," + base64.b64encode(drawing).decode("ascii")


def write(folder: Path, page: str) -> Path:
    """Write the page into a run's folder, aside and renamed; return its path."""
    path, aside = folder / PAGE, folder / f".{PAGE}"
    try:
        aside.write_text(page, encoding="utf-8")
        aside.replace(path)
    except OSError as error:
        raise ReportError(f"{path}: cannot be written: {error.strerror or error}") from error
    runs.give_to_invoking_user(path)
    return path
