"""Tests of study.fetches.features.explain."""
