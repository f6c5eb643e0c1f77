"""A published set-up with its defects, which are switched on one cause after another."""
