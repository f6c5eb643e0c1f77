"""What can be left out: each folder registers what it brings to the core of fetches."""
