"""Errors, words, statistics, files, command lines: what every room may use."""

__version__ = "0.9.0"  # CHANGELOG.md and CITATION.cff say the same
