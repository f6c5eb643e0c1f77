"""Scenario files of any kind: their head, their tables, their sysctls."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from firstflight.base.errors import USAGE, UsageError
from firstflight.runs import scenario_file, schema
from firstflight.runs.scenario_file import ScenarioFile, check_count
from firstflight.runs.schema import key
from firstflight.runs.sysctls import KNOWN, sysctls_of
from firstflight.testbed.network.kernel import TCP_SYSCTLS


TEXT = '# A claim.\ntitle = "t"\nsource = "s"\n'


def written(folder: Path, text: str) -> ScenarioFile:
    path = folder / "small.toml"
    path.write_text(text, encoding="utf-8")
    return scenario_file.read(path)


def test_the_head_of_every_scenario(tmp_path: Path) -> None:
    head = written(tmp_path, TEXT + 'note = "n"\n[sysctls]\n"net.ipv4.tcp_sack" = "0"\n').head()
    assert (head.name, head.title, head.source, head.claim, head.note) == (
        "small", "t", "s", "A claim.", "n")
    assert head.sysctls == {"net.ipv4.tcp_sack": "0"}
    assert head.text == (tmp_path / "small.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", scenario_file.names())
def test_every_scenario_has_a_head(name: str) -> None:
    head = scenario_file.find(name).head()
    assert head.title and head.source and head.claim.endswith(".")


def test_a_part_of_a_scenario_is_one_of_its_own(tmp_path: Path) -> None:
    whole = written(tmp_path, TEXT)
    part = whole.sampled(4)
    assert part.text == '# A claim.\n\none_in = 4\ntitle = "t"\nsource = "s"\n'
    assert part.raw == {"title": "t", "source": "s", "one_in": 4} and "one_in" not in whole.raw
    assert (part.name, part.where) == ("small_1in4", f"{whole.where}, one in 4")
    assert part.claim == whole.claim and not part.names_command
    assert written(tmp_path, f'{TEXT}[own_server]\ncommand = "x"\n').names_command


def test_unknown_scenarios_name_the_nearest(tmp_path: Path,
                                            monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError,
                       match="unknown scenario 'zhao2091'; did you mean zhao2019") as caught:
        scenario_file.find("zhao2091")
    assert caught.value.exit_status == USAGE
    (tmp_path / "within").mkdir()
    written(tmp_path, TEXT)
    monkeypatch.chdir(tmp_path / "within")  # a folder `../small` would be told of
    with pytest.raises(UsageError, match=r"unknown scenario '\.\./small'.*list shows all 0"):
        scenario_file.find("../small", tmp_path / "within")


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="scenarios/small.toml: cannot be read"):
        scenario_file.find("small", tmp_path)


def test_so_many_levels_and_no_more() -> None:
    for text in (f"x = {'[' * 20}{']' * 20}", f"x = {'{a=' * 19}[]{'}' * 19}",
                 f"x = {'[' * 19}1{']' * 19}"):
        scenario_file.parsed("x", text)
        with pytest.raises(UsageError, match="more than 20 deep in each other"):
            scenario_file.parsed("x", text.replace("x = ", "x = [") + "]")


def test_a_stored_run_is_told_by_the_file_of_its_name_as_it_is_today() -> None:
    today = scenario_file.find("zhao2019")
    for kept in ("", "# Another claim."):
        assert scenario_file.of_run("zhao2019", kept).text == today.text
    with pytest.raises(UsageError, match="unknown scenario 'mine'"):
        scenario_file.of_run("mine", "")


def test_a_run_has_a_most_of_trials() -> None:
    check_count(1_000_000, many=True)
    check_count(100_000)
    with pytest.raises(UsageError, match="100001 trials are requested, more than 100000; .*--yes"):
        check_count(100_001)
    with pytest.raises(UsageError, match="1000001 runs are requested, at most 1000000 fit"):
        check_count(1_000_001, "runs", many=True)


def test_a_file_of_ones_own_by_its_path(tmp_path: Path) -> None:
    own = tmp_path / "mine.toml"
    own.write_text(TEXT, encoding="utf-8")
    file = scenario_file.find(str(own))
    assert (file.name, file.text, file.where) == ("mine", TEXT, str(own))
    assert scenario_file.of_run("mine", TEXT).raw == file.raw  # where the file has gone
    assert scenario_file.of_run("mine", TEXT).where == "the scenario of the run, mine"


@pytest.mark.parametrize("text", [
    "{}", "title = 1\n{} = 2", "[{}]", "  [[ {} ]]", "x = {{{} = 1}}", "x = {{y = 1, {} = 2}}"])
@pytest.mark.parametrize("part", ["a", "a-1", '"a.b"', "'a'", r'"a\"b"', "a "])
def test_a_key_of_many_parts_is_refused_before_it_is_read(
        text: str, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """TOML readers take the square of their number: minutes for a file of 200 kB."""
    tomllib = pytest.importorskip("tomllib")
    monkeypatch.setattr(tomllib, "loads", lambda _: pytest.fail("it is read"))
    with pytest.raises(UsageError, match="more than 20 deep in each other"):
        scenario_file.parsed("long", text.format(".".join([part] * 60_000)))


def test_what_only_looks_like_a_long_key_is_read() -> None:
    text = f'note = "{".".join("abcdefghijklmnopqrstuvwxyz")}"\nnumber = [1.5, 2.5]\na.b.c = 1\n'
    assert scenario_file.parsed("short", text).raw["a"] == {"b": {"c": 1}}


def test_both_kinds_of_container_engines_leave_out_the_same() -> None:
    project = scenario_file.SCENARIOS.parent
    assert (project / ".dockerignore").read_bytes() == (project / ".containerignore").read_bytes()


# Tables read as dataclasses -----------------------------------------------------------

@dataclass(frozen=True)
class Example:
    """One field of each sort."""

    name: str = key(reader=schema.file_name)
    rtt_ms: tuple[float, ...] = key()
    initcwnd: int = key()
    kind: Literal["plain", "fancy"] = "plain"
    warm: bool = False
    baseline: int | None = key(None, quantity="initcwnd")
    loss: tuple[float, ...] = key((0.0,), name="loss_percent", reader=schema.one_or_more(
        schema.number("loss_percent")))
    by: str = "rtt_ms"
    values: tuple[float, ...] = key((), quantity_in="by")
    labels: tuple[str, ...] = ()
    place: int = key(0, absent=True)

    def check(self, where: str) -> None:
        if self.baseline == self.initcwnd:
            raise UsageError(f"{where}: compares {self.initcwnd} with itself")


LEAST: dict[str, Any] = {"name": "a", "rtt_ms": [20, 50], "initcwnd": 10}


def test_a_table_becomes_the_dataclass() -> None:
    made = schema.read(Example, LEAST, "here")
    assert made == Example("a", (20.0, 50.0), 10)
    made = schema.read(Example, {
        **LEAST, "kind": "fancy", "warm": True, "baseline": 3, "loss_percent": 2,
        "by": "initcwnd", "values": [3, 10], "labels": ["x"]}, "here",
        place=7)
    assert made == Example("a", (20.0, 50.0), 10, "fancy", True, 3, (2.0,), "initcwnd", (3, 10),
                           ("x",), 7)


def test_the_class_is_the_list_of_keys() -> None:
    assert schema.keys_of(Example) == (
        "name", "rtt_ms", "initcwnd", "kind", "warm", "baseline", "loss_percent", "by", "values",
        "labels")


@pytest.mark.parametrize(("change", "words"), [
    ({"initcwmd": 3}, "here: unknown key 'initcwmd' (did you mean 'initcwnd'?); known: name, "),
    ({"place": 3}, "here: unknown key 'place'"),
    ({"loss": 3}, "here: unknown key 'loss'"),
    ({"name": 3}, "here: name has to be a string, it is 3"),
    ({"name": "../a"}, "here: name becomes a file name: a-z, 0-9 and _ only"),
    ({"rtt_ms": 20}, "here: rtt_ms: has to be a list of numbers, it is 20"),
    ({"rtt_ms": []}, "here: rtt_ms: has to be a list of numbers, it is []"),
    ({"rtt_ms": [20, 20.0]}, "here: rtt_ms: has a value twice"),
    ({"rtt_ms": [20, -1]}, "here: rtt_ms: an RTT of -1 ms is out of range"),
    ({"initcwnd": "3"}, "here: initcwnd: '3' is not a number"),
    ({"initcwnd": 3.5}, "here: initcwnd: 3.5 is not a whole number"),
    ({"kind": "fanci"}, "here: kind: unknown 'fanci' (did you mean 'fancy'?); known: plain,"),
    ({"warm": 1}, "here: warm has to be true or false, it is 1"),
    ({"baseline": 0}, "here: baseline: an initial window of 0 segments"),
    ({"baseline": 10}, "here: compares 10 with itself"),
    ({"loss_percent": [0, 101]}, "here: loss_percent: a loss rate of 101 %"),
    ({"by": "initcwnd", "values": [0]}, "here: values: an initial window of 0 segments"),
    ({"labels": [1]}, "here: labels has to be a string, it is 1"),
])
def test_a_fault_names_table_and_key(change: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        schema.read(Example, {**LEAST, **change}, "here")
    assert str(caught.value).startswith(words) and "\n" not in str(caught.value)


@pytest.mark.parametrize("name", LEAST)
def test_a_required_key_is_missed(name: str) -> None:
    with pytest.raises(UsageError, match=f"^here: {name} is missing$"):
        schema.read(Example, {key: value for key, value in LEAST.items() if key != name}, "here")


def test_tables_have_defaults_and_names() -> None:
    raw = {"net": [{"name": "a"}, {"name": "b", "initcwnd": 3}]}
    first, second = schema.read_tables(Example, raw, "net", "file",
                                       defaults={"rtt_ms": [1], "initcwnd": 10})
    assert (first.initcwnd, second.initcwnd) == (10, 3)
    assert schema.read_tables(Example, {}, "net", "file") == ()


@pytest.mark.parametrize(("tables", "words"), [
    ([LEAST, LEAST], 'file: [[net]] "a": there are two of them'),
    ([{"name": 3}], "file: [[net]] 1: name has to be a string"),
    ([{**LEAST, "colour": 1}], "file: [[net]] \"a\": unknown key 'colour'"),
    ({"a": 1}, "file: net has to be tables, [[net]]"),
    ([1], "file: net has to be tables, [[net]]"),
])
def test_faults_of_tables(tables: Any, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        schema.read_tables(Example, {"net": tables}, "net", "file")
    assert str(caught.value).startswith(words)


def test_a_table_that_is_none() -> None:
    assert schema.table({}, "defaults", "file") == {}
    with pytest.raises(UsageError, match=r"file: defaults has to be a table, \[defaults\]"):
        schema.table({"defaults": [1]}, "defaults", "file")


def test_lists_may_repeat_or_be_empty_where_that_is_said() -> None:
    share = schema.number("shares_percent")
    assert schema.values(share, distinct=False)([50, 50], "here") == (50, 50)
    assert schema.values(share, empty=True)([], "here") == ()


@pytest.mark.parametrize("name", ["", "cu bic", "; rm", "a" * 16, 3])
def test_what_no_algorithm_is_called(name: Any) -> None:
    with pytest.raises(UsageError, match="here: .* is not the name of an algorithm"):
        schema.number("congestion_control")(name, "here")


# Sysctls ------------------------------------------------------------------------------

def sysctl_read(key: str, value: object, one_word: bool = False) -> dict[str, str]:
    return sysctls_of({"sysctls": {key: value}}, "here", one_word)


def test_numbers_and_words_are_taken() -> None:
    for value in ("0", "-1", "1 2 3", "cubic", "0,5", "01234567-89abcdef-01234567-89abcdef"):
        assert sysctl_read("net.ipv4.tcp_sack", value) == {"net.ipv4.tcp_sack": value}
    assert sysctl_read("net.core.somaxconn", "128")
    assert sysctls_of({}, "here") == {}


def test_all_that_is_pinned_may_be_set_otherwise() -> None:
    assert set(TCP_SYSCTLS) <= KNOWN


def test_a_value_of_one_word() -> None:
    assert sysctl_read("net.ipv4.tcp_rmem", "1 2 3")
    with pytest.raises(UsageError, match="here: .*tcp_rmem = '1 2 3' is not a number or a word"):
        sysctl_read("net.ipv4.tcp_rmem", "1 2 3", one_word=True)
