"""Changes of the code that tests have to notice: which there are, and what is told of them."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
from pathlib import Path

import pytest

from benchmarks.faults import mutant_reach, mutants
from benchmarks.faults.mutant_changes import changed, changes
from benchmarks.faults.mutant_tests import files_of_tests
from benchmarks.faults.mutant_worker import KILLED, SURVIVED, TIMEOUT, outcome

PROJECT = Path(__file__).resolve().parent.parent.parent.parent


@pytest.mark.parametrize("source, expected", [
    ("x = a + 1", ["x = a - 1", "x = a + 2"]),
    ("x = 1000", ["x = 1001"]), ("x = 1e6", ["x = 2000000.0"]),
    ("x = a < b <= c", ["x = a <= b <= c", "x = a < b < c"]),
    ("x = a or b", ["x = a and b"]),
    ("x = not a", ["x = not not a"]),
    ("x = -a", ["x = +a"]),
    ("x = f'{a:.1f} ms'", ["x = f'{a:} ms'", "x = f'{a:.1f}'"]),
    ("x = ''", ["x = 'other'"]),
    ("x = True", ["x = False"]),
    ("x = b if c else d", ["x = b if not c else d"]),
    ("x = [a for a in b if c]", ["x = [a for a in b if True]"]),
    ("def f():\n    return a", ["def f():\n    return None"]),
    ("def f(a=1):\n    pass", ["def f(a=2):\n    pass"]),
    ("f()", ["pass"]),
    ("x.y = z", ["pass"]),
    ("x += y", ["pass", "x -= y"]),
    ("while a:\n    break", ["while not a:\n    break", "while a:\n    pass"]),
    ("try:\n    pass\nexcept A:\n    raise", ["try:\n    pass\nexcept A:\n    pass"]),
    ("if a:\n    raise AnError(f'{b} is no ' + 'c')",
     ["if not a:\n    raise AnError(f'{b} is no ' + 'c')", "if a:\n    pass"])])
def test_each_kind_of_change_is_made_alone(source: str, expected: list[str]) -> None:
    count = sum(1 for _ in changes(ast.parse(source)))
    assert [ast.unparse(changed(source, number)) for number in range(count)] == expected


@pytest.mark.parametrize("source", [
    '"""Words."""', "def f() -> int:\n    'Words.'\n    ...", "x: Literal['a']", "__all__ = ['a']",
    "if TYPE_CHECKING:\n    x = 1", "assert a == 1", "@dataclass(frozen=True)\nclass A:\n    pass",
    "x = a", "x = AnError('words')", "x = None", "x = add(help='words' + a, metavar='A')",
    "T = TypeVar('T', bound='A')"])
def test_what_no_test_should_see_is_left_alone(source: str) -> None:
    assert not list(changes(ast.parse(source)))


def test_a_change_says_where_it_is() -> None:
    source = "class A:\n    @property\n    def f(self):\n        return (a +\n                2)\n"
    assert [(change.lines, change.line, change.function, change.words)
            for change in changes(ast.parse(source))] == [
        ((4, 5), 4, ("f", 2), "return a + 2 → return None"),
        ((4, 5), 4, ("f", 2), "a + 2: Add → Sub"), ((4, 5), 5, ("f", 2), "2 → 3")]


@pytest.mark.parametrize("status, became", [(0, SURVIVED), (5, SURVIVED), (1, KILLED), (2, KILLED)])
def test_the_status_of_the_tests_decides(status: int, became: str) -> None:
    process = os.fork()
    if not process:
        os._exit(status)
    assert outcome(process, 60.0) == became


def test_a_loop_has_been_noticed() -> None:
    process = os.fork()
    if not process:
        os.kill(os.getpid(), signal.SIGXCPU)  # what the kernel does at the limit
    assert outcome(process, 60.0) == TIMEOUT
    process = os.fork()
    if not process:
        signal.pause()
    assert outcome(process, 0.01) == TIMEOUT


SUMS = """LIMIT = 3
def limited(a):
    return a if a <= LIMIT else LIMIT
def double(a):
    return a * 2
"""
# The warm worker takes long to begin: until then nothing may be changed for the other one.
SLOW = """import sys, time
from pathlib import Path
if "warm" in sys.argv:
    for _ in range(20):
        assert "LIMIT = 3" in Path("lab/sums.py").read_text()
        time.sleep(0.02)
"""
TESTS = """import subprocess, sys, tempfile
import pytest
from lab.sums import limited
@pytest.fixture(scope="module")
def made():
    return limited(5)
def test_one():
    assert limited(2) == 2
def test_made(made):
    assert made > 2
def test_made_again(made):
    assert made == 3
def test_program_that_may_write_little():
    done = subprocess.run(["prlimit", "--fsize=100:", sys.executable, "-c",
                           "from lab.sums import limited; print(limited(2))"],
                          capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("2\\n", "")
def test_that_writes_elsewhere():
    assert limited(1) == 1
    with tempfile.TemporaryFile(dir="/var/tmp"):
        pass
"""


def test_only_tests_that_are_near_are_recorded_where_no_others_are_run(tmp_path: Path) -> None:
    names = ["tests/unit/trace/test_a.py", "tests/unit/hosts/test_b.py", "tests/unit/test_c.py",
             "tests/golden/test_d.py", "tests/unit/core/test_e.py"]
    for name in (*names, "tests/live/test_e.py", "tests/unit/trace/helper.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert sorted(map(str, files_of_tests(tmp_path, None))) == sorted(names)
    for path, near in (("lab/trace/view.py", names[0]), ("server.py", names[1]),
                       ("lab/registry.py", names[4])):
        assert sorted(map(str, files_of_tests(tmp_path, [path]))) == sorted(
            [near, names[3]])


def test_survivors_are_told_with_their_places(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
        ) -> None:
    """A fixture of several tests, a program, a line at import, a function without a test."""
    tree = tmp_path / "tree"
    (tree / "tests/unit").mkdir(parents=True)
    (tree / "tests/unit/test_sums.py").write_text(TESTS)
    (tree / "lab").mkdir()
    (tree / "lab/sums.py").write_text(SUMS)
    (tree / "lab/unused.py").write_text("def unused():\n    return 1\n")
    (tree / "conftest.py").write_text(SLOW)
    (tree / "lab/__init__.py").touch()
    subprocess.run(["git", "init", "-q", str(tree)], check=True)
    monkeypatch.setattr(mutants, "PROJECT", tree)
    monkeypatch.setattr(mutant_reach, "CACHE", tmp_path / "cache")
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))  # where benchmarks are
    assert mutants.main(["--jobs", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    if os.geteuid() == 0:  # then it cannot, and would fail whatever is changed
        assert lines.pop(0) == ("fails unchanged, not used:"
                                " tests/unit/test_sums.py::test_that_writes_elsewhere")
    survivors, counts = lines[:-4], lines[-4:]
    assert survivors == [
        "lab/sums.py:3: survived: a <= LIMIT: LtE → Lt",
        "lab/sums.py:5: survived: return a * 2 → return None",
        "lab/sums.py:5: survived: a * 2: Mult → Div", "lab/sums.py:5: survived: 2 → 3",
        "lab/unused.py:2: not run: return 1 → return None", "lab/unused.py:2: not run: 1 → 2"]
    assert [line.split() for line in counts] == [
        ["lab/", "3", "9", "33%"], ["lab/sums.py", "3", "7", "43%"],
        ["lab/unused.py", "0", "2", "0%"], ["all", "3", "9", "33%"]]
    assert (tree / "lab/sums.py").read_text() == SUMS
