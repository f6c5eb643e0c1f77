"""Two published experiments by their authors' own scripts, in virtual time: next to what they gave.

    /usr/bin/python3 -m benchmarks.outside.published_scripts --marrama PATH --zhao PATH

PATH: a copy of github.com/jdubie/mininet-tcp-initial-cwnd, and of
github.com/935963004/Reproducing-Results-from-A-Networking-Paper. Their Python 2 goes through 2to3;
what else is changed is EDITS, which docs/PUBLISHED_SCRIPTS.md explains line by line.
"""

from __future__ import annotations

import math
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import command
from benchmarks.command import GuestRun, in_guest
from engines.job import PROJECT
from lab.core.command_line import Parser
from lab.core.errors import OK, CannotError, UsageError

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
MARRAMA = [
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
MEASURED = "as they measured it: ms"  # a column of docs/results


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
    print(f"python3 {script}: {done.virtual_s:.0f} s of its clock in {done.wall_s:.0f} s"
          f" ({done.ratio:.1f} × real time)", flush=True)
    return done


def near(value: float, published: float, within: tuple[float, float]) -> bool:
    """Whether two times in ms agree. Their whole numbers are truncated: n stands for n to n + 1."""
    apart = max(published - value, value - published - 1, 0.0)
    return apart <= max(within[0] * published, within[1])


def as_published(scenario: str) -> list[dict[str, float]]:
    """What our scenario with their defects has, in ms: each table, by its first cell."""
    tables: list[dict[str, float]] = []
    place = 0
    text = (PROJECT / "docs" / "results" / f"{scenario}_as_published.md").read_text()
    for row in re.findall(r"^\| (.*) \|$", text, re.MULTILINE):
        cells = row.split(" | ")
        if MEASURED in cells:
            place = cells.index(MEASURED)
            tables.append({})
        elif place < len(cells) and tables and re.match(r"-?[\d.]+$", cells[place]):
            tables[-1][cells[0]] = float(cells[place])
    return tables


def marrama(source: Path, folder: Path) -> list[str]:
    copy = prepared(source, folder, ["bw_improvement.py", "icwnd_vs_fct.py", "util", SERVER],
                    MARRAMA)
    windows = executed("icwnd_vs_fct.py", copy).output
    bars = executed("bw_improvement.py", copy).output
    tables = [re.findall(r"^ *(\d+) +(-?\d+)(?: +-?\d+%)?\s*$", part, re.MULTILINE)
              for part in (windows, *bars.split("END RESULTS")[:3])]
    lines, agree, count = [], 0, 0
    for (name, published), rows, ours in zip(MARRAMA_PUBLISHED.items(), tables,
                                             as_published("marrama2012")):
        measured = {int(key): int(value) for key, value in rows}
        for key, value in published.items():
            is_near = key in measured and near(measured[key], value, MARRAMA_NEAR)
            agree, count = agree + is_near, count + 1
            lines.append(f"  {name:<8}{key:>8}{value:>8}{ours.get(str(key), math.nan):10.1f}"
                         f"{measured.get(key, -1):>8}{'' if is_near else '  apart'}")
    return ["marrama2012, ms: published, our scenario, their script"
            f" ({agree} of {count} within 10 % or 5 ms)", *lines]


def zhao(source: Path, folder: Path) -> list[str]:
    copy = prepared(source, folder, ["experiment.py", "web_server.py"], ZHAO)
    kept = executed("experiment.py", copy).folder
    assert kept is not None
    lines, agree, count = [], 0, 0
    ours = as_published("zhao2019")[-1]
    for path in sorted((source / "results").glob("cwnd*.txt"),
                       key=lambda path: [int(word) for word in re.findall(r"\d+", path.stem)]):
        published = float(path.read_text()) * 1000
        try:
            measured = float((kept / "files" / "results" / path.name).read_text()) * 1000
        except (OSError, ValueError):
            measured = -1.0
        is_near = near(measured, published, ZHAO_NEAR)
        agree, count = agree + is_near, count + 1
        window, rtt_ms, kbps = re.findall(r"\d+", path.stem)
        cell = ours.get(f"IW {window}, {rtt_ms} ms, {kbps} kbit/s", math.nan)
        lines.append(f"  {path.stem:<24}{published:9.0f}{cell:9.1f}{measured:9.1f}"
                     f"{'' if is_near else '  apart'}")
    return ["zhao2019, ms: published, our scenario, their script"
            f" ({agree} of {count} within 3 % or 10 ms)", *lines]


def main(words: Sequence[str]) -> int:
    parser = Parser(prog="published_scripts", description=__doc__)
    parser.add_argument("--marrama", type=Path)
    parser.add_argument("--zhao", type=Path)
    requested = parser.parse_args(words)
    for name, measure in (("marrama", marrama), ("zhao", zhao)):
        if (source := getattr(requested, name)) is not None:
            if not source.is_dir():
                raise UsageError(f"--{name}: {source} is no folder")
            with tempfile.TemporaryDirectory() as folder:
                print("\n".join(measure(source.resolve(), Path(folder))), flush=True)
    return OK


if __name__ == "__main__":
    command.run("published_scripts", main)
