"""Change the code in one place at a time, and count the changes that no fast test notices.

    /usr/bin/python3 -m benchmarks.faults.mutants --only lab/core/stats.py
    /usr/bin/python3 -m benchmarks.faults.mutants --sample 300 --seed 1

mutmut 3 makes the changes, in a copy of the tree, and runs for each those fast
tests that call the changed function, until one fails. A change that no test notices has
survived; where no test calls the function, none could. A change that makes a test loop counts as
noticed. Prints what was not, and noticed of all by file and folder.

mutmut is no part of the project: COMMAND installs it elsewhere. As root the copy lives in a name
space where everything else is read-only. Lines outside of functions are not changed, nor
engines, whose processes do not find mutmut; a test that fails there unchanged is reported and not
used.
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
LEFT_OUT = ("topo.py", "engines/*", "benchmarks/*", "paper/*")
TESTS = ("tests/unit", "tests/programs", "tests/golden")
# They read the sources, are of what is left out, or start a Python that does not find mutmut.
NO_TESTS = [f"--ignore-glob=tests/{name}*" for name in (
    "unit/test_architecture", "unit/engines", "programs/engines", "unit/benchmarks",
    "programs/benchmarks", "programs/test_install", "programs/test_inputs")] + [
        "--deselect=tests/programs/test_experiment.py::test_flags_are_read_on_a_machine_that_has"
        "_python_and_nothing_else"]
PYTEST = "import os, pytest, sys; os.chdir('mutants'); sys.exit(pytest.main(sys.argv[1:]))"
NONE = "none of them"
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
        self.settings: dict[str, Sequence[str]] = {
            "source_paths": SOURCES, "only_mutate": [f"{name}*" for name in only],
            "do_not_mutate": LEFT_OUT, "also_copy": [path.name for path in self.tree.iterdir()],
            "pytest_add_cli_args_test_selection": TESTS}

    def make(self) -> list[str]:
        """Make the mutants, and see what tests call; their names. Raises FirstFlightError."""
        flags = NO_TESTS
        for _ in range(2):
            self.settings["pytest_add_cli_args"] = flags
            (self.tree / "setup.cfg").write_text("[mutmut]\n" + "".join(
                f"{key} =\n" + "".join(f"    {word}\n" for word in words)
                for key, words in self.settings.items()))
            outcome = self.run("mutmut", "run", NONE)
            if "nothing matches" in outcome.stderr:
                break
            unchanged = self.run("python", "-c", PYTEST, "-q", "-rfE", "--tb=no", *NO_TESTS, *TESTS,
                                 MUTANT_UNDER_TEST="stats", MUTMUT_DEPENDENCY_DEPTH="-1")
            failed = {line.split(" ")[1].partition("[")[0] for line in unchanged.stdout.splitlines()
                      if line.startswith(("FAILED ", "ERROR "))}
            print(*(f"fails unchanged, not used: {test}" for test in sorted(failed)), sep="\n")
            flags = [*NO_TESTS, *(f"--deselect={test}" for test in sorted(failed))]
        if "nothing matches" not in outcome.stderr or not self.mutants():
            raise FirstFlightError(f"mutmut: {last_words(outcome)}")
        return list(self.mutants())

    def run(self, program: str, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        """A program of mutmut's environment, in the copy. more: variables for it."""
        paths, = VENV.glob("lib/python3*/site-packages")
        apart = [*APART, str(self.folder)] if os.geteuid() == 0 else []
        return subprocess.run(
            [*apart, str(VENV / "bin" / program), *words], cwd=self.tree, text=True,
            capture_output=True, check=False, env={
                **os.environ, "PYTHONPATH": str(paths), "TMPDIR": str(self.folder / "tmp"),
                "OPENBLAS_NUM_THREADS": "1", **more})

    def mutants(self) -> dict[str, tuple[str, int | None]]:
        """Each with its file, and mutmut's status, None before it was tried."""
        return {name: (str(path.relative_to(self.tree / "mutants")).removesuffix(".meta"), status)
                for path in sorted(self.tree.rglob("mutants/**/*.py.meta"))
                for name, status in json.loads(path.read_text())["exit_code_by_key"].items()}


def last_words(done: subprocess.CompletedProcess[str]) -> str:
    """Without the wheel that turns while it works: lines that begin with a pattern of dots."""
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line[:1] < "\u2800"]
    return f"status {done.returncode}: " + "\n".join(lines)[-1000:]


def table(mutants: Sequence[tuple[str, bool]]) -> str:
    """Noticed of all by file and by folder."""
    total, noticed = Counter[str](), Counter[str]()
    for path, was_noticed in mutants:
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
        chosen = mutmut.make()
        if arguments.sample is not None and arguments.sample < len(chosen):
            chosen = Random(arguments.seed).sample(chosen, arguments.sample)
        done = mutmut.run("mutmut", "run", "--max-children", str(arguments.jobs), *chosen)
        tried = {name: mutmut.mutants()[name] for name in sorted(chosen)}
        if done.returncode or any(status is None for _, status in tried.values()):
            raise FirstFlightError(f"mutmut: {last_words(done)}")
        for name, (path, status) in tried.items():
            if status in UNNOTICED:
                change = mutmut.run("mutmut", "show", name).stdout.partition("@@")[2]
                print(f"{path}: {UNNOTICED[status]}:", change.partition("\n")[2], flush=True)
    print(table([(path, status not in UNNOTICED) for path, status in tried.values()]))
    return OK


if __name__ == "__main__":
    command.run("mutants", main)
