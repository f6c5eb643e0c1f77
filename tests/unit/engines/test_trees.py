"""The source of a kernel under a name: patches are read, and only what changed is written."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from firstflight.base.files import PROJECT

PATCH = """\
diff --git a/net/tcp.c b/net/tcp.c
index 1..2 100644
--- a/net/tcp.c
+++ b/net/tcp.c
@@ -1,2 +1,2 @@
 one
-two
+2
"""
NEW = """\
--- /dev/null
+++ b/net/new.c
@@ -0,0 +1 @@
+new
"""
DOCUMENT = PATCH.replace("net/tcp.c", "Documentation/tcp.rst")


@pytest.fixture(name="trees", scope="module")
def _trees() -> ModuleType:
    spec = importlib.util.spec_from_file_location("trees", PROJECT / "vtime/kernel/trees.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(name="source")
def _source(tmp_path: Path) -> Path:
    (tmp_path / "source" / "net").mkdir(parents=True)
    (tmp_path / "source" / "net" / "tcp.c").write_text("one\ntwo\n")
    (tmp_path / "source" / "net" / "udp.c").write_text("udp\n")
    return tmp_path / "source"


def split(trees: ModuleType, source: Path, patch: str) -> tuple[list[str], str, set[str]]:
    """What is left out of a patch, the rest of it, and the files that were copied for it."""
    to, written = source.parent / "changed", source.parent / "filtered"
    to.mkdir()
    (source.parent / "my.patch").write_text(patch)
    left_out = trees.split(source.parent / "my.patch", source, to, written)
    return left_out, written.read_text(), {str(path.relative_to(to)) for path in to.rglob("*.c")}


def test_a_patch_gets_the_files_that_it_changes(trees: ModuleType, source: Path) -> None:
    assert split(trees, source, PATCH + NEW) == ([], PATCH + NEW, {"net/tcp.c"})


def test_what_the_guest_has_no_part_of_is_left_out(trees: ModuleType, source: Path) -> None:
    left_out, rest, _ = split(trees, source, DOCUMENT + PATCH)
    assert (left_out, rest) == (["Documentation/tcp.rst"], PATCH)


@pytest.mark.parametrize("patch, why", [
    (PATCH.replace("net/tcp.c", "net/tcp_gone.c"), "there is no net/tcp_gone.c"),
    (PATCH.replace("a/net/tcp.c", "a/../../etc/passwd"), "no file of a kernel's source"),
    (PATCH.replace("b/net/tcp.c", "/etc/passwd"), "no file of a kernel's source"),
    (DOCUMENT, "changes no file of the guest's kernel"), ("a note\n", "changes no file"),
    (PATCH + "GIT binary patch\n", "binary")])
def test_a_patch_that_cannot_be_is_refused(trees: ModuleType, source: Path, patch: str,
                                           why: str) -> None:
    with pytest.raises(trees.Refused, match=why):
        split(trees, source, patch)


@pytest.mark.parametrize("output, why", [
    ("patching file net/a.c\npatching file net/tcp.c\nHunk #1 succeeded at 3.\n"
     "Hunk #2 FAILED at 120."
     "\n1 out of 2 hunks FAILED\n", "net/tcp.c:120: other lines stand there"),
    ("patching file net/tcp.c\nReversed (or previously applied) patch detected!  Skipping patch.\n",
     "net/tcp.c: it is applied already"),
    ("patch: **** malformed patch at line 7: x\n", "its line 7 is no line of a patch")])
def test_why_a_patch_failed_has_file_and_line(trees: ModuleType, output: str, why: str) -> None:
    assert trees.why(output).startswith(why)


def test_only_what_changed_is_written_and_the_source_never(trees: ModuleType, source: Path) -> None:
    """Which make goes by: a file that is the same keeps its time, also after it was changed."""
    tree, changed, plain = source.parent / "tree", source.parent / "changed", source.parent / "none"
    for folder in (tree, changed / "net", plain):
        folder.mkdir(parents=True)
    (changed / "net" / "tcp.c").write_text("one\n2\n")
    (changed / "net" / "new.c").write_text("new\n")
    assert trees.sync(source, changed, tree) == ["net/new.c", "net/tcp.c", "net/udp.c"]
    assert trees.sync(source, changed, tree) == []
    times = {path: path.stat().st_mtime_ns for path in tree.rglob("*.c")}
    (changed / "net" / "tcp.c").write_text("one\n3\n")
    assert trees.sync(source, changed, tree) == ["net/tcp.c"]
    assert (tree / "net" / "udp.c").stat().st_mtime_ns == times[tree / "net" / "udp.c"]
    assert trees.sync(source, plain, tree) == ["net/new.c", "net/tcp.c"]
    assert "one\ntwo\n" == (tree / "net" / "tcp.c").read_text() == (
        source / "net" / "tcp.c").read_text()
    assert not (tree / "net" / "new.c").exists()
