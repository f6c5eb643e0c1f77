"""The worker inside a guest or a namespace: it builds the network and measures trial by trial."""
