"""The page of a question that a browser loads: a folder of files, or a HAR with its contents."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from firstflight.base.errors import UsageError
from firstflight.base.words import plain, visible_line
from firstflight.setting.server import HTTP_2, NGINX
from firstflight.testbed import site_store
from firstflight.workloads.page import site
from firstflight.workloads.page.scenario import Page
from firstflight.workloads.page.trial import CHAIN_BYTES

NETWORK_ONLY = ("Computing takes no time here: these times are the network's part of what a user"
                " waits.")
# The parameters of a browser's page, unless a flag says otherwise.
_USUAL: dict[str, tuple[Any, ...]] = {
    "http": (HTTP_2,), "server": (NGINX,), "chain_bytes": (CHAIN_BYTES,), "signature": ("ecdsa",)}


def content(path: Path, mine: Sequence[str], url_path: str, with_server_time: bool,
            given: dict[str, tuple[Any, ...]]) -> tuple[Page, str, str, str]:
    """The page, its description, a sentence on what was read from its file, and notes.

    path: the file or folder. mine, url_path and with_server_time are those of RequestedPage. given:
    the values of flags, by their quantity; the values of _USUAL are added to it. Raises UsageError.
    """
    if mine:
        raise UsageError("--mine: a browser requests what its page names, of all hosts; leave it"
                         " out")
    if url_path and site.is_har(path):
        raise UsageError(f"--url-path: {path} has a page of its own; it goes with --page FOLDER")
    if url_path and not url_path.startswith("/"):
        raise UsageError(f"--url-path: {url_path!r} has to begin with /, such as /index.html")
    found = site.read(path, url_path, with_server_time)
    digest = site_store.offer(found.recording)
    for name, values in _USUAL.items():
        given.setdefault(name, values)

    answers = found.recording.answers
    total_bytes = sum(len(answer.body) for answer in answers)
    if site.is_har(path):
        what = f"{len(answers)} recorded answers and {plain(round(total_bytes / 1000))} kB"
    else:
        what = f"a folder, {visible_line(urlsplit(found.recording.url).path)}"
    about = f"{visible_line(path.name or str(path))}: {found.source}."
    notes = " ".join((*found.notes, NETWORK_ONLY))
    return Page("own", site=digest, site_bytes=total_bytes), what, about, notes
