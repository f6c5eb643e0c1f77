"""What a guest may read of the machine: files that all users may read, no homes, no secrets."""

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
    """A folder that all users may enter and read, as /opt."""
    made = Path(tempfile.mkdtemp())
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


def create(place: Path, **modes: int) -> None:
    """Creates files with these modes. _ in a name is /: ssh_key is the file key in folder ssh."""
    for name, mode in modes.items():
        path = place / name.replace("_", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_text("content")
        path.chmod(mode)


def read_in(place: Path) -> list[str]:
    """The readable paths of a place, relative to it."""
    return [os.path.relpath(path, place) for path in readable.ReadablePaths([str(place)]).paths
            if Path(path).is_relative_to(place)]


def user(name: str, uid: int, home: str | Path) -> pwd.struct_passwd:
    """A line of passwd."""
    return pwd.struct_passwd((name, "x", uid, uid, "", str(home), "/bin/sh"))


def set_users(monkeypatch: pytest.MonkeyPatch, *users: pwd.struct_passwd, home: str = "/") -> None:
    """Lets passwd have these users, and $HOME be this folder."""
    monkeypatch.setattr(pwd, "getpwall", lambda: list(users))
    monkeypatch.setenv("HOME", home)
    monkeypatch.delenv("SUDO_UID", raising=False)


# What all users may read -------------------------------------------------------------

def test_only_files_of_a_folder_that_everybody_may_read_are_readable(place: Path) -> None:
    create(place, open_a=0o644, open_b_c=0o444, ssh_config=0o644)
    assert read_in(place) == ["."]
    create(place, ssh_key=0o600, closed_a=0o644, shadow=0o640, only_in=0o644)
    (place / "closed").chmod(0o711)
    (place / "only").chmod(0o744)
    assert read_in(place) == ["open", "ssh/config"]
    # /etc is such a place for commands.
    read = readable.ReadablePaths(readable.OF_COMMANDS).paths
    assert "/etc/passwd" in read and not {"/etc/shadow", "/etc"} & set(read)


def test_an_open_folder_in_a_closed_folder_is_not_read(place: Path) -> None:
    create(place, closed_open_a=0o644)
    (place / "closed").chmod(0o700)
    assert read_in(place / "closed" / "open") == []


def test_a_link_is_readable_where_its_target_is_a_readable_folder(place: Path) -> None:
    create(place, closed_a=0o644, elsewhere_a=0o644, opt_a=0o644)
    (place / "closed").chmod(0o700)
    (place / "opt" / "link").symlink_to("../closed/a")
    (place / "opt" / "out").symlink_to("../elsewhere")
    read = readable.ReadablePaths([str(place / "opt")]).paths
    # The targets of links within a readable folder do not become readable.
    assert [path for path in read if Path(path).is_relative_to(place)] == [str(place / "opt")]
    for name, target, expected in (("to-closed", "closed", []), ("to-file", "closed/a", []),
                                   ("to-open", "elsewhere", ["elsewhere"])):
        (place / name).symlink_to(place / target)
        read = readable.ReadablePaths([str(place / name)]).paths
        assert [os.path.relpath(path, place) for path in read
                if Path(path).is_relative_to(place)] == expected


@pytest.mark.parametrize("name", ["a*b", "a?", "[ab]", "a\\b", "-name", "new\nline", " ", "\udcff"])
def test_homes_and_closed_folders_with_any_name_are_not_read(
        place: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder, mode in (("opt", 0o755), ("other", 0o755)):
        (place / folder / name).mkdir(parents=True)
        (place / folder / "aXb").mkdir()
        (place / folder / name).chmod(mode)
    (place / "other" / name).chmod(0o700)
    set_users(monkeypatch, user("me", ME, place / "opt" / name))
    assert read_in(place / "opt") == read_in(place / "other") == ["aXb"]


def test_pipes_and_sockets_are_not_read(place: Path) -> None:
    create(place, a=0o644)
    os.mkfifo(place / "pipe")
    (place / "pipe").chmod(0o666)
    assert read_in(place) == ["a"]


def test_a_home_is_not_read_although_all_users_may_read_it(
        place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home belongs to its user. Homes of system users in passwd belong to root, and are none."""
    create(place, git_a=0o644, programs_a=0o644, b=0o644)
    set_users(monkeypatch, user("git", ME, place / "git"),
              user("daemon", ME + 1, place / "programs"),
              user("nobody", 65534, "/nonexistent"), user("sync", ME, "/"))
    assert read_in(place) == ["b", "programs"]
    assert read_in(place / "git") == []
    set_users(monkeypatch, home=str(place / "programs"))
    assert read_in(place) == ["b", "git"]


def test_a_folder_with_too_many_readable_parts_is_not_read(
        place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create(place, closed=0o600, **{name: 0o644 for name in "abcd"})
    monkeypatch.setattr(readable, "MOST_PARTS", 4)
    assert read_in(place) == list("abcd")
    monkeypatch.setattr(readable, "MOST_PARTS", 3)
    assert read_in(place) == []


def test_local_programs_are_readable_where_all_users_may_read_them(
        place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create(place, local_bin_a=0o755, local_etc_key=0o600)
    monkeypatch.setattr(readable, "LOCAL", str(place / "local"))
    read = readable.ReadablePaths().paths
    assert "/usr" in read and f"{place}/local/bin" in read
    assert not {f"{place}/local", f"{place}/local/etc", f"{place}/local/etc/key"} & set(read)
    # Where a part of /usr is closed, its other parts are listed one by one.
    owner = os.stat("/usr/bin").st_uid
    set_users(monkeypatch, user("me", owner, "/usr/share"), user("other", owner, "/bin"))
    read = readable.ReadablePaths().paths
    assert {"/usr/lib", "/usr/bin"} <= set(read) and not {"/usr", "/usr/share"} & set(read)


@pytest.mark.skipif(ME != 0, reason="only root may mount")
def test_a_file_system_mounted_into_a_readable_folder_is_not_readable(place: Path) -> None:
    create(place, home_secret=0o644, opt_a=0o644)
    (place / "opt" / "into it").mkdir()
    subprocess.run(["mount", "--bind", str(place / "home"), str(place / "opt" / "into it")],
                   check=True)
    try:
        assert read_in(place / "opt") == ["a"]
    finally:
        subprocess.run(["umount", str(place / "opt" / "into it")], check=True)


# Folders with secrets ----------------------------------------------------------------

@pytest.mark.parametrize("folder", [
    "/", "/home", "/root", "/tmp", "/etc", "/etc/ssh", "/run/user/1000", "/var", "~", "~/.ssh",
    "~/.config/app", "/proc/1", "/dev", "/opt", "/srv", "/usr", "/usr/local"])
def test_a_command_is_not_started_in_a_folder_with_secrets(folder: str) -> None:
    why = readable.refused(Path(folder).expanduser())
    assert "start it in a folder of its own" in why and "--readable " in why
    assert readable.refused(Path(folder).expanduser(), [Path(folder).expanduser()]) == ""


def test_a_command_is_started_in_a_users_folder_without_secrets(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert readable.refused(tmp_path) == ""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert readable.refused(tmp_path / "project" / ".git") == ""
    assert readable.refused(tmp_path / ".aws") and readable.refused(tmp_path)
    assert readable.refused(tmp_path / ".aws" / "sso", [tmp_path / ".aws"]) == ""
    assert readable.refused(tmp_path / ".aws", [tmp_path / ".aws" / "sso"])


def test_a_command_is_not_started_in_the_home_of_any_user(
        place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user who called sudo counts, too. passwd may know that user and not list it."""
    create(place, mine_a=0o644, other_a=0o644)
    set_users(monkeypatch, user("other", ME, place / "other"), home="/root")
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: {4711: user("me", 4711, place / "mine")}[uid])
    assert readable.refused(place / "other") and readable.refused(place / "other" / ".ssh")
    assert readable.refused(place / "mine") == ""
    for uid, is_known in (("4711", True), ("4712", False), ("x", False)):
        monkeypatch.setenv("SUDO_UID", uid)
        assert bool(readable.refused(place / "mine")) is is_known
    assert readable.refused(place / "other" / "project") == ""
    # "" and "." are not homes, although this process is in the folder.
    monkeypatch.chdir(place)
    set_users(monkeypatch, user("none", ME, ""), user("dot", ME, "."))
    assert readable.refused(place) == ""


def test_a_link_in_the_start_folder_that_leads_into_a_home_is_found(
        place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create(place, home_ssh=0o600, work_data=0o644, lib_a=0o644)
    monkeypatch.setenv("HOME", str(place / "home"))
    for name, target in (("keys", "home"), ("lib", "lib"), ("own", "work/data")):
        (place / "work" / name).symlink_to(place / target)
    work = place / "work"
    assert readable.led_to(Path("keys"), work) == str(place / "home")
    assert [readable.led_to(Path(path), work) for path in (
        "lib", "own", "data", "../home", place / "home", "/etc")] == [""] * 6


@pytest.mark.parametrize(("folders", "ca", "works"), [
    (["/root"], "", False), (["/etc"], "", False), (["/"], "", False), ([], "/etc/shadow", False),
    (["/srv/site"], "/etc/ssl/certs/mine.pem", False), (["/srv/site"], "/etc/passwd", True)])
def test_a_scenario_that_names_secrets_for_its_server_is_refused(folders: list[str], ca: str,
                                                                 works: bool) -> None:
    trials = [{"id": "a", "own": {"folders": folders, "ca": ca}}, {"id": "b"}]
    if works:
        assert readable_by(trials) == sorted([*folders, ca])
    else:
        with pytest.raises(EngineCannot, match="a folder of its own"):
            readable_by(trials)
