"""Errors, words, statistics, files, command lines: what every room may use."""

from pathlib import Path

__version__ = "0.9.0"  # CHANGELOG.md and CITATION.cff say the same
PROJECT = Path(__file__).resolve().parent.parent.parent  # the folder of the project
