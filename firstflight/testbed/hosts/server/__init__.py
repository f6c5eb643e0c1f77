"""The parts of server.py: the listener, its connections, requests and responses."""
