"""Traces of one connection's window: scenarios of kind "trace"."""
