"""Findings, charts and claims: what a run shows, as values, before it is rendered."""
