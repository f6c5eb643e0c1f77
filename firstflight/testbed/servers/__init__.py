"""Servers that are not server.py: nginx, and programs of the user's own."""
