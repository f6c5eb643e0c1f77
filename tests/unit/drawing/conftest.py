"""Figures are made under the room's own settings, as drawing.images does it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from firstflight.findings.drawing import style


@pytest.fixture(autouse=True, scope="module")
def settings() -> Iterator[None]:
    with style.settings():
        yield
