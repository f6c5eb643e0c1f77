"""Scenario files, whatever their kind: found, read, and what stands at their head."""

from __future__ import annotations

from pathlib import Path

import pytest

from firstflight.base.errors import USAGE, UsageError
from firstflight.runs import scenario_file
from firstflight.runs.scenario_file import ScenarioFile, check_count

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
    with pytest.raises(UsageError, match="unknown scenario 'zhao2091'; did you mean zhao2019") as caught:
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
