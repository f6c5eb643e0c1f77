"""What a scenario of fetches may ask: trials, sweeps, figures."""
