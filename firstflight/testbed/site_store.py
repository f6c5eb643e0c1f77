"""The user's store of recorded sites, by their digests: what the guests of browsers answer from.

A trial names its site by the digest, so that a run that is resumed, or measured from its own
scenario file, loads the very same bytes or none.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from firstflight.testbed.hosts.replay.recording import Recording, unpack
from firstflight.testbed.messages import Job
from vtime import system

MOST_SITES = 30  # kept, of which the largest has 128 MB
DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
MISSING = ("the page's recording {name} is not on this machine: measure it again from its file or"
           " folder, with --page")
NOT_INSTALLED = "0" * 64  # in place of a digest, for a page of a package that is not installed
NO_PACKAGE = "its page is not installed: ./install.sh --with-browser brings it"
ONLY_IN_GUESTS = "a browser loads its page in guests only: measure without --engine host"


class SiteMissing(Exception):
    """A site is not in the store."""


_others: list[Path] = []  # folders in place of the user's, the last one counts


def folder() -> Path:
    return _others[-1] if _others else system.cache().parent / "sites"


@contextmanager
def within(other: Path) -> Iterator[None]:
    """Within it, a folder is the store: that of a machine to which another one sent its sites."""
    _others.append(other)
    try:
        yield
    finally:
        _others.remove(other)


def file_name(digest: str) -> str:
    """The name of a site's file. Raises ValueError for what is no digest."""
    if not DIGEST.fullmatch(digest):
        raise ValueError(f"{digest!r} is no SHA-256")
    return f"{digest}.site"


# Sites that this process has read, by their digests. A site is stored once it is wanted, so that a
# command that measures nothing writes nothing.
_offered: dict[str, bytes] = {}


def offer(recording: Recording) -> str:
    """Have a site stored when a guest or a judge wants it; its digest."""
    content = recording.pack()
    digest = hashlib.sha256(content).hexdigest()
    _offered[digest] = content
    return digest


def put(recording: Recording) -> str:
    """Store a site; its digest. Raises SiteMissing."""
    digest = offer(recording)
    place_of(digest)
    return digest


def _store(digest: str, content: bytes) -> None:
    """Raises OSError."""
    place = folder() / file_name(digest)
    if place.exists():
        os.utime(place)
        return

    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, aside = tempfile.mkstemp(prefix=".", dir=place.parent)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    os.rename(aside, place)  # whole, or not there
    _forget_old()


def _forget_old() -> None:
    """Remove the sites that were not stored again for the longest time."""
    sites = sorted(folder().glob("*.site"), key=lambda site: site.stat().st_mtime_ns)
    for site in sites[:-MOST_SITES]:
        site.unlink(missing_ok=True)


def place_of(digest: str) -> Path:
    """The file of a site. Raises SiteMissing."""
    place = folder() / file_name(digest)
    if digest == NOT_INSTALLED:
        raise SiteMissing(NO_PACKAGE)
    if content := _offered.pop(digest, b""):
        try:
            _store(digest, content)
        except OSError as error:
            raise SiteMissing(f"{folder()} cannot be written: {error.strerror}") from error
    if not place.exists():
        raise SiteMissing(MISSING.format(name=digest[:12]))
    return place


def missing(trials: Iterable[Job]) -> dict[str, str]:
    """Why the sites of some trials are not here, by the names of these trials."""
    found = {}
    for trial in trials:
        if "site" in trial:
            try:
                place_of(trial["site"])
            except SiteMissing as error:
                found[trial["id"]] = str(error)
    return found


def get(digest: str) -> Recording:
    """Read a site. Raises SiteMissing, also where its file is damaged."""
    place = place_of(digest)
    content = place.read_bytes()
    if hashlib.sha256(content).hexdigest() != digest:
        raise SiteMissing(MISSING.format(name=digest[:12]))
    return unpack(content)
