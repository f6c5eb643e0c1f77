"""Figures of these tests are drawn under matplotlib settings of Firstflight, like those of
drawing.images.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from firstflight.findings.drawing import style


@pytest.fixture(autouse=True, scope="module")
def settings() -> Iterator[None]:
    with style.settings():
        yield
