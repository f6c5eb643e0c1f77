"""Starts Chromium and talks to it by its DevTools protocol, over a pipe.

The protocol is JSON, each message ended by NUL, on the browser's descriptors 3 and 4
(--remote-debugging-pipe, https://chromedevtools.github.io/devtools-protocol).
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

_READS, _WRITES = 3, 4  # descriptors of the browser
_FREE = 20  # descriptors from here on are free in a process that was just forked
_PIECE_BYTES = 1 << 20
MOST_MESSAGE_BYTES = 512 << 20
CALL_S = 60.0  # for an answer, by a clock that stands while the browser computes
_LAST_BYTES = 2000  # of what it wrote, for a message

Event = Mapping[str, Any]


class BrowserError(Exception):
    """The browser refused something, or did not answer. It may still be used."""


class BrowserEnded(BrowserError):
    """The browser has ended, or cannot be used any more."""


class DevTools:
    """A running browser. heed: is called with each event as it comes."""

    def __init__(self, command: Sequence[str], user: int, environment: Mapping[str, str],
                 log: Path) -> None:
        """Start the browser as a user of that number. Raises BrowserEnded where that fails."""
        self.log = log
        self.heed: Callable[[Event], None] = lambda event: None
        self.calls = 0
        self.answers: dict[int, dict[str, Any]] = {}
        self.buffer = bytearray()
        its_reading, self.writing = os.pipe()
        self.reading, its_writing = os.pipe()

        def arrange() -> None:
            # By free ones: the pipes' own descriptors may be _READS or _WRITES.
            os.dup2(its_reading, _FREE)
            os.dup2(its_writing, _FREE + 1)
            os.dup2(_FREE, _READS)
            os.dup2(_FREE + 1, _WRITES)

        with log.open("wb") as output:
            try:
                self.process = subprocess.Popen(
                    list(command), stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                    pass_fds=(_READS, _WRITES), preexec_fn=arrange, env=dict(environment),
                    user=user, group=user, extra_groups=[], cwd=environment["HOME"],
                    start_new_session=True)
            except OSError as error:
                raise BrowserEnded(f"the browser does not start: {error}") from error
            finally:
                os.close(its_reading)
                os.close(its_writing)

    def call(self, method: str, session: str = "", within_s: float = CALL_S,
             **parameters: object) -> dict[str, Any]:
        """Ask the browser, and wait for its answer. Raises BrowserError, BrowserEnded."""
        number = self.send(method, session, **parameters)
        deadline = time.monotonic() + within_s
        while number not in self.answers:
            if time.monotonic() >= deadline:
                raise BrowserError(f"the browser did not answer {method} within {within_s:g} s")
            self.receive(deadline - time.monotonic())

        answer = self.answers.pop(number)
        if "error" in answer:
            raise BrowserError(f"the browser refused {method}: {answer['error'].get('message')}")
        result: dict[str, Any] = answer.get("result", {})
        return result

    def send(self, method: str, session: str = "", **parameters: object) -> int:
        """Ask the browser; return the number of the question. Raises BrowserEnded."""
        self.calls += 1
        message: dict[str, object] = {"id": self.calls, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        left = memoryview(json.dumps(message).encode() + b"\0")
        try:
            while left:
                left = left[os.write(self.writing, left):]
        except OSError as error:
            raise BrowserEnded(self._last_words()) from error
        return self.calls

    def receive(self, within_s: float) -> bool:
        """Wait for more of the browser's messages, and take them; whether any came.

        Raises BrowserEnded.
        """
        if not select.select([self.reading], [], [], max(0.0, within_s))[0]:
            return False
        more = os.read(self.reading, _PIECE_BYTES)
        if not more or len(self.buffer) > MOST_MESSAGE_BYTES:
            raise BrowserEnded(self._last_words())
        self.buffer += more
        if b"\0" in more:
            *whole, rest = self.buffer.split(b"\0")
            self.buffer = rest
            for message in whole:
                self._take(json.loads(message))
        return True

    def _take(self, message: dict[str, Any]) -> None:
        if "id" in message:
            self.answers[message["id"]] = message
        else:
            self.heed(message)

    def _last_words(self) -> str:
        try:
            words = self.log.read_bytes()[-_LAST_BYTES:].decode(errors="replace").splitlines()
        except OSError:
            words = []
        last = next((line.strip() for line in reversed(words) if line.strip()), "")
        return f"the browser has ended: {last}" if last else "the browser has ended"

    def close(self) -> None:
        """End the browser and all its processes."""
        try:
            os.killpg(self.process.pid, 9)
        except (ProcessLookupError, PermissionError):
            pass
        self.process.wait()
        os.close(self.writing)
        os.close(self.reading)
