"""Batches for many machines: what goes out comes back the same, and no other rows are taken."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from firstflight.base.errors import FirstFlightError
from firstflight.runs import batches
from firstflight.runs.batches import TrialBatch
from firstflight.runs.cluster.cluster import ManyMachines
from firstflight.runs.kinds import Study
from firstflight.runs.measuring import JudgedTrial, OneMachine
from firstflight.runs.results.records import RowWriter, columns_of, trial_class
from firstflight.runs.scenario_file import Head
from firstflight.study import registry
from firstflight.testbed.job import shared_out
from tests.unit.core import example
from tests.unit.core.example import Record, Trial, whole
from tests.unit.core.example_run import Engine


class Networked(Trial):
    def job(self) -> dict[str, Any]:
        return {"id": self.id, "network": {"rtt_ms": self.rtt_ms}}


class Rows(Record):
    trial: Networked


def judge(trial: Any, seen: Any, exact: bool, sysctls: Any, known_kernel: bool = True) -> Any:
    """With its trial."""
    assert sysctls == SYSCTLS or "error" in seen.content
    if "error" in seen.content:
        return Rows(trial, False, seen.content["error"]), {}
    return Rows(trial, True, verdict="pass", total_ms=trial.rtt_ms * 3), {
        "a.csv": b"\0\xff", "known": str(known_kernel).encode()}


# The example, each trial a second.
SYSCTLS = {"net.ipv4.tcp_sack": "0"}
KIND = example.changed(example.KIND, record=Rows, judge=judge, all_captures=False)


def study(count: int = 5) -> Any:
    return Study(KIND, example.Scenario(Head("t", "s", "small", "A claim.", "# A claim.", SYSCTLS)),
                 tuple(Networked("small", rtt_ms / 7, 1) for rtt_ms in range(1, count + 1)), True)


def kind_of(name: str) -> Any:
    """The kind of a name, the example for kind fetches (firstflight.study.registry.kind)."""
    return KIND if name == "fetches" else registry.kind(name)


def measured(batch: TrialBatch, folder: Path) -> bytes:
    return batches.measure(batch.payload(), Engine(9), kind_of, {"cpus": 2}, folder)


def batch(count: int = 5) -> TrialBatch:
    requested = study(count)
    return TrialBatch(requested, requested.trials, [requested.trials[0].id])


class Cluster:
    """Two machines of this process's, the second one in turn; it answers at once."""

    build, guests = "7.2", 2

    def __init__(self, folder: Path, spoil: Callable[[bytes], bytes] = bytes) -> None:
        self.folder, self.spoil = folder, spoil
        self.facts = {"address": "here"}

    def results(self, payloads: Sequence[bytes]) -> Iterator[tuple[str, bytes]]:
        for number, payload in enumerate(payloads):
            yield f"machine{number % 2}", self.spoil(
                batches.measure(payload, Engine(9), kind_of, {"cpus": 2}, self.folder))


def test_many_machines_give_what_one_gives(tmp_path: Path) -> None:
    requested = study(40)
    captured = {requested.trials[3].id, requested.trials[30].id}
    many = ManyMachines(Cluster(tmp_path), {"kernel_known": True, "kernel_source": "97a3"})
    found = list(many.judged(requested, requested.trials, captured, tmp_path))
    one = list(OneMachine(Engine(9)).judged(requested, requested.trials, captured, tmp_path))
    writer = RowWriter(Rows, columns_of(Rows))  # as they go into the file
    assert [writer.row(each.record) for each in found] == [
        writer.row(each.record) for each in one]
    assert [dict(each.files) for each in found] == [dict(each.files) for each in one]
    assert [each.captures.get("client") for each in found] == [
        each.captures.get("client") for each in one]
    assert [bool(each.captures) for each in found].count(True) == 2
    assert sum(each.emulated_s for each in found) == 40
    assert many.facts["kernel"] == "7.2" and many.facts["kernel_source"] == "97a3"
    assert many.facts["cluster"]["address"] == "here"
    assert many.facts["cluster"]["machines"] == {
        name: {"trials": 20, "cpus": 2} for name in ("machine0", "machine1")}
    assert (many.name, many.build, many.jobs, many.exact) == ("uml", "7.2", 2, True)
    assert many.doing == "2 guests on 2 machines"


@pytest.mark.parametrize("known", [True, False])
def test_who_judges_knows_whether_the_model_knows_the_kernel(known: bool, tmp_path: Path) -> None:
    """Here, and on the machines of a cluster, which have the kernel and not its origin."""
    requested = study(3)
    here = OneMachine(Engine(9, known_kernel=known))
    many = ManyMachines(Cluster(tmp_path), {"kernel_known": known})
    for measurer in (here, many):
        judged = measurer.judged(requested, requested.trials, set(), tmp_path)
        assert {each.files["known"] for each in judged} == {str(known).encode()}


def test_rows_that_are_not_the_batch_s_end_the_run(tmp_path: Path) -> None:
    """With a line that names the machine."""
    requested = study(3)
    many = ManyMachines(Cluster(tmp_path, lambda result: result[:-9]), {"kernel_known": True})
    with pytest.raises(FirstFlightError, match="machine0 sent a wrong result of its batch: "):
        list(many.judged(requested, requested.trials, set(), tmp_path))


# What is no result of the batch ------------------------------------------------------

Parts = list[Any]  # a result's lines as values, and between them the bytes that they announce


def parts(content: bytes) -> Parts:
    """Of a result of the example: the machine's facts, then each trial's line and its files."""
    stream = io.BytesIO(gzip.decompress(content))
    found: Parts = [json.loads(stream.readline())]
    while line := stream.readline():
        found.append(json.loads(line))
        sizes = {**found[-1]["captures"], **found[-1]["files"]}
        found.append(stream.read(sum(sizes.values())))
    return found


def changed(content: bytes, change: Callable[[Parts], Any]) -> bytes:
    found = parts(content)
    change(found)
    return gzip.compress(b"".join(part if isinstance(part, bytes) else
                                  json.dumps(part).encode() + b"\n" for part in found))


# Of each a change of the parts: 0 is the machine's line, 1 the first trial's, 2 its bytes.
CHANGED: dict[str, Callable[[Parts], Any]] = {
    "a trial less": lambda parts: parts.__delitem__(slice(-2, None)),
    "a trial more": lambda parts: parts.extend(parts[1:3]),
    "others' places": lambda parts: parts.__setitem__(slice(1, 5), parts[3:5] + parts[1:3]),
    "a field less": lambda parts: parts[1]["row"].pop(),
    "no row": lambda parts: parts[1].pop("row"),
    "fewer bytes than announced": lambda parts: parts.__setitem__(-1, parts[-1][:-1]),
    "another RTT": lambda parts: parts[5]["row"].__setitem__(1, "12.5"),
    "not a number": lambda parts: parts[5]["row"].__setitem__(1, "nan"),
}
DAMAGED = {
    "cut short": lambda content: content[:-30], "no end": lambda content: content[:-3],
    "no gzip": lambda content: b"x" + content, "nothing": lambda content: b"",
    "a changed byte": lambda content: content[:60] + bytes([content[60] ^ 255]) + content[61:],
}


@pytest.mark.parametrize("how", [*CHANGED, *DAMAGED])
def test_bytes_that_are_no_result_are_refused(how: str, tmp_path: Path) -> None:
    requested = batch()
    content = measured(requested, tmp_path)
    assert len(requested.read(content)[0]) == 5
    with pytest.raises(ValueError):
        requested.read(changed(content, CHANGED[how]) if how in CHANGED
                       else DAMAGED[how](content))


def test_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    value = json.loads(gzip.decompress(batch().payload()))
    payload = gzip.compress(json.dumps({**value, "kind": "os.system"}).encode())
    with pytest.raises(ValueError, match="no kind 'os.system'"):
        batches.measure(payload, Engine(9), kind_of, {}, tmp_path)


# How trials are dealt ----------------------------------------------------------------

@pytest.mark.parametrize(("count", "guests", "sizes"), [
    (40, 2, [5] * 8), (1, 4, [1]), (600, 2, [25] * 24), (7, 2, [2, 2, 2, 1])])
def test_batches_are_of_one_length_and_each_guest_gets_as_many(
        count: int, guests: int, sizes: list[int]) -> None:
    requested = study(count)
    made = list(batches.deal_batches(requested, requested.trials, {requested.trials[0].id}, guests))
    assert [len(each.trials) for each in made] == sizes
    assert [trial for each in made for trial in each.trials] == list(requested.trials)
    assert [len(each.captured) for each in made] == [1] + [0] * (len(made) - 1)


@pytest.mark.parametrize("name", ["zhao2019", "handley1999_idle", "ietf78_fairness"])
def test_the_order_is_that_of_one_guest(name: str) -> None:
    trials = whole(name).trials
    dealt = [job["id"] for hand in shared_out([trial.job() for trial in trials], 1)
             for job in hand]
    assert [trial.id for trial in batches.order_by_network(trials)] == dealt


@pytest.mark.parametrize("name", ["zhao2019", "handley1999_memory", "ietf78_losses"])
def test_a_trial_arrives_as_it_was_asked(name: str) -> None:
    requested = whole(name)
    kind = trial_class(requested.kind.record)
    for trial in requested.trials:
        told = json.loads(json.dumps(batches.named_values(trial)))
        assert kind(**told) == trial
    # What has its default is not sent.
    assert batches.named_values(Trial("small", 20.0, 1)) == {"scenario": "small", "rtt_ms": 20.0,
                                                      "repeat": 1}


def test_packets_come_back_as_they_were(tmp_path: Path) -> None:
    requested = batch()
    content = measured(requested, tmp_path)
    assert parts(content)[1]["captures"]["client"] == 9 and parts(content)[2][:9] == b"p" * 9
    judged: list[JudgedTrial] = requested.read(content)[0]
    assert judged[0].captures["client"] == b"p" * 9 and not judged[1].captures
