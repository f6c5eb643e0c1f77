"""What the project's command lines share: one line for what is wrong, on standard error."""

from __future__ import annotations

import argparse
import io
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

from firstflight.base import __version__
from firstflight.base.errors import (CANNOT, FAILED, INTERRUPTED, UNREAD, USAGE, FirstFlightError,
                                     resume_hint, one_line)
from firstflight.base.words import format_duration, escaped, near_words

EXPORTS = ("json", "md", "csv")  # of findings, findings.render.data
PICTURES = ("png", "svg", "pdf")  # of figures, drawing.style


def picture_formats(text: str) -> tuple[str, ...]:
    """The formats of a list like png,svg. Raises argparse.ArgumentTypeError."""
    requested = tuple(dict.fromkeys(text.lower().split(",")))
    unknown = [form for form in requested if form not in PICTURES]
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(PICTURES)}")
    return requested


_OUTPUT = "writing"  # in the message of an error that names no file
RESEND_SIGNAL_S = 0.02  # until a signal that arrived during an import is sent again
_PROJECT = Path(__file__).resolve().parent.parent.parent
_interrupting: set[int] = set()  # the signals that interrupt the command


def say(message: str) -> None:
    """Print one message line to standard error; nothing if nobody reads it.

    Invisible characters, which names from a stranger may have, are shown as escapes.
    """
    try:
        print(escaped(message), file=sys.stderr, flush=True)
    except OSError:
        _discard_output(2)


def print_while_read(text: str) -> bool:
    """Print the text; False if the reader has left (`| head -1`): nothing is printed then."""
    try:
        print(escaped(text), flush=True)
    except BrokenPipeError:
        _discard_output(1)
        return False
    return True


def terminal_width() -> int:
    """Characters in a line: the terminal's width, from 60 to 110; 110 without a terminal."""
    return max(60, min(110, shutil.get_terminal_size((110, 24)).columns))


class Once(argparse._StoreAction):
    """A flag with one value. Giving it twice is an error: the last never wins."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace,
                 values: Any, option_string: str | None = None) -> None:
        given: set[str] = vars(namespace).setdefault("_given", set())
        if option_string and self.dest in given:
            raise argparse.ArgumentError(self, "is given twice; give it once")
        given.add(self.dest)
        super().__call__(parser, namespace, values, option_string)


class Parser(argparse.ArgumentParser):
    """Reports what is wrong in one line, and leaves the list of flags to --help; has --version.

    synonyms: for words that are no flags, what to type instead: a sentence, or a flag with an
    example of its value. The user's own value is shown in its place if the flag accepts it.
    short: the text of --help, where `--help all` shows every flag and `--help FLAG` one.
    examples: a command for each flag, by the flag's name. others: returns the help of the flags
    that stand before `-- COMMAND`, which another parser reads.
    """

    def __init__(self, synonyms: Mapping[str, str | tuple[str, str]] = {}, short: str = "",
                 examples: Mapping[str, str] = {}, others: Callable[[], str] = str,
                 **more: Any) -> None:
        super().__init__(add_help=not short, **more)
        self.synonyms, self.short, self.examples, self.others = synonyms, short, examples, others
        self.words: list[str] = []  # as they were typed
        for name in (None, "store"):
            self.register("action", name, Once)
        if short:
            self.add_argument("-h", "--help", nargs="?", const="", action=_Help, metavar="all|FLAG",
                              help="the flags that most people need; all: every flag; FLAG: one,"
                                   " with its unit, range, default and an example")
        self.add_argument("--version", action="version", version=f"First Flight {__version__}",
                          help="print the project's version and exit")

    def parse_args(self, args: Any = None,  # type: ignore[override]
                   namespace: Any = None) -> argparse.Namespace:
        # argparse drops the dashes of --flag=--, and gives the flag no value without a check.
        self.words = list(sys.argv[1:] if args is None else args)
        for word in self.words:
            if word.startswith("-") and word.endswith("=--"):
                self.error(f"{word}: -- is not a value")
        if self.short and self.words[:1] in (["--help"], ["-h"]) and len(self.words) > 1:
            # As one word: else argparse takes `--help --rtt` for two flags.
            self.words[:2] = [f"--help={self.words[1]}"]
        arguments, unknown = self.parse_known_args(self.words, namespace)
        if unknown:
            self.error(self._hint(unknown))
        return arguments

    def _match_argument(self, action: argparse.Action, arg_strings_pattern: str) -> int:
        """Match as argparse does, and name the values that are missing."""
        try:
            return super()._match_argument(action, arg_strings_pattern)
        except argparse.ArgumentError as error:
            form = self._get_formatter()
            values = form._format_args(action, action.dest.upper())
            raise argparse.ArgumentError(
                action, f"{error.message}: {'|'.join(action.option_strings)} {values}") from None

    def _hint(self, unknown: Sequence[str]) -> str:
        """What to type instead of the first unknown flag."""
        typed = next((word for word in unknown if word.startswith("-")), "")
        if not typed:
            return f"unrecognized arguments: {' '.join(unknown)}"
        flag, equals, value = typed.partition("=")
        if not equals:
            follows = self.words.index(typed) + 1 if typed in self.words else len(self.words)
            value = next(iter(self.words[follows:follows + 1]), "")
        return self.hint(flag, "" if value.startswith("-") else value)

    def hint(self, flag: str, value: str = "") -> str:
        """What to type instead of an unknown flag, with the user's own value."""
        if text := self._help_of_command_flag(flag):
            example = re.match(r"  \S+ ([^\s[]+)", text)  # the placeholder of a value it needs
            words = f"{flag} {value or example[1]}" if example else flag
            return f"{flag} goes with a command: ./run.sh {words} -- COMMAND"
        if advice := self.advice(flag, value):
            return f"{flag}: there is no such flag; write {advice}"
        near = self._nearest(flag)
        if near in self.synonyms:
            return f"{flag}: there is no such flag; {self.synonyms[near]}"
        return f"unrecognized arguments: {flag}{f' (did you mean {near}?)' if near else ''}"

    def advice(self, flag: str, value: str) -> str:
        """The flag and value that an unknown flag most likely stands for; "" for none."""
        near = self._nearest(flag)
        same = (near, self.examples.get(near, "").removeprefix(f"./run.sh {near}").split(" ")[0])
        instead = self.synonyms.get(near, same if near == flag.lower() else "")
        if isinstance(instead, str):
            return ""
        name, example = instead
        return f"{name} {value if value and self.accepts(name, value) else example}".rstrip()

    def _nearest(self, flag: str) -> str:
        """The known flag or synonym that looks most like this one, "" for none."""
        known = [*self._option_string_actions, *self.synonyms]
        return next((name for name in (flag, flag.lower()) if name in known), "") or next(
            iter(near_words(flag, known)), "")

    def _help_of_command_flag(self, flag: str) -> str:
        """The help of a flag that stands before `-- COMMAND`; "" if the flag is none of them."""
        found = re.search(rf"^  {re.escape(flag)}\b.*\n(?: {{10,}}.*\n)*", self.others(),
                          re.MULTILINE)
        return found[0] if found else ""

    def accepts(self, flag: str, value: str) -> bool:
        """Whether a flag accepts a value."""
        try:
            self._get_values(self._option_string_actions[flag], [value])
        except (argparse.ArgumentError, KeyError):
            return False
        return value.isprintable()

    def help_of(self, word: str) -> str:
        """The help of a flag, typed with or without dashes: unit, range, default, an example.

        Exits with a message if there is no such flag.
        """
        flag = next((name for name in (f"--{word.lstrip('-')}", f"-{word.lstrip('-')}")
                     if name in self._option_string_actions), "")
        if flag:
            action = self._option_string_actions[flag]
            formatter = self._get_formatter()
            formatter.add_argument(action)
            example = self.examples.get(action.option_strings[-1], "")
            return formatter.format_help() + (f"\n  {example}\n" if example else "")
        flag = f"--{word.lstrip('-')}"
        return self._help_of_command_flag(flag) or self.error(f"--help: {self.hint(flag)}")

    def error(self, message: str) -> NoReturn:
        every = "--help all" if self.short else "--help"
        say(one_line(f"{self.prog}: {message} ({every} shows every flag)"))
        sys.exit(USAGE)


class _Help(argparse.Action):
    """Print the short help, all of it, or that of one flag."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace,
                 values: Any, option_string: str | None = None) -> None:
        assert isinstance(parser, Parser)
        if values == "":
            text = parser.short
        elif values == "all":
            text = f"{parser.format_help()}\n{parser.others()}"
        else:
            text = parser.help_of(str(values)).rstrip()
        print_while_read(text)
        sys.exit(0)


MOST_PATH_BYTES, MOST_NAME_BYTES = 4095, 255  # Linux's PATH_MAX, NAME_MAX


def nonempty(word: str) -> str:
    """Read a word that is not empty: "" would look like a flag that was not given."""
    if not word.strip():
        raise argparse.ArgumentTypeError("its value is empty")
    return word


def file_path(word: str) -> Path:
    """Read the path of a file or a folder, which need not exist."""
    try:
        encoded = os.fsencode(word)
    except UnicodeEncodeError:
        encoded = b"\0"
    if not word or b"\0" in encoded:
        raise argparse.ArgumentTypeError(f"{word!r} is not a path")
    if len(encoded) > MOST_PATH_BYTES or max(map(len, encoded.split(b"/"))) > MOST_NAME_BYTES:
        raise argparse.ArgumentTypeError(f"{word[:40]!r}… is longer than a path may be")
    return Path(word)


def output_folder(word: str) -> Path:
    """Read the path of a folder that is created if it is missing."""
    place = file_path(word)
    existing = next(above for above in (place, *place.absolute().parents)
                    if os.path.exists(above))  # Path.exists raises in a folder it may not search
    if not existing.is_dir():
        raise argparse.ArgumentTypeError(f"{existing} is not a folder")
    if not os.access(existing, os.W_OK | os.X_OK, effective_ids=True):
        raise argparse.ArgumentTypeError(f"{existing} cannot be written to")
    return place


def output_file(word: str) -> Path:
    """Read the path of a file to write; its folder is created if it is missing."""
    place = file_path(word)
    if os.path.isdir(place):
        raise argparse.ArgumentTypeError(f"{place} is a folder; give a file")
    if not os.path.exists(place):  # which may be /dev/stdout
        output_folder(str(place.parent))
    return place


def whole_number(word: str) -> int:
    """Read a whole number."""
    try:
        return int(word)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{word}' is not a whole number") from None


def whole_numbers(words: str) -> list[int]:
    """Read a list like 3,10."""
    return list(map(whole_number, words.split(",")))


def positive_number(word: str) -> int:
    """Read a whole number above 0."""
    try:
        value = int(word)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"'{word}' is not a whole number above 0")
    return value


def run_main(program: str, main: Callable[[Sequence[str]], int]) -> NoReturn:
    """Run a command's main and exit with its status; no traceback reaches the user."""
    _open_streams()
    sys.unraisablehook = _unraisable
    try:
        interrupt_on(signal.SIGINT)
        status = _status_of(program, main)
        _ignore_signals()
    except KeyboardInterrupt as stopped:
        _ignore_signals()
        say(f"{program}: interrupted{resume_hint(stopped)}")
        status = INTERRUPTED
    sys.exit(status)


def _status_of(program: str, main: Callable[[Sequence[str]], int]) -> int:
    """The exit status of a command's main, once its error is printed. Raises KeyboardInterrupt."""
    try:
        status = main(sys.argv[1:])
        sys.stdout.flush()
        return status
    except FirstFlightError as error:
        say(f"{program}: {error}{resume_hint(error)}")
        return error.exit_status
    except BrokenPipeError:  # the reader has left, as with `| head -1`
        _discard_output(1)
        return UNREAD
    except OSError as error:
        _discard_output(1)
        what = one_line(f"{error.filename or _OUTPUT}: {error.strerror}")
        say(f"{program}: {what}{resume_hint(error)}")
        return FAILED
    except MemoryError as error:
        say(f"{program}: this machine has too little memory{resume_hint(error)}")
        return CANNOT
    except Exception as error:  # our mistake: the user gets one line, the report has the rest
        if isinstance(error, ModuleNotFoundError) and not _is_ours(error.name or ""):
            say(f"{program}: Python's package {error.name} is missing; ./install.sh installs it")
            return CANNOT
        what = one_line(f"internal error, {type(error).__name__}: {error}")
        crash = write_crash(traceback.format_exc())
        say(f"{program}: {what}; please report it with {crash}{resume_hint(error)}")
        return FAILED


def _is_ours(module: str) -> bool:
    """Whether a module is one of the project's own."""
    return any((_PROJECT / f"{module.partition('.')[0]}{end}").exists() for end in ("", ".py"))


def interrupt_on(*numbers: int, by: Callable[[int, FrameType | None], None] | None = None) -> None:
    """Let these signals interrupt the command, except those it was started to ignore (nohup).

    by: handles them instead of `interrupt`. Once the command has its status they are ignored: as
    Python ends it removes its handlers, and a signal would then change the status.
    """
    for number in numbers:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, by or interrupt)
            _interrupting.add(number)


def interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt for a signal, but only after an import that it meets has ended.

    During an import, numpy's C code would print a traceback and raise ImportError. An impatient
    user sends more signals while the command is cleaning up: only the first one counts.
    """
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            _send_later(number)
            return
        frame = frame.f_back
    _ignore_signals()
    raise KeyboardInterrupt


def _ignore_signals() -> None:
    for number in _interrupting:
        signal.signal(number, signal.SIG_IGN)


def _send_later(number: int) -> None:
    timer = threading.Timer(RESEND_SIGNAL_S, os.kill, (os.getpid(), number))
    timer.daemon = True
    timer.start()


def _unraisable(what: sys.UnraisableHookArgs) -> None:
    """Send a signal again that met a finalizer, whose exceptions reach nobody."""
    if not isinstance(what.exc_value, KeyboardInterrupt) or not _interrupting:
        sys.__unraisablehook__(what)
        return
    for number in _interrupting:
        signal.signal(number, interrupt)
    _send_later(min(_interrupting))


def _open_streams() -> None:
    """Open /dev/null for streams that the caller closed: else the next file would become one."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.open(os.devnull, os.O_RDWR)  # it gets the lowest free number, which is this one
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        # Escape what its encoding lacks (PYTHONIOENCODING=ascii, a folder's name without UTF-8).
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")
    if not shutil.which("env"):  # PATH is empty, or its folders do not exist
        os.environ["PATH"] = ":".join(filter(None, (os.environ.get("PATH"), os.defpath)))


def _discard_output(stream: int) -> None:
    """Point a stream at /dev/null, so that Python does not try to flush it again as it exits."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream)
    os.close(nowhere)


def write_crash(text: str) -> Path:
    """Write a crash report that only the user can read, and return its path.

    It is in the user's cache, or in a temporary folder if the cache cannot be written.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "first-flight"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        file, path = tempfile.mkstemp(".txt", "crash-", cache)
    except (OSError, RuntimeError):
        file, path = tempfile.mkstemp(".txt", "crash-", tempfile.mkdtemp())
    with os.fdopen(file, "w", encoding="utf-8", errors="backslashreplace") as crash:
        crash.write(text)
    return Path(path)


if TYPE_CHECKING:
    from tqdm import tqdm


# Progress: a bar on a terminal, a line now and then elsewhere ------------------------

# Without a terminal: often enough to show progress, seldom enough for a log.
PLAIN_INTERVAL_S = 30.0
# No remaining time is shown before this part is measured: the first trials may be far slower.
LEAST_PART_MEASURED = 0.05


class Progress:
    """Counts trials. Use as a context manager; quiet: prints nothing at all."""

    def __init__(self, total: int, done: int, what: str, quiet: bool = False) -> None:
        self.total, self.done, self.before, self.what = total, done, done, what
        self.quiet, self.doing = quiet, ""
        self.bar: tqdm[None] | None = None
        self.started = time.monotonic()
        self.ended = threading.Event()
        # A trial of thousands of connections takes longer than a log may be silent.
        self.reporter = threading.Thread(target=self._report, daemon=True)

    def __enter__(self) -> Progress:
        if self.quiet:
            return self
        if sys.stderr.isatty():
            from tqdm import tqdm  # slow to import, and only needed on a terminal
            self.bar = tqdm(total=self.total, initial=self.done, desc=self.what, unit="trial",
                            leave=False, dynamic_ncols=True)
        elif self.total:
            say(f"{self.what}: {self.total - self.done} of {self.total} trials to measure")
            self.reporter.start()
        return self

    def step(self, doing: str = "") -> None:
        """Count one more trial. doing: who measures, "" if that is clear."""
        self.done, self.doing = self.done + 1, doing
        if self.bar is not None:
            self.bar.set_postfix_str(doing, refresh=False)
            self.bar.update()

    def note(self, message: str) -> None:
        """A line that stays, above the progress; none for ""."""
        if message and not self.quiet:
            if self.bar is not None:
                self.bar.clear()
            say(message)

    def line(self, elapsed_s: float) -> str:
        """A line for a log; elapsed_s: since the first trial of this process began."""
        measured, rest = self.done - self.before, self.total - self.done
        known = rest and measured >= LEAST_PART_MEASURED * (measured + rest)
        left = f", about {format_duration(elapsed_s * rest / measured)} left" if known else ""
        doing = f", {self.doing}" if self.doing else ""
        return f"{self.what}: {self.done} of {self.total} trials{doing}{left}"

    def _report(self) -> None:
        while not self.ended.wait(PLAIN_INTERVAL_S):
            say(self.line(time.monotonic() - self.started))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.ended.set()
        if self.reporter.is_alive():
            self.reporter.join()
        if self.bar is not None:
            self.bar.close()
