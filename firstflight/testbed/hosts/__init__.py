"""Programs that run on hosts besides server.py and client.py, and what these share.

Nothing here imports anything of the project but what stands here. Programs are
started as modules from the project's folder: `python3 -m testbed.hosts.load_server`.
"""
