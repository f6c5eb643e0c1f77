"""The command line of run.sh: its flags, and which go together."""

from __future__ import annotations

import argparse
import itertools
import os
import shlex
import shutil
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from firstflight.base import PROJECT, argument_types, reading
from firstflight.base.argument_types import nonempty, positive_number, whole_number
from firstflight.base.parser import Parser
from firstflight.base.quantity import Quantity
from firstflight.base.removed import REMOVED
from firstflight.base.typed import SUFFIXES
from firstflight.base.words import nearest
from firstflight.commands import conditions
from firstflight.commands.engines import congestion_controls
from firstflight.commands.overrides import overrides_of, own_server
from firstflight.findings.quantities import FLAGS
from firstflight.runs import cluster, scenario_file
from firstflight.runs.captured import CAPTURES_KEPT

EXPLAINS = "_as_published"  # behind the name of the scenario whose numbers it explains
DEFAULT_SCENARIOS = ["zhao2019", "dukkipati2010"]

# Questions of their own, by their flag, in the order of --help: modules that have add_flags(),
# wrong(), read() and run().
QUESTIONS = {
    "users": "firstflight.commands.users",
    "find_cliff": "firstflight.commands.cliff",
    "page": "firstflight.commands.page",
    "objects": "firstflight.commands.page",
}

PAGES = {"page", "objects"}  # questions whose trials are known in advance

EPILOG = """\
the three commands that people need:
  ./run.sh                                                   the paper's Figure 5, measured here
  ./run.sh --rtt 25 --bw 20000 --iw 10,40 --size 29000        a question of your own
  ./run.sh --list                                            what can be measured

exit status: 0 measured and verified · 1 a trial or the harness failed · 2 usage ·
3 measured, but a verdict failed · 4 this machine cannot · 5 a condition of --fail-if holds ·
130 interrupted · 141 who read the output has left
"""

SHORT = """\
usage: ./run.sh [SCENARIO ...] [FLAG ...]

Measure what TCP's initial window does, on real Linux TCP in virtual time.

  ./run.sh                                   the paper's Figure 5, measured here
  ./run.sh --rtt 25ms --bw 20M --iw 10,40    a question of your own
  ./run.sh --users access.log --bw 10M       which window for my users
  ./run.sh --page page.har --iw 10,32        a page of many objects
  ./run.sh --list                            what else can be measured
  ./run.sh -- python3 my_mininet_script.py   any command, in virtual time
  ./run.sh --capture -- ./my_experiment.sh   and what its network really did
  ./run.sh -- packetdrill my_script.pkt      packetdrill's scripts, too

your question (flags take lists, 10,20 or 10..40:10; all combinations are run)
  --rtt 50ms      round-trip time           --iw 10,30    initial windows
  --bw 10M        bandwidth, bits a second  --size 30kB   response size
  --queue 1bdp    bottleneck's queue        --loss 1%     random loss
  --cc cubic,bbr  congestion control        --qdisc fq    queueing discipline
  --chain 4kB     TLS 1.3 with a chain      --repeat 10   transfers of a setting

your server and users
  --probe URL        the initial window that your server uses, seen from here
  --users FILE       a log or CSV of your users: the best window
  --find-cliff KIND  the size from which a response costs a round trip

how
  --full         print every table          --dry-run      what would be done
  --jobs N       guests side by side        --fresh        do not resume
  --results DIR  where results go           --export csv F findings as a file
  --quiet        no progress                --version      the version
  --fail-if 'total_ms(10) > 300'            status 5 where that holds, for CI

./run.sh --help all has every flag; ./run.sh --help rtt one, with an example.
exit status: 0 verified · 1 failed · 2 usage · 3 a verdict failed ·
4 this machine cannot · 5 --fail-if holds · 130 interrupted ·
141 the output pipe was closed
"""

# What people type, and what there is.
SYNONYMS: dict[str, str | tuple[str, str]] = {
    **dict.fromkeys(("--initcwnd", "--iws", "--window", "--windows", "--initial-window", "--cwnd",
                     "--icw", "-w"), ("--iw", "10,20")),
    **dict.fromkeys(("--initrwnd", "--receive-window"), ("--rwnd", "100")),
    **dict.fromkeys(("--latency", "--delay", "--ping", "--rtts"), ("--rtt", "50ms")),
    **dict.fromkeys(("--bandwidth", "--rate", "--throughput", "--speed", "--link"),
                    ("--bw", "10M")),
    **dict.fromkeys(("--sizes", "--bytes", "--response", "--filesize", "--length"),
                    ("--size", "30kB")),
    **dict.fromkeys(("--buffer", "--buffers", "--queues"), ("--queue", "1bdp")),
    **dict.fromkeys(("--packet-loss", "--losses", "--drop"), ("--loss", "1%")),
    **dict.fromkeys(("--congestion", "--congestion-control", "--tcp", "--algorithm"),
                    ("--cc", "cubic,bbr")),
    **dict.fromkeys(("--scenarios", "--ls"), ("--list", "")),
    **dict.fromkeys(("--repeats", "--runs", "--count", "-n"), ("--repeat", "10")),
    **dict.fromkeys(("--threads", "--parallel", "-j"), ("--jobs", "2")),
    **dict.fromkeys(("--output", "--out", "-o"),
                    "write --results DIR: the folder; --export csv FILE is one file"),
    **dict.fromkeys(("--json", "--csv", "--md"),
                    "--export json FILE (md, csv) writes the findings of one scenario"),
    **dict.fromkeys(("--log", "--logs", "--accesslog"), ("--users", "FILE")),
    **dict.fromkeys(("--pages", "--har"), ("--page", "FILE")),
    **dict.fromkeys(("--requests", "--resources", "--streams"), ("--objects", "20")),
    **dict.fromkeys(("--tls", "--https"), "write --chain 3kB: TLS 1.3 with a certificate chain"),
    **dict.fromkeys(("--verbose", "-vv"), "--full prints every table"),
    "-v": "--version prints the version, --full every table",
    "-V": ("--version", ""), "-q": ("--quiet", ""), "--help-all": ("--help", "all")}


# What --help FLAG shows below the flag's text. A test reads each.
EXAMPLES = {line.split()[1]: f"./run.sh {line.partition(' ')[2]}" for line in """\
./run.sh --help rtt
./run.sh --version
./run.sh --list tls
./run.sh --new my_question
./run.sh --check docs/examples/question.toml
./run.sh --scenario zhao2019 pq_chains
./run.sh --as-published zhao2019
./run.sh --rtt 20ms,0.2s --bw 10M --iw 10,30
./run.sh --bw 512k,10M,1G
./run.sh --uplink 1M --bw 20M
./run.sh --queue 100,50ms,0.5bdp
./run.sh --qdisc fifo,fq_codel
./run.sh --loss 0.5%,2%
./run.sh --burst-loss 3 --loss 1%
./run.sh --jitter 5ms
./run.sh --iw 10,20..40:10
./run.sh --rwnd 10,100
./run.sh --cc cubic,bbr
./run.sh --kernel default,mine --size 5MB
./run.sh --module-parameter none,tcp_cubic.hystart=0 --size 5MB
./run.sh --mss 1200
./run.sh --size 15kB,1MB
./run.sh --kept 1 --size 30kB
./run.sh --idle 10s --kept 2
./run.sh --server nginx --chain 3kB
./run.sh --http 2 --server nginx --chain 3kB
./run.sh --chain 3kB,15kB
./run.sh --signature ecdsa --chain 3kB
./run.sh --key-share x25519 --chain 3kB
./run.sh --system debian13 --chain 15kB
./run.sh --intermediates 2 --chain 6kB
./run.sh --tickets 0 --chain 3kB
./run.sh --resumed 1 --chain 3kB
./run.sh --early-data 1 --resumed 1 --chain 3kB --server nginx
./run.sh --record 4096 --chain 3kB
./run.sh --tls-buffer 0 --chain 15kB
./run.sh --think 100ms
./run.sh --load 0.5,0.95 --scenario ietf78_completion
./run.sh --sysctl net.ipv4.tcp_slow_start_after_idle=0 --kept 1 --idle 10s
./run.sh --repeat 10 --loss 1%
./run.sh --client curl --rtt 50ms
./run.sh --sample 1/16 --scenario map_of_windows
./run.sh --name office --rtt 50ms
./run.sh --server-command 'python3 -m http.server {p}' --server-folder .
./run.sh --server-folder . --server-command 'python3 -m http.server {p}'
./run.sh --server-ready / --server-command 'python3 -m http.server {p}'
./run.sh --url-path /page.html --server-command 'python3 -m http.server {p}'
./run.sh --ca root.pem --server-command './serve --port {p}'
./run.sh --server-name example.org --server-command './serve --port {p}'
./run.sh --allow-commands path/to/my.toml
./run.sh --users access.log --bw 10M
./run.sh --rtt-field 12 --users access.log --bw 10M
./run.sh --trials 2000 --users access.log --bw 10M
./run.sh --find-cliff response --rtt 50ms
./run.sh --page page.har --iw 10,32
./run.sh --objects 20 --size 15kB --iw 10,32
./run.sh --connections 2,6 --objects 20
./run.sh --document 30kB --objects 20
./run.sh --probe https://your.site/page
./run.sh --compare results/zhao2019/latest results/zhao2019/2026-01-01_120000-uml
./run.sh --engine host --rtt 50ms
./run.sh --jobs 2 --rtt 50ms,100ms
./run.sh --cluster tls://host:8786 --rtt 50ms
./run.sh --seed 7 --loss 1%
./run.sh --dry-run zhao2019
./run.sh --yes --rtt 1..200:1 --bw 1M..20M:100k --repeat 3
./run.sh --fresh zhao2019
./run.sh --keep-captures --rtt 50ms
./run.sh --export csv office.csv --rtt 50ms
./run.sh --fail-if 'total_ms(10) > 300' --rtt 50ms
./run.sh --format png,svg zhao2019
./run.sh --quiet --rtt 50ms
./run.sh --no-reasons --rtt 50ms
./run.sh --full zhao2019
./run.sh --no-figures zhao2019
./run.sh --results /tmp/results --rtt 50ms
./run.sh --figures /tmp/figures zhao2019
""".splitlines()}


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


def check_together(parser: Parser, arguments: argparse.Namespace) -> None:
    """Exits with a line where flags do not go together."""
    given = overrides_of(arguments).given
    requested = [flag for flag in QUESTIONS if getattr(arguments, flag)]
    for module in dict.fromkeys(QUESTIONS.values()):
        if wrong := import_module(module).wrong(arguments, given, requested):
            parser.error(wrong)
    if arguments.fail_if and (set(requested) - PAGES or arguments.probe or arguments.compare):
        parser.error("--fail-if goes only with scenarios and questions whose trials are known in"
                     " advance")
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
    if arguments.export and arguments.export[0] not in argument_types.EXPORTS:
        every = ", ".join(argument_types.EXPORTS)
        parser.error(f"--export: {arguments.export[0]!r} is none of {every}")
    if arguments.export and len(arguments.scenario) != 1 and not arguments.own:
        parser.error("--export: writes the findings of one scenario, not of"
                     f" {len(arguments.scenario) or 'the default ones'}")
    if arguments.export:
        try:
            argument_types.output_file(arguments.export[1])
        except argparse.ArgumentTypeError as error:
            parser.error(f"--export: {error}")


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
    add("--export", nargs=2, metavar=("FORMAT", "FILE"),
        help="also write the findings of one scenario: json, md or csv, with units, intervals and"
             " provenance")
    add("--fail-if", action="append", default=[], type=condition, metavar="CONDITION",
        help="end with status 5 where it holds, as 'total_ms(10) > 300' or 'total_ms(3) -"
             " total_ms(10) < 50': columns of trials.csv, their means over the verified trials, in"
             " parentheses the initial window and flags, (10, rtt=200); repeatable (default none)")
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
