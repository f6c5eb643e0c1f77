"""Tests of limiting factors of fetches."""
