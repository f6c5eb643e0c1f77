"""Measures the first flight of a real server: the only package that talks to others' networks."""
