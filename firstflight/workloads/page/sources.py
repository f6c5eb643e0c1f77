"""Where the sites of a scenario's pages come from: folders and HARs that the scenario names."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from firstflight.base.errors import UsageError
from firstflight.runs.scenario_file import SCENARIOS, ScenarioFile
from firstflight.testbed import site_store
from firstflight.workloads.page import site


@dataclass(frozen=True)
class Source:
    """Where the site of a page is that a browser loads: it is stored, in a folder, or in a HAR."""

    # A site that is stored already (testbed.site_store), with the bytes of its bodies.
    digest: str = ""
    size_bytes: int = 0
    # A folder or a HAR; url_path and files as in site.read.
    path: str = ""
    url_path: str = ""
    files: tuple[str, ...] = ()
    is_har: bool = False
    # The folder that `path` is relative to; None for the folder of the project's scenarios.
    beside: Path | None = field(default=None, compare=False)
    where: str = field(default="", compare=False)  # how messages name the site

    def __bool__(self) -> bool:
        """Whether the page has a site."""
        return bool(self.digest or self.path)

    def recorded(self) -> tuple[str, int]:
        """The digest of the site, and the bytes of its bodies. Raises UsageError.

        The project's scenarios name folders that packages install. Where a folder is missing, the
        digest is site_store.NOT_INSTALLED, and trials with this digest are skipped.
        """
        if not self.path:
            return self.digest, self.size_bytes
        path = (self.beside or SCENARIOS) / self.path
        if self.beside is not None and not _is_inside(path, self.beside):
            raise UsageError(f"{self.where}: {path} is not below the folder of this file: a"
                             " scenario may come from a stranger, so put the site beside it, or"
                             " measure it with --page")
        if self.beside is None and not path.exists():
            return site_store.NOT_INSTALLED, 0
        if path.exists() and site.is_har(path) != self.is_har:
            fault = "is a folder" if self.is_har else "is no folder"
            raise UsageError(f"{self.where}: {path}: {fault}")
        return _recorded(path, self.url_path, self.files, self.where)


def _is_inside(path: Path, folder: Path) -> bool:
    """Whether a path is below a folder, or below site.SHARED, once links are followed."""
    real = Path(os.path.realpath(path))
    return real.is_relative_to(os.path.realpath(folder)) or real.is_relative_to(site.SHARED)


def beside(file: ScenarioFile) -> Path | None:
    """The folder that paths in a scenario's file are relative to (Source.beside)."""
    return Path(file.path).parent if file.path else None


@lru_cache
def _recorded(path: Path, url_path: str, files: tuple[str, ...], where: str) -> tuple[str, int]:
    """Store a site; return its digest, and the bytes of its bodies."""
    recording = site.read(path, url_path, files=files, where=where).recording
    size_bytes = sum(len(answer.body) for answer in recording.answers)
    return site_store.offer(recording), size_bytes
