"""The command lines, flags, modules and paths that documents tell people to type are accepted."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from firstflight.base import PROJECT, errors
from firstflight.commands import flags
from firstflight.commands.virtual import captured, command_line
from firstflight.runs import scenario_file
from tests.golden.test_links import DOCUMENTS, PROGRAMS

# CHANGELOG names what was removed.
NAMES = [str(path.relative_to(PROJECT)) for path in DOCUMENTS
         if "results" not in path.parts and path.name != "CHANGELOG.md"]
# Placeholders of documents, and the word that is read in place of each; None for no word.
MEANT = {"N": "3", "…": None, "SCENARIO": None}
# Flags of other programs: Mininet, podman, apt, Python's server, mypy and packetdrill.
OTHERS = {"--bind", "--build-arg", "--cap-drop", "--controller", "--fix-broken", "--ip_version",
          "--network", "--purge", "--strict", "--switch", "--ulimit", "--user", "--userns"}
FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]+")
PATH = re.compile(r"(?<![\w/.~-])[a-z_]+/[\w./*-]*")
OUTPUT = ("results/", "figures/", "files/")  # folders that a run writes
# Paths that were removed, which documents name with the commit that had them.
GONE = {"paper/fit", "benchmarks/outside/published_scripts.py"}
# Paths that are not the project's: an example's folder, packetdrill's and Mininet's repositories.
FOREIGN = {"docs/QUESTIONS.md": ("site/", "s/"), "docs/INSTALL.md": ("actions/",),
           "vtime/MININET.md": ("packetdrill/", "gtests/", "tcp/", *(
               f"{name}/" for name in (
                   "cubic", "cwnd_moderation", "epoll", "notsent_lowat", "fast_retransmit",
                   "fastopen", "ioctl", "shutdown", "ts_recent", "gro", "mtu_probe",
                   "packetdrill")))}


def text_of(name: str) -> str:
    """A document with each command on one line."""
    return re.sub(r"\\\n\s+", "", (PROJECT / name).read_text(encoding="utf-8"))


def code_of(text: str) -> Iterator[str]:
    """The pieces of code in a text: indented lines, lines of fenced blocks, texts in backquotes."""
    for block in re.findall(r"```.*?\n(.*?)```", text, re.DOTALL):
        yield from block.splitlines()
    outside = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    yield from re.findall(r"^ {4}(.*)$", outside, re.MULTILINE)
    yield from re.findall(r"`([^`\n]+)`", re.sub(r"^ {4}.*$", "", outside, flags=re.MULTILINE))


def lines_of(text: str, program: str) -> Iterator[list[str]]:
    """The words of each command line of a program, without the program and a remark."""
    for line in code_of(text):
        if typed := re.match(rf"(?:\$ )?{re.escape(program)}(?: |$)(.*)", line):
            words = shlex.split(re.sub(r"(  +[^\s-]|\s#).*$", "", typed[1]))
            yield [meant for word in words if (meant := MEANT.get(word, word)) is not None]


def read(words: list[str]) -> None:
    """Read the words as run.sh would. Raises SystemExit if it does not accept them."""
    if "--" in words:
        before, after = command_line.split_at_dashes(words)
        command_line.parse([*before, "--", *(after or ["true"])])
    elif "--report" in words:
        captured.parse(words)
    else:
        for name in flags.parse(words).scenarios:
            if not name.endswith(".toml") and name not in scenario_file.names():
                raise SystemExit(errors.USAGE)


def refused(text: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The answers of run.sh to those command lines of a text that it does not accept."""
    (folder / "mine").mkdir()
    (folder / "FOLDER").mkdir()
    (folder / "FOLDER" / "capture.pcapng").write_bytes(b"")
    answers = []
    for words in lines_of(text, "./run.sh"):
        try:
            read(words)
        except SystemExit as ended:
            if ended.code:
                answers.append(capsys.readouterr().err)
    return answers


@pytest.mark.parametrize("name", NAMES)
def test_run_sh_accepts_each_command_line_of_a_document(name: str, tmp_path: Path,
                                                        monkeypatch: pytest.MonkeyPatch,
                                                        capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert not refused(text_of(name), tmp_path, capsys)


@pytest.mark.parametrize("line",
                         ["--rtt 25 --wi 10", "--iw 10, --rtt 5", "zhao2018", "--sede 3 -- ls"])
def test_a_command_line_that_is_not_accepted_is_found(line: str, tmp_path: Path,
                                                      monkeypatch: pytest.MonkeyPatch,
                                                      capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(refused(f"    ./run.sh {line}   # so\n", tmp_path, capsys)) == 1


# Programs that documents, pages and programs name as ./PROGRAM --------------------------

AS_COMMAND = re.compile(r"(?<![\w./])\./(\w+\.(?:py|sh))\b")


def test_each_program_that_is_named_as_a_command_is_executable() -> None:
    texts = [*DOCUMENTS, *PROGRAMS, *PROJECT.glob("docs/templates/*"),
             *PROJECT.glob("firstflight/findings/render/*.j2")]
    named = {name for path in texts for name in AS_COMMAND.findall(
        path.read_text(encoding="utf-8")) if (PROJECT / name).is_file()}
    assert named >= {"run.sh", "install.sh", "test.sh", "plot.py", "topo.py", "server.py"}
    assert not [name for name in named if not os.access(PROJECT / name, os.X_OK)]


@pytest.fixture(name="known", scope="module")
def _known() -> set[str]:
    """The flags of every program of the project, by its own help or its source."""
    texts = []
    for command in ("./run.sh --help all", "./install.sh --help", "./topo.py --help",
                    "/usr/bin/python3 docs/update.py --help"):
        done = subprocess.run(command.split(), cwd=PROJECT, stdout=subprocess.PIPE, text=True,
                              check=True)
        texts.append(done.stdout)
    for folder in ("benchmarks", "paper"):
        texts += [path.read_text(encoding="utf-8")
                  for path in (PROJECT / folder).glob("**/*.py")]
    return {*OTHERS, *FLAG.findall("\n".join(texts))}


def find_unknown_flags(text: str, known: set[str]) -> set[str]:
    """The flags of a text that no program has. known: the flags of all programs."""
    return {flag for line in code_of(text) if not line.startswith(("podman ", "docker ", "dask-"))
            for flag in FLAG.findall(line.partition(" -- ")[0])} - known


@pytest.mark.parametrize("name", NAMES)
def test_each_flag_in_a_document_is_one_of_a_program(name: str, known: set[str]) -> None:
    assert not find_unknown_flags(text_of(name), known)


def test_a_flag_that_no_program_has_is_found(known: set[str]) -> None:
    text = "`--packet-cots 0`, and `./run.sh --rtt 5`\n"
    assert find_unknown_flags(text, known) == {"--packet-cots"}


def find_missing_paths(name: str, text: str) -> set[str]:
    """The paths of a page's code that are not in the project."""
    paths = {path.rstrip("./") for line in code_of(text) if "://" not in line
             for path in PATH.findall(line) if not path.startswith(
                 (*OUTPUT, *FOREIGN.get(name, ())))}
    places = PROJECT, PROJECT / "firstflight", (PROJECT / name).parent
    return {path for path in paths - GONE if not any([*place.glob(path)] for place in places)}


@pytest.mark.parametrize("name", NAMES)
def test_each_path_in_a_document_exists(name: str) -> None:
    assert not find_missing_paths(name, text_of(name))


def test_a_path_that_does_not_exist_is_found() -> None:
    text = "`wire/deliveries` and `docs/update.py`, `vtime/kernel/tcp_*.c`\n"
    assert find_missing_paths("README.md", text) == {"wire/deliveries"}


@pytest.mark.parametrize("name", NAMES)
def test_each_module_in_a_document_exists(name: str) -> None:
    for line in code_of(text_of(name)):
        for module in re.findall(r"(?:-m |^)((?:benchmarks|tests|paper|firstflight)\.[\w.]+)",
                                 line):
            assert find_spec(module), module
