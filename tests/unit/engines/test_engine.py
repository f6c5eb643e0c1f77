"""Which engine is taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from engines import engine, uml
from engines.job import EngineCannot


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (engine, uml):
        monkeypatch.setattr(module, "find_kernel", lambda: Path("/cache/linux"))


@pytest.fixture
def not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (engine, uml):
        monkeypatch.setattr(module, "find_kernel", lambda: None)


@pytest.mark.usefixtures("built")
def test_the_guest_is_taken_where_its_kernel_is_built() -> None:
    assert [engine.choose_engine(name, 2).name for name in ("auto", "uml", "host")] == [
        "uml", "uml", "host"]
    assert engine.choose_engine("auto", 2).jobs == 2 and engine.choose_engine("uml", 1).exact


@pytest.mark.usefixtures("not_built")
def test_without_it_auto_takes_this_kernel_and_uml_says_what_to_do() -> None:
    chosen = engine.choose_engine("auto", 2)
    assert (chosen.name, chosen.jobs, chosen.exact) == ("host", 1, False)
    with pytest.raises(EngineCannot, match=r"run ./install.sh"):
        engine.choose_engine("uml", 1)
