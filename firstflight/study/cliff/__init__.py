"""How many bytes a window answers within a number of round trips."""
