"""What runs inside a guest or namespace: it builds the network and measures trial by trial."""
