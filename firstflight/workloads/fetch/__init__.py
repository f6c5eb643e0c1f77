"""Fetches: one transfer at a time on the star."""
