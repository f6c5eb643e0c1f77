"""Runs any command in a guest in virtual time: guest.py on the machine, inside.py in the guest."""
