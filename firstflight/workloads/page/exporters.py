"""What programs write into a HAR (HTTP Archive format 1.2), and where its values are to be found.

The format leaves open whether a size counts headers, whether an object from the cache is listed,
and what the version of HTTP is called; each program has its own habit. EXPORTERS is the table of
them, read from their sources and from files that they wrote.
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
# Without a body, whatever a file says of its size (RFC 9110, 6.4.1 and 15.4.5).
_EMPTY = (101, 204, NOT_MODIFIED)
_MOST_HEAD = 4096  # bytes of headers; a Content-Length further away is of another response
_PORTS = {"http": 80, "https": 443}
_PLAIN = ("", "identity")  # codings of content that leave its size as it is
# Names of a version: QUIC's first, as old Chrome wrote "http/2.0+quic/46". WebPageTest cuts
# characters 6 to 8 out of a status line: "HTTP/2 200" became "2 2". SPDY is what HTTP/2 was.
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
        self.body = number(self.response.get("bodySize"))
        self.head = number(self.response.get("headersSize"))
        self.size = number(self.content.get("size"))
        self.transferred = number(self.response.get("_transferSize"))

    @property
    def is_empty(self) -> bool:
        """Whether the response has no body by its kind."""
        return self.status in _EMPTY or self.request.get("method") == "HEAD"

    @cached_property
    def declared(self) -> float:
        """The Content-Length that the server sent."""
        words = str(self.headers.get("content-length", "")).replace(",", "")  # IE 11 groups digits
        return number(float(words)) if re.fullmatch(r"\d{1,12}", words) else -1.0

    @property
    def compression(self) -> float:
        """What compression saved."""
        return number(self.content.get("compression"))

    @property
    def is_coded(self) -> bool:
        """Whether the body was compressed, by the server's header or by the program's count."""
        coding = str(self.headers.get("content-encoding", "")).strip().lower()
        return coding not in _PLAIN or self.compression > 0

    @property
    def is_encoded(self) -> bool:
        """Whether the body was compressed, by is_coded or by a Content-Length that is shorter."""
        return self.is_coded or 0 <= self.declared < max(self.body, self.size)

    def value(self, path: str) -> object:
        """The value below a path, such as "response.httpVersion"."""
        *tables, name = path.split(".")
        inner = self.values
        for key in tables:
            inner = table(inner, key)
        return inner.get(name)

    def is_true(self, path: str) -> bool:
        return self.value(path) in (True, 1, "1", "true")


# Sizes: each returns the bytes of the body on the wire, or -1 ---------------------------------

def _body(entry: Entry) -> float:
    """bodySize, but where it is that of the content, which was compressed, or where nothing was
    counted."""
    is_decoded = entry.body == entry.size and entry.is_encoded
    return -1 if is_decoded or entry.body == 0 < entry.declared else entry.body


def _raw_body(entry: Entry) -> float:
    return -1 if entry.body == 0 < entry.declared else entry.body


def _positive_body(entry: Entry) -> float:
    """bodySize of WebPageTest, in which 0 is unknown."""
    return entry.body or -1.0


def _body_of_firefox(entry: Entry) -> float:
    """bodySize, which counts the headers as well (devtools, har-builder.js)."""
    return entry.body if entry.body == entry.declared else _less_headers(entry, entry.body)


def _body_of_browsertime(entry: Entry) -> float:
    """bodySize, which over HTTP/2 counts the headers as well, as nobody knows their size."""
    return _body(entry) if entry.head >= 0 else min(_body(entry), _less_headers(entry, entry.body))


def _transferred(entry: Entry) -> float:
    """_transferSize, which counts the headers."""
    came = _less_headers(entry, entry.transferred)
    return came if entry.size < 0 or came == entry.declared else min(came, entry.size)


def _less_headers(entry: Entry, came: float) -> float:
    """The bytes of the body among so many that came with headers; -1 where none came.

    headersSize is that of headers without compression, or unknown. So the server's own
    Content-Length goes before it.
    """
    if came <= 0:
        return -1
    is_consistent = entry.is_coded or entry.size <= 0 or entry.declared == entry.size
    is_near = 0 <= entry.declared <= came <= entry.declared + _MOST_HEAD
    if is_consistent and is_near:
        return entry.declared
    return max(0.0, came - max(0.0, entry.head))


def _declared(entry: Entry) -> float:
    return entry.declared


def _content(entry: Entry) -> float:
    """content.size, less what compression saved; -1 where that was compressed and is not known."""
    if 0 <= entry.compression < entry.size:
        return entry.size - entry.compression
    return -1 if entry.is_encoded or entry.size == 0 < entry.declared else entry.size


def _object_size(entry: Entry) -> float:
    return number(_numeric(entry.value("_objectSize"))) or -1.0


def _bytes_in(entry: Entry) -> float:
    """_bytesIn, which counts the headers."""
    return _less_headers(entry, number(_numeric(entry.value("_bytesIn"))))


def _numeric(value: object) -> object:
    """A number that WebPageTest wrote as text."""
    return float(value) if isinstance(value, str) and re.fullmatch(r"\d{1,12}", value) else value


@dataclass(frozen=True)
class Size:
    """Where the size of a body stands."""

    name: str  # of the field
    read: Callable[[Entry], float]  # returns the bytes; -1 for none


BODY, RAW_BODY = Size("bodySize", _body), Size("bodySize", _raw_body)
OF_FIREFOX = Size("bodySize", _body_of_firefox)
OF_BROWSERTIME = Size("bodySize", _body_of_browsertime)
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
    if entry.transferred >= 0:
        return entry.transferred == 0
    return entry.body == 0 < entry.size and entry.status != NOT_MODIFIED  # before _transferSize


def _lacks_connection(entry: Entry) -> bool:
    """Whether an entry has only its server's port where fetched ones name their connection.

    Chrome writes pictures from its memory so, with the size that they once had (observed with 156).
    Over QUIC it names no connection.
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
    """By its cache, or by what only an answer from the network has: a head, and time."""
    if entry.status == NOT_MODIFIED:
        return False
    if "afterRequest" in table(entry.values, "cache"):
        return True
    is_there = entry.status > 0 or entry.body > 0
    is_quick = number(entry.value("time"), 0.0) == 0 or not entry.value("response.httpVersion")
    return is_there and entry.head <= 0 and is_quick


def _in_safari(entry: Entry) -> bool:
    return entry.value("_fetchType") in ("Memory Cache", "Disk Cache", "Service Worker")


def _in_browsertime(entry: Entry) -> bool:
    caches = ("fromDiskCache", "fromServiceWorker", "fromPrefetchCache")
    return ("beforeRequest" in table(entry.values, "cache")
            or any(entry.is_true(f"response.{name}") for name in caches) or _in_chrome(entry))


def _in_playwright(entry: Entry) -> bool:
    """Also a response without a body may have transferred nothing, as over HTTP/2 its headers do
    not count."""
    return entry.is_true("_wasFulfilled") or entry.transferred == 0 < entry.size


# The table --------------------------------------------------------------------------------

@dataclass(frozen=True)
class Exporter:
    """How a program writes a HAR."""

    name: str  # in words
    creators: tuple[str, ...]  # how log.creator.name begins, in lower case
    sizes: tuple[Size, ...]  # where the size of a body stands: the first that has one is read
    is_cached: Callable[[Entry], bool]  # whether an entry came from the cache
    # Where the version of HTTP and the name of the connection stand.
    versions: tuple[str, ...] = ("response.httpVersion", "request.httpVersion")
    connections: tuple[str, ...] = ()
    before: int = 0  # the row is for versions below this one; 0 for all
    has_page_a_load: bool = True  # whether each load of a document is a page of its own


ANY = (BODY, TRANSFERRED, DECLARED, CONTENT)
CHROME = Exporter("Chrome", ("webinspector", "chrome har capturer"), ANY, _in_chrome,
                  connections=(CONNECTION, "connection"))
# What the server said goes first where nobody knows what the program counted, and in Playwright,
# which asks for a size before all has come (observed with 1.65).
SERVER_FIRST = (DECLARED, TRANSFERRED, BODY, CONTENT)
OTHER = Exporter("an unknown program", (), SERVER_FIRST, _in_chrome)
EXPORTERS = (
    CHROME,
    Exporter("Firefox", ("firefox",), (RAW_BODY, DECLARED), _in_firefox, before=55),
    Exporter("Firefox", ("firefox",), (OF_FIREFOX, DECLARED), _in_firefox),
    Exporter("Firebug", ("firebug",), (RAW_BODY, DECLARED), _in_firefox),
    Exporter("Safari", ("webkit web inspector",), ANY, _in_safari,
             connections=("connection",)),
    Exporter("WebPageTest", ("webpagetest",), (OBJECT_SIZE, BYTES_IN, POSITIVE_BODY), _never,
             versions=("_protocol", "response.httpVersion", "request.httpVersion"),
             connections=("_socket",)),
    Exporter("Playwright", ("playwright",), SERVER_FIRST, _in_playwright,
             has_page_a_load=False),
    Exporter("Browsertime", ("browsertime", "chrome-har"),
             (TRANSFERRED, OF_BROWSERTIME, DECLARED, CONTENT), _in_browsertime,
             connections=("connection",)),
    Exporter("Charles", ("charles",), ANY, _never),
    Exporter("mitmproxy", ("mitmproxy",), (RAW_BODY, DECLARED), _never),
    Exporter("Fiddler", ("fiddler",), ANY, _in_chrome),
    Exporter("Internet Explorer", ("internet explorer",), ANY, _in_chrome))


def exporter_of(log: Mapping[str, object]) -> tuple[Exporter, str]:
    """The program that wrote a HAR, and its version, "" for unknown."""
    creator = table(log, "creator")
    name = creator.get("name")
    words = name.lower() if isinstance(name, str) else ""
    match = re.match(r"(\d{1,4})(?:\.\d{1,4})?", str(creator.get("version")))
    version = match[0] if match else ""
    for exporter in EXPORTERS:
        is_covered = not exporter.before or (
            match is not None and int(match[1]) < exporter.before)
        if words.startswith(exporter.creators) and is_covered:
            return exporter, "" if exporter is CHROME else version
    return OTHER, ""


def version_of(entry: Entry, exporter: Exporter) -> tuple[str, str]:
    """The version of HTTP ("1.1", "2", "3") and the field that has it; "" for unknown."""
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
