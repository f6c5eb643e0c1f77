"""How a parameter of a trial is declared: once, as a field of its subject.

Its unit, range, default, flag and words are its quantity's (findings.quantities, by its
name). What else there is to know of it stands with the field: whether sweeps list it,
whether the models of TCP and of the path follow it, its place in a trial's id. Columns, keys of
scenario files, cells, the worker's job and the documents follow.
"""

from __future__ import annotations

from dataclasses import MISSING, field
from typing import Any

from firstflight.findings.quantities import QUANTITIES

SWEPT = "swept"  # whose quantity it is: a sweep has a list of it, of its default if not given
MODELLED = "modelled"  # whether the model of TCP follows any other value than the default
# Its value, besides the default, where nobody requested it: a table does not show it.
UNSAID = "unsaid"


def swept(name: str, *, required: bool = False, modelled: bool = True, **more: object) -> Any:
    """A parameter that a sweep has a list of; required: it has no default."""
    return field(default=MISSING if required else QUANTITIES[name].defaults[0],
                 metadata={SWEPT: name, MODELLED: modelled, **more})


def network(name: str, tag: str, *, required: bool = False, random: bool = False,
            modelled: bool = True, computed: bool = True, disorder: str = "") -> Any:
    """A parameter of the network's shape, applied by the worker under its name.

    tag: before its value in a trial's id, where it is not 0. random: what it does is drawn
    from the trial's seed. computed: the wire shows what it does to each packet, and
    wire.delivery computes that of its Path (PathParameters.path); else no packet is judged by
    itself where it is set. disorder: why packets may come out of order, or look lost to TCP.
    """
    return swept(name, required=required, modelled=modelled, shape=tag, random=random,
                 computed=computed, disorder=disorder)


def switch(name: str, tag: str, *, modelled: bool = True) -> Any:
    """What a published set-up did otherwise; off by default.

    tag: before its value in a trial's id, where it is on.
    """
    return swept(name, modelled=modelled, switch=tag)
