"""Reads a site to load in a browser: a folder of files, or a HAR with its contents.

Either may come from anywhere. What it holds becomes a recording (testbed.hosts.replay), within
limits that are counted while reading. Guests read the recording, and never the folder or the HAR.
"""

from __future__ import annotations

import base64
import binascii
import mimetypes
import os
import stat
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, urlencode, urljoin, urlsplit

from firstflight.base import inflated, large_json
from firstflight.base.errors import UsageError
from firstflight.base.words import join_words, plain
from firstflight.testbed.hosts.replay.backend import DROPPED
from firstflight.testbed.hosts.replay.recording import (GZIP, Answer, Origin, Recording,
                                                        recorded_text)
from firstflight.workloads.page import encoding, exporters, sharing
from firstflight.workloads.page.exporters import CONNECTION
from firstflight.workloads.page.har_file import BESIDE, number, table, tables, time_ms

MOST_FILES, MOST_BYTES, MOST_DEPTH = 10_000, 128 << 20, 32  # of a folder
MOST_HAR_BYTES, MOST_ENTRIES = 128 << 20, 10_000  # of a HAR
MOST_ORIGINS = 200  # of a HAR
MOST_HEADERS = 100  # of an answer, and fields of a form
MOST_HEADER, MOST_URL, MOST_METHOD = 8_000, 8_000, 20  # characters
# By how much larger than its text a content may claim to be: programs count the ends of lines
# differently, by a share of the text and by some bytes.
MOST_LONGER, MORE_LONGER_BYTES = 1.1, 100
OWN_ORIGIN = "https://page.test"  # of a folder
LEAST_COMPRESSED = 1000  # bytes: smaller texts are sent as they are (nginx: gzip_min_length 20)
INDEX = "index.html"
SHARED = Path("/usr/share")  # documents of packages have links to scripts and fonts there
NO_CONTENTS = ("has no contents of what was loaded: save it with contents (Chrome's \"Save all as"
               " HAR with content\", Playwright's recordHar), or leave out --client chromium")

# Types that mimetypes of Python 3.10 lacks, or names otherwise than servers do.
_TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".woff": "font/woff",
          ".woff2": "font/woff2", ".webp": "image/webp", ".avif": "image/avif",
          ".wasm": "application/wasm", ".json": "application/json", ".svg": "image/svg+xml",
          ".webmanifest": "application/manifest+json", ".ico": "image/x-icon",
          ".md": "text/markdown"}
_COMPRESSED = ("text/", "application/json", "application/javascript", "application/xml",
               "image/svg+xml", "application/wasm", "application/manifest+json",
               "application/xhtml+xml", "application/rss+xml")
# Headers that would lead the browser away from the recording, or that are not true here.
_LEFT_OUT = DROPPED | {"alt-svc", "content-encoding", "nel", "report-to", "reporting-endpoints",
                       "strict-transport-security", "set-cookie", "age", "public-key-pins",
                       "accept-ranges", "content-range", "clear-site-data"}
_HTML = ("text/html", "application/xhtml+xml")
_REDIRECTS = (301, 302, 303, 307, 308)


@dataclass(frozen=True)
class Site:
    """A site as it was read."""

    recording: Recording
    source: str  # what was read from where, in words
    notes: tuple[str, ...] = ()  # what is measured otherwise than it was recorded


def is_har(path: Path) -> bool:
    """Whether --page names a file, not a folder."""
    return not path.is_dir()


def read(path: Path, url_path: str = "", with_server_time: bool = True,
         files: Sequence[str] = (), where: str = "--page") -> Site:
    """Read a site from a folder or a HAR. Raises UsageError.

    url_path: of the page in a folder, "" for /; a HAR's page is its document. with_server_time:
    whether answers wait as those of a HAR did. files: patterns of the names that are read from a
    folder; () for all. where: how messages begin.
    """
    if is_har(path):
        return read_har(path, with_server_time, where)
    return read_folder(path, url_path, files, where)


# A folder ----------------------------------------------------------------------------------

def read_folder(folder: Path, url_path: str = "", files: Sequence[str] = (),
                where: str = "--page") -> Site:
    """Read a folder of files as a server for static files delivers them. Raises UsageError.

    Links to files in the folder and in SHARED are followed. Other links, hidden files, and special
    files are left out and counted. url_path, files, where: as in read.
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
        answers += _answers_of_file(name, body)
    if not answers:
        raise UsageError(f"{where}: has no file to serve")

    target = url_path or "/"
    known = {answer.target for answer in answers}
    if target.partition("?")[0] not in known:
        pages = [answer.target for answer in answers if answer.target.endswith(".html")]
        few = join_words(sorted(pages, key=lambda page: (page.count("/"), page))[:5])
        example = f", such as {few}" if pages else ""
        raise UsageError(f"{where}: has no {target}: name the page by url_path (--url-path)"
                         f"{example}")

    served = sum(answer.status == 200 and not answer.target.endswith("/") for answer in answers)
    source = (f"a folder of {served} file{'s' if served > 1 else ''},"
              f" {plain(round(total / 1000))} kB")
    why = [f"{count} {reason}{'s' if count > 1 else ''}" for reason, count in left_out.items()]
    if why:
        source += f"; left out: {join_words(why)}"
    recording = Recording(f"{OWN_ORIGIN}{target}", (Origin(OWN_ORIGIN, 0),), tuple(answers))
    return Site(recording, source)


def _files(folder: Path, left_out: Counter[str], where: str) -> Iterator[tuple[Path, str]]:
    """Yield the files to serve in a folder, each with its path in the folder, in a fixed order."""
    count = 0
    try:
        for above, folders, names in os.walk(folder, onerror=_raise):
            _leave_out_folders(folders, Path(above), folder, left_out=left_out)
            for name in sorted(names):
                count += 1
                if count > MOST_FILES:
                    raise UsageError(f"{where}: has more than {MOST_FILES:,} files: name the"
                                     " folder of the site alone")

                place = Path(above, name)
                inside = PurePosixPath(place.relative_to(folder)).as_posix()
                if place.is_symlink():
                    place = _follow(place, folder)
                mode = place.lstat().st_mode
                if name.startswith("."):
                    left_out["hidden file"] += 1
                elif not stat.S_ISREG(mode):
                    left_out["link" if stat.S_ISLNK(mode) else "special file"] += 1
                else:
                    yield place, inside
    except OSError as error:
        raise UsageError(f"{where}: cannot be read: {error.strerror}") from error


def _leave_out_folders(folders: list[str], above: Path, folder: Path, *,
                       left_out: Counter[str]) -> None:
    """Remove the folders that os.walk shall not enter from its list `folders`, and sort the others.

    They are links, hidden folders, and folders too deep in `folder`; they are counted in left_out.
    above: the folder that has the listed ones.
    """
    is_deep = len(above.relative_to(folder).parts) >= MOST_DEPTH
    for name in list(folders):
        is_link = os.path.islink(above / name)
        if name.startswith(".") or is_link or is_deep:
            folders.remove(name)
            left_out["link" if is_link else "hidden folder"] += 1
    folders.sort()


def _follow(link: Path, folder: Path) -> Path:
    """The file to which a link in a folder leads, or the link itself where it is not followed."""
    place = Path(os.path.realpath(link))
    is_shared = any(map(place.is_relative_to, (SHARED, Path(os.path.realpath(folder)))))
    return place if is_shared and place.is_file() else link


def _raise(error: OSError) -> None:
    raise error


def _content(place: Path, room: int, where: str) -> bytes:
    """The content of a file that is no link. Raises UsageError where it exceeds `room` bytes."""
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


def _answers_of_file(name: str, body: bytes) -> Iterator[Answer]:
    """The answers for a file: its own, and where it is an index also those for its folder."""
    kind = type_of(name)
    if kind.startswith("text/") or kind in ("application/json", "image/svg+xml"):
        kind += "; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = (("content-type", kind),)
    if len(body) >= LEAST_COMPRESSED and kind.startswith(_COMPRESSED):
        headers, body = _compress(headers, body, GZIP)
    try:
        target = f"/{quote(name)}"
    except UnicodeEncodeError:  # a name that is no text
        return

    of_file = Answer(0, "GET", target, status=200, headers=headers, body=body)
    yield of_file
    if PurePosixPath(name).name == INDEX:
        of_folder = target.removesuffix(INDEX)
        yield replace(of_file, target=of_folder)
        if of_folder != "/":
            yield Answer(0, "GET", of_folder.rstrip("/"), status=301,
                         headers=(("location", of_folder),), body=b"")


def type_of(name: str) -> str:
    """The content type of a file's name, as servers for static files give it."""
    suffix = PurePosixPath(name).suffix.lower()
    return (_TYPES.get(suffix) or mimetypes.types_map.get(suffix) or "application/octet-stream")


def _compress(headers: tuple[tuple[str, str], ...], body: bytes, coding: str,
             wanted_bytes: int | None = None) -> tuple[tuple[tuple[str, str], ...], bytes]:
    """Headers and body of an answer, compressed where that makes the body smaller."""
    name, smaller = encoding.compress(body, coding, wanted_bytes)
    if len(smaller) >= len(body):
        return headers, body
    vary = () if "vary" in dict(headers) else (("vary", "accept-encoding"),)
    return (*headers, ("content-encoding", name), *vary), smaller


# A HAR -------------------------------------------------------------------------------------

@dataclass(frozen=True)
class _Entry:
    """An entry of a HAR that can be replayed."""

    url: str
    origin: str
    method: str
    status: int
    headers: tuple[tuple[str, str], ...]
    kind: str  # its content type, such as "text/html"
    body: bytes | None  # None where the HAR has no contents of it
    coding: str  # how the body was compressed when it came, such as "gzip"; "" for not at all
    came_bytes: int | None  # of the body as it came; None for unknown
    start_ms: float
    wait_ms: float
    connect_ms: float  # without TLS; 0 or less where it opened no connection
    connection: str  # its name; "" for unknown
    http: str  # "1.1", "2" or "3"; "" for unknown
    request_text: str  # the request's body, as recordings keep it


def read_har(path: Path, with_server_time: bool = True, where: str = "--page") -> Site:
    """Read a HAR with contents. Raises UsageError. where: how messages begin."""
    where = f"{where}: {path}"
    try:
        content = inflated.content(path, MOST_HAR_BYTES)
        dropped = Counter[str]()
        found = large_json.read(content, ("log", "entries"),
                                lambda item: _read_entry(item, dropped), MOST_ENTRIES, BESIDE,
                                most_text=MOST_HAR_BYTES)
    except OSError as error:
        raise UsageError(f"{where}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from error
    if found is None:
        raise UsageError(f"{where}: is not a HAR file: it has no log.entries")

    entries = [entry for entry in found.items if isinstance(entry, _Entry)]
    entries.sort(key=lambda entry: entry.start_ms)
    document = _find_document(entries, where)
    with_body = [entry for entry in entries if entry.body is not None]
    origins = _origins(with_body, where)
    waits_ms = _waits_ms(with_body) if with_server_time else [0.0] * len(with_body)
    answers = tuple(_answer(entry, origins, wait_ms)
                    for entry, wait_ms in zip(with_body, waits_ms))
    left_out = {"without contents": len(entries) - len(with_body), **dropped}
    return Site(Recording(document, tuple(origins.values()), answers),
                _har_source(found.beside, answers, hosts=len(origins), left_out=left_out),
                tuple(_har_notes(with_body, waits_ms, answers)))


def _read_entry(item: object, dropped: Counter[str]) -> _Entry | None:
    """Read an entry; None for one that cannot be replayed, which is counted in `dropped`."""
    entry: Mapping[str, Any] = item if isinstance(item, dict) else {}
    request, response = table(entry, "request"), table(entry, "response")
    url, method = _text(request, "url"), _text(request, "method").upper()
    origin, status = _origin_of(url), int(number(response.get("status")))
    if not origin or not _is_method(method) or not 200 <= status < 600:
        dropped["that cannot be replayed"] += 1
        return None

    content = table(response, "content")
    recorded = [(str(header.get("name")).lower(), str(header.get("value")))
                for header in tables(response.get("headers"))[:MOST_HEADERS]]
    value_of = dict(recorded)
    kind = value_of.get("content-type") or str(content.get("mimeType") or "")
    headers = tuple((name, value) for name, value in recorded if _is_header(name, value))
    if kind and "content-type" not in dict(headers) and _is_header("content-type", kind):
        headers = (*headers, ("content-type", kind))

    timings = table(entry, "timings")
    connect_ms = number(timings.get("connect")) - max(0.0, number(timings.get("ssl"), 0.0))
    exported = exporters.Entry({"response": dict(response), "request": dict(request)})
    version, _ = exporters.version_of(exported, exporters.OTHER)
    return _Entry(
        url.partition("#")[0], origin, method, status=status, headers=headers,
        kind=kind.partition(";")[0].strip().lower(), body=_body(content, status, method),
        coding=value_of.get("content-encoding", "").strip().lower().replace("identity", ""),
        came_bytes=encoding.recorded_bytes(response),
        start_ms=time_ms(entry.get("startedDateTime")),
        wait_ms=max(0.0, number(timings.get("wait"), 0.0)), connect_ms=connect_ms,
        connection=str(entry.get(CONNECTION) or entry.get("connection") or ""), http=version,
        request_text=_request_text(table(request, "postData")))


def _text(values: Mapping[str, object], name: str) -> str:
    """A value that is a text, "" for any other."""
    value = values.get(name)
    return value if isinstance(value, str) else ""


def _is_method(method: str) -> bool:
    return method.isalpha() and len(method) <= MOST_METHOD


def _request_text(posted: Mapping[str, object]) -> str:
    """The body of a request as recordings keep it; "" for none."""
    text = _text(posted, "text")
    if not text:  # it may be a form, of which the HAR lists the fields
        fields = tables(posted.get("params"))[:MOST_HEADERS]
        text = urlencode([(str(field.get("name")), str(field.get("value") or ""))
                          for field in fields])
    return recorded_text(text.encode("utf-8", "replace"))


def _is_plain(words: str) -> bool:
    """Whether a text has only visible characters of ASCII."""
    return words.isascii() and words.isprintable() and " " not in words


def _is_header(name: str, value: str) -> bool:
    """Whether a recorded header can be sent, and is still true in a replay."""
    is_name = bool(name) and _is_plain(name) and ":" not in name
    is_value = len(value) <= MOST_HEADER and value.isascii() and value.isprintable()
    return is_name and is_value and name not in _LEFT_OUT


def _body(content: Mapping[str, object], status: int, method: str) -> bytes | None:
    """The content of an entry; None where the HAR lacks it, or has only the beginning."""
    text, size = content.get("text"), number(content.get("size"))
    if isinstance(text, str):
        body = text.encode("utf-8", "surrogatepass")
        if content.get("encoding") == "base64":
            try:
                body = base64.b64decode(text, validate=False)
            except (binascii.Error, ValueError):
                return None
        return body if size <= MOST_LONGER * len(body) + MORE_LONGER_BYTES else None

    is_empty = status in (204, 304) or status in _REDIRECTS or method in ("HEAD", "OPTIONS")
    return b"" if is_empty or size == 0 else None


def _origin_of(url: str) -> str:
    """Scheme, host and port of a URL; "" where it is no URL that a browser requests from a host."""
    if (len(url) > MOST_URL or not _is_plain(url)
            or not url.startswith(("http://", "https://"))):
        return ""
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


def _find_document(entries: Sequence[_Entry], where: str) -> str:
    """The URL to load: the document's, or that of the first redirect to it. Raises UsageError."""
    documents = (entry for entry in entries
                 if entry.kind in _HTML and entry.status < 300 and entry.method == "GET")
    document = next(documents, None)
    if document is None:
        raise UsageError(f"{where}: none of its {len(entries)} entries is a document (text/html),"
                         " with which a page begins")
    if document.body is None or not any(entry.body for entry in entries):
        raise UsageError(f"{where}: {NO_CONTENTS}")

    leading = {}  # by the URL to which a redirect leads: the URL of the redirect
    for entry in entries:
        if entry.status in _REDIRECTS and entry.start_ms <= document.start_ms:
            target = dict(entry.headers).get("location", "")
            leading[urljoin(entry.url, target)] = entry.url

    url = document.url
    passed = {url}
    while url in leading and leading[url] not in passed:
        url = leading[url]
        passed.add(url)
    return url


def _origins(entries: Sequence[_Entry], where: str) -> dict[str, Origin]:
    """The origins by name. Origins whose objects came over one connection are in one group."""
    names = list(dict.fromkeys(entry.origin for entry in entries))
    if len(names) > MOST_ORIGINS:
        raise UsageError(f"{where}: a page of {len(names)} hosts; at most {MOST_ORIGINS} fit")
    # Chrome writes a server's port where a connection has no name.
    came = [(entry.connection, entry.origin) for entry in entries
            if entry.connection not in ("", "0", "80", "443")
            and entry.origin.startswith("https:")]
    groups = sharing.groups_of(names, came)
    return {name: Origin(name, groups[name]) for name in names}


def _waits_ms(entries: Sequence[_Entry]) -> list[float]:
    """How long the server lets each answer wait, in ms: the recorded wait less a round trip.

    The recording's round trip to an origin is the shortest time in which TCP connected to it. Where
    no connection was recorded, it is the shortest wait of the origin's answers.
    """
    connects_ms: dict[str, list[float]] = defaultdict(list)  # by origin
    waits_ms: dict[str, list[float]] = defaultdict(list)
    for entry in entries:
        if entry.connect_ms > 0:
            connects_ms[entry.origin].append(entry.connect_ms)
        if entry.wait_ms > 0:
            waits_ms[entry.origin].append(entry.wait_ms)

    server_waits_ms = []
    for entry in entries:
        rtt_ms = min(connects_ms[entry.origin] or waits_ms[entry.origin], default=0.0)
        server_waits_ms.append(round(max(0.0, entry.wait_ms - rtt_ms), 3))
    return server_waits_ms


def _answer(entry: _Entry, origins: Mapping[str, Origin], wait_ms: float) -> Answer:
    """The answer that replays an entry."""
    parts = urlsplit(entry.url)
    target = parts.path or "/"
    if parts.query:
        target += f"?{parts.query}"

    headers, body = entry.headers, entry.body or b""
    if body and entry.coding:
        headers, body = _compress(headers, body, entry.coding, wanted_bytes=entry.came_bytes)
    return Answer(list(origins).index(entry.origin), entry.method, target, status=entry.status,
                  headers=headers, body=body, wait_ms=wait_ms,
                  request_text=entry.request_text)


def _har_source(log: Mapping[str, Any], answers: Sequence[Answer], *, hosts: int,
                left_out: Mapping[str, int]) -> str:
    """What was read, in words."""
    exporter, version = exporters.exporter_of(log)
    program = f"{exporter.name} {version}".strip()
    total = sum(len(answer.body) for answer in answers)
    words = (f"a HAR by {program}: {len(answers)} answer{'s' if len(answers) > 1 else ''} of"
             f" {hosts} host{'s' if hosts > 1 else ''}, {plain(round(total / 1000))} kB")
    why = [f"{count} {reason}" for reason, count in left_out.items() if count]
    if why:
        words += f"; left out: {join_words(why)}"
    return words


def _har_notes(entries: Sequence[_Entry], waits_ms: Sequence[float], answers: Sequence[Answer]
               ) -> Iterator[str]:
    """Sentences on what is measured otherwise than it was recorded."""
    count = now_bytes = then_bytes = 0
    for entry, answer in zip(entries, answers):
        if entry.body and entry.coding and entry.came_bytes:
            count += 1
            now_bytes += len(answer.body)
            then_bytes += entry.came_bytes
    if count:
        yield (f"{count} answers are compressed again, since a HAR has them without:"
               f" {plain(round(now_bytes / 1000))} kB instead of the"
               f" {plain(round(then_bytes / 1000))} kB that came.")

    quic = sum(entry.http == "3" for entry in entries)
    if quic:
        yield f"{quic} of {len(entries)} answers came over HTTP/3, and come over HTTP/2 here."
    slow = [wait_ms for wait_ms in waits_ms if wait_ms > 0]
    if slow:
        yield (f"{len(slow)} of {len(waits_ms)} answers wait as the recording's servers did, at"
               f" most {plain(round(max(slow)))} ms; --server-time 0 leaves that out.")
