"""Tests of grids of fetches."""
