"""Builds emulated networks with Mininet, and sets links, addresses and qdiscs over netlink."""
