"""A machine of a cluster: what it is sent, what it checks, what it answers."""

from __future__ import annotations

import io
import json
import signal
import stat
import tempfile
import threading
import zipfile
from pathlib import Path
from typing import Any

import pytest

from engines.cluster import node as module
from engines.cluster.cluster import opened
from engines.cluster.node import CODE, FAILED, KERNEL, OK, REFUSED, Node, NodeRefused, cache, unpack

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
    contents = {"install.sh": "#!/bin/sh\n[ $1 = --check ]", "commands/batch.py": BATCH, **files}
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as made:
        for name, text in {**{f"{CODE}/{name}": text for name, text in contents.items()},
                           KERNEL: "kernel"}.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = 0o755 << 16
            made.writestr(info, text)
    return stream.getvalue()


class Worker:
    address, local_directory = "tls://10.0.0.7:4711", tempfile.gettempdir()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def node(content: bytes | None = None, tools: dict[str, str] = TOOLS) -> Node:
    made = Node("name", "digest", archive() if content is None else content, tools)
    made.setup(Worker())
    return made


def said(of: Node, batch: bytes) -> tuple[str, bytes]:
    head, content = opened(of.measure(batch))
    assert head["worker"] == Worker.address and "10.0.0.7" in head["machine"]
    return head["status"], content


def test_a_batch_is_measured_with_the_kernel_that_was_sent(home: Path) -> None:
    status, content = said(node(), b"abc")
    assert status == OK and content.endswith(b"/digest/linux:cba")
    assert content.startswith(str(home / "first-flight" / "cluster").encode())


@pytest.mark.parametrize(("batch", "expected"), [
    (b"cannot", (REFUSED, b"commands/batch.py: no /dev/shm")),
    (b"fails", (FAILED, b"commands/batch.py: the guest died"))])
def test_why_a_batch_is_not_measured_is_its_last_line(batch: bytes, expected: Any) -> None:
    assert said(node(), batch) == expected


@pytest.mark.parametrize(("changed", "tools", "why"), [
    ({}, {**TOOLS, "curl": "curl 8"}, "'curl 7.88' instead of 'curl 8': the same distribution"),
    ({"install.sh": "#!/bin/sh\necho 'install: missing packages: mininet' >&2; exit 1"}, TOOLS,
     "missing packages: mininet: run ./install.sh"),
    ({"commands/batch.py": "raise SystemExit('no module mininet')"}, TOOLS, "no module mininet"),
    ({"commands/batch.py": "print('curl')"}, TOOLS, "Expecting value")])
def test_a_machine_that_is_not_alike_refuses(changed: dict[str, str], tools: dict[str, str],
                                             why: str) -> None:
    status, content = said(node(archive(**changed), tools), b"abc")
    assert status == REFUSED and why in content.decode()


def test_what_is_no_archive_is_refused() -> None:
    status, content = said(node(b"PK nothing"), b"abc")
    assert status == REFUSED and b"zip" in content


def test_a_copy_that_was_changed_is_replaced(home: Path) -> None:
    folder = unpack(cache() / "digest", archive())
    inode = folder.stat().st_ino
    assert unpack(folder, archive()).stat().st_ino == inode  # as it is
    (folder / CODE / "commands/batch.py").write_text("changed")
    assert unpack(folder, archive()) == folder
    assert (folder / CODE / "commands/batch.py").read_text() == BATCH
    (folder / KERNEL).unlink()
    unpack(folder, archive())
    assert (folder / KERNEL).read_text() == "kernel"
    assert [path.name for path in folder.parent.iterdir()] == ["digest"]  # nothing is left aside


@pytest.mark.parametrize("name", ["../../outside", "/outside"])
def test_no_file_of_an_archive_lies_outside(name: str, home: Path) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as made:
        made.writestr(zipfile.ZipInfo(name), "x")
    folder = cache() / "digest"
    with pytest.raises(ValueError, match="outside"):
        unpack(folder, stream.getvalue())
    assert not folder.exists() and not list(home.rglob("outside"))


def test_a_cache_that_others_may_write_to_is_refused(home: Path) -> None:
    path = cache()
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    path.chmod(0o777)
    with pytest.raises(NodeRefused, match="others may write there"):
        cache()
    assert said(node(), b"abc")[0] == REFUSED


def slow(begun: Path, before: str = "pass") -> Node:
    """Its batches last, and say by a file that they have begun."""
    # Python drops a signal that comes while it closes a file that nobody holds any more.
    lasts = f"    import os, signal, time; {before}; os.mkdir({str(begun)!r}); time.sleep(600)\n"
    return node(archive(**{"commands/batch.py": BATCH.replace("    content = sys", lasts
                                                     + "    content = sys")}))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches have little time to end by themselves."""
    # A cluster in this process unpickles the class: its methods then have other globals.
    monkeypatch.setitem(Node.teardown.__globals__["end"].__globals__, "END_S", 0.3)


@pytest.mark.usefixtures("impatient")  # a Python that starts may drop the signal
def test_what_is_measured_ends_with_the_plugin(tmp_path: Path) -> None:
    made = slow(tmp_path / "begun")
    made.teardown(None)
    status, content = said(made, b"abc")  # began while it was torn down: ended at once
    assert status == FAILED and not made.running


def ended(made: Node, begun: Path) -> tuple[str, bytes]:
    """What is said of a batch in whose middle the plugin ends."""
    answered = threading.Event()

    def stop() -> None:
        while not begun.exists() and not answered.wait(0.02):
            pass
        made.teardown(None)

    thread = threading.Thread(target=stop, daemon=True)
    thread.start()
    answer = said(made, b"abc")
    answered.set()
    thread.join()
    return answer


def test_it_ends_also_where_the_worker_ignores_ctrl_c(tmp_path: Path) -> None:
    """As each program does that a script starts with "&"."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert ended(slow(tmp_path / "begun"), tmp_path / "begun") == (FAILED,
                                                                       b"KeyboardInterrupt")
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("impatient")
def test_what_does_not_hear_is_killed(tmp_path: Path) -> None:
    deaf = slow(tmp_path / "begun", "signal.signal(signal.SIGINT, signal.SIG_IGN)")
    assert ended(deaf, tmp_path / "begun") == (FAILED, b"it ended with -9")


def test_a_node_travels_without_what_is_its_machine_s() -> None:
    made = node()
    assert made.archive == b""  # on the disk now
    assert set(made.__getstate__()) == {"name", "digest", "archive", "tools", "refused", "stopped"}
    assert json.dumps(made.__getstate__()["tools"]) == json.dumps(TOOLS)
    assert module.last_line("one\ntwo\n") == "two" and module.last_line(" ") == ""
