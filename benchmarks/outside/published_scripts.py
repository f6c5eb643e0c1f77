"""Two published experiments by their authors' own scripts, in virtual time.

    /usr/bin/python3 -m benchmarks.outside.published_scripts --marrama PATH --zhao PATH

PATH: a copy of github.com/jdubie/mininet-tcp-initial-cwnd, and of
github.com/935963004/Reproducing-Results-from-A-Networking-Paper. Their Python 2 goes through 2to3;
what else is changed is MARRAMA and ZHAO; docs/PUBLISHED_SCRIPTS.md has the reasons.
The third number is of our scenario, with those causes only that stand in their code or belong to
their kernel: what was calibrated or inferred from their numbers is taken out of it.
"""

from __future__ import annotations

import math
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from base.command_line import Parser
from base.errors import OK, CannotError, FirstFlightError, UsageError
from base.files import PROJECT
from benchmarks import command
from benchmarks.command import GuestRun, in_guest
from runs import scenario_file
from study.registry import stored_report

# Python 2's http.server wrote the status line and each header at once.
AT_ONCE = """
    def send_response_only(self, *words):
        super().send_response_only(*words)
        self.flush_headers()

    def send_header(self, *words):
        super().send_header(*words)
        self.flush_headers()
"""
SERVER = "lib/SimpleVarLengthHTTPServer.py"
# What is changed after 2to3: the file, what stands there, what stands there then.
NAMES = [("add_host", "addHost"), ("add_switch", "addSwitch"), ("add_link", "addLink"),
         ("replace('\\n', ' ')", r"replace('\r\n', ' ')"),
         ("python -m lib/Simple", "python3 -m lib.Simple"),
         ("import pyx\nimport math", "import math"), ("from pyx.graph import axis\n", "")]
# A veth of 2012 had no scatter-gather, and so its TCP built no packets of several segments. Such a
# packet passes HTB as one, and what Mininet's burst lets through is then twice as much.
SINGLE_SEGMENTS = """for name in ("client", "server"):
{indent}    net.getNodeByName(name).cmd("ip link set %s-eth0 gso_max_segs 1" % name)
"""


def started(indent: str) -> tuple[str, str]:
    """A line that starts the network, and the same with SINGLE_SEGMENTS behind it."""
    line = f"{indent}net.start()\n"
    return line, f"{line}{indent}{SINGLE_SEGMENTS.format(indent=indent)}"


MARRAMA = [
    ("bw_improvement.py", *started(" " * 8)), ("icwnd_vs_fct.py", *started(" " * 4)),
    *(("bw_improvement.py", *names) for names in NAMES),
    ("bw_improvement.py", "    \tif args.cli:", "        if args.cli:"),
    ("bw_improvement.py", "    # create graph\n    g = pyx", "    return\n    g = pyx"),
    *(("icwnd_vs_fct.py", *names) for names in NAMES[:5]),
    ("icwnd_vs_fct.py", "import pyx\n", ""),
    ("icwnd_vs_fct.py", "    # create graph\n", "    return\n"),
    (SERVER, "string.zfill('endofpacket\\n', mss)", "'endofpacket\\n'.zfill(mss).encode()"),
    (SERVER, '    server_version = "SimpleHTTP/" + __version__\n',
     f'    server_version = "SimpleHTTP/" + __version__\n{AT_ONCE}')]
ZHAO = [
    ("experiment.py", "bw / 1000", "bw // 1000"), ("experiment.py", "rtt / 2", "rtt // 2"),
    ("experiment.py", "python web_server.py", "python3 web_server.py"),
    ("web_server.py", '"a" * 9000', 'b"a" * 9000'),
    ("web_server.py", "Handler):\n", f"Handler):\n{AT_ONCE}")]
COLOURS = "def colored(text, *_):\n    return text\n"  # for termcolor, which is not installed
MARRAMA_PUBLISHED = {
    "windows": {3: 808, 6: 681, 10: 665, 16: 641, 26: 641, 42: 642},
    "RTT": {20: 0, 50: 29, 100: 88, 200: 204, 500: 507, 1000: 1016, 3000: 3011},
    "BW": {56: 8, 256: 3, 512: 20, 1000: 45, 2000: 72, 3000: 80, 5000: 77, 10000: 70},
    "BDP": {1000: 2, 5000: 37, 10000: 67, 50000: 214, 100000: 419}}
MARRAMA_NEAR = 0.10, 5.0  # as a share, or in ms
ZHAO_NEAR = 0.03, 10.0
MOST_RTT_MS = 1000  # of Zhao's fetches whose times are times of a transfer
MEASURED = "as they measured it"  # a column of a report's tables
# A cause of a scenario's file that was fitted to the published numbers.
FITTED = re.compile(r'\[\[cause\]\]\n(?:(?!\[).*\n)*?'
                    r'known = "(?:calibrated|inferred)"\n(?:(?!\[).*\n)*')


def prepared(source: Path, folder: Path, files: Sequence[str],
             edits: Sequence[tuple[str, str, str]]) -> Path:
    """A copy, converted and changed. Raises UsageError where what is changed is not there."""
    copy = folder / re.sub(r"\W", "", source.name)
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns(".git", "*.pyc", "results"))
    done = subprocess.run(["/usr/bin/python3", "-m", "lib2to3", "-n", "-w", "--no-diffs", *files],
                          cwd=copy, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotError(f"2to3: {done.stderr.strip()[-200:]}")
    for name, before, after in edits:
        path = copy / name
        text = path.read_text(encoding="utf-8")
        if before not in text:
            raise UsageError(f"{source / name}: there is no {before!r}: is it another version?")
        path.write_text(text.replace(before, after), encoding="utf-8")
    (copy / "termcolor.py").write_text(COLOURS)
    return copy


def executed(script: str, folder: Path) -> GuestRun:
    """Run a script of that folder."""
    # zhao2019 leaves a server behind in each of its 128 runs.
    done = in_guest(["python3", script], folder, "--memory", "3G", "--timeout", "10h,1h",
                    results=folder.parent / f"results_{folder.name}_{script}").passed()
    print(f"python3 {script}: {done.virtual_s:.0f} s of virtual time in {done.wall_s:.0f} s"
          f" ({done.ratio:.1f} × real time)", flush=True)
    return done


def near(value: float, published: float, within: tuple[float, float]) -> bool:
    """Whether two times in ms agree. Their whole numbers are truncated: n stands for n to n + 1."""
    apart = max(published - value, value - published - 1, 0.0)
    return apart <= max(within[0] * published, within[1])


def as_published(name: str, folder: Path) -> list[dict[str, float]]:
    """What our scenario measures, in ms, without what is FITTED: each table, by its first cell."""
    copy = f"{name}_known"
    path = folder / f"{copy}.toml"
    path.write_text(FITTED.sub("", scenario_file.find(name).text), encoding="utf-8")
    results = folder / f"results_{copy}"
    done = subprocess.run([str(PROJECT / "run.sh"), str(path), "--results", str(results),
                           "--no-figures"], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise FirstFlightError(f"{name}: status {done.returncode}: {done.stderr.strip()[-300:]}")
    tables = []
    for table in (table for finding in stored_report(results / copy / "latest").findings
                  for table in finding.tables):
        places = [place for place, column in enumerate(table.columns)
                  if (column.unit, column.group) == ("ms", MEASURED)]
        if places:
            tables.append({str(row[0]): value for row in table.rows
                           if isinstance(value := row[places[0]], (int, float))})
    return tables


@dataclass(frozen=True)
class Number:
    """One of their numbers, in ms: published, of our scenario, by their script; None: none."""

    name: str
    published: float
    ours: float | None
    script: float | None


def table(title: str, numbers: Sequence[Number], within: tuple[float, float]) -> list[str]:
    """A line for each number; how many agree with what was published, and how far ours are off."""
    agree = [number.script is not None and near(number.script, number.published, within)
             for number in numbers]
    # Theirs are whole ms, of which two make a difference: 1.3 ms stands for 0 to 2.
    apart = [abs(number.script - number.ours) for number in numbers
             if number.script is not None and number.ours is not None]
    return [f"{title}, ms: published, our scenario, their script ({sum(agree)} of {len(numbers)}"
            f" within {within[0]:.0%} or {within[1]:g} ms of the published; {len(apart)} of ours at"
            f" most {max(apart, default=math.nan):.1f} ms from their script)",
            *(f"  {number.name:<24}{number.published:9.0f}{_cell(number.ours)}"
              f"{_cell(number.script)}{'' if agrees else '  apart'}"
              for number, agrees in zip(numbers, agree))]


def _cell(value: float | None) -> str:
    return f"{'–':>9}" if value is None else f"{value:9.1f}"


def marrama(source: Path, folder: Path) -> list[str]:
    copy = prepared(source, folder, ["bw_improvement.py", "icwnd_vs_fct.py", "util", SERVER],
                    MARRAMA)
    windows = executed("icwnd_vs_fct.py", copy).output
    bars = executed("bw_improvement.py", copy).output
    tables = [re.findall(r"^ *(\d+) +(-?\d+)(?: +-?\d+%)?\s*$", part, re.MULTILINE)
              for part in (windows, *bars.split("END RESULTS")[:3])]
    numbers = []
    for (name, published), rows, ours in zip(
            MARRAMA_PUBLISHED.items(), tables, as_published("marrama2012_as_published", folder)):
        script = {int(key): float(value) for key, value in rows}
        numbers += [Number(f"{name} {key}", value, ours.get(str(key)), script.get(key))
                    for key, value in published.items()]
    return table("marrama2012", numbers, MARRAMA_NEAR)


def zhao(source: Path, folder: Path) -> list[str]:
    copy = prepared(source, folder, ["experiment.py", "web_server.py"], ZHAO)
    output = executed("experiment.py", copy).folder
    assert output is not None
    ours = as_published("zhao2019_as_published", folder)[-1]
    numbers = []
    for path in sorted((source / "results").glob("cwnd*.txt"),
                       key=lambda path: [int(word) for word in re.findall(r"\d+", path.stem)]):
        script = None
        with suppress(OSError, ValueError):
            script = float((output / "files" / "results" / path.name).read_text()) * 1000
        window, rtt_ms, kbps = re.findall(r"\d+", path.stem)
        # Above, they published a constant for fetches that never connected, and so have we.
        connects = int(rtt_ms) <= MOST_RTT_MS
        numbers.append(Number(
            path.stem, float(path.read_text()) * 1000,
            ours.get(f"IW {window}, {rtt_ms} ms, {kbps} kbit/s") if connects else None, script))
    return table("zhao2019", numbers, ZHAO_NEAR)


def main(words: Sequence[str]) -> int:
    parser = Parser(prog="published_scripts", description=__doc__)
    parser.add_argument("--marrama", type=Path)
    parser.add_argument("--zhao", type=Path)
    requested = parser.parse_args(words)
    for name, measure in (("marrama", marrama), ("zhao", zhao)):
        if (source := getattr(requested, name)) is not None:
            if not source.is_dir():
                raise UsageError(f"--{name}: {source} is not a folder")
            with tempfile.TemporaryDirectory() as folder:
                print("\n".join(measure(source.resolve(), Path(folder))), flush=True)
    return OK


if __name__ == "__main__":
    command.run("published_scripts", main)
