"""The real browser of a page: Chromium, and what it reports of a load."""
