"""People's own users: what logs, socket lists and captures say of RTTs, bandwidths, sizes."""
