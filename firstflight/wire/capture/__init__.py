"""Reads the capture of a command's network, and reports what the network really did.

./run.sh --capture and --report show the report.
"""
