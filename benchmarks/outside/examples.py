"""Runs each command in docs/QUESTIONS.md and looks for the output that the document shows.

    /usr/bin/python3 -m benchmarks.outside.examples

The command has to print every indented line below it, except `…`, which stands for omitted lines.
Exit status: 1 where a line is missing.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import command
from firstflight.base import PROJECT
from firstflight.base.parser import Parser

QUESTIONS = PROJECT / "docs" / "QUESTIONS.md"
LEFT_OUT = "…"
PAGE_BYTES = 40_000  # of the page on the server that the document configures


def blocks(text: str) -> list[str]:
    """The indented parts of a document, each without its indentation."""
    parts = re.findall(r"(?:^    .*\n|^\n(?=    ))+", text, re.M)
    return [re.sub("(?m)^    ", "", block).strip("\n") for block in parts]


def examples(text: str) -> tuple[list[tuple[str, list[str]]], str, str]:
    """The commands with the lines that they have to print; a program; nginx's configuration.

    The program prints a log of users.
    """
    commands: list[tuple[str, list[str]]] = []
    program, configuration, is_run = "", "", False
    for block in blocks(re.sub(r"\\\n +", "", text)):
        lines = [line for line in block.splitlines() if line.strip() and line.strip() != LEFT_OUT]
        if lines[0].startswith("./run.sh "):
            commands.append((lines[0], lines[1:]))
            is_run = True
        elif lines[0].startswith("import "):
            program = block
        elif lines[0].startswith("daemon off"):
            configuration = block
        elif lines[0].startswith("$ "):  # a command that needs more than this project
            is_run = False
        elif is_run:
            commands[-1][1].extend(lines)
    return commands, program, configuration


def missing(output: str, lines: Sequence[str]) -> list[str]:
    """The lines that are not in the output; spaces at line ends do not count."""
    printed = {line.rstrip() for line in output.splitlines()}
    return [line for line in lines if line.rstrip() not in printed]


def main(argv: Sequence[str]) -> int:
    Parser(prog="examples", description=__doc__).parse_args(argv)
    commands, program, configuration = examples(QUESTIONS.read_text(encoding="utf-8"))
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        with contextlib.redirect_stdout(io.StringIO()) as users:
            exec(program, {})  # noqa: S102  our own document
        Path(folder, "mobile.csv").write_text(users.getvalue())
        site = Path(folder, "mine", "site")
        site.mkdir(parents=True)
        (site / "page.bin").write_bytes(bytes(PAGE_BYTES))
        (site.parent / "mine.conf").write_text(configuration)
        for typed, expected in commands:
            _, *words = shlex.split(typed)
            done = subprocess.run(
                [PROJECT / "run.sh", *words, "--results", folder, "--figures", folder, "--quiet"],
                cwd=folder, stdout=subprocess.PIPE, text=True, check=False,
                env={**os.environ, "COLUMNS": "116"})
            lost = missing(done.stdout, expected)
            wrong += bool(lost) or done.returncode != 0
            print(f"{'ok' if not lost else 'DIFFERS'}  status {done.returncode}  {typed}",
                  flush=True)
            for line in lost:
                print(f"    not there: {line}")
    print(f"{len(commands) - wrong} of {len(commands)} examples are as docs/QUESTIONS.md has them")
    return 1 if wrong else 0


if __name__ == "__main__":
    command.run("examples", main)
