"""Commands that run what others wrote in a guest in virtual time."""
