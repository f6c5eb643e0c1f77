"""Load experiments: many connections at once over a shared link (the dumbbell of topo.py)."""
