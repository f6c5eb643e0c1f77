"""Renders findings as text, Markdown, a page, or data."""
