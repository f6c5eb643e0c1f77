"""--find-cliff: the most bytes that cost no further round trip."""
