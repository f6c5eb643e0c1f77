"""Scenario files of any kind: head, tables, sysctls, published values and curves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy
import pytest

from firstflight.base.errors import UsageError
from firstflight.net.sysctls import KNOWN
from firstflight.runs import scenario_file, schema
from firstflight.runs.scenario_file import ScenarioFile, check_count
from firstflight.runs.schema import key
from firstflight.runs.sysctls import sysctls_of
from firstflight.scenario import curves, published
from firstflight.scenario.curves import CdfCurve, network_curve, size_curve
from firstflight.scenario.published import PAPER
from firstflight.testbed.network.tcp_sysctls import TCP_SYSCTLS, UNPINNED

TEXT = '# A claim.\ntitle = "t"\nsource = "s"\n'


def written(folder: Path, text: str) -> ScenarioFile:
    """A scenario file with this text, written to folder/small.toml and read."""
    path = folder / "small.toml"
    path.write_text(text, encoding="utf-8")
    return scenario_file.read(path)


def test_a_scenarios_head_has_its_texts_and_sysctls(tmp_path: Path) -> None:
    head = written(tmp_path, TEXT + 'note = "n"\n[sysctls]\n"net.ipv4.tcp_sack" = "0"\n').head()
    assert (head.name, head.title, head.source, head.claim, head.note) == (
        "small", "t", "s", "A claim.", "n")
    assert head.sysctls == {"net.ipv4.tcp_sack": "0"}
    assert head.text == (tmp_path / "small.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", scenario_file.names())
def test_every_scenario_has_a_head(name: str) -> None:
    head = scenario_file.find(name).head()
    assert head.title and head.source and head.claim.endswith(".")


def test_a_sampled_scenario_has_a_name_and_a_text_of_its_own(tmp_path: Path) -> None:
    whole = written(tmp_path, TEXT)
    sampled = whole.sampled(4)
    assert sampled.text == '# A claim.\n\none_in = 4\ntitle = "t"\nsource = "s"\n'
    assert sampled.raw == {"title": "t", "source": "s", "one_in": 4}
    assert "one_in" not in whole.raw
    assert (sampled.name, sampled.where) == ("small_1in4", f"{whole.where}, one in 4")
    assert sampled.claim == whole.claim and not sampled.names_command
    assert written(tmp_path, f'{TEXT}[own_server]\ncommand = "x"\n').names_command


def test_a_name_with_a_folder_above_finds_no_scenario(tmp_path: Path,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "within").mkdir()
    written(tmp_path, TEXT)
    monkeypatch.chdir(tmp_path / "within")  # from here ../small.toml would be found
    with pytest.raises(UsageError, match=r"unknown scenario '\.\./small'.*list shows all 0"):
        scenario_file.find("../small", tmp_path / "within")


def test_a_scenario_file_that_is_not_utf_8_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="scenarios/small.toml: cannot be read"):
        scenario_file.find("small", tmp_path)


def test_a_scenario_nested_deeper_than_20_levels_is_refused() -> None:
    for text in (f"x = {'[' * 20}{']' * 20}", f"x = {'{a=' * 19}[]{'}' * 19}",
                 f"x = {'[' * 19}1{']' * 19}"):
        scenario_file.parse("x", text)
        with pytest.raises(UsageError, match="more than 20 deep in each other"):
            scenario_file.parse("x", text.replace("x = ", "x = [") + "]")


def test_a_stored_run_of_a_project_scenario_has_the_scenarios_file_of_today() -> None:
    today = scenario_file.find("zhao2019")
    for stored_text in ("", "# Another claim."):
        assert scenario_file.of_run("zhao2019", stored_text).text == today.text
    with pytest.raises(UsageError, match="unknown scenario 'mine'"):
        scenario_file.of_run("mine", "")


def test_more_than_100000_trials_need_yes() -> None:
    check_count(1_000_000, many=True)
    check_count(100_000)
    with pytest.raises(UsageError, match="100001 trials are requested, more than 100000; .*--yes"):
        check_count(100_001)
    with pytest.raises(UsageError, match="1000001 runs are requested, at most 1000000 fit"):
        check_count(1_000_001, "runs", many=True)


def test_a_scenario_file_is_found_by_its_path(tmp_path: Path) -> None:
    own = tmp_path / "mine.toml"
    own.write_text(TEXT, encoding="utf-8")
    file = scenario_file.find(str(own))
    assert (file.name, file.text, file.where) == ("mine", TEXT, str(own))
    assert scenario_file.of_run("mine", TEXT).raw == file.raw  # read from the run's own text
    assert scenario_file.of_run("mine", TEXT).where == "the scenario of the run, mine"


@pytest.mark.parametrize("text", [
    "{}", "title = 1\n{} = 2", "[{}]", "  [[ {} ]]", "x = {{{} = 1}}", "x = {{y = 1, {} = 2}}"])
@pytest.mark.parametrize("part", ["a", "a-1", '"a.b"', "'a'", r'"a\"b"', "a "])
def test_a_key_of_many_parts_is_refused_before_it_is_read(
        text: str, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A TOML reader's time grows with the square of the parts: minutes for a file of 200 kB."""
    tomllib = pytest.importorskip("tomllib")
    monkeypatch.setattr(tomllib, "loads", lambda _: pytest.fail("it is read"))
    with pytest.raises(UsageError, match="more than 20 deep in each other"):
        scenario_file.parse("long", text.format(".".join([part] * 60_000)))


def test_a_text_that_looks_like_a_long_key_is_read() -> None:
    text = f'note = "{".".join("abcdefghijklmnopqrstuvwxyz")}"\nnumber = [1.5, 2.5]\na.b.c = 1\n'
    assert scenario_file.parse("short", text).raw["a"] == {"b": {"c": 1}}


def test_docker_and_podman_exclude_the_same_files() -> None:
    project = scenario_file.SCENARIOS.parent
    assert (project / ".dockerignore").read_bytes() == (project / ".containerignore").read_bytes()


# Tables read as dataclasses -----------------------------------------------------------

@dataclass(frozen=True)
class Example:
    """A table with a field of each sort."""

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


# The keys that Example requires.
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


@pytest.mark.parametrize(("change", "words"), [
    ({"initcwmd": 3}, "here: unknown key 'initcwmd' (did you mean 'initcwnd'?)"),
    ({"place": 3}, "here: unknown key 'place'"),
    ({"loss": 3}, "here: unknown key 'loss'"),
    ({"warm": 1}, "here: warm has to be true or false, it is 1"),
    ({"baseline": 10}, "here: compares 10 with itself"),
    ({"by": "initcwnd", "values": [0]}, "here: values: an initial window of 0 segments"),
    ({"labels": [1]}, "here: labels has to be a string, it is 1"),
])
def test_a_wrong_value_is_refused_with_its_table_and_key(change: dict[str, Any],
                                                         words: str) -> None:
    with pytest.raises(UsageError) as caught:
        schema.read(Example, {**LEAST, **change}, "here")
    assert str(caught.value).startswith(words) and "\n" not in str(caught.value)


def test_a_misspelt_key_is_answered_by_the_near_key_alone() -> None:
    with pytest.raises(UsageError, match=r"'initcwmd' \(did you mean 'initcwnd'\?\)$"):
        schema.read(Example, {**LEAST, "initcwmd": 3}, "here")


def test_each_table_of_a_list_overrides_the_defaults() -> None:
    raw = {"net": [{"name": "a"}, {"name": "b", "initcwnd": 3}]}
    first, second = schema.read_tables(Example, raw, "net", "file",
                                       defaults={"rtt_ms": [1], "initcwnd": 10})
    assert (first.initcwnd, second.initcwnd) == (10, 3)
    assert schema.read_tables(Example, {}, "net", "file") == ()


def test_a_key_that_has_to_be_a_table_and_is_none_is_refused() -> None:
    assert schema.table({}, "defaults", "file") == {}
    with pytest.raises(UsageError, match=r"file: defaults has to be a table, \[defaults\]"):
        schema.table({"defaults": [1]}, "defaults", "file")


def test_a_list_may_repeat_values_or_be_empty_only_where_its_reader_allows_it() -> None:
    share = schema.number("shares_percent")
    assert schema.values(share, distinct=False)([50, 50], "here") == (50, 50)
    assert schema.values(share, empty=True)([], "here") == ()


# Sysctls ------------------------------------------------------------------------------

def sysctl_read(key: str, value: object, one_word: bool = False) -> dict[str, str]:
    """The sysctls of a file that sets one. one_word: refuses several numbers."""
    return sysctls_of({"sysctls": {key: value}}, "here", one_word)


def test_a_sysctl_may_have_numbers_and_words() -> None:
    for value in ("0", "-1", "1 2 3", "cubic", "0,5", "01234567-89abcdef-01234567-89abcdef"):
        assert sysctl_read("net.ipv4.tcp_sack", value) == {"net.ipv4.tcp_sack": value}
    assert sysctl_read("net.core.somaxconn", "128")
    assert sysctls_of({}, "here") == {}


def test_each_known_sysctl_of_tcp_is_pinned_or_has_a_reason_why_not() -> None:
    assert {*TCP_SYSCTLS, *UNPINNED} == KNOWN
    assert TCP_SYSCTLS.keys().isdisjoint(UNPINNED) and all(UNPINNED.values())


def test_a_sysctl_of_several_numbers_is_refused_where_one_word_is_needed() -> None:
    assert sysctl_read("net.ipv4.tcp_rmem", "1 2 3")
    with pytest.raises(UsageError, match="here: .*tcp_rmem = '1 2 3' is not a number or a word"):
        sysctl_read("net.ipv4.tcp_rmem", "1 2 3", one_word=True)


# Published values and curves ----------------------------------------------------------

def test_files_of_published_values_are_read() -> None:
    rtt = published.buckets("paper_figure5.csv", "RTT")
    assert len(rtt) == 8 and rtt[">3000"].absolute == 3387.37
    assert {(bucket.error, bucket.error_points) for bucket in rtt.values()} == {(0, 0)}
    assert published.buckets("paper_figure6.csv")["56"].percent == 17.92
    assert published.buckets("paper_figure7.csv")["7"].responses_percent == 65.07
    assert len(published.fetches("zhao2019_raw.csv")) == 128


@pytest.mark.parametrize(("text", "words"), [
    ("a,b\n1,2\n", "has no column responses_percent"),
    ("bucket,responses_percent,absolute_ms,percent\n1,2,x,4\n", "absolute_ms 'x'"),
    ("bucket,responses_percent,absolute_ms,percent\n1,2\n", "absolute_ms ''"),
    ("# only a comment\n", "has no column"),
])
def test_a_damaged_file_of_published_values_is_refused_with_its_name(
        tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "p.csv").write_text(text)
    with pytest.raises(UsageError, match=f"paper/p.csv: .*{words}"):
        published.buckets("p.csv", folder=tmp_path)
    with pytest.raises(UsageError, match="none.csv: cannot be read"):
        published.fetches("none.csv", folder=tmp_path)
    with pytest.raises(UsageError, match="no panel 'RTTT'"):
        published.buckets("paper_figure5.csv", "RTTT")


@pytest.mark.parametrize("file", ["../README.md", "/etc/passwd", "..", "", "a\nb.csv"])
def test_a_file_of_published_values_outside_paper_is_refused(tmp_path: Path, file: str) -> None:
    (tmp_path / "paper").mkdir()
    (tmp_path / "README.md").write_text("initcwnd,rtt_ms,bandwidth_kbps,total_s\n3,20,1000,1\n")
    for read in (published.buckets, published.fetches, published.source):
        with pytest.raises(UsageError, match="published numbers: .* cannot be the name of a file"):
            read(file, folder=tmp_path / "paper")


def test_published_times_are_read_and_a_wrong_number_is_refused(tmp_path: Path) -> None:
    windows = published.buckets("paper_figure2.csv")
    assert windows["3"].level == 489.81 and windows["3"].absolute is None
    rows = published.buckets("marrama2012.csv", "FAST")
    assert (rows["100000"].absolute, rows["100000"].percent) == (None, 20)
    assert published.buckets("marrama2012.csv", "IW")["3"].error == 3
    assert published.source("marrama2012.csv").startswith("Marrama and Dubie 2012")
    (tmp_path / "p.csv").write_text("bucket,total_ms,percent\n1,x,\n")
    with pytest.raises(UsageError, match="total_ms 'x' is not a number"):
        published.buckets("p.csv", folder=tmp_path)


# Curves -------------------------------------------------------------------------------

def test_web_search_sizes_have_the_published_quantiles_and_mean() -> None:
    curve = size_curve("web_search")
    assert curve.quantile(numpy.array([0.1, 0.5, 0.9])) == pytest.approx([2600, 8830, 17000],
                                                                         rel=0.03)
    even = (numpy.arange(20_000) + 0.5) / 20_000
    assert curve.quantile(even).mean() == pytest.approx(10_500, rel=0.03)
    assert curve.at(curve.quantile(even)) == pytest.approx(numpy.maximum(even, curve.cdf[0]))


def test_an_unknown_series_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'web_search'"):
        size_curve("websearch")
    with pytest.raises(UsageError, match="has no series 'rtt_ms Avg'"):
        network_curve("rtt_ms", "Avg")


@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan"), 95])
def test_an_unknown_percentile_is_an_error(share: float) -> None:
    with pytest.raises(UsageError, match="^paper/paper_figure1_cdf.csv, web_search: a percentile"
                                         f" is a share between 0 and 1, not {share:g}$"):
        size_curve().quantile(share)


@pytest.mark.parametrize("values, cdf, message", [
    ((), (), "two points"), ((1.0, 3.0, 2.0), (0.1, 0.2, 0.3), "value 2 follows 3"),
    ((1.0, 2.0), (0.5, 0.4), "cdf 0.4 follows 0.5"), ((1.0, 2.0), (0.5, 1.4), "within 0 to 1"),
    ((1.0, 2.0, 3.0), (0.1, 0.5, 1.1), "from 0.1 to 1.1"), ((1.0, 2.0), (-0.1, 0.9), "within 0"),
    ((1.0, 2.0), (0.5, 0.5), "must rise"), ((1.0,), (0.5, 0.9), "found 1 and 2"),
    ((0.0, 2.0), (0.5, 0.9), "positive"), ((1.0, float("nan")), (0.5, 0.9), "not sorted")])
def test_a_curve_that_is_no_distribution_is_refused_with_the_reason(
        values: tuple[float, ...], cdf: tuple[float, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        CdfCurve("somewhere", values, cdf)


def test_a_missing_or_damaged_file_of_a_curve_is_refused_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="paper_figure1_cdf.csv: cannot be read"):
        size_curve(folder=tmp_path)
    text = (PAPER / "paper_figure1_cdf.csv").read_text(encoding="utf-8")
    (tmp_path / "paper_figure1_cdf.csv").write_text(text.replace("0.0198", "many", 1))
    with pytest.raises(UsageError, match="paper_figure1_cdf.csv.*many"):
        size_curve(folder=tmp_path)


def test_a_tail_is_continued_only_where_percentile_98_is_known() -> None:
    assert size_curve("top100_sites").cdf[-1] < 0.95
    beyond_50_segments = 1 - float(size_curve().at(numpy.array(50 * 1430.0)))
    assert beyond_50_segments == pytest.approx(0.0011, abs=0.0006)  # Figure 7: 0.11 %
    beyond_3_s = 1 - float(network_curve("rtt_ms", "AvgDC").at(numpy.array(3000.0)))
    assert beyond_3_s == pytest.approx(0.0008, abs=0.0006)  # Figure 5: 0.08 %


def test_a_tail_falls_as_the_percentiles_before_it_do() -> None:
    """The share above x falls as 1/x from 5 % at 10 to 1 % at 50, and on to nothing at 200."""
    values, cdf = (1.0, 10.0, 50.0, 60.0), (0.1, 0.95, 0.99, 1.0)
    made = CdfCurve("somewhere", values, cdf).continued(200.0)
    assert made.values[:3] == values[:3] and made.values[-1] == pytest.approx(200)
    assert made.cdf[:3] == cdf[:3] and made.cdf[-1] == pytest.approx(1.0) and len(made.cdf) == 35
    halfway = made.values[18]
    assert halfway == pytest.approx(50 * 2.0)  # points are spaced by factors
    above = 0.01 * (50 / halfway - 50 / 200) / (1 - 50 / 200)
    assert made.cdf[18] == pytest.approx(1 - above)


def test_a_tail_needs_one_percentile_before_it_and_the_last_may_be_98() -> None:
    made = CdfCurve("somewhere", (1.0, 10.0, 20.0), (0.0, 0.98, 1.0)).continued(200.0)
    assert made.values[:2] == (1.0, 10.0) and made.values[-1] == pytest.approx(200)


def test_the_curve_of_each_quantity_ends_at_its_own_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the change here both limits are the same number."""
    monkeypatch.setattr(curves, "BANDWIDTH_ENDS_KBPS", (9.6, 20_000.0))
    ends = {quantity: network_curve(quantity, "AvgDC").values[-1]
            for quantity in ("rtt_ms", "bandwidth_kbps")}
    assert ends == {"rtt_ms": 10_000.0, "bandwidth_kbps": pytest.approx(20_000.0)}


@pytest.mark.parametrize("values, cdf, highest", [
    ((1.0, 2.0), (0.98, 1.0), 9.0), ((1.0, 2.0, 3.0), (0.1, 0.97, 1.0), 9.0),
    ((1.0, 2.0, 3.0), (0.1, 1.0, 1.0), 9.0), ((1.0, 2.0, 3.0), (0.1, 0.99, 1.0), 2.0),
    ((2.0, 2.0, 3.0), (0.1, 0.99, 1.0), 9.0)])
def test_a_curve_that_ends_at_1_or_beyond_the_limit_is_not_continued(
        values: tuple[float, ...], cdf: tuple[float, ...], highest: float) -> None:
    curve = CdfCurve("somewhere", values, cdf)
    assert curve.continued(highest) is curve


def test_below_a_curve_there_is_nothing_and_beyond_it_its_last_share() -> None:
    curve = CdfCurve("somewhere", (10.0, 15.0, 20.0), (0.2, 0.5, 0.8))
    assert curve.at(numpy.array([5.0, 10.0, 15.0, 25.0])) == pytest.approx([0.0, 0.2, 0.5, 0.8])
    assert curve.quantile(numpy.array([0.0, 0.5, 1.0])) == pytest.approx([10.0, 15.0, 20.0])
    with pytest.raises(UsageError, match="somewhere: percentiles are shares"):
        curve.quantile(numpy.array([0.5, 1.5]))


def test_a_tail_is_the_same_on_every_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """numpy's powers differ in the last digit between processors. Drawn responses must not."""
    here = size_curve()
    geomspace = numpy.geomspace

    def on_another_processor(*requested: float) -> object:
        return numpy.nextafter(geomspace(*requested), numpy.inf)

    monkeypatch.setattr(numpy, "geomspace", on_another_processor)
    other = size_curve()
    assert (other.values, other.cdf) == (here.values, here.cdf)
