"""Tests of steps of fetches."""
