"""Chromium without a window, spoken to over a pipe: nothing listens, and nothing else is needed.

The DevTools protocol (https://chromedevtools.github.io/devtools-protocol/): JSON that ends in a
zero byte, from file descriptor 3 and to 4 (--remote-debugging-pipe).
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
FREE = 10  # from which file descriptor on none is in the way of 3 and 4


class Browser:
    """One page. said: what the console and the page complained of."""

    def __init__(self) -> None:
        assert PROGRAM is not None
        self.profile = tempfile.TemporaryDirectory(
            prefix="first-flight-browser-", ignore_cleanup_errors=True)  # it may still write
        (own, theirs), (theirs_out, own_out) = os.pipe(), os.pipe()
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, FREE) for end in (theirs_out, theirs)]
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{ends[0]} 4>&{ends[1]}', "bash", PROGRAM,
             f"--user-data-dir={self.profile.name}", *FLAGS], pass_fds=ends,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for end in (*ends, theirs, theirs_out):
            os.close(end)
        self.reads, self.writes = own, own_out
        self.buffer, self.last, self.session = b"", 0, ""
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
        """What the browser answers; what it tells meanwhile is looked at."""
        self.last += 1
        requested = {"id": self.last, "method": method, "params": parameters,
                 **({"sessionId": self.session} if self.session else {})}
        os.write(self.writes, json.dumps(requested).encode() + b"\0")
        while (told := self._next()).get("id") != self.last:
            self._note(told)
        assert "error" not in told, told["error"]
        answer: dict[str, Any] = told["result"]
        return answer

    def value(self, expression: str) -> Any:
        """What a JavaScript expression gives on the page."""
        told = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def open(self, page: Path, wide: int, dark: bool = False) -> None:
        """Load a page into a window so wide, in CSS pixels."""
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
        while b"\0" not in self.buffer:
            assert select.select([self.reads], [], [], HANGS_S)[0], "no answer"
            more = os.read(self.reads, 1 << 20)
            assert more, "the browser has ended"
            self.buffer += more
        line, _, self.buffer = self.buffer.partition(b"\0")
        told: dict[str, Any] = json.loads(line)
        return told

    def _note(self, told: dict[str, Any]) -> None:
        about = told.get("params", {})
        if told.get("method") == "Runtime.exceptionThrown":
            self.said.append(str(about["exceptionDetails"]))
        elif told.get("method") == "Log.entryAdded" and about["entry"]["level"] in ("error",
                                                                                   "warning"):
            self.said.append(about["entry"]["text"])
        elif told.get("method") == "Runtime.consoleAPICalled":
            self.said.append(str(about["args"]))
