"""The command line of run.sh: its flags. commands.together says which go together."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

from firstflight.base import PROJECT, argument_types
from firstflight.base.argument_types import argument, nonempty, positive_number, whole_number
from firstflight.base.parser import Parser
from firstflight.base.removed import REMOVED
from firstflight.commands import (check_scenario, cliff, compare_runs, conditions, list_scenarios,
                                  new_scenario, page, probe, run, users)
from firstflight.commands.from_flags import request_of, unaccompanied
from firstflight.commands.help_texts import EPILOG, EXAMPLES, SHORT, SYNONYMS
from firstflight.commands.request import Request
from firstflight.commands.together import check_command, check_names, check_together
from firstflight.findings.quantities import FLAGS
from firstflight.runs import cluster, scenario_file
from firstflight.runs.captured import CAPTURES_KEPT

EXPLAINS = "_as_published"  # after the name of the scenario whose numbers it explains


def flags_of_commands() -> str:
    """The text of the flags that stand before `-- COMMAND`; they have a parser of their own."""
    # Imported only here: nothing but help and some messages needs it.
    from firstflight.commands.virtual import command_line
    return command_line.SHORT


def parse(argv: Sequence[str]) -> Request:
    """Read a command line; exit with a line where one is wrong, or with the help."""
    parser = Parser(
        {**SYNONYMS, **REMOVED}, SHORT, examples=EXAMPLES, command_help=flags_of_commands,
        prog="run.sh",
        description="Measure what TCP's initial window does, on real Linux TCP.",
        epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    for command in (list_scenarios, new_scenario, check_scenario, run):
        command.add_flags(parser.add_argument)
    add_network(parser)
    add_own_server(parser)
    add_questions(parser)
    add_how(parser)

    check_command(parser, argv)
    arguments = parser.parse_args(argv)
    check_names(parser, arguments.names, argv)
    scenarios = [*arguments.names, *arguments.scenario]
    if arguments.as_published:
        scenarios = as_published(scenarios, parser)
    if why := unaccompanied(arguments):
        parser.error(why)

    request = request_of(arguments, scenarios)
    check_together(parser, request)
    if not request.scenarios and not request.own:
        request = replace(request, scenarios=run.DEFAULT_SCENARIOS)
    return request


def sample(word: str) -> str | int:
    """Reads "full", or N of "1/N"."""
    part = word.removeprefix("1/")
    if word != "full" and (part == word or not part.isdecimal() or not 2 <= int(part) <= 10_000):
        raise ValueError(f"'{word}' is not full, nor 1/N like 1/16")
    return word if word == "full" else int(part)


def as_published(names: Sequence[str], parser: Parser) -> list[str]:
    """The scenarios that explain these; an error of the parser's where there is none."""
    known = [name.removesuffix(EXPLAINS) for name in scenario_file.names()
             if name.endswith(EXPLAINS)]
    for name in names:
        if name.removesuffix(EXPLAINS) not in known:
            parser.error(f"--as-published: {name}: no scenario has its set-up as published; known:"
                         f" {', '.join(known)}")
    return [f"{name.removesuffix(EXPLAINS)}{EXPLAINS}" for name in names or known]


def add_network(parser: Parser) -> None:
    """The flags of a network, TCP and responses: what is measured."""
    add = parser.add_argument_group(
        "a question of your own: a network, TCP and responses",
        "Each takes a list, and every combination is measured. A flag that you leave out"
        " has\nthe default below, or the scenario's value if you name one; a flag that you give"
        " replaces that.").add_argument

    for quantity in FLAGS.values():
        add(quantity.flag, dest=quantity.name, metavar=quantity.metavar,
            action="extend", type=argument(quantity.listed), help=quantity.help)
    add("--repeat", type=positive_number, metavar="N",
        help="measure a setting N times (default 1, 100 with loss or jitter, 20 if a queue drops)")
    add("--client", choices=("curl", "wget", "libcurl", "chromium"),
        help="the fetching program (default libcurl, curl's library); with --page also chromium, a"
             " real browser (./install.sh --with-browser)")

    add("--sample", type=argument(sample), metavar="1/N|full",
        help="1/N: measure only one in N of a scenario's networks, or of its population's clients;"
             " full: measure the large sample of a population, for narrower intervals")
    add("--name", metavar="NAME", type=nonempty,
        help="the name of the folder of results and of the figures (default own)")


def add_own_server(parser: Parser) -> None:
    """Add the flags of the user's own server."""
    add = parser.add_argument_group(
        "a server of your own", "Started in the guest, which reads the machine's programs, writes"
        " to /tmp and /var in its memory and\nreaches no network; docs/QUESTIONS.md.").add_argument
    add("--server-command", metavar="COMMAND", type=nonempty,
        help="the server to measure: a command as in a shell, but run without one; {p} is the port"
             " that it has to listen on (8080, with TLS 8443), {address} the address, {chain} and"
             " {key} the files of --chain (default: --server)")
    add("--server-folder", metavar="DIR", type=argument_types.file_path, action="append",
        default=[], help="a folder that the server may read; it starts in the first; may be given"
                         " several times (default none)")
    add("--server-ready", metavar="PATH",
        help="the server is ready when it answers this path with status 200 (default: when it"
             " accepts connections)")
    add("--url-path", metavar="PATH",
        help="the path to fetch; {size} in it is --size (default /{size}); with --page FOLDER the"
             " page to load (default /)")
    add("--ca", type=argument_types.file_path, metavar="FILE",
        help="the root of the server's certificate, PEM: HTTPS (default: HTTP, HTTPS with --chain)")
    add("--server-name", metavar="NAME",
        help="the name in the server's certificate (default: its address, 10.0.0.2)")
    add("--allow-commands", action="store_true",
        help="let a scenario's file name such a command: read the file first (default: refused)")


def add_questions(parser: Parser) -> None:
    """The flags of a question about users, and of stored runs."""
    add = parser.add_argument_group("which window for my users, and stored runs").add_argument
    for question in (users, cliff, page, probe, compare_runs):
        question.add_flags(add)


def add_how(parser: Parser) -> None:
    """The flags of engine, run and output: how it is measured, and where results go."""
    add = parser.add_argument
    add("--engine", choices=("auto", "uml", "host"), default="auto",
        help="uml: guests in virtual time; host: this kernel in real time, as root;"
             " auto: uml where its kernel is built, else host (default auto)")
    add("--jobs", type=positive_number, metavar="N",
        help="guests side by side (default one a core, as far as memory goes); host runs alone")
    add("--cluster", metavar="ADDRESS", type=argument(cluster.address),
        help="measure on the machines of a Dask cluster, whose scheduler is at tls://host:8786"
             " (docs/INSTALL.md; default: here)")
    add("--seed", type=whole_number, default=1, metavar="N",
        help="seed of all random numbers (default 1; without random loss there are none)")
    add("--dry-run", action="store_true",
        help="print the trials, the commands and the expected time; measure nothing")
    add("--yes", action="store_true",
        help=f"allow more than {scenario_file.MANY_TRIALS:,} trials (default: refused)")
    add("--fresh", action="store_true", help="do not resume an interrupted run (default: resume)")
    add("--keep-captures", action="store_true",
        help=f"keep the packets of every trial as pcap files (default: of some {CAPTURES_KEPT}"
             " trials)")
    add("--export", nargs=2, action="append", default=[], metavar=("FORMAT", "FILE"),
        help="also write the findings: json, md or csv, with units, intervals and provenance; with"
             " - for FILE to standard output, and the text to standard error; {name} in FILE is the"
             " scenario's; repeatable (default none)")
    add("--fail-if", action="append", default=[], metavar="CONDITION",
        type=argument(conditions.read),
        help="end with status 5 where it holds, as 'total_ms(10) > 300' or 'total_ms(3) -"
             " total_ms(10) < 50': columns of trials.csv, their means over the verified trials, in"
             " parentheses the initial window and flags, (10, rtt=200); with --users also"
             " recommended_iw, with --probe iw; repeatable (default none)")
    add("--format", type=argument_types.picture_formats, default=("png",), metavar="png,svg,pdf",
        help="which files of each figure to write (default png)")
    add("--quiet", action="store_true",
        help="no progress, only results and what is wrong (default: a bar on a terminal, a line"
             " every 30 s elsewhere)")
    add("--full", action="store_true",
        help="print every table of a run (default: the answer, at most 20 rows, and the paths)")
    add("--no-reasons", action="store_true",
        help="measure no trial besides those requested (default: at most 40 more, without some of"
             " their limits, show why a window changes a time or does not)")
    add("--no-figures", action="store_true", help="draw nothing (default: draw whole scenarios)")
    add("--results", type=argument_types.output_folder, default=PROJECT / "results",
        metavar="DIR", help="where results go (default results)")
    add("--figures", type=argument_types.output_folder, default=PROJECT / "figures",
        metavar="DIR", help="where figures go (default figures)")
