"""Transfers over time, packet by packet, of the captures that a run kept."""
