"""install.sh builds, lists and removes named kernels, or refuses; nothing is compiled."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from tests.conftest import PROJECT
from tests.programs.installing import GUEST, builders, run
from tests.programs.test_kernel_build import Building, building
from vtime import uml

building = building  # a fixture of test_kernel_build, which pytest looks for here
INSTALL, BUILD = PROJECT / "install.sh", GUEST / "build.sh"


NO_NAME = "is no name of a kernel"


@pytest.mark.parametrize("words, why", [
    *((["--kernel", name], NO_NAME)
      for name in ("", "..", "../x", "a/b", "a b", "$(id)", "-x", "x" * 41)),
    (["--kernel"], NO_NAME), (["--kernel", "default"], "give yours another name"),
    (["--kernel", "mine", "--patch", "/none"], "there is no patch /none"),
    (["--kernel", "mine", "--config", "X"], "is no OPTION=VALUE"),
    (["--kernel", "mine", "--config", "X=y\nY=y"], "is no OPTION=VALUE"),
    *((["--kernel", "mine", flag, "x"], "about the default kernel")
      for flag in ("--export-kernel", "--import-kernel")),
    (["--kernel", "mine", "--no-kernel"], "about the default kernel"),
    (["--kernel", "mine", "--kernel", "other"], "--kernel is given twice"),
    (["--list-kernels", "x"], "unknown flag x"), (["--list-kernels", "--check"], "used alone"),
    (["--check", "--remove-kernel", "mine"], "used alone"),
    (["--trust-source", "--source"], "need --kernel NAME"),
    (["--patch", "/none"], "need --kernel NAME"), (["--remove-kernel", ".."], NO_NAME)])
def test_an_invalid_name_patch_or_option_of_a_kernel_is_refused_in_one_line(
        words: list[str], why: str, tmp_path: Path) -> None:
    done = run(INSTALL, *words, cache=tmp_path)
    assert done.returncode == 2 and why in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert not list(tmp_path.rglob("*named*"))


@pytest.mark.parametrize("source, why", [
    ("6.11", "Linux 6.11 is too old"), ("/none", "there is no /none"), ("7", "there is no 7")])
def test_a_kernels_source_that_is_too_old_or_missing_is_refused(source: str, why: str,
                                                                tmp_path: Path) -> None:
    done = run(BUILD, "--name", "mine", "--source", source, cache=tmp_path)
    assert done.returncode == 2 and why in done.stderr.splitlines()[-1], done.stderr


# Stubs of apt-cache and apt-get, for a mirror of Debian whose list of stable-backports is older
# than that of trixie-backports. The second one notes its suites and packages in a file.
APT_CACHE = r"""suite=$(sed -n 's/.* \([a-z-]*\) main$/\1/p' "${2%/*}/sources.list" 2>/dev/null)
case "$suite $*" in
"trixie-backports "*pkgnames*) echo linux-source-7.2; echo linux-source-7.3 ;;
"stable-backports "*pkgnames*) echo linux-source-7.2 ;;
"trixie-backports "*madison*) echo "p | 7.2.12-1~bpo13+1 | m"; echo "p | 7.2.9-1~bpo13+1 | m" ;;
"stable-backports "*madison*) echo "p | 7.2.11-1~bpo13+1 | m" ;;
esac"""
APT_GET = r"""case "$*" in
*indextargets*) echo Debian main http://mirror/debian/ ;;
*" update")
    folder=${2%%/*}
    suite=$(sed -n 's/.* \([a-z-]*\) main$/\1/p' "$folder/sources.list")
    echo "$suite" >>%(asked)s
    echo "Codename: trixie-backports" >"$folder/lists/$suite""_InRelease" ;;
*--print-uris*) echo "'http://mirror/x.deb' x.deb 167000000 SHA256:0" ;;
*) for word; do :; done; echo "fetched $word" >>%(asked)s; echo "E: no such file"; exit 100 ;;
esac"""


@pytest.mark.skipif("ID=debian" not in Path("/etc/os-release").read_text().splitlines(),
                    reason="Debian's suites are looked through on Debian only")
@pytest.mark.parametrize("version, fetched", [
    ("7.3", {"linux-source-7.3"}), ("7.2.9", {"linux-source-7.2=7.2.9-1~bpo13+1"}),
    ("7.2.11", {"linux-source-7.2=7.2.11-1~bpo13+1"}), ("7.4", set())])
def test_a_kernels_version_is_searched_in_suites_by_their_code_names(
        version: str, fetched: set[str], tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    path = builders(tmp_path / "bin", apt_cache=APT_CACHE, apt_get=APT_GET % {"asked": asked},
                    curl="exit 6")
    done = run(BUILD, "--name", "mine", "--source", version, cache=tmp_path, PATH=path)
    assert done.returncode == 4
    (line,) = [line for line in done.stderr.splitlines() if "no kernel source" in line]
    assert f"no kernel source of Linux {version} to be had" in line
    words = asked.read_text().splitlines()
    assert {word.removeprefix("fetched ") for word in words
            if word.startswith("fetched")} == fetched
    suites = [word for word in words if not word.startswith("fetched")]
    assert suites[1:3] == ["trixie-backports", "trixie"] and suites[-1] == "experimental", suites


def test_linux_6_12_is_used_only_where_its_version_is_given(tmp_path: Path) -> None:
    """Debian 12 and 13 offer it themselves, and it would be slower as the default kernel."""
    asked = tmp_path / "asked"
    path = builders(tmp_path / "bin", apt_cache='[ "$1" != pkgnames ] || echo linux-source-6.12',
                    apt_get=APT_GET % {"asked": asked}, curl="exit 6")
    for words, fetched in (([], False), (["--name", "mine", "--source", "6.12"], True)):
        done = run(BUILD, *words, cache=tmp_path, PATH=path)
        assert done.returncode == 4 and "no kernel source" in done.stderr, done.stderr
        assert ("fetched linux-source-6.12" in asked.read_text().splitlines()) == fetched


def stored(cache: Path, name: str, kind: str, configuration: str) -> Path:
    """A folder that looks like a named kernel."""
    folder = cache / "first-flight" / "kernel" / "named" / name / kind
    folder.mkdir(parents=True)
    (folder / "linux").touch(mode=0o755)
    recipe = f"digest {'ab' * 32}\nsource cd\npatch ef my.patch\noption CONFIG_X=y"
    for file, text in (("version", "7.2.1"), ("source", "linux-source-7.2 7.2.1-1"),
                       ("inputs", f"configuration {configuration}"), ("recipe", recipe)):
        (folder / file).write_text(f"{text}\n")
    return folder


def test_named_kernels_are_listed_found_and_removed(tmp_path: Path) -> None:
    assert run(INSTALL, "--list-kernels", cache=tmp_path).stdout == ""
    absent = run(BUILD, "--name", "mine", "--path", cache=tmp_path)
    assert absent.returncode == 1 and "there is no kernel mine for trials" in absent.stderr
    key = Path(run(BUILD, "--path", cache=tmp_path).stdout).parent.name
    folder = stored(tmp_path, "mine", "trials", key)
    assert run(INSTALL, "--list-kernels", cache=tmp_path).stdout == (
        "mine\tfor trials\tLinux 7.2.1\tlinux-source-7.2 7.2.1-1, patch my.patch, CONFIG_X=y"
        "\tdigest abababababababab\n")
    missing = run(INSTALL, "--kernel", "absent", "--check", cache=tmp_path)
    assert missing.returncode == 1 and "there is no kernel absent" in missing.stderr
    assert missing.stderr.count("\n") == 1
    default = tmp_path / "first-flight" / "kernel" / f"{key}-{'cd' * 8}"
    default.mkdir()
    for name in ("linux", "version", "source"):
        shutil.copy(folder / name, default / name)
    (default / "inputs").write_text(f"source {'cd' * 32}\n")
    (default.parent / key).symlink_to(default.name)
    plain = hashlib.sha256(f"source {'cd' * 32}\n\n".encode()).hexdigest()[:16]
    assert run(INSTALL, "--list-kernels", cache=tmp_path).stdout.splitlines()[0] == (
        f"default\tfor trials\tLinux 7.2.1\tlinux-source-7.2 7.2.1-1\tdigest {plain}")
    found = run(BUILD, "--name", "mine", "--path", cache=tmp_path)
    assert (found.returncode, found.stdout) == (0, f"{folder}/linux\n")
    assert run(BUILD, "--mininet", "--name", "mine", "--path", cache=tmp_path).returncode == 1

    other = stored(tmp_path, "other", "trials", key)
    trees = tmp_path / "first-flight" / "kernel" / "trees"
    for name in ("trials-7.2", "commands-7.2", "trials-of-mine", "trials-of-other"):
        (trees / name).mkdir(parents=True)
        for file in ("name", "digest"):
            (trees / name / file).write_text(f"{name}\n")
    assert run(INSTALL, "--remove-kernel", "mine", cache=tmp_path).returncode == 0
    assert not folder.parent.exists() and other.exists()
    assert {path.name for path in trees.iterdir()} == {"trials-7.2", "trials-of-other"}
    assert run(INSTALL, "--remove-kernel", "mine", cache=tmp_path).returncode == 1


@pytest.mark.parametrize("words", [["--kernel", "default,mine", "--rtt", "20"],
                                   ["--kernel", "default,mine", "--", "true"]])
def test_a_missing_named_kernel_is_reported_before_the_default_one_is_built(words: list[str],
                                                                            tmp_path: Path) -> None:
    """Building takes minutes, and begins only once the named kernel exists."""
    read = [Path("/usr/bin/python3"), str(PROJECT / "experiment.py"), "--only-read-flags", *words]
    done = run(*read, cache=tmp_path)
    assert done.returncode == 4 and "there is no kernel mine for" in done.stderr, done.stderr
    assert done.stderr.count("\n") == 1
    for kind, mininet in (("trials", []), ("commands", ["--mininet"])):
        key = Path(run(BUILD, *mininet, "--path", cache=tmp_path).stdout).parent.name
        stored(tmp_path, "mine", kind, key)
    assert run(*read, cache=tmp_path).returncode == 0


def test_a_kernel_of_another_version_of_the_project_is_not_run(tmp_path: Path) -> None:
    """Its clock and its reports on packets may be others."""
    stored(tmp_path, "mine", "trials", "0123456789abcdef")
    done = run(BUILD, "--name", "mine", "--path", cache=tmp_path)
    assert done.returncode == 1 and "built by another version of this project" in done.stderr


PATCH = """--- a/tcp.c
+++ b/tcp.c
@@ -1,1 +1,1 @@
-plain
\\ No newline at end of file
+patched
\\ No newline at end of file
"""


CONTROL = """\
static struct tcp_congestion_ops mine __read_mostly = {
	.name		= "mine",
	.owner		= THIS_MODULE,
};
"""


def test_a_congestion_control_of_one_file_gets_its_lines_in_kconfig_and_makefile(
        building: Building) -> None:
    ipv4 = building.source / "net" / "ipv4"
    (ipv4 / "Kconfig").write_text("config TCP_CONG_CDG\n")
    (ipv4 / "Makefile").write_text("obj-$(CONFIG_TCP_CONG_CDG) += tcp_cdg.o\n")
    (ipv4 / "tcp_cdg.c").write_text(CONTROL.replace("mine", "cdg"))
    mine, cdg = building.home / "my.c", building.home / "tcp_cdg.c"
    mine.write_text(CONTROL)
    cdg.write_text("/* another */\n" + CONTROL.replace("mine", "cdg"))
    done = building.built("--name", "k", "--congestion-control", mine, "--congestion-control", cdg)
    assert done.returncode == 0, done.stderr
    assert "my.c has the congestion control mine: --cc mine uses it" in done.stderr
    assert "takes the place of the kernel's own net/ipv4/tcp_cdg.c" in done.stderr
    tree = building.root / "trees" / "trials-of-k" / "tree" / "net" / "ipv4"
    assert (tree / "my.c").read_text() == CONTROL
    assert (tree / "tcp_cdg.c").read_text() == cdg.read_text()
    assert (tree / "Kconfig").read_text().splitlines()[1:] == [
        "", "config TCP_CONG_OWN_MINE", '\tbool "mine, of my.c"']
    assert (tree / "Makefile").read_text().splitlines()[:2] == [
        "obj-$(CONFIG_TCP_CONG_CDG) += tcp_cdg.o", "obj-$(CONFIG_TCP_CONG_OWN_MINE) += my.o"]
    kernel = building.root / "named" / "k" / "trials"
    config = (kernel / "config").read_text().splitlines()
    assert {"CONFIG_TCP_CONG_OWN_MINE=y", "CONFIG_TCP_CONG_CDG=y"} <= {*config}
    recipe = uml.recipe_of(kernel / "linux")
    assert not recipe["known"]
    assert [patch.split()[1] for patch in recipe["patches"]] == ["my.c", "tcp_cdg.c"]


def test_an_invalid_congestion_control_is_refused(building: Building) -> None:
    (building.source / "net" / "ipv4" / "Kconfig").write_text("config TCP_CONG_CDG\n")
    (building.source / "net" / "ipv4" / "tcp_cdg.c").write_text(CONTROL.replace("mine", "cdg"))
    for name, text, why in (
            ("my.c", "int x;\n", "my.c is no congestion control"),
            ("my.c", CONTROL.replace('"mine"', f'"{"x" * 16}"'), "a .name of 1 to 15 characters"),
            ("my.c", CONTROL.replace('"mine"', '"cdg"'),
             "net/ipv4/tcp_cdg.c of this Linux is called"),
            ("tcp_cwv.c", CONTROL, "is a file of the kernel's own"),
            ("my file.c", CONTROL, "its name may have letters"), ("my.h", CONTROL, "ends in .c")):
        (building.home / name).write_text(text)
        done = building.built("--name", "k", "--congestion-control", building.home / name)
        assert done.returncode in (1, 2) and why in done.stderr.splitlines()[-1], done.stderr
        assert done.stderr.splitlines()[-1].endswith("there is no kernel k")


def test_a_linux_before_6_13_gets_more_room_for_registers(building: Building) -> None:
    registers = Path("arch") / "x86" / "um" / "user-offsets.c"
    (building.source / registers).parent.mkdir(parents=True)
    (building.source / registers).write_text("\tDEFINE_LONGS(HOST_FP_SIZE, 2696);\n")
    options = "config KERNEL_STACK_ORDER\n\tdefault 2 if 64BIT\n\tdefault 1 if !64BIT\n"
    (building.source / "arch" / "um" / "Kconfig").write_text(options)
    done = building.built("--name", "mine")
    assert done.returncode == 0, done.stderr
    tree = building.root / "trees" / "trials-of-mine" / "tree"
    assert (tree / registers).read_text() == "\tDEFINE_LONGS(HOST_FP_SIZE, 16384);\n"
    assert (tree / "arch" / "um" / "Kconfig").read_text() == options.replace("2 if", "4 if")


def test_a_disk_that_fills_up_while_a_source_is_read_is_reported(building: Building) -> None:
    cut = building.home / "bin" / "cut"  # the program that writes the digest of a source
    cut.write_text(
        '#!/bin/sh\n[ "$*" != "-c 1-64" ] || { echo "cut: No space left" >&2; exit 1; }\n'
        f'exec {shutil.which("cut")} "$@"\n')
    cut.chmod(0o755)
    done = building.built("--name", "mine", "--source", building.source)
    assert done.returncode == 4, done.stderr
    assert done.stderr.splitlines()[-1].endswith("free some, or set XDG_CACHE_HOME")
    assert "No space left" not in done.stderr
    assert not (building.root / ".unpacked").exists()


def test_objects_are_kept_where_the_guests_changes_do_not_fit_a_patch(building: Building) -> None:
    patch = building.home / "own.patch"
    patch.write_text("--- /dev/null\n+++ b/net/ipv4/tcp_cwv.c\n@@ -0,0 +1 @@\n+int own;\n")
    done = building.built("--name", "mine", "--patch", patch)
    assert done.returncode == 1, done.stderr
    assert "tcp_cwv.c is a file of the kernel's own" in done.stderr.splitlines()[-1]
    assert (building.root / "trees" / "trials-of-mine" / "built").exists()
    assert not (building.root / ".build").exists()


def test_named_kernels_are_built_from_kept_objects(building: Building) -> None:
    """The first one starts from the default kernel's objects. A failed build changes nothing."""
    built = building.built
    assert built("--keep-objects").returncode == 0
    trees = building.root / "trees"
    tree = trees / "trials-of-mine"
    (trees / "trials-of-default" / "built" / "objects" / "kept").touch()
    assert not (building.root / ".build").exists()
    patch = building.home / "my.patch"
    patch.write_text(PATCH)
    done = built("--name", "mine", "--patch", str(patch))
    kernel = building.root / "named" / "mine" / "trials" / "linux"
    assert (done.returncode, done.stdout) == (0, f"{kernel}\n"), done.stderr
    assert "guest kernel: 1 files differ" in done.stderr
    assert (tree / "built" / "objects" / "kept").exists()
    assert (tree / "tree" / "tcp.c").read_text() == "patched"
    sources = (building.root / "sources").glob("*/source/tcp.c")
    assert {source.read_text() for source in sources} == {"plain"}
    assert (building.source / "tcp.c").read_text() == "plain"
    recipe = (kernel.parent / "recipe").read_text()
    (tree / "built" / "objects" / "of-the-patch").touch()
    assert built("--name", "plain").returncode == 0, "it needs that file as it was"
    plain = trees / "trials-of-plain"
    assert (plain / "tree" / "tcp.c").read_text() == "plain"
    assert (plain / "built" / "objects" / "kept").exists()
    assert not (plain / "built" / "objects" / "of-the-patch").exists(), "another kernel's objects"

    def digest(name: str) -> str:
        lines = (building.root / "named" / name / "trials" / "recipe").read_text().splitlines()
        return next(line for line in lines if line.startswith("digest "))

    assert digest("plain") != digest("mine")
    patch.write_text(PATCH.replace("-plain", "-other"))
    refused = built("--name", "mine", "--patch", str(patch))
    assert refused.returncode == 1, refused.stderr
    assert "tcp.c:1: other lines stand there" in refused.stderr
    (building.bin / "broken").touch()
    (tree / "built" / "objects" / "old").touch()  # so the stub of make fails
    patch.write_text(PATCH)
    failed = built("--name", "mine", "--patch", str(patch))
    assert failed.returncode == 1, failed.stderr
    assert "(x.o: error: not recognized); mine stays what it was" in failed.stderr.splitlines()[-1]
    assert (kernel.parent / "recipe").read_text() == recipe and kernel.exists()
    assert (tree / "built" / "objects" / "kept").exists()
    assert not (building.root / ".build").exists()
    done = built("--name", "mine")
    assert done.returncode == 0, done.stderr  # without the objects of the patch
    assert not (tree / "built" / "objects" / "of-the-patch").exists()
    assert built("--remove", "mine").returncode == 0 == built("--remove", "plain").returncode
    assert [path.name for path in trees.iterdir()] == ["trials-of-default"], "--keep-objects"
    assert building.built().returncode == 0, "the default kernel is there as before"


@pytest.mark.parametrize("words, needed", [
    (["--kernel", "f5", "--", "true"], "--no-kernel"),
    (["--kernel=f5,f6", "--", "true"], "--no-kernel"),
    (["--kernel", "f5,default", "--", "true"], "--for-commands"),
    (["--", "x", "--kernel", "f5"], "--for-commands"),
    (["--kernel", "f5", "--rtt", "20"], "")])
def test_a_command_on_named_kernels_checks_for_no_other(words: list[str], needed: str,
                                                        tmp_path: Path) -> None:
    shutil.copy(PROJECT / "run.sh", tmp_path)
    (tmp_path / "experiment.py").write_text("")
    (tmp_path / "install.sh").write_text(f'#!/bin/sh\necho "$*" >>{tmp_path}/asked\n')
    (tmp_path / "install.sh").chmod(0o755)
    assert run(tmp_path / "run.sh", *words, cache=tmp_path).returncode == 0
    assert (tmp_path / "asked").read_text() == f"--check {needed}".rstrip() + "\n"
