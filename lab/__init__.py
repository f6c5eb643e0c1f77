"""The library the rest stands on; needs neither root nor Mininet nor matplotlib."""

__version__ = "0.9.0"  # CHANGELOG.md and CITATION.cff say the same
