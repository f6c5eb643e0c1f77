"""Checks that several workloads have: what a setting has to look like on the wire."""
