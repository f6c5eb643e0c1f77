"""Answers a browser's requests from a recording of a site."""
