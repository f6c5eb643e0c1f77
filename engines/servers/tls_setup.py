"""TLS on a bench: chains made for the run, and a server that is told which one to show."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engines.bench import TOOL_DEADLINE_S, LineProcess, WorkerError
from hosts import certificates
from hosts.certificates import Asked, CertificateError, Files

FOLDER = "tls"  # in the worker's, which is gone when the run is
_OF_SERVER = ("tickets", "record_bytes", "buffer_bytes")


class Chains:
    """The chains of one bench, each made once."""

    def __init__(self, folder: Path, server: LineProcess, address: str) -> None:
        self.folder, self.server, self.address = folder / FOLDER, server, address
        self.made: dict[Asked, Files] = {}
        self.told: dict[str, Any] = {}

    def show(self, wanted: Mapping[str, Any]) -> Path:
        """Let server.py show a chain, and speak as a trial wants it; the root to trust.

        Raises WorkerError.
        """
        files = self.files(wanted)
        order = {"chain": str(files.chain), "key": str(files.key),
                 **{name: wanted[name] for name in _OF_SERVER}}
        if order != self.told:
            self.server.send(order)
            answer = self.server.receive(TOOL_DEADLINE_S, "word on its certificates")
            if answer["error"]:
                raise WorkerError(f"server: {answer['error']}")
            self.told = order
        return files.root

    def files(self, wanted: Mapping[str, Any]) -> Files:
        """The chain that a trial wants, and its root. Raises WorkerError."""
        asked = Asked(wanted["chain_bytes"], wanted["signature"], wanted["intermediates"],
                      self.address)
        if asked not in self.made:
            try:
                self.made[asked] = certificates.make(self.folder / str(len(self.made)), asked)
            except (CertificateError, OSError) as error:
                raise WorkerError(f"certificates: {error}") from error
        return self.made[asked]
