"""Builds a scenario of a user's page, given by flags or as a file.

The run keeps the scenario as a file. Of a HAR that file has only sizes, counts and times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

from firstflight.base.errors import UsageError
from firstflight.base.words import join_words, plain, visible_line
from firstflight.findings.quantities import FLAGS, QUANTITIES
from firstflight.net import sysctls
from firstflight.parameters import Lists
from firstflight.runs import schema
from firstflight.runs.kinds import Overrides
from firstflight.runs.scenario_file import Head, check_own_name
from firstflight.scenario import writing
from firstflight.setting import draws
from firstflight.setting.server import BUILTIN, NGINX
from firstflight.study.questions import browsed_page
from firstflight.testbed.hosts.browser.frames import PHASES
from firstflight.testbed.messages import CHROMIUM, LIBCURL
from firstflight.workloads.page import page_files
from firstflight.workloads.page.har import SavedPage
from firstflight.workloads.page.scenario import (CLIENTS, NO_EARLY_DATA, ListedObject, Page,
                                                 PageFigure, PageScenario, PageSweep)
from firstflight.workloads.page.trial import CHAIN_BYTES, OF_SETTING

_WHERE = "the page"  # in messages, in place of a file's name
# The parameters with flags that a page takes: those of its setting, and the windows.
_LISTS = (*(name for name in OF_SETTING if name in FLAGS), "initcwnd")
CONNECTIONS = (6,)  # to a host, as many as browsers open over HTTP/1.1
REPEAT_BY_CHANCE = 100  # pages of each setting where losses are drawn
OBJECT_BYTES = 15_000  # the size of each object of --objects without --size
# Comments after the keys of the sweep.
_COMMENTS = {**writing.COMMENTS, "connections": "to a host, over HTTP/1.1"}


@dataclass(frozen=True)
class RequestedPage:
    """The page that --page or --objects requests."""

    # None for a page of `objects` equal objects.
    file: Path | None
    objects: int | None
    # The size of the document; None if it is as large as an object.
    document_bytes: int | None = None
    # How many connections to a host are open at once.
    connections: Sequence[int] = CONNECTIONS
    # The hosts whose objects are taken from a HAR; () for all of its hosts.
    mine: Sequence[str] = ()
    # The program that loads the page.
    client: str = LIBCURL
    # The path of the page in a folder; "" for the folder's index.
    url_path: str = ""
    # Whether a browser waits for each answer of a HAR as long as its server took.
    with_server_time: bool = True


def scenario(name: str, page: RequestedPage, requested: Overrides) -> PageScenario:
    """Build the scenario of a page. Raises UsageError that names the flag."""
    check_own_name(name)
    given = requested.checked()
    _check(page, given, requested)
    content, what, about, note = _page(page, given)
    content.check(_WHERE)

    # Sysctls with one value are the file's [sysctls]; the sweep lists those that vary.
    shared, given["sysctl"] = sysctls.shared_and_varied(given.get("sysctl", (sysctls.NONE,)))
    lists = {parameter: given[parameter] for parameter in OF_SETTING if parameter in given}
    for parameter in ("rtt_ms", "bandwidth_kbps"):
        lists.setdefault(parameter, FLAGS[parameter].defaults)
    sweep = PageSweep(
        name="own", page_names=(content.name,), client=(page.client,),
        connections=tuple(page.connections), lists=lists,
        initcwnd=given.get("initcwnd") or FLAGS["initcwnd"].defaults,
        # In a browser each repeat begins in another of the PHASES parts of a frame.
        repeat=requested.repeat or (PHASES if page.client == CHROMIUM else 1),
        repeat_with_loss=requested.repeat or REPEAT_BY_CHANCE,
        repeat_with_drops=requested.repeat or draws.REPEATS)
    sweep.check_together(_WHERE)

    windows = _windows(sweep.initcwnd)
    title = f"A page of {what}: {windows}"
    verb = "do" if len(sweep.initcwnd) > 1 else "does"
    head = Head(title, "a page of your own", name,
                claim=f"What {verb} {windows} change of a page of {what}?", text="",
                sysctls=shared, note=note, about=about, kind="page")

    figures = [PageFigure(name="times", kind="times", title=title, sweep=sweep.name)]
    if page.client == CHROMIUM:
        figures.append(PageFigure(name="paints", kind="times", sweep=sweep.name,
                                  metric="largest_paint_ms",
                                  title=f"The largest contentful paint, {windows}"))
        figures.append(PageFigure(name="filmstrip", kind="filmstrip", sweep=sweep.name,
                                  title=f"The page as it loads, {windows}"))
    figures.append(PageFigure(name="waterfall", kind="waterfall", sweep=sweep.name,
                              title=f"Each object of the page, {windows}"))
    linked = sweep.linked({content.name: content}, _WHERE)
    made = PageScenario(head, (linked,), tuple(figures))
    return replace(made, head=replace(head, text=text(made, content)))


@contextmanager
def errors_by_flags() -> Iterator[None]:
    """Remove the name of the scenario file from messages, since the user wrote flags instead."""
    try:
        yield
    except UsageError as error:
        raise UsageError(str(error).removeprefix(f"{_WHERE}: ")) from None


def text(made: PageScenario, page: Page) -> str:
    """The TOML of a scenario with one page, from which workloads.page.scenario reads an equal one.
    """
    values = schema.values_of(page)
    values.pop("object", None)
    values.pop("certificate", None)
    lines = [*writing.head(made.head, {}), *writing.table("[[page]]", values)]
    for listed in page.listed:
        # No object names the document, so its table has neither named_by nor at_byte.
        size_bytes, named_by, at_byte, *others = astuple(listed)
        in_file = (named_by, at_byte) if named_by else (None, None)
        item = ListedObject(size_bytes, *in_file, *others)
        lines += writing.table("[[page.object]]", schema.values_of(item))
    for certificate in page.certificates:
        lines += writing.table("[[page.certificate]]", schema.values_of(certificate))
    for sweep in made.sweeps:
        lines += writing.table("[[sweep]]", writing.sweep_values(sweep, with_flags=True),
                               _COMMENTS)
    for figure in made.figures:
        lines += writing.table("[[figure]]", schema.values_of(figure))
    return "\n".join(lines)


def _check(page: RequestedPage, given: Lists, requested: Overrides) -> None:
    """Refuse flags that do not go with a page, or with this kind of page. Raises UsageError."""
    flag = "--page" if page.file is not None else "--objects"
    known_flags = join_words([FLAGS[parameter].flag for parameter in _LISTS])
    for other, words in requested.given.items():
        if other == "early_data_bytes":
            raise UsageError(f"{words}: {NO_EARLY_DATA}")
        if other == "client":
            schema.one_of(requested.client, CLIENTS, words)
            continue
        if other not in (*_LISTS, "response_bytes", "repeat"):
            raise UsageError(f"{words} does not go with {flag}, which takes {known_flags}")

    if len(given.get("response_bytes", ())) > 1:
        raise UsageError(f"--size: {flag} takes one value of this flag")
    for server in given.get("server", ()):
        if server not in (BUILTIN, NGINX):
            raise UsageError(f"--server: a page comes from {BUILTIN} or {NGINX}, not from {server}")
    for value in page.connections:
        QUANTITIES["connections"].check(value, "--connections")
    if page.file is not None and (page.document_bytes or "response_bytes" in given):
        size_flag = "--document" if page.document_bytes else "--size"
        raise UsageError(f"{size_flag}: the objects of a file have their sizes; it goes with"
                         " --objects N")


def _page(page: RequestedPage, given: dict[str, tuple[Any, ...]]
          ) -> tuple[Page, str, str, str]:
    """The page, its description, a sentence on what was read from its file, and notes.

    given: the values of flags, by their quantity. What the file says of HTTP's version and of TLS
    is added to it where no flag says it. Raises UsageError.
    """
    if page.file is not None and page.client == CHROMIUM:
        return browsed_page.content(page.file, page.mine, page.url_path, page.with_server_time,
                                    given)
    if page.file is not None:
        if page.file.is_dir():
            raise UsageError(f"--page: {page.file} is a folder, whose files a browser loads: add"
                             f" --client {CHROMIUM}")
        saved = page_files.read(page.file, page.mine)
        about = _about(page.file, saved, given)
        notes = [saved.note]
        if saved.is_secure and "chain_bytes" not in given:
            given["chain_bytes"] = (CHAIN_BYTES,)
            notes.insert(0, f"Measured over TLS with a chain of {CHAIN_BYTES} bytes, as a HAR has"
                         " no chain (--chain).")
        elif saved.is_secure and not all(given["chain_bytes"]):
            notes.insert(0, "Measured without TLS, whose handshake takes each connection another"
                         " round trip.")
        total_bytes = sum(listed.size_bytes for listed in saved.objects)
        what = f"{len(saved.objects)} objects and {plain(round(total_bytes / 1000))} kB"
        content = Page("own", listed=saved.objects, certificates=saved.certificates)
        return content, what, about, " ".join(filter(None, notes))

    count = QUANTITIES["objects"].check(page.objects, "--objects")
    size_bytes = given.get("response_bytes", (OBJECT_BYTES,))[0]
    document_bytes = size_bytes if page.document_bytes is None else page.document_bytes
    document_bytes = QUANTITIES["document_bytes"].check(document_bytes, "--document")
    what = (f"a document of {plain(document_bytes / 1000)} kB and {count} objects of"
            f" {plain(size_bytes / 1000)} kB")
    return Page("own", count, size_bytes, document_bytes), what, "", ""


def _about(file: Path, saved: SavedPage, given: dict[str, tuple[Any, ...]]) -> str:
    """A sentence on what was read from a page's file; "" for a list of objects.

    given: as for _page. Raises UsageError where neither the file nor a flag has a version of HTTP.
    """
    if not saved.source:
        return ""
    read = f"{visible_line(file.name)}: {saved.source}; {saved.http_from}"
    if "http" not in given:
        if not saved.http:
            raise UsageError(f"--page: {file}: {saved.http_from}; to measure it over HTTP/1.1, add"
                             " --http 1.1, over HTTP/2 --http 2")
        given["http"] = (saved.http,)
        return f"{read}."
    if given["http"] == (saved.http,):
        return f"{read}."
    return f"{read}, measured over HTTP/{' and '.join(given['http'])} as --http says."


def _windows(windows: tuple[int, ...]) -> str:
    """The windows that are compared, in words."""
    first, *others = map(str, windows)
    if others:
        return f"{' or '.join(others)} instead of {first} segments"
    return f"an initial window of {first} segments"
