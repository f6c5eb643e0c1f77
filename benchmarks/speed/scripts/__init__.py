"""Mininet scripts as students write them, for benchmarks.speed.commands; any Mininet runs them."""
