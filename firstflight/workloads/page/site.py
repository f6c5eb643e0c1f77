"""Reads a site to load in a browser: a folder of files, or a HAR with its contents.

Both may come from anywhere. Whatever they hold becomes a recording (testbed.hosts.replay), within
limits that are counted while reading. Guests read the recording, and neither folder nor HAR.
"""

from __future__ import annotations

import base64
import binascii
import mimetypes
import os
import stat
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, urlencode, urljoin, urlsplit

from firstflight.base import inflated, large_json
from firstflight.base.errors import UsageError
from firstflight.base.words import join_words, plain
from firstflight.testbed.hosts.replay.backend import DROPPED
from firstflight.testbed.hosts.replay.recording import (GZIP, Answer, Origin, Recording,
                                                        asked_with)
from firstflight.workloads.page import encoding, exporters, sharing
from firstflight.workloads.page.exporters import CONNECTION
from firstflight.workloads.page.har import time_ms
from firstflight.workloads.page.har_file import BESIDE, number, table, tables

MOST_FILES, MOST_BYTES, MOST_DEPTH = 10_000, 128 << 20, 32  # of a folder
MOST_HAR_BYTES, MOST_ENTRIES = 128 << 20, 10_000
MOST_ORIGINS = 200
MOST_HEADER, MOST_HEADERS, MOST_URL = 8_000, 100, 8_000
# Than its text a content may say that it is: programs count the ends of lines otherwise.
MOST_LONGER = 1.1
OWN_ORIGIN = "https://page.test"  # of a folder
LEAST_COMPRESSED = 1000  # bytes of a text that servers compress (nginx's gzip_min_length is 20)
INDEX = "index.html"
SHARED = Path("/usr/share")  # of packages: their documents have links to scripts and fonts there
NO_CONTENTS = ("has no contents of what was loaded: save it with contents (Chrome's \"Save all as"
               " HAR with content\", Playwright's recordHar), or leave out --client chromium")

# Types that mimetypes of Python 3.10 lacks, or has otherwise than servers.
_TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".woff": "font/woff",
          ".woff2": "font/woff2", ".webp": "image/webp", ".avif": "image/avif",
          ".wasm": "application/wasm", ".json": "application/json", ".svg": "image/svg+xml",
          ".webmanifest": "application/manifest+json", ".ico": "image/x-icon",
          ".md": "text/markdown"}
_COMPRESSED = ("text/", "application/json", "application/javascript", "application/xml",
               "image/svg+xml", "application/wasm", "application/manifest+json",
               "application/xhtml+xml", "application/rss+xml")
# Headers that would lead the browser elsewhere than to the recording, or say what is not so here.
_LEFT_OUT = DROPPED | {"alt-svc", "content-encoding", "nel", "report-to", "reporting-endpoints",
                       "strict-transport-security", "set-cookie", "age", "public-key-pins",
                       "accept-ranges", "content-range", "clear-site-data"}
_HTML = ("text/html", "application/xhtml+xml")
_REDIRECTS = (301, 302, 303, 307, 308)


@dataclass(frozen=True)
class Site:
    """A site as it was read. source: what was read from where, in words. notes: what differs."""

    recording: Recording
    source: str
    notes: tuple[str, ...] = ()


def is_har(path: Path) -> bool:
    """Whether --page names a file, not a folder."""
    return not path.is_dir()


def read(path: Path, url_path: str = "", with_server_time: bool = True,
         files: Sequence[str] = (), where: str = "--page") -> Site:
    """Read a site. Raises UsageError.

    url_path: of the page, by default / of a folder and the document of a HAR. with_server_time:
    whether answers wait as those of a HAR did. files: patterns of names in a folder, of which the
    others are left out; () for all. where: how messages begin.
    """
    if is_har(path):
        return read_har(path, with_server_time, where)
    return read_folder(path, url_path, files, where)


# A folder ----------------------------------------------------------------------------------

def read_folder(folder: Path, url_path: str = "", files: Sequence[str] = (),
                where: str = "--page") -> Site:
    """Read a folder of files, as a server for static files has it. Raises UsageError.

    Hidden files, what is no file, and links are left out, and counted; but links to files of the
    folder, and to what packages share (SHARED), are followed. files, where: as of read.
    """
    where = f"{where}: {folder}"
    answers: list[Answer] = []
    left_out: Counter[str] = Counter()
    total = 0
    for place, name in _files(folder, left_out, where):
        if files and not any(fnmatchcase(name, pattern) for pattern in files):
            continue
        body = _content(place, MOST_BYTES - total, where)
        total += len(body)
        answers += _of_file(name, body)
    if not answers:
        raise UsageError(f"{where}: has no file to serve")

    target = url_path or "/"
    known = {answer.target for answer in answers}
    if target.partition("?")[0] not in known:
        pages = [answer.target for answer in answers if answer.target.endswith(".html")]
        few = join_words(sorted(pages, key=lambda page: (page.count("/"), page))[:5])
        raise UsageError(f"{where}: has no {target}: name the page by url_path (--url-path)"
                         + (f", such as {few}" if pages else ""))
    served = sum(answer.status == 200 and not answer.target.endswith("/") for answer in answers)
    why = [f"{count} {reason}{'s' if count > 1 else ''}" for reason, count in left_out.items()]
    source = (f"a folder of {served} file{'s' if served > 1 else ''}, {plain(round(total / 1000))}"
              f" kB{f'; left out: {join_words(why)}' if why else ''}")
    return Site(Recording(f"{OWN_ORIGIN}{target}", (Origin(OWN_ORIGIN, 0),), tuple(answers)),
                source)


def _files(folder: Path, left_out: Counter[str], where: str) -> Iterator[tuple[Path, str]]:
    """The files of a folder, each with its path in it, in a fixed order."""
    count = 0
    try:
        for above, folders, names in os.walk(folder, onerror=_raise):
            depth = len(Path(above).relative_to(folder).parts)
            for name in list(folders):
                link = os.path.islink(os.path.join(above, name))
                if name.startswith(".") or link or depth >= MOST_DEPTH:
                    folders.remove(name)
                    left_out["link" if link else "hidden folder"] += 1
            folders.sort()
            for name in sorted(names):
                count += 1
                if count > MOST_FILES:
                    raise UsageError(f"{where}: has more than {MOST_FILES:,} files: name the"
                                     " folder of the site alone")
                place = Path(above, name)
                inside = PurePosixPath(place.relative_to(folder)).as_posix()
                if place.is_symlink():
                    place = _followed(place, folder)
                mode = place.lstat().st_mode
                if name.startswith("."):
                    left_out["hidden file"] += 1
                elif not stat.S_ISREG(mode):
                    left_out["link" if stat.S_ISLNK(mode) else "special file"] += 1
                else:
                    yield place, inside
    except OSError as error:
        raise UsageError(f"{where}: cannot be read: {error.strerror}") from error


def _followed(link: Path, folder: Path) -> Path:
    """The file to which a link in a folder leads, or the link itself where it is not followed."""
    place = Path(os.path.realpath(link))
    is_shared = any(map(place.is_relative_to, (SHARED, Path(os.path.realpath(folder)))))
    return place if is_shared and place.is_file() else link


def _raise(error: OSError) -> None:
    raise error


def _content(place: Path, room: int, where: str) -> bytes:
    """The content of a file that is no link. Raises UsageError."""
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            content = file.read(room + 1)
    except OSError as error:
        raise UsageError(f"{where}: {place.name}: cannot be read: {error.strerror}") from error
    if len(content) > room:
        raise UsageError(f"{where}: has more than {MOST_BYTES >> 20} MB: name the folder of the"
                         " site alone")
    return content


def _of_file(name: str, body: bytes) -> Iterator[Answer]:
    """The answers of a file: its own, and those of its folder where it is an index."""
    kind = type_of(name)
    if kind.startswith("text/") or kind in ("application/json", "image/svg+xml"):
        kind += "; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = (("content-type", kind),)
    if len(body) >= LEAST_COMPRESSED and kind.startswith(_COMPRESSED):
        headers, body = _encoded(headers, body, GZIP)
    try:
        target = f"/{quote(name)}"
    except UnicodeEncodeError:  # a name that is no text
        return
    yield Answer(0, "GET", target, 200, headers, body)
    if PurePosixPath(name).name == INDEX:
        own = target.removesuffix(INDEX)
        yield Answer(0, "GET", own, 200, headers, body)
        if own != "/":
            yield Answer(0, "GET", own.rstrip("/"), 301, (("location", own),), b"")


def type_of(name: str) -> str:
    """The content type of a file's name, as servers for static files give it."""
    suffix = PurePosixPath(name).suffix.lower()
    return (_TYPES.get(suffix) or mimetypes.types_map.get(suffix) or "application/octet-stream")


def _encoded(headers: tuple[tuple[str, str], ...], body: bytes, coding: str,
             wanted_bytes: int | None = None) -> tuple[tuple[tuple[str, str], ...], bytes]:
    """Headers and body of an answer that is compressed, where that makes it smaller."""
    name, smaller = encoding.compressed(body, coding, wanted_bytes)
    if len(smaller) >= len(body):
        return headers, body
    vary = () if "vary" in dict(headers) else (("vary", "accept-encoding"),)
    return (*headers, ("content-encoding", name), *vary), smaller


# A HAR -------------------------------------------------------------------------------------

@dataclass(frozen=True)
class _Entry:
    """An entry of a HAR. Times in ms.

    body: None where the HAR has no contents of it. coding: in which it came, "" for none.
    came_bytes: of its body as it came, None for unknown.
    """

    url: str
    origin: str
    method: str
    status: int
    headers: tuple[tuple[str, str], ...]
    kind: str
    body: bytes | None
    coding: str
    came_bytes: int | None
    start_ms: float
    wait_ms: float
    connect_ms: float
    connection: str
    http: str
    asked: str


def read_har(path: Path, with_server_time: bool = True, where: str = "--page") -> Site:
    """Read a HAR with contents. Raises UsageError. where: as of read."""
    where = f"{where}: {path}"
    try:
        content = inflated.content(path, MOST_HAR_BYTES)
        kept = Counter[str]()
        found = large_json.read(content, ("log", "entries"), lambda item: _entry(item, kept),
                                MOST_ENTRIES, BESIDE, most_text=MOST_HAR_BYTES)
    except OSError as error:
        raise UsageError(f"{where}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from error
    if found is None:
        raise UsageError(f"{where}: is not a HAR file: it has no log.entries")

    entries = sorted((entry for entry in found.items if isinstance(entry, _Entry)),
                     key=lambda entry: entry.start_ms)
    document = _document(entries, where)
    with_body = [entry for entry in entries if entry.body is not None]
    lacking = len(entries) - len(with_body)
    origins = _origins(with_body, where)
    waits = _waits(with_body) if with_server_time else [0.0] * len(with_body)
    answers = tuple(_answer(entry, origins, wait_ms)
                    for entry, wait_ms in zip(with_body, waits))
    return Site(Recording(document, tuple(origins.values()), answers),
                _har_source(found.beside, answers, origins, lacking, kept),
                tuple(_har_notes(with_body, waits, answers)))


def _entry(item: object, dropped: Counter[str]) -> _Entry | None:
    """What is replayed of an entry; None for what no browser requests of a server."""
    entry: Mapping[str, Any] = item if isinstance(item, dict) else {}
    request, response = table(entry, "request"), table(entry, "response")
    url, method = request.get("url"), request.get("method")
    status = int(number(response.get("status")))
    if (not isinstance(url, str) or not isinstance(method, str) or not method.isalpha()
            or len(method) > 20 or len(url) > MOST_URL or not _is_plain(url)
            or not url.startswith(("http://", "https://")) or not 200 <= status < 600):
        dropped["that cannot be replayed"] += 1
        return None
    origin = _origin(url)
    if not origin:
        dropped["that cannot be replayed"] += 1
        return None
    content = table(response, "content")
    named = [(str(header.get("name")).lower(), str(header.get("value")))
             for header in tables(response.get("headers"))[:MOST_HEADERS]]
    kind = dict(named).get("content-type") or str(content.get("mimeType") or "")
    headers = tuple((name, value) for name, value in named if _is_header(name, value))
    if kind and "content-type" not in dict(headers) and _is_header("content-type", kind):
        headers = (*headers, ("content-type", kind))
    timings = table(entry, "timings")
    connect_ms = number(timings.get("connect")) - max(0.0, number(timings.get("ssl"), 0.0))
    version = exporters.version_of(exporters.Entry({"response": dict(response),
                                                    "request": dict(request)}),
                                   exporters.OTHER)[0]
    return _Entry(
        url.partition("#")[0], origin, method.upper(), status, headers,
        kind.partition(";")[0].strip().lower(), body=_body(content, status, method.upper()),
        coding=dict(named).get("content-encoding", "").strip().lower().replace("identity", ""),
        came_bytes=encoding.recorded_bytes(response),
        start_ms=time_ms(entry.get("startedDateTime")),
        wait_ms=max(0.0, number(timings.get("wait"), 0.0)), connect_ms=connect_ms,
        connection=str(entry.get(CONNECTION) or entry.get("connection") or ""), http=version,
        asked=_asked(table(request, "postData")))


def _asked(posted: Mapping[str, object]) -> str:
    """The body of a request as recordings keep it; "" for none."""
    text = posted.get("text")
    if not isinstance(text, str) or not text:  # a form of which the fields are named only
        text = urlencode([(str(field.get("name")), str(field.get("value") or ""))
                          for field in tables(posted.get("params"))[:MOST_HEADERS]])
    return asked_with(text.encode("utf-8", "replace"))


def _is_plain(words: str) -> bool:
    return words.isascii() and words.isprintable() and " " not in words


def _is_header(name: str, value: str) -> bool:
    """Whether a recorded header can be sent, and means the same here."""
    return (name not in _LEFT_OUT and len(value) <= MOST_HEADER and value.isascii()
            and value.isprintable() and bool(name) and _is_plain(name) and ":" not in name)


def _body(content: Mapping[str, object], status: int, method: str) -> bytes | None:
    """The content of an entry; None where the HAR lacks it, or has only its beginning."""
    text, size = content.get("text"), number(content.get("size"))
    if isinstance(text, str):
        body = text.encode("utf-8", "surrogatepass")
        if content.get("encoding") == "base64":
            try:
                body = base64.b64decode(text, validate=False)
            except (binascii.Error, ValueError):
                return None
        return body if size <= MOST_LONGER * len(body) + 100 else None
    is_empty = status in (204, 304) or status in _REDIRECTS or method in ("HEAD", "OPTIONS")
    return b"" if is_empty or size == 0 else None


def _origin(url: str) -> str:
    """Scheme, host and port of a URL; "" where it has none."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return ""
    usual = {"http": 80, "https": 443}[parts.scheme]
    is_name = bool(host) and all(character.isalnum() or character in "-._" for character in host)
    if not is_name or len(host) > 253:
        return ""
    return f"{parts.scheme}://{host.lower()}{'' if port in (None, usual) else f':{port}'}"


def _document(entries: Sequence[_Entry], where: str) -> str:
    """The URL to load: of the document, or of the first redirect to it. Raises UsageError."""
    document = next((entry for entry in entries if entry.kind in _HTML and entry.status < 300
                     and entry.method == "GET"), None)
    if document is None:
        raise UsageError(f"{where}: none of its {len(entries)} entries is a document (text/html),"
                         " with which a page begins")
    if document.body is None or not any(entry.body for entry in entries):
        raise UsageError(f"{where}: {NO_CONTENTS}")
    url = document.url
    leading = {urljoin(entry.url, dict(entry.headers).get("location", "")): entry.url
               for entry in entries if entry.status in _REDIRECTS
               and entry.start_ms <= document.start_ms}
    seen = {url}
    while (before := leading.get(url)) and before not in seen:
        seen.add(before)
        url = before
    return url


def _origins(entries: Sequence[_Entry], where: str) -> dict[str, Origin]:
    """The origins by name. Those share a group of which objects came over one connection."""
    names = list(dict.fromkeys(entry.origin for entry in entries))
    if len(names) > MOST_ORIGINS:
        raise UsageError(f"{where}: a page of {len(names)} hosts; at most {MOST_ORIGINS} fit")
    # A number of a port is no name of a connection (Chrome names by it what has none).
    groups = sharing.groups_of(names, (
        (entry.connection, entry.origin) for entry in entries
        if entry.connection not in ("", "0", "80", "443") and entry.origin.startswith("https:")))
    return {name: Origin(name, groups[name]) for name in names}


def _waits(entries: Sequence[_Entry]) -> list[float]:
    """How long each answer waits, in ms: the recorded wait less the recording's round trip.

    The round trip to an origin is the shortest time that a connection to it took without TLS; where
    none was recorded, the shortest wait of its answers.
    """
    rtt_ms: dict[str, float] = {}
    for entry in entries:
        if entry.connect_ms > 0:
            rtt_ms[entry.origin] = min(entry.connect_ms, rtt_ms.get(entry.origin, 1e9))
    for entry in entries:
        if entry.wait_ms > 0:
            known = [each.wait_ms for each in entries
                     if each.origin == entry.origin and each.wait_ms > 0]
            rtt_ms.setdefault(entry.origin, min(known))
    return [round(max(0.0, entry.wait_ms - rtt_ms.get(entry.origin, 0.0)), 3)
            for entry in entries]


def _answer(entry: _Entry, origins: Mapping[str, Origin], wait_ms: float) -> Answer:
    parts = urlsplit(entry.url)
    target = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
    headers, body = entry.headers, entry.body or b""
    if body and entry.coding:
        headers, body = _encoded(headers, body, entry.coding, entry.came_bytes)
    return Answer(list(origins).index(entry.origin), entry.method, target, entry.status, headers,
                  body, wait_ms, entry.asked)


def _har_source(log: Mapping[str, Any], answers: Sequence[Answer], origins: Mapping[str, Origin],
                lacking: int, dropped: Mapping[str, int]) -> str:
    """What was read, in words."""
    exporter, version = exporters.exporter_of(log)
    total = sum(len(answer.body) for answer in answers)
    left_out = [*([f"{lacking} without contents"] if lacking else ()),
                *(f"{count} {why}" for why, count in dropped.items())]
    return (f"a HAR by {f'{exporter.name} {version}'.strip()}: {len(answers)} answer"
            f"{'s' if len(answers) > 1 else ''} of"
            f" {len(origins)} host{'s' if len(origins) > 1 else ''},"
            f" {plain(round(total / 1000))} kB"
            + (f"; left out: {join_words(left_out)}" if left_out else ""))


def _har_notes(entries: Sequence[_Entry], waits: Sequence[float], answers: Sequence[Answer]
               ) -> Iterator[str]:
    """What is measured otherwise than it was recorded."""
    sizes = [(len(answer.body), entry.came_bytes) for entry, answer in zip(entries, answers)
             if entry.body and entry.coding and entry.came_bytes]
    if sizes:
        now, then = (plain(round(sum(column) / 1000)) for column in zip(*sizes))
        yield (f"{len(sizes)} answers are compressed again, since a HAR has them without: {now} kB"
               f" instead of the {then} kB that came.")
    quic = sum(entry.http == "3" for entry in entries)
    if quic:
        yield f"{quic} of {len(entries)} answers came over HTTP/3, and come over HTTP/2 here."
    slow = [wait_ms for wait_ms in waits if wait_ms > 0]
    if slow:
        yield (f"{len(slow)} of {len(waits)} answers wait as the recording's servers did, at most"
               f" {plain(round(max(slow)))} ms; --server-time 0 leaves that out.")
