"""Makes the project importable for every test, from whichever folder pytest is called."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))


def pytest_collection_finish() -> None:
    """What has been imported stays: garbage is looked for among what tests make, and less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
