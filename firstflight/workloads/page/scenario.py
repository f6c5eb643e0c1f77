"""Scenarios of kind "page": TOML files, expanded into trials.

docs/examples/page.toml describes a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from pathlib import Path
from typing import Any, ClassVar

from firstflight.base.errors import UsageError
from firstflight.base.words import nearest_or_known
from firstflight.parameters import PARAMETERS, RESPONSE, Lists
from firstflight.runs import schema
from firstflight.runs.scenario_file import ScenarioFile
from firstflight.runs.schema import key
from firstflight.scenario import grammar
from firstflight.scenario.claims import Claim
from firstflight.scenario.figure_kinds import Figure, FigureKind
from firstflight.scenario.requested import Taken
from firstflight.scenario.setting_sweep import SettingSweep, draws_at_random, lists_of
from firstflight.setting.seeds import netem_seed
from firstflight.setting.server import BUILTIN, HTTP_2, NEWER, NGINX
from firstflight.setting.together import (check_builtin, check_chains, check_resumed, check_system,
                                          system_for)
from firstflight.testbed.hosts.browser.frames import drawn_phase_ms
from firstflight.testbed.messages import CHROMIUM, LIBCURL
from firstflight.testbed.site_store import DIGEST
from firstflight.workloads.page import objects, sources
from firstflight.workloads.page.objects import Certificate, PageObject
from firstflight.workloads.page.sources import Source
from firstflight.workloads.page.trial import CHAIN_BYTES, OF_SETTING, PageTrial

# Without TLS nginx sets TCP_CORK for HTTP/2 and not TCP_NODELAY: the last short segment of each
# response would wait for an acknowledgement.
# Therefore HTTP/2 goes over TLS here, as in browsers.
ONLY_OVER_TLS = ("browsers speak HTTP/2 over TLS only: give a chain (chain_bytes, --chain), or"
                 f" leave it out for one of {CHAIN_BYTES} bytes")
NO_EARLY_DATA = ("a page's client sends no early data: which of its requests a browser would repeat"
                 " is not known; measure one response, such as --size 60kB --chain 4000")
# The parameters that a sweep over HTTP/2 has where it names no others.
OVER_HTTP_2: Lists = {"chain_bytes": (CHAIN_BYTES,), "server": (NGINX,)}
CLIENTS = (LIBCURL, CHROMIUM)
BROWSER_SIGNATURES = ("ecdsa", "rsa2048")  # Chromium takes certificates with these


@dataclass(frozen=True)
class ListedObject:
    """One [[object]] of a list or of a page: one PageObject, or `count` equal ones.

    Several objects are named at even distances from at_byte to until_byte.
    """

    size_bytes: int = key(quantity="response_bytes", name="bytes")
    named_by: int | None = key(None, quantity="named_by")
    at_byte: int | None = key(None, quantity="at_byte")  # where the first object is named
    parse_ms: float = key(0.0, quantity="process_ms")
    think_ms: float = key(0.0, quantity="process_ms")
    host: int = key(0, quantity="host")
    is_early: bool = key(False, name="early")
    count: int = key(1, quantity="objects")
    until_byte: int | None = key(None, quantity="at_byte")  # where the last of several is named

    def check(self, where: str) -> None:
        """Check that count and until_byte go together. Raises UsageError."""
        is_several = self.count > 1
        ends_before = is_several and (self.until_byte or 0) < (self.at_byte or 0)
        if (self.until_byte is not None) != is_several or ends_before:
            raise UsageError(f"{where}: count goes with at_byte and until_byte, where the first and"
                             " the last of them are named")


def listed(raw: Mapping[str, object], where: str) -> tuple[PageObject, ...]:
    """The [[object]]s of a page, first its document. Raises UsageError."""
    tables = schema.as_tables(raw, "object", where)
    if len(tables) > objects.MOST_OBJECTS:
        raise UsageError(f"{where}: {objects.fault_of_count(len(tables))}")

    page: list[PageObject] = []
    for number, table in enumerate(tables, start=1):
        entry = schema.read(ListedObject, table, f"{where}: [[object]] {number}")
        count = len(page) + entry.count
        if count > objects.MOST_OBJECTS:
            raise UsageError(f"{where}: {objects.fault_of_count(count)}")
        page += _objects_of(entry, page)
    if fault := objects.fault_of(page):
        raise UsageError(f"{where}: {fault}")
    return tuple(page)


def _objects_of(entry: ListedObject, above: Sequence[PageObject]) -> list[PageObject]:
    """The objects of one [[object]]. above: the objects of the [[object]]s above it.

    By default the document names them, at the document's last byte.
    """
    named_by, at_byte = entry.named_by, entry.at_byte
    if named_by is None:
        named_by = 1 if above else 0
    if at_byte is None:
        is_there = 0 < named_by <= len(above)
        at_byte = above[named_by - 1].size_bytes if is_there else 0

    step = ((entry.until_byte or 0) - at_byte) / max(entry.count - 1, 1)
    return [PageObject(entry.size_bytes, named_by, at_byte + round(place * step),
                       parse_ms=entry.parse_ms, think_ms=entry.think_ms, host=entry.host,
                       is_early=entry.is_early)
            for place in range(entry.count)]


def _digest(value: object, where: str) -> str:
    """Read the digest of a recorded site. Raises UsageError."""
    if not isinstance(value, str) or not DIGEST.fullmatch(value):
        raise UsageError(f"{where} has to be the SHA-256 of a recorded site")
    return value


@dataclass(frozen=True)
class Page:
    """One [[page]]: a number of equal objects, a list of objects, or a site.

    A browser (client = "chromium") loads sites only. A page with a site may have objects as well,
    which curl's library fetches.
    """

    name: str = key(reader=schema.file_name)
    # Either a number of equal objects.
    count: int | None = key(None, quantity="objects", name="objects")
    size_bytes: int | None = key(None, quantity="response_bytes", name="bytes")
    document_bytes: int | None = key(None, quantity="response_bytes")
    # Or a list of objects, first the document, and the certificates that their hosts share.
    listed: tuple[PageObject, ...] = key((), name="object", reader=lambda value, where: listed(
        {"object": value}, where.removesuffix(": object")))
    certificates: tuple[Certificate, ...] = key((), name="certificate", reader=schema.listed(
        Certificate, "{hosts = [0, 1]}"))
    # The site is in a folder or in a HAR. url_path is that of the page in the folder; files has
    # patterns of the names that are served from it, () for all.
    folder: str = ""
    har: str = ""
    url_path: str = ""
    files: tuple[str, ...] = key((), reader=schema.one_or_more(schema.text, "patterns of names"))
    # Or the site is stored: its digest (testbed.site_store), and the bytes of its bodies.
    site: str = key("", reader=_digest)
    site_bytes: int = key(0, quantity="site_bytes")

    def check(self, where: str) -> None:
        """Check that the keys go together. Raises UsageError."""
        self._check_site(where)
        if self.has_objects or not self.has_site:
            self._check_objects(where)

    def _check_site(self, where: str) -> None:
        if sum(map(bool, (self.site, self.folder, self.har))) > 1:
            raise UsageError(f"{where}: site, folder and har each name the whole site: keep one")
        if (self.url_path or self.files) and not self.folder:
            raise UsageError(f"{where}: url_path and files go only with folder")
        if self.url_path and not self.url_path.startswith("/"):
            raise UsageError(f"{where}: url_path: {self.url_path!r} has to begin with /, such as"
                             " /index.html")
        if self.has_site and not self.has_objects and self.certificates:
            raise UsageError(f"{where}: a site has its own certificates: [[certificate]] goes with"
                             " [[object]]s")

    def _check_objects(self, where: str) -> None:
        if bool(self.listed) == (self.count is not None):
            raise UsageError(f"{where}: has to have either objects = N with bytes, or [[object]]s")
        if self.count is not None and self.size_bytes is None:
            raise UsageError(f"{where}: bytes is missing, the size of each of its objects")
        if self.listed and (self.size_bytes or self.document_bytes):
            raise UsageError(f"{where}: bytes and document_bytes go only with objects = N")
        if fault := objects.fault_of(self.objects, self.certificates):
            raise UsageError(f"{where}: {fault}")

    @property
    def has_site(self) -> bool:
        """Whether a browser can load it."""
        return bool(self.site or self.folder or self.har)

    @property
    def has_objects(self) -> bool:
        """Whether curl's library can fetch it."""
        return bool(self.listed) or self.count is not None

    def source(self, beside: Path | None, where: str) -> Source:
        """Where the site is; false without one. beside: the folder that its path is relative to."""
        return Source(self.site, self.site_bytes, path=self.folder or self.har,
                      url_path=self.url_path, files=self.files, is_har=bool(self.har),
                      beside=beside, where=f"{where}: {'har' if self.har else 'folder'}")

    @property
    def objects(self) -> tuple[PageObject, ...]:
        """All objects of the page, first the document."""
        if self.count is None or self.size_bytes is None:
            return self.listed
        document_bytes = self.document_bytes or self.size_bytes
        return objects.equal_objects(self.count, self.size_bytes, document_bytes)


@dataclass(frozen=True, kw_only=True)
class PageSweep(SettingSweep[PageTrial]):
    """Pages over settings, in every combination of the lists. Fields are named as in PageTrial.

    With HTTP/2 a sweep has the values of OVER_HTTP_2 where it names no others.
    """

    NAMES: ClassVar[tuple[str, ...]] = OF_SETTING
    LISTS: ClassVar[tuple[str, ...]] = ("page_names", "client", "connections")
    page_names: tuple[str, ...] = key(name="page", reader=schema.one_or_more(
        schema.file_name, "names of pages"))
    title: str = ""
    client: tuple[str, ...] = key((LIBCURL,), reader=schema.one_or_more(
        schema.word(CLIENTS), "clients"))
    lists: Lists = lists_of(OF_SETTING)
    connections: tuple[int, ...] = key((6,), reader=schema.one_or_more(
        schema.number("connections")))
    # A draw from 0 to this is added to each parse time. It follows from the seed of the repeat, and
    # is the same under every window.
    spread_ms: float = key(0.0, quantity="process_ms")
    # For each page of page_names, set by `linked`: its objects, the certificates that its hosts
    # share, and where its site is (false for a page of objects).
    contents: tuple[tuple[PageObject, ...], ...] = key((), absent=True)
    page_certificates: tuple[tuple[Certificate, ...], ...] = key((), absent=True)
    sites: tuple[Source, ...] = key((), absent=True)

    @property
    def is_random(self) -> bool:
        """Whether parse times are drawn."""
        return bool(self.spread_ms)

    @property
    def count(self) -> int:
        """How many cells the sweep has.

        Over HTTP/2 there is one connection to a host, however many numbers `connections` lists.
        """
        versions = self.lists["http"]
        if HTTP_2 not in versions or len(self.connections) == 1:
            return super().count
        over_2 = replace(self.with_lists(http=(HTTP_2,)), connections=self.connections[:1])
        count = over_2.count
        other_versions = tuple(http for http in versions if http != HTTP_2)
        if other_versions:
            count += self.with_lists(http=other_versions).count
        return count

    def with_followers(self, lists: dict[str, tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
        if HTTP_2 in lists["http"]:
            unnamed = {name: values for name, values in OVER_HTTP_2.items()
                       if name not in self.lists}
            lists = {**lists, **unnamed}
        return super().with_followers({"system": (system_for(lists),), **lists})

    def overridden(self, lists: Lists, where: str = "") -> PageSweep:
        if HTTP_2 in lists.get("http", ()):
            by_default = {name: values for name, values in OVER_HTTP_2.items()
                          if self.lists[name] == PARAMETERS[name].quantity.defaults}
            lists = {**by_default, **lists}
        if "system" not in lists and system_for({**self.lists, **lists}) == NEWER:
            lists = {**lists, "system": (NEWER,)}
        return super().overridden(lists, where)

    def cell_values(self) -> Iterator[dict[str, Any]]:
        """The values of each cell. Over HTTP/2 a cell has one connection to a host."""
        for values in super().cell_values():
            if values["http"] != HTTP_2:
                yield values
            elif values["connections"] == self.connections[0]:
                yield {**values, "connections": 1}

    def check_together(self, where: str) -> None:
        """Check that values go together. Raises UsageError."""
        super().check_together(where)
        lists = self.lists
        check_system(lists, where)
        check_builtin(lists, where)
        check_resumed(lists, where)
        chains = product(lists["signature"], lists["intermediates"], lists["chain_bytes"])
        check_chains(chains, where)

        if any(lists["resumed"]) and not all(lists["chain_bytes"]):
            raise UsageError(f"{where}: a session is resumed (resumed, --resumed) only with TLS:"
                             " give a chain (chain_bytes, --chain)")
        if HTTP_2 in lists["http"] and not all(lists["chain_bytes"]):
            raise UsageError(f"{where}: http: {ONLY_OVER_TLS}")
        if HTTP_2 in lists["http"] and BUILTIN in lists["server"]:
            raise UsageError(f"{where}: the server {BUILTIN} speaks HTTP/1.1 only: use another one"
                             f" (server, --server {NGINX})")

    def check_requested(self, where: str) -> None:
        super().check_requested(where)
        self.check_server(where)

    def linked(self, pages: Mapping[str, Page], where: str, beside: Path | None = None
               ) -> PageSweep:
        """The sweep with the contents of its pages. Raises UsageError where a page is missing.

        beside: the folder that paths of pages are relative to; None for the folder of the project's
        scenarios.
        """
        for name in self.page_names:
            if name not in pages:
                raise UsageError(f"{where}: page: there is no [[page]] {name!r}"
                                 f"{nearest_or_known(name, list(pages))}")
            if CHROMIUM in self.client and not pages[name].has_site:
                raise UsageError(f"{where}: client: {CHROMIUM} loads a site: give the page {name!r}"
                                 " a folder or a har")
            if LIBCURL in self.client and not pages[name].has_objects:
                raise UsageError(f"{where}: client: {LIBCURL} fetches objects, and the page"
                                 f" {name!r} has none: give it some, or write client ="
                                 f' "{CHROMIUM}"')

        swept = [pages[name] for name in self.page_names]
        linked = replace(self, contents=tuple(page.objects for page in swept),
                         page_certificates=tuple(page.certificates for page in swept),
                         sites=tuple(page.source(beside, where) for page in swept))
        linked.check_server(where)
        return linked

    def check_server(self, where: str) -> None:
        """Check that servers and clients can deliver the pages. Raises UsageError."""
        for server in self.lists["server"]:
            if server not in (BUILTIN, NGINX):
                raise UsageError(f"{where}: server: a page comes from {BUILTIN} or {NGINX}, not"
                                 f" from {server}")
        if CHROMIUM in self.client:
            self.check_browser(where)
        if NGINX in self.lists["server"] and any(
                requested.think_ms for requested in chain.from_iterable(self.contents)):
            raise UsageError(f"{where}: think_ms needs the server {BUILTIN}")

    def check_browser(self, where: str) -> None:
        """Check that a browser can load a page over these settings. Raises UsageError."""
        lists = self.lists
        if self.spread_ms:
            raise UsageError(f"{where}: spread_ms draws times of parsing, which a browser has"
                             " itself: leave it out")
        if {*lists["server"]} != {NGINX}:
            raise UsageError(f"{where}: a browser's page comes from {NGINX} (server, --server"
                             f" {NGINX})")

        if not all(lists["chain_bytes"]):
            raise UsageError(f"{where}: a browser's page comes over TLS: give a chain"
                             " (chain_bytes, --chain)")
        for signature in lists["signature"]:
            if signature not in BROWSER_SIGNATURES:
                raise UsageError(f"{where}: Chromium takes no certificates with {signature}"
                                 f" (signature, --signature): {' or '.join(BROWSER_SIGNATURES)}")
        if any(lists["resumed"]):
            raise UsageError(f"{where}: a browser's page begins without a session: leave resumed"
                             " (--resumed) out")

        if NEWER in lists["system"]:
            raise UsageError(f"{where}: a browser runs on this machine's programs: leave system"
                             " (--system) out")

    def trials(self, scenario: str, seed: int) -> Iterator[PageTrial]:
        """Yield the windows of each cell in turn, with the same losses and parse times."""
        pages = dict(zip(self.page_names, zip(self.contents, self.page_certificates, self.sites)))
        for cell in self.cell_values():
            name, client = cell.pop("page_names"), cell.pop("client")
            listed, shared, source = pages[name]
            site, site_bytes = "", 0
            if client == CHROMIUM:
                site, site_bytes = source.recorded()
                listed, shared = (), ()

            for repeat in range(1, 1 + self.repeats(cell)):
                repeat_seed = netem_seed(seed, repeat)
                phase_ms = drawn_phase_ms(seed, repeat) if site else None
                content = objects.with_spread(listed, self.spread_ms, repeat_seed)
                trial_seed = repeat_seed if draws_at_random(cell) else 0
                for initcwnd in self.initcwnd:
                    yield PageTrial(
                        scenario=scenario, part=self.name, page=name, initcwnd=initcwnd,
                        objects=content, shared_certificates=shared, repeat=repeat, site=site,
                        site_bytes=site_bytes, phase_ms=phase_ms, seed=trial_seed, **cell)


# The times that a figure may show, and their names on its axis.
METRICS = {"page_ms": "time of the page", "first_byte_ms": "first byte",
           "document_ms": "time of the document", "content_loaded_ms": "DOMContentLoaded",
           "paint_ms": "first contentful paint", "largest_paint_ms": "largest contentful paint"}


@dataclass(frozen=True, kw_only=True)
class PageFigure(Figure):
    """A figure of pages: one of the kinds in FIGURES."""

    sweep: str
    metric: str = key("page_ms", reader=schema.word(tuple(METRICS)))  # of the bars of "times"
    # The windows of a waterfall or a film strip; () for the sweep's first and last.
    windows: tuple[int, ...] = key((), reader=schema.values(schema.number("initcwnd")))


PageScenario = grammar.Scenario[PageSweep, PageFigure, Claim]


def _check_figure(sweeps: Sequence[PageSweep], figure: PageFigure, where: str) -> None:
    """Check that a figure's sweep and windows are measured. Raises UsageError."""
    names = [sweep.name for sweep in sweeps]
    schema.one_of(figure.sweep, names, f"{where}: sweep")
    windows = sweeps[names.index(figure.sweep)].initcwnd
    for window in figure.windows:
        if window not in windows:
            raise UsageError(f"{where}: windows: {window} is not measured; known:"
                             f" {', '.join(map(str, windows))}")


def _check_waterfall(sweeps: Sequence[PageSweep], figure: PageFigure, where: str) -> None:
    """Check a figure that shows all times of a page, so that it may name none. Raises UsageError.
    """
    _check_figure(sweeps, figure, where)
    if figure.metric != "page_ms":
        raise UsageError(f'{where}: metric goes with kind = "times" only')


FIGURES: dict[str, FigureKind[Sequence[PageSweep], PageFigure]] = {
    # The time of the page, a bar for each window.
    "times": FigureKind(_check_figure, windows=(0, 0)),
    # Each object over time, under one or two windows.
    "waterfall": FigureKind(_check_waterfall, windows=(0, 2)),
    # In a browser, pictures of the page at its paints and its load, under one or two windows.
    "filmstrip": FigureKind(_check_waterfall, windows=(0, 2))}


def _link(file: ScenarioFile) -> Callable[[PageSweep, str], PageSweep]:
    """A function that gives a sweep of the file the contents of its pages."""
    pages = {page.name: page for page in schema.read_tables(Page, file.raw, "page", file.where)}
    return lambda sweep, where: sweep.linked(pages, where, sources.beside(file))


TABLES = grammar.Tables(
    PageSweep, PageFigure, Claim, FIGURES, others=("page",), link=_link, without=("name", "title"))

# The flags that a page takes, and why it does not take another one.
TAKEN = Taken("page", "pages", (*OF_SETTING, "connections", "initcwnd", "repeat"), {
    "early_data_bytes": NO_EARLY_DATA,
    "rwnd_growth": "its client does not set the window on its sockets",
    RESPONSE: "its file says which objects are sent, and when",
    "client": f'write client = "{CHROMIUM}" in its file',
    "server-command": f"a page comes from {BUILTIN} or {NGINX}",
    "own_window": 'write --iw 10, or window_by = "kernel" in its file'})
