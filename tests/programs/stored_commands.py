"""Damages the folder of a command that ran with --capture, whose page `run.sh --report` builds."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from firstflight.base import PROJECT
from firstflight.commands.virtual import captured
from tests.programs import damage
from tests.programs.damage import Draw, percent

FACTS: dict[str, Any] = {
    "command": ["python3", "net.py"], "folder": "/home/x", "seed": 1, "status": 0,
    "virtual_s": 1.5, "wall_s": 0.5, "files": 2, "left_out": ["pipe: neither a file nor a folder"],
    "spinning": [], "kernel_source": "linux", "kernel_origin": "linux-source", "kernel_known": True}


@cache
def packets() -> bytes:
    """The content of a stored capture."""
    return gzip.decompress(
        (PROJECT / "tests" / "golden" / "capture" / "small.pcapng.gz").read_bytes())


def of_commands(draw: Draw, folder: Path) -> Callable[[], object]:
    """A folder in which command.json is damaged, or the first third of a capture."""
    how = percent(draw)
    facts = json.dumps(damage.tree(FACTS, draw) if how < 40 else FACTS, default=str).encode()
    content = packets()[:len(packets()) // 3]
    damage.put(folder / "command.json", damage.data(facts, draw) if 40 <= how < 60 else facts,
               draw)
    damage.put(folder / "capture.pcapng",
               damage.data(content, draw) if how >= 60 else content, draw)
    return lambda: captured.run(["--report", str(folder)])
