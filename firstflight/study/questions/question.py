"""A question of one's own: a network, a sender and responses by flags, written as a scenario.

The run keeps the text like that of any scenario, so that it is resumed, reported
and drawn like one. What has several values decides on the figure:
bars of windows for none, groups of them for one, maps for more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from firstflight.base.errors import UsageError
from firstflight.base.words import plain, toml
from firstflight.findings.quantities import FLAGS, quantity
from firstflight.parameters import PARAMETERS, SWEPT
from firstflight.runs import schema
from firstflight.runs.kinds import Overrides
from firstflight.runs.scenario_file import OWN_SERVER, ScenarioFile, names, parsed
from firstflight.study.fetches.scenario.server import OWN, OwnServer
from firstflight.study.fetches.scenario.sweep import CLIENTS, system_for

CLIENT, TLS_CLIENT = "libcurl", "curl"  # the Python library of Debian's has another TLS
REPEAT_BY_CHANCE = 100  # fetches of every setting where chance decides
# Words of --help in the place of a default that is a value.
_FOLLOWS = {"uplink_kbps": ("same",), "system": ()}
# What published set-ups did otherwise is asked for in a file only.
ASKED = tuple(name for name in SWEPT if name in FLAGS)
_WHERE = "the question"  # in the place of a file's name
MOST_BARS = 6  # in a group; a map shows more


def file(name: str, requested: Overrides) -> ScenarioFile:
    """The scenario of a question. Raises UsageError that names the flag."""
    if not re.fullmatch(r"[a-z0-9_]{1,100}", name):
        raise UsageError(f"--name: {name!r} becomes a folder of results: a-z, 0-9 and _ only, at"
                         " most 100 of them")
    if name in names():
        raise UsageError(f"--name: there is a scenario {name} already, whose results these would"
                         " mix with")
    given = requested.checked()
    if "load" in given:
        raise UsageError("--load: a question has one transfer at a time, so no load; name a"
                         " scenario of kind load (--list), such as ietf78_completion")
    if any(given.get("idle_ms", ())) and "kept" not in given:
        given["kept"] = (1,)
    if requested.own_server:
        own = schema.read(OwnServer, requested.own_server, "--server-command")
        own.check_sizes("response_bytes" in given, "--url-path")
        given.setdefault("server", (OWN,))
    values = {known: given.get(known) or _usual(known) for known in (*ASKED, "initcwnd")}
    usual = TLS_CLIENT if any(values["chain_bytes"]) or requested.own_server.get("ca") else CLIENT
    client = schema.one_of(requested.client or usual, CLIENTS, "--client")
    return parsed(name, _text(values, client, requested), _WHERE)


@contextmanager
def errors_by_flags() -> Iterator[None]:
    """What is wrong with a question, in the words of its flags: "(kept, --kept)" is "(--kept)"."""
    try:
        yield
    except UsageError as error:
        words = str(error).removeprefix(f"{_WHERE}: ").removeprefix('[[sweep]] "own": ')
        raise UsageError(re.sub(r"\(\w+, (--[^)]*)\)", r"(\1)", words)) from None


def _usual(name: str) -> tuple[Any, ...]:
    """The values of a quantity that the question does not say."""
    return _FOLLOWS[name] if name in _FOLLOWS else FLAGS[name].defaults


def _text(values: Mapping[str, tuple[Any, ...]], client: str, requested: Overrides) -> str:
    varied = [name for name in ASKED if len(values[name]) > 1]
    windows = values["initcwnd"]
    lines = [f"# {_claim(values, varied)}", "", f'title = "{_title(windows, varied)}"',
             'source = "a question by flags"', "cells = true", ""]
    if requested.sysctls:
        lines += ["[sysctls]", *map(_sysctl, requested.sysctls), ""]
    if requested.own_server:
        lines += [f"[{OWN_SERVER}]", *(f"{name} = {toml(value)}" for name, value
                                       in requested.own_server.items()), ""]
    lines += ["[[sweep]]", 'name = "own"']
    written = {**values, "system": values["system"] or (system_for(values),)}
    lines += [f"{PARAMETERS[name].key} = {toml(written[name])}"
              f"  # {FLAGS[name].flag_help}: {FLAGS[name].range}"
              for name in (*ASKED, "initcwnd")]
    lines += [f'client = "{client}"  # {", ".join(CLIENTS)}',
              f"repeat = {requested.repeat or 1}  # times that every setting is measured",
              f"repeat_with_loss = {requested.repeat or REPEAT_BY_CHANCE}"
              "  # the same, where loss or"
              " jitter decides", ""]
    for figure in [*_figures(windows, varied), {
            "name": "packets", "title": "The packets of one transfer", "kind": "packets"}]:
        lines += ["[[figure]]", *(f"{key} = {toml(value)}" for key, value in {
            **figure, "sweep": "own", "baseline_initcwnd": windows[0],
            "metric": "total_ms"}.items()), ""]
    return "\n".join(lines)


def _figures(windows: tuple[int, ...], varied: list[str]) -> list[dict[str, Any]]:
    """What differs between the figures' tables."""
    title = _title(windows, varied)
    if not varied:
        return [{"name": "windows", "title": title, "kind": "window_sweep", "by": "initcwnd"}]
    if len(varied) == 1 and len(windows) <= MOST_BARS:
        return [{"name": "bars", "title": title, "kind": "groups", "by": varied[0]}]
    by, *others = varied
    return [{"name": "map", "title": title, "kind": "map", "by": by,
             **({"down": others[0]} if others else {})}]


def _title(windows: tuple[int, ...], varied: list[str]) -> str:
    first, *others = map(str, windows)
    what = (f"{', '.join(others)} instead of {first} segments" if others else
            f"an initial window of {first} segments")
    return what + (f", by {' and '.join(map(_named, varied))}" if varied else "")


def _claim(values: Mapping[str, tuple[Any, ...]], varied: list[str]) -> str:
    """The question in one sentence: the windows, and the network that they are requested."""
    named = [f"{_named(name)} {'/'.join(map(plain, values[name]))} {quantity(name).unit}".rstrip()
             for name in ASKED
             if name in ("rtt_ms", "bandwidth_kbps", "response_bytes")
             or name in varied or values[name] != _usual(name)]
    verb = "do" if len(values["initcwnd"]) > 1 else "does"
    return f"What {verb} {_title(values['initcwnd'], [])} change? {', '.join(named)}"


def _named(name: str) -> str:
    return quantity(name).head or quantity(name).label


def _sysctl(words: str) -> str:
    """A line of [sysctls]; what may be set, its reader knows."""
    name, equals, value = words.partition("=")
    if not equals or '"' in words or "\\" in words or "\n" in words:
        raise UsageError(f"--sysctl: {words!r} is not NAME=VALUE, like net.ipv4.tcp_sack=0")
    return f'"{name.strip()}" = "{value.strip()}"'
