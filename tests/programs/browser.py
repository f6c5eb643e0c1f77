"""Drives Chromium without a window, over a pipe, so that it listens on no port.

It speaks the DevTools protocol (https://chromedevtools.github.io/devtools-protocol/). A message is
JSON and ends in a zero byte. Chromium reads file descriptor 3 and writes to 4
(--remote-debugging-pipe).
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tests.running import HANGS_S, wait_until

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
               None)
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
         "--remote-debugging-pipe", "--no-first-run", "--disable-extensions",
         "--disable-background-networking", "about:blank")
FREE = 10  # the pipe's ends get file descriptors from this number on, and so never 3 or 4


class Browser:
    """A browser with one page. said: the errors and warnings of the console and of the page."""

    def __init__(self) -> None:
        assert PROGRAM is not None
        self.profile = tempfile.TemporaryDirectory(
            prefix="first-flight-browser-", ignore_cleanup_errors=True)  # it may still write
        reads, browser_writes = os.pipe()
        browser_reads, writes = os.pipe()
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, FREE) for end in (browser_reads, browser_writes)]
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{ends[0]} 4>&{ends[1]}', "bash", PROGRAM,
             f"--user-data-dir={self.profile.name}", *FLAGS], pass_fds=ends,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for end in (*ends, browser_writes, browser_reads):
            os.close(end)
        self.reads, self.writes = reads, writes
        self.buffer = b""  # what was read after the last whole message
        self.last = 0  # the number of the last request
        self.session = ""  # in which requests are about the page
        self.said: list[str] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.reads)
        os.close(self.writes)
        self.profile.cleanup()

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The browser's answer to a request; complaints that come before it are noted."""
        self.last += 1
        requested = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            requested["sessionId"] = self.session
        os.write(self.writes, json.dumps(requested).encode() + b"\0")

        while (message := self._next()).get("id") != self.last:
            self._note(message)
        assert "error" not in message, message["error"]
        answer: dict[str, Any] = message["result"]
        return answer

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression on the page."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def open(self, page: Path, wide: int, dark: bool = False) -> None:
        """Load a page into a window that is `wide` CSS pixels wide."""
        self.ask("Emulation.setDeviceMetricsOverride", width=wide, height=800,
                 deviceScaleFactor=1, mobile=wide < 600)
        self.ask("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.ask("Page.navigate", url=page.resolve().as_uri())
        wait_until(lambda: self.value("document.readyState + location.protocol") == "completefile:",
                   "the page")

    def press(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            text = {"Enter": "\r", " ": " "}.get(key, "") if kind == "keyDown" else ""
            self.ask("Input.dispatchKeyEvent", type=kind, key=key,
                     code={" ": "Space"}.get(key, key), text=text,
                     windowsVirtualKeyCode={"Tab": 9, "Enter": 13, " ": 32}[key])

    def _next(self) -> dict[str, Any]:
        """The next message of the browser."""
        while b"\0" not in self.buffer:
            assert select.select([self.reads], [], [], HANGS_S)[0], "no answer"
            more = os.read(self.reads, 1 << 20)
            assert more, "the browser has ended"
            self.buffer += more
        line, _, self.buffer = self.buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message

    def _note(self, message: dict[str, Any]) -> None:
        """Keep a message in `said` if it is a complaint."""
        method, about = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.said.append(str(about["exceptionDetails"]))
        elif method == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            self.said.append(about["entry"]["text"])
        elif method == "Runtime.consoleAPICalled":
            self.said.append(str(about["args"]))
