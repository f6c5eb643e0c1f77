"""Servers besides server.py: nginx, and one of the user's own."""
