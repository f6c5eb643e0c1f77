"""Change the code in one place at a time, and count the changes that no fast test notices.

    /usr/bin/python3 -m benchmarks.faults.mutants --only lab/core/stats.py
    /usr/bin/python3 -m benchmarks.faults.mutants --sample 300 --seed 1

mutmut 3 makes the changes, in a copy of the tree, and runs for each those of tests/unit and
tests/golden that call the changed function, until one fails. A change that no test notices has
survived; where no test calls the function, none could. A change that makes a test loop counts as
noticed. Prints what was not, and noticed of all by file and folder.

mutmut is no part of the project: COMMAND installs it beside. As root the copy lives in a name
space where everything else is read-only. Lines outside of functions are not changed, nor what
only guests run; tests that start Python without mutmut are left out, so that of engines and
hosts the score is a lower bound.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

from benchmarks import command
from engines.job import PROJECT
from lab.core.command_line import Parser, positive
from lab.core.errors import OK, CannotError, FirstFlightError

VENV = Path.home() / ".cache" / "first-flight" / "mutmut"
COMMAND = f"/usr/bin/python3 -m venv --system-site-packages {VENV} && {VENV}/bin/pip install mutmut"
SOURCES = ("lab", "drawing", "probe", "commands", "engines", "hosts", "server.py", "client.py",
           "topo.py", "experiment.py", "plot.py", "report.py", "results.py", "benchmarks", "paper")
LEFT_OUT = ("topo.py", "benchmarks/*", "paper/*", *(f"engines/{name}*" for name in (
    "guest/", "bench", "worker/", "network/namespaces", "network/nodes")))
# They read the sources, or start programs that do not find mutmut.
NO_TESTS = ("test_architecture", "test_install", "benchmarks", "hosts/test_client", *(
    f"engines/test_{name}" for name in ("cluster_node", "confine", "system", "uml", "untrusted",
                                        "walls")))
ALL = "all"
UNNOTICED = {0: "survived", 33: "no test"}  # by mutmut's status; any other has been noticed
# All but the folder that is named first becomes read-only.
APART = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
         'mount --bind "$0" "$0" && mount -o remount,bind,ro / && cd "$0/tree" && exec "$@"')


class Mutmut:
    """A copy of the tree with its mutants. only: beginnings of paths that are changed."""

    def __init__(self, folder: Path, only: Sequence[str]) -> None:
        self.tree, self.folder = folder / "tree", folder
        if not (VENV / "bin" / "mutmut").exists():
            raise CannotError(f"no mutmut: {COMMAND}")
        listed = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard"], text=True,
                                cwd=PROJECT, check=True, stdout=subprocess.PIPE).stdout
        for name in filter(None, listed.split("\0")):
            if (PROJECT / name).exists():
                (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(PROJECT / name, self.tree / name)
        (folder / "tmp").mkdir()
        settings = {
            "source_paths": SOURCES, "only_mutate": [f"{name}*" for name in only],
            "do_not_mutate": LEFT_OUT, "also_copy": [path.name for path in self.tree.iterdir()],
            "pytest_add_cli_args_test_selection": ("tests/unit", "tests/golden"),
            "pytest_add_cli_args": [f"--ignore-glob=tests/unit/{name}*" for name in NO_TESTS]}
        (self.tree / "setup.cfg").write_text("[mutmut]\n" + "".join(
            f"{key} =\n" + "".join(f"    {word}\n" for word in words)
            for key, words in settings.items()))

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        paths, = VENV.glob("lib/python3*/site-packages")
        apart = [*APART, str(self.folder)] if os.geteuid() == 0 else []
        return subprocess.run(
            [*apart, str(VENV / "bin" / "mutmut"), *words], cwd=self.tree, text=True,
            capture_output=True, check=False, env={
                **os.environ, "PYTHONPATH": str(paths), "TERM": "dumb",
                "TMPDIR": str(self.folder / "tmp"), "OPENBLAS_NUM_THREADS": "1"})

    def mutants(self) -> dict[str, tuple[str, int | None]]:
        """Each with its file, and mutmut's status, None before it was tried."""
        return {name: (str(path.relative_to(self.tree / "mutants")).removesuffix(".meta"), status)
                for path in sorted(self.tree.rglob("mutants/**/*.py.meta"))
                for name, status in json.loads(path.read_text())["exit_code_by_key"].items()}


def table(seen: Sequence[tuple[str, bool]]) -> str:
    """Noticed of all by file and by folder."""
    total, noticed = Counter[str](), Counter[str]()
    for path, was_noticed in seen:
        for name in (path, *(f"{folder}/" for folder in Path(path).parents[:-1]), ALL):
            total[name] += 1
            noticed[name] += was_noticed
    return "\n".join(f"{name:44}{noticed[name]:6}{total[name]:6}{noticed[name] / total[name]:7.0%}"
                     for name in sorted(total, key=lambda name: (name == ALL, name)))


def main(words: Sequence[str]) -> int:
    parser = Parser(prog="mutants", description="Count the changes that no fast test notices.")
    parser.add_argument("--only", action="append", metavar="PATH",
                        help="files that begin so (default: all)")
    parser.add_argument("--sample", type=positive, help="how many changes (default: all)")
    parser.add_argument("--seed", type=int, default=1, help="of the sample (default 1)")
    parser.add_argument("--jobs", type=positive, default=len(os.sched_getaffinity(0)),
                        help="tried at the same time (default one a core)")
    arguments = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="first-flight-mutants-") as folder:
        mutmut = Mutmut(Path(folder), arguments.only or SOURCES)
        made = mutmut.run("run", "none of them")  # they are made, and it is seen what tests call
        chosen = list(mutmut.mutants())
        if "nothing matches" not in made.stderr or not chosen:
            raise FirstFlightError(f"mutmut: {(made.stdout + made.stderr)[-3000:]}")
        if arguments.sample is not None and arguments.sample < len(chosen):
            chosen = Random(arguments.seed).sample(chosen, arguments.sample)
        done = mutmut.run("run", "--max-children", str(arguments.jobs), *chosen)
        found = {name: mutmut.mutants()[name] for name in sorted(chosen)}
        if done.returncode or any(status is None for _, status in found.values()):
            raise FirstFlightError(f"mutmut: {(done.stdout + done.stderr)[-3000:]}")
        for name, (path, status) in found.items():
            if status in UNNOTICED:
                change = mutmut.run("show", name).stdout.partition("+++")[2].partition("@@")[2]
                print(f"{path}: {UNNOTICED[status]}:", change.partition("\n")[2], flush=True)
    print(table([(path, status not in UNNOTICED) for path, status in found.values()]))
    return OK


if __name__ == "__main__":
    command.run("mutants", main)
