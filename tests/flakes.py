"""Runs pyflakes on the files that have changed since it found nothing in them.

    python3 -m tests.flakes KNOWN PATH…

KNOWN: a file with the digests of the files without findings, which is written again. pyflakes looks
at each file by itself, so what it found depends on nothing else.
"""

from __future__ import annotations

import gc
import hashlib
import sys
from pathlib import Path

import pyflakes
from pyflakes.api import checkPath, iterSourceCode


def main(words: list[str]) -> int:
    """Print what is found. Returns 1 if anything is."""
    known, findings = Path(words[0]), 0
    before = {*known.read_text().split()} if known.exists() else set()
    after: list[str] = []
    for path in sorted(iterSourceCode(words[1:])):
        content = Path(path).read_bytes()
        digest = hashlib.sha256(f"{pyflakes.__version__} {path} ".encode() + content).hexdigest()
        found = 0 if digest in before else checkPath(path)
        findings += found
        if not found:
            after.append(digest)

    known.parent.mkdir(parents=True, exist_ok=True)
    known.write_text("\n".join(after))
    return int(findings > 0)


if __name__ == "__main__":
    gc.disable()  # it would take a third of the time
    sys.exit(main(sys.argv[1:]))
