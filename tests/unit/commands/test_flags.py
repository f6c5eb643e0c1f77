"""Flags and their help; and the runs of --repeat, and how far their numbers lie apart."""

from __future__ import annotations

import argparse
import itertools
import json
import random
import re
import shlex
import signal
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import vtime
from firstflight.base import PROJECT
from firstflight.base.errors import FAILED, INTERRUPTED, FirstFlightError
from firstflight.base.parser import Parser
from firstflight.commands import flags
from firstflight.commands.virtual import captured, command_line, records, repeated
from firstflight.commands.virtual.repeated import Conversation, Run, connection_rows
from firstflight.commands.virtual.spread import (Row, as_json, line_rows, numbers_of, table,
                                                 two_states)
from vtime import CommandRequest, LinkTimes, Result

# Help ---------------------------------------------------------------------------------

EVERYWHERE = {"-h", "--help", "--version"}
_FLAG = re.compile(r"^  (?:-\w[^,\n]*, )?(--[a-z-]+)\b", re.MULTILINE)  # where its help begins


def actions_of(monkeypatch: pytest.MonkeyPatch, module: ModuleType, read: Callable[[], object]
               ) -> dict[str, argparse.Action]:
    """The actions, by flag, of the parser that a call of read builds in a module."""
    built: list[Parser] = []

    def build(*words: object, **more: object) -> Parser:
        built.append(Parser(*words, **more))  # type: ignore[arg-type]
        return built[-1]
    with monkeypatch.context() as patch:
        patch.setattr(module, "Parser", build)
        read()
    return {name: action for action in built[0]._actions if action.help != argparse.SUPPRESS
            for name in action.option_strings[-1:] if name not in EVERYWHERE}


def flags_of(monkeypatch: pytest.MonkeyPatch, module: ModuleType, read: Callable[[], object]
             ) -> set[str]:
    return {*actions_of(monkeypatch, module, read)}


def parts(capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """The two parts of --help all: flags of trials, and flags of commands."""
    with pytest.raises(SystemExit):
        flags.parse(["--help", "all"])
    trials, usage, commands = capsys.readouterr().out.partition("usage: ./run.sh [FLAG ...] -- ")
    assert usage
    return trials, commands


def test_help_of_all_has_each_flag_of_trials(monkeypatch: pytest.MonkeyPatch,
                                             capsys: pytest.CaptureFixture[str]) -> None:
    parsed = flags_of(monkeypatch, flags, lambda: flags.parse(["--rtt", "5"]))
    assert set(_FLAG.findall(parts(capsys)[0])) - EVERYWHERE == parsed


def test_help_of_all_has_each_flag_of_commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                                               capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "capture.pcapng").write_bytes(b"")
    parsed = (flags_of(monkeypatch, command_line, lambda: command_line.parse(["--", "true"]))
              | flags_of(monkeypatch, captured,
                         lambda: captured.parse(["--report", str(tmp_path)])))
    assert set(_FLAG.findall(parts(capsys)[1])) == parsed


def test_the_tools_that_a_cluster_compares_are_named_in_its_document(
        monkeypatch: pytest.MonkeyPatch) -> None:
    from firstflight.runs.results import provenance
    text = " ".join((PROJECT / "docs" / "INSTALL.md").read_text(encoding="utf-8").split())
    (compared,) = re.findall(r"Compared before the run begins: (.*?)\. ", text)
    monkeypatch.setattr(provenance, "first_line", lambda _: "")
    named = {word for word in re.findall(r"\w+", compared) if word in provenance.tools()}
    assert named == set(provenance.tools())


# Each flag changes the request --------------------------------------------------------

IN_A_FOLDER = {"--ca", "--server-name"}  # their examples need a file


@pytest.mark.parametrize("flag", sorted({*flags.EXAMPLES} - EVERYWHERE - IN_A_FOLDER))
def test_each_flag_changes_the_request(flag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words = shlex.split(flags.EXAMPLES[flag])[1:]
    action = actions_of(monkeypatch, flags, lambda: flags.parse(words))[flag]
    place = words.index(flag)
    values = itertools.takewhile(lambda word: not word.startswith("--"), words[place + 1:])
    if action.nargs == "+":
        count = len([*values])
    else:
        count = 1 if action.nargs is None else int(action.nargs)
    try:
        without_flag = flags.parse([*words[:place], *words[place + 1 + count:]])
    except SystemExit:  # the other words need this flag
        return
    assert flags.parse(words) != without_flag


# How far the numbers of several runs lie apart ------------------------------------------

IPERF3 = "[  5]   0.00-{}  sec  {} MBytes  {} Mbits/sec                  receiver"
# Unimodal distributions, of positive values.
UNIMODAL: dict[str, Callable[[random.Random], float]] = {
    "uniform": lambda draw: draw.uniform(0.0, 100.0),
    "uniform, far from 0": lambda draw: draw.uniform(100.0, 200.0),
    "normal": lambda draw: abs(draw.gauss(50.0, 10.0)),
    "a wide normal": lambda draw: abs(draw.gauss(50.0, 25.0)),
    "exponential": lambda draw: draw.expovariate(0.1),
    "lognormal": lambda draw: draw.lognormvariate(0.0, 1.0),
    "triangular": lambda draw: draw.triangular(0.0, 90.0, 90.0),
    "a sum of dice": lambda draw: float(sum(draw.randrange(6) for _ in range(4))),
    "counts": lambda draw: float(sum(draw.random() < 0.1 for _ in range(200)))}


@pytest.mark.parametrize("runs", [8, 12, 20, 40])
@pytest.mark.parametrize("name", UNIMODAL)
def test_a_sample_of_one_state_is_taken_for_two_in_a_hundredth_of_cases_at_most(
        name: str, runs: int) -> None:
    """These are 4 of 400 samples. two_states documents 4 in 1000, of 40,000 samples."""
    draw = random.Random(f"{name} {runs}")
    found = sum(bool(two_states([UNIMODAL[name](draw) for _ in range(runs)])) for _ in range(400))
    assert found <= 4


@pytest.mark.parametrize("runs", [16, 20, 40])
@pytest.mark.parametrize("share", [0.3, 0.5, 0.7])
def test_two_states_that_a_real_script_has_are_found(runs: int, share: float) -> None:
    """A script with a bridge and a short queue measures 16 to 23 Mbit/s, or 65 to 90."""
    draw = random.Random(runs)
    found = 0
    for _ in range(100):
        low = round(share * runs)
        values = [draw.uniform(16.0, 23.0) for _ in range(low)] + [
            draw.uniform(65.0, 90.0) for _ in range(runs - low)]
        draw.shuffle(values)
        states = two_states(values)
        if states:
            found += 1
            assert [state.count for state in states] == [low, runs - low]
    assert found == 100


@pytest.mark.parametrize("values", [
    [1.0, 2.0] * 3,  # too few runs
    [9.57] * 8 + [9.58] * 8,  # less than a fifth apart
    [0.0] * 8 + [1.0] * 8, [2.0] * 6 + [6.0] * 6,  # counts that are less than 5 apart
    [20.0] * 15 + [86.0],  # a state of one run
    [5.0] * 12, [0.0] * 12])
def test_a_sample_without_a_gap_has_no_states(values: list[float]) -> None:
    assert two_states(values) == ()


def test_states_have_their_range_and_share() -> None:
    low, high = two_states([20.8, 86.6, 20.9, 20.8, 86.0, 21.0, 20.7, 20.8, 86.1, 20.6])
    assert (low.least, low.largest, low.count, low.share) == (20.6, 21.0, 7, 0.7)
    assert (high.least, high.largest, high.count, high.share) == (86.0, 86.6, 3, 0.3)


def test_runs_without_losses_are_a_state_of_their_own() -> None:
    low, high = two_states([0.0, 0.0, 51.0, 0.0, 55.0, 0.0, 50.0, 0.0, 53.0, 0.0, 0.0, 52.0])
    assert (low.count, high.count, high.least) == (7, 5, 50.0)


@pytest.mark.parametrize(("line", "form", "values"), [
    (IPERF3.format("10.04", "20.5", "16.8"), "[ {}] {}-{} sec {}Bytes {}bits/sec receiver",
     [5, 0, 10.04, 20.5, 16.8]),
    ("64 bytes from 10.0.0.2: icmp_seq=1 ttl=64 time=104 ms",
     "{} bytes from 10.0.0.2: icmp_seq={} ttl={} time={} ms", [64, 1, 64, 104]),
    ("rtt min/avg/max/mdev = 40.0/47.2/104.4/19.0 ms", "rtt min/avg/max/mdev = {}/{}/{}/{} ms",
     [40.0, 47.2, 104.4, 19.0]),
    ("local 10.0.0.1 port 36230 connected to 10.0.0.2 port 5201",
     "local 10.0.0.1 port 36230 connected to 10.0.0.2 port 5201", []),
    ("h1-eth0 at aa:bb:0c:1d:2e:3f, s1", "h1-eth0 at aa:bb:0c:1d:2e:3f, s1", []),
    ("took -3.5e-3 s, {x} 12%", "took {} s, (x) {}%", [-0.0035, 12])])
def test_a_line_is_split_into_its_form_and_its_numbers(line: str, form: str,
                                                       values: list[float]) -> None:
    found_form, numbers = numbers_of(line)
    assert (found_form, [number.value for number in numbers]) == (form, values)


def test_lines_that_differ_in_numbers_only_make_a_row_for_each_of_these_numbers() -> None:
    runs = [[IPERF3.format("10.04", 20.5 + run, 16.8 + run), "5 hosts"] for run in range(3)]
    first, second = line_rows(runs)
    assert first.name == "[ 5] 0.00-10.04 sec _ MBytes # Mbits/sec receiver"
    assert first.values == (20.5, 21.5, 22.5) and second.values == (16.8, 17.8, 18.8)
    assert second.name == "[ 5] 0.00-10.04 sec # MBytes _ Mbits/sec receiver"


def test_a_prefix_of_the_unit_that_changes_belongs_to_the_number() -> None:
    (row,) = line_rows([["sent 980 KBytes"], ["sent 1.5 MBytes"], ["sent 2 MBytes"]])
    assert row.name == "sent _Bytes" and row.values == (980 * 1024, 1.5 * 1024 ** 2, 2 * 1024 ** 2)


def test_a_line_that_comes_several_times_is_compared_in_order() -> None:
    rows = line_rows([["a 1", "a 2", "b 7"], ["a 3", "b 8"], ["a 5", "a 6", "b 9"]])
    assert [(row.name, row.values) for row in rows] == [
        ("b _", (7, 8, 9)), ("a _", (1, 3, 5)), ("a _", (2, None, 6))]


def test_a_line_that_only_one_run_printed_is_no_row() -> None:
    assert line_rows([["only here 1"], ["no number"]]) == []


def test_the_table_has_median_range_each_and_states() -> None:
    rates = (20.8, 86.6, 20.9, 20.8, 86.0, 21.0, 20.7, 20.8, 86.1, 20.6)
    text = table([Row("h1 → h2: goodput", rates, "Mbit/s"),
                  Row("h1 → h2: losses", (0.0,) * 10)],
                 line_rows([[f"{number} Mbit/s"] for number in rates]), len(rates))
    assert "median 20.85 Mbit/s, range 20.6–86.6; each: 20.8 86.6 20.9" in text
    assert "two states: 20.6–21 in 70 % (7 runs), 86–86.6 in 30 % (3 runs)" in text
    assert "losses" not in text and "\n_ Mbit/s\n" in text


def test_the_table_says_that_nothing_differs_where_all_values_are_equal() -> None:
    assert "printed numbers: none that differ" in table([], [], 8)
    assert "TCP connections: 1, the same in all runs" in table([Row("a", (1.0,) * 8)], [], 8)
    assert "in 8 runs and more" in table([], [], 3)


def test_the_json_has_each_value_and_the_states() -> None:
    (row,) = as_json([Row("rate", (1.0, None, 3.0), "Mbit/s")])
    assert row == {"name": "rate", "unit": "Mbit/s", "median": 2.0, "range": [1.0, 3.0],
                   "each": [1.0, None, 3.0], "states": []}


def test_a_name_from_a_script_is_printed_without_invisible_characters() -> None:
    assert "\x1b" not in table([], line_rows([["\x1b[31m1"], ["\x1b[31m2"]]), 2)


# The runs of --repeat -----------------------------------------------------------------

Answer = Callable[[int, Any], int]  # (seed, watcher of the run) → the run's exit status


@pytest.fixture
def runs_as(monkeypatch: pytest.MonkeyPatch) -> Callable[[Answer], list[CommandRequest]]:
    """Lets runs end without a guest: each prints a rate, and has the status of a function.

    The function that comes back takes that function, and returns the list of requests to come.
    """
    def use(answer: Answer) -> list[CommandRequest]:
        called: list[CommandRequest] = []

        def run(request: CommandRequest, into: Path, watcher: Any, kernel: Path) -> Result:
            called.append(request)
            status = answer(request.seed, watcher)
            output = into / "output.txt"
            output.write_text(f"      0.001000 out rate {request.seed * 1.5} Mbit/s\n")
            return Result(status, output, into / "files", 0, None, 1.0, 1.0, (), 0, True, (), 0)
        monkeypatch.setattr(vtime, "run", run)
        monkeypatch.setattr(repeated, "interrupt_on", lambda *numbers, by: None)
        monkeypatch.setattr(records, "made_from", lambda kernel: {})
        return called
    return use


def status_of(folder: Path, *flags: str) -> int:
    """The exit status of a command with these flags."""
    line = command_line.parse([*flags, "--results", str(folder), "--", "true"])
    return repeated.run(line, Path("kernel"))


def stored_in(folder: Path) -> dict[str, Any]:
    """The spread.json of the only command in a folder."""
    (path,) = folder.glob("commands/*/spread.json")
    stored: dict[str, Any] = json.loads(path.read_text())
    return stored


def test_each_run_has_another_seed_and_the_noise_of_a_machine(
        tmp_path: Path, runs_as: Callable[[Answer], list[CommandRequest]],
        capsys: pytest.CaptureFixture[str]) -> None:
    called = runs_as(lambda seed, watcher: 0)
    assert status_of(tmp_path, "--repeat", "3", "--seed", "5", "--packet-cost", "0") == 0
    assert [request.seed for request in called] == [5, 6, 7]
    assert all(request.link_times == LinkTimes(0, 1000, 1000) for request in called)
    printed = capsys.readouterr()
    assert "rate _ Mbit/s\n    median 9, range 7.5–10.5; each: 7.5 9 10.5\n" in printed.out
    assert "run 3 of 3: seed 7, status 0" in printed.err
    assert stored_in(tmp_path)["seeds"] == [5, 6, 7]


def test_the_status_is_that_of_the_first_run_that_failed(
        tmp_path: Path, runs_as: Callable[[Answer], list[CommandRequest]],
        capsys: pytest.CaptureFixture[str]) -> None:
    runs_as(lambda seed, watcher: {2: 9, 3: 4}.get(seed, 0))
    assert status_of(tmp_path, "--repeat", "4", "--jobs", "2") == 9
    assert ("run 2 (seed 2) ended with status 9; 2 of 4 did not end with 0"
            in capsys.readouterr().err)
    assert stored_in(tmp_path)["status"] == [0, 9, 4, 0]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, INTERRUPTED),
                                                (signal.SIGTERM, 143)])
def test_a_signal_keeps_the_runs_that_have_ended(
        number: int, status: int, tmp_path: Path,
        runs_as: Callable[[Answer], list[CommandRequest]],
        capsys: pytest.CaptureFixture[str]) -> None:
    def answer(seed: int, watcher: Any) -> int:
        if seed == 3:
            watcher.interrupt(number, None)
        return 0
    called = runs_as(answer)
    assert status_of(tmp_path, "--repeat", "9") == status
    assert len(called) == 3 and stored_in(tmp_path)["seeds"] == [1, 2]
    assert "stopped: 2 of 9 runs had ended" in capsys.readouterr().err


def test_a_signal_stops_the_guests_that_run(
        tmp_path: Path, runs_as: Callable[[Answer], list[CommandRequest]]) -> None:
    class Guest:
        stopped: tuple[int, str] | None = None

        def stop_soon(self, status: int, why: str) -> None:
            self.stopped = status, why

    before_signal, after_signal = Guest(), Guest()

    def answer(seed: int, watcher: Any) -> int:
        watcher.begin(before_signal)
        watcher.interrupt(signal.SIGINT, None)
        watcher.begin(after_signal)
        return INTERRUPTED

    runs_as(answer)
    assert status_of(tmp_path, "--repeat", "2") == INTERRUPTED
    assert before_signal.stopped == after_signal.stopped == (INTERRUPTED, "stopped")


def test_an_error_of_a_run_ends_the_command_and_keeps_the_earlier_runs(
        tmp_path: Path, runs_as: Callable[[Answer], list[CommandRequest]]) -> None:
    def answer(seed: int, watcher: Any) -> int:
        if seed == 3:
            raise FirstFlightError("the disk is full")
        return 0
    runs_as(answer)
    with pytest.raises(FirstFlightError, match="the disk is full"):
        status_of(tmp_path, "--repeat", "5")
    assert stored_in(tmp_path)["seeds"] == [1, 2]


def test_a_command_fails_where_none_of_its_runs_has_ended(
        tmp_path: Path, runs_as: Callable[[Answer], list[CommandRequest]],
        capsys: pytest.CaptureFixture[str]) -> None:
    runs_as(lambda seed, watcher: watcher.stop(FAILED) or 0)
    assert status_of(tmp_path, "--repeat", "2") == FAILED
    assert "no run has ended" in capsys.readouterr().err


def run_with(number: int, *conversations: Conversation) -> Run:
    """A run with these connections: name, Mbit/s, retransmitted segments, whether it is small."""
    result = Result(0, Path(), Path(), 0, None, 1.0, 1.0, (), 0, True, (), 0)
    return Run(number, number, result, (), conversations)


def test_connections_of_one_name_are_compared_and_small_ones_are_not() -> None:
    rows = connection_rows([
        run_with(1, Conversation("a → b:80 (1)", 0.1, 0, True),
                 Conversation("a → b:80 (2)", 9.5, 3, False)),
        run_with(2, Conversation("a → b:80 (1)", 0.2, 0, True),
                 Conversation("a → b:80 (2)", 8.5, 7, False)),
        run_with(3, Conversation("a → b:80 (1)", 0.2, 0, True))])
    assert [(row.name, row.values) for row in rows] == [
        ("a → b:80 (2): goodput", (9.5, 8.5, None)),
        ("a → b:80 (2): retransmitted segments", (3, 7, None))]
