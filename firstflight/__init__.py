"""First Flight: what TCP's initial window does, measured on real Linux TCP."""
