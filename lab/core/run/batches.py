"""Many machines: trials in batches, judged where they are measured, and their rows sent back.

A batch is JSON. A result is a line of JSON for the machine, and for each trial a line and the
packets and files of which the line gives the sizes; both are compressed. What comes back is
counted and checked while it is read, and nothing of it is executed. How a batch gets to a machine
is a cluster's matter (engines/cluster); what a machine does with it is commands/batch.py's.
"""

from __future__ import annotations

import gzip
import io
import json
import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol

from hosts.untrusted import (Schema, any_text, by_name, items, matching, maybe, number, quoted,
                             read, table, text, whole, yes_or_no)
from lab.core.results.observation import Observation
from lab.core.results.records import Record, RowReader, RowWriter, columns_of, trial_class
from lab.core.run.kinds import Kind, Study
from lab.core.run.measuring import Engine, JudgedTrial, judge

# Wall seconds of one batch, roughly: beside them booting a guest is little, and no more than
# these are lost when a machine dies.
BATCH_S = 25.0
SHORTEST_S = 2.0
SHARES = 4  # batches for each guest, at least, so that all end at about the same time

# What a machine may send, as `measured` makes it; each value of a row is checked by its column.
RESULT_BYTES = 1 << 28  # of all, once it is inflated
LINE_BYTES = 1 << 21
_word = text(300)
_walls = table({}, {"landlock_abi": whole(), "system_calls": _word, "namespaces": items(_word, 10)})


def _confined(value: Any, where: str) -> Any:
    """The walls of a guest (engines.uml.walls), or false for none."""
    return _walls(value, where) if isinstance(value, dict) else yes_or_no(value, where)


# Which kernel it is, the one who sent it knows.
_of_engine = {"confined": _confined, "kernel": _word, "systems": by_name(by_name(_word, 100), 10),
              "sysctls": by_name(by_name(text(1000), 1000), 1000)}
FACTS = table({}, {
    **_of_engine,
    "machine": table({}, {"kernel": _word, "processor": _word, "cpus": maybe(whole()),
                          "system": _word})})
_size = whole(0, RESULT_BYTES)
TRIAL = table({"row": items(any_text(1 << 16), 1000), "emulated_s": number,
               "captures": table({}, {"client": _size, "server": _size}),
               "files": by_name(_size, 10_000, matching(r"\w[\w.-]{0,200}"))})

Judged = tuple[list[JudgedTrial], dict[str, Any]]  # and what the machine reported of itself


class MachinePool(Protocol):
    """What is needed of many machines (engines.cluster.cluster.Cluster)."""

    build: str

    @property
    def guests(self) -> int: ...

    @property
    def facts(self) -> dict[str, Any]: ...

    @property
    def doing(self) -> str: ...

    def results(self, batches: Iterable[TrialBatch]) -> Iterator[tuple[str, Judged]]:
        """Of each batch the machine that measured it and its result, in order."""
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
        return gzip.compress(json.dumps({
            "kind": self.study.head.kind, "sysctls": self.study.head.sysctls,
            "captured": self.captured, "known_kernel": self.known_kernel,
            "trials": list(map(given, self.trials))}).encode())

    def read(self, answer: bytes) -> Judged:
        """What a machine made of it.

        Raises ValueError where that is not a result of these trials.
        """
        result = Incoming(answer)
        try:
            facts = result.line(FACTS)
            rows = RowReader(self.study.kind.record, columns_of(self.study.kind.record))
            judged = [self._judged(trial, rows, result) for trial in self.trials]
        except (LookupError, TypeError, AttributeError, ArithmeticError) as error:
            raise ValueError(f"it is no result: {quoted(repr(error))}") from error
        result.end()
        return judged, facts

    def _judged(self, trial: Any, rows: RowReader[Record], result: Incoming) -> JudgedTrial:
        reply = result.line(TRIAL)
        record = rows.record(reply["row"])
        if record.trial != trial:
            raise ValueError(f"it has another trial than {trial.id}")
        captures, files = ({name: result.take(size) for name, size in reply[what].items()}
                           for what in ("captures", "files"))
        return JudgedTrial(record, captures, files, reply["emulated_s"])

    def failed(self, why: str) -> Judged:
        """In place of a result that no machine could give."""
        return [judge(self.study.kind, trial, _Failed(trial.id, {"error": why}), True, {}, False,
                      self.known_kernel)
                for trial in self.trials], {}


class Incoming:
    """A result as it is inflated piece by piece: what was read is counted, and not held."""

    def __init__(self, answer: bytes) -> None:
        self.stream = gzip.GzipFile(fileobj=io.BytesIO(answer))
        self.left = RESULT_BYTES

    def line(self, schema: Schema) -> dict[str, Any]:
        """The values of a line. Raises ValueError."""
        line = self._read(self.stream.readline, LINE_BYTES + 1)
        self.left -= len(line)
        values: dict[str, Any] = read(line, schema, min(LINE_BYTES, self.left))
        return values

    def take(self, size: int) -> bytes:
        """So many bytes. Raises ValueError where there are fewer, or they are too many."""
        self.left -= size
        if self.left < 0:
            raise ValueError(f"it has more than {RESULT_BYTES} bytes")
        content = self._read(self.stream.read, size)
        if len(content) != size:
            raise ValueError("its bytes end too early")
        return content

    def end(self) -> None:
        """Raises ValueError where there is more."""
        if self._read(self.stream.read, 1):
            raise ValueError("it has more than its trials")

    def _read(self, part: Callable[[int], bytes], most: int) -> bytes:
        try:
            return part(most)
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"its bytes are damaged: {error}") from error


@dataclass(frozen=True)
class _Failed:
    """The observation of a trial that no machine measured (lab.core.run.kinds.ObservedTrial)."""

    trial_id: str
    content: Observation
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
        for name, (judged, facts) in self.cluster.results(tasks):
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
    ordered = by_network(trials)
    for place, trial in enumerate(ordered, start=1):
        hand.append(trial)
        hand_s += study.kind.guest_s(trial)
        if hand_s >= longest_s or place == len(ordered):
            yield TrialBatch(study, hand, [trial.id for trial in hand if trial.id in captured],
                             known_kernel)
            hand, hand_s = [], 0.0


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

def measured(payload: bytes, engine: Engine, kind_of: Callable[[str], Kind],
             machine: Mapping[str, Any], folder: Path) -> bytes:
    """The result of a batch, by an engine of this machine's (TrialBatch.read).

    machine: what this one is (lab.core.results.provenance). folder: for the engine's own
    files. Raises ValueError where the payload is no batch, and what the engine raises.
    """
    try:
        requested = json.loads(gzip.decompress(payload))
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(f"it is no batch: {error}") from error
    kind = kind_of(requested["kind"])
    trial = trial_class(kind.record)
    waiting = {parsed.id: parsed for parsed in (trial(**values) for values in requested["trials"])}
    order, captured, judged = list(waiting), set(requested["captured"]), {}
    jobs = [trial.job() for trial in waiting.values()]
    for observed in engine.run(jobs, requested["sysctls"], folder):
        trial_id = observed.trial_id
        judged[trial_id] = judge(kind, waiting.pop(trial_id), observed, engine.exact,
                                 requested["sysctls"], trial_id in captured,
                                 bool(requested["known_kernel"]))
    facts = {name: value for name, value in engine.facts.items() if name in _of_engine}
    writer = RowWriter(kind.record, columns_of(kind.record))
    result = io.BytesIO()
    with gzip.GzipFile(fileobj=result, mode="wb") as stream:
        def put(line: Mapping[str, Any]) -> None:
            stream.write(json.dumps(line).encode() + b"\n")

        put({**facts, "machine": dict(machine)})
        for one in map(judged.pop, order):
            kept = {"captures": one.captures, "files": one.files}
            put({"row": writer.row(one.record), "emulated_s": one.emulated_s,
                 **{what: {name: len(content) for name, content in contents.items()}
                    for what, contents in kept.items()}})
            for contents in kept.values():
                for content in contents.values():
                    stream.write(content)
    return result.getvalue()
