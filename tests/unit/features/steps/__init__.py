"""Tests of lab.fetches.features.steps."""
