"""Scenarios of fetches: trials, sweeps, figures."""
