"""People's own users: what logs, socket lists and captures say, and which window suits them."""
