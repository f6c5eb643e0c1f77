"""The server of a trial: its kind, whose programs run it, and the user's own server."""

from __future__ import annotations

import json
import os
import re
import shlex
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from firstflight.base import untrusted
from firstflight.base.errors import UsageError
from firstflight.parameters import default
from firstflight.testbed import messages

BUILTIN, OWN, NGINX = "builtin", "own", "nginx"
HTTP_1, HTTP_2 = "1.1", "2"
HERE, NEWER = "here", "debian13"  # whose programs run: this machine's, or Debian 13's
SIZE = "{size}"  # stands in a path for the size of the response in bytes


@dataclass(frozen=True)
class OwnServer:
    """The user's own server: an [own_server] table, or flags.

    command: split into words as a shell would; no shell runs it. {p} stands for the port that it
        has to listen on (8080, with TLS 8443), {address} for the address, {chain} and {key} for the
        files of a chain created for the run.
    ready: a path that is answered with status 200 once the server is ready; "" where it is ready
        as soon as it accepts connections.
    url_path: the path to fetch.
    ca: the file with the root of its own certificate; "" for plain HTTP or a created chain. name:
        the name in that certificate, "" for the address.
    folders: folders that the server may read besides the machine's programs; it starts in the
        first one.
    """

    command: str
    ready: str = ""
    url_path: str = f"/{SIZE}"
    ca: str = ""
    name: str = ""
    folders: tuple[str, ...] = ()

    def check(self, where: str) -> None:
        """Check command, paths and name. Raises UsageError."""
        try:
            words = shlex.split(self.command)
        except ValueError as error:
            raise UsageError(f"{where}: command: {error}") from error
        if not words:
            raise UsageError(f"{where}: command: there is no word in it")
        for key, path in (("url_path", self.url_path), ("ready", self.ready or "/")):
            if not re.fullmatch(r"/[!-~]*", path):
                raise UsageError(f"{where}: {key}: {path!r} is not a path like /page?id=1")
        if self.name and not re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", self.name):
            raise UsageError(f"{where}: name: {self.name!r} is not a host name")

    def check_sizes(self, has_size: bool, where: str) -> None:
        """Check that the size of its responses is known. Raises UsageError.

        has_size: whether the scenario gives the size of a response.
        """
        if SIZE not in self.url_path and not has_size:
            raise UsageError(f"{where}: give the size of the response (response_bytes, --size),"
                             f" or put it into the path, as /{SIZE}")

    @property
    def text(self) -> str:
        """The server as the text of a column.

        A column cannot keep two spaces in a row, so such spaces are escaped.
        """
        known = {name: value for name, value in asdict(self).items() if value}
        return json.dumps(known).replace("  ", "\\u0020\\u0020")

    def job(self) -> messages.OwnServer:
        """The server as a worker reads it: the command in words, and absolute paths."""
        return {"command": shlex.split(self.command), "ready": self.ready, "name": self.name,
                "ca": os.path.abspath(self.ca) if self.ca else "",
                "folders": [os.path.abspath(folder) for folder in self.folders]}


MOST_BYTES = 1 << 20  # of the text in a column
_WORDS = untrusted.any_text(MOST_BYTES)
_SCHEMA = untrusted.table({"command": _WORDS}, {
    **dict.fromkeys(("ready", "url_path", "ca", "name"), _WORDS),
    "folders": untrusted.items(_WORDS, 1000)})


@lru_cache(maxsize=16)
def parse_own_server(text: str) -> OwnServer:
    """The server that OwnServer.text wrote into a column. Raises ValueError."""
    known: dict[str, Any] = untrusted.read(text.encode(), _SCHEMA, MOST_BYTES)
    known["folders"] = tuple(known.get("folders", ()))
    return OwnServer(**known)


@dataclass(frozen=True, kw_only=True)
class ServerParameters:
    """The server of a trial.

    server: which one, "builtin" for server.py. http: the version of HTTP.
    system: whose programs run, HERE for the machine's (vtime/system.py).
    own_server: the user's own server as text (setting.server.OwnServer).
    """

    server: str = default("server")
    http: str = default("http")
    system: str = HERE
    own_server: str = ""

    @property
    def own(self) -> OwnServer | None:
        """The user's own server; None for the others."""
        return parse_own_server(self.own_server) if self.own_server else None
