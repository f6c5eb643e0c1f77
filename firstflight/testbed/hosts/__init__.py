"""The programs that run on hosts: servers, clients, and what they share.

They import only Python's standard library (some pycurl or cryptography) and net/. They are started
as modules from the project's folder: `python3 -m firstflight.testbed.hosts.load_server`.
"""
