"""What questions by flags bring: their scenario (question.py), called by the registry."""

from __future__ import annotations

from lab.fetches.scenario import feature

FEATURE = feature.Feature()
