"""Builds a scenario of a question by flags: a network, a sender and responses.

The run keeps it as a file, so that it is resumed, reported and drawn like any scenario. The number
of parameters with several values decides on the figure: bars of windows for none, groups of bars
for one, a map for more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from firstflight.base.errors import UsageError
from firstflight.base.quantity import OWN_WINDOW
from firstflight.base.words import plain
from firstflight.findings.quantities import FLAGS, quantity
from firstflight.net import sysctls
from firstflight.parameters import SWEPT, Lists
from firstflight.runs import schema
from firstflight.runs.kinds import Overrides
from firstflight.runs.scenario_file import Head, check_count, check_own_name
from firstflight.setting import draws
from firstflight.setting.server import OWN, OwnServer
from firstflight.setting.tcp import BY_KERNEL
from firstflight.workloads.fetch.scenario import figures, writing
from firstflight.workloads.fetch.scenario.scenario import Figure, Scenario
from firstflight.workloads.fetch.scenario.sweep import CLIENTS, Sweep

CLIENT, TLS_CLIENT = "libcurl", "curl"  # Debian's pycurl uses another TLS library than curl
REPEAT_BY_CHANCE = 100  # fetches of each setting where chance decides
# Parameters whose default is no value: it follows from others.
_FOLLOWS: dict[str, tuple[Any, ...]] = {"uplink_kbps": (None,), "system": ()}
# The parameters with flags. Those of published set-ups have none: only files set them.
WITH_FLAGS = tuple(name for name in SWEPT if name in FLAGS)
# What is usual with a request that has a body: the client's windows are compared, not the server's.
_UPLOADED: dict[str, tuple[Any, ...]] = {"response_bytes": (1000,)}
CLIENT_WINDOWS = (10, 30)
_WHERE = "the question"  # in messages, in place of a file's name
MOST_BARS = 6  # in a group; more windows become a map


def scenario(name: str, requested: Overrides) -> Scenario:
    """Build the scenario of a question. Raises UsageError that names the flag."""
    check_own_name(name)
    given = requested.checked()
    if "load" in given:
        raise UsageError("--load: a question has one transfer at a time, so no load; name a"
                         " scenario of kind load (--list), such as ietf78_completion")

    if any(given.get("idle_ms", ())) and "kept" not in given:
        given["kept"] = (1,)
    if any(given.get("request_bytes", ())):
        given = _UPLOADED | given
        given.setdefault("client_initcwnd", CLIENT_WINDOWS if "initcwnd" not in given else (0,))
        given.setdefault("initcwnd", (OWN_WINDOW,))

    own = None
    if requested.own_server:
        own = schema.read(OwnServer, requested.own_server, "--server-command")
        own.check_sizes("response_bytes" in given, "--url-path")
        given.setdefault("server", (OWN,))

    # Sysctls that are the same in all trials are the file's [sysctls]; the sweep lists the others.
    shared, given["sysctl"] = sysctls.shared_and_varied(given.get("sysctl", (sysctls.NONE,)))
    values = {known: given.get(known) or _default(known) for known in (*WITH_FLAGS, "initcwnd")}
    lists = {known: values[known] for known in WITH_FLAGS if values[known]}
    if requested.own_window:
        lists["window_by"] = (BY_KERNEL,)

    is_secure = any(values["chain_bytes"]) or own is not None and bool(own.ca)
    usual_client = TLS_CLIENT if is_secure else CLIENT
    client: Any = schema.one_of(requested.client or usual_client, CLIENTS, "--client")
    windows = values["initcwnd"]
    sweep = Sweep(
        name="own", lists=lists, initcwnd=windows, own_server=own.text if own else "",
        client=client, repeat=requested.repeat or 1,
        repeat_with_loss=requested.repeat or REPEAT_BY_CHANCE,
        repeat_with_drops=requested.repeat or draws.REPEATS)
    sweep.check(_WHERE)
    check_count(sweep.count, f"trials of {_WHERE}", many=True)

    varied = [known for known in WITH_FLAGS if len(values[known]) > 1]
    others = varied  # than the windows
    if any(values["request_bytes"]) and len(windows) == 1:
        others = [known for known in varied if known != "client_initcwnd"]
    what = _compared(values, requested.own_window)
    title = f"{what[0].upper()}{what[1:]}"
    if others:
        title += f", by {' and '.join(map(_named, others))}"
    head = Head(title, "a question by flags", name, claim=_claim(what, values, varied), text="",
                sysctls=shared)
    made = Scenario(head, (sweep,), tuple(_figures(windows, varied, title)), cells=True)
    figures.check(made, _WHERE)
    return replace(made, head=replace(head, text=writing.text(made)))


@contextmanager
def errors_by_flags() -> Iterator[None]:
    """Let messages name flags instead of keys: "(kept, --kept)" becomes "(--kept)"."""
    try:
        yield
    except UsageError as error:
        words = str(error).removeprefix(f"{_WHERE}: ").removeprefix('[[sweep]] "own": ')
        raise UsageError(re.sub(r"\(\w+, (--[^)]*)\)", r"(\1)", words)) from None


def _default(name: str) -> tuple[Any, ...]:
    """The values of a parameter whose flag the question does not give."""
    return _FOLLOWS[name] if name in _FOLLOWS else FLAGS[name].defaults


def _figures(windows: tuple[int, ...], varied: list[str], title: str) -> Iterator[Figure]:
    """The figure of the answer, by the parameters with several values, and one of packets."""
    made = partial(Figure, sweep="own", windows=windows[:1], metric="total_ms")
    if not varied:
        yield made(name="windows", title=title, kind="window_sweep", by="initcwnd")
    elif len(varied) == 1 and len(windows) <= MOST_BARS:
        yield made(name="bars", title=title, kind="groups", by=varied[0])
    else:
        down = varied[1] if len(varied) > 1 else ""
        yield made(name="map", title=title, kind="map", by=varied[0], down=down)
    yield made(name="packets", title="The packets of one transfer", kind="packets")


def _compared(values: Lists, own_window: bool) -> str:
    """The windows that are compared, in words: the client's, if it uploads and they vary alone."""
    windows = values["initcwnd"]
    of_client = any(values["request_bytes"]) and len(windows) == 1
    if of_client:
        windows = tuple(window or OWN_WINDOW for window in values["client_initcwnd"])
    elif own_window:
        return "the kernel's own initial window"
    first, *others = map(str, windows)
    if not others:
        whose = "a client's" if of_client else "an"
        return f"{whose} initial window of {first} segments"
    return f"{' or '.join(others)} instead of {first} segments{' of the client' * of_client}"


def _claim(what: str, values: Lists, varied: list[str]) -> str:
    """The question in one sentence: the windows, and the parameters of network and response.

    what: which windows are compared.
    """
    named = []
    for name in WITH_FLAGS:
        is_always_named = name in ("rtt_ms", "bandwidth_kbps", "response_bytes")
        if is_always_named or name in varied or values[name] != _default(name):
            listed = "/".join(map(plain, values[name]))
            named.append(f"{_named(name)} {listed} {quantity(name).unit}".rstrip())
    verb = "do" if " instead of " in what else "does"
    return f"What {verb} {what} change? {', '.join(named)}"


def _named(name: str) -> str:
    return quantity(name).head or quantity(name).label
