"""What the search for a cliff brings: a question by flags (search.py), called by the registry."""

from __future__ import annotations

from lab.fetches.scenario import feature

FEATURE = feature.Feature()
