"""A machine of a cluster: what it is sent, what it checks, what it answers."""

from __future__ import annotations

import io
import threading
import zipfile
from pathlib import Path

import pytest

from firstflight.runs.cluster.node import CODE, KERNEL, Node, last_line

TOOLS = {"curl": "curl 7.88", "python": "3.11"}
BATCH = """import json, sys
if sys.argv[1] == "--versions":
    print(json.dumps({"curl": "curl 7.88", "python": "3.11", "more": "1"}))
else:
    content = sys.stdin.buffer.read()
    if content == b"cannot":
        print("commands/batch.py: no /dev/shm", file=sys.stderr)
        sys.exit(4)
    if content == b"fails":
        print("some noise", "commands/batch.py: the guest died", sep="\\n", file=sys.stderr)
        sys.exit(1)
    sys.stdout.buffer.write(sys.argv[2].encode() + b":" + content[::-1])
"""


def archive(**files: str) -> bytes:
    """As a machine is sent one, with programs that only answer."""
    contents = {"install.sh": "#!/bin/sh\n[ $1 = --check ]",
                "firstflight/commands/batch.py": BATCH, **files}
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as made:
        for name, text in {**{f"{CODE}/{name}": text for name, text in contents.items()},
                           KERNEL: "kernel"}.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = 0o755 << 16
            made.writestr(info, text)
    return stream.getvalue()


class Worker:
    address = "tcp://192.0.2.7:1"

    def __init__(self, folder: Path) -> None:
        self.local_directory = str(folder)


def node(folder: Path, content: bytes, tools: dict[str, str] = TOOLS) -> Node:
    made = Node(content, tools)
    made.setup(Worker(folder))
    return made


def refused(made: Node, batch: bytes) -> str:
    """Why the batch is not measured."""
    with pytest.raises(RuntimeError) as why:
        made.measure(batch)
    return str(why.value)


def test_a_batch_is_measured_with_the_kernel_that_was_sent(tmp_path: Path) -> None:
    kernel, _, result = node(tmp_path, archive()).measure(b"abc").decode().partition(":")
    assert result == "cba"
    assert Path(kernel).read_text() == "kernel" and Path(kernel).is_relative_to(tmp_path)


@pytest.mark.parametrize(("batch", "why"), [
    (b"cannot", "commands/batch.py: no /dev/shm"),
    (b"fails", "commands/batch.py: the guest died")])
def test_why_a_batch_is_not_measured_is_its_last_line(batch: bytes, why: str,
                                                      tmp_path: Path) -> None:
    assert refused(node(tmp_path, archive()), batch) == why
    assert last_line("one\ntwo\n") == "two" and last_line(" ") == ""


@pytest.mark.parametrize(("changed", "tools", "why"), [
    ({}, {**TOOLS, "curl": "curl 8"}, "'curl 7.88' instead of 'curl 8': use the same distribution"),
    ({"install.sh": "#!/bin/sh\necho 'install: missing packages: mininet' >&2; exit 1"}, TOOLS,
     "missing packages: mininet: run ./install.sh"),
    ({"firstflight/commands/batch.py": "raise SystemExit('no module mininet')"}, TOOLS,
     "no module mininet"),
    ({"firstflight/commands/batch.py": "print('curl')"}, TOOLS, "Expecting value")])
def test_a_machine_that_is_not_alike_refuses(changed: dict[str, str], tools: dict[str, str],
                                             why: str, tmp_path: Path) -> None:
    assert why in refused(node(tmp_path, archive(**changed), tools), b"abc")


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    assert "zip" in refused(node(tmp_path, b"PK nothing"), b"abc")


def test_what_is_measured_ends_with_the_plugin(tmp_path: Path) -> None:
    """In its middle; and nothing begins after it."""
    begun = tmp_path / "begun"
    lasts = BATCH.replace("    content = sys", f"    import os, time; os.mkdir({str(begun)!r});"
                          " time.sleep(600)\n    content = sys")
    made = node(tmp_path, archive(**{"firstflight/commands/batch.py": lasts}))
    answered = threading.Event()

    def stop() -> None:
        while not begun.exists() and not answered.wait(0.02):
            pass
        made.teardown(None)

    thread = threading.Thread(target=stop, daemon=True)
    thread.start()
    assert refused(made, b"abc") == "it ended with -9"
    answered.set()
    thread.join()
    assert refused(made, b"abc") == "the run has ended" and not made.running
