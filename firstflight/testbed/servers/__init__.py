"""Servers other than server.py: nginx, and the user's own."""
