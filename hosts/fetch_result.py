"""What client.py says of a fetch, whatever program made it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any


def judged(answer: dict[str, Any], reason: str) -> dict[str, Any]:
    """The answer with ok and error, from curl's exit status and the HTTP status."""
    if answer["exit_status"] != 0:
        return {**answer, "ok": False,
                "error": f"curl {answer['exit_status']}: {reason or 'failed'}"}
    if answer["http_status"] != 200:
        return {**answer, "ok": False, "error": f"HTTP status {answer['http_status']}"}
    return {**answer, "ok": True, "error": ""}


def failure(reason: str) -> dict[str, Any]:
    return {"connect_ms": None, "first_byte_ms": None, "total_ms": None, "port": 0,
            "exit_status": None, "http_status": None, "size": 0, "sha256": "",
            "ok": False, "error": reason}


def taken(body: Path) -> bytes:
    """What a program wrote into a file, which is then deleted."""
    try:
        data = body.read_bytes()
        body.unlink()
    except FileNotFoundError:
        return b""
    return data


def digest(body: bytes) -> dict[str, Any]:
    return {"size": len(body), "sha256": hashlib.sha256(body).hexdigest()}


def milliseconds(seconds: float) -> float:
    """curl counts in whole microseconds: three decimals keep them all."""
    return round(float(seconds) * 1000, 3)
