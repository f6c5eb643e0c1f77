"""Batches of trials for many machines, which judge what they measure and send the rows back.

A batch is JSON. A result begins with a line of JSON about the machine. For each trial there follow
a line of JSON, and the packets and files whose sizes that line gives. Batches and results are
compressed. Every row has to be of a trial of the batch; beyond that, a machine is trusted.
runs/cluster sends batches to machines; on a machine, commands/batch.py measures them.
"""

from __future__ import annotations

import gzip
import io
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Generic

from firstflight.base.inflated import inflate
from firstflight.base.untrusted import quoted
from firstflight.runs.kinds import AnyKind, AnyTrial, R, S, Study, T
from firstflight.runs.measuring import Engine, JudgedTrial, is_known, job_of, judge
from firstflight.runs.results.records import (RowReader, RowWriter, columns_of, table_columns,
                                              trial_class)
from firstflight.runs.typed_columns import reader, to_json
from firstflight.testbed.observations import CAPTURE_BYTES, FILE_BYTES, LINE_BYTES

# Wall seconds of a batch, roughly, at most. That is long compared with booting a guest, and a
# machine that dies loses no more.
BATCH_S = 25.0
SHORTEST_S = 2.0  # wall seconds of a batch, roughly, at least
SHARES = 4  # batches for each guest at least, so that all guests end at about the same time

# The most bytes of a trial in a result: its line, its files, and the packets of both hosts.
TRIAL_BYTES = LINE_BYTES + FILE_BYTES + 2 * CAPTURE_BYTES

# The facts on its engine that a machine reports for run.json. The sender knows which kernel it
# sent.
ENGINE_FACTS = ("confined", "kernel", "kernels", "systems", "sysctls")


@dataclass(frozen=True)
class TrialBatch(Generic[S, T, R]):
    """Trials that one guest measures one after another."""

    study: Study[S, T, R]
    trials: Sequence[T]
    captured: Sequence[str]  # the ids of the trials whose packets are kept
    known_kernel: bool = True  # whether the model of TCP was checked against the default kernel

    def payload(self) -> bytes:
        """The batch as a machine receives it: the argument of measure()."""
        return gzip.compress(json.dumps({
            "kind": self.study.head.kind, "sysctls": self.study.head.sysctls,
            "captured": self.captured, "known_kernel": self.known_kernel,
            "trials": list(map(named_values, self.trials))}).encode())

    def read(self, result: bytes) -> tuple[list[JudgedTrial[R]], dict[str, object]]:
        """The judged trials in the result of a machine, and the facts that it reports.

        Raises ValueError if this is not a result of the batch's trials.
        """
        rows = RowReader(self.study.kind.record, columns_of(self.study.kind.record))
        judged = []
        try:
            most_bytes = LINE_BYTES + len(self.trials) * TRIAL_BYTES
            stream = io.BytesIO(inflate(result, most_bytes))
            facts: dict[str, object] = json.loads(stream.readline())
            for trial in self.trials:
                reply = json.loads(stream.readline())
                record = rows.record(reply["row"])
                if record.trial != trial:
                    raise ValueError(f"it has another trial than {trial.id}")
                captures = read_parts(stream, reply["captures"])
                files = read_parts(stream, reply["files"])
                judged.append(JudgedTrial(record, captures, files, reply["emulated_s"]))
        except OSError as error:
            raise ValueError(f"its bytes are damaged: {error.strerror}") from error
        except (LookupError, TypeError) as error:
            raise ValueError(f"it is not a result: {quoted(repr(error))}") from error
        if stream.read(1):
            raise ValueError("it has more results than trials")
        return judged, facts


def read_exactly(stream: io.BytesIO, size: int) -> bytes:
    """The next `size` bytes. Raises ValueError if there are fewer."""
    content = stream.read(size)
    if len(content) != size:
        raise ValueError("its bytes end too early")
    return content


def read_parts(stream: io.BytesIO, sizes: Mapping[str, int]) -> dict[str, bytes]:
    """The next parts of a stream, by name. sizes: in bytes, in the order of the stream.

    Raises ValueError if the stream ends before the parts do.
    """
    return {name: read_exactly(stream, size) for name, size in sizes.items()}


def deal_batches(study: Study[S, T, R], trials: Sequence[T], captured: set[str], guests: int,
                 known_kernel: bool = True) -> Iterator[TrialBatch[S, T, R]]:
    """Deal trials into batches of about equal length; trials on the same network stay together.

    captured: the ids of the trials whose packets are kept. guests: how many measure at once.
    """
    if not trials:
        return
    all_s = sum(map(study.kind.guest_s, trials))
    longest_s = min(BATCH_S, max(SHORTEST_S, all_s / guests / SHARES))
    # Every guest gets the same number of batches, so that all guests end at about the same time.
    batches_of_guest = math.ceil(all_s / longest_s / guests)
    longest_s = all_s / batches_of_guest / guests

    batch: list[T] = []
    batch_s = 0.0
    ordered = order_by_network(trials)
    for count, trial in enumerate(ordered, start=1):
        batch.append(trial)
        batch_s += study.kind.guest_s(trial)
        if batch_s >= longest_s or count == len(ordered):
            captured_here = [trial.id for trial in batch if trial.id in captured]
            yield TrialBatch(study, batch, captured_here, known_kernel)
            batch, batch_s = [], 0.0


def order_by_network(trials: Sequence[T]) -> list[T]:
    """The trials in the order in which a single guest gets them (testbed.job.shared_out).

    Trials on the same network follow each other, unless a trial has its guest alone.
    """
    by_network: dict[str, list[T]] = {}
    for trial in trials:
        job = trial.job()
        if job.get("alone"):
            return list(trials)
        by_network.setdefault(json.dumps(job["network"], sort_keys=True), []).append(trial)
    return [trial for group in by_network.values() for trial in group]


def named_values(trial: AnyTrial) -> dict[str, object]:
    """The values of a trial by the names of its fields, without defaults; trial_of reads them."""
    tables = table_columns(type(trial))
    values = {}
    for field in fields(trial):
        value = getattr(trial, field.name)
        if value != field.default:
            values[field.name] = to_json(value) if field.name in tables else value
    return values


def trial_of(kind: type[T], values: Mapping[str, object]) -> T:
    """The trial of this class that has these named_values. Raises ValueError."""
    tables = table_columns(kind)
    fields_read = dict(values)
    for name in tables.keys() & values.keys():
        fields_read[name] = reader(tables[name], name)(str(values[name]))
    make: Callable[..., T] = kind
    return make(**fields_read)


# On the machine that measures --------------------------------------------------------

def measure(payload: bytes, engine: Engine, kind_of: Callable[[str], AnyKind],
             machine: Mapping[str, object], folder: Path) -> bytes:
    """Measure a batch with an engine of this machine; return the result (TrialBatch.read).

    payload: of TrialBatch.payload. kind_of: returns the kind of a name. machine: facts on this
    machine (runs.results.provenance). folder: for the engine's files. Raises ValueError if the
    payload is no batch, and whatever the engine raises.
    """
    try:
        requested = json.loads(inflate(payload, FILE_BYTES))
    except OSError as error:
        raise ValueError(f"it is not a batch: {error.strerror}") from error
    kind = kind_of(requested["kind"])
    trial_kind = trial_class(kind.record)
    trials = [trial_of(trial_kind, values) for values in requested["trials"]]
    waiting = {trial.id: trial for trial in trials}
    order, captured = list(waiting), set(requested["captured"])
    jobs = [job_of(kind, trial) for trial in waiting.values()]

    judged: dict[str, JudgedTrial[Any]] = {}
    for observed in engine.run(jobs, requested["sysctls"], folder):
        trial_id = observed.trial_id
        trial = waiting.pop(trial_id)
        judged[trial_id] = judge(
            kind, trial, observed, exact=engine.exact, sysctls=requested["sysctls"],
            with_captures=trial_id in captured,
            known_kernel=is_known(engine, trial, bool(requested["known_kernel"])))

    facts = {name: value for name, value in engine.facts.items() if name in ENGINE_FACTS}
    writer = RowWriter(kind.record, columns_of(kind.record))
    result = io.BytesIO()
    with gzip.GzipFile(fileobj=result, mode="wb") as stream:
        def write_line(line: Mapping[str, object]) -> None:
            stream.write(json.dumps(line).encode() + b"\n")

        write_line({**facts, "machine": dict(machine)})
        for done in map(judged.pop, order):
            line: dict[str, object] = {"row": writer.row(done.record),
                                       "emulated_s": done.emulated_s}
            kept = {"captures": done.captures, "files": done.files}
            for key, contents in kept.items():
                line[key] = {name: len(content) for name, content in contents.items()}
            write_line(line)
            for contents in kept.values():
                for content in contents.values():
                    stream.write(content)
    return result.getvalue()
