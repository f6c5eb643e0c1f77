"""Studies and questions of fetches, a folder each: populations, users, set-ups, cliffs."""
