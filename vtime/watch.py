"""Watches what a guest takes of the machine, and ends it where that is more than a guest needs.

Limits of a process cannot bound a sum: each of a thousand processes may stay below them, and what
lies in a memory file that nobody maps belongs to no process. So a parent of the guest's kernel
looks at all processes of the guest a few times a second:

    memory        what is private to them, and all files without a name that they hold: the guest's
                  own memory is one
    processes     the guest's Linux makes one for each of its programs
    sockets       and pipes: their buffers count as nobody's memory
    the machine   once its memory is nearly used up, guests end first, whoever took it

confine.py, which becomes the guest's kernel, calls `begin`. This module stands alone, as it does:
it is started with nothing else on Python's path.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import stat
import time

MARK = "first-flight: the guest was ended: "  # before the reason, on the guest's console
KILLED = "first-flight: the guest was killed"
ENDED = 99  # exit status
LOOK_S, SLOWEST_LOOK_S = 0.2, 1.0
SHARE = 50  # a look takes at most one part in so many of a processor's time
SLACK_MB, SLACK_OF_PROCESS_KB = 64, 64
# As many as Linux allows itself, by its memory: an eighth of it for stacks (set_max_threads in
# kernel/fork.c).
PROCESSES_OF_MB, MORE_PROCESSES = 8, 64
PIPES_OF_PROCESS, MORE_PIPES = 8, 1024  # sockets, too
MOST_FILE = 1 << 40  # bytes; a captured one that is freed behind its reader keeps its size
MOST_PRIVATE = 1 << 28  # bytes of one process: a kernel has some MB besides the guest's memory
LEAST_LEFT = 64  # guests end when one part in so many of the machine's memory is left
_PAGE = os.sysconf("SC_PAGE_SIZE")
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def begin(memory_mb: int) -> None:
    """Go on in a new process, whose parent watches it and all that it starts.

    memory_mb: the guest's memory. The parent ends with its exit status, 128 and the number of a
    signal, or ENDED.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # its caller may ignore it
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    libc, watcher = ctypes.CDLL(None), os.getpid()
    if watcher != 1:  # the first process of a namespace gets its orphans anyway
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    child = os.fork()
    if child:
        os.close(0)
        signal.signal(signal.SIGALRM, signal.SIG_IGN)  # it wakes the guest's programs
        os.sched_setaffinity(0, range(os.cpu_count() or 1))  # not where the guest may spin
        os._exit(_attend(child, memory_mb))

    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != watcher:
        os._exit(ENDED)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    _limit()


def _limit() -> None:
    """Set the limits of the guest's kernel."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, soft))
    set_limit(resource.RLIMIT_CORE, 0)
    # Soft limits are raised: uml.check_limits has checked the hard ones.
    set_limit(resource.RLIMIT_AS, resource.RLIM_INFINITY)
    set_limit(resource.RLIMIT_FSIZE, MOST_FILE)
    set_limit(resource.RLIMIT_DATA, MOST_PRIVATE)


def set_limit(limit: int, most: int) -> None:
    """Set a limit of this process, soft and hard, as high as the hard one allows."""
    _, hard = resource.getrlimit(limit)
    if most == resource.RLIM_INFINITY or hard != resource.RLIM_INFINITY and hard < most:
        most = hard
    resource.setrlimit(limit, (most, most))


def _attend(child: int, memory_mb: int) -> int:
    """Wait for the end of a child, or end it; return the exit status."""
    first, wait_s = os.readlink("/proc/self"), LOOK_S  # by its number on the machine
    while True:
        if signal.sigtimedwait({signal.SIGCHLD}, wait_s) is not None:
            status = _ended(child)
            if status is None:
                continue
            if os.WIFSIGNALED(status):
                if os.WTERMSIG(status) == signal.SIGKILL:
                    _say(KILLED)
                return 128 + os.WTERMSIG(status)
            return os.WEXITSTATUS(status)

        began = time.process_time()
        if why := Taken(first).excess(memory_mb) or machine_is_full():
            _end(why)
            return ENDED
        wait_s = min(max(LOOK_S, SHARE * (time.process_time() - began)), SLOWEST_LOOK_S)


def _ended(child: int) -> int | None:
    """The wait status of the child, None while it runs; other processes that ended are reaped."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return None
        if pid == child:
            return status
        if pid == 0:
            return None


def _end(why: str) -> None:
    """End all processes of the guest, and say why."""
    if os.getpid() == 1:
        os.kill(-1, signal.SIGKILL)
        _say(f"{MARK}{why}")
    else:  # it cannot leave the process group
        _say(f"{MARK}{why}")
        os.killpg(0, signal.SIGKILL)


def _say(line: str) -> None:
    try:
        os.write(1, f"\n{line}\n".encode())
    except OSError:  # the disk is full
        pass


# What it takes -----------------------------------------------------------------------

class Taken:
    """What all processes below one take of the machine."""

    def __init__(self, first: str) -> None:
        """first: the number of the process above them, which does not count."""
        self.numbers = descendants(first)
        self.processes = 0  # how many, each thread is one
        self.private = 0  # bytes that are not of files; a page that two have alike counts in both
        self.shared = 0  # bytes of files that they map, counted in each
        held: dict[tuple[int, int], int] = {}
        for number in self.numbers:
            try:
                self._add(number, held)
            except (OSError, ValueError):  # it has ended meanwhile
                continue
        # Bytes of files without a name, each once; and how many sockets and pipes.
        self.files = sum(size for size in held.values() if size >= 0)
        self.pipes = sum(size < 0 for size in held.values())

    def _add(self, number: str, held: dict[tuple[int, int], int]) -> None:
        """Add what a process takes. Raises OSError, ValueError where it has ended.

        held: by device and inode, the bytes of a file without a name, -1 for a pipe.
        """
        self.processes += len(os.listdir(f"/proc/{number}/task"))
        with open(f"/proc/{number}/statm", "rb", buffering=0) as file:
            _, resident, shared, _, _, data, _ = map(int, file.read().split())
        # What is swapped out is not resident. Only a hostile kernel has so many data.
        own = data if data * _PAGE > MOST_PRIVATE // 4 else max(0, resident - shared)
        self.private += own * _PAGE
        self.shared += shared * _PAGE

        for name in os.listdir(f"/proc/{number}/fd"):
            try:
                status = os.stat(f"/proc/{number}/fd/{name}")
            except OSError:
                continue
            if stat.S_ISSOCK(status.st_mode) or stat.S_ISFIFO(status.st_mode):
                held[status.st_dev, status.st_ino] = -1
            elif stat.S_ISREG(status.st_mode) and not status.st_nlink:
                held[status.st_dev, status.st_ino] = status.st_blocks * 512

    def excess(self, memory_mb: int) -> str:
        """What exceeds the needs of a guest with so much memory, in words; "" for nothing."""
        most = memory_mb * PROCESSES_OF_MB + MORE_PROCESSES
        if self.processes > most:
            return f"it had {self.processes} processes, and needs {most} at most"
        most = most_pipes(self.processes)
        if self.pipes > most:
            return f"it had {self.pipes} sockets and pipes, and needs {most} at most"

        allowed = (memory_mb + SLACK_MB << 20) + (self.processes * SLACK_OF_PROCESS_KB << 10)
        if max(self.private + self.files, self.shared) <= allowed:
            return ""
        taken = self.exact_bytes()
        if taken <= allowed:
            return ""
        return f"it took {taken >> 20} MB of memory, and needs {allowed >> 20} MB at most"

    def exact_bytes(self) -> int:
        """What it takes of memory, each page once; this looks at all pages, which takes a while."""
        private = mapped = 0
        for number in self.numbers:
            try:
                with open(f"/proc/{number}/smaps_rollup", "rb", buffering=0) as file:
                    lines = file.read().splitlines()[1:]
            except OSError:
                continue
            parts = {words[0]: int(words[1]) << 10 for words in map(bytes.split, lines)}
            private += parts.get(b"Pss_Anon:", 0) + parts.get(b"SwapPss:", 0)
            mapped += parts.get(b"Pss_Shmem:", 0)
        return private + max(mapped, self.files)  # a mapped file may be closed


def most_pipes(processes: int) -> int:
    """How many sockets and pipes so many processes need at most."""
    return processes * PIPES_OF_PROCESS + MORE_PIPES


def descendants(first: str) -> list[str]:
    """The numbers of all processes below one, in which orphans stay."""
    if not os.path.exists(f"/proc/{first}/task/{first}/children"):
        return _of_session(first)
    numbers, to_visit = [], [first]
    while to_visit:
        number = to_visit.pop()
        try:
            for thread in os.listdir(f"/proc/{number}/task"):
                with open(f"/proc/{number}/task/{thread}/children", "rb", buffering=0) as file:
                    children = os.fsdecode(file.read()).split()
                numbers += children
                to_visit += children
        except OSError:  # it has ended meanwhile
            continue
    return numbers


def _of_session(first: str) -> list[str]:
    """All other processes of a session, where the kernel does not list children."""
    sessions = {}  # of each process
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{number}/stat", "rb", buffering=0) as file:
                sessions[number] = file.read().rpartition(b")")[2].split()[3]
        except (OSError, IndexError):
            continue
    return [number for number, session in sessions.items()
            if session == sessions.get(first) and number != first]


def machine_is_full(meminfo: str = "/proc/meminfo") -> str:
    """Why guests have to end for lack of the machine's memory; "" where there is enough."""
    try:
        with open(meminfo, "rb", buffering=0) as file:
            words = file.read().split()
        total_kb, available_kb, swap_kb = (
            int(words[words.index(name) + 1])
            for name in (b"MemTotal:", b"MemAvailable:", b"SwapFree:"))
    except (OSError, ValueError, IndexError):
        return ""

    left_kb = available_kb + swap_kb
    if left_kb > total_kb // LEAST_LEFT:
        return ""
    return (f"of this machine's memory only {left_kb >> 10} MB were left: end other programs, or"
            " run fewer guests (--jobs)")
