"""Trials drawn from distributions: the clients of the paper."""
