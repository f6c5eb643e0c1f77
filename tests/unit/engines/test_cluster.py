"""Batches to a cluster that answers at once, late, wrongly, or not at all."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import pytest

from engines.cluster import cluster as module
from engines.cluster.cluster import AHEAD, ATTEMPTS, Cluster, opened
from engines.cluster.link import checked, packed
from engines.cluster.node import FAILED, OK, REFUSED
from engines.job import EngineCannot, EngineError

Answer = Callable[[str, bytes], bytes]


def answer(status: str, worker: str, content: bytes) -> bytes:
    head = {"status": status, "worker": worker, "machine": f"host of {worker}"}
    return json.dumps(head).encode() + b"\n" + content


class Future:
    """Answers when it is asked; counts those that are on their way."""

    def __init__(self, link: Link, worker: str, batch: bytes) -> None:
        self.link, self.worker, self.batch = link, worker, batch
        self.cancelled = False

    def result(self) -> bytes:
        self.link.waiting -= 1
        if self.link.lost:
            raise CancelledError
        return self.link.answer(self.worker, self.batch)

    def cancel(self) -> None:
        self.cancelled = True


class Link:
    """Two workers, taken in turn."""

    address, version, build = "tls://somewhere:8786", "1", "7.2"

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.names, self.refused = ["one", "two"], {}
        self.waiting = self.most = self.found = 0
        self.lost = False
        self.sent: list[Future] = []
        self.told: list[str] = []
        self.tell = self.told.append
        self.back: Callable[[], None] = lambda: None

    @property
    def guests(self) -> int:
        return len(self.names) - len(self.refused)

    def submit(self, batch: bytes, avoid: Any, urgent: bool) -> Future:
        able = [name for name in self.names if name not in self.refused]
        able = [name for name in able if name not in avoid] or able
        self.sent.append(Future(self, able[len(self.sent) % len(able)], batch))
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        return self.sent[-1]

    def refuse(self, worker: str, machine: str, why: str) -> None:
        self.refused[worker] = why
        if not self.guests:
            raise EngineCannot(f"{machine}: {why}")

    def drop(self) -> None:
        pass

    def connect(self) -> None:
        self.found += 1
        self.back()


def cluster(answer: Answer) -> tuple[Cluster, Link]:
    link = Link(answer)
    return Cluster(link), link  # type: ignore[arg-type]


def results(of: Cluster, count: int = 20) -> Iterator[tuple[str, Any]]:
    def read(task: int, content: bytes) -> int:
        if content != b"%d" % task:
            raise ValueError(f"it is no result of {task}")
        return task

    return of.results(range(count), lambda task: b"%d" % task, read,
                      lambda task, why: f"{task} failed: {why}")


def test_results_come_in_order_and_few_are_under_way() -> None:
    made, link = cluster(lambda worker, batch: answer(OK, worker, batch))
    assert [found for _, found in results(made)] == list(range(20))
    assert link.most == AHEAD * 2 and len(link.sent) == 20
    assert made.doing == "2 guests on 2 machines"
    assert made.facts == {"address": link.address, "dask": "1", "refused": {}}


@pytest.mark.parametrize("status", [FAILED, OK])
def test_what_fails_on_one_worker_is_measured_by_another(status: str) -> None:
    """FAILED: the worker says so; OK: it sends bytes that are no result."""
    made, link = cluster(lambda worker, batch: answer(
        *(status, worker, b"damage") if worker == "one" else (OK, worker, batch)))
    assert list(results(made)) == [("host of two", task) for task in range(20)]
    assert max(Counter(future.batch for future in link.sent).values()) == 2


def test_after_three_attempts_it_has_failed_and_the_rest_goes_on() -> None:
    made, link = cluster(lambda worker, batch: answer(
        *(FAILED, worker, b"no memory") if batch == b"7" else (OK, worker, batch)))
    found = [each for _, each in results(made)]
    assert found[7] == "7 failed: 3 workers failed: host of two: no memory" or (
        found[7] == "7 failed: 3 workers failed: host of one: no memory")
    assert found[:7] + found[8:] == [task for task in range(20) if task != 7]
    assert Counter(future.batch for future in link.sent)[b"7"] == ATTEMPTS


def test_what_dask_raises_of_a_worker_counts_as_an_attempt() -> None:
    def killed(worker: str, batch: bytes) -> bytes:
        if batch == b"3":
            raise RuntimeError("all those workers died")  # distributed.KilledWorker
        return answer(OK, worker, batch)

    made, _ = cluster(killed)
    found = [each for _, each in results(made)]
    assert found[3] == "3 failed: 3 workers failed: RuntimeError: all those workers died"
    assert found[4:] == list(range(4, 20))


def test_a_machine_that_cannot_gets_nothing_more() -> None:
    made, link = cluster(lambda worker, batch: answer(
        *(REFUSED, worker, b"no curl") if worker == "one" else (OK, worker, batch)))
    assert {machine for machine, _ in results(made)} == {"host of two"}
    assert made.facts["refused"] == {"one": "no curl"}
    assert all(future.worker == "two" for future in link.sent[AHEAD * 2 + AHEAD:])


def test_where_none_can_the_reason_is_told() -> None:
    made, link = cluster(lambda worker, batch: answer(REFUSED, worker, b"no curl"))
    with pytest.raises(EngineCannot, match="no curl"):
        list(results(made))
    assert all(future.cancelled for future in link.sent[-AHEAD:])


def test_after_a_lost_scheduler_all_that_was_under_way_is_sent_again(
        monkeypatch: pytest.MonkeyPatch) -> None:
    made, link = cluster(lambda worker, batch: answer(OK, worker, batch))
    monkeypatch.setattr(module.time, "sleep", lambda seconds: None)

    def back() -> None:
        if link.found < 3:
            raise EngineCannot("no scheduler answers")
        link.lost = False

    link.back = back
    found = []
    for _, each in results(made):
        found.append(each)
        link.lost = each == 4
    assert found == list(range(20)) and link.found == 3
    assert link.told == [f"the scheduler at {link.address} is lost; it is looked for, for 300 s"
                         " at most"]
    assert len(link.sent) == 20 + AHEAD * 2


def test_a_scheduler_that_stays_away_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    made, link = cluster(lambda worker, batch: answer(OK, worker, batch))
    clock = iter(range(0, 10000, 50))
    monkeypatch.setattr(module.time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(module.time, "sleep", lambda seconds: None)

    def back() -> None:
        raise EngineCannot("no scheduler answers at tls://somewhere:8786")

    link.back, link.lost = back, True
    with pytest.raises(EngineError, match="no scheduler answers"):
        list(results(made))


def test_a_cluster_without_workers_is_refused() -> None:
    link = Link(lambda worker, batch: b"")
    link.names, closed = [], []
    link.close = lambda: closed.append(True)  # type: ignore[attr-defined]
    with pytest.raises(EngineCannot, match="has no worker; start one"):
        Cluster(link)  # type: ignore[arg-type]
    assert closed


@pytest.mark.parametrize("content", [b"", b"ok", b"[]\n", b'{"status": "ok"}\nx'])
def test_an_answer_without_a_head_is_none(content: bytes) -> None:
    with pytest.raises(ValueError):
        opened(content)


# Addresses ---------------------------------------------------------------------------

@pytest.mark.parametrize(("address", "insecure"), [
    ("tls://10.0.0.1:8786", False), ("tcp://127.0.0.1:8786", False), ("tcp://localhost:1", False),
    ("tcp://[::1]:8786", False), ("tcp://10.0.0.1:8786", True), ("local:2", False)])
def test_addresses(address: str, insecure: bool) -> None:
    assert checked(address, insecure) == address


@pytest.mark.parametrize(("address", "why"), [
    ("tcp://10.0.0.1:8786", "--cluster-insecure"), ("tcp://127.0.0.1.example.org:1", "insecure"),
    ("http://10.0.0.1", "takes tls://"), ("10.0.0.1:8786", "takes tls://"),
    ("local:0", "number of workers"), ("local:many", "number of workers"), ("", "takes tls://"),
    ("tls://", "takes tls://"), ("nothing.json", "no scheduler file")])
def test_what_is_no_address_or_open_to_everybody_is_refused(address: str, why: str) -> None:
    with pytest.raises(EngineCannot, match=why):
        checked(address, False)


def test_a_scheduler_file_is_held_to_the_same(tmp_path: Path) -> None:
    path = tmp_path / "scheduler.json"
    path.write_text(json.dumps({"address": "tcp://10.0.0.1:8786"}))
    with pytest.raises(EngineCannot, match="--cluster-insecure"):
        checked(str(path), False)
    assert checked(str(path), True) == str(path)
    path.write_text("[]")
    with pytest.raises(EngineCannot, match="is no scheduler file"):
        checked(str(path), True)


def test_the_same_project_is_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "linux").write_bytes(b"kernel")
    assert packed(tmp_path / "linux") == packed(tmp_path / "linux")
