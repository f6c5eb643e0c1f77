"""Finds the parameters of a script's links that Mininet silently ignored."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from difflib import get_close_matches

from firstflight.wire.capture.calls import Calls, LinkCall, LinkEnd

# Parameters that Mininet's links with traffic control take, and its plain links ignore.
OF_LINKS = ("bw", "delay", "jitter", "loss", "max_queue_size")
# Parameters that do nothing without bw (mininet.link.TCIntf.bwCmds).
_OF_BW = ("use_hfsc", "use_tbf", "latency_ms", "enable_ecn", "enable_red")
_FALSE = ("False", "0", "None")  # such a value turns one of _OF_BW off
# Names that people write, and the parameter of OF_LINKS that they mean.
_MEANT = {
    **dict.fromkeys(("bandwidth", "band_width", "bandWidth", "rate", "capacity", "speed"), "bw"),
    **dict.fromkeys(("latency", "lat", "rtt", "delay_ms", "link_delay"), "delay"),
    **dict.fromkeys(("packet_loss", "loss_rate", "lossrate", "plr", "drop"), "loss"),
    **dict.fromkeys(("queue", "queue_size", "queuesize", "max_queue", "maxqueue", "max_queue_len",
                     "queue_length", "buffer", "buffer_size", "limit"), "max_queue_size")}
# From these similarities on (difflib's, 0 to 1) an unknown name is taken for a misspelt one.
_LIKE_PARAMETER = 0.75  # for a parameter of OF_LINKS
_LIKE_MEANT = 0.85  # for a key of _MEANT
_MOST_LINES = 10  # about links; a last line counts the rest
_MOST_PLACES = 3  # of the script in one line; the rest is counted


def lines_about_links(calls: Calls) -> list[str]:
    """A line for each thing that was ignored, with the lines of the script that asked for it."""
    is_any_shaped = any("TC" in end.kind for link in calls.links for end in link.ends)
    # The places in the script by what was ignored. The dictionaries keep each place once, in order.
    places: dict[str, dict[str, None]] = {}
    for link in calls.links:
        for end in link.ends:
            for why in _ignored(link, end, is_any_shaped):
                places.setdefault(why, {}).setdefault(link.place)

    lines = [f"{_name_call([*places_of_why])}{why}" for why, places_of_why in places.items()]
    if len(lines) > _MOST_LINES:
        lines[_MOST_LINES:] = [f"… and {len(lines) - _MOST_LINES} more lines about links"]
    return lines


def _name_call(places: list[str]) -> str:
    """The places at which addLink was called: "line 3, addLink: "."""
    known = [place for place in places if place]
    if not known:
        return "addLink: "
    more = f" and {len(known) - _MOST_PLACES} more" if len(known) > _MOST_PLACES else ""
    return f"{', '.join(known[:_MOST_PLACES])}{more}, addLink: "


def _ignored(link: LinkCall, end: LinkEnd, is_any_shaped: bool) -> Iterator[str]:
    """Sentences on the parameters that the script gave one end of a link for nothing.

    is_any_shaped: whether any link of the script has traffic control.
    """
    given = end.given
    if not end.is_mininets:  # a class of the script's own may look at anything
        return
    only_shaped = [name for name in OF_LINKS if name in end.ignored]
    if only_shaped:
        cure = "cls=TCLink" if is_any_shaped else "link=TCLink (or --link tc)"
        yield f"{link.kind} ignores {', '.join(only_shaped)}: write {cure}"
    for name in sorted(end.ignored - {*OF_LINKS}):
        meant = _guess_meant(name)
        if meant and meant not in given:
            yield f"Mininet does not know {name}, and ignores it: write {meant}"
    if only_shaped:
        return

    with suppress(ValueError):
        if end.most_bw and float(given.get("bw", 0)) > end.most_bw:
            yield (f"bw={given['bw']}: Mininet takes at most {end.most_bw:g} Mbit/s, and sets no"
                   " rate for more")
    with suppress(ValueError):
        if not 0 <= float(given.get("loss", 0)) <= 100:
            yield (f"loss={given['loss']}: Mininet takes 0 to 100 percent, and for more sets no"
                   " delay and no queue either")
    need_bw = [name for name in _OF_BW if given.get(name, "0") not in _FALSE]
    if need_bw and "bw" not in given:
        yield f"{', '.join(need_bw)}: without bw Mininet ignores it"
    if "jitter" in given and not {"bw", "delay", "loss", "max_queue_size"} & {*given}:
        yield "jitter: without delay Mininet ignores it"


def _guess_meant(name: str) -> str:
    """The parameter that an unknown name most likely means; "" if it is like none."""
    parameters = get_close_matches(name, OF_LINKS, n=1, cutoff=_LIKE_PARAMETER)
    if parameters:
        return parameters[0]
    words = get_close_matches(name, _MEANT, n=1, cutoff=_LIKE_MEANT)
    return _MEANT[words[0]] if words else ""
