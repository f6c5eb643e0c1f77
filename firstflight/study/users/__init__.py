"""One's own users: what logs and socket lists say of them, and which window suits them."""
