"""Loads ten pages in a browser twenty times each, while this machine is more and less busy.

    /usr/bin/python3 -m benchmarks.outside.browser_repeats [--loads N] [--jobs N] [--keep DIR]

Nine pages are from Debian's packages python3-doc, debian-edu-doc-en and mkdocs-doc, and one is the
page of six hosts in scenarios/pages. Meanwhile 0, 2 and 4 processes compute in turns of half a
minute, at the priority of a user's own programs. A load differs where its load event, or a time of
any of its requests, is more than 0.1 ms from the median of the page's loads, or where it has other
requests. Exit status: 0 where at most five loads differ, else 1.
"""

from __future__ import annotations

import csv
import itertools
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks import command
from firstflight.base import PROJECT
from firstflight.base.argument_types import positive_number
from firstflight.base.errors import FAILED, FirstFlightError
from firstflight.base.parser import Parser

PYTHON, EDU = "/usr/share/doc/python3/html", "/usr/share/doc/debian-edu-doc-en"
MKDOCS = "/usr/share/doc/mkdocs/html"
# The name of a page, its folder, its path, and the files that belong to it. The pages were chosen
# before any was measured.
PAGES = (
    ("asyncio", PYTHON, "/library/asyncio-task.html", "library/asyncio-task.html", "_static/*"),
    ("contents", PYTHON, "/index.html", "index.html", "_static/*"),
    ("whatsnew", PYTHON, "/whatsnew/3.11.html", "whatsnew/3.11.html", "_static/*"),
    ("search", PYTHON, "/search.html?q=asyncio", "search.html", "searchindex.js", "_static/*"),
    ("bookworm", EDU, "/debian-edu-bookworm-manual.html", "debian-edu-bookworm-manual*"),
    ("bullseye", EDU, "/debian-edu-bullseye-manual.html", "debian-edu-bullseye-manual*"),
    ("themes", MKDOCS, "/user-guide/choosing-your-theme.html", "*"),
    ("mkdocs", MKDOCS, "/index.html", "*"),
    ("plugins", MKDOCS, "/dev-guide/plugins.html", "*"),
    ("hosts", "", "", ""))
HAR = PROJECT / "scenarios/pages/hosts.har"
COMPUTING, CHANGES_S = (0, 2, 4), 30.0  # how many processes compute, and for how long each time
EQUAL_MS, MOST_DIFFERENT = 0.1, 5
TIMES = ("start_ms", "sent_ms", "first_byte_ms", "end_ms")
HEAD = """\
# Each page is loaded equally fast each time.

kind = "page"
title = "Ten pages, loaded often"
source = "benchmarks.outside.browser_repeats"
"""
SWEEP = """
[[sweep]]
name = "mobile"
page = [{pages}]
client = "chromium"
rtt_ms = 170
bandwidth_kbps = 9000
initcwnd = [10]
http = ["2"]
signature = "ecdsa"
repeat = {loads}

[[figure]]
name = "mobile"
title = "Ten pages over 4G"
kind = "times"
sweep = "mobile"
"""


class Load(NamedTuple):
    """One load of a page.

    requests holds the times of each request in ms. Its key is the URL, and 1 for the first request
    of that URL, 2 for the second.
    """

    page: str
    load_ms: float
    requests: dict[tuple[str, int], tuple[float, ...]]


def scenario(loads: int) -> str:
    """The text of the scenario that loads all pages."""
    text = HEAD
    for name, folder, url_path, *files in PAGES:
        text += f'\n[[page]]\nname = "{name}"\n'
        if folder:
            patterns = ", ".join(f'"{pattern}"' for pattern in files)
            text += f'folder = "{folder}"\nurl_path = "{url_path}"\nfiles = [{patterns}]\n'
        else:
            text += f'har = "{HAR.name}"\n'
    names = ", ".join(f'"{name}"' for name, *_ in PAGES)
    return text + SWEEP.format(pages=names, loads=loads)


@contextmanager
def varied_load() -> Iterator[None]:
    """Have 0, 2 and 4 processes compute, one after another, until the block ends."""
    ended = threading.Event()

    def compute() -> None:
        for count in itertools.cycle(COMPUTING):
            if ended.is_set():
                return
            busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
                    for _ in range(count)]
            ended.wait(CHANGES_S)
            for process in busy:
                process.kill()
                process.wait()

    thread = threading.Thread(target=compute)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def measure(folder: Path, loads: int, jobs: int) -> Path:
    """Measure all pages; return the folder of the run. Raises FirstFlightError."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(HAR, folder)  # a scenario's page comes from below its own folder
    file = folder / "repeats.toml"
    file.write_text(scenario(loads), encoding="utf-8")
    words = ["./run.sh", str(file), "--fresh", "--jobs", str(jobs), "--results", str(folder)]
    with varied_load():
        subprocess.run(words, cwd=PROJECT, check=False, stdout=subprocess.DEVNULL)
    run = folder / "repeats/latest"
    if not run.exists():
        raise FirstFlightError("nothing was measured")
    return run


def loads_of(run: Path) -> Iterator[Load]:
    """The loads of a run that have a time, in their order; prints those that did not pass."""
    with (run / "trials.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if row["verdict"] != "pass":
            print(f"{row['page']}, load {row['repeat']}: {row['verdict']}"
                  f" {row['error'] or row['verdict_reason']}")
        if not row["page_ms"]:
            continue
        found = sorted(run.glob(f"files/*-{row['page']}-*-{row['repeat']}-requests.csv"))
        yield Load(row["page"], float(row["page_ms"]), requests_of(found[0]))


def requests_of(path: Path) -> dict[tuple[str, int], tuple[float, ...]]:
    """The times of each request in a requests.csv; a request without an answer has fewer."""
    seen: Counter[str] = Counter()
    requests = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            seen[row["url"]] += 1
            requests[row["url"], seen[row["url"]]] = tuple(
                float(row[name]) for name in TIMES if row[name])
    return requests


def report(name: str, loads: Sequence[Load]) -> int:
    """Print the line of a page; return how many of its loads differ."""
    usual_ms = median(load.load_ms for load in loads)
    keys = Counter(key for load in loads for key in load.requests)
    usual: dict[tuple[str, int], tuple[float, ...]] = {}
    for key in keys:
        known = [load.requests[key] for load in loads if key in load.requests]
        length = min(map(len, known))
        usual[key] = tuple(median(times[place] for times in known)
                           for place in range(length))

    different, furthest_ms, furthest = 0, 0.0, ""
    for load in loads:
        deviation_ms = abs(load.load_ms - usual_ms)
        for key, times in load.requests.items():
            of_request_ms = max((abs(time_ms - usual_time_ms)
                                 for time_ms, usual_time_ms in zip(times, usual[key])), default=0.0)
            if of_request_ms > furthest_ms:
                furthest_ms, furthest = of_request_ms, key[0]
            deviation_ms = max(deviation_ms, of_request_ms)
        different += deviation_ms > EQUAL_MS or load.requests.keys() != keys.keys()
    loads_ms = [load.load_ms for load in loads]
    print(f"{name:9} {len(loads):5} {len(keys):8} {usual_ms:9.1f}"
          f" {max(loads_ms) - min(loads_ms):9.3f} {furthest_ms:9.3f} {different:6}"
          f"{f'  {furthest}' if furthest_ms > EQUAL_MS else ''}")
    return different


def main(words: Sequence[str]) -> int:
    parser = Parser(prog="browser_repeats", description="Whether a browser's loads are equal.")
    parser.add_argument("--loads", type=positive_number, default=20, metavar="N")
    parser.add_argument("--jobs", type=positive_number, default=2, metavar="N")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="where to keep the run")
    parser.add_argument("--run", type=Path, metavar="DIR", help="report on this run again")
    arguments = parser.parse_args(words)
    with TemporaryDirectory() as name:
        folder = arguments.keep or Path(name)
        run = arguments.run or measure(folder, arguments.loads, arguments.jobs)
        loads = list(loads_of(run))
    print(f"{'':9} {'':5} {'':8} {'load':>9} {'its spread':>10} {'furthest':>8}\n{'page':9} loads"
          f" requests {'ms':>9} {'ms':>9} {'ms':>9} differ")
    different = sum(report(page, [load for load in loads if load.page == page])
                    for page, *_ in PAGES if any(load.page == page for load in loads))
    print(f"{different} of {len(loads)} loads differ by more than {EQUAL_MS:g} ms")
    return FAILED if different > MOST_DIFFERENT else 0


if __name__ == "__main__":
    command.run("browser_repeats", main)
