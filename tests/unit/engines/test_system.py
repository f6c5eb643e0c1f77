"""Debian 13's programs for a guest, memory of guests, external servers, patches of a kernel."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Container
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from firstflight.base import PROJECT
from firstflight.setting.tls import TlsParameters
from firstflight.testbed.bench import Lacking, WorkerError
from firstflight.testbed.guests import UmlEngine
from firstflight.testbed.hosts.certificates import ChainFiles, HostChain
from firstflight.testbed.servers import nginx
from firstflight.testbed.servers.external import ExternalServers, ServerSpec, own_command
from firstflight.testbed.servers.program import Program, SocketSample, Sockets, Watch
from firstflight.testbed.worker import worker
from firstflight.workloads.page.objects import MOST_OBJECTS
from tests.running import run_program, wait_until
from vtime import confine, system
from vtime.console import EngineCannot
from vtime.kernel import debian, trees
from vtime.memory import MEMORY_MB, guests
from vtime.uml import confining, guest_command

# A trial in Debian 13, one in this machine's system, and a kernel that answers the second only.
TRIAL = {"id": "t", "kind": "fetch", "network": {}, "system": system.NEWER}
HERE = {"id": "h", "kind": "fetch", "network": {}}
ANSWERS = """while read -r line; do case $line in *'"h"'*)
    echo '{"trial": "h"}' >> observations.jsonl;; esac; done < trials1.jsonl"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return system.cache()


@pytest.fixture
def made(cache: Path) -> Path:
    """The folder of a system with one program, in the place of Debian 13."""
    root = system.folder()
    (root / "usr/bin").mkdir(parents=True)
    (root / "usr/bin/curl").write_text("a program")
    (root / "bin").symlink_to("usr/bin")
    system.describe(root, {"curl": "8.14", "base-files": "13"}, root / system.CONTENTS)
    return root


def engine(tmp_path: Path) -> UmlEngine:
    """An engine whose kernel is a shell script, ANSWERS."""
    kernel = tmp_path / "linux"
    kernel.write_text(f"#!/bin/sh\n{ANSWERS}\n")
    kernel.chmod(0o755)
    return UmlEngine(kernel, 1)


def test_an_unpacked_system_passes_its_check(made: Path) -> None:
    assert system.check(made) == system.check_content(made) == {"curl": "8.14", "base-files": "13"}
    os.utime(made / "usr/bin/curl", (1, 1))
    assert system.check(made), "another time with the same content is no damage"
    assert system.shown_versions(system.check(made)) == {"curl": "8.14"}


@pytest.mark.parametrize(("damage", "words"), [
    (lambda root: (root / "usr/bin/curl").write_text("another program"),
     "usr/bin/curl was changed"),
    (lambda root: (root / "usr/bin/curl").unlink(), "usr/bin/curl is gone"),
    (lambda root: (root / "usr/bin/more").touch(), "usr/bin/more was added"),
    (lambda root: (root / "bin").unlink() or (root / "bin").symlink_to("/bin"), "bin was changed"),
    (lambda root: (root / system.CONTENTS).unlink(), "No such file"),
    (lambda root: (root / system.CONTENTS).write_text("{}"), "files"),
    (lambda root: (root / system.CONTENTS).write_text("{"), "damaged")])
def test_a_changed_system_is_refused_with_the_command_that_repairs_it(
        made: Path, tmp_path: Path, damage: Callable[[Path], None], words: str) -> None:
    damage(made)
    with pytest.raises(system.Damaged, match=words):
        system.check(made)
    with pytest.raises(EngineCannot, match=f"{words}.*; ./install.sh --with-pq builds it again"):
        list(engine(tmp_path).run([TRIAL], {}, tmp_path / "work"))


def test_a_change_that_keeps_size_and_time_shows_in_the_content(made: Path) -> None:
    file = made / "usr/bin/curl"
    before = file.stat()
    file.write_text("A program")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    system.check(made)
    with pytest.raises(system.Damaged, match="curl was changed"):
        system.check_content(made)


def test_trials_whose_system_is_not_installed_are_skipped_and_the_others_run(tmp_path: Path
                                                                             ) -> None:
    seen = {observed.trial_id: observed.content
            for observed in engine(tmp_path).run([TRIAL, HERE], {}, tmp_path / "work")}
    assert seen["t"] == {"skipped": "needs Debian 13's programs, which are not installed:"
                                    " ./install.sh --with-pq installs them"}
    assert seen["h"] == {"trial": "h"}


def test_a_guest_of_another_system_mounts_the_project_and_reads_that_system(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confine, "lacking", lambda: "")
    words = guest_command(tmp_path / "linux", tmp_path / "a root")
    root = words.index(str(tmp_path / "a root"))
    assert words[root - 1] == "--read" and words[root + 1] == str(tmp_path / "linux")
    assert f'rootflags="{tmp_path}/a root"' in words and f"init={system.PYTHON}" in words
    assert words[-2] == '"-c"' and str(PROJECT) in words[-1] and '"' not in words[-1][1:-1]
    compile(words[-1][1:-1], "the first process", "exec")
    with pytest.raises(EngineCannot, match="path"):
        guest_command(tmp_path / "linux", tmp_path / 'a "root"')


@pytest.mark.skipif(bool(confine.lacking()), reason=f"lacks {confine.lacking()}")
def test_a_confined_process_reads_its_system_and_no_folder_next_to_it(tmp_path: Path) -> None:
    for name in ("root", "beside", "own"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("a secret")
    done = run_program([*confining([str(tmp_path / "root")], around=()), "/bin/sh", "-c",
                        'for each; do cat "$each"; done; : > "$1"', "sh",
                        str(tmp_path / "root/file"), str(tmp_path / "beside/file")],
                       cwd=tmp_path / "own")
    assert done.stdout == "a secret" and done.stderr.count("Permission denied") == 2
    assert (tmp_path / "root/file").read_text() == "a secret"


def test_mirrors_are_those_of_apt_or_the_one_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(debian.MIRROR, "http://mirror.example/debian")
    assert debian.mirrors() == [("trixie", "http://mirror.example/debian")]
    monkeypatch.delenv(debian.MIRROR)

    def let_apt_print(lines: str) -> None:
        monkeypatch.setattr(debian.subprocess, "run", lambda *_, **__: subprocess.CompletedProcess(
            [], 0, stdout=lines))

    let_apt_print("Debian http://a/debian\nDebian http://a/debian\n"
                  "Debian-Security http://a/security\nOther http://b/\nnone\n")
    assert debian.mirrors() == [("trixie", "http://a/debian"),
                                ("trixie-security", "http://a/security")]
    let_apt_print("Ubuntu http://b/\n")
    with pytest.raises(debian.Cannot, match="FIRST_FLIGHT_DEBIAN_MIRROR=http"):
        debian.mirrors()


def test_apt_uses_folders_and_lists_of_its_own(tmp_path: Path,
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(debian.MIRROR, "http://mirror.example/debian")
    words = debian.apt(tmp_path)
    settings = subprocess.run([words[0].replace("get", "config"), "-c", words[2], "dump"],
                              capture_output=True, text=True, check=True).stdout
    assert f'Dir::State::status "{tmp_path}/status"' in settings
    assert f'Dir::Cache::archives "{tmp_path}/archives"' in settings
    assert 'APT::Update::Post-Invoke' not in settings and 'DPkg::Post-Invoke' not in settings
    assert f"signed-by={debian.KEYRING}" in (tmp_path / "sources.list").read_text()


def test_a_mirror_without_an_answer_is_reported_and_the_next_run_continues(
        cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
        capfd: pytest.CaptureFixture[str]) -> None:
    if not debian.KEYRING.exists():
        pytest.skip(f"{debian.KEYRING} is missing")
    no_retry = tmp_path / "apt.conf"
    no_retry.write_text('Acquire::Retries "0";')  # apt waits before a retry
    monkeypatch.setenv("APT_CONFIG", str(no_retry))
    monkeypatch.setenv(debian.MIRROR, "http://127.0.0.1:9/debian")
    assert debian.main(["make"]) == 4
    last = capfd.readouterr().err.splitlines()[-1]
    assert "no package lists" in last and "./install.sh --with-pq goes on" in last
    assert not system.folder().exists()


def test_a_full_disk_and_a_missing_keyring_are_reported_before_downloading(
        cache: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(debian, "NEEDED_MB", 10**9)
    assert debian.main(["make"]) == 4
    assert "MB free, 1000000000 are needed; free some, or set" in capfd.readouterr().err
    monkeypatch.setattr(debian, "NEEDED_MB", 0)
    monkeypatch.setattr(debian, "KEYRING", cache / "none")
    assert debian.main(["make"]) == 4
    assert "is missing: apt install debian-archive-keyring" in capfd.readouterr().err
    assert debian.main(["check"]) == 4
    assert "./install.sh --with-pq installs them" in capfd.readouterr().err


def test_make_leaves_a_whole_system_untouched_and_remove_deletes_it(made: Path) -> None:
    contents = made / system.CONTENTS
    before = contents.stat()
    assert debian.main(["make"]) == debian.main(["check"]) == 0
    assert contents.stat().st_ino == before.st_ino  # a file that replaces it has another inode
    assert contents.stat().st_mtime_ns == before.st_mtime_ns
    assert debian.main(["remove"]) == 0 and not made.exists()


# Memory -------------------------------------------------------------------------------

def meminfo(folder: Path, available_mb: int) -> Path:
    """A file as /proc/meminfo of a machine with so much memory available."""
    path = folder / "meminfo"
    path.write_text(f"MemTotal: 999999999 kB\nMemAvailable:   {available_mb * 1024} kB\n")
    return path


def test_more_guests_than_memory_are_refused_with_the_most_that_fit(tmp_path: Path) -> None:
    path = meminfo(tmp_path, 3 * MEMORY_MB + 1)
    assert guests(3, path) == 3
    with pytest.raises(EngineCannot, match=f"--jobs 4: .* {4 * MEMORY_MB} MB, and"
                       f" {3 * MEMORY_MB + 1} MB are available; at most --jobs 3"):
        guests(4, path)
    assert guests(1, path, memory_mb=1024) == 1
    with pytest.raises(EngineCannot, match=f"--jobs 3: .* 3072 MB, and {3 * MEMORY_MB + 1} MB are"
                       " available; at most --jobs 1$"):
        guests(3, path, memory_mb=1024)


def test_the_default_is_a_guest_for_each_core_that_memory_allows(tmp_path: Path) -> None:
    assert guests(None, meminfo(tmp_path, 10**6)) == os.cpu_count()
    assert guests(None, meminfo(tmp_path, MEMORY_MB), memory_mb=2 * MEMORY_MB) == 1
    assert guests(None, meminfo(tmp_path, 5)) == 1 == guests(1, meminfo(tmp_path, 5))
    assert guests(None, tmp_path / "none") == os.cpu_count() and guests(9, tmp_path / "none") == 9


# External servers: nginx, and a user's own --------------------------------------------

FILES = ChainFiles(Path("/c/chain.pem"), Path("/c/key.pem"), Path("/c/root.pem"))
OWN = {"command": ["serve", "-p{p}", "{address}", "{chain}", "{key}"], "ready": "", "ca": "",
       "name": "", "folders": ["/srv/mine"]}


class HostHere:
    """A host whose programs run in this machine's network."""

    pid = os.getpid()

    @staticmethod
    def popen(command: list[str], **how: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, start_new_session=True, **how)


def started(tmp_path: Path, code: str) -> Program:
    """A program that runs this Python code."""
    host: Any = HostHere()
    return Program("it", host, [sys.executable, "-c", code], tmp_path / "log", tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="entering a network namespace takes root")
def test_sockets_of_a_port_are_watched_with_their_initial_window() -> None:
    """Before anything is acknowledged, the window is the kernel's initial one of 10 segments."""
    sockets = Sockets(os.getpid())
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert port in sockets.listening() and sockets.open(port) == []
        watch = Watch(sockets, port, 0.1, 1000)
        with socket.create_connection(("127.0.0.1", port)) as client:
            accepted, _ = listener.accept()
            assert watch.look() == 0.1
            assert watch.look() == 0.1
            accepted.sendall(b"x" * 2000)
            client.recv(2000, socket.MSG_WAITALL)
            client.sendall(b"y" * 300)
            accepted.recv(300)
            assert watch.look() is None
            first, last = watch.of_client(client.getsockname()[1])
            accepted.close()
    sockets.close()
    assert (first.acknowledged_bytes, first.received_bytes, first.congestion_window) == (0, 0, 10)
    assert (last.acknowledged_bytes, last.received_bytes) == (2000, 300)
    assert last.mss > 88 and last.min_rtt_us > 0


def test_a_watch_looks_until_it_has_one_sample_of_each_connection() -> None:
    ports: list[int] = []  # of each look

    class Opening:
        """A port that has one connection more at each look."""

        def open(self, port: int, known: Container[int]) -> list[SocketSample]:
            ports.append(port)
            return [SocketSample(client, 0, 0, 10, 1448, 0, "cubic", 0, 0, False)
                    for client in range(len(ports)) if client not in known]

    opening: Any = Opening()
    watch = Watch(opening, 443, 0.1, 1000, first_only=True, connections=2)
    assert [watch.look() for _ in range(5)] == [0.1] * 5
    assert ports == [443] * 2 and [sample.client_port for sample in watch.samples] == [0, 1]


def test_the_configuration_of_nginx_has_what_a_trial_requests() -> None:
    tls = TlsParameters(chain_bytes=4000, tickets=1, record_bytes=4096).tls_settings(0)
    requested = nginx.Settings.of_trial("10.0.0.2", 8443, [HostChain((), FILES)], tls)
    text = nginx.configuration(requested, Path("/f"), Path("/b"))
    for line in ("listen 10.0.0.2:8443 ssl http2;", "ssl_certificate /c/chain.pem;",
                 "ssl_buffer_size 4096;", "ssl_conf_command NumTickets 1;", "root /b;"):
        assert line in text
    plain = nginx.configuration(nginx.Settings.of_trial("10.0.0.2", 8080, (), None),
                                Path("/f"), Path("/b"))
    assert "listen 10.0.0.2:8080;" in plain and "ssl" not in plain


def test_nginx_has_a_server_for_the_hosts_of_each_certificate() -> None:
    tls = TlsParameters(chain_bytes=4000).tls_settings(0)
    others = ChainFiles(Path("/d/chain.pem"), Path("/d/key.pem"), Path("/d/root.pem"))
    requested = nginx.Settings.of_trial("10.0.0.2", 8443, [
        HostChain((), FILES), HostChain(("host1.x", "host2.x"), others)], tls, is_page=True)
    _, first, second = nginx.configuration(requested, Path("/f"), Path("/b")).split("server {")
    assert "/c/chain.pem" in first and "server_name" not in first
    assert "server_name host1.x host2.x;" in second and "/d/chain.pem" in second


def test_nginx_keeps_a_connection_for_each_object_of_a_page() -> None:
    """If nginx had fewer it would close idle ones, which a browser wants to use again."""
    requested = nginx.Settings.of_trial("10.0.0.2", 8080, (), None, is_page=True)
    text = nginx.configuration(requested, Path("/f"), Path("/b"))
    (connections,) = re.findall(r"worker_connections (\d+);", text)
    assert int(connections) > MOST_OBJECTS


def test_where_nginx_is_missing_a_trial_is_skipped(monkeypatch: pytest.MonkeyPatch,
                                                   tmp_path: Path) -> None:
    monkeypatch.setattr(nginx, "_PATH", str(tmp_path))
    others: Any = SimpleNamespace()
    with pytest.raises(Lacking, match="nginx is missing: ./install.sh --with-nginx brings it"):
        ExternalServers._nginx(others, {"paths": ["/1"]}, None)


def test_a_server_is_restarted_before_a_trial_with_other_sysctls() -> None:
    """Connections inherit some sysctls from the socket on which their server listens."""
    spec = ServerSpec("nginx", "the same", list, Path(), bool)
    others: Any = SimpleNamespace(running=None, settings=None, _nginx=lambda *_: spec)
    started = []

    def start(spec: ServerSpec, _port: int) -> None:
        started.append(spec.settings)
        others.running = SimpleNamespace(process=SimpleNamespace(poll=lambda: None))
        others.settings = spec.settings

    others._start = start
    for inherited in ({}, {}, {"net.ipv4.tcp_reordering": "10"}, {}):
        ExternalServers.prepare(others, {"paths": ["/1"]}, inherited)
    assert len(started) == 3 and started[0] == started[2] != started[1]


def test_a_trial_that_the_machine_lacks_a_program_for_is_skipped(tmp_path: Path) -> None:
    def prepare(_: Any) -> None:
        raise Lacking("nginx is missing")
    bench: Any = SimpleNamespace(sysctls={}, prepare=prepare, add_recorded=lambda observation: None)
    (tmp_path / "job.json").write_text('{"align_s": 0}')
    made = worker.Worker(tmp_path, tmp_path)
    assert made._observe(bench, {"id": "t"}) == {"trial": "t", "skipped": "nginx is missing"}


def test_the_command_of_an_own_server_gets_its_port_and_certificate() -> None:
    *_, program, requested = own_command(OWN, 8443, FILES)
    assert Path(program).is_file()
    assert '"command": ["serve", "-p8443", "10.0.0.2", "/c/chain.pem", "/c/key.pem"]' in requested
    *_, plain = own_command(OWN, 8080, None)
    assert '"{chain}"' in plain


@pytest.mark.parametrize(("code", "says"), [
    ("import sys; sys.exit('broken')", "it has ended (status 1); it said: broken"),
    ("import os; os.kill(os.getpid(), 9)", "it has ended (killed by SIGKILL); it said nothing")])
def test_a_program_that_ends_early_is_reported_with_status_and_output(tmp_path: Path, code: str,
                                                                      says: str) -> None:
    program = started(tmp_path, code)
    with pytest.raises(WorkerError) as told:
        program.wait_until(lambda: False, 8080)
    assert str(told.value) == says
    program.stop()


def test_a_program_that_ignores_sigterm_is_killed_with_its_children(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("firstflight.testbed.servers.program.TERM_S", 0.5)
    program = started(tmp_path, "import os, signal, time\n"
                      "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                      "child = os.fork()\n"
                      "if child: print(child, flush=True)\n"
                      "time.sleep(1000)")
    program.wait_until(lambda: program.log.stat().st_size > 0, 8080)
    child = int(program.log.read_text())
    program.stop()
    assert program.process.poll() == -9
    wait_until(lambda: not runs(child), "the end of what the server started")
    assert not runs(child)


def runs(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


# The source of a named kernel, and patches for it -------------------------------------

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
RENAMED = """\
diff --git a/net/tcp.c b/net/tcp2.c
similarity index 100%
rename from net/tcp.c
rename to net/tcp2.c
"""
REMOVED = """\
diff --git a/net/udp.c b/net/udp.c
deleted file mode 100644
--- a/net/udp.c
+++ /dev/null
@@ -1 +0,0 @@
-udp
"""


@pytest.fixture(name="source")
def _source(tmp_path: Path) -> Path:
    (tmp_path / "source" / "net").mkdir(parents=True)
    (tmp_path / "source" / "net" / "tcp.c").write_text("one\ntwo\n")
    (tmp_path / "source" / "net" / "udp.c").write_text("udp\n")
    return tmp_path / "source"


def split(source: Path, patch: str) -> tuple[list[str], str, set[str]]:
    """The files that are excluded from a patch, the rest of it, and the files copied for it."""
    to, written = source.parent / "changed", source.parent / "filtered"
    to.mkdir()
    (source.parent / "my.patch").write_text(patch)
    excluded = trees.split(source.parent / "my.patch", source, to, written)
    rest = written.read_text()
    assert rest.count("\n") == patch.count("\n"), "the lines of the rest keep their numbers"
    return excluded, rest.lstrip("\n"), {str(path.relative_to(to)) for path in to.rglob("*.c")}


def test_the_files_that_a_patch_changes_are_copied_for_it(source: Path) -> None:
    assert split(source, PATCH + NEW) == ([], PATCH + NEW, {"net/tcp.c"})


def test_parts_of_a_patch_outside_the_guests_source_are_excluded(source: Path) -> None:
    excluded, rest, _ = split(source, DOCUMENT + PATCH)
    assert (excluded, rest) == (["Documentation/tcp.rst"], PATCH)


@pytest.mark.parametrize("patch, why", [
    (PATCH.replace("net/tcp.c", "net/tcp_gone.c"), "there is no net/tcp_gone.c"),
    (PATCH.replace("a/net/tcp.c", "a/../../etc/passwd"), "no file of a kernel's source"),
    (PATCH.replace("b/net/tcp.c", "/etc/passwd"), "no file of a kernel's source"),
    (RENAMED.replace("to net/tcp2.c", "to ../../etc/passwd"), "no file of a kernel's source"),
    (RENAMED.replace("to net/tcp2.c", "to /etc/passwd"), "no file of a kernel's source"),
    (RENAMED.replace("from net/tcp.c", "from net/gone.c"), "there is no net/gone.c"),
    ("Index: net/tcp.c\n=====\n1c1\n< one\n---\n> 1\n", "neither a unified nor a context diff"),
    ("@@ -1 +1 @@\n-one\n+1\n", "a part that names no file"),
    (NEW.replace("new.c", "n\x1b.c"), "no file of a kernel's source"),
    (PATCH + "x" * (1 << 20), "larger than any patch"),
    (DOCUMENT, "changes no file of the guest's kernel"), ("a note\n", "changes no file"),
    (PATCH + "GIT binary patch\n", "binary"),
    *((f"diff --git a/crypto b/crypto\n{line}\n--- /dev/null\n+++ b/crypto\n@@ -0,0 +1 @@\n"
       "+/home/me\n\\ No newline at end of file\n", "makes or changes a link, crypto")
      for line in ("new file mode 120000", "new mode 120000", "new file mode 160000",
                   "index 1..2 120000"))])
def test_an_invalid_patch_is_refused(source: Path, patch: str, why: str) -> None:
    with pytest.raises(trees.Refused, match=why):
        split(source, patch)


OLD = "1970-01-01 01:00:00.000000000 +0100"
DATED = f"""\
diff -urN linux-5.4.orig/net/new.c linux-5.4/net/new.c
--- linux-5.4.orig/net/new.c\t{OLD}
+++ linux-5.4/net/new.c\t2019-12-01 10:00:00.000000000 +0100
@@ -0,0 +1 @@
+new
"""
CONTEXT = """\
*** a/net/tcp.c\t2019-12-01
--- b/net/tcp.c\t2019-12-02
***************
*** 1,2 ****
  one
! two
--- 1,2 ----
  one
! 2
"""


@pytest.mark.parametrize("patch, files", [
    (DATED, {"net/tcp.c", "net/udp.c", "net/new.c"}), (CONTEXT, {"net/tcp.c", "net/udp.c"}),
    (CONTEXT.replace("tcp.c", "new.c").replace("*** 1,2 ****\n  one\n! two\n--- 1,2",
                                               "*** 0 ****\n--- 1,2").replace("! 2", "+ 2")
     .replace("  one", "+ one"), {"net/tcp.c", "net/udp.c", "net/new.c"}),
    (PATCH.replace("--- a/net/tcp.c", "--- a/net/tcp.c.orig"), {"net/tcp.c", "net/udp.c"}),
    (PATCH.replace("+++ b/net/tcp.c", "+++ b/net/tcp.c.new"), {"net/tcp.c", "net/udp.c"}),
    (PATCH.replace("a/net/tcp.c\n", "x/net/tcp.c 2019-12-01\n"), {"net/tcp.c", "net/udp.c"}),
    (PATCH.replace("a/net/tcp.c\n", "./net/tcp.c\n").replace("b/net/tcp.c\n", "./net/tcp.c\n"),
     {"net/tcp.c", "net/udp.c"}),
    ("Index: a/net/tcp.c\n=====\n" + PATCH.partition("100644\n")[2], {"net/tcp.c", "net/udp.c"}),
    (PATCH.replace("\n", "\r\n").replace("one\r", "one").replace("two\r", "two"),
     {"net/tcp.c", "net/udp.c"}),
    ("From: me\n\n--- not a header\nof a file\n---\n" + PATCH, {"net/tcp.c", "net/udp.c"}),
    (NEW.replace("net/new.c", '"b/net/n\\145w.c"').replace('b/"b', '"b'),
     {"net/tcp.c", "net/udp.c", "net/new.c"}),
    (NEW.replace("net/new.c", "net/\udce4.c"), {"net/tcp.c", "net/udp.c", "net/\udce4.c"}),
    ("diff --git a/net/new.c b/net/new.c\nnew file mode 100644\nindex 0000000..e69de29\n",
     {"net/tcp.c", "net/udp.c", "net/new.c"}),
    (NEW.replace("+new", "+-- a/net/gone.c").replace("+1 @@", "+1,2 @@") + "+++ b/net/gone.c\n",
     {"net/tcp.c", "net/udp.c", "net/new.c"})])
def test_every_form_of_a_patch_that_patch_applies_is_accepted(source: Path, patch: str,
                                                              files: set[str]) -> None:
    """New files marked by a date, context diffs, one of two names, mail, names with escapes.

    files: what the tree has after the patch.
    """
    (source.parent / "changed").mkdir()
    (source.parent / "my.patch").write_text(patch, "utf-8", "surrogateescape")
    changed, tree = source.parent / "changed", source.parent / "tree"
    filtered = source.parent / "filtered"
    assert trees.split(source.parent / "my.patch", source, changed, filtered) == []
    subprocess.run(["patch", "-d", changed, "-p1", "--batch", "--forward", "-s",
                    "-i", source.parent / "filtered"], check=True)
    tree.mkdir()
    trees.sync(source, changed, tree)
    assert {str(path.relative_to(tree)) for path in tree.rglob("*.c")} == files
    # A patch here either changes tcp.c or adds a file.
    changes_tcp = (tree / "net" / "tcp.c").read_text() == "one\n2\n"
    assert changes_tcp != (len(files) == 3)


@pytest.mark.parametrize("patch, left", [
    (RENAMED, {"net/tcp2.c", "net/udp.c"}), (REMOVED, {"net/tcp.c"}),
    (RENAMED + REMOVED, {"net/tcp2.c"})])
def test_a_file_that_a_patch_renames_or_removes_is_not_in_the_tree(source: Path, patch: str,
                                                                   left: set[str]) -> None:
    assert split(source, patch)[:2] == ([], patch)
    changed, tree = source.parent / "changed", source.parent / "tree"
    subprocess.run(["patch", "-d", changed, "-p1", "--batch", "--forward", "-s",
                    "-i", source.parent / "filtered"], check=True)
    tree.mkdir()
    trees.sync(source, changed, tree)
    assert {str(path.relative_to(tree)) for path in tree.rglob("*.c")} == left
    assert (source / "net" / "tcp.c").exists() and (source / "net" / "udp.c").exists()


def test_a_part_of_a_patch_that_only_changes_a_mode_is_ignored(source: Path) -> None:
    mode = "diff --git a/net/udp.c b/net/udp.c\nold mode 100644\nnew mode 100755\n"
    assert split(source, mode + PATCH) == ([], PATCH, {"net/tcp.c"})


@pytest.mark.parametrize("output, why", [
    ("patching file net/a.c\npatching file net/tcp.c\nHunk #1 succeeded at 3.\n"
     "Hunk #2 FAILED at 120."
     "\n1 out of 2 hunks FAILED\n", "net/tcp.c:120: other lines stand there"),
    ("patching file net/tcp.c\nReversed (or previously applied) patch detected!  Skipping patch.\n",
     "net/tcp.c: it is applied already"),
    ("patch: **** malformed patch at line 7: x\n", "its line 7 is no line of a patch")])
def test_the_reason_of_a_failed_patch_names_file_and_line(output: str, why: str) -> None:
    assert trees.why(output).startswith(why)


def test_sync_writes_only_files_of_the_tree_that_change_and_never_the_source(source: Path) -> None:
    """make decides by a file's time, so an unchanged file keeps its time."""
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
