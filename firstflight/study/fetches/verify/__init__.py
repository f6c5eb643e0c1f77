"""What is observed of a fetch, and whether it is what was requested."""
