"""Guests that are stopped after a run of trials, and take trials of later runs."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from firstflight.testbed import guests
from firstflight.testbed.guests import AT_ONCE, UmlEngine
from firstflight.testbed.messages import BROWSED_PAGE
from tests.running import wait_until
from vtime import uml
from vtime.console import EngineCannot

TRIAL = {"id": "t", "kind": "fetch", "network": {}}
# A program in the place of a kernel: it answers each trial of file after file with its own folder.
ANSWERING = """#!/bin/sh
echo '{"stage": "ready", "facts": {"kernel": "7"}}' >> observations.jsonl
number=1
while :; do
    while [ ! -e trials$number.jsonl ]; do sleep 0.01; done
    while read -r line; do
        BEFORE
        name=${line##*\\"id\\": \\"}
        printf '{"trial": "%s", "skipped": "%s"}\\n' "${name%%\\"*}" "$PWD" >> observations.jsonl
    done < trials$number.jsonl
    number=$((number + 1))
done
"""


def keeping(tmp_path: Path, before: str = ":") -> UmlEngine:
    """An engine whose guests answer. before: what they do before each answer, in the shell."""
    kernel = tmp_path / "linux"
    kernel.write_text(ANSWERING.replace("BEFORE", before))
    kernel.chmod(0o755)
    return UmlEngine(kernel, 1)


def who_answered(engine: UmlEngine, folder: Path, *names: str, **sysctls: str) -> set[str]:
    """The names of the guests' folders, such as guest0, that answered trials of these names."""
    seen = list(engine.run([{**TRIAL, "id": name} for name in names], sysctls, folder))
    assert [observed.trial_id for observed in seen] == [*names]
    return {Path(observed.content["skipped"]).name for observed in seen}


def state_of(process: int) -> str:
    """The state of a process as ps shows it, such as T for stopped."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.parametrize("around", [None, ()])
def test_a_kept_guest_is_stopped_and_takes_later_trials(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, around: tuple[str, ...] | None) -> None:
    """It takes trials that need the same sysctls as its first ones, in namespaces and without."""
    if around is not None:
        monkeypatch.setattr(uml, "namespaces", lambda: around)
    engine = keeping(tmp_path)
    assert who_answered(engine, tmp_path / "a", "t") == {"guest0"} and not engine.idle
    with engine.keeping_guests():
        assert who_answered(engine, tmp_path / "b", "t") == {"guest1"}
        ((_, guest),) = engine.idle
        kernel = guest.paused or 0
        wait_until(lambda: state_of(kernel) == "T", "the stop of the guest's kernel")
        assert who_answered(engine, tmp_path / "c", "t", "u") == {"guest1"}
        assert who_answered(engine, tmp_path / "d", "v", other="1") == {"guest2"}
        assert guest.process.poll() is not None  # the engine has one guest at a time
        assert who_answered(engine, tmp_path / "e", "w") == {"guest3"}
        ((_, guest),) = engine.idle
    assert guest.process.poll() is not None and not engine.idle
    assert not list(tmp_path.glob("?/guest*"))


def test_a_guest_without_trials_is_stopped_before_its_last_one_is_judged(tmp_path: Path) -> None:
    """Waiting is a busy loop in virtual time, and would take a processor from the judge."""
    engine = keeping(tmp_path)
    with engine.keeping_guests():
        trials = [{**TRIAL, "id": str(number)} for number in range(3)]
        seen = engine.run(trials, {}, tmp_path / "a")
        assert [next(seen).trial_id for _ in trials] == ["0", "1", "2"]
        assert engine.idle


def test_an_observation_before_an_early_end_of_a_run_is_not_lost(tmp_path: Path) -> None:
    """The guest writes more observations at once than are judged between two looks, and ends."""
    names = [str(number) for number in range(AT_ONCE + 5)]
    lines = [f'{{"trial": "{name}", "skipped": "."}}' for name in names]
    lines.append('{"stage": "cannot", "reason": "of this"}')
    quoted = " ".join(f"'{line}'" for line in lines)
    engine = keeping(tmp_path, f"printf '%s\\n' {quoted} >> observations.jsonl; exit")

    trials = [{**TRIAL, "id": name} for name in (*names, "last")]
    seen: list[str] = []
    with pytest.raises(EngineCannot, match="of this"):
        for observation in engine.run(trials, {}, tmp_path / "a"):
            seen.append(observation.trial_id)
    assert seen == names


def test_trials_for_a_kept_guest_that_was_killed_go_to_another_one(tmp_path: Path) -> None:
    engine = keeping(tmp_path)
    with engine.keeping_guests():
        assert who_answered(engine, tmp_path / "a", "t") == {"guest0"}
        ((_, guest),) = engine.idle
        assert guest.paused
        os.kill(guest.paused, signal.SIGKILL)
        assert who_answered(engine, tmp_path / "b", "u") == {"guest1"}


def test_trials_that_a_kept_guest_did_not_take_go_to_another_one(tmp_path: Path) -> None:
    """It had ended by itself when they came, since it waits for a limited time (MOST_LOOKS)."""
    engine = keeping(tmp_path, "[ $number = 1 ] || {"
                     """ echo '{"stage": "done"}' >> observations.jsonl; exit 0; }""")
    with engine.keeping_guests():
        assert who_answered(engine, tmp_path / "a", "t") == {"guest0"}
        assert who_answered(engine, tmp_path / "b", "u", "v") == {"guest1"}


@pytest.mark.parametrize("planted", ["trials-aside", "trials2.jsonl"])
def test_a_link_in_the_place_of_more_trials_is_not_followed(
        tmp_path: Path, planted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A guest that is not confined has made the link, which leads out of the guest's folder."""
    monkeypatch.setattr(uml.confine, "lacking", lambda: "Landlock")
    # The guest may read its own link before it is paused, and then misses the trials.
    monkeypatch.setattr(guests, "TRIAL_DEADLINE_S", 1.0)
    engine, outside = keeping(tmp_path, f"ln -sf ../../outside {planted}"), tmp_path / "outside"
    outside.write_text("mine")
    with engine.keeping_guests():
        assert who_answered(engine, tmp_path / "a", "t") == {"guest0"}
        ((_, guest),) = engine.idle
        guest.trial_deadline_s = 1.0  # it may read the link as trials, and wait for those after it
        (seen,) = engine.run([{**TRIAL, "id": "u"}], {}, tmp_path / "b")
    assert seen.trial_id == "u"  # whatever that guest makes of it
    assert outside.read_text() == "mine"


def test_a_page_that_computes_for_ever_is_named_and_the_next_trial_runs(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line is about the page, since the guest's console shows nothing that a user knows."""
    monkeypatch.setattr(guests, "BROWSED_DEADLINE_S", 1.0)
    engine = keeping(tmp_path, """case "$line" in *spins*) sleep 999 ;; esac""")
    trials = [{**TRIAL, "kind": BROWSED_PAGE, "id": name} for name in ("one", "spins", "two")]
    seen = {observed.trial_id: observed.content
            for observed in engine.run(trials, {}, tmp_path / "a")}
    assert seen["spins"]["error"].startswith("the page computes for ever: its browser had")
    assert {Path(seen[name]["skipped"]).name for name in ("one", "two")} == {"guest0", "guest1"}
