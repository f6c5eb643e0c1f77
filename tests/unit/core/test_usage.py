"""What no machine could do is status 2 and one line, before anything runs or is made."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import experiment
import plot
from docs import update
from firstflight.base.errors import MESSAGE_CHARACTERS, USAGE, FirstFlightError

LONG, LONGER = "x" * 300, "/".join(["d" * 200] * 30)  # a name, and a path, that none can have
PATHS = ("", LONG, LONGER, "a\0b")
# What comes behind a flag that takes a path, by the flag; {} is the path.
TAKES_PATH = {
    "run.sh": ("--results={} --rtt 5", "--figures={} --rtt 5", "--compare {} {}", "--users={}",
               "--check={}", "--new={}", "--export json {} --rtt 5", "--cluster={} --rtt 5",
               "--ca={} --server-command x --rtt 5", "--server-folder={} --server-command x",
               "--scenario {}", "--report={}", "--readable={} -- true",
               "--results={} -- true"),
    "plot.py": ("--run={}", "--results={}", "--figures={}", "--scenario {}"),
    "docs/update.py": ("--run={}",)}
MAINS: dict[str, Callable[[Sequence[str]], int]] = {
    "run.sh": experiment.main, "plot.py": plot.main, "docs/update.py": update.main}
# Others, each by itself; {file} is a file, {folder} a folder.
ALONE = (
    "--readable / -- true", "--readable /proc -- true", "--readable /dev -- true",
    "--readable /sys -- true", "--readable /run -- true", "--readable /usr/../ -- true",
    "--readable /dev/null -- true", "--readable /proc/self -- true", "--readable /tmp -- true",
    "--readable /usr -- true", "--readable /bin -- true",
    "--readable /home/.. -- true", "--packetdrill", "--packetdrill one.pkt",
    "--results {file} -- true", "--results {file} --rtt 5", "--figures {file} --rtt 5",
    "--results {file}/below --rtt 5",
    "--report {folder}", "--report {file}", "--compare {folder} {file}", "--compare {folder}",
    "--users {folder}", "--users /dev/null", "--check {folder}", "--new a/b", "--new ..",
    "--export json {folder} --rtt 5", "--export json {file}/x --rtt 5", "--export yaml f --rtt 5",
    "--cluster \x01 --rtt 5", "--cluster tls:// --rtt 5",
    "--cluster tls://a\nb:1 --rtt 5", "--cluster \udcff --rtt 5", "--cluster local:0 --rtt 5",
    "--cluster local:x --rtt 5", "--cluster nowhere.json --rtt 5", "--cluster ftp://a:1 --rtt 5",
    "--cluster tls://a:99999 --rtt 5", "--cluster {folder} --rtt 5",
    "--env = -- true", "--env NO_SUCH_VARIABLE -- true", "--env A-B=1 -- true",
    "--timeout 1e300 -- true",
    "--limit 1e300 -- true", "--capture 0 -- true", "--seed 9223372036854775808 -- true",
    "--rtt 5 --loss 1..2:0", "--new=--", "--results=-- --rtt 5",
    "--timeout=-- -- true", "--probe ''", "--probe http://", "--probe http://a~b/",
    "--probe http://a\0b/", "--probe http://\udcff/",
    "--probe http://a:99999/", "--probe {file}", "--ca {folder} --server-command x --rtt 5",
    "--ca {file} --server-command x --rtt 5", "--server-folder {file} --server-command x",
    "--name '' --rtt 5", "--name a/b --rtt 5", "--name ../a --rtt 5")


@pytest.fixture(name="here")
def folder_to_start_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "one.pkt").write_text("0 `true`\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")  # what would run is not found
    return tmp_path


def words_of(line: str, **places: str) -> list[str]:
    return [("" if word == "''" else word.replace("~", " ")).replace("{file}", "file").replace("{folder}", "folder")
            .replace("{}", places.get("path", "{}")) for word in line.split(" ")]


def refused(program: str, words: Sequence[str], here: Path,
            capsys: pytest.CaptureFixture[str]) -> None:
    """Let a program end with status 2 and a line, and nothing new in the folder."""
    before = sorted(here.rglob("*"))
    if program == "run.sh" and "--rtt" in words:
        words = [*words, "--dry-run"]  # which measures nothing, whatever is wrong
    try:
        status: object = MAINS[program](words)
        said = capsys.readouterr().err
    except SystemExit as ended:
        status, said = ended.code, capsys.readouterr().err
    except FirstFlightError as error:
        status, said = error.exit_status, f"{error}\n"
    assert status == USAGE, f"{status}: {said}"
    assert said[-1] == "\n" and said[:-1].isprintable(), said
    assert len(said) < MESSAGE_CHARACTERS + 50
    assert sorted(here.rglob("*")) == before


@pytest.mark.parametrize("path", PATHS, ids=("empty", "name", "path", "nul"))
@pytest.mark.parametrize(("program", "line"), [
    (program, line) for program, lines in TAKES_PATH.items() for line in lines])
def test_a_path_that_none_can_be(program: str, line: str, path: str, here: Path,
                                 capsys: pytest.CaptureFixture[str]) -> None:
    refused(program, words_of(line, path=path), here, capsys)


@pytest.mark.parametrize("line", ALONE, ids=range(len(ALONE)))
def test_what_no_flag_means(line: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused("run.sh", words_of(line), here, capsys)


@pytest.mark.parametrize("line", ["--readable folder -- true", "--readable file -- true"])
def test_what_may_be_read_is_accepted(line: str, here: Path) -> None:
    assert experiment.main([experiment.READ_ONLY, *line.split()]) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else for a while")
@pytest.mark.skipif(not all(folder.stat().st_mode & 0o001 for folder in Path(__file__).parents),
                    reason="the project is in a folder that nobody else may look into")
@pytest.mark.parametrize("line", [
    "--readable {} -- true", "--results {} -- true", "--report {}",
    "--results {} --rtt 5 --dry-run",
    "--export json {} --rtt 5 --dry-run", "--users {}", "--compare {} {}", "--check {}",
    "--scenario {}", "--ca {} --server-command x --rtt 5"])
def test_a_place_that_may_not_be_looked_at(line: str, here: Path,
                                           capsys: pytest.CaptureFixture[str]) -> None:
    (here / "closed").mkdir(mode=0o700)
    words = words_of(line, path=str(here / "closed" / "x.toml"))
    os.seteuid(65534)
    try:
        refused("run.sh", words, Path("/nowhere"), capsys)
    finally:
        os.seteuid(0)
