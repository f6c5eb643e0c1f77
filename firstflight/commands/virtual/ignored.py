"""What Mininet silently ignores of a script's links, read from the script's text."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from itertools import pairwise

# What Mininet's links with traffic control take, and plain ones ignore.
OF_LINKS = ("bw", "delay", "jitter", "loss", "max_queue_size")
_MOST_BW = 1000  # Mbit/s (mininet.link.TCIntf.bwParamMax)
# What people write in place of those.
_MEANT = {
    **dict.fromkeys(("bandwidth", "band_width", "bandWidth", "rate", "capacity", "speed"), "bw"),
    **dict.fromkeys(("latency", "lat", "rtt", "delay_ms", "link_delay"), "delay"),
    **dict.fromkeys(("packet_loss", "loss_rate", "lossrate", "plr", "drop"), "loss"),
    **dict.fromkeys(("queue", "queue_size", "queuesize", "max_queue", "maxqueue", "max_queue_len",
                     "queue_length", "buffer", "buffer_size", "limit"), "max_queue_size")}
_LIKE = 0.75  # of difflib
_MOST_IGNORED = 10


def ignored(words: Sequence[str], script: str) -> list[str]:
    """What Mininet ignores of the links of a script in Python, or of `mn --link`, in sentences."""
    lines: list[str] = []
    for before, word in pairwise(words):
        if before == "--link" and word.startswith("tc"):
            typed = dict(option.partition("=")[::2] for option in word.split(",")[1:])
            lines += [f"--link {word}: {why}" for why in _of_options(typed)]
    try:
        tree = ast.parse(script)
    except (SyntaxError, ValueError, RecursionError):
        return lines[:_MOST_IGNORED]
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    named = {target.id: _options_of(node.value) for node in ast.walk(tree)
             if isinstance(node, ast.Assign) for target in node.targets
             if isinstance(target, ast.Name)}
    for call in calls:
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "addLink":
            continue
        options: dict[str, object] = {}
        for keyword in call.keywords:
            if keyword.arg:
                options[keyword.arg] = _literal(keyword.value)
            elif isinstance(keyword.value, ast.Name):
                options.update(named.get(keyword.value.id, {}))
        lines += [f"line {call.lineno}, addLink: {why}" for why in _of_options(options)]
    return list(dict.fromkeys(lines))[:_MOST_IGNORED]


def _options_of(node: ast.expr) -> dict[str, object]:
    """The keys and literal values of dict(...) or {...}; {} for anything else."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        return {keyword.arg: _literal(keyword.value) for keyword in node.keywords if keyword.arg}
    if isinstance(node, ast.Dict):
        return {key.value: _literal(value) for key, value in zip(node.keys, node.values)
                if isinstance(key, ast.Constant) and isinstance(key.value, str)}
    return {}


def _literal(node: ast.expr) -> object:
    """A number or a text; the last part of a name; None for anything else."""
    if isinstance(node, ast.Constant):
        return node.value
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(
        node, ast.Attribute) else None


def _of_options(options: Mapping[str, object]) -> Iterator[str]:
    for name, value in options.items():
        near = [] if name in OF_LINKS else get_close_matches(name, OF_LINKS, 1, _LIKE)
        meant = _MEANT.get(name) or (near[0] if near else "")
        if meant and meant not in options:
            yield f"Mininet does not know {name}, and ignores it: write {meant}"
        with suppress(ValueError):
            if name == "bw" and float(str(value)) > _MOST_BW:
                yield (f"bw={value}: Mininet takes at most {_MOST_BW} Mbit/s, and sets no rate for"
                       " more")
    given = [name for name in OF_LINKS if name in options]
    if given and options.get("cls") in ("Link", "OVSLink"):
        yield f"cls={options['cls']} ignores {', '.join(given)}: write cls=TCLink"
