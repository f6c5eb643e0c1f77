"""A published setup with its faults, one cause at a time."""
