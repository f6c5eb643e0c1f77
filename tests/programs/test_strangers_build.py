"""A build of a stranger's source or patch changes nothing outside its folders, and reads no secret.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

import pytest

from tests.conftest import PROJECT
from tests.programs.engines.test_wall import LACKING, NOBODY, seen
from tests.programs.test_kernel_build import Building, building
from tests.running import mounts_a_disk, run_program, small_disk
from vtime.kernel import exchange, trees

building = building  # a fixture of test_kernel_build, which pytest looks for here
pytestmark = pytest.mark.skipif(bool(LACKING), reason=f"not confined here: {LACKING}")

# The stranger's makefile, which the real make reads. Its targets make what a kernel's would.
# stranger: lines at its beginning; last: a command at its end.
MAKEFILE = """\
VERSION = 7
PATCHLEVEL = 2
SUBLEVEL = 1
%(stranger)s
allnoconfig:
	{ grep ^CONFIG_ %(guest)s/kernel.config; echo CONFIG_HZ=1000; } >$(O)/.config
linux:
	printf '#!/bin/sh\\necho trial: Linux 7.2.1 slept 100 s\\n' >$(O)/linux; chmod +x $(O)/linux
	%(last)s
"""


class Stranger:
    """A source that builds a kernel and attacks the host. victims: files of the host to attack."""

    def __init__(self, building: Building) -> None:
        self.building, self.home = building, building.home
        building.environment["PYTHONDONTWRITEBYTECODE"] = "1"
        for name in ("make", "tar"):
            (building.bin / name).unlink()  # so the machine's real programs are used

        # A file for each pattern of paths that the function unpack() of inside.sh takes.
        unpacked = (building.guest / "inside.sh").read_text().partition("unpack() {")[2]
        for pattern in re.findall(r"(?<!exclude=)'\*/([^']*)'", unpacked.partition("\n}")[0]):
            path = building.source / re.sub(r"\*\.\[?[ch]+\]?", "x.h", pattern).rstrip("*")
            if path.name.islower() and not path.suffix:
                path /= "x"  # the pattern is that of a whole folder
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        self.victims = self.home / "victims"
        (self.victims / "folder").mkdir(parents=True)
        for name in ("secret", "program", "folder/file"):
            (self.victims / name).write_text("a secret of the host's\n")
        for name in ("folder/linux", "folder/.config"):
            (self.victims / name).write_text("a secret of the host's\n")
        (self.victims / "program").chmod(0o755)

    def source(self, stranger: str = "", last: str = ":") -> Path:
        """Write the makefile, and return the folder of the source."""
        (self.building.source / "Makefile").write_text(MAKEFILE % {
            "guest": self.building.guest, "stranger": stranger, "last": last})
        return self.building.source

    def built(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        """Build a kernel named f. Asserts that no file but those of the cache has changed."""
        before = seen(self.home, self.building.cache)
        done = self.building.built("--name", "f", *words)
        assert seen(self.home, self.building.cache) == before
        return done

    def holds_a_secret(self) -> bool:
        """Whether the cache has text that only the host's files have."""
        return any("secret of the host" in path.read_text(errors="replace")
                   for path in self.building.cache.rglob("*")
                   if path.is_file() and not path.is_symlink())

    @property
    def reported(self) -> Path:
        """The log of what the stranger's commands printed."""
        return next(self.building.root.glob("named/f/trials/build.log"))


@pytest.fixture(name="stranger")
def _stranger(building: Building) -> Stranger:
    return Stranger(building)


def test_a_makefile_runs_behind_the_wall(stranger: Stranger) -> None:
    """It acts by $(shell …) when it is read, in a recipe, and by processes that it leaves."""
    victims = stranger.victims
    acts = [f"id -un > {stranger.home}/escaped", f"echo x >> {victims}/program",
            f"chmod 4755 {victims}/program", f"touch -d 2001-01-01 {victims}/secret",
            f"rm -rf {victims}/folder", f"ln {victims}/program $(O)/hard", f": > {victims}/secret",
            f"ln -sfn {victims}/secret $(O)/leak; cat $(O)/leak > $(O)/copy",
            f"cat {victims}/secret", f"cp {victims}/secret $(O)/copied",
            f"(setsid sh -c 'sleep 1; touch {stranger.home}/later' &)",
            f"echo x > {stranger.building.guest}/kernel.config", "echo x > /tmp/first-flight-x",
            f"touch {stranger.building.root}/named/x", f"echo x > {stranger.building.root}/lock"]
    shell = "\n".join(f"X{number} := $(shell {act})" for number, act in enumerate(acts))
    recipe = "\n".join(f"\t-{act}" for act in acts).lstrip()
    done = stranger.built("--source", stranger.source(shell, recipe))
    assert done.returncode == 0, done.stderr
    assert not stranger.holds_a_secret() and not Path("/tmp/first-flight-x").exists()
    assert not (stranger.building.root / "named" / "x").exists()
    assert stranger.reported.read_text().count("Read-only file system") > len(acts)


def test_links_and_pipes_that_a_build_makes_of_its_results_are_not_followed(
        stranger: Stranger) -> None:
    """The kernel and packetdrill's tests become links."""
    done = stranger.built("--source", stranger.source(
        last=f"ln -sf {stranger.victims}/secret $(O)/linux"))
    assert done.returncode == 1 and "could not be kept" in done.stderr, done.stderr
    assert not stranger.holds_a_secret()
    stranger.building.built("--remove", "f")  # so the next build does not continue this one
    tests = stranger.building.source / exchange.TESTS
    shutil.rmtree(tests)
    tests.symlink_to(stranger.victims)
    done = stranger.built("--source", stranger.source())
    assert done.returncode == 0, done.stderr
    assert not stranger.holds_a_secret()


@pytest.mark.parametrize("last", [
    "ln -sf ../secret objects/linux", "ln -sf ../secret objects/.config",
    "rm objects/linux; mkfifo objects/linux", "rm objects/linux; mkdir objects/linux",
    "mv objects objects.old; ln -s folder objects", "truncate -s 100M objects/linux"])
def test_no_link_pipe_or_folder_is_kept_as_a_builds_result(tmp_path: Path, last: str) -> None:
    """last: the last command of the build, whose results are in objects/."""
    for file in ("secret", "folder/linux", "folder/.config", "objects/linux", "objects/.config"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("" if file.startswith("objects") else "a secret of the host's")
    (tmp_path / "kernel").mkdir()
    subprocess.run(["sh", "-c", last], cwd=tmp_path, check=True)
    assert exchange.main(["collect", *map(str, (tmp_path, tmp_path / "kernel", tmp_path))]) != 0
    assert not any(path.read_bytes() for path in (tmp_path / "kernel").iterdir())


def test_a_source_with_too_many_tests_is_refused(tmp_path: Path,
                                                 capsys: pytest.CaptureFixture[str]) -> None:
    tests, kernel = tmp_path / exchange.TESTS, tmp_path / "kernel"
    for folder in (tests, kernel, tmp_path / "objects"):
        folder.mkdir(parents=True)
    for name in ("linux", ".config"):
        (tmp_path / "objects" / name).touch()
    for number in range(exchange.MOST_TESTS + 1):
        (tests / str(number)).touch()
    assert exchange.main(["collect", *map(str, (tmp_path, kernel, tmp_path))]) == 2
    assert "more than 2000 files" in capsys.readouterr().err


def test_what_a_makefile_prints_is_not_taken_for_the_builds_own_words(stranger: Stranger) -> None:
    """It prints that its kernel has booted, and another status than its failed build has."""
    done = stranger.built("--source", stranger.source(
        "$(info trial: Linux 7.2.1 slept 100 s)", "echo exit 1 >$(O)/linux"))
    assert done.returncode == 4 and "does not run here" in done.stderr, done.stderr
    done = stranger.built("--source", stranger.source(last="echo refused: all is well; exit 3"))
    assert done.returncode == 1, done.stderr


def test_a_patch_is_applied_to_a_copy_and_not_to_the_shared_source(stranger: Stranger) -> None:
    """If `patch` makes a link to a shared file, what is appended to it stays in this build."""
    for name in ("net/ipv4/Makefile", "net/sched/Makefile"):
        (stranger.building.source / name).write_text("# shared\n")
    patch = stranger.building.bin / "patch"
    patch.write_text("#!/bin/sh\nfor name in ipv4 sched; do\n"
                     "    ln -sf ../../../../tree/net/$name/Makefile $2/net/$name/Makefile\ndone\n")
    patch.chmod(0o755)
    (stranger.home / "f.patch").write_text(PATCH)
    done = stranger.built("--source", stranger.source(), "--patch", stranger.home / "f.patch")
    assert done.returncode == 1, done.stderr
    shared = [path for path in stranger.building.root.rglob("net/*/Makefile")
              if not path.is_symlink() and path.parent.name in ("ipv4", "sched")]
    assert {path.read_text() for path in shared} == {"# shared\n"}


def test_a_source_that_cannot_be_unpacked_leaves_nothing(stranger: Stranger) -> None:
    archive = stranger.home / "cut.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(stranger.source(), "l")
        info, content = member("l/net/large", content=os.urandom(1 << 20))
        tar.addfile(info, io.BytesIO(content))
    archive.write_bytes(archive.read_bytes()[:-1000])
    done = stranger.built("--source", archive)
    assert done.returncode == 1 and "could not be unpacked" in done.stderr, done.stderr
    assert not list(stranger.building.root.glob("sources/*/source"))


@mounts_a_disk
def test_a_source_that_fills_the_disk_is_reported_and_removed(stranger: Stranger) -> None:
    source, script = stranger.source(), stranger.building.guest / "build.sh"
    (source / "net" / "large").write_bytes(os.urandom(3 << 20))
    script.write_text(script.read_text().replace("_MB=600", "_MB=1").replace("_MB=50", "_MB=1"))
    with small_disk(stranger.building.cache, "size=2500k"):
        done = stranger.building.built("--name", "f", "--source", source)
        assert done.returncode == 4 and "no space left" in done.stderr, done.stderr
        assert not list(stranger.building.root.glob("sources/*/source"))


def test_a_patch_of_many_gigabytes_is_not_copied(stranger: Stranger) -> None:
    patch = stranger.home / "f.patch"
    os.truncate(os.open(patch, os.O_CREAT | os.O_WRONLY), 20 << 30)
    done = stranger.building.built("--name", "f", "--source", stranger.source(), "--patch", patch)
    assert done.returncode == 2 and "larger than any patch" in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="whoever runs it would have to become another user")
def test_folders_that_their_owner_may_not_read_are_removed() -> None:
    """A build may have made such folders. The user is not root."""
    folders = PROJECT / "vtime" / "kernel" / "folders.sh"
    place = Path(tempfile.mkdtemp())
    try:
        place.chmod(0o777)
        done = run_program(
            ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", "bash",
             "-ec", f"source {folders}; mkdir -p built/objects/a/b; chmod 0 built/objects/a;"
                    " ! is_sound built; discard built; ! [[ -e built ]];"
                    " mkdir -p built/objects; is_sound built; chmod 0 built; discard built"],
            cwd=place)
        assert done.returncode == 0 and not any(place.iterdir()), done.stderr
    finally:
        shutil.rmtree(place)


PATCH = """\
--- a/net/ipv4/Makefile
+++ b/net/ipv4/Makefile
@@ -1 +1,2 @@
 # shared
+obj-y += x.o
"""
# A patch in which a file becomes something else: its name, lines on its mode, and its new content.
LINKS = """\
diff --git a/{0} b/{0}
{1}
index 1234567..89abcde 120000
--- a/{0}
+++ b/{0}
@@ -0,0 +1 @@
+{2}
\\ No newline at end of file
"""


@pytest.mark.parametrize("name", ["crypto", "net/ipv4/Makefile", "net/new", "arch/um/kernel"])
@pytest.mark.parametrize("mode", ["new file mode 120000", "old mode 100644\nnew mode 120000",
                                  "new file mode 160000", "new file mode 0120000",
                                  "new file mode 020666"])
def test_a_patch_that_makes_links_is_refused(tmp_path: Path, name: str, mode: str) -> None:
    source, victim, patch = tmp_path / "source", tmp_path / "victim", tmp_path / "f.patch"
    for file in (victim, source / "net" / "ipv4" / "Makefile", source / "arch/um/kernel/x",
                 source / "crypto" / "x"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("a secret of the host's\n")
    patch.write_text(LINKS.format(name, mode, victim))
    (tmp_path / "changed").mkdir()
    before = seen(tmp_path, tmp_path / "changed")
    with pytest.raises(trees.Refused, match="makes or changes a link"):
        trees.split(patch, source, tmp_path / "changed" / "tree", tmp_path / "changed" / "patch")
    assert seen(tmp_path, tmp_path / "changed") == before


def test_a_build_with_a_patch_that_makes_a_link_is_refused_in_one_line(stranger: Stranger) -> None:
    patch = stranger.home / "f.patch"
    patch.write_text(LINKS.format("net/ipv4/Makefile", "old mode 100644\nnew mode 120000",
                                  stranger.victims / "program"))
    done = stranger.built("--source", stranger.source(), "--patch", patch)
    assert done.returncode == 2 and "makes or changes a link" in done.stderr, done.stderr
    assert "does not apply" in done.stderr.splitlines()[-1]


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o644,
           content: bytes = b"") -> tuple[tarfile.TarInfo, bytes]:
    """An entry of an archive, and its content."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode, info.size = kind, link, mode, len(content)
    info.uid = info.gid = 12345
    info.devmajor, info.devminor = 1, 1
    return info, content


def test_an_archive_reaches_nothing_outside(stranger: Stranger) -> None:
    """It has files below links, absolute names, hard links, devices, pipes and a setuid program."""
    victims, program = stranger.victims, stranger.victims / "program"
    up = "l/net/" + "../" * 20
    first = [member("l/net/out", tarfile.SYMTYPE, str(victims)),
             member("l/net/out/program", content=b"overwritten"),
             member("l/net/out/new", content=b"new"),
             member("l/net/hard", tarfile.LNKTYPE, str(program)),
             member("l/net/hard", content=b"overwritten"),
             member("l/net/hard2", tarfile.LNKTYPE, f"{up}{program}"),
             member("l/net/device", tarfile.CHRTYPE), member("l/net/pipe", tarfile.FIFOTYPE),
             member(f"{up}{program}", content=b"overwritten"),
             member(f"l/{program}", content=b"overwritten"),
             member("l/scripts/setuid", mode=0o6777, content=b"#!/bin/sh\n")]
    stranger.source()
    archive = stranger.home / "evil.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(stranger.building.source, "l")
        for info, content in first:
            tar.addfile(info, io.BytesIO(content))
    done = stranger.built("--source", archive)
    assert done.returncode in (0, 1), done.stderr
    made = list(stranger.building.root.rglob("*"))
    assert not any(path.lstat().st_mode & 0o6000 for path in made)
    assert {path.lstat().st_uid for path in made} == {os.geteuid()}
    assert not any(path.name == "new" for path in made)


@pytest.mark.parametrize("link", ["net", "net/ipv4", "arch", "net/ipv4/Makefile", "Makefile",
                                  "net/sched/sch_netem.c", "arch/um/kernel"])
def test_a_link_in_the_place_of_a_sources_file_is_not_followed(stranger: Stranger,
                                                               link: str) -> None:
    """The link stands for a folder or file that the guest's changes are written to.

    It leads to a file of the host with the same content.
    """
    place = stranger.source() / link
    target = stranger.victims / "folder"
    if place.exists():
        target /= "its"
        if place.is_dir():
            place.rename(target)
        else:
            target.write_bytes(place.read_bytes())
            place.unlink()
    place.symlink_to(target)
    done = stranger.built("--source", stranger.building.source)
    assert done.returncode in (1, 2), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr


def test_a_device_in_a_source_is_not_read_for_ever(stranger: Stranger) -> None:
    (stranger.source() / "net" / "ipv4" / "tcp_endless.c").symlink_to("/dev/zero")
    control = stranger.home / "tcp_own.c"
    control.write_text('struct tcp_congestion_ops own = {\n\t.name = "own",\n};\n')
    done = stranger.built("--source", stranger.building.source, "--congestion-control", control)
    assert "could not be configured" not in done.stderr and done.returncode in (0, 1), done.stderr


@pytest.mark.parametrize("kind", ["pipe", "link to a device", "link to a pipe"])
def test_a_source_that_would_be_read_for_ever_is_refused(stranger: Stranger, kind: str) -> None:
    path = stranger.home / "source"
    if kind == "link to a device":
        path.symlink_to("/dev/zero")
    else:
        os.mkfifo(stranger.home / "pipe")
        path.symlink_to(stranger.home / "pipe")
    named = stranger.home / "pipe" if kind == "pipe" else path
    done = stranger.built("--source", named)
    assert done.returncode == 2 and "neither a file nor a folder" in done.stderr, done.stderr
    stranger.building.environment["FIRST_FLIGHT_KERNEL_SOURCE"] = str(named)
    done = stranger.building.built()
    assert done.returncode == 2 and "neither a file nor a folder" in done.stderr, done.stderr


def test_a_tree_with_a_pipe_for_its_makefile_is_refused(stranger: Stranger) -> None:
    source = stranger.source()
    (source / "Makefile").unlink()
    os.mkfifo(source / "Makefile")
    done = stranger.built("--source", source)
    assert done.returncode == 2 and "no top folder with a kernel's Makefile" in done.stderr


def test_without_confinement_a_strangers_source_has_to_be_trusted_by_a_flag(
        stranger: Stranger) -> None:
    """A machine without namespaces cannot confine. It builds a trusted source and says so."""
    (stranger.building.bin / "unshare").write_text("#!/bin/sh\nexit 1\n")
    (stranger.building.bin / "unshare").chmod(0o755)
    done = stranger.built("--source", stranger.source())
    assert done.returncode == 4 and "add --trust-source" in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1 and "modes, times" in done.stderr
    trusted = stranger.built("--source", stranger.source(), "--trust-source")
    assert trusted.returncode == 0, trusted.stderr
    assert trusted.stderr.splitlines()[0].startswith("guest kernel: this build is not confined")


def test_a_build_does_not_read_the_users_environment(stranger: Stranger) -> None:
    """make, gcc, the shell and Python would read these variables."""
    (stranger.home / "rc").write_text(f"touch {stranger.home}/escaped\n")
    stranger.building.environment |= {
        "CC": "/none", "LD": "/none", "MAKEFLAGS": "--eval=$(error stopped)", "V": "1",
        "BASH_ENV": "", "ENV": str(stranger.home / "rc"), "GCC_EXEC_PREFIX": "/none/",
        "CPATH": "/none", "LD_LIBRARY_PATH": "/none", "PYTHONPATH": "/none",
        "KBUILD_OUTPUT": "/none", "TAR_OPTIONS": f"--to-command=touch {stranger.home}/escaped"}
    done = stranger.built("--source", stranger.source("$(info V is [$(V)], LD is [$(LD)])"))
    assert done.returncode == 0, done.stderr
    assert "V is [], LD is [ld]" in stranger.reported.read_text()


def test_a_folder_where_somebody_builds_is_not_imported_from(stranger: Stranger) -> None:
    """A user may start a build in a stranger's folder, which has modules of known names."""
    here = stranger.home / "here"
    (here / "vtime").mkdir(parents=True)
    for name in ("ctypes", "struct", "vtime/__init__", "vtime/confine", "sitecustomize"):
        (here / f"{name}.py").write_text(f"open({str(stranger.home / 'escaped')!r}, 'w')\n")
    source = stranger.source()
    done = subprocess.run([stranger.building.guest / "build.sh", "--name", "f", "--source", source],
                          env=stranger.building.environment, cwd=here, check=False)
    assert done.returncode == 0 and not (stranger.home / "escaped").exists()
