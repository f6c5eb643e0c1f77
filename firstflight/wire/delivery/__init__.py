"""Compares what a path did with each packet with what its qdiscs have to do with it."""
