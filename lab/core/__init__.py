"""What every kind of study shares; needs neither root nor Mininet nor matplotlib."""

__version__ = "0.9.0"  # CHANGELOG.md and CITATION.cff say the same
