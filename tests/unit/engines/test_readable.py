"""What of the machine a guest reads: homes, places with secrets, and what everybody may read."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from firstflight.testbed.guests import readable_by
from vtime import readable
from vtime.console import EngineCannot

ME = os.geteuid()


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder to which everybody comes, as to /opt."""
    made = Path(tempfile.mkdtemp())
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


def laid(place: Path, **modes: int) -> None:
    """Files in folders by their names, with _ for /; a mode without content is a folder's."""
    for name, mode in modes.items():
        path = place / name.replace("_", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_text("content")
        path.chmod(mode)


def read_in(place: Path) -> list[str]:
    """What of a place is read, by names within it."""
    return [os.path.relpath(path, place) for path in readable.ReadablePaths([str(place)]).paths
            if Path(path).is_relative_to(place)]


def user(name: str, uid: int, home: str | Path) -> pwd.struct_passwd:
    return pwd.struct_passwd((name, "x", uid, uid, "", str(home), "/bin/sh"))


def knows(monkeypatch: pytest.MonkeyPatch, *users: pwd.struct_passwd, home: str = "/") -> None:
    """Let passwd name these users, and $HOME this home."""
    monkeypatch.setattr(pwd, "getpwall", lambda: list(users))
    monkeypatch.setenv("HOME", home)
    monkeypatch.delenv("SUDO_UID", raising=False)


# What everybody may read -------------------------------------------------------------

def test_only_files_of_a_folder_that_everybody_may_read_are_readable(place: Path) -> None:
    laid(place, open_a=0o644, open_b_c=0o444, ssh_config=0o644)
    assert read_in(place) == ["."]
    laid(place, ssh_key=0o600, closed_a=0o644, shadow=0o640, only_in=0o644)
    (place / "closed").chmod(0o711)
    (place / "only").chmod(0o744)
    assert read_in(place) == ["open", "ssh/config"]
    # For commands /etc is one of these places.
    read = readable.ReadablePaths(readable.OF_COMMANDS).paths
    assert "/etc/passwd" in read and not {"/etc/shadow", "/etc"} & set(read)


def test_a_place_in_a_closed_folder_is_not_read_though_it_is_open(place: Path) -> None:
    laid(place, closed_open_a=0o644)
    (place / "closed").chmod(0o700)
    assert read_in(place / "closed" / "open") == []


def test_a_link_is_judged_by_what_it_leads_to(place: Path) -> None:
    laid(place, closed_a=0o644, elsewhere_a=0o644, opt_a=0o644)
    (place / "closed").chmod(0o700)
    (place / "opt" / "link").symlink_to("../closed/a")
    (place / "opt" / "out").symlink_to("../elsewhere")
    read = readable.ReadablePaths([str(place / "opt")]).paths
    assert str(place / "opt") in read  # and with it no other folder
    assert [path for path in read if Path(path).is_relative_to(place)] == [str(place / "opt")]
    for name, leads, seen in (("to-closed", "closed", []), ("to-file", "closed/a", []),
                              ("to-open", "elsewhere", ["elsewhere"])):
        (place / name).symlink_to(place / leads)
        read = readable.ReadablePaths([str(place / name)]).paths
        assert [os.path.relpath(path, place) for path in read
                if Path(path).is_relative_to(place)] == seen


@pytest.mark.parametrize("name", ["a*b", "a?", "[ab]", "a\\b", "-name", "new\nline", " ", "\udcff"])
def test_closed_names_of_any_kind_are_not_read(place: Path, name: str,
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    for folder, mode in (("opt", 0o755), ("other", 0o755)):
        (place / folder / name).mkdir(parents=True)
        (place / folder / "aXb").mkdir()
        (place / folder / name).chmod(mode)
    (place / "other" / name).chmod(0o700)
    knows(monkeypatch, user("me", ME, place / "opt" / name))
    assert read_in(place / "opt") == read_in(place / "other") == ["aXb"]


def test_pipes_and_sockets_are_not_read(place: Path) -> None:
    laid(place, a=0o644)
    os.mkfifo(place / "pipe")
    (place / "pipe").chmod(0o666)
    assert read_in(place) == ["a"]


def test_a_home_is_not_read_though_everybody_may(place: Path,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    """A home is a folder of its user's; what passwd names for users of the system is root's."""
    laid(place, git_a=0o644, programs_a=0o644, b=0o644)
    knows(monkeypatch, user("git", ME, place / "git"), user("daemon", ME + 1, place / "programs"),
          user("nobody", 65534, "/nonexistent"), user("sync", ME, "/"))
    assert read_in(place) == ["b", "programs"]
    assert read_in(place / "git") == []
    knows(monkeypatch, home=str(place / "programs"))
    assert read_in(place) == ["b", "git"]


def test_a_place_with_too_many_parts_is_not_read(place: Path,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    laid(place, closed=0o600, **{name: 0o644 for name in "abcd"})
    monkeypatch.setattr(readable, "MOST_PARTS", 4)
    assert read_in(place) == list("abcd")
    monkeypatch.setattr(readable, "MOST_PARTS", 3)
    assert read_in(place) == []


def test_local_programs_are_those_that_everybody_reads(place: Path,
                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    laid(place, local_bin_a=0o755, local_etc_key=0o600)
    monkeypatch.setattr(readable, "LOCAL", str(place / "local"))
    read = readable.ReadablePaths().paths
    assert "/usr" in read and f"{place}/local/bin" in read
    assert not {f"{place}/local", f"{place}/local/etc", f"{place}/local/etc/key"} & set(read)
    # Where something in /usr itself is closed, the rest of it stands there part by part.
    owner = os.stat("/usr/bin").st_uid
    knows(monkeypatch, user("me", owner, "/usr/share"), user("other", owner, "/bin"))
    read = readable.ReadablePaths().paths
    assert {"/usr/lib", "/usr/bin"} <= set(read) and not {"/usr", "/usr/share"} & set(read)


@pytest.mark.skipif(ME != 0, reason="only root mounts")
def test_a_file_system_mounted_into_a_readable_folder_is_not_readable(place: Path) -> None:
    laid(place, home_secret=0o644, opt_a=0o644)
    (place / "opt" / "into it").mkdir()
    subprocess.run(["mount", "--bind", str(place / "home"), str(place / "opt" / "into it")],
                   check=True)
    try:
        assert read_in(place / "opt") == ["a"]
    finally:
        subprocess.run(["umount", str(place / "opt" / "into it")], check=True)


# ReadablePaths with secrets -----------------------------------------------------------------

@pytest.mark.parametrize("folder", [
    "/", "/home", "/root", "/tmp", "/etc", "/etc/ssh", "/run/user/1000", "/var", "~", "~/.ssh",
    "~/.config/app", "/proc/1", "/dev", "/opt", "/srv", "/usr", "/usr/local"])
def test_no_command_is_started_in_a_place_with_secrets(folder: str) -> None:
    why = readable.refused(Path(folder).expanduser())
    assert "start it in a folder of its own" in why and "--readable " in why
    assert readable.refused(Path(folder).expanduser(), [Path(folder).expanduser()]) == ""


def test_a_command_may_start_in_a_folder_of_ones_own_without_secrets(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert readable.refused(tmp_path) == ""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert readable.refused(tmp_path / "project" / ".git") == ""
    assert readable.refused(tmp_path / ".aws") and readable.refused(tmp_path)
    assert readable.refused(tmp_path / ".aws" / "sso", [tmp_path / ".aws"]) == ""
    assert readable.refused(tmp_path / ".aws", [tmp_path / ".aws" / "sso"])


def test_no_command_is_started_in_the_home_of_any_user(place: Path,
                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    """Of whoever called sudo, too, whom passwd may know and not list."""
    laid(place, mine_a=0o644, other_a=0o644)
    knows(monkeypatch, user("other", ME, place / "other"), home="/root")
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: {4711: user("me", 4711, place / "mine")}[uid])
    assert readable.refused(place / "other") and readable.refused(place / "other" / ".ssh")
    assert readable.refused(place / "mine") == ""
    for uid, is_known in (("4711", True), ("4712", False), ("x", False)):
        monkeypatch.setenv("SUDO_UID", uid)
        assert bool(readable.refused(place / "mine")) is is_known
    assert readable.refused(place / "other" / "project") == ""
    # What is no path is no home, wherever this process is.
    monkeypatch.chdir(place)
    knows(monkeypatch, user("none", ME, ""), user("dot", ME, "."))
    assert readable.refused(place) == ""


def test_a_link_in_a_strangers_folder_names_no_secrets(place: Path,
                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    laid(place, home_ssh=0o600, work_data=0o644, lib_a=0o644)
    monkeypatch.setenv("HOME", str(place / "home"))
    for name, leads in (("keys", "home"), ("lib", "lib"), ("own", "work/data")):
        (place / "work" / name).symlink_to(place / leads)
    work = place / "work"
    assert readable.led_to(Path("keys"), work) == str(place / "home")
    assert [readable.led_to(Path(path), work) for path in (
        "lib", "own", "data", "../home", place / "home", "/etc")] == [""] * 6


@pytest.mark.parametrize(("folders", "ca", "works"), [
    (["/root"], "", False), (["/etc"], "", False), (["/"], "", False), ([], "/etc/shadow", False),
    (["/srv/site"], "/etc/ssl/certs/mine.pem", False), (["/srv/site"], "/etc/passwd", True)])
def test_a_scenario_names_no_secrets_for_its_server(folders: list[str], ca: str,
                                                    works: bool) -> None:
    trials = [{"id": "a", "own": {"folders": folders, "ca": ca}}, {"id": "b"}]
    if works:
        assert readable_by(trials) == sorted([*folders, ca])
    else:
        with pytest.raises(EngineCannot, match="a folder of its own"):
            readable_by(trials)
