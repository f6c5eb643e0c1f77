"""Anybody's command in a guest in virtual time: guest.py outside, inside.py in the guest."""
