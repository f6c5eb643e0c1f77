"""The emulated network: links, addresses, queues, qdiscs, by netlink; Mininet's part."""
