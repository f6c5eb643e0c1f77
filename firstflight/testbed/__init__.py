"""Inside a guest or on this machine: networks, servers, clients, and who measures with them."""
