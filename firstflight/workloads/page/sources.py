"""Where the sites of a scenario's pages come from: folders and HARs that its file names."""

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
    """The site of a page that a browser loads."""

    # Of a site that is stored already (testbed.site_store).
    digest: str = ""
    size_bytes: int = 0
    # Of a folder or a HAR; url_path and files as in site.read.
    path: str = ""
    url_path: str = ""
    files: tuple[str, ...] = ()
    is_har: bool = False
    # The folder from which path leads, None for that of the project's scenarios.
    beside: Path | None = field(default=None, compare=False)
    where: str = field(default="", compare=False)  # how messages name it

    def __bool__(self) -> bool:
        """Whether the page has a site."""
        return bool(self.digest or self.path)

    def recorded(self) -> tuple[str, int]:
        """The digest of the site, and the bytes of its bodies. Raises UsageError.

        The project's scenarios name what packages install: where one of these is missing, the
        digest is site_store.NOT_INSTALLED, and trials with it are skipped.
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
    """Whether a path leads below a folder, or to what packages share, once links are followed."""
    real = Path(os.path.realpath(path))
    return real.is_relative_to(os.path.realpath(folder)) or real.is_relative_to(site.SHARED)


def beside(file: ScenarioFile) -> Path | None:
    """The folder from which the paths in a scenario's file lead (Source.beside)."""
    return Path(file.path).parent if file.path else None


@lru_cache
def _recorded(path: Path, url_path: str, files: tuple[str, ...], where: str) -> tuple[str, int]:
    """The digest of a site, and the bytes of its bodies. Stores it."""
    recording = site.read(path, url_path, files=files, where=where).recording
    size_bytes = sum(len(answer.body) for answer in recording.answers)
    return site_store.offer(recording), size_bytes
