"""Named guest kernels are built from the default one's objects, compared with it, and removed.

./install.sh --test keeps one tree of objects, so that each kernel takes only seconds.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from firstflight.runs.results.record_file import make_seal
from tests.live.commands import typed
from tests.live.conftest import PROJECT, Driver, rows, unwrapped
from tests.running import run_program

CUBIC = "net/ipv4/tcp_cubic.c"
NAME = "live-test"
# A patch of the number by which CUBIC cuts its window: 512 in the place of 717.
BETA = f"""\
--- a/{CUBIC}
+++ b/{CUBIC}
@@ -50,1 +50,1 @@
-static int beta __read_mostly = 717;	/* = 717/1024 (BICTCP_BETA_SCALE) */
+static int beta __read_mostly = 512;	/* = 512/1024 (BICTCP_BETA_SCALE) */
"""
NETWORK = ("--rtt", "40", "--bw", "10000", "--size", "1MB", "--queue", "8", "--iw", "10",
           "--repeat", "1")


def install(*words: str) -> subprocess.CompletedProcess[str]:
    return run_program([str(PROJECT / "install.sh"), *words])


@pytest.fixture(name="patch", scope="module")
def _patch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("patches") / "beta.patch"
    path.write_text(BETA)
    return path


@pytest.fixture(name="built", scope="module")
def _built(patch: Path) -> Iterator[str]:
    """The messages of the build of kernel NAME."""
    done = install("--kernel", NAME, "--patch", str(patch))
    assert done.returncode == 0, done.stderr
    yield done.stderr
    install("--remove-kernel", NAME)


def listed() -> str:
    """The line of kernel NAME in the list of kernels, "" if there is none."""
    return next((line for line in install("--list-kernels").stdout.splitlines()
                 if line.startswith(f"{NAME}\t")), "")


def test_a_patched_kernel_is_measured_beside_the_default_one(
        built: str, drive: Driver, results: Path) -> None:
    """A short queue has losses, after which the patched kernel's window is smaller.

    A resumed run measures nothing twice.
    """
    done = drive("--kernel", f"default,{NAME}", *NETWORK, "--quiet", "--no-figures")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Kernel default → {NAME} " in done.stdout and "no difference" not in done.stdout
    (folder,) = (path.parent for path in (results / "own").glob("*/run.json")
                 if not path.parent.is_symlink())
    facts = json.loads((folder / "run.json").read_text())
    recipe = facts["kernels"][NAME]
    assert recipe["patches"] and not recipe["known"] and len(recipe["digest"]) == 64
    assert facts["kernel_known"], "this is about the default kernel"

    # As if it had been interrupted before the last trial.
    rows = (folder / "trials.csv").read_text().splitlines(keepends=True)
    (folder / "trials.csv").write_text("".join(rows[:-1]))
    facts |= {"state": "running", "trials": make_seal("".join(rows[:-1]).encode())}
    (folder / "run.json").write_text(json.dumps(facts))
    again = drive("--kernel", f"default,{NAME}", *NETWORK, "--no-figures")
    assert again.returncode == 0, again.stderr
    assert f"resuming {folder}: 1 of 2 trials" in again.stderr
    assert (folder / "trials.csv").read_text().splitlines()[1:2] == [rows[1].rstrip("\n")]


def test_a_patch_that_does_not_apply_or_compile_changes_no_kernel(built: str,
                                                                  tmp_path: Path) -> None:
    before = listed()
    for name, text, why in (
            ("absent", BETA.replace("= 717;", "= 718;"), f"{CUBIC}:50: other lines stand there"),
            ("wrong", BETA.replace("= 512;", "= ;"), f"({CUBIC}:50:")):
        path = tmp_path / f"{name}.patch"
        path.write_text(text)
        done = install("--kernel", NAME, "--patch", str(path))
        last = done.stderr.splitlines()[-1]
        assert done.returncode == 1 and why in last, done.stderr
        assert f"{NAME} stays what it was" in last
    assert before and listed() == before


def test_a_missing_kernel_is_refused_by_flag_and_skipped_in_a_file(drive: Driver,
                                                                   tmp_path: Path) -> None:
    """The other kernel that the file names is measured."""
    absent = f"{NAME}-absent"
    file = tmp_path / "mine.toml"
    file.write_text(f'''# One kernel and another.
title = "x"
source = "x"
[[sweep]]
name = "own"
rtt_ms = 20
bandwidth_kbps = 10000
response_bytes = 9000
initcwnd = 10
congestion_control = "cubic"
client = "curl"
repeat = 1
queue = 100
loss_percent = 0
uplink = "same"
kernel = ["default", "{absent}"]
''')
    refused = drive("--kernel", f"default,{absent}", *NETWORK)
    assert refused.returncode == 4 and f"there is no kernel {absent}" in refused.stderr
    done = drive("--scenario", str(file), "--full", "--no-figures")
    assert "1 of 2 trials are skipped" in unwrapped(done), done.stdout
    assert f"./install.sh --kernel {absent}" in unwrapped(done)


LOAD = f"""\
# One kernel and another.
kind = "load"
title = "x"
source = "x"
[[sweep]]
name = "loads"
bandwidth_kbps = 10000
rtt_ms = 40
queue_bdp = [0.3]
load = [0.9]
response_bytes = [60000]
connections = [1]
initcwnd = [10]
initrwnd = 100
congestion_control = ["cubic"]
clients = 2
servers = 2
duration_s = 20
warmup_s = 2
cooldown_s = 2
repeat = 1
kernel = ["default", "{NAME}"]
"""


def test_a_page_is_loaded_on_both_kernels(built: str, drive: Driver, results: Path) -> None:
    """A short queue has losses, after which the patched kernel's window is smaller."""
    done = drive("--objects", "4", "--size", "100000", "--kernel", f"default,{NAME}", "--rtt", "40",
                 "--bw", "10000", "--queue", "8", "--iw", "10", "--repeat", "1", "--no-figures")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Kernel default → {NAME} " in done.stdout and "no difference" not in done.stdout
    measured = {row["kernel"]: row for row in rows(results, "own")}
    assert {row["verdict"] for row in measured.values()} == {"pass"}
    assert measured["default"]["page_ms"] != measured[NAME]["page_ms"]


def test_a_load_is_carried_on_both_kernels(built: str, drive: Driver, results: Path,
                                           tmp_path: Path) -> None:
    """The same connections arrive on both, and take other times after losses of a short queue."""
    (tmp_path / "loads.toml").write_text(LOAD)
    done = drive("--scenario", str(tmp_path / "loads.toml"), "--no-figures")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Kernel default → {NAME} " in done.stdout, done.stdout
    measured = {row["kernel"]: row for row in rows(results, "loads")}
    assert {row["verdict"] for row in measured.values()} == {"pass"}
    assert measured["default"]["arrivals"] == measured[NAME]["arrivals"]
    assert measured["default"]["mean_ms"] != measured[NAME]["mean_ms"]


LINK = """\
import socket, subprocess, sys
for words in ("netns add a", "netns add b", "link add d0 netns a type veth peer name d1 netns b",
              "-n a addr add 10.0.0.1/24 dev d0", "-n b addr add 10.0.0.2/24 dev d1",
              "-n a link set d0 up", "-n b link set d1 up"):
    subprocess.run(["ip", *words.split()], check=True)
for words in ("-n b qdisc add dev d1 root netem delay 20ms rate 10mbit limit 20",
              "-n a qdisc add dev d0 root netem delay 20ms loss 1%"):
    subprocess.run(["tc", *words.split()], check=True)
server = subprocess.Popen(["ip", "netns", "exec", "a", "iperf3", "-s", "-1"])
subprocess.run(["sleep", "1"])
subprocess.run("ip netns exec b iperf3 -c 10.0.0.1 -t 3".split(), check=True)
"""


def test_the_first_packet_that_differs_between_two_kernels_is_named(patch: Path,
                                                                    tmp_path: Path) -> None:
    """The patch cuts the window by more after the first loss. Packets before it are the same."""
    name = f"{NAME}-commands"
    (tmp_path / "link.py").write_text(LINK)
    done = install("--with-mininet", "--kernel", name, "--patch", str(patch))
    assert done.returncode == 0, done.stderr
    try:
        done = run_program(typed(tmp_path / "out", "python3", "link.py", flags=(
            "--kernel", f"default,{name}", "--readable", ".")), cwd=tmp_path)
    finally:
        install("--remove-kernel", name)
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = (tmp_path / "out").glob("commands/*/difference.json")
    found = json.loads(file.read_text())
    assert found["first"]["number"] > 20 and len(found["first"]["before"]) == 4
    assert found["first"]["first"] != found["first"]["second"], "the words show what differs"
    assert found["totals"][0]["packets"] != found["totals"][1]["packets"]
    assert all(of_kernel["packets"] > 1000 and of_kernel["dropped"] > 0
               for of_kernel in found["totals"])
