"""What goes to a worker and comes back: trials dealt out, lines and packets read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from engines.job import JobFolder, shared_out


def trial(name: str, rtt_ms: float, **more: Any) -> dict[str, Any]:
    return {"id": name, "shape": {"rtt_ms": rtt_ms}, **more}


def test_trials_of_one_shape_stay_together_and_in_order() -> None:
    trials = [trial("a1", 1), trial("b1", 2), trial("a2", 1), trial("c1", 3), trial("b2", 2)]
    hands = [[each["id"] for each in hand] for hand in shared_out(trials, 2)]
    assert hands == [["a1", "a2", "c1"], ["b1", "b2"]]
    assert len(shared_out(trials[:1], 4)) == 1


def test_a_trial_that_has_to_be_alone_gets_a_worker_of_its_own() -> None:
    hands = shared_out([trial("a1", 1, alone=True), trial("a2", 1, alone=True)], 1)
    assert [len(hand) for hand in hands] == [1, 1]


def test_only_whole_lines_are_read_and_packets_come_with_them(tmp_path: Path) -> None:
    folder = JobFolder(tmp_path / "job", [], {})
    (folder.path / "client.pcap").write_bytes(b"headerPACKETSmore")
    (folder.path / "window.csv").write_bytes(b"time\n")
    said = json.dumps({"trial": "t", "captures": {"client": {"offset": 6, "bytes": 7}},
                       "files": {"window": "window.csv"}})
    with folder.lines_path.open("a") as lines:
        lines.write(f"{said}\n{said[:9]}")
    (line,) = folder.new_lines()
    with folder.lines_path.open("a") as lines:
        lines.write(f"{said[9:]}\n")
    assert list(folder.new_lines()) == [line]
    seen = folder.observation(line)
    assert (seen.trial_id, seen.client_pcap, seen.server_pcap) == ("t", b"PACKETS", b"")
    assert seen.files == {"window": b"time\n"}
    folder.remove()
    assert not folder.path.exists()
