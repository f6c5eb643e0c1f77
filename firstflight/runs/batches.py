"""Many machines: trials in batches, judged where they are measured, and their rows sent back.

A batch is JSON. A result is a line of JSON for the machine, and for each trial a line and the
packets and files of which the line gives the sizes; both are compressed. Every row that comes
back has to be that of a trial of the batch; beyond that a machine is trusted. How a batch gets
to a machine is the cluster's matter (runs/cluster); what a machine does with it is
commands/batch.py's.
"""

from __future__ import annotations

import gzip
import io
import json
import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from firstflight.base.untrusted import quoted
from firstflight.runs.kinds import AnyTrial, Kind, Study
from firstflight.runs.measuring import Engine, JudgedTrial, is_known, judge
from firstflight.runs.results.records import RowReader, RowWriter, columns_of, trial_class

# Wall seconds of one batch, roughly: beside them booting a guest is little, and no more than
# these are lost when a machine dies.
BATCH_S = 25.0
SHORTEST_S = 2.0
SHARES = 4  # batches for each guest, at least, so that all end at about the same time

# What run.json has of the engine that measured. Which kernel it is, the one who sent it knows.
ENGINE_FACTS = ("confined", "kernel", "kernels", "systems", "sysctls")


@dataclass(frozen=True)
class TrialBatch:
    """Trials that one guest measures one after another; captured: whose packets are wanted."""

    study: Study
    trials: Sequence[AnyTrial]
    captured: Sequence[str]
    known_kernel: bool = True

    def payload(self) -> bytes:
        """The batch as a machine reads it (measure)."""
        return gzip.compress(json.dumps({
            "kind": self.study.head.kind, "sysctls": self.study.head.sysctls,
            "captured": self.captured, "known_kernel": self.known_kernel,
            "trials": list(map(named_values, self.trials))}).encode())

    def read(self, result: bytes) -> tuple[list[JudgedTrial], dict[str, Any]]:
        """What a machine made of it, and what it reported of its engine and of itself.

        Raises ValueError if that is not a result of these trials.
        """
        rows = RowReader(self.study.kind.record, columns_of(self.study.kind.record))
        judged = []
        try:
            stream = io.BytesIO(gzip.decompress(result))
            facts: dict[str, Any] = json.loads(stream.readline())
            for trial in self.trials:
                reply = json.loads(stream.readline())
                record = rows.record(reply["row"])
                if record.trial != trial:
                    raise ValueError(f"it has another trial than {trial.id}")
                captures, files = (take_all(stream, reply["captures"]),
                                   take_all(stream, reply["files"]))
                judged.append(JudgedTrial(record, captures, files, reply["emulated_s"]))
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"its bytes are damaged: {error}") from error
        except (LookupError, TypeError) as error:
            raise ValueError(f"it is not a result: {quoted(repr(error))}") from error
        if stream.read(1):
            raise ValueError("it has more results than trials")
        return judged, facts


def take_bytes(stream: io.BytesIO, size: int) -> bytes:
    """So many bytes. Raises ValueError if there are fewer."""
    content = stream.read(size)
    if len(content) != size:
        raise ValueError("its bytes end too early")
    return content


def take_all(stream: io.BytesIO, sizes: Mapping[str, int]) -> dict[str, bytes]:
    """The contents that follow one another, by name. Raises ValueError as `take`."""
    return {name: take_bytes(stream, size) for name, size in sizes.items()}


def deal_batches(study: Study, trials: Sequence[AnyTrial], captured: set[str],
            guests: int, known_kernel: bool = True) -> Iterator[TrialBatch]:
    """The trials in batches of about one length, those of one network together."""
    whole_s = sum(map(study.kind.guest_s, trials))
    longest_s = min(BATCH_S, max(SHORTEST_S, whole_s / guests / SHARES))
    rounds = math.ceil(whole_s / longest_s / guests)  # each guest gets so many: all end together
    longest_s = whole_s / rounds / guests
    batch: list[AnyTrial] = []
    batch_s = 0.0
    ordered = order_by_network(trials)
    for place, trial in enumerate(ordered, start=1):
        batch.append(trial)
        batch_s += study.kind.guest_s(trial)
        if batch_s >= longest_s or place == len(ordered):
            yield TrialBatch(study, batch, [trial.id for trial in batch if trial.id in captured],
                             known_kernel)
            batch, batch_s = [], 0.0


def order_by_network(trials: Sequence[AnyTrial]) -> list[AnyTrial]:
    """The trials in the order in which one guest is given them (testbed.job.shared_out)."""
    shapes: dict[str, list[AnyTrial]] = {}
    for trial in trials:
        job = trial.job()
        if job.get("alone"):
            return list(trials)
        shapes.setdefault(json.dumps(job["network"], sort_keys=True), []).append(trial)
    return [trial for group in shapes.values() for trial in group]


def named_values(trial: AnyTrial) -> dict[str, object]:
    """A trial by the names of its fields, without those that have their default."""
    return {field.name: value for field in fields(trial)
            if (value := getattr(trial, field.name)) != field.default}


# On the machine that measures --------------------------------------------------------

def measure(payload: bytes, engine: Engine, kind_of: Callable[[str], Kind],
             machine: Mapping[str, object], folder: Path) -> bytes:
    """The result of a batch, by an engine of this machine's (TrialBatch.read).

    machine: what this one is (runs.results.provenance). folder: for the engine's own
    files. Raises ValueError if the payload is no batch, and what the engine raises.
    """
    try:
        requested = json.loads(gzip.decompress(payload))
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(f"it is not a batch: {error}") from error
    kind = kind_of(requested["kind"])
    trial = trial_class(kind.record)
    waiting = {parsed.id: parsed for parsed in (trial(**values) for values in requested["trials"])}
    order, captured, judged = list(waiting), set(requested["captured"]), {}
    jobs = [trial.job() for trial in waiting.values()]
    for observed in engine.run(jobs, requested["sysctls"], folder):
        trial_id = observed.trial_id
        done = waiting.pop(trial_id)
        judged[trial_id] = judge(kind, done, observed, engine.exact, requested["sysctls"],
                                 trial_id in captured,
                                 is_known(engine, done, bool(requested["known_kernel"])))
    facts = {name: value for name, value in engine.facts.items() if name in ENGINE_FACTS}
    writer = RowWriter(kind.record, columns_of(kind.record))
    result = io.BytesIO()
    with gzip.GzipFile(fileobj=result, mode="wb") as stream:
        def put(line: Mapping[str, object]) -> None:
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
