"""Many machines: trials in batches, judged where they are measured, and their rows sent back.

A batch and its result are JSON, compressed: nothing in them is executed by who
reads it. How a batch gets to a machine is a cluster's matter (engines/cluster);
what a machine does with it is commands/batch.py's.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol, TypeVar

from hosts.untrusted import (any_text, by_name, items, matching, maybe, number, quoted, read, table,
                             text, whole, yes_or_no)
from lab.core.results.records import RowReader, RowWriter, columns_of, trial_class
from lab.core.run.kinds import Kind, Study
from lab.core.run.measuring import Engine, JudgedTrial, judge

# Wall seconds of one batch, roughly: beside them booting a guest is little, and no more than
# these are lost when a machine dies.
BATCH_S = 25.0
SHORTEST_S = 2.0
SHARES = 4  # batches for each guest, at least, so that all end at about the same time
MOST_BYTES = 1 << 28  # of a result, unpacked: a machine that sends more is at fault

# What a machine may send, as `measured` makes it; each value of a row is checked by its column.
_word = text(300)
_walls = table({}, {"landlock_abi": whole(), "system_calls": _word, "namespaces": items(_word, 10)})


def _confined(value: Any, where: str) -> Any:
    """The walls of a guest (engines.uml.walls), or false for none."""
    return _walls(value, where) if isinstance(value, dict) else yes_or_no(value, where)


# Which kernel it is, the one who sent it knows.
_of_engine = {"confined": _confined, "kernel": _word, "systems": by_name(by_name(_word, 100), 10),
              "sysctls": by_name(by_name(text(1000), 1000), 1000)}
_facts = table({}, {
    **_of_engine,
    "machine": table({}, {"kernel": _word, "processor": _word, "cpus": maybe(whole()),
                          "system": _word})})
_contents = by_name(matching(r"[A-Za-z0-9+/=]*"), 10_000, matching(r"\w[\w.-]{0,200}"))
RESULT = table({"facts": _facts, "trials": items(table({
    "row": items(any_text(1 << 16), 1000), "captures": _contents, "files": _contents,
    "emulated_s": number}), 1 << 20)})

T = TypeVar("T")
U = TypeVar("U")


class MachinePool(Protocol):
    """What is needed of many machines (such as engines.cluster.cluster.Cluster)."""

    build: str

    @property
    def guests(self) -> int: ...

    @property
    def facts(self) -> dict[str, Any]: ...

    @property
    def doing(self) -> str: ...

    def results(self, tasks: Iterable[T], payload: Callable[[T], bytes],
                read: Callable[[T, bytes], U],
                failed: Callable[[T, str], U]) -> Iterator[tuple[str, U]]:
        """Of each task the machine that did it and what `read` makes of its result, in order.

        read raises ValueError where a result is none: the task goes to another machine.
        failed: in place of a task that none has done.
        """
        ...


@dataclass(frozen=True)
class TrialBatch:
    """Trials that one guest measures one after another; captured: whose packets are wanted."""

    study: Study
    trials: Sequence[Any]
    captured: Sequence[str]
    known_kernel: bool = True

    def payload(self) -> bytes:
        """As a machine reads it (measured)."""
        return packed({"kind": self.study.head.kind, "sysctls": self.study.head.sysctls,
                       "captured": self.captured, "known_kernel": self.known_kernel,
                       "trials": list(map(given, self.trials))})

    def read(self, content: bytes) -> tuple[list[JudgedTrial], dict[str, Any]]:
        """What a machine made of it, and what its kernel reported of itself.

        Raises ValueError where that is not a result of these trials.
        """
        result = read(inflated(content), RESULT, MOST_BYTES)
        if len(result["trials"]) != len(self.trials):
            raise ValueError(f"it has {len(result['trials'])} trials of {len(self.trials)}")
        try:
            reader = RowReader(self.study.kind.record, columns_of(self.study.kind.record))
            judged = [self._judged(trial, reader, reply)
                      for trial, reply in zip(self.trials, result["trials"])]
        except (LookupError, TypeError, AttributeError, ArithmeticError) as error:
            raise ValueError(f"it is no result: {quoted(repr(error))}") from error
        return judged, result["facts"]

    def _judged(self, trial: Any, reader: RowReader, reply: Mapping[str, Any]) -> JudgedTrial:
        record = reader.record(reply["row"])
        if record.trial != trial:
            raise ValueError(f"it has another trial than {trial.id}")
        captures, files = (
            {name: base64.b64decode(content, validate=True)
             for name, content in reply[what].items()} for what in ("captures", "files"))
        return JudgedTrial(record, captures, files, reply["emulated_s"])

    def failed(self, why: str) -> tuple[list[JudgedTrial], dict[str, Any]]:
        """In place of a result that no machine could give."""
        return [judge(self.study.kind, trial, _Failed(trial.id, {"error": why}), True, {}, False,
                      self.known_kernel)
                for trial in self.trials], {}


@dataclass(frozen=True)
class _Failed:
    """The observation of a trial that no machine measured (lab.core.run.kinds.ObservedTrial)."""

    trial_id: str
    content: dict[str, Any]
    client_pcap: bytes = b""
    server_pcap: bytes = b""
    files: dict[str, bytes] = field(default_factory=dict)


class ManyMachines:
    """A cluster, as measuring sees it (lab.core.run.measuring.Measurer).

    Its name is that of the engine that each machine runs: a run that was begun
    on one machine is resumed on many, and the other way round.
    """

    name, exact = "uml", True

    def __init__(self, cluster: MachinePool, kernel: Mapping[str, Any]) -> None:
        """kernel: what run.json has of the source of its kernel (engines.uml.made_from)."""
        self.cluster, self.build, self.jobs = cluster, cluster.build, cluster.guests
        self.kernel = kernel
        self.reported: dict[str, Any] = {}
        self.machines: dict[str, dict[str, Any]] = {}

    @property
    def facts(self) -> dict[str, Any]:
        return {**self.reported, **self.kernel,
                "cluster": {**self.cluster.facts, "machines": self.machines}}

    @property
    def doing(self) -> str:
        return self.cluster.doing

    def judged(self, study: Study, trials: Sequence[Any], captured: set[str],
               folder: Path) -> Iterator[JudgedTrial]:
        """In the order in which one guest would measure them all."""
        tasks = batches(study, trials, captured, self.jobs, self.kernel["kernel_known"])
        for name, (judged, facts) in self.cluster.results(
                tasks, TrialBatch.payload, TrialBatch.read, TrialBatch.failed):
            machine = self.machines.setdefault(name, {"trials": 0})
            machine.update(facts.pop("machine", {}))
            machine["trials"] += len(judged)
            if self.reported.get("confined") is False:  # of any machine
                facts.pop("confined", None)
            self.reported.update(facts)
            yield from judged


def batches(study: Study, trials: Sequence[Any], captured: set[str],
            guests: int, known_kernel: bool = True) -> Iterator[TrialBatch]:
    """The trials in batches of about one length, those of one network together."""
    whole_s = sum(map(study.kind.guest_s, trials))
    longest_s = min(BATCH_S, max(SHORTEST_S, whole_s / guests / SHARES))
    rounds = math.ceil(whole_s / longest_s / guests)  # each guest gets so many: all end together
    longest_s = whole_s / rounds / guests
    hand: list[Any] = []
    hand_s = 0.0
    for trial in by_network(trials):
        hand.append(trial)
        hand_s += study.kind.guest_s(trial)
        if hand_s >= longest_s:
            yield TrialBatch(study, hand, [trial.id for trial in hand if trial.id in captured],
                             known_kernel)
            hand, hand_s = [], 0.0
    if hand:
        yield TrialBatch(study, hand, [trial.id for trial in hand if trial.id in captured],
                         known_kernel)


def by_network(trials: Sequence[Any]) -> list[Any]:
    """The trials in the order in which one guest is given them (engines.job.shared_out)."""
    shapes: dict[str, list[Any]] = {}
    for trial in trials:
        job = trial.job()
        if job.get("alone"):
            return list(trials)
        shapes.setdefault(json.dumps(job["shape"], sort_keys=True), []).append(trial)
    return [trial for group in shapes.values() for trial in group]


def given(trial: Any) -> dict[str, Any]:
    """A trial by the names of its fields, without those that have their default."""
    return {field.name: value for field in fields(trial)
            if (value := getattr(trial, field.name)) != field.default}


# On the machine that measures --------------------------------------------------------

def measured(content: bytes, engine: Engine, kind_of: Callable[[str], Kind],
             machine: Mapping[str, Any], folder: Path) -> bytes:
    """The result of a batch, by an engine of this machine's.

    machine: what this one is (lab.core.results.provenance).

    folder: for the engine's own files. Raises ValueError where `content` is no
    batch, and what the engine raises.
    """
    requested = unpacked(content)
    kind = kind_of(requested["kind"])
    trial = trial_class(kind.record)
    waiting = {parsed.id: parsed for parsed in (trial(**values) for values in requested["trials"])}
    order, captured, replies = list(waiting), set(requested["captured"]), {}
    writer = RowWriter(kind.record, columns_of(kind.record))
    jobs = [trial.job() for trial in waiting.values()]
    for observed in engine.run(jobs, requested["sysctls"], folder):
        trial_id = observed.trial_id
        replies[trial_id] = _sent(judge(kind, waiting.pop(trial_id), observed, engine.exact,
                                        requested["sysctls"], trial_id in captured,
                                        bool(requested["known_kernel"])), writer)
    facts = {name: value for name, value in engine.facts.items() if name in _of_engine}
    return packed({"facts": {**facts, "machine": dict(machine)},
                   "trials": [replies[trial_id] for trial_id in order]})


def _sent(judged: JudgedTrial, writer: RowWriter) -> dict[str, Any]:
    """As Batch._judged reads it."""
    captures, files = ({name: base64.b64encode(content).decode()
                        for name, content in contents.items()}
                       for contents in (judged.captures, judged.files))
    return {"row": writer.row(judged.record), "captures": captures, "files": files,
            "emulated_s": judged.emulated_s}


# As bytes ----------------------------------------------------------------------------

def packed(value: Any) -> bytes:
    return zlib.compress(json.dumps(value).encode())


def unpacked(content: bytes) -> Any:
    """The reverse of `packed`, of what is ours. Raises ValueError."""
    return json.loads(inflated(content))


def inflated(content: bytes) -> bytes:
    """Raises ValueError where it is damaged, or larger than MOST_BYTES."""
    reading = zlib.decompressobj()
    try:
        content_whole = reading.decompress(content, MOST_BYTES)
    except zlib.error as error:
        raise ValueError(f"its bytes are damaged: {error}") from error
    if not reading.eof:
        raise ValueError("its bytes end too early, or there are too many")
    return content_whole
