"""What --explain brings: a question by flags (search.py), which commands/explain.py asks."""

from __future__ import annotations

from lab.fetches.scenario import feature

FEATURE = feature.Feature()
