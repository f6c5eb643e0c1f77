"""Pages, traces and loads pass in the guest, and the driver measures and resumes them."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from benchmarks.outside import draws
from firstflight.model.predict import predict
from firstflight.runs import scenario_file
from firstflight.runs.results.records import FAIL, PASS, SKIPPED, columns_of, value_of
from firstflight.scenario.requested import expand
from firstflight.testbed.guests import UmlEngine
from firstflight.workloads.load.record import Connections, LoadRecord, join_rows, parse_connections
from firstflight.workloads.load.traffic import ClientHost, wire_bytes
from firstflight.workloads.load.trial import LoadTrial
from firstflight.workloads.load.verify import judge_load
from firstflight.workloads.page import objects
from firstflight.workloads.page.record import PageRecord, read_file
from firstflight.workloads.page.trial import PageTrial
from firstflight.workloads.page.verify import judge_page
from firstflight.workloads.trace.record import TraceRecord
from firstflight.workloads.trace.scenario import TABLES, TAKEN
from firstflight.workloads.trace.schedule import Request
from firstflight.workloads.trace.trial import TraceTrial
from firstflight.workloads.trace.verify import judge_trace
from tests.golden import stored_trace
from tests.live.conftest import PROJECT, Driver, rows
from tests.running import run_program
from tests.transfers import transfer
from tests.unit.page import saved
from vtime.kernel.init import RESULTS
from vtime.uml import guest_command

MADE = PageTrial(
    scenario="live", part="own", page="made", rtt_ms=50.0, bandwidth_kbps=10_000.0,
    uplink_kbps=10_000.0, queue_packets=100, loss_percent=0.0, http="1.1", connections=6,
    server="builtin", initcwnd=10, initrwnd=1000, congestion_control="cubic", repeat=1, seed=0,
    objects=objects.equal_objects(20, 15_000, 30_000))
FEW_MICROSECONDS_MS = 0.005  # by which times of a repeated page may differ
# A page with two hosts, a back-end that thinks, a script that is parsed, and an object that names
# another one.
WAITS = (objects.PageObject(30000),
         objects.PageObject(15000, 1, 100, think_ms=25.0),
         objects.PageObject(15000, 1, 200, host=1),
         objects.PageObject(15000, 1, 300, parse_ms=5.0, host=1),
         objects.PageObject(20000, 2, 15000, parse_ms=50.25),)
LOSSY = replace(MADE, loss_percent=3.0, seed=77)
# As many objects and hosts as a page may have. The document's last byte names all of them, so they
# need 999 connections.
HOSTS = replace(MADE, page="hosts256", bandwidth_kbps=100_000.0, uplink_kbps=100_000.0,
                queue_packets=2000, objects=(
                    objects.PageObject(30_000), *(
                        objects.PageObject(1500, 1, 30_000, host=number % objects.MOST_HOSTS)
                        for number in range(1, objects.MOST_OBJECTS))))
NEWS = replace(MADE, page="hosts98", objects=(
    objects.PageObject(60_000), *(
        objects.PageObject(9000, 1, 190 * number, host=number % 98) for number in range(1, 300))))
# A document of 15 kB, and then a chain of three objects, each of which ends with a short segment.
TAIL = replace(MADE, page="tail", server="nginx", connections=1,
               objects=(objects.PageObject(15000),
                        objects.PageObject(8000, 1, 15000),
                        objects.PageObject(8000, 2, 8000),
                        objects.PageObject(8000, 3, 8000),))
TAIL_2 = replace(TAIL, http="2", chain_bytes=4000)
TRIALS = {
    "lossy": LOSSY, "six": MADE, "again": replace(MADE, repeat=2),
    "large": replace(MADE, initcwnd=32),
    "http2": replace(MADE, http="2", server="nginx", chain_bytes=4000, connections=1),
    "hosts": replace(MADE, page="waits", http="2", server="nginx", chain_bytes=4000, connections=1,
                     objects=tuple(replace(waiting, think_ms=0.0) for waiting in WAITS)),
    "tls": replace(MADE, chain_bytes=4000, record_bytes=1000),
    "tls nginx": replace(MADE, chain_bytes=20_000, server="nginx"),
    "tls waits": replace(MADE, page="waits", objects=WAITS, chain_bytes=4000, loss_percent=3.0,
                         seed=77),
    # The server's first messages are three segments without time stamps, and four with them.
    "tls unstamped": replace(MADE, chain_bytes=4000, sysctl="net.ipv4.tcp_timestamps=0"),
    "resumed": replace(MADE, page="waits", objects=WAITS, chain_bytes=4000, resumed=1),
    "resumed http2": replace(MADE, http="2", server="nginx", chain_bytes=4000, connections=1,
                             resumed=1),
    "tail": TAIL, "tail large": replace(TAIL, initcwnd=32),
    "tail tls": TAIL_2, "tail tls large": replace(TAIL_2, initcwnd=32),
    "waits": replace(MADE, page="waits", objects=WAITS),
    "short": replace(MADE, page="short", queue_packets=10, initcwnd=32),
    "lossy again": replace(LOSSY, repeat=2),
    "many": replace(MADE, page="many",
                    objects=objects.equal_objects(300, 400, 9000)),
    "hosts256": HOSTS, "hosts256 nginx": replace(HOSTS, server="nginx"),
    "hosts98": NEWS, "hosts98 nginx": replace(NEWS, server="nginx")}


@pytest.fixture(scope="module")
def measured(kernel: Path, tmp_path_factory: pytest.TempPathFactory
             ) -> dict[str, tuple[PageRecord, bytes]]:
    """The record of each trial and the file of its objects, measured by two guests."""
    names = {trial.id: name for name, trial in TRIALS.items()}
    found = {}
    for seen in UmlEngine(kernel, 2).run([trial.job() for trial in TRIALS.values()], {},
                                         tmp_path_factory.mktemp("guest") / "run"):
        name = names[seen.trial_id]
        record, files = judge_page(TRIALS[name], seen, exact=True)
        found[name] = record, files.get("objects.csv", b"")
    return found


def test_pages_of_all_kinds_pass(measured: dict[str, tuple[PageRecord, bytes]]) -> None:
    verdicts = {name: (record.verdict, record.why_not) for name, (record, _) in measured.items()}
    assert verdicts == dict.fromkeys(TRIALS, (PASS, ""))
    opened = {name: record.opened_connections for name, (record, _) in measured.items()}
    assert opened == {"six": 6, "again": 6, "large": 6, "http2": 1, "hosts": 2, "waits": 4,
                      "tls": 6, "tls nginx": 6, "tls waits": 4, "resumed": 4, "resumed http2": 1,
                      "tail": 1, "tail large": 1, "tail tls": 1, "tail tls large": 1,
                      "short": 6, "lossy": 6, "lossy again": 6, "many": 6, "tls unstamped": 6,
                      "hosts256": 999, "hosts256 nginx": 999, "hosts98": 295,
                      "hosts98 nginx": 295}


def test_a_repeated_page_is_the_same_to_microseconds(
        measured: dict[str, tuple[PageRecord, bytes]]) -> None:
    """A system call that fails takes a microsecond of the guest's clock, and sometimes a few fail.
    """
    (first, objects_of_first), (again, objects_of_again) = measured["six"], measured["again"]
    for column in columns_of(PageRecord):
        if column not in ("repeat", "measured_at"):
            assert value_of(again, column) == near(value_of(first, column)), column
    for one, other in zip(read_file(objects_of_first, ""), read_file(objects_of_again, "")):
        assert one[:4] == other[:4] and one[4:] == near(other[4:])


def test_with_losses_the_first_page_of_a_guest_is_like_a_later_one(
        measured: dict[str, tuple[PageRecord, bytes]]) -> None:
    """TCP's timers fire at ticks of a clock, and both pages start at the same time after a tick."""
    first, again = measured["lossy"][0], measured["lossy again"][0]
    assert first.retransmissions and first.page_ms == pytest.approx(again.page_ms, abs=0.001_01)


def near(value: Any) -> Any:
    """The value to compare with: a time may differ by some microseconds, others not at all."""
    is_time = isinstance(value, float) or isinstance(value, tuple)
    return pytest.approx(value, abs=FEW_MICROSECONDS_MS) if is_time else value


def test_over_http_2_a_page_takes_as_long_as_over_1_and_its_handshake(
        measured: dict[str, tuple[PageRecord, bytes]]) -> None:
    """nginx would hold back the last segment of each response in clear text (TCP_CORK)."""
    def page_ms(name: str) -> float:
        return measured[name][0].page_ms or 0.0

    for window in ("", " large"):
        plain, secure = (page_ms(f"{name}{window}") for name in ("tail", "tail tls"))
        assert 50 < secure - plain < 60  # a round trip, and the time of the chain's 4 kB
    for name in ("tail", "tail tls"):
        assert 35 < page_ms(name) - page_ms(f"{name} large") < 45


def test_a_larger_window_is_faster_until_six_connections_overfill_the_queue(
        measured: dict[str, tuple[PageRecord, bytes]]) -> None:
    six, large, short = (measured[name][0] for name in ("six", "large", "short"))
    assert (large.page_ms or 0) < (six.page_ms or 0) < (short.page_ms or 0)
    assert (six.queue_drops, large.queue_drops) == (0, 0) and (short.queue_drops or 0) > 50


def test_an_object_waits_as_long_as_requested(
        measured: dict[str, tuple[PageRecord, bytes]]) -> None:
    times = read_file(measured["waits"][1], "")
    assert times[3].start_ms - times[3].named_ms == pytest.approx(5, abs=0.02)
    assert times[4].start_ms - times[1].end_ms == pytest.approx(50.25, abs=0.02)


def test_a_connection_with_an_abandoned_fin_does_not_change_the_next_page(shared: UmlEngine,
                                                                          tmp_path: Path) -> None:
    """FINs of several connections are sent again at one tick, and a queue of two drops them."""
    trials = [draws.page(81, number) for number in (184, 185)]
    seen = list(shared.run([trial.job() for trial in trials], {}, tmp_path / "run"))
    records = [judge_page(trial, observed, exact=True)[0]
               for trial, observed in zip(trials, seen)]
    assert [record.verdict for record in records] == [PASS, PASS], records


def test_the_driver_measures_a_har_and_resumes(
        drive: Driver, results: Path, tmp_path: Path) -> None:
    har = tmp_path / "page.har"
    har.write_bytes(saved.har())
    flags = ("--page", str(har), "--http", "1.1", "--iw", "3,10", "--bw", "5M", "--no-figures",
             "--seed", "3")
    done = drive(*flags)
    assert done.returncode == 0, done.stderr
    assert "With 10 instead of 3 segments, the page is there" in done.stdout
    alone = rows(results, "own")
    folder = (results / "own" / "latest").resolve()
    assert saved.SECRET not in (folder / "run.json").read_text() + (
        folder / "trials.csv").read_text()
    # As if it had been interrupted after one of two trials, which stays. The other one is measured.
    with (folder / "trials.csv").open(newline="") as file:
        kept = list(csv.reader(file))[:2]
    with (folder / "trials.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(kept)
    facts = json.loads((folder / "run.json").read_text())
    facts = {**{name: value for name, value in facts.items() if name != "trials"},
             "state": "running"}
    (folder / "run.json").write_text(json.dumps(facts))
    resumed = drive(*flags)
    assert resumed.returncode == 0, resumed.stderr
    found = rows(results, "own")
    for one, other in zip(found, alone, strict=True):
        for name in one.keys() - {"measured_at"}:
            assert one[name] == other[name] or float(one[name]) == near(float(other[name])), name
    assert found[0]["measured_at"] == alone[0]["measured_at"]


# Traces in the guest ------------------------------------------------------------------

def of_traces(engine: UmlEngine, folder: Path, trials: list[TraceTrial]
              ) -> dict[str, TraceRecord]:
    """The records of traces by the trials' ids."""
    by_id = {trial.id: trial for trial in trials}
    seen = engine.run([trial.job() for trial in trials], {}, folder)
    return {observed.trial_id: judge_trace(by_id[observed.trial_id], observed, exact=True)
            for observed in seen}


@pytest.fixture(scope="module")
def packetdrill(shared: UmlEngine,
                tmp_path_factory: pytest.TempPathFactory) -> dict[str, TraceRecord]:
    return of_traces(shared, tmp_path_factory.mktemp("guest") / "run",
                    list(stored_trace.packetdrill().trials))


@pytest.mark.parametrize(("name", "largest", "restarts"), [
    ("idle-linux-iw10", 36, "10"),  # window 36, two seconds idle, then 10
    ("idle-restart-iw10", 36, "10"),
    ("idle-off-iw10", 44, "36"),
    ("idle-unvalidated-iw10", 57, "36"),
    ("idle-cwv-iw10", 19, "1"),
    ("nine-linux-iw10", 18, ""),  # nine of ten packets
    ("nine-off-iw10", 18, ""),
    ("nine-unvalidated-iw10", 20, ""),
])
def test_each_tcps_windows_grow_and_restart_by_its_rules(
        packetdrill: dict[str, TraceRecord], name: str, largest: int, restarts: str) -> None:
    record = packetdrill[name]
    assert (record.verdict, record.verdict_reason) == (PASS, "")
    assert (record.largest_window, record.restart_windows) == (largest, restarts)
    assert record.rule_checked and record.rule_wrong == 0


def test_a_congestion_control_that_the_kernel_lacks_is_skipped(
        packetdrill: dict[str, TraceRecord]) -> None:
    record = packetdrill["idle-absent-iw10"]
    assert record.ok and record.verdict == SKIPPED
    assert record.verdict_reason.startswith("this kernel has no congestion control nosuch")


def test_an_idle_window_is_halved_for_each_rto_of_the_route(shared: UmlEngine,
                                                            tmp_path: Path) -> None:
    trial = stored_trace.trial("idle-linux-iw10")
    # The window is 36 segments, the RTO 100 ms and the least RTO of the route, the pause 2.1 s.
    trials = [replace(trial, trace=f"least{rto_min_ms}", rto_min_ms=rto_min_ms)
              for rto_min_ms in (700, 1000, 2500)]
    records = of_traces(shared, tmp_path / "run", trials)
    windows = {name: record.restart_windows for name, record in records.items()}
    assert windows == {"least700-linux-iw10": "10", "least1000-linux-iw10": "18",
                       "least2500-linux-iw10": ""}
    assert all(record.verdict == PASS for record in records.values())


def test_traces_with_losses_and_recovery_pass_by_the_rules(shared: UmlEngine,
                                                           tmp_path: Path) -> None:
    scenario = TABLES.read(scenario_file.find("handley1999_modem5"))
    trials = [trial for trial in expand(scenario, TAKEN)
              if trial.tcp in ("unmodified_1999", "cwv_1999")]
    records = of_traces(shared, tmp_path / "run", trials)
    assert all(record.verdict == PASS for record in records.values()), records
    unmodified, validated = (records[f"ssh-{name}_1999-iw1-mss512"]
                             for name in ("unmodified", "cwv"))
    assert (unmodified.timeouts or 0) > (validated.timeouts or 0) == 0
    assert (unmodified.lost_segments or 0) > (validated.lost_segments or 0) > 0


def test_a_failed_trace_does_not_change_the_next(shared: UmlEngine, tmp_path: Path) -> None:
    """The client of the failed trace opens a new connection, on which the server reports later."""
    trial = stored_trace.trial("idle-linux-iw10")
    plain = replace(trial, trace="plain", writes=(), may_lose=True, think_s=None,
                    requests=(Request(50_000, 0.0), Request(10, 0.0)))
    # The server samples the window until the deadline, a quarter of an hour, so it does so rarely.
    cut = replace(plain, trace="cut", outage_from_ms=1.5 * trial.rtt_ms,
                  outage_to_ms=1000 * plain.deadline_s + 2000, sample_ms=1000.0)
    records = of_traces(shared, tmp_path / "run", [cut, plain])
    assert not records[cut.id].ok
    assert records[plain.id].verdict == PASS, records[plain.id].why_not


def test_traces_on_random_networks_pass_packet_by_packet(shared: UmlEngine, tmp_path: Path) -> None:
    """The networks have losses in bursts, jitter, cake and fq, and drops as the queues count them.
    """
    file = scenario_file.read(stored_trace.FOLDER / "chance.toml")
    records = of_traces(shared, tmp_path / "run", expand(TABLES.read(file), TAKEN, seed=4))
    assert {record.verdict_reason for record in records.values()} == {""}
    assert all(record.judged_by == "path" for record in records.values()) and len(records) == 4


def test_a_listening_socket_begins_with_the_sysctls_of_its_trial(shared: UmlEngine,
                                                                 tmp_path: Path) -> None:
    """A connection gets tcp_reordering from the listening socket, and the server reports it."""
    trial = stored_trace.trial("idle-linux-iw10")
    sysctls = ("none", "net.ipv4.tcp_reordering=10", "none")
    trials = [replace(trial, sysctl=sysctl, repeat=repeat)
              for repeat, sysctl in enumerate(sysctls, start=1)]
    records = of_traces(shared, tmp_path / "run", trials)
    assert [record.verdict_reason for record in records.values()] == ["", "", ""]


@pytest.mark.parametrize("qdisc", ["fq_codel", "cake", "fq"])
def test_an_outage_under_any_qdisc_loses_segments_and_passes(shared: UmlEngine, tmp_path: Path,
                                                             qdisc: str) -> None:
    outage = next(trial for trial in stored_trace.lossy().trials if trial.trace == "outage")
    (record,) = of_traces(shared, tmp_path / "run", [replace(outage, qdisc=qdisc)]).values()
    assert (record.verdict, record.verdict_reason) == (PASS, "") and record.lost_segments


def test_trials_without_time_stamps_do_not_meet_the_one_before(shared: UmlEngine,
                                                               tmp_path: Path) -> None:
    """The server could take a trial's SYN for one of a connection that it still holds."""
    file = scenario_file.read(stored_trace.FOLDER / "chance.toml")
    jitter = next(trial for trial in expand(TABLES.read(file), TAKEN, seed=4)
                  if trial.trace == "jitter")
    trials = [replace(jitter, sysctl="net.ipv4.tcp_timestamps=0", repeat=repeat)
              for repeat in (1, 2, 3, 4)]
    stamped = replace(jitter, repeat=5)
    *records, last = of_traces(shared, tmp_path / "run", [*trials, stamped]).values()
    assert {record.verdict_reason for record in (*records, last)} == {""}
    assert len({(record.connect_ms, record.finish_ms) for record in records}) == 1
    # A SYN with time stamps is 12 bytes longer. If it met the trial before, it would take an RTT
    # more.
    assert abs((last.connect_ms or 0.0) - (records[0].connect_ms or 0.0)) < 1


def test_the_driver_measures_traces(drive: Driver, results: Path) -> None:
    """tests/live/test_cluster.py compares two measurements of them."""
    done = drive("--scenario", "handley1999_memory", "--no-figures", "--full")
    assert done.returncode == 0, done.stderr
    assert "traces: 4 pass" in done.stdout
    assert [row["verdict"] for row in rows(results, "handley1999_memory")] == ["pass"] * 4


# Loads in the guest --------------------------------------------------------------------

LOAD = LoadTrial(
    scenario="live", part="live", window="10", initcwnd=10,
    clients=(ClientHost(0.5, 100, 10), ClientHost(0.5, 100, 10)), loss_percent=0,
    bandwidth_kbps=10_000, rtt_ms=100, queue_packets=83, queue_bdp=1, load=0.5,
    connections=1, response_bytes=20_000, sizes="fixed", initrwnd=100, congestion_control="cubic",
    access_queue_packets=50, servers=2, duration_s=12, warmup_s=2, cooldown_s=2,
    repeat=1, seed=1)
FULL = replace(LOAD, load=0.99, queue_packets=5, duration_s=5)
LOADS = {"half": LOAD, "again": replace(LOAD, repeat=2), "full": FULL,
         "free": replace(FULL, queue_packets=10_000),
         "quiet": replace(LOAD, load=0.02, duration_s=60)}


class Loaded(NamedTuple):
    """A load as it was measured."""

    record: LoadRecord
    connections: Connections  # also those of the warm-up and the cool-down
    files: Mapping[str, bytes]


@pytest.fixture(scope="module")
def loads(kernel: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Loaded]:
    """The loads by their names, measured by two concurrent guests."""
    names = {trial.id: name for name, trial in LOADS.items()}
    return {names[seen.trial_id]: Loaded(judge_load(LOADS[names[seen.trial_id]], seen)[0],
                                         parse_connections(join_rows(seen.files)), seen.files)
            for seen in UmlEngine(kernel, 2).run([trial.job() for trial in LOADS.values()], {},
                                                 tmp_path_factory.mktemp("guest") / "run")}


def test_a_load_has_its_requested_arrivals_and_the_link_carries_it(
        loads: dict[str, Loaded]) -> None:
    half, same = loads["half"], loads["again"]
    record = half.record
    assert (record.verdict, record.verdict_reason) == (PASS, "")
    mean, sigma = LOAD.expected_arrivals
    assert record.arrivals is not None and abs(record.arrivals - mean) < 3 * sigma
    # The link's counter agrees with what was offered, but for data in the link at both ends.
    assert record.utilisation == pytest.approx(record.offered_load, abs=0.01)
    assert record.utilisation == pytest.approx(0.5, abs=3 * 0.5 * sigma / mean + 0.01)
    assert (record.failed, record.unfinished, record.drops) == (0, 0, 0)
    assert (record.seen_initcwnd, record.seen_first_flight, record.wire_first_flight) == (
        "10", "10", "10")
    # The same seed in another guest gives the same times of all connections.
    assert half.connections.total_ms.tobytes() == same.connections.total_ms.tobytes()
    assert replace(same.record, trial=LOAD) == record


def test_the_computed_wire_bytes_are_those_that_the_link_carried(loads: dict[str, Loaded]) -> None:
    """The counter of the bottleneck agrees with the formula of the offered load."""
    everything = loads["quiet"].connections
    *_, last = loads["quiet"].files["bottleneck.csv"].decode().splitlines()
    carried, finished = int(last.split(",")[1]), len(everything.ended("ok"))
    # It may lack two last acknowledgements, and may have the data of connections that are open.
    assert finished > 50 and len(everything) - finished < 2
    assert -2 * 66 <= carried - finished * wire_bytes(20_000) <= (
        len(everything) - finished) * wire_bytes(20_000)


def test_a_transfer_on_an_empty_link_takes_the_models_time(loads: dict[str, Loaded]) -> None:
    """Connections meet no other one, and take the model's time to the millisecond."""
    head = len("HTTP/1.1 200 OK\r\nContent-Length: 20000\r\n\r\n")
    predicted = predict(transfer(
        rtt_ms=100, bandwidth_kbps=10_000, uplink_kbps=1e9, initcwnd=10, initrwnd=100,
        response_bytes=20_000 + head, request_bytes=35)).total_ms
    record, connections, _ = loads["quiet"]
    assert record.p50_ms == pytest.approx(predicted, abs=1.0)
    assert record.p10_ms == pytest.approx(record.p50_ms, abs=1.0)
    assert len(connections) > 5


def test_an_overloaded_network_does_not_slow_the_arrivals(loads: dict[str, Loaded]) -> None:
    record, jammed, _ = loads["full"]
    free = loads["free"].connections
    assert free.arrival_s.tobytes() == jammed.arrival_s.tobytes()
    assert (record.drop_percent or 0) > 5
    assert jammed.retransmission_percent > free.retransmission_percent == 0
    # No more leaves the link than the servers have sent and it has not dropped.
    assert (record.utilisation or 0) <= 1.0


def test_a_load_whose_server_is_killed_fails_with_its_later_connections(kernel: Path,
                                                                        tmp_path: Path) -> None:
    short = replace(LOAD, duration_s=10, warmup_s=1, cooldown_s=1, servers=1)
    (tmp_path / "trial.json").write_text(json.dumps(short.job()))
    (tmp_path / "command.json").write_text(json.dumps(
        ["/usr/bin/python3", "-c", KILLING, RESULTS]))
    done = run_program(guest_command(kernel), cwd=tmp_path)
    assert (tmp_path / "status").read_text() == "0\n", done.stdout[-800:]
    observation = json.loads((tmp_path / "observation.json").read_text())

    class Killed:
        trial_id, content, client_pcap, server_pcap = short.id, observation, b"", b""
        files = {name: (tmp_path / place).read_bytes()
                 for name, place in observation["files"].items()}

    record, _ = judge_load(short, Killed())
    everything = parse_connections(join_rows(Killed.files))
    assert observation["ended_servers"] == [1]
    assert not record.ok and record.verdict == FAIL and "died" in record.error
    late = everything.select(everything.arrival_s > 5.5)
    assert len(late.ended("ok")) == 0 and len(late.ended("failed")) > 50
    # Connections that the server did answer took as long as a transfer takes.
    assert everything.ended("ok").total_ms.min() > 300


KILLING = """
import json, sys, threading
from pathlib import Path
from firstflight.testbed.worker.load import LoadBench
folder = Path(sys.argv[1])
trial = json.loads((folder / "trial.json").read_text())
bench = LoadBench(folder, Path.cwd(), {}, lambda: None)
bench.prepare(trial)
threading.Timer(5, bench.servers[0].process.kill).start()
observation = {}
bench.measure(trial, observation)
bench.add_recorded(observation)
(folder / "observation.json").write_text(json.dumps(observation))
bench.close()
"""


def test_flags_choose_single_cells_of_a_load(drive: Driver, results: Path) -> None:
    done = drive(str(PROJECT / "tests/golden/load/small.toml"), "--load", "0.5", "--iw", "10",
                 "--repeat", "1", "--no-figures")
    assert done.returncode == 0, done.stderr
    measured = rows(results, "small")
    assert [(row["window"], row["load"], row["verdict"]) for row in measured] == [
        ("10", "0.5", "pass")] * 2
    assert measured[0]["arrivals"] in done.stdout
    assert len(list((results / "small").glob("*-uml/files/*connections.csv.gz"))) == 2
