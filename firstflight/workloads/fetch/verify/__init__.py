"""Verdicts on fetches: what was observed, compared with what was requested."""
