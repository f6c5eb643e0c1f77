"""A page of one's own by flags or from a file, written as a scenario.

The run keeps the text like that of any scenario. Of a HAR it has sizes, numbers and times only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firstflight.base.errors import UsageError
from firstflight.base.words import format_lossless, join_words, plain, format_toml
from firstflight.findings.quantities import FLAGS, QUANTITIES
from firstflight.runs.kinds import Overrides
from firstflight.runs.scenario_file import ScenarioFile, names, parsed
from firstflight.study.page import page_files
from firstflight.study.page.objects import PageObject
from firstflight.study.page.trial import BUILTIN, NGINX

_WHERE = "the page"  # in the place of a file's name
_LISTS = ("queue", "loss_percent", "http", "initcwnd", "congestion_control")
_SINGLE = ("rtt_ms", "bandwidth_kbps", "uplink_kbps", "initrwnd", "server", "response_bytes")
CONNECTIONS = (6,)  # that browsers open to a host over HTTP/1.1
REPEAT_BY_CHANCE = 100  # pages of every setting where losses are drawn
OBJECT_BYTES = 15_000


@dataclass(frozen=True)
class RequestedPage:
    """What --page or --objects requests.

    file: None for a made page of so many objects. document_bytes: of a made one, None for as
    much as its objects have. connections: to a host.
    """

    file: Path | None
    objects: int | None
    document_bytes: int | None = None
    connections: tuple[int, ...] = CONNECTIONS


def file(name: str, page: RequestedPage, requested: Overrides) -> ScenarioFile:
    """The scenario of a page. Raises UsageError that names the flag."""
    if not re.fullmatch(r"[a-z0-9_]{1,100}", name):
        raise UsageError(f"--name: {name!r} becomes a folder of results: a-z, 0-9 and _ only, at"
                         " most 100 of them")
    if name in names():
        raise UsageError(f"--name: there is a scenario {name} already, whose results these would"
                         " mix with")
    flag = "--page" if page.file is not None else "--objects"
    given = requested.checked()
    for other, words in requested.given.items():
        if other not in (*_LISTS, *_SINGLE, "repeat", "sysctl"):
            raise UsageError(f"{words} does not go with {flag}, which takes"
                             " "
                             + join_words([FLAGS[known].flag for known in _LISTS + _SINGLE[:-1]]))
    for known in _SINGLE:
        if len(given.get(known, ())) > 1:
            raise UsageError(f"{FLAGS[known].flag}: {flag} takes one value of this flag")
    for server in given.get("server", ()):
        if server not in (BUILTIN, NGINX):
            raise UsageError(f"--server: a page comes from {BUILTIN} or {NGINX}, not from {server}")
    for value in page.connections:
        QUANTITIES["connections"].check(value, "--connections")
    if page.file is not None and (page.document_bytes or "response_bytes" in given):
        raise UsageError(f"{'--document' if page.document_bytes else '--size'}: the objects of a"
                         " file have their sizes; it goes with --objects N")
    return parsed(name, _text(page, given, requested), _WHERE)


@contextmanager
def errors_by_flags() -> Iterator[None]:
    """What is wrong with a page, without the places of a text that nobody wrote."""
    try:
        yield
    except UsageError as error:
        raise UsageError(re.sub(r'^the page: \[\[\w+\]\] "own": ', "", str(error))) from None


def _text(page: RequestedPage, given: Mapping[str, tuple[Any, ...]], requested: Overrides) -> str:
    windows = given.get("initcwnd") or FLAGS["initcwnd"].defaults
    lines, what, note = _page(page, given)
    claim = (f"What {'do' if len(windows) > 1 else 'does'} {_windows(windows)} change of a page of"
             f" {what}?")
    head = [f"# {claim}", "", 'kind = "page"', f"title = {format_toml(_title(windows, what))}",
            'source = "a page of your own"', *([f"note = {format_toml(note)}"] if note else []), ""]
    if requested.sysctls:
        head += ["[sysctls]", *map(_sysctl, requested.sysctls), ""]
    sweep = ["[[sweep]]", 'name = "own"', 'page = "own"']
    for known in ("rtt_ms", "bandwidth_kbps", "initrwnd"):
        value = given.get(known, FLAGS[known].defaults)[0]
        sweep.append(f"{known} = {format_lossless(value)}  # {FLAGS[known].flag_help}")
    if "uplink_kbps" in given:
        sweep.append(f"uplink = {format_lossless(given['uplink_kbps'][0])}")
    sweep += [f"{known} = {format_toml(given.get(known) or FLAGS[known].defaults)}"
              f"  # {FLAGS[known].flag_help}" for known in _LISTS]
    sweep.append(f"connections = {format_toml(page.connections)}  # to a host, over HTTP/1.1")
    if "server" in given:
        sweep.append(f"server = {format_toml(given['server'][0])}")
    sweep += [f"repeat = {requested.repeat or REPEAT_BY_CHANCE}  # where losses are drawn", ""]
    figures = [("times", "times", _title(windows, what)),
               ("waterfall", "waterfall", f"Each object of the page, {_windows(windows)}")]
    for name, kind, title in figures:
        sweep += ["[[figure]]", f'name = "{name}"', f'kind = "{kind}"',
                  f"title = {format_toml(title)}", 'sweep = "own"', ""]
    return "\n".join([*head, *lines, "", *sweep])


def _page(page: RequestedPage, given: Mapping[str, tuple[Any, ...]]
          ) -> tuple[list[str], str, str]:
    """The [[page]], what it is in words, and what of its file is left out. Raises UsageError."""
    begins = ["[[page]]", 'name = "own"']
    if page.file is not None:
        saved = page_files.read(page.file)
        total = sum(each.size_bytes for each in saved.objects)
        return ([*begins, *(line for each in saved.objects for line in _object(each))],
                f"{len(saved.objects)} objects and {plain(round(total / 1000))} kB", saved.note)
    count = QUANTITIES["objects"].check(page.objects, "--objects")
    size = given.get("response_bytes", (OBJECT_BYTES,))[0]
    document = QUANTITIES["document_bytes"].check(
        size if page.document_bytes is None else page.document_bytes, "--document")
    return ([*begins, f"objects = {count}", f"bytes = {size}", f"document_bytes = {document}"],
            f"a document of {plain(document / 1000)} kB and {count} objects of"
            f" {plain(size / 1000)} kB", "")


def _object(each: PageObject) -> list[str]:
    values = {"bytes": each.size_bytes, "named_by": each.named_by, "at_byte": each.at_byte,
              "parse_ms": each.parse_ms, "think_ms": each.think_ms, "host": each.host}
    lines = [f"{name} = {format_lossless(value)}" for name, value in values.items()
             if value or name == "bytes" or (name == "at_byte" and each.named_by)]
    return ["[[page.object]]", *lines, *(["early = true"] if each.is_early else []), ""]


def _windows(windows: tuple[int, ...]) -> str:
    first, *others = map(str, windows)
    return (f"{', '.join(others)} instead of {first} segments" if others else
            f"an initial window of {first} segments")


def _title(windows: tuple[int, ...], what: str) -> str:
    return f"A page of {what}: {_windows(windows)}"


def _sysctl(words: str) -> str:
    """A line of [sysctls]; what may be set, its reader knows."""
    name, equals, value = words.partition("=")
    if not equals or '"' in words or "\\" in words or "\n" in words:
        raise UsageError(f"--sysctl: {words!r} is not NAME=VALUE, like net.ipv4.tcp_sack=0")
    return f'"{name.strip()}" = "{value.strip()}"'
