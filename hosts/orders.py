"""What a server is told while it runs: JSON lines on its standard input."""

from __future__ import annotations

import json
import os
from typing import Any

STANDARD_INPUT = 0


class Orders:
    """Lines as they come."""

    def __init__(self) -> None:
        self.torn = b""
        self.ended = False

    def take(self) -> list[dict[str, Any]]:
        """The whole lines that have come; to be called where there is something to read.

        Raises ValueError where one is no JSON.
        """
        more = os.read(STANDARD_INPUT, 1 << 16)
        self.ended = not more
        *whole, self.torn = (self.torn + more).split(b"\n")
        return [json.loads(line) for line in whole]
