"""What programs write into a HAR (HTTP Archive format 1.2), and where they write which value.

The format leaves open whether a size counts headers, whether an object from the cache is listed,
and what the version of HTTP is called; each program has its own habit. EXPORTERS is the table of
the programs. Their habits were read from their sources and from files that they wrote.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlsplit

from firstflight.workloads.page.har_file import number, table

NOT_MODIFIED = 304
CONNECTION = "_connectionId"
# The status of responses that have no body, whatever a file says (RFC 9110, 6.4.1 and 15.4.5).
_EMPTY = (101, 204, NOT_MODIFIED)
# Headers have at most so many bytes: a size that exceeds the Content-Length by more is that of
# another response.
_MOST_HEAD_BYTES = 4096
_PORTS = {"http": 80, "https": 443}
_PLAIN = ("", "identity")  # codings of content that leave its size as it is
# How programs name each version. HTTP/3 is looked for first, as old Chrome wrote
# "http/2.0+quic/46". WebPageTest cuts characters 6 to 8 out of a status line: "HTTP/2 200" became
# "2 2". SPDY came before HTTP/2.
_VERSIONS = (("3", re.compile(r".*quic.*|hq.*|(?:http/|h)3\b.*")),
             ("2", re.compile(r"(?:http/|h)?2(?:\.0)?|h2c|spdy.*|2 \d")),
             ("1.1", re.compile(r"(?:http/)?1\.[01]")))


class Entry:
    """One entry of a HAR, as har_file keeps it. A number is -1 where it is missing.

    names_connections: whether any entry of the file has Chrome's name of its connection.
    """

    def __init__(self, values: Mapping[str, object], names_connections: bool = False) -> None:
        self.values, self.names_connections = values, names_connections
        self.request, self.response = table(values, "request"), table(values, "response")
        self.content = table(self.response, "content")
        self.headers = table(self.response, "headers")
        self.status = int(number(self.response.get("status")))
        # Bytes, as the program counted them.
        self.body_bytes = number(self.response.get("bodySize"))
        self.head_bytes = number(self.response.get("headersSize"))
        self.content_bytes = number(self.content.get("size"))
        self.transferred_bytes = number(self.response.get("_transferSize"))

    @property
    def is_empty(self) -> bool:
        """Whether a response of this kind never has a body."""
        return self.status in _EMPTY or self.request.get("method") == "HEAD"

    @cached_property
    def declared(self) -> float:
        """The Content-Length that the server sent; -1 for none."""
        words = str(self.headers.get("content-length", "")).replace(",", "")  # IE 11 groups digits
        return number(float(words)) if re.fullmatch(r"\d{1,12}", words) else -1.0

    @property
    def saved_bytes(self) -> float:
        """How many bytes compression saved, as the program counted."""
        return number(self.content.get("compression"))

    @property
    def names_compression(self) -> bool:
        """Whether the server's header or the program says that the body was compressed."""
        coding = str(self.headers.get("content-encoding", "")).strip().lower()
        return coding not in _PLAIN or self.saved_bytes > 0

    @property
    def is_compressed(self) -> bool:
        """Whether the body was compressed: it is named so, or the Content-Length is shorter."""
        counted_bytes = max(self.body_bytes, self.content_bytes)
        return self.names_compression or 0 <= self.declared < counted_bytes

    @property
    def lacks_count(self) -> bool:
        """Whether bodySize is 0 only because the program counted nothing."""
        return self.body_bytes == 0 and self.declared > 0

    def value(self, path: str) -> object:
        """The value below a path, such as "response.httpVersion"."""
        *tables, name = path.split(".")
        inner = self.values
        for key in tables:
            inner = table(inner, key)
        return inner.get(name)

    def is_true(self, path: str) -> bool:
        """Whether the value below a path is true, as any program writes it."""
        return self.value(path) in (True, 1, "1", "true")


# Sizes: each returns the bytes of the body on the wire, or -1 ---------------------------------

def _body(entry: Entry) -> float:
    """bodySize; -1 where it is the size after decompression, or where nothing was counted."""
    is_decoded = entry.body_bytes == entry.content_bytes and entry.is_compressed
    return -1 if is_decoded or entry.lacks_count else entry.body_bytes


def _raw_body(entry: Entry) -> float:
    """bodySize of programs that never write the size after decompression there."""
    return -1 if entry.lacks_count else entry.body_bytes


def _positive_body(entry: Entry) -> float:
    """bodySize of WebPageTest, in which 0 is unknown."""
    return entry.body_bytes or -1.0


def _body_of_firefox(entry: Entry) -> float:
    """bodySize of Firefox, which counts the headers as well (devtools, har-builder.js)."""
    if entry.body_bytes == entry.declared:
        return entry.body_bytes
    return _less_headers(entry, entry.body_bytes)


def _body_of_browsertime(entry: Entry) -> float:
    """bodySize of Browsertime; where headersSize is unknown, as over HTTP/2, it counts headers."""
    if entry.head_bytes >= 0:
        return _body(entry)
    return min(_body(entry), _less_headers(entry, entry.body_bytes))


def _transferred(entry: Entry) -> float:
    """_transferSize without the headers, which it counts."""
    body_bytes = _less_headers(entry, entry.transferred_bytes)
    if entry.content_bytes < 0 or body_bytes == entry.declared:
        return body_bytes
    return min(body_bytes, entry.content_bytes)


def _less_headers(entry: Entry, came_bytes: float) -> float:
    """How many of the bytes that came are the body's, the others are headers; -1 where none came.

    headersSize is the size of the headers before they were compressed, or unknown. So the server's
    Content-Length is preferred where it can be right.
    """
    if came_bytes <= 0:
        return -1
    is_consistent = (entry.names_compression or entry.content_bytes <= 0
                     or entry.declared == entry.content_bytes)
    is_near = 0 <= entry.declared <= came_bytes <= entry.declared + _MOST_HEAD_BYTES
    if is_consistent and is_near:
        return entry.declared
    return max(0.0, came_bytes - max(0.0, entry.head_bytes))


def _declared(entry: Entry) -> float:
    return entry.declared


def _content(entry: Entry) -> float:
    """content.size less what compression saved; -1 where an unknown number was saved."""
    if 0 <= entry.saved_bytes < entry.content_bytes:
        return entry.content_bytes - entry.saved_bytes
    is_unknown = entry.content_bytes == 0 and entry.declared > 0
    return -1 if entry.is_compressed or is_unknown else entry.content_bytes


def _object_size(entry: Entry) -> float:
    return number(_numeric(entry.value("_objectSize"))) or -1.0


def _bytes_in(entry: Entry) -> float:
    """_bytesIn, which counts the headers."""
    return _less_headers(entry, number(_numeric(entry.value("_bytesIn"))))


def _numeric(value: object) -> object:
    """A value as a number where WebPageTest wrote digits; any other value as it is."""
    return float(value) if isinstance(value, str) and re.fullmatch(r"\d{1,12}", value) else value


@dataclass(frozen=True)
class Size:
    """One place where a program writes the size of a body."""

    name: str  # of the field
    read: Callable[[Entry], float]  # returns the bytes; -1 for none


BODY, RAW_BODY = Size("bodySize", _body), Size("bodySize", _raw_body)
BODY_OF_FIREFOX = Size("bodySize", _body_of_firefox)
BODY_OF_BROWSERTIME = Size("bodySize", _body_of_browsertime)
TRANSFERRED, DECLARED = Size("_transferSize", _transferred), Size("Content-Length", _declared)
CONTENT = Size("content.size", _content)
OBJECT_SIZE, BYTES_IN = Size("_objectSize", _object_size), Size("_bytesIn", _bytes_in)
POSITIVE_BODY = Size("bodySize", _positive_body)


# The cache: each returns whether nothing of an entry came over the network ---------------------

def _never(entry: Entry) -> bool:
    return False


def _in_chrome(entry: Entry) -> bool:
    if entry.value("_fromCache") or entry.value("response._fetchedViaServiceWorker"):
        return True
    if _lacks_connection(entry):
        return True
    if entry.transferred_bytes >= 0:
        return entry.transferred_bytes == 0
    # Chrome before it wrote _transferSize.
    has_only_content = entry.body_bytes == 0 and entry.content_bytes > 0
    return has_only_content and entry.status != NOT_MODIFIED


def _lacks_connection(entry: Entry) -> bool:
    """Whether an entry has its server's port where fetched entries name their connection.

    Chrome writes pictures from its memory like that, with the size that they once had (observed
    with 156). Over QUIC it names no connection, whatever was fetched.
    """
    try:
        address = urlsplit(str(entry.request.get("url")))
        port = str(address.port or _PORTS.get(address.scheme))
    except ValueError:
        return False
    return (entry.names_connections and CONNECTION not in entry.values
            and entry.value("connection") == port
            and version_of(entry, CHROME)[0] not in ("", "3"))


def _in_firefox(entry: Entry) -> bool:
    """Firefox names its cache, or writes neither headers nor how long the answer took."""
    if entry.status == NOT_MODIFIED:
        return False
    if "afterRequest" in table(entry.values, "cache"):
        return True
    has_answer = entry.status > 0 or entry.body_bytes > 0
    took_no_time = number(entry.value("time"), 0.0) == 0
    lacks_network = took_no_time or not entry.value("response.httpVersion")
    return has_answer and entry.head_bytes <= 0 and lacks_network


def _in_safari(entry: Entry) -> bool:
    return entry.value("_fetchType") in ("Memory Cache", "Disk Cache", "Service Worker")


def _in_browsertime(entry: Entry) -> bool:
    caches = ("fromDiskCache", "fromServiceWorker", "fromPrefetchCache")
    return ("beforeRequest" in table(entry.values, "cache")
            or any(entry.is_true(f"response.{name}") for name in caches) or _in_chrome(entry))


def _in_playwright(entry: Entry) -> bool:
    """Playwright writes a content, and that nothing was transferred.

    Without a content nothing shows a cache: over HTTP/2 Playwright does not count headers.
    """
    has_only_content = entry.transferred_bytes == 0 and entry.content_bytes > 0
    return entry.is_true("_wasFulfilled") or has_only_content


# The table --------------------------------------------------------------------------------

@dataclass(frozen=True)
class Exporter:
    """How a program writes a HAR."""

    name: str  # in words
    creators: tuple[str, ...]  # how log.creator.name begins, in lower case
    sizes: tuple[Size, ...]  # the size of a body is the first of these that an entry has
    is_cached: Callable[[Entry], bool]  # whether an entry came from the cache
    versions: tuple[str, ...] = ("response.httpVersion", "request.httpVersion")  # paths of values
    connections: tuple[str, ...] = ()  # paths of the name of a connection
    below_version: int = 0  # the row is for versions below this one; 0 for all versions
    has_page_per_load: bool = True  # whether each load of a document is a page of its own


ANY_SIZE = (BODY, TRANSFERRED, DECLARED, CONTENT)
CHROME = Exporter("Chrome", ("webinspector", "chrome har capturer"), ANY_SIZE, _in_chrome,
                  connections=(CONNECTION, "connection"))
# The server's Content-Length comes first where nobody knows what the program counted. It also does
# for Playwright, which asks the browser for a size before all has come (observed with 1.65).
SERVER_FIRST = (DECLARED, TRANSFERRED, BODY, CONTENT)
OTHER = Exporter("an unknown program", (), SERVER_FIRST, _in_chrome)
EXPORTERS = (
    CHROME,
    Exporter("Firefox", ("firefox",), (RAW_BODY, DECLARED), _in_firefox, below_version=55),
    Exporter("Firefox", ("firefox",), (BODY_OF_FIREFOX, DECLARED), _in_firefox),
    Exporter("Firebug", ("firebug",), (RAW_BODY, DECLARED), _in_firefox),
    Exporter("Safari", ("webkit web inspector",), ANY_SIZE, _in_safari,
             connections=("connection",)),
    Exporter("WebPageTest", ("webpagetest",), (OBJECT_SIZE, BYTES_IN, POSITIVE_BODY), _never,
             versions=("_protocol", "response.httpVersion", "request.httpVersion"),
             connections=("_socket",)),
    Exporter("Playwright", ("playwright",), SERVER_FIRST, _in_playwright,
             has_page_per_load=False),
    Exporter("Browsertime", ("browsertime", "chrome-har"),
             (TRANSFERRED, BODY_OF_BROWSERTIME, DECLARED, CONTENT), _in_browsertime,
             connections=("connection",)),
    Exporter("Charles", ("charles",), ANY_SIZE, _never),
    Exporter("mitmproxy", ("mitmproxy",), (RAW_BODY, DECLARED), _never),
    Exporter("Fiddler", ("fiddler",), ANY_SIZE, _in_chrome),
    Exporter("Internet Explorer", ("internet explorer",), ANY_SIZE, _in_chrome))


def exporter_of(log: Mapping[str, object]) -> tuple[Exporter, str]:
    """The program that wrote a HAR, and its version; "" for unknown, and for Chrome.

    Chrome writes a version of WebKit that never changes.
    """
    creator = table(log, "creator")
    name = creator.get("name")
    words = name.lower() if isinstance(name, str) else ""
    match = re.match(r"(\d{1,4})(?:\.\d{1,4})?", str(creator.get("version")))
    version = match[0] if match else ""
    for exporter in EXPORTERS:
        is_covered = not exporter.below_version or (
            match is not None and int(match[1]) < exporter.below_version)
        if words.startswith(exporter.creators) and is_covered:
            return exporter, "" if exporter is CHROME else version
    return OTHER, ""


def version_of(entry: Entry, exporter: Exporter) -> tuple[str, str]:
    """The version of HTTP ("1.1", "2", "3") and the path of the field that has it; "" for unknown.
    """
    for path in exporter.versions:
        words = entry.value(path)
        if isinstance(words, str):
            for version, names in _VERSIONS:
                if names.fullmatch(words.strip().lower()):
                    return version, path
    return "", ""


def size_of(entry: Entry, exporter: Exporter) -> tuple[int, str]:
    """The bytes of an entry's body on the wire, -1 for unknown, and the field that has them."""
    if entry.is_empty:
        return 0, ""
    for size in exporter.sizes:
        size_bytes = size.read(entry)
        if size_bytes >= 0:
            return int(size_bytes), size.name
    return -1, ""
