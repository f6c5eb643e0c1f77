"""Runs in the guest, in programs that import Mininet: writes down what a script asks of Mininet.

in_place.py puts it where the distribution's Python imports it as it starts. For each link that is
made, and each command that the script gives to a host or a shell, a line of JSON goes to FILE, with
the script's line. wire/capture/calls.py reads them. Mininet does all that it does without this.
"""

from __future__ import annotations

import sys

MYPY = False  # as typing.TYPE_CHECKING; every Python program imports this file
if MYPY:
    from collections.abc import Iterator
    from types import CodeType, FrameType, ModuleType
    from typing import Any

FILE = "/run/first-flight/calls"
MOST_CALLS, MOST_TEXT = 5000, 1000
# Methods of Mininet that hand a script's own command on.
_PASSING = ("cmd", "cmdPrint", "sendCmd", "pexec", "popen", "_popen", "note")
_written = 0
_mininet = "/mininet/"  # its folder, once it is imported
# By the name of a node and a port of it: the line of a Topo's addLink, which has returned by then.
_in_topo: dict[tuple[str, object], list[object]] = {}


class Finder:
    """Finds Mininet's modules as others do, and changes them once they are imported."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        """The spec of a module to change; None for all others."""
        change = CHANGES.get(name)
        if change is None:
            return None
        for finder in sys.meta_path:
            if id(finder) == id(Finder):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                _change_once_imported(spec.loader, change)
                return spec
        return None


def _change_once_imported(loader: Any, change: Any) -> None:
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        global _mininet
        execute(module)
        _mininet = str(module.__file__).rpartition("/")[0] + "/"
        try:
            change(module)
        except Exception:  # another Mininet: the script runs, and nothing is noted
            pass
    loader.exec_module = exec_module


def _note(place: list[object] | None, **what: object) -> None:
    """Append a line, as long as there is room and a file: a script of another user has none."""
    global _written
    if place is None or _written >= MOST_CALLS:
        return

    import json
    import os
    _written += 1
    line = json.dumps({"at": place, **what}, default=str) + "\n"
    try:
        file = os.open(FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError:
        return
    os.write(file, line.encode(errors="replace"))
    os.close(file)


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    """The frames of calls, without those of this file and of Python's library."""
    while frame is not None:
        name = frame.f_code.co_filename
        is_library = name.startswith((sys.base_prefix + "/lib/python3.", "<"))
        if name != __file__ and (not is_library or "-packages/" in name):
            yield frame
        frame = frame.f_back


def _place() -> list[object]:
    """File and line of the script that called Mininet."""
    for frame in _frames(sys._getframe(1)):
        if not frame.f_code.co_filename.startswith(_mininet):
            return [frame.f_code.co_filename, frame.f_lineno]
    return ["", 0]


def _place_of_command() -> list[object] | None:
    """File and line of the script that gave a command; None for a command of Mininet's own."""
    for frame in _frames(sys._getframe(1)):
        if not frame.f_code.co_filename.startswith(_mininet):
            return [frame.f_code.co_filename, frame.f_lineno]
        if frame.f_code.co_name not in _PASSING:
            return None
    return None


# Mininet's modules --------------------------------------------------------------------

def _of_topo(module: Any) -> None:
    """A Topo's addLink only notes the link; Mininet makes it later."""
    add_port = module.Topo.addPort

    def note(self: Any, src: Any, dst: Any, *ports: Any, **more: Any) -> Any:
        found = add_port(self, src, dst, *ports, **more)
        _in_topo[src, found[0]] = _place()
        return found
    module.Topo.addPort = note


def _of_link(module: Any) -> None:
    make = module.Link.__init__

    def note(self: Any, node1: Any, node2: Any, *ports: Any, **more: Any) -> None:
        make(self, node1, node2, *ports, **more)
        try:
            ends = [_end(self.intf1), _end(self.intf2)]
            place = _in_topo.pop((node1.name, node1.ports.get(self.intf1)), None) or _place()
        except Exception:  # a class of the script's own, which has other fields
            return
        _note(place, link=type(self).__name__, ends=ends)
    module.Link.__init__ = note


def _end(interface: Any) -> dict[str, object]:
    """An interface: its class, what it was given, and what of that its class never looks at."""
    kind = type(interface)
    taken: set[str] = set()
    for parent in kind.__mro__:
        taken.update(_parameters(parent.__dict__.get("__init__")))
        taken.update(_parameters(parent.__dict__.get("config")))
    given = {name: str(value)[:MOST_TEXT] for name, value in interface.params.items()
             if isinstance(value, (str, int, float))}
    return {"device": interface.name, "class": kind.__name__,
            "is_mininets": kind.__module__.startswith("mininet."), "given": given,
            "ignored": sorted(set(given) - taken), "most_bw": getattr(kind, "bwParamMax", None)}


def _parameters(method: Any) -> tuple[str, ...]:
    """The names of a method's parameters; () for what is no method."""
    code: CodeType | None = getattr(method, "__code__", None)
    return code.co_varnames[:code.co_argcount + code.co_kwonlyargcount] if code else ()


def _of_node(module: Any) -> None:
    """Commands that hosts get from the script, and those that it starts itself."""
    send = module.Node.sendCmd

    def note(self: Any, *words: Any, **more: Any) -> Any:
        _note_command(words[0] if len(words) == 1 else words, self.name)
        return send(self, *words, **more)
    module.Node.sendCmd = note
    sys.addaudithook(_hear)


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    """A program is started by the script itself (os.system, subprocess) or by Node.popen."""
    if event == "os.system":
        _note_command(arguments[0], "")
    elif event == "subprocess.Popen":
        words = [*arguments[1]]
        if words[0] == "mnexec":
            _note_popen(words)
        else:
            _note_command(words, "")


def _note_popen(words: list[str]) -> None:
    """Note a command of Node.popen, whose script does not see the message of mnexec.

    words: mnexec, its options, the last of which is a number, and the command.
    """
    place = _place_of_command()
    if place is None:
        return
    numbers = [at for at, word in enumerate(words) if str(word).isdigit()]
    if numbers:
        words = words[numbers[0] + 1:]
    _note(place, command=" ".join(words)[:MOST_TEXT], node="popen",
          is_missing=_is_missing(words[0]))


def _is_missing(program: str) -> bool:
    import shutil
    return shutil.which(program) is None


def _note_command(words: Any, node: str) -> None:
    """Note a command: bytes, a text, or a list of words. node: "" for the script itself."""
    if isinstance(words, bytes):
        words = words.decode(errors="replace")
    elif not isinstance(words, str):
        words = " ".join(map(str, words))
    _note(_place_of_command(), command=words[:MOST_TEXT], node=node)


CHANGES = {"mininet.topo": _of_topo, "mininet.link": _of_link, "mininet.node": _of_node}


def begin() -> None:
    """From now on, change Mininet's modules as they are imported."""
    sys.meta_path.insert(0, Finder)
