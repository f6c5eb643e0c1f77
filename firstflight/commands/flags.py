"""The command line of run.sh: its flags. commands.together says which go together."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from importlib import import_module

from firstflight.base import PROJECT, argument_types
from firstflight.base.argument_types import nonempty, positive_number, whole_number
from firstflight.base.parser import Parser
from firstflight.base.quantity import Quantity
from firstflight.base.removed import REMOVED
from firstflight.commands import conditions
from firstflight.commands.help_texts import EPILOG, EXAMPLES, SHORT, SYNONYMS
from firstflight.commands.overrides import overrides_of
from firstflight.commands.questions import PAGES, QUESTIONS
from firstflight.commands.together import check_command, check_names, check_together
from firstflight.findings.quantities import FLAGS
from firstflight.runs import cluster, scenario_file
from firstflight.runs.captured import CAPTURES_KEPT

EXPLAINS = "_as_published"  # behind the name of the scenario whose numbers it explains
DEFAULT_SCENARIOS = ["zhao2019", "dukkipati2010"]


def flags_of_commands() -> str:
    """The text of the flags that stand before `-- COMMAND`; they have a parser of their own."""
    from firstflight.commands.virtual import command  # only where help or an answer needs it
    return command.SHORT


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = Parser(
        {**SYNONYMS, **REMOVED}, SHORT, examples=EXAMPLES, others=flags_of_commands, prog="run.sh",
        description="Measure what TCP's initial window does, on real Linux TCP.",
        epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
    add = parser.add_argument
    add("--list", action="store_true",
        help="list the scenarios with their claims; with words, those whose files contain them")
    add("names", nargs="*", metavar="SCENARIO", type=nonempty,
        help="what to measure: names of --list, or files of your own, path/to/my.toml"
             f" (default {' '.join(DEFAULT_SCENARIOS)}; with a flag of a network, TCP or a"
             " response a question of your own)")
    add("--new", metavar="NAME", type=nonempty,
        help="write NAME.toml here, a scenario with every key explained; it runs as it is")
    add("--check", metavar="FILE", type=nonempty,
        help="read a scenario, expand it and print how long it takes; measure nothing")
    add("--scenario", nargs="+", action="extend", metavar="SCENARIO", default=[], type=nonempty,
        help="what to measure, as without a flag")
    add("--as-published", action="store_true",
        help="measure published reproductions with the defects of their set-up switched on: the"
             " scenarios NAME_as_published (default: the clean run)")
    add_question(parser)
    add_own_server(parser)
    add_questions(parser)
    add_how(parser)
    check_command(parser, argv)
    arguments = parser.parse_args(argv)
    arguments.scenario = [*arguments.names, *arguments.scenario]
    check_names(parser, arguments.names, argv)
    if arguments.as_published:
        arguments.scenario = as_published(arguments.scenario, parser)
    arguments.own = is_own_question(arguments)
    check_together(parser, arguments)
    if not arguments.scenario and not arguments.own:
        arguments.scenario = DEFAULT_SCENARIOS
    return arguments


def is_own_question(arguments: argparse.Namespace) -> bool:
    """Whether a network, or a name for it, is given and no scenario."""
    return not arguments.scenario and bool(overrides_of(arguments).given or arguments.name
                                           or any(getattr(arguments, flag) for flag in PAGES))


def as_typed(quantity: Quantity) -> Callable[[str], list[object]]:
    """Reads a list of a quantity's values, as people type them."""
    def read(words: str) -> list[object]:
        try:
            return quantity.listed(words)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
    return read


def condition(text: str) -> conditions.Condition:
    """Reads a condition of --fail-if."""
    try:
        return conditions.read(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def sample(word: str) -> str | int:
    """Reads "full", or N of "1/N"."""
    part = word.removeprefix("1/")
    if word != "full" and (part == word or not part.isdecimal() or not 2 <= int(part) <= 10_000):
        raise argparse.ArgumentTypeError(f"'{word}' is not full, nor 1/N like 1/16")
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


def add_question(parser: Parser) -> None:
    """The flags of a network, TCP and responses: what is measured."""
    add = parser.add_argument_group(
        "a question of your own: a network, TCP and responses",
        "Each takes a list, and every combination is measured. What you leave out has the default"
        " here;\nwith a scenario, its own, and a flag replaces it.").add_argument
    for quantity in FLAGS.values():
        add(quantity.flag, dest=quantity.name, metavar=quantity.metavar,
            action="extend", type=as_typed(quantity), help=quantity.help)
    add("--sysctl", action="append", default=[], metavar="NAME=VALUE",
        help="a TCP setting of both hosts that differs from a current distribution's, like"
             " net.ipv4.tcp_slow_start_after_idle=0; may be given several times (default none)")
    add("--repeat", type=positive_number, metavar="N",
        help="measure a setting N times (default 1, 100 with loss or jitter, 20 if a queue drops)")
    add("--client", choices=("curl", "wget", "libcurl"),
        help="the fetching program (default libcurl, curl's library)")
    add("--sample", type=sample, metavar="1/N|full",
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
        help="the path to fetch; {size} in it is --size (default /{size})")
    add("--ca", type=argument_types.file_path, metavar="FILE",
        help="the root of the server's certificate, PEM: HTTPS (default: HTTP, HTTPS with --chain)")
    add("--server-name", metavar="NAME",
        help="the name in the server's certificate (default: its address, 10.0.0.2)")
    add("--allow-commands", action="store_true",
        help="let a scenario's file name such a command: read the file first (default: refused)")


def add_questions(parser: Parser) -> None:
    """The flags of a question about users, and of stored runs."""
    add = parser.add_argument_group("which window for my users, and stored runs").add_argument
    for module in dict.fromkeys(QUESTIONS.values()):
        import_module(module).add_flags(add)
    add("--probe", metavar="URL", type=nonempty,
        help="measure the initial window of your server from this machine, by one connection to"
             " this URL; the only flag that uses the network. With the right to"
             " capture (root, CAP_NET_RAW) it reads that connection's packets, else it counts"
             " them; take a page of 100 kB or more")
    add("--compare", type=argument_types.file_path, nargs="+", metavar="RUN",
        help="compare stored runs, cell by cell, with the first one, and name the settings that"
             " differ; measures nothing")


def add_how(parser: Parser) -> None:
    """The flags of engine, run and output: how it is measured, and where results go."""
    add = parser.add_argument
    add("--engine", choices=("auto", "uml", "host"), default="auto",
        help="uml: guests in virtual time; host: this kernel in real time, as root;"
             " auto: uml where its kernel is built, else host (default auto)")
    add("--jobs", type=positive_number, metavar="N",
        help="guests side by side (default one a core, as far as memory goes); host runs alone")
    add("--cluster", metavar="ADDRESS", type=cluster.address,
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
        help="also write the findings: json, md or csv, with units, intervals and provenance; FILE:"
             " - is standard output, where the text goes to standard error then; {name} in it is"
             " the scenario's; repeatable (default none)")
    add("--fail-if", action="append", default=[], type=condition, metavar="CONDITION",
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
