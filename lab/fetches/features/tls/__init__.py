"""TLS, early data and QUIC: chains, records, their checks."""
