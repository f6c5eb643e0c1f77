"""Networks, servers, clients and the worker that measures with them, in a guest or on this machine.
"""
