"""Findings as text, Markdown, a page or data."""
