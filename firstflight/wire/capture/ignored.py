"""What Mininet silently ignored of what a script gave its links."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from difflib import get_close_matches

from firstflight.wire.capture.calls import Calls, LinkCall, LinkEnd

# What Mininet's links with traffic control take, and plain ones ignore.
OF_LINKS = ("bw", "delay", "jitter", "loss", "max_queue_size")
# What does nothing without bw (mininet.link.TCIntf.bwCmds).
_OF_BW = ("use_hfsc", "use_tbf", "latency_ms", "enable_ecn", "enable_red")
_FALSE = ("False", "0", "None")
# What people write in place of those.
_MEANT = {
    **dict.fromkeys(("bandwidth", "band_width", "bandWidth", "rate", "capacity", "speed"), "bw"),
    **dict.fromkeys(("latency", "lat", "rtt", "delay_ms", "link_delay"), "delay"),
    **dict.fromkeys(("packet_loss", "loss_rate", "lossrate", "plr", "drop"), "loss"),
    **dict.fromkeys(("queue", "queue_size", "queuesize", "max_queue", "maxqueue", "max_queue_len",
                     "queue_length", "buffer", "buffer_size", "limit"), "max_queue_size")}
_LIKE, _VERY_LIKE = 0.75, 0.85  # of difflib
_MOST_LINES, _MOST_PLACES = 10, 3


def lines_about_links(calls: Calls) -> list[str]:
    """A line for each thing that was ignored, with the lines of the script that ask for it."""
    is_any_shaped = any("TC" in end.kind for link in calls.links for end in link.ends)
    places: dict[str, dict[str, None]] = {}
    for link in calls.links:
        for end in link.ends:
            for why in _ignored(link, end, is_any_shaped):
                places.setdefault(why, {}).setdefault(link.place)
    lines = [f"{_called([*found])}{why}" for why, found in places.items()]
    if len(lines) > _MOST_LINES:
        lines[_MOST_LINES:] = [f"… and {len(lines) - _MOST_LINES} more lines about links"]
    return lines


def _called(places: list[str]) -> str:
    """The places of a call: "line 3, addLink: "."""
    named = [place for place in places if place]
    if not named:
        return "addLink: "
    more = f" and {len(named) - _MOST_PLACES} more" if len(named) > _MOST_PLACES else ""
    return f"{', '.join(named[:_MOST_PLACES])}{more}, addLink: "


def _ignored(link: LinkCall, end: LinkEnd, is_any_shaped: bool) -> Iterator[str]:
    """What an interface was given for nothing, in words."""
    given = end.given
    if not end.is_mininets:  # a class of the script's own may look at anything
        return
    plain = [name for name in OF_LINKS if name in end.ignored]
    if plain:
        cure = "cls=TCLink" if is_any_shaped else "link=TCLink (or --link tc)"
        yield f"{link.kind} ignores {', '.join(plain)}: write {cure}"
    for name in sorted(end.ignored - {*OF_LINKS}):
        meant = _meant(name)
        if meant and meant not in given:
            yield f"Mininet does not know {name}, and ignores it: write {meant}"
    if plain:
        return

    with suppress(ValueError):
        if end.most_bw and float(given.get("bw", 0)) > end.most_bw:
            yield (f"bw={given['bw']}: Mininet takes at most {end.most_bw:g} Mbit/s, and sets no"
                   " rate for more")
    with suppress(ValueError):
        if not 0 <= float(given.get("loss", 0)) <= 100:
            yield (f"loss={given['loss']}: Mininet takes 0 to 100 percent, and for more sets no"
                   " delay and no queue either")
    idle = [name for name in _OF_BW if given.get(name, "0") not in _FALSE]
    if idle and "bw" not in given:
        yield f"{', '.join(idle)}: without bw Mininet ignores it"
    if "jitter" in given and not {"bw", "delay", "loss", "max_queue_size"} & {*given}:
        yield "jitter: without delay Mininet ignores it"


def _meant(name: str) -> str:
    """The parameter that was most likely meant; "" for one of the script's own."""
    near = get_close_matches(name, OF_LINKS, 1, _LIKE)
    if near:
        return near[0]
    return next((_MEANT[word] for word in get_close_matches(name, _MEANT, 1, _VERY_LIKE)), "")
