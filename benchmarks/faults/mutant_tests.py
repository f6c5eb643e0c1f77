"""Which files of tests there are, and which of them notice most of a change in a file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

NEAR, GOLDEN = "tests/unit/", "tests/golden/"
TESTS = (NEAR.rstrip("/"), GOLDEN.rstrip("/"))
# Whose tests are in another's folder.
ROOMS = {"server.py": "hosts", "client.py": "hosts", "registry.py": "core"}


def near_to(path: str) -> tuple[str, str]:
    """The folders of tests that notice most of what is changed in a file."""
    room = path.removeprefix("lab/").partition("/")[0]
    return f"{NEAR}{ROOMS.get(room, room)}/", GOLDEN


def files_of_tests(tree: Path, near: Iterable[str] | None) -> list[Path]:
    """All of them, or those near to some files, as seen from the tree."""
    found = [path.relative_to(tree) for name in TESTS
             for path in sorted((tree / name).rglob("test_*.py"))]
    if near is None:
        return found
    folders = tuple({folder for path in near for folder in near_to(path)})
    return [path for path in found if str(path).startswith(folders)]
