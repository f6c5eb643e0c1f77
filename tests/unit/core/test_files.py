"""Files: whole at any moment, the invoking user's, and through nobody else's link."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from firstflight.base import files, places, reading
from firstflight.base.errors import FirstFlightError, WriteError
from tests.running import run_program

ME, OTHER = 12345, 23456  # who called sudo, and somebody else
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of others")


@pytest.fixture
def sudo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_UID", str(ME))
    monkeypatch.setenv("SUDO_GID", str(ME))


def owner(path: Path) -> tuple[int, int]:
    status = path.lstat()
    return status.st_uid, status.st_gid


def plant_link(path: Path, target: Path, uid: int = OTHER) -> Path:
    """Make a link that belongs to another user; return its path."""
    path.symlink_to(target)
    os.chown(path, uid, uid, follow_symlinks=False)
    return path


def test_a_written_file_is_whole_and_leaves_no_temporary_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "a b,ü\N{SNOWMAN}.txt"
    assert files.write(path, "one") == path
    files.write(path, b"two")
    assert path.read_bytes() == b"two" and os.listdir(path.parent) == [path.name]
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask()


def umask() -> int:
    now = os.umask(0)
    os.umask(now)
    return now


def test_two_writers_of_one_name_leave_one_whole_file(tmp_path: Path) -> None:
    """Where writers share the name of a temporary file, some fail, and what they wrote is lost."""
    contents = [bytes([number]) * 100_000 for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(20):
            list(pool.map(lambda content: files.write(tmp_path / "page", content), contents))
            assert (tmp_path / "page").read_bytes() in contents
    assert os.listdir(tmp_path) == ["page"]


@pytest.mark.parametrize("has_names", [False, True])
def test_a_file_that_is_not_whole_yet_never_has_its_name(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_names: bool) -> None:
    """Neither while it is written nor after its writer failed.

    has_names: on a file system without O_TMPFILE, where a new file needs a name at once.
    """
    if has_names:
        monkeypatch.setattr(os, "O_TMPFILE", 0)
    (tmp_path / "page").write_text("before")
    with files.Folder(tmp_path) as folder, pytest.raises(WriteError, match="stopped"):
        with folder.replacing("page") as file:
            files.write_all(file, b"half")
            assert len(os.listdir(tmp_path)) == 1 + has_names
            assert (tmp_path / "page").read_text() == "before"
            raise OSError("stopped")
    assert os.listdir(tmp_path) == ["page"] and (tmp_path / "page").read_text() == "before"
    assert files.write(tmp_path / "page", "new").read_text() == "new"
    assert os.listdir(tmp_path) == ["page"]


def test_a_hidden_file_of_nearly_the_same_name_stays(tmp_path: Path) -> None:
    """As ~/.profile where findings are exported to ~/profile."""
    (tmp_path / ".profile").write_text("mine")
    files.write(tmp_path / "profile", "new")
    files.link(tmp_path / "profile2", "profile")
    assert (tmp_path / ".profile").read_text() == "mine"
    assert sorted(os.listdir(tmp_path)) == [".profile", "profile", "profile2"]
    long = "n" * 255  # as long as a name may be
    assert files.write(tmp_path / long, "new").read_text() == "new"


# What is not a regular file ------------------------------------------------------------

@pytest.mark.usefixtures("impatient")
def test_a_fifo_is_written_into(tmp_path: Path) -> None:
    pipe, content = tmp_path / "pipe", b"much " * 100_000  # more than a pipe holds
    os.mkfifo(pipe)
    (tmp_path / "to_pipe").symlink_to("pipe")
    with pytest.raises(WriteError, match="pipe: cannot be written: .*: start its reader first"):
        files.write(pipe, "nobody reads")
    for path in (pipe, tmp_path / "to_pipe"):
        with open(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb") as reading:
            holder = os.open(pipe, os.O_WRONLY)  # until it is closed the reader waits for more
            os.set_blocking(reading.fileno(), True)
            with ThreadPoolExecutor() as other:
                read = other.submit(reading.read)
                try:
                    files.write(path, content)
                finally:
                    os.close(holder)
                assert read.result() == content
    assert pipe.is_fifo() and sorted(os.listdir(tmp_path)) == ["pipe", "to_pipe"]


@pytest.mark.parametrize(("kind", "number", "why"), [
    (stat.S_IFCHR, (1, 3), ""), (stat.S_IFCHR, (1, 7), "No space left on device: make room"),
    (stat.S_IFBLK, (7, 250), "it is a disk or a socket"), (stat.S_IFSOCK, (0, 0), "it is a disk")])
@as_root
def test_writing_to_a_device_leaves_it_a_device(tmp_path: Path, kind: int, number: tuple[int, int],
                                                why: str) -> None:
    """As /dev/null, /dev/full, a disk and a socket, made here."""
    device = tmp_path / "device"
    try:
        os.mknod(device, kind | 0o666, os.makedev(*number))
        if kind == stat.S_IFCHR:
            os.close(os.open(device, os.O_WRONLY))
    except PermissionError:
        pytest.skip("no devices may be made or opened here")
    (tmp_path / "link").symlink_to("device")
    before = device.lstat()
    for path in (device, tmp_path / "link"):
        if why:
            with pytest.raises(WriteError, match=f"device: cannot be written: {why}"):
                files.write(path, "text")
        else:
            assert files.write(path, "text") == path
        with pytest.raises(WriteError, match="that is not a link has its name"):
            files.link(device, "run")
    assert (device.lstat().st_mode, device.lstat().st_rdev) == (before.st_mode, before.st_rdev)
    assert sorted(os.listdir(tmp_path)) == ["device", "link"]


TO_STANDARD_OUTPUT = """
import os, pathlib, sys
from firstflight.base import files
print("before")
for path in sys.argv[1:]:
    files.write(pathlib.Path(path), path + os.linesep)
print("after")
"""


def test_a_path_of_standard_output_is_written_in_order(tmp_path: Path) -> None:
    """Whether it is a pipe, or a file that must not be replaced or written from its beginning."""
    paths = ["/dev/stdout", "/proc/self/fd/1", "/dev/fd/1"]
    expected = "\n".join(["before", *paths, "after", ""])
    command = [sys.executable, "-c", TO_STANDARD_OUTPUT, *paths]
    done = run_program(command)
    assert (done.stdout, done.stderr) == (expected, "")
    with (tmp_path / "file").open("w") as output:
        subprocess.run(command, stdout=output, check=True)
    assert (tmp_path / "file").read_text() == expected and os.listdir(tmp_path) == ["file"]
    for path in ("/proc/self/fd/99", "/proc/self/fd/99999999999999999999"):
        with pytest.raises(WriteError, match="cannot be written"):
            files.write(Path(path), "")


def test_appended_bytes_are_in_the_file_at_once(tmp_path: Path) -> None:
    for line in (b"one\n", b"two\n"):
        with files.open_to_append(tmp_path / "rows") as file:
            files.write_all(file, line[:-1])
            files.write_all(file, line[-1:])
            assert (tmp_path / "rows").read_bytes().endswith(line), "at once: nothing waits here"
    assert (tmp_path / "rows").read_text() == "one\ntwo\n"
    assert (tmp_path / "rows").stat().st_mode & 0o777 == 0o666 & ~umask()


def test_a_folder_is_made_with_those_above_it_also_where_it_exists(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert files.make_folder(Path("a/../a/b")) == Path("a/../a/b")
    assert os.listdir(tmp_path / "a") == ["b"]
    assert files.make_folder(tmp_path / "a" / "b").is_dir()


def test_a_folder_whose_name_is_taken_is_not_new(tmp_path: Path) -> None:
    assert files.make_new_folder(tmp_path / "a")
    assert files.make_new_folder(tmp_path / "a") is False


def test_an_empty_folder_replaces_one_with_content(tmp_path: Path) -> None:
    files.write(tmp_path / "a" / "deep" / "file", "")
    assert not list(files.make_empty_folder(tmp_path / "a").iterdir())


def test_a_link_that_exists_is_made_to_lead_elsewhere(tmp_path: Path) -> None:
    files.link(tmp_path / "latest", "b")
    files.link(tmp_path / "latest", "c")
    assert os.readlink(tmp_path / "latest") == "c"


def test_removing_a_link_leaves_the_folder_that_it_leads_to(tmp_path: Path) -> None:
    files.make_folder(tmp_path / "run")
    files.link(tmp_path / "latest", "run")
    files.remove(tmp_path / "latest")
    assert os.listdir(tmp_path) == ["run"]


def test_removing_what_is_not_there_makes_nothing(tmp_path: Path) -> None:
    files.remove(tmp_path / "none" / "of" / "these")
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("name", ["", ".", "..", "../up", "/etc/passwd", "a/b", "a\nb", "a\0b",
                                  "\x1b[2J", "a\u202eb"])
def test_a_name_that_would_leave_its_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(FirstFlightError, match="cannot be the name of a file in") as caught:
        places.inside(tmp_path, name)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", ["", ".", "..", "../etc", "/etc/passwd", "a/b", "a" * 400 + "/b"])
def test_words_that_would_leave_their_folder_name_no_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(FirstFlightError, match="cannot be the name of a file in"):
        places.named_after(tmp_path, name, "-client.pcap")


def test_no_two_ids_share_a_file(tmp_path: Path) -> None:
    """Neither two that differ at their end only, nor one that equals the cut name of another."""
    def stem(words: str) -> str:
        path = places.named_after(tmp_path, words, "-client.pcap")
        assert path.parent == tmp_path and len(path.name.encode()) <= 192
        path.write_bytes(b"")
        return path.name.removesuffix("-client.pcap")

    ids = ["a" * 179, "a" * 180, "a" * 181, "a" * 400 + "1", "a" * 400 + "2", "ä" * 90, "ä" * 91,
           "a" + "ä" * 90]
    ids += [stem(words) for words in ids]  # ids that equal the names of those above
    assert stem(ids[0]) == ids[0]
    assert len({stem(words) for words in ids}) == len(dict.fromkeys(ids))


def test_what_cannot_be_written_is_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    for path, why in ((tmp_path / "file" / "below", "Not a directory"),
                      (tmp_path / "file" / "below" / "deep", "Not a directory"),
                      (tmp_path / "folder", "Is a directory"),
                      (Path("/proc/none/file"), "No such file")):
        with pytest.raises(WriteError, match=rf"^{path}: cannot be written: {why}"):
            files.write(path, "text")
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(WriteError, match="Too many levels"):
        files.write(tmp_path / "circle" / "file", "")
    assert sorted(os.listdir(tmp_path)) == ["circle", "file", "folder"]  # nothing is left aside


@pytest.mark.parametrize(("code", "advice"), [(errno.ENOSPC, "make room"),
                                              (errno.EDQUOT, "quota"), (errno.EFBIG, "ulimit")])
def test_a_file_without_room_is_reported_with_what_to_do(code: int, advice: str) -> None:
    with pytest.raises(WriteError, match=f"^x: cannot be written: .*: .*{advice}"):
        with places.writing(Path("x")):
            raise OSError(code, os.strerror(code))


LIMITED = """
import pathlib, sys
from firstflight.base import errors, files
try:
    files.write(pathlib.Path(sys.argv[1]), "x" * 5000)
except errors.WriteError as error:
    print(error)
"""


def test_a_write_that_fails_in_the_middle_leaves_the_old_file(tmp_path: Path) -> None:
    """The limit of the file's size is met in its middle."""
    path = tmp_path / "file"
    path.write_text("before")
    done = run_program(["prlimit", "--fsize=1000:", sys.executable, "-c", LIMITED, str(path)])
    assert "File too large: raise the limit" in done.stdout, done.stderr
    assert path.read_text() == "before" and os.listdir(tmp_path) == ["file"]


# Links and owners --------------------------------------------------------------------

def test_writing_to_a_link_writes_the_file_that_it_leads_to(tmp_path: Path) -> None:
    """Also where nothing is there yet, over several links and into another folder."""
    (tmp_path / "there").mkdir()
    (tmp_path / "first").symlink_to("second")
    (tmp_path / "second").symlink_to(tmp_path / "there" / "file")
    for content in ("one", "two"):
        files.write(tmp_path / "first", content)
        assert (tmp_path / "there" / "file").read_text() == content
        assert not (tmp_path / "there" / "file").is_symlink()
    assert (tmp_path / "first").is_symlink() and (tmp_path / "second").is_symlink()
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(WriteError, match="circle: cannot be written: Too many levels"):
        files.write(tmp_path / "circle", "x")
    assert sorted(os.listdir(tmp_path)) == ["circle", "first", "second", "there"]
    assert os.listdir(tmp_path / "there") == ["file"]


def test_our_own_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "absolute").symlink_to(tmp_path / "there")
    (tmp_path / "relative").symlink_to("absolute/../there")
    files.write(tmp_path / "relative" / "deep" / "file", "x")
    assert (tmp_path / "there" / "deep" / "file").read_text() == "x"


def test_as_many_links_are_followed_as_the_kernel_follows(tmp_path: Path) -> None:
    (tmp_path / "0").mkdir()
    for number in range(places.MOST_LINKS + 1):
        (tmp_path / f"{number + 1}").symlink_to(f"{number}")
    files.write(tmp_path / "40" / "file", "x")
    assert (tmp_path / "40" / "file").read_text() == "x"
    for walk in (lambda: (tmp_path / "41" / "file").read_text(),
                 lambda: files.write(tmp_path / "41" / "file", "y")):
        with pytest.raises((OSError, WriteError), match="Too many levels of symbolic links"):
            walk()


@as_root
def test_what_is_made_with_sudo_belongs_to_the_invoking_user(tmp_path: Path, sudo: None) -> None:
    files.write(tmp_path / "results" / "run" / "run.json", "{}")
    files.open_to_append(tmp_path / "results" / "run" / "trials.csv").close()
    files.make_new_folder(tmp_path / "results" / "other")
    files.link(tmp_path / "results" / "latest", "run")
    assert {owner(path) for path in (tmp_path / "results").rglob("*")} == {(ME, ME)}
    files.write(tmp_path / "results" / "latest" / "report.html", "through the link")
    assert (tmp_path / "results" / "run" / "report.html").exists()
    assert owner(tmp_path / "results") == (ME, ME) and owner(tmp_path) == (0, 0)


@as_root
def test_without_sudos_group_a_file_keeps_roots_group(tmp_path: Path, sudo: None,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SUDO_GID")
    assert owner(files.write(tmp_path / "file", "")) == (ME, 0)


@as_root
def test_a_user_follows_links_of_root_and_of_their_own(tmp_path: Path,
                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "there").mkdir()
    for name, uid in (("roots", 0), ("mine", ME), ("theirs", OTHER)):
        plant_link(tmp_path / name, tmp_path / "there", uid)
    monkeypatch.setattr(os, "geteuid", lambda: ME)
    for name in ("roots", "mine"):
        files.write(tmp_path / name / name, "x")
    with pytest.raises(WriteError, match="theirs is another user's link"):
        files.write(tmp_path / "theirs" / "theirs", "x")
    assert sorted(os.listdir(tmp_path / "there")) == ["mine", "roots"]


@as_root
def test_another_users_link_leads_nothing_to_a_file_of_roots(tmp_path: Path, sudo: None) -> None:
    """It may stand for a folder on the way, for the file itself, or for a link that is replaced."""
    secret = tmp_path / "root"
    secret.mkdir()
    (secret / "shadow").write_text("root's")
    home = tmp_path / "results"
    home.mkdir()
    os.chown(home, ME, ME)

    through = plant_link(home / "zhao2019", secret)
    for path in (through / "shadow", through / "deep" / "run.json"):
        with pytest.raises(WriteError, match="zhao2019 is another user's link"):
            files.write(path, "theirs")
    with pytest.raises(WriteError, match="another user's link"):
        files.make_folder(through)

    for name in ("report.html", "latest"):
        plant_link(home / name, secret / "shadow")
    with pytest.raises(WriteError, match="report.html is another user's link"):
        files.write(home / "report.html", "page")
    files.write(home / "page.html", "page")
    files.link(home / "latest", "run")
    plant_link(home / "trials.csv", secret / "shadow")
    with pytest.raises(WriteError, match="trials.csv: cannot be written: Too many levels"):
        files.open_to_append(home / "trials.csv")

    assert (secret / "shadow").read_text() == "root's" and os.listdir(secret) == ["shadow"]
    assert owner(secret) == owner(secret / "shadow") == (0, 0)
    assert owner(home / "page.html") == (ME, ME) and not (home / "page.html").is_symlink()
    assert (home / "report.html").is_symlink()

    plant_link(home / "work", secret)
    files.make_empty_folder(home / "work")
    assert (secret / "shadow").exists() and not (home / "work").is_symlink()


@as_root
def test_another_users_folder_and_a_hard_link_are_refused(
        tmp_path: Path, sudo: None, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, OTHER, OTHER)
    with pytest.raises(WriteError, match=rf"belongs to another user \(uid {OTHER}\)"):
        files.write(theirs / "file", "")
    with pytest.raises(WriteError, match="belongs to another user"):
        files.make_folder(theirs)

    os.chown(theirs, 1, 1)
    monkeypatch.delenv("SUDO_UID")
    with pytest.raises(WriteError, match=r"belongs to another user \(uid 1\)"):
        files.write(theirs / "file", "")
    assert not list(theirs.iterdir())

    (tmp_path / "shadow").write_text("root's")
    os.link(tmp_path / "shadow", tmp_path / "trials.csv")
    with pytest.raises(WriteError, match="a second name, a hard link"):
        files.open_to_append(tmp_path / "trials.csv")
    assert owner(tmp_path / "shadow") == (0, 0)


def test_below_an_open_folder_no_link_is_followed(tmp_path: Path) -> None:
    """Not even one of our own: whoever unpacks a stranger's folder owns the links in it."""
    home, given = tmp_path / "home", tmp_path / "given"
    home.mkdir()
    given.mkdir()
    (home / "profile").write_text("mine")
    for name, to in (("report.html", "../home/profile"), ("page.html", home / "profile"),
                     ("deep", "../home"), ("to", "nowhere"), ("latest", "../home")):
        (given / name).symlink_to(to)

    for name in ("report.html", "page.html", "to"):
        assert files.save(given, name, "new") == given / name
        assert (given / name).read_text() == "new" and not (given / name).is_symlink()
    with pytest.raises(WriteError, match="deep/new: .*deep is a link, which is not followed"):
        files.save(given, "deep/new", "x")

    with files.Folder(given) as folder:
        folder.link("latest", "run")
        folder.link("page.html", "report.html")
        with pytest.raises(WriteError, match="deep is a link, which is not followed"):
            folder.make("deep")
        folder.make("deep", replace_link=True)
        folder.make("deep/er")
        with pytest.raises(WriteError, match="Is a directory"):
            folder.link("deep", "run")
        with pytest.raises(WriteError, match="Not a directory"):
            folder.make("report.html")
    files.save(given, "deep/er/new", "x")

    assert os.readlink(given / "latest") == "run" and (given / "page.html").read_text() == "new"
    assert (given / "deep/er/new").read_text() == "x" and not (given / "deep").is_symlink()
    assert os.listdir(home) == ["profile"] and (home / "profile").read_text() == "mine"
    (tmp_path / "link").symlink_to("given")  # the folder itself is what the user gave
    assert files.save(tmp_path / "link", "a", "x") and (given / "a").exists()


def test_a_file_that_cannot_be_saved_stops_no_other(tmp_path: Path) -> None:
    for name in ("b", "d"):
        (tmp_path / name).mkdir()
    with pytest.raises(WriteError,
                       match="^b, d: not saved: .*b: cannot be written: Is a directory"):
        files.save_all(tmp_path, {"a": "1", "b": "2", "c": b"3", "d": "4", "e": "5"})
    assert [(tmp_path / name).read_text() for name in "ace"] == ["1", "3", "5"]
    assert files.save_all(tmp_path, {"a": "6"}) == [tmp_path / "a"]


@pytest.mark.parametrize("place", ["", "/", "/etc/passwd", "..", "../up", "a/../../up", "."])
def test_a_place_that_is_not_below_its_folder_is_refused(tmp_path: Path, place: str) -> None:
    (tmp_path / "given").mkdir()
    with files.Folder(tmp_path / "given") as folder:
        for write in (lambda: folder.make(place), lambda: folder.link(place, "x"),
                      lambda: folder.replacing(place).__enter__()):
            with pytest.raises(WriteError, match="it would lie outside"):
                write()
    assert os.listdir(tmp_path) == ["given"] and not os.listdir(tmp_path / "given")


def test_a_folder_thousands_deep_takes_files(tmp_path: Path) -> None:
    """Longer than a path may be, and with few descriptors."""
    deep = "/".join(["folder"] * 1500)
    with files.Folder(tmp_path) as folder:
        for place in (f"{deep}/one", "two", f"{deep}/three"):
            with folder.replacing(place) as file:
                files.write_all(file, b"x")
        assert len(os.listdir("/proc/self/fd")) < 60
    assert sorted(os.listdir(tmp_path)) == ["folder", "two"]
    subprocess.run(["rm", "-rf", str(tmp_path / "folder")], check=True)


def test_only_a_folder_is_opened_as_a_folder(tmp_path: Path) -> None:
    """Neither a file, nor a link that has taken the place of a folder."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("folder")
    within = places.open_folder(tmp_path)
    try:
        for name in ("file", "link"):
            for path, where in ((tmp_path / name, None), (Path(name), within)):
                with pytest.raises(OSError, match="Not a directory|Too many levels"):
                    os.close(places.open_folder(path, where))
        found = places.open_folder("folder", within)
        assert os.path.samestat(os.fstat(found), (tmp_path / "folder").stat())
        os.close(found)
    finally:
        os.close(within)


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    """Whether it could be written or not: a run of days writes thousands of files."""
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("new")
    before = os.listdir("/proc/self/fd")
    files.open_to_append(files.write(tmp_path / "link" / "deep" / "file", "x")).close()
    files.save(tmp_path, "link2/deep/file", "x")
    with pytest.raises(WriteError):
        files.save(tmp_path, "link/file", "x")
    files.link(tmp_path / "new" / "latest", "deep")
    files.make_empty_folder(files.make_folder(tmp_path / "new" / "deep"))
    assert files.make_new_folder(tmp_path / "other")
    assert not files.make_new_folder(tmp_path / "other")
    files.remove(tmp_path / "new")
    files.remove(tmp_path / "none" / "of" / "these")
    for path in (tmp_path / "file" / "below", tmp_path / "other", Path("/proc/none/file")):
        with pytest.raises(WriteError):
            files.write(path, "x")
    for path in (tmp_path / "file", tmp_path / "none"):
        with pytest.raises(OSError):
            places.open_folder(path)
    for path in (tmp_path, Path("/dev/null")):
        with pytest.raises(OSError):
            reading.opened(path)
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.usefixtures("impatient")
def test_only_regular_files_are_read(tmp_path: Path) -> None:
    """A FIFO would wait for a writer for ever."""
    file, pipe = tmp_path / "file", tmp_path / "pipe"
    file.write_bytes(b"\0all")
    os.mkfifo(pipe)
    assert reading.content(file) == b"\0all"
    for path, kind, code in ((tmp_path, IsADirectoryError, errno.EISDIR),
                             (pipe, OSError, errno.EINVAL),
                             (tmp_path / "none", FileNotFoundError, errno.ENOENT)):
        with pytest.raises(kind) as caught:
            reading.opened(path)
        assert (caught.value.errno, caught.value.filename) == (code, str(path))
