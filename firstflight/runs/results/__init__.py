"""Stored results: a record for each trial, and the provenance of a run."""
