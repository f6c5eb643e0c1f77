"""The engines refuse machines that forbid what guests need, and refuse what a wrong guest measures.

Further tests are on real time, on settings by netlink, and on the guest's clock.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from firstflight.runs.results.records import PASS
from firstflight.testbed.guests import UmlEngine
from firstflight.testbed.job import JobFolder, WorkerProcess
from firstflight.testbed.messages import Job
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.trial import Trial
from firstflight.workloads.fetch.verify.verify import judge_fetch
from tests.running import HANGS_S, run_program
from vtime.console import EngineCannot, EngineError
from vtime.kernel.init import RESULTS
from vtime.uml import VIRTUAL_TIME, guest_command, why_not

TRIAL = Trial(scenario="live", rtt_ms=100, bandwidth_kbps=1000, uplink_kbps=1000,
              queue_packets=1000, loss_percent=0, initcwnd=10, initrwnd=27,
              congestion_control="cubic", client="curl", response_bytes=9000, repeat=1)


def test_a_kernel_that_does_not_boot_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "linux"
    broken.write_text("#!/bin/sh\necho no kernel here\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(EngineError, match="no kernel here"):
        list(UmlEngine(broken, 1).run([TRIAL.job()], {}, tmp_path / "work"))


def test_a_machine_that_forbids_ptrace_and_seccomp_is_refused_with_the_reason(
        kernel: Path, tmp_path: Path) -> None:
    """The security profile of a container may refuse both to all processes."""
    forbidding = ("import ctypes, os, sys; from vtime import confine;"
                  " ctypes.CDLL(None).prctl(38, 1, 0, 0, 0);"
                  " confine.load([(0x20, 0, 0, 0), (0x15, 1, 0, 101), (0x15, 0, 1, 317),"
                  " (6, 0, 0, 0x50001), (6, 0, 0, 0x7fff0000)]);"
                  " os.execvp(sys.argv[1], sys.argv[1:])")
    done = run_program(
        [sys.executable, "-c", forbidding, sys.executable, "experiment.py", "--engine", "uml",
         "--scenario", "zhao2019", "--rtt", "50", "--bw", "1000", "--results", str(tmp_path)],
        cwd=Path(__file__).parents[2])
    assert done.returncode == 4, done.stderr
    unconfined, *_, cannot = done.stderr.splitlines()
    assert "lacks seccomp filters" in unconfined and "that you trust" in unconfined
    assert "ptrace or seccomp, and both are forbidden" in cannot and "--engine host" in cannot


def test_a_machine_whose_linux_is_older_than_6_3_runs_guests(kernel: Path, tmp_path: Path) -> None:
    """Such a Linux does not know memfd_create's flag MFD_EXEC (16), and answers EINVAL (22)."""
    (tmp_path / "command.json").write_text(json.dumps(["echo", "from the guest"]))
    older = ("import ctypes, os, sys; from vtime import confine;"
             " ctypes.CDLL(None).prctl(38, 1, 0, 0, 0);"
             " confine.load([(0x20, 0, 0, 0), (0x15, 0, 3, 319), (0x20, 0, 0, 24),"
             " (0x45, 0, 1, 16), (6, 0, 0, 0x50000 | 22), (6, 0, 0, 0x7fff0000)]);"
             " os.chdir(sys.argv[1]); os.execvp(sys.argv[2], sys.argv[2:])")
    done = run_program([sys.executable, "-c", older, str(tmp_path), *guest_command(kernel)],
                       cwd=Path(__file__).parents[2], stdin=subprocess.DEVNULL)
    assert "from the guest" in done.stdout, done.stdout + done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a /dev/shm of its own")
def test_a_guest_needs_nothing_of_dev_shm(kernel: Path, tmp_path: Path) -> None:
    """A container's /dev/shm is small, and no file in it may be executed."""
    (tmp_path / "command.json").write_text(json.dumps(["echo", "from the guest"]))
    done = run_program(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c",
         'mount -t tmpfs -o ro,noexec tmpfs /dev/shm && exec "$@"', "sh", *guest_command(kernel)],
        cwd=tmp_path, stdin=subprocess.DEVNULL)
    assert "from the guest" in done.stdout, done.stdout + done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can forbid it, to processes of its own")
def test_a_machine_that_forbids_executable_memory_is_refused_with_the_reason(
        kernel: Path, tmp_path: Path) -> None:
    done = run_program(["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c",
                        'sysctl -qw vm.memfd_noexec=2 && exec "$@"', "sh", *guest_command(kernel)],
                       cwd=tmp_path, stdin=subprocess.DEVNULL)
    assert "sysctl -w vm.memfd_noexec=0" in why_not(done.stdout + done.stderr), done.stdout


def test_a_hostile_value_of_a_sysctl_reaches_no_shell(kernel: Path, tmp_path: Path) -> None:
    hostile = {"net.ipv4.tcp_sack": f"0'; touch {RESULTS}/made; '"}
    with pytest.raises(EngineError, match="cannot have net.ipv4.tcp_sack = .*Invalid argument"):
        list(UmlEngine(kernel, 1).run([TRIAL.job()], hostile, tmp_path))
    with pytest.raises(EngineCannot, match="this kernel has no sysctl net.ipv4.tcp_none"):
        list(UmlEngine(kernel, 1).run([TRIAL.job()], {"net.ipv4.tcp_none": "1"}, tmp_path))


def test_the_guest_cannot_write_to_the_host(kernel: Path, tmp_path: Path) -> None:
    folder = tmp_path / "guest"
    target = Path(__file__).resolve().parent / "written-by-the-guest"
    status = in_guest(kernel, folder, ["touch", str(target)])
    assert status != 0 and not target.exists()
    assert in_guest(kernel, tmp_path / "again", ["touch", f"{RESULTS}/mine"]) == 0
    assert (tmp_path / "again" / "mine").exists()


def test_the_host_engine_measures_in_real_time(kernel: Path, tmp_path: Path) -> None:
    """The host engine runs in a guest without virtual time, which is a machine with netem.

    If another program took the processor, a verdict fails, and the cell is measured again. After
    several attempts only checks of times may fail.
    """
    for attempt in range(5):
        status, said, rows = in_real_time(kernel, tmp_path / f"guest{attempt}")
        assert status in (0, 3) and len(rows) == 2, said  # 3: measured, but a verdict failed
        if status == 0:
            break
    assert [(row["initcwnd"], row["ok"]) for row in rows] == [("3", "true"), ("10", "true")]
    for row in rows:
        wrong = {*filter(None, row["failed_checks"].split("; "))}
        assert wrong <= {"RTT", "bandwidth", "server latency", "client times"}, (
            row["verdict_reason"])
        assert "RTT" in wrong or abs(float(row["seen_rtt_ms"]) - 50) < 3


def in_real_time(kernel: Path, folder: Path) -> tuple[int, str, list[dict[str, str]]]:
    """Measure a cell of zhao2019 with the host engine; return the status, the output and the rows.
    """
    # In a user's guest root's files belong to nobody, so mount(8) with its set-user-id bit would
    # run as nobody. The flags are MS_RDONLY | MS_NOSUID | MS_REMOUNT | MS_BIND. The results are in
    # the guest's memory, since no links may be made in the host's folder.
    measuring = ("/usr/bin/python3 -c \"from vtime.mounts import mount;"
                 " mount('', '/', '', 1 | 2 | 32 | 4096)\" &&"
                 " /usr/bin/python3 experiment.py --engine host --scenario zhao2019 --rtt 50"
                 " --bw 1000 --results /run/r; status=$?;"
                 f" cp /run/r/zhao2019/*-host/trials.csv {RESULTS}; exit $status")
    status = in_guest(kernel, folder, ["/bin/sh", "-c", measuring], real_time=True)
    with (folder / "trials.csv").open(newline="") as file:
        return status, (folder / "console.log").read_text(), list(csv.DictReader(file))


def in_guest(kernel: Path, folder: Path, command: list[str], real_time: bool = False) -> int:
    """Run a command as root in a guest that may write to `folder` (its RESULTS)."""
    JobFolder(folder, [], {})
    (folder / "command.json").write_text(json.dumps(command))
    booting = [word for word in guest_command(kernel)
               if not (real_time and word == VIRTUAL_TIME)]
    with (folder / "console.log").open("wb") as console:
        subprocess.run(booting, cwd=folder, stdin=subprocess.DEVNULL,
                       stdout=console, stderr=subprocess.STDOUT, timeout=HANGS_S, check=False)
    return int((folder / "status").read_text())


# tc and ip show the settings by netlink as if they had set them themselves --------------

# This runs in the guest. Netlink sets one interface. tc and ip set another one of the same name, in
# another namespace. tc and ip then show both.
BOTH = """
import json, os, re, subprocess, sys
from types import SimpleNamespace
from firstflight.testbed.network.kernel import NodeKernel
from firstflight.testbed.network.links import Neighbour, Route, RouteOptions, star_routes
from firstflight.testbed.network.ports import Port
from firstflight.net.link import Link, Path
from firstflight.testbed.network.shaping import bottleneck_queue, server_port, star_ports

def run(words):
    return subprocess.run(words.split(), capture_output=True, text=True, check=True).stdout

def shown(words):
    # From iproute2 6.7 on tc knows the seed, and shows it where it is the kernel's own choice, too.
    return [re.sub(" seed (?!9$)[0-9]+$", "", line.rstrip()) for line in run(words).splitlines()]

PORTS = [*star_ports(Path(Link(50.5005, 56, 20, loss_percent=1.7, jitter_ms=2.3, seed=9),
                          Link(50.5005, 10_000_000, 20))),
         *star_ports(Path(Link(10, 1e6, 5, loss_percent=2, loss_burst=4, qdisc="cake", seed=9),
                          Link(10, 56, 5)))[:1],
         *(Port("any", bottleneck_queue(kind, 20000, 500)) for kind in ("cake", "fq_codel")),
         server_port("any", True)]
ROUTES = [*star_routes(10, 27, "cubic", RouteOptions(300, True, 536)),
          Route("10.0.1.7", "any", {"initcwnd": 3, "congctl": "reno"}, via="10.0.0.9"),
          Route("default", "any", {"initrwnd": 64}, via="10.0.0.9"),
          Route("default", "any", {}, via="10.0.0.8")]
KNOWN = Neighbour("10.0.0.7", "00:11:22:33:44:55", "any")
found = []

def compare(each, does, words):
    told = []
    for by_netlink in (True, False):
        os.unshare(os.CLONE_NEWNET) if hasattr(os, "unshare") else libc.unshare(0x40000000)
        run(f"ip link add {each.where} type veth peer name other")
        run("ip link set other up")
        run(f"ip link set {each.where} up")
        run(f"ip addr add 10.0.0.3/24 dev {each.where}")
        if by_netlink:
            kernel = NodeKernel(SimpleNamespace(name="here", pid=os.getpid()))
            does(kernel)
            kernel.close()
        else:
            for command in each.commands:
                run(command if " seed " in str(told) else command.partition(" seed ")[0])
        told.append(shown(words))
    found.append({"said": each.commands, "netlink": told[0], "tool": told[1]})

import ctypes
libc = ctypes.CDLL(None)
for port in PORTS:
    compare(SimpleNamespace(where=port.name, commands=port.commands),
            lambda kernel: kernel.install_ports(port), f"tc qdisc show dev {port.name}")
for wanted in (*ROUTES, KNOWN):
    install = NodeKernel.install_neighbours if wanted is KNOWN else NodeKernel.install_routes
    compare(SimpleNamespace(where=wanted.interface, commands=[wanted.command]),
            lambda kernel: install(kernel, wanted),
            "ip neigh show" if wanted is KNOWN else "ip route show")
json.dump(found, open(sys.argv[1], "w"))
"""


def test_settings_by_netlink_are_shown_as_those_by_tc_and_ip(kernel: Path, tmp_path: Path) -> None:
    status = in_guest(kernel, tmp_path / "guest",
                      ["/usr/bin/python3", "-c", BOTH, f"{RESULTS}/found.json"])
    said = (tmp_path / "guest" / "console.log").read_text()
    assert status == 0, said
    found: list[dict[str, Any]] = json.loads((tmp_path / "guest" / "found.json").read_text())
    assert len(found) == 6 + 5 + 1
    for each in found:
        assert each["netlink"] == each["tool"], each["said"]
    shown = "\n".join(line for each in found for line in each["netlink"])
    for words in ("netem 1: root refcnt 2 limit 1000000 delay 50.5ms  2.3ms loss 1.7%",
                  "netem 2: parent 1:1 limit 20 rate 56Kbit", "loss gemodel", "cake 1: root",
                  "tbf 1: root", "fq_codel 2: parent 1:1 limit 500p", "fq 1: root",
                  "initcwnd 10", "rto_min lock 300ms congctl cubic", "default via 10.0.0.8",
                  "10.0.0.7 dev any lladdr 00:11:22:33:44:55 PERMANENT"):
        assert words in shown, shown


# The guest's clock --------------------------------------------------------------------

READS = """
import json, time
time.sleep(0.001)
seen = [time.monotonic_ns() for _ in range(1100)]
json.dump(seen, open("{results}/seen.json", "w"))
"""
SPIN = """
import json, time
start, reads = time.monotonic_ns(), 0
while time.monotonic_ns() - start < 1_000_000_000:
    reads += 1
json.dump([reads, time.monotonic_ns() - start], open("{results}/seen.json", "w"))
"""
TICKS = "import os\nstart = os.times().elapsed\nwhile os.times().elapsed == start: pass"


def guest(kernel: Path, folder: Path, program: str) -> list[str]:
    """The command line of a guest that runs a Python program."""
    (folder / "command.json").write_text(json.dumps(
        ["/usr/bin/python3", "-c", program.replace("{results}", RESULTS)]))
    return guest_command(kernel)


def seen_by(kernel: Path, folder: Path, program: str) -> list[int]:
    """The numbers that a Python program in a guest writes into seen.json."""
    subprocess.run(guest(kernel, folder, program), cwd=folder, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, timeout=HANGS_S, check=False)
    seen: list[int] = json.loads((folder / "seen.json").read_text())
    return seen


def test_a_thousand_reads_are_free_and_then_each_costs_a_nanosecond_more(
        kernel: Path, tmp_path: Path) -> None:
    seen = seen_by(kernel, tmp_path, READS)
    steps = [after - before for before, after in zip(seen, seen[1:])]
    first = next(place for place, step in enumerate(steps) if step)
    assert 990 <= first <= 1000
    assert steps[first:] == list(range(1, len(steps) - first + 1))


def test_a_process_that_spins_until_the_clock_moves_ends(kernel: Path, tmp_path: Path) -> None:
    reads, took_ns = seen_by(kernel, tmp_path, SPIN)
    # 1000 reads are free, then √(2 · 10⁹) reads cost a second (clock.sed).
    assert reads < 50_000 and 1_000_000_000 <= took_ns < 1_000_100_000


def test_a_loop_on_times_which_reads_no_clock_ends_at_the_deadline(kernel: Path,
                                                                   tmp_path: Path) -> None:
    job = JobFolder(tmp_path / "guest", [], {})
    worker = WorkerProcess(job, [{"id": "one"}], guest(kernel, job.path, TICKS), job.path,
                           3.0, 3.0)
    try:
        with pytest.raises(EngineError, match="said nothing for [0-9]+ s while its network"):
            while True:
                list(worker.poll())
                time.sleep(0.05)
    finally:
        worker.stop()


# Guests that measure another setting than the requested one -------------------------------

# tests/unit/fetches/test_tamperings.py changes packets of stored captures. A change in a kernel
# also changes all packets after it. Here the network, its routes, sysctls or sockets are others in
# one trial, between trials that are measured as requested. The model computes PLAIN. It does not
# compute LOSSY and BBR, since packets are lost or a timer paces.
PLAIN = Trial(scenario="live", rtt_ms=60, bandwidth_kbps=5000, uplink_kbps=5000,
              queue_packets=1000, loss_percent=0, initcwnd=10, initrwnd=40,
              congestion_control="cubic", client="libcurl", response_bytes=60_000, repeat=1)
LOSSY = replace(PLAIN, loss_percent=3.0, queue_packets=12, response_bytes=120_000, seed=5)
BBR = replace(PLAIN, congestion_control="bbr")
CODEL = replace(PLAIN, qdisc="fq_codel", queue_packets=12)
FQ = replace(PLAIN, qdisc="fq")
KEPT = replace(PLAIN, kept=1, idle_ms=2000.0)
Change = Callable[[Trial], Job]


def of_trial(**fields: str | float) -> Change:
    """Measure another trial than the requested one."""
    return lambda trial: replace(trial, **fields).job()


def shaped(**fields: str | float) -> Change:
    """Measure on another network than the requested one."""
    return lambda trial: {**trial.job(), "network": replace(trial, **fields).job()["network"]}


def with_sysctl(name: str, value: str) -> Change:
    return lambda trial: {**trial.job(), "sysctls": {f"net.ipv4.tcp_{name}": value}}


def with_buffers(name: str, value: str) -> Change:
    """Measure with other sizes of buffers, as the sysctl tcp_rmem or tcp_wmem has them."""
    return lambda trial: {**trial.job(), "buffers": {f"net.ipv4.tcp_{name}": value}}


def routed(**options: int | bool) -> Change:
    """Measure with other options of the routes."""
    return lambda trial: {**trial.job(), "options": options}


# Requested trials, each with what the guest does in its place, and the check that refuses it.
REFUSED: list[tuple[Trial, Change, str]] = [
    *((trial, change, check) for trial in (PLAIN, BBR, LOSSY) for change, check in (
        (of_trial(initcwnd=11), "initial window"),
        (of_trial(initrwnd=39), "TCP options"),
        (of_trial(congestion_control="reno"), "server's socket"),
        (of_trial(nagle="on"), "server's socket"),
        (of_trial(send_buffer_bytes=30_000), "server's socket"),
        (routed(advertised_mss=1459), "TCP options"),
        (with_sysctl("sack", "0"), "TCP options"),
        (with_sysctl("timestamps", "0"), "TCP options"),
        (with_sysctl("window_scaling", "0"), "TCP options"),
        (with_sysctl("mtu_probing", "2"), "segment size"),
        (with_buffers("wmem", "4096 8192 30000"), "server's socket"),
        (with_buffers("rmem", "4096 60000 60000"), "TCP options"),
        (shaped(rtt_ms=60.006), "path"),
        (shaped(bandwidth_kbps=5001.0), "path"),
        (shaped(uplink_kbps=4950.0), "path"),
        (shaped(jitter_ms=0.01, seed=3), "path"),
        (shaped(loss_percent=2.0, seed=1), "path"),
        (shaped(htb_burst_bytes=1600), "path"),
        (shaped(qdisc="fq_codel"), "path"),
        (shaped(qdisc="cake"), "path"))),
    (LOSSY, shaped(seed=99), "path"),
    (LOSSY, shaped(loss_burst=2.0), "path"),
    (LOSSY, shaped(queue_packets=6), "path"),
    (CODEL, shaped(qdisc="fifo"), "path"),
    (PLAIN, shaped(qdisc="fq"), "causes"),
    (KEPT, with_sysctl("slow_start_after_idle", "0"), "model"),
    (KEPT, of_trial(kept=1, idle_ms=2000.02), "causes")]
# Changes that no check sees, which docs/METHOD.md names; and whether a number is another one.
PASSES: list[tuple[Trial, Change, bool]] = [
    (PLAIN, shaped(rtt_ms=60.004), True),
    (LOSSY, routed(quickack=True), True),
    (CODEL, shaped(qdisc="cake"), True),
    (FQ, shaped(qdisc="fifo"), True),
    (LOSSY, of_trial(client="curl"), True),
    *((LOSSY, with_sysctl(name, value), False) for name, value in (
        ("early_retrans", "0"), ("recovery", "0"), ("frto", "0"), ("dsack", "0"))),
    (PLAIN, shaped(queue_packets=1001), False),
    (PLAIN, shaped(seed=99), False)]


def tampered(kernel: Path, folder: Path, requested: list[tuple[Trial, Change]]) -> list[Record]:
    """The records of requested trials, which one guest measured with a change each."""
    trials = [replace(trial, repeat=number) for number, (trial, _) in enumerate(requested, 1)]
    jobs = [Job(**{**change(trial), "id": trial.id})
            for trial, (_, change) in zip(trials, requested)]
    seen = {observed.trial_id: observed
            for observed in UmlEngine(kernel, 1).run(jobs, {}, folder)}
    return [judge_fetch(trial, seen[trial.id].content, seen[trial.id].client_pcap,
                        seen[trial.id].server_pcap, exact=True, sysctls={}) for trial in trials]


def numbers_of(record: Record) -> tuple[float | None, float | None]:
    return record.total_ms, record.latency_ms


def test_a_guest_that_measures_another_setting_is_refused_by_its_check(kernel: Path,
                                                                       tmp_path: Path) -> None:
    sound = [(trial, Trial.job) for trial in (PLAIN, LOSSY, BBR, CODEL, FQ, KEPT)]
    requested = [*sound, *((trial, change) for trial, change, _ in REFUSED),
                 *((trial, change) for trial, change, _ in PASSES), *sound]
    records = tampered(kernel, tmp_path, requested)
    before, after = records[:len(sound)], records[-len(sound):]
    assert [record.verdict for record in (*before, *after)] == [PASS] * 2 * len(sound)
    assert [numbers_of(record) for record in before] == [numbers_of(record) for record in after]
    between = records[len(sound):-len(sound)]
    for (_, _, check), record in zip(REFUSED, between):
        assert check in record.failed_checks.split("; "), (record.trial, check, record)
    usual = {trial: numbers_of(record) for (trial, _), record in zip(sound, before)}
    for (trial, _, changes), record in zip(PASSES, between[len(REFUSED):]):
        assert record.verdict == PASS, record.verdict_reason
        assert (numbers_of(record) != usual[trial]) == changes, record.trial
