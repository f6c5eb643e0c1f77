"""Tests of lab.fetches.features.timelines."""
