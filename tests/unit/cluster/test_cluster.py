"""Batches to a cluster that answers at once, late, wrongly, or not at all."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engines.cluster import cluster as module
from engines.cluster.cluster import AHEAD, ATTEMPTS, Cluster, opened
from engines.cluster.link import SchedulerLink as RealLink
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
        self.cancelled, self.status, self.key = False, "pending", str(id(self))

    def done(self) -> bool:
        return False

    def result(self) -> bytes:
        self.link.waiting -= 1
        self.status = "cancelled" if self.link.lost else "error"
        if self.link.lost:
            raise CancelledError
        found = self.link.answer(self.worker, self.batch)
        self.status = "finished"
        return found

    def cancel(self) -> None:
        self.cancelled = True
        if self.link.lost:  # as Dask's client without a scheduler
            raise AttributeError("'NoneType' object has no attribute 'cancel'")


class Link:
    """Two workers, taken in turn."""

    address, version, build = "tls://somewhere:8786", "1", "7.2"
    withdraw, count = RealLink.withdraw, RealLink.count

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.names, self.refused = ["one", "two"], {}
        self.waiting = self.most = self.found = self.dropped = 0
        self.lost, self.late, self.began = False, 0, 1
        self.states = dict.fromkeys(self.names, "running")
        self.with_whom: dict[str, str] = {}
        self.sent: list[Future] = []
        self.told: list[str] = []
        self.notify = self.told.append
        self.back: Callable[[], None] = lambda: None

        self.guests = 2

    def workers(self) -> dict[str, Any]:
        return {name: {"nthreads": 1, "status": self.states[name]} for name in self.names}

    def wait(self, future: Future, seconds: float) -> bool:
        """Nothing is done for a while."""
        self.late -= 1
        return self.late < 0

    def received(self, future: Future) -> bytes:
        return future.result()

    def holders(self, future: Future) -> list[str]:
        return [future.worker]

    def begun(self, future: Future) -> int:
        return self.began

    def held(self) -> set[str]:
        return {each.key for each in self.sent if each.worker in self.refused}

    def submit(self, batch: bytes, avoid: Any, urgent: bool,
               attempts: int) -> tuple[Future, frozenset[str]]:
        assert 0 < attempts <= ATTEMPTS
        able = [name for name in self.names if name not in self.refused]
        able = [name for name in able if name not in avoid] or able
        self.sent.append(Future(self, able[len(self.sent) % len(able)], batch))
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        return self.sent[-1], frozenset(able if avoid or self.refused else ())

    def refuse(self, worker: str, machine: str, why: str) -> None:
        self.refused[worker] = why
        self.guests = len(self.names) - len(self.refused)
        if not self.guests:
            raise EngineCannot(f"{machine}: {why}")

    def drop(self) -> None:
        self.dropped += 1

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
    assert found == list(range(20)) and link.found == link.dropped == 3
    assert link.told == [f"the scheduler at {link.address} is lost; it is looked for, for 300 s"
                         " at most"]
    assert len(link.sent) == 20 + AHEAD * 2


@pytest.mark.parametrize("again", ["submit", "workers"])
def test_a_scheduler_that_is_lost_while_it_is_asked_is_looked_for(
        again: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it is given something, and once more right after it was found."""
    made, link = cluster(lambda worker, batch: answer(OK, worker, batch))
    monkeypatch.setattr(module.time, "sleep", lambda seconds: None)
    closed = {"submit": [3, 4] if again == "submit" else [3], "workers": [0]}
    for name in {"submit", again}:
        monkeypatch.setattr(link, name, closing(getattr(link, name), closed[name]))
    assert [each for _, each in results(made)] == list(range(20))
    assert link.found == 2 and len(link.told) == 1


def closing(ask: Callable[..., Any], closed: list[int]) -> Callable[..., Any]:
    """A question to a scheduler that is gone at these, as Dask says it (CommClosedError)."""
    number = iter(range(1000))

    def requested(*words: Any, **more: Any) -> Any:
        if next(number) in closed:
            raise OSError("in <TLS>: Stream is closed")
        return ask(*words, **more)
    return requested


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
    link.names, link.guests, closed = [], 0, []
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
    ("tcp://[::1]:8786", False), ("tcp://10.0.0.1:8786", True), ("local:1", False)])
def test_addresses(address: str, insecure: bool) -> None:
    assert checked(address, insecure) == address


@pytest.mark.parametrize(("address", "why"), [
    ("tcp://10.0.0.1:8786", "--cluster-insecure"), ("tcp://127.0.0.1.example.org:1", "insecure"),
    ("http://10.0.0.1", "takes tls://"), ("10.0.0.1:8786", "takes tls://"),
    ("local:0", "number of workers"), ("local:many", "number of workers"),
    ("local:65", "at most local:64"), ("local:5000", "at most local:64"),
    ("local:" + "9" * 5000, "at most local:64"), ("local:²", "number of workers"), ("", "takes tls://"),
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


# Workers that come and go ------------------------------------------------------------

def passing(monkeypatch: pytest.MonkeyPatch, step_s: float) -> None:
    """A clock that goes on by so much whenever it is read."""
    clock = count(0.0, step_s)
    monkeypatch.setattr(module.time, "monotonic", lambda: next(clock))


def test_a_task_that_waits_for_a_worker_that_is_gone_goes_to_another(
        monkeypatch: pytest.MonkeyPatch) -> None:
    """It had failed on the one, was kept for the other, and that one died."""
    passing(monkeypatch, 4.0)
    statuses = iter((FAILED, OK))
    made, link = cluster(lambda worker, batch: answer(next(statuses), worker, batch))

    def wait(future: Future, seconds: float) -> bool:
        if future.worker == "two":
            link.names = ["one"]
        return future.worker == "one"

    link.wait = wait  # type: ignore[method-assign]
    assert [found for _, found in results(made, 1)] == [0]
    kept = [future for future in link.sent if future.worker == "two"]
    assert kept and all(future.cancelled for future in kept)
    assert link.told == ["no answer from the worker at two; what it was given is measured by"
                         " another one"]
    assert link.guests == 1


def test_a_worker_that_dask_holds_back_is_left_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    passing(monkeypatch, 4.0)
    made, link = cluster(lambda worker, batch: answer(OK, worker, batch))
    link.states["one"], link.late = "paused", 60
    assert {machine for machine, _ in results(made)} == {"host of two"}
    assert "--memory-limit" in link.refused["one"]
    assert all(future.cancelled for future in link.sent if future.worker == "one")


def test_attempts_count_also_where_all_that_might_have_it_die(
        monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch kills each worker that it is kept for; nannies start others, elsewhere."""
    passing(monkeypatch, 4.0)
    made, link = cluster(lambda worker, batch: answer(FAILED, worker, batch))

    def wait(future: Future, seconds: float) -> bool:
        if len(link.sent) > 1:
            link.names = [f"{name}'" for name in link.names]
            link.states = dict.fromkeys(link.names, "running")
        return len(link.sent) == 1

    link.wait = wait  # type: ignore[method-assign]
    assert [found for _, found in results(made, 1)] == [
        f"0 failed: 3 workers failed: {module.DIED}"]
    assert len(link.sent) == ATTEMPTS


def test_where_no_worker_is_left_one_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    passing(monkeypatch, 20.0)
    made, link = cluster(lambda worker, batch: answer(OK, worker, batch))

    def wait(future: Future, seconds: float) -> bool:
        link.names = []
        return False

    link.wait = wait  # type: ignore[method-assign]
    with pytest.raises(EngineError, match="has no worker any more"):
        list(results(made))
    assert link.told == ["no answer from the worker at one, two; it was the last one: another one"
                         " is waited for, for 300 s at most"]


def test_workers_that_die_again_and_again_without_a_result_end_the_run(
        monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask's nannies start them anew, each time at another address."""
    passing(monkeypatch, 4.0)
    made, link = cluster(lambda worker, batch: answer(OK, worker, batch))

    def wait(future: Future, seconds: float) -> bool:
        link.names = [f"{name}'" for name in link.names]
        link.states = dict.fromkeys(link.names, "running")
        return False

    link.wait = wait  # type: ignore[method-assign]
    with pytest.raises(EngineError, match="die before they measure; start them with more memory"):
        list(results(made))


class KilledWorker(Exception):
    """As Dask's."""


@pytest.mark.parametrize(("began", "deaths"), [(4, 1), (1, 3), (0, ATTEMPTS - 1)])
def test_dask_blames_what_only_waited_where_a_worker_died(began: int, deaths: int) -> None:
    """Only where a task was begun is its worker's death its own."""
    left = {b"3": deaths}

    def killed(worker: str, batch: bytes) -> bytes:
        if left.get(batch):
            left[batch] -= 1
            raise KilledWorker
        return answer(OK, worker, batch)

    made, link = cluster(killed)
    link.began = began
    found = [each for _, each in results(made)]
    assert found[4:] == list(range(4, 20)) and not left[b"3"]
    assert found[3] == (f"3 failed: {max(began, 3)} workers failed: the workers that measured it"
                        " died (of too little memory?)" if began else 3)


def test_workers_that_die_before_they_measure_end_the_run() -> None:
    def killed(worker: str, batch: bytes) -> bytes:
        raise KilledWorker

    made, link = cluster(killed)
    link.began = 0
    with pytest.raises(EngineError, match="die before they measure; start them with more memory"):
        list(results(made))


@pytest.mark.parametrize(("body", "expected"), [
    (b"<title>Dask Diagnostic UI</title>", True), (b"<p>Dask needs bokeh >= 2.4.2", False)])
def test_dask_s_page_is_named_only_where_there_is_one(body: bytes, expected: bool) -> None:
    """As Dask 2022.12 answers with bokeh, and without."""
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    link = object.__new__(RealLink)
    with HTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/status"
        link.client = SimpleNamespace(dashboard_link=address)
        assert link.page() == (address if expected else "")
    assert link.page() == ""  # nobody answers any more
