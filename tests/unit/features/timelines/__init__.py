"""Tests of timelines of fetches."""
