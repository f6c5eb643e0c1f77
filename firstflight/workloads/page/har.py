"""Reads the page of a HAR file (HTTP Archive format 1.2), in which browsers save pages.

A page has the sizes, hosts and times of its objects, and which object named which. Nothing else is
kept: no content, cookie, URL or header. The file may come from anywhere, so any value may be
missing or of another type. What its fields mean depends on the program that wrote it (exporters).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, product
from urllib.parse import urljoin, urlsplit

from firstflight.base.errors import UsageError
from firstflight.base.words import join_words, plain
from firstflight.findings.quantities import QUANTITIES
from firstflight.setting.server import HTTP_1, HTTP_2
from firstflight.workloads.page import exporters, har_file, sharing
from firstflight.workloads.page.exporters import CONNECTION, NOT_MODIFIED, Entry, Exporter
from firstflight.workloads.page.har_file import NAMER, number, table, tables, time_ms
from firstflight.workloads.page.objects import MOST_HOSTS, Certificate, PageObject

# Reasons why an entry is no object of the page, as they stand behind a number of entries.
_WITHOUT_SIZE, _WITHOUT_TIME, _CACHED, _FAILED, _INLINE, _SOCKET, _TUNNEL, _OTHER = (
    "without a known size", "without a time", "from the cache", "that failed",
    "that nothing was requested for (data:, blob:)", "of a WebSocket", "of a tunnel (CONNECT)",
    "of another page or kind")
_REDIRECTS, _BEFORE, _AGAIN = ("that led to the document (redirects)", "before the document",
                               "since the document was loaded again")
_OTHERS = "of other hosts than --mine"
_SCHEMES = {"data:": _INLINE, "blob:": _INLINE, "about:": _INLINE, "ws:": _SOCKET, "wss:": _SOCKET}
_SWITCHED = 101  # the status of an answer after which the connection is a WebSocket
_DEFAULT_PORT = "443"  # some programs write it in place of a connection's name
MOST_NAMED = 10  # hosts in a message
MOST_UNKNOWN = 0.25  # a page is refused where this share of its objects lacks a size or a time
_DOCUMENTS = ("text/html", "application/xhtml+xml")

ONE_EACH = "Each of the HAR's connections carried one object; here connections are used again."


@dataclass(frozen=True)
class SavedPage:
    """A page as a file has it."""

    objects: tuple[PageObject, ...]
    source: str = ""  # what was read from where, in words; "" for a list of objects
    # The version of HTTP by which most objects came, where "3" counts as "2"; "" for unknown.
    http: str = HTTP_1
    http_from: str = ""  # how this version is known, in words
    note: str = ""  # what is measured otherwise than it was recorded
    is_secure: bool = False  # whether the document came over TLS
    certificates: tuple[Certificate, ...] = ()  # a certificate for hosts that shared connections


@dataclass(frozen=True)
class _Fetched:
    """An entry whose object came over the network. Times in ms since the epoch; "" for unknown."""

    number: int  # of the entry in the file, from 1
    url: str
    namer: str  # the URL of the object that named this one
    host: str  # its origin: scheme, host and port
    size_bytes: int
    size_from: str  # the field that has its size
    start_ms: float
    receive_ms: float  # when its first byte had come
    end_ms: float  # when its last byte had come
    is_redirect: bool
    redirect: str  # the URL to which it leads
    is_unmodified: bool
    is_html: bool
    connection: str  # the name of its connection
    http: str  # "1.1", "2" or "3"
    http_from: str  # the field that has this version
    address: str  # of its server


def read(content: bytes, where: str, mine: Sequence[str] = ()) -> SavedPage:
    """Read the page of a HAR. where: its name in messages. Raises UsageError in one line.

    mine: names of hosts. Only objects of these hosts and of their subdomains are the page's; () for
    all objects.
    """
    log = har_file.read(content, where)
    exporter, exporter_version = exporters.exporter_of(log)
    names_connections = any(CONNECTION in values for values in log["entries"])
    entries = [Entry(values, names_connections) for values in log["entries"]]
    page = _page(log, entries)
    reasons = [_why_excluded(entry, page.get("id"), exporter) for entry in entries]
    excluded = Counter(filter(None, reasons))
    fetched: Sequence[_Fetched] = [_read_fetched(entry_number, entry, exporter)
                                   for entry_number, entry in enumerate(entries, start=1)
                                   if not reasons[entry_number - 1]]
    if fault := _fault(excluded, len(fetched)):
        raise UsageError(f"{where}: {fault}")

    document = _find_document(entries, reasons, where)
    fetched = _from_document(document, fetched, excluded)
    if not page or not exporter.has_page_per_load:
        fetched = _first_load(fetched, excluded)
    are_mine = _are_mine(fetched, mine, where)
    measured = list(compress(fetched, are_mine))
    excluded[_OTHERS] += len(fetched) - len(measured)
    names = dict.fromkeys(loaded.host for loaded in measured)
    hosts = {host: index for index, host in enumerate(names)}
    if len(hosts) > MOST_HOSTS:
        raise UsageError(f"{where}: a page of {len(hosts)} hosts; at most {MOST_HOSTS} fit: leave"
                         " third parties out with --mine HOST,…")

    http, http_from = _http(measured)
    certificates = _certificates(measured, hosts)
    source = _source(measured, excluded, f"{exporter.name} {exporter_version}".strip())
    if sharing_hosts := sum(len(certificate.hosts) for certificate in certificates):
        source += f"; {sharing_hosts} of its {len(hosts)} hosts shared connections"
    notes = (ONE_EACH if _has_one_each(measured) else "",
             _note_on_others(fetched, len(measured), is_chosen=bool(mine)))
    objects = _objects(fetched, are_mine, hosts, screen_ms=_screen_ms(page, fetched[0]))
    return SavedPage(objects, source, http, http_from=http_from,
                     note=" ".join(filter(None, notes)),
                     is_secure=measured[0].host.startswith("https:"), certificates=certificates)


def _are_mine(fetched: Sequence[_Fetched], mine: Sequence[str], where: str) -> list[bool]:
    """For each object, whether its host has one of the names in `mine`; all true without names.

    Raises UsageError where a name has no object, or the document is not the user's.
    """
    names = [name.lower().strip(".") for name in mine]
    hosts = [_name_of(loaded) for loaded in fetched]
    for name in names:
        if not any(_is_of(host, name) for host in hosts):
            known = join_words(list(dict.fromkeys(hosts))[:MOST_NAMED])
            raise UsageError(f"{where}: --mine: no object came from {name}; its hosts: {known}")

    def is_mine(host: str) -> bool:
        return not names or any(_is_of(host, name) for name in names)

    are_mine = list(map(is_mine, hosts))
    if not are_mine[0]:
        raise UsageError(f"{where}: --mine: the document came from {hosts[0]}: name it too")
    return are_mine


def _name_of(fetched: _Fetched) -> str:
    """The name of the host of an object, without its port."""
    return urlsplit(fetched.host).hostname or ""


def _is_of(host: str, name: str) -> bool:
    """Whether a host has a name, or is a subdomain of it."""
    return host == name or host.endswith(f".{name}")


def _note_on_others(fetched: Sequence[_Fetched], measured: int, is_chosen: bool) -> str:
    """A sentence on objects of other hosts, which are excluded or could be; "" for none."""
    if measured < len(fetched):
        return (f"Only {measured} of {len(fetched)} objects are measured, those of --mine; what"
                " they wait for of the others takes as long as in the HAR.")
    name = _name_of(fetched[0]).removeprefix("www.")
    others = sum(not _is_of(_name_of(loaded), name) for loaded in fetched)
    if is_chosen or not others:
        return ""
    return (f"{others} of {len(fetched)} objects came from other hosts than the document's, and"
            " are measured with the same window: --mine HOST,… leaves others' out.")


def _page(log: Mapping[str, object], entries: Sequence[Entry]) -> Mapping[str, object]:
    """The first page that has entries; {} where no entry names its page."""
    pages = tables(log.get("pages"))
    named = {str(entry.value("pageref")) for entry in entries}
    return next((page for page in pages if str(page.get("id")) in named), {})


def _fault(excluded: Mapping[str, int], fetched: int) -> str:
    """Why too little of a page is known; "" where enough is."""
    unknown = excluded.get(_WITHOUT_SIZE, 0) + excluded.get(_WITHOUT_TIME, 0)
    if unknown and unknown >= MOST_UNKNOWN * (unknown + fetched):
        missing = []
        if excluded.get(_WITHOUT_SIZE):
            missing.append("size (bodySize, _transferSize, Content-Length, content.size)")
        if excluded.get(_WITHOUT_TIME):
            missing.append("time (startedDateTime)")
        return (f"{unknown} of its {unknown + fetched} objects have no known"
                f" {join_words(missing)}; the network panels of Chrome, Edge, Firefox and Safari"
                " save them: save the page there")
    return "" if fetched else "it has no entry that was fetched"


def _find_document(entries: Sequence[Entry], reasons: Sequence[str], where: str) -> int:
    """The number of the entry that is the document. Raises UsageError where there is none."""
    candidates = []
    for entry_number, (entry, why) in enumerate(zip(entries, reasons), start=1):
        if why in ("", _CACHED, _WITHOUT_SIZE, _WITHOUT_TIME) and not _is_redirect(entry):
            candidates.append((entry_number, entry, why))
    candidates.sort(key=lambda candidate: time_ms(candidate[1].value("startedDateTime")))

    # The document is the first entry with the surest sign.
    signs = (lambda entry: entry.is_true("_final_base_page"),
             lambda entry: entry.is_true("_is_base_page"),
             lambda entry: entry.value("_resourceType") == "document", _is_html)
    for is_document, (entry_number, entry, why) in product(signs, candidates):
        if is_document(entry) and why:
            cure = " with the cache off" if why == _CACHED else " in another browser"
            raise UsageError(f"{where}: its document, entry {entry_number}, is {why}: save the page"
                             f" again{cure}")
        if is_document(entry):
            return entry_number
    raise UsageError(f"{where}: none of its {len(entries)} entries is a document (text/html), with"
                     " which a page begins")


def _is_html(entry: Entry) -> bool:
    kind = str(entry.content.get("mimeType")).partition(";")[0].strip().lower()
    return kind in _DOCUMENTS and entry.status < 400


def _from_document(document: int, fetched: Sequence[_Fetched], excluded: Counter[str]
                   ) -> list[_Fetched]:
    """The objects in the order in which they began, from the document on.

    document: the number of its entry. Objects before the document are counted in excluded.
    """
    ordered = sorted(fetched, key=lambda loaded: (loaded.start_ms, loaded.number != document))
    first = next(index for index, loaded in enumerate(ordered) if loaded.number == document)
    for loaded in ordered[:first]:
        excluded[_REDIRECTS if loaded.is_redirect else _BEFORE] += 1
    return ordered[first:]


def _first_load(fetched: Sequence[_Fetched], excluded: Counter[str]) -> Sequence[_Fetched]:
    """The objects up to where the document was loaded again. The others are counted in excluded."""
    end = len(fetched)
    for index, loaded in enumerate(fetched[1:], start=1):
        if loaded.is_html and loaded.url == fetched[0].url:
            end = index
            break
    excluded[_AGAIN] += len(fetched) - end
    return fetched[:end]


def _http(fetched: Sequence[_Fetched]) -> tuple[str, str]:
    """HTTP_1 or HTTP_2, as most objects came, "" for unknown; and how that is known, in words."""
    versions = Counter(loaded.http for loaded in fetched)
    newer, older, total = versions["2"] + versions["3"], versions["1.1"], len(fetched)
    if 2 * (newer + older) < total:
        unknown = total - newer - older
        return "", f"the version of HTTP is unknown ({unknown} of {total} do not name it)"

    http, name, count = HTTP_1, "HTTP/1.1", older
    if newer > older:
        http, name, count = HTTP_2, "HTTP/2 and 3", newer
        if not versions["2"] or not versions["3"]:
            name = "HTTP/3" if versions["3"] else "HTTP/2"
    fields = dict.fromkeys(loaded.http_from.rpartition(".")[2] for loaded in fetched
                           if loaded.http_from)
    share = "" if count == total else f" ({count} of {total})"
    return http, f"{name} from {join_words(list(fields))}{share}"


def _source(fetched: Sequence[_Fetched], excluded: Mapping[str, int], program: str) -> str:
    """What was read from where, in words."""
    document = fetched[0]
    total_bytes = sum(loaded.size_bytes for loaded in fetched)
    words = (f"a HAR by {program}: {len(fetched)} object{'s' if len(fetched) > 1 else ''},"
             f" {plain(round(total_bytes / 1000))} kB")

    sizes = Counter(loaded.size_from for loaded in fetched if loaded.size_from)
    if sizes:
        named = [name if len(sizes) == 1 else f"{name} ({count})"
                 for name, count in sizes.most_common()]
        words += f", sizes from {join_words(named)}"

    words += f"; the document is entry {document.number}"
    if document.is_unmodified:
        words += ", not modified"
    empty = sum(loaded.size_bytes == 0 for loaded in fetched)
    if empty:
        words += f"; {empty} without a body, measured with one byte"

    why = [f"{count} {reason}" for reason, count in excluded.items() if count]
    if why:
        words += f"; excluded: {join_words(why)}"
    return words


def _has_one_each(fetched: Sequence[_Fetched]) -> bool:
    """Whether each of several connections carried one object, as a program that reuses none."""
    names = [loaded.connection for loaded in fetched]
    return len(names) > 1 and all(names) and len(set(names)) == len(names)


def _certificates(fetched: Sequence[_Fetched], hosts: Mapping[str, int]
                  ) -> tuple[Certificate, ...]:
    """A certificate for each group of hosts that shared connections. hosts: their numbers.

    Some programs write one name for all connections. So a name counts only where all objects with
    this name came over HTTP/2 or 3 and, as far as is known, from one address.
    """
    by_name: dict[str, list[_Fetched]] = {}
    for loaded in fetched:
        if loaded.connection not in ("", _DEFAULT_PORT, loaded.host.rpartition(":")[2]):
            by_name.setdefault(loaded.connection, []).append(loaded)
    came: list[tuple[str, str]] = []
    for name, on_it in by_name.items():
        may_share = all(loaded.host.startswith("https:") and loaded.http in ("2", "3")
                        for loaded in on_it)
        addresses = {loaded.address for loaded in on_it} - {""}
        if may_share and len(addresses) <= 1:
            came += [(name, loaded.host) for loaded in on_it]

    groups: dict[int, list[int]] = {}
    for host, group in sharing.groups_of(list(hosts), came).items():
        groups.setdefault(group, []).append(hosts[host])
    return tuple(Certificate(tuple(numbers)) for numbers in groups.values() if len(numbers) > 1)


def _objects(fetched: Sequence[_Fetched], are_mine: Sequence[bool], hosts: Mapping[str, int],
             screen_ms: float) -> tuple[PageObject, ...]:
    """The measured objects, in the order in which they began.

    An object may be named by one that is not measured. Then it waits for the nearest measured one
    in the chain of objects that led to it, and after that as long as in the HAR. are_mine: which
    objects are measured. screen_ms: when the first screen was there.
    """
    namers = _namers(fetched)
    numbers: dict[int, int] = {}  # of measured objects in the page, by their position in `fetched`
    objects: list[PageObject] = []
    for position, loaded in enumerate(fetched, start=1):
        if not are_mine[position - 1]:
            continue
        namer = namers[position - 1]
        while namer and namer not in numbers:
            namer = namers[namer - 1]

        at_byte, parse_ms = 0, 0.0
        if namer and namer == namers[position - 1]:
            at_byte = _named_at(fetched[namer - 1], loaded.start_ms)
        elif namer:
            at_byte = max(1, fetched[namer - 1].size_bytes)
            waited_ms = max(0.0, loaded.start_ms - fetched[namer - 1].end_ms)
            parse_ms = round(min(waited_ms, QUANTITIES["process_ms"].highest), 3)

        objects.append(PageObject(
            max(1, loaded.size_bytes), numbers.get(namer, 0), at_byte, parse_ms=parse_ms,
            host=hosts[loaded.host], is_early=loaded.end_ms <= screen_ms))
        numbers[position] = len(objects)
    return tuple(objects)


def _namers(fetched: Sequence[_Fetched]) -> list[int]:
    """For each object the position, from 1 on, of the object that named it; 0 for the document.

    An object is named by the redirect to it, else by the last object with its namer's URL, else by
    the document.
    """
    latest: dict[str, int] = {}  # by URL: the position of the last object with it so far
    leading: dict[str, int] = {}  # by URL: the position of the redirect to it
    namers: list[int] = []
    for position, loaded in enumerate(fetched, start=1):
        namer = 0
        if namers:
            namer = leading.pop(loaded.url, 0) or latest.get(loaded.namer, 1)
        namers.append(namer)
        latest[loaded.url] = position
        if loaded.redirect:
            leading[loaded.redirect] = position
    return namers


def _named_at(namer: _Fetched, start_ms: float) -> int:
    """How many bytes of the namer had come when the object that it names began, at start_ms.

    Bytes are taken to come evenly from the first to the last one.
    """
    size = max(1, namer.size_bytes)
    if start_ms >= namer.end_ms or namer.end_ms <= namer.receive_ms:
        return size if start_ms >= namer.receive_ms else 0
    share = max(0.0, start_ms - namer.receive_ms) / (namer.end_ms - namer.receive_ms)
    return round(share * size)


# One entry -----------------------------------------------------------------------------

def _why_excluded(entry: Entry, page_id: object, exporter: Exporter) -> str:
    """Why an entry is no object of the page; "" where it is one."""
    url = entry.request.get("url")
    is_of_page = page_id is None or entry.values.get("pageref", page_id) == page_id
    if not isinstance(url, str) or not is_of_page:
        return _OTHER

    if entry.request.get("method") == "CONNECT":
        return _TUNNEL
    if not url.startswith(("http://", "https://")):
        return _SCHEMES.get(url[:url.find(":") + 1], _OTHER)
    if entry.status == _SWITCHED:
        return _SOCKET

    if exporter.is_cached(entry) and entry.response.get("_error") is None:
        return _CACHED
    if not 100 <= entry.status < 600 or _has_failed(entry):
        return _FAILED
    if exporters.size_of(entry, exporter)[0] < 0:
        return _WITHOUT_SIZE
    return "" if time_ms(entry.value("startedDateTime")) else _WITHOUT_TIME


def _has_failed(entry: Entry) -> bool:
    """Whether a response did not come, or not whole. Each program writes that otherwise."""
    response = entry.response
    is_lost = bool(response.get("_error")) and entry.transferred_bytes <= 0
    is_cut = response.get("_charlesStatus", "COMPLETE") != "COMPLETE"
    return (is_lost or is_cut or bool(response.get("_failureText"))
            or entry.is_true("_wasAborted"))


def _is_redirect(entry: Entry) -> bool:
    return 300 <= entry.status < 400 and entry.status != NOT_MODIFIED


def _read_fetched(number_in_file: int, entry: Entry, exporter: Exporter) -> _Fetched:
    """Read an entry that is an object of the page."""
    url = str(entry.request.get("url"))
    size_bytes, size_from = exporters.size_of(entry, exporter)
    http, http_from = exporters.version_of(entry, exporter)

    start_ms, took_ms = time_ms(entry.value("startedDateTime")), _took_ms(entry)
    receiving_ms = number(table(entry.values, "timings").get("receive"), 0.0)
    receiving_ms = min(max(0.0, receiving_ms), took_ms)

    is_redirect = _is_redirect(entry)
    return _Fetched(
        number_in_file, _plain(url), _plain(str(entry.value(NAMER))), host=_origin(url),
        size_bytes=size_bytes, size_from=size_from, start_ms=start_ms,
        receive_ms=start_ms + took_ms - receiving_ms, end_ms=start_ms + took_ms,
        is_redirect=is_redirect, redirect=_target(url, entry) if is_redirect else "",
        is_unmodified=entry.status == NOT_MODIFIED, is_html=_is_html(entry),
        connection=_connection(entry, exporter), http=http, http_from=http_from,
        address=_address(entry))


def _took_ms(entry: Entry) -> float:
    """How long an entry took: its time, or the sum of its timings."""
    took_ms = number(entry.value("time"))
    if took_ms >= 0:
        return took_ms
    return sum(max(0.0, number(value, 0.0))
               for value in table(entry.values, "timings").values())


def _target(url: str, entry: Entry) -> str:
    """The URL to which a redirect leads; "" for unknown."""
    target = entry.response.get("redirectURL") or entry.headers.get("location")
    try:
        return _plain(urljoin(url, target)) if isinstance(target, str) and target else ""
    except ValueError:
        return ""


def _address(entry: Entry) -> str:
    """The address of an entry's server, "" for unknown."""
    found = entry.value("serverIPAddress") or entry.value("_ip_addr")
    return found.strip("[]") if isinstance(found, str) else ""


def _connection(entry: Entry, exporter: Exporter) -> str:
    """The name of a connection, "" for none, which Chrome writes as "0"."""
    paths = exporter.connections
    if entry.names_connections:
        paths = paths[:1]  # the second one, Chrome's `connection`, is the server's port then
    for name in map(entry.value, paths):
        if isinstance(name, (str, int, float)) and name not in ("", "0", 0):
            return str(name)
    return ""


def _plain(url: str) -> str:
    """The URL without its fragment."""
    return url.partition("#")[0]


def _origin(url: str) -> str:
    """Scheme, host and port of a URL; "" where the text is no URL."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2].lower()}"


def _screen_ms(page: Mapping[str, object], document: _Fetched) -> float:
    """The time of onContentLoad in ms since the epoch; -inf for unknown."""
    after_ms = number(table(page, "pageTimings").get("onContentLoad"))
    if after_ms <= 0:
        return -math.inf
    return (time_ms(page.get("startedDateTime")) or document.start_ms) + after_ms
