"""What a field of a trial is of, from which its place in jobs, ids and columns follows."""

from __future__ import annotations

from typing import Any


def network(tag: str, random: bool = False) -> dict[str, Any]:
    """Marks a field as one of the network's shape, applied by the worker under its name.

    tag: before its value in a trial's id, where it is not 0. random: what it
    does is drawn from the trial's seed.
    """
    return {"shape": tag, "random": random}


def switch(tag: str) -> dict[str, Any]:
    """Marks a field as something that a published set-up did otherwise; off by default.

    tag: before its value in a trial's id, where it is on.
    """
    return {"switch": tag}


# Marks a field that says how TLS is spoken, to the worker under its name.
TLS = {"tls": True}
