"""Tests of lab.fetches.features.limiting_factors."""
