"""Parts of server.py: its listener, its connections, and HTTP's requests and responses."""
