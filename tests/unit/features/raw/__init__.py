"""Tests of lab.fetches.features.raw."""
