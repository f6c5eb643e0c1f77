"""Tests of lab.fetches.features.explain."""
