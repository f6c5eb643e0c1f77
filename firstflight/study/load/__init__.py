"""Load experiments: many connections at once on a shared link (the dumbbell of topo.py)."""
