"""Tests of lab.fetches.features.grids."""
