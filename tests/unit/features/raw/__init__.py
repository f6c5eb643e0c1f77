"""Tests of published raw values."""
