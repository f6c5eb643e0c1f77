"""Refuses words and flags of a command line that do not go together, before anything is measured.

Each function ends the program with a line that says what to write instead (argparse's error).
"""

from __future__ import annotations

import argparse
import itertools
import os
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

from firstflight.base import argument_types, reading
from firstflight.base.parser import Parser
from firstflight.base.typed import SUFFIXES
from firstflight.base.words import nearest
from firstflight.commands.engines import congestion_controls
from firstflight.commands.export import NAME, STDOUT
from firstflight.commands.request import Request
from firstflight.commands.table import QUESTIONS
from firstflight.findings.quantities import FLAGS
from firstflight.runs import scenario_file

# The flags to which a list without a flag may belong, the likeliest first.
LIKELY_FLAGS = ("--iw", "--rtt", "--bw", "--size", "--loss")


def check_names(parser: Parser, names: Sequence[str], argv: Sequence[str]) -> None:
    """Refuse a value, or the name of a flag without its dashes, where a scenario is expected.

    names: what was typed as names of scenarios.
    """
    list_flags = {quantity.flag for quantity in FLAGS.values()}
    units = {unit for suffixes in SUFFIXES.values() for unit in suffixes if unit}
    for name in names:
        if name in ("help", "list", "version"):
            parser.error(f"{name}: write --{name}")

        # The flag that stands before the name, and the values between the two.
        place = list(argv).index(name)
        before = next((word for word in reversed(argv[:place]) if word[:1] == "-"), "")
        flag, _, value = before.partition("=")
        first_value = list(argv).index(before) + 1 if before else place
        values = [value] if value else []
        values += argv[first_value:place]

        if name.lower() in units and values and values[-1][-1:].isdigit():
            parser.error(f"{name!r} stands apart from its number: write {flag} {values[-1]}{name}")

        if name[:1].isdigit() and not name.endswith(".toml"):
            after = itertools.takewhile(lambda word: word[:1].isdigit(), argv[place + 1:])
            listed = ",".join(word.strip(",") for word in (*values, name, *after))
            likely = (known for known in LIKELY_FLAGS if parser.accepts(known, listed))
            flag = flag or next(likely, LIKELY_FLAGS[0])
            parser.error(f"{name!r} does not belong to a flag: write a list with commas and"
                         f" without spaces, such as {flag} {listed}")

        listed = ",".join((*values, name))
        may_be_value = values and name not in scenario_file.names() and flag in list_flags
        if may_be_value and parser.accepts(flag, listed):
            parser.error(f"{name!r} is no scenario; as another value of {flag} write {flag}"
                         f" {listed}")

        word, equals, value = name.partition("=")
        if equals and word.isidentifier():
            instead = parser.replacement(f"--{word}", value)
            if instead:
                parser.error(f"{name}: write {instead}")


def check_command(parser: Parser, argv: Sequence[str]) -> None:
    """Refuse a command where a scenario is expected, before its flags are taken for ours."""
    word = argv[0] if argv and argv[0] not in scenario_file.names() else ""
    is_program = word[:1].isalpha() and shutil.which(word) is not None
    if word.endswith((".py", ".sh")) or is_program:
        parser.error(f"{word} is not a scenario; a command runs with -- before it: ./run.sh --"
                     f" {shlex.join(argv)}")


def check_together(parser: Parser, request: Request) -> None:
    """Refuse flags that do not go together."""
    for question in QUESTIONS:
        if why := question.check(request):
            parser.error(why)

    asks_question = bool(request.users or request.find_cliff or request.page)
    conditions = request.output.conditions
    if conditions and (request.find_cliff or request.compare):
        parser.error("--fail-if goes with scenarios, questions, --users and --probe; not with"
                     f" {'--find-cliff' if request.find_cliff else '--compare'}")
    if request.probe and (request.scenarios or request.overrides.given or asks_question):
        parser.error("--probe asks one server, and takes no scenario and no flag of a network")
    check_without_trials(parser, request)
    check_controls(parser, request)

    measuring = request.measuring
    if measuring.cluster and (measuring.engine == "host" or measuring.jobs):
        parser.error("--cluster goes without --engine host and --jobs: its workers measure in"
                     " guests, one for each thread")
    check_own_server(parser, request)

    if (request.one_in or request.overrides.sample) and not request.scenarios:
        parser.error("--sample goes with a scenario, such as dukkipati2010 --sample full or"
                     " map_of_windows --sample 1/16")
    if request.name and (request.users or request.find_cliff or not request.own):
        parser.error("--name names a question of your own; a scenario has its name")
    check_exports(parser, request)


def check_without_trials(parser: Parser, request: Request) -> None:
    """Refuse a command that measures nothing where something to measure is given, too."""
    commands = (("--list", request.list_words), ("--new", request.new), ("--check", request.check),
                ("--probe", request.probe), ("--compare", request.compare))
    given = [flag for flag, value in commands if value is not None]
    if not given:
        return

    command, *others = given
    page = "--page" if request.page and request.page.file else "--objects"
    questions = (("--users", request.users), ("--find-cliff", request.find_cliff),
                 (page, request.page))
    others += [flag for flag, question in questions if question is not None]
    if command != "--check":  # --check takes the flags that would go with the file
        others += request.overrides.given.values()
    if command != "--list":  # the words that --list looks for are parsed as scenarios
        others += request.scenarios

    for other in others:
        parser.error(f"{command} measures nothing, and goes without {other}")


def check_controls(parser: Parser, request: Request) -> None:
    """Refuse a congestion control that the guest's kernel lacks, before a guest boots."""
    # Which controls this machine's kernel has is not known, nor which a kernel of --kernel has.
    lists = request.overrides.lists
    is_unknown = request.measuring.engine == "host" or lists.get("kernel")
    known = [] if is_unknown else congestion_controls()
    for name in lists.get("congestion_control", ()):
        if known and name not in known:
            parser.error(f"--cc: the guest's kernel has no {name!r}"
                         f"{nearest(name, known)}; it has {', '.join(known)}")


def check_own_server(parser: Parser, request: Request) -> None:
    """Refuse flags of the user's own server that do not go together."""
    own_server = request.own_server
    if not own_server.given:
        return
    if own_server.command is None:
        parser.error("--server-folder, --server-ready, --url-path, --ca and --server-name go only"
                     " with --server-command COMMAND")
    if request.users or request.measuring.cluster:
        parser.error("--server-command: a server of your own is measured on this machine, without"
                     " --users and --cluster")
    for folder in own_server.folders:
        if not os.path.isdir(folder):  # does not raise for a name that is too long
            parser.error(f"--server-folder: {folder} is not a folder")
    if own_server.ca and not is_certificate(own_server.ca):
        parser.error(f"--ca: {own_server.ca} is not a file with a certificate in PEM")


def check_exports(parser: Parser, request: Request) -> None:
    """Refuse an export that could not be written."""
    exports = request.output.exports
    places = [place for _, place in exports]
    for form, place in exports:
        if form not in argument_types.EXPORTS:
            parser.error(f"--export: {form!r} is none of {', '.join(argument_types.EXPORTS)}")
        if place == STDOUT:
            continue
        try:
            argument_types.output_file(place)
        except argparse.ArgumentTypeError as error:
            parser.error(f"--export: {error}")
    if len(set(places)) < len(places):
        parser.error("--export: two formats go to one file; give each a file of its own")

    count = len(request.scenarios)
    is_one_report = (count == 1 or request.own or request.probe or request.compare
                     or request.users or request.find_cliff)
    if not is_one_report and any(NAME not in Path(place).name for place in places):
        parser.error(f"--export: {count or 'the default'} scenarios are"
                     f" measured: write {NAME} into the file's name, as --export json"
                     f" 'findings-{NAME}.json'")


def is_certificate(path: Path) -> bool:
    """Whether a file can be read, and has a certificate in PEM."""
    try:
        return b"-----BEGIN CERTIFICATE-----" in reading.content(path)
    except OSError:
        return False
