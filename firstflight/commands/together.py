"""Which words and flags of a command line go together, told before anything is measured."""

from __future__ import annotations

import argparse
import itertools
import os
import shlex
import shutil
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from firstflight.base import reading
from firstflight.base.parser import Parser
from firstflight.base.typed import SUFFIXES
from firstflight.base.words import nearest
from firstflight.commands import export
from firstflight.commands.engines import congestion_controls
from firstflight.commands.overrides import overrides_of, own_server
from firstflight.commands.questions import PAGES, QUESTIONS
from firstflight.runs import scenario_file


def check_names(parser: Parser, names: Sequence[str], argv: Sequence[str]) -> None:
    """Exits with a line where a value, or a word for a flag, stands in a scenario's place."""
    units = {unit for suffixes in SUFFIXES.values() for unit in suffixes if unit}
    for name in names:
        place = list(argv).index(name)
        before = next((word for word in reversed(argv[:place]) if word[:1] == "-"), "")
        flag, _, value = before.partition("=")
        since = list(argv).index(before) + 1 if before else place
        values = [*filter(None, [value]), *argv[since:place]]
        if name in ("help", "list", "version"):
            parser.error(f"{name}: write --{name}")
        if name.lower() in units and values and values[-1][-1:].isdigit():
            parser.error(f"{name!r} stands apart from its number: write {flag} {values[-1]}{name}")
        if name[:1].isdigit() and not name.endswith(".toml"):
            behind = itertools.takewhile(lambda word: word[:1].isdigit(), argv[place + 1:])
            listed = ",".join(word.strip(",") for word in (*values, name, *behind))
            flag = flag or next((each for each in ("--iw", "--rtt", "--bw", "--size", "--loss")
                                 if parser.accepts(each, listed)), "--iw")
            parser.error(f"{name!r} does not belong to a flag: write a list with commas and"
                         f" without spaces, such as {flag} {listed}")
        word, equals, value = name.partition("=")
        if equals and word.isidentifier() and (advice := parser.advice(f"--{word}", value)):
            parser.error(f"{name}: write {advice}")


def check_command(parser: Parser, argv: Sequence[str]) -> None:
    """Exits with a line where a command stands in a scenario's place: its flags are not ours."""
    word = argv[0] if argv and argv[0] not in scenario_file.names() else ""
    if word.endswith((".py", ".sh")) or word[:1].isalpha() and shutil.which(word):
        parser.error(f"{word} is not a scenario; a command runs with -- before it: ./run.sh --"
                     f" {shlex.join(argv)}")


def check_together(parser: Parser, arguments: argparse.Namespace) -> None:
    """Exits with a line where flags do not go together."""
    given = overrides_of(arguments).given
    requested = [flag for flag in QUESTIONS if getattr(arguments, flag)]
    for module in dict.fromkeys(QUESTIONS.values()):
        if wrong := import_module(module).wrong(arguments, given, requested):
            parser.error(wrong)
    if arguments.fail_if and (arguments.find_cliff or arguments.compare):
        parser.error("--fail-if goes with scenarios, questions, --users and --probe; not with"
                     f" {'--find-cliff' if arguments.find_cliff else '--compare'}")
    if arguments.probe and (arguments.scenario or given or requested):
        parser.error("--probe asks one server, and takes no scenario and no flag of a network")
    check_controls(parser, arguments)
    if arguments.cluster and (arguments.engine == "host" or arguments.jobs):
        parser.error("--cluster goes without --engine host and --jobs: its workers measure in"
                     " guests, one for each thread")
    check_own_server(parser, arguments, requested)
    if arguments.sample and not arguments.scenario:
        parser.error("--sample goes with a scenario, such as dukkipati2010 --sample full or"
                     " map_of_windows --sample 1/16")
    if arguments.name and (set(requested) - PAGES or not arguments.own):
        parser.error("--name names a question of your own; a scenario has its name")
    export.refuse_wrong(parser, arguments)


def check_controls(parser: Parser, arguments: argparse.Namespace) -> None:
    """Exits with a line where the guest's kernel lacks a congestion control, before it boots."""
    # A kernel under a name may have been built with others.
    known = [] if arguments.engine == "host" or arguments.kernel else congestion_controls()
    for name in arguments.congestion_control or ():
        if known and name not in known:
            parser.error(f"--cc: the guest's kernel has no {name!r}"
                         f"{nearest(name, known)}; it has {', '.join(known)}")


def check_own_server(parser: Parser, arguments: argparse.Namespace,
                     questions: Sequence[str]) -> None:
    """Exits with a line where the flags of the user's own server do not go together."""
    requested = own_server(arguments)
    if not requested:
        return
    if "command" not in requested:
        parser.error("--server-folder, --server-ready, --url-path, --ca and --server-name go only"
                     " with --server-command COMMAND")
    if "users" in questions or arguments.cluster:
        parser.error("--server-command: a server of your own is measured on this machine, without"
                     " --users and --cluster")
    for folder in arguments.server_folder:
        if not os.path.isdir(folder):  # also for a name that is too long to be one
            parser.error(f"--server-folder: {folder} is not a folder")
    if arguments.ca and not is_certificate(arguments.ca):
        parser.error(f"--ca: {arguments.ca} is not a file with a certificate in PEM")


def is_certificate(path: Path) -> bool:
    try:
        return b"-----BEGIN CERTIFICATE-----" in reading.content(path)
    except OSError:
        return False
