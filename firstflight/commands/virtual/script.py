"""Reads a command's script: which programs it needs that are missing."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from firstflight.base import reading
from vtime.readable import HIDDEN, homes

# What `./install.sh --with-mininet` installs, and how a command or its script names it.
INSTALLED = {"ovs-vsctl": r"ovs-vsctl|\bOVS\w+|switch[= ]ovs", "brctl": r"brctl|LinuxBridge|lxbr",
             "iperf": r"\biperf\b", "iperf3": r"\biperf3\b", "ping": r"\bping(all)?\b",
             "killall": r"\bkillall\b", "tcpdump": r"\btcpdump\b", "nc": r"\b(nc|netcat) ",
             "telnet": r"\btelnet\b|\.iperf\(|test[= ]iperf"}
# Further programs of scripts about networks, which their users install themselves.
_OTHERS = ("arping", "bwm-ng", "conntrack", "dhclient", "dnsmasq", "ebtables", "ethtool", "ffmpeg",
           "fping", "hping3", "ifstat", "ip6tables", "ipset", "iptables", "ITGRecv", "ITGSend",
           "mtr", "ncat", "netperf", "netserver", "nft", "nmap", "nping", "nuttcp", "socat",
           "sshpass", "tcpreplay", "tcptrace", "traceroute", "tshark", "wget", "wrk", "zebra")
MOST_SCRIPT_BYTES = 1 << 20


def text_of(words: Sequence[str]) -> str:
    """A command, and the script that it runs where one can be read."""
    text = " ".join(words)
    with suppress(OSError, StopIteration):
        script = next(Path(word) for word in words[:3]
                      if not word.startswith("/usr/") and Path(word).is_file())
        text += "\n" + reading.content(script, MOST_SCRIPT_BYTES).decode(errors="replace")
    return text


def advice(words: Sequence[str], which: Callable[[str], str | None]) -> list[str]:
    """Programs that the command seems to use and that are not installed, in one line; [] for none.

    which: the path of a program of this machine, None where there is none.
    """
    text = text_of(words)
    # Mininet's default switch, where none is chosen.
    chosen = re.search(r"switch", text) or not (
        Path(words[0]).name == "mn" or re.search(r"^from mininet.* import .*Mininet", text, re.M))
    missing = [name for name, pattern in INSTALLED.items() if not which(name) and (
        re.search(pattern, text) or (name == "ovs-vsctl" and not chosen))]
    lines = [f"{', '.join(missing)}: used and not installed; ./install.sh --with-mininet installs"
             f" {'them' if len(missing) > 1 else 'it'}"] if missing else []
    # As a word that begins a command: in a string, behind a quote or what ends another one.
    others = [name for name in _OTHERS if not which(name) and re.search(
        rf"(?m)(['\"`;&|(]|^)\s*(sudo\s+)?{re.escape(name)}(\s+-|\s+\w|['\"])", text)]
    return [*lines, *([f"{', '.join(others)}: used and not installed on this machine, whose"
                       " programs the guest has"] if others else [])]


def hidden_programs(words: Sequence[str], folder: Path, readable: Sequence[Path]) -> list[str]:
    """Links of the folder to programs that the command does not see, a line for each; [] for none.

    The Python of a virtual environment is such a link. Looked at are the command's own program and
    the environments that its words, or its script, name. folder, readable: paths without links.
    """
    text = text_of(words)
    programs = [folder / words[0]]
    for config in sorted(folder.glob("*/pyvenv.cfg")):
        if f"{config.parent.name}/bin/" in text:
            programs.append(config.parent / "bin" / "python")

    seen = (folder, *readable)
    unseen = (*homes(), *map(Path, HIDDEN))
    lines = []
    for program in filter(Path.is_symlink, programs):
        real = Path(os.path.realpath(program))
        is_unseen = any(map(real.is_relative_to, unseen)) and not any(
            map(real.is_relative_to, seen))
        if not is_unseen or not os.access(real, os.X_OK):
            continue

        # A Python needs its library, too; nobody is told to show a home.
        prefix = real.parent.parent
        is_home = any(home.is_relative_to(prefix) for home in unseen)
        needed = prefix if real.parent.name == "bin" and not is_home else real
        lines.append(f"{os.path.relpath(program, folder)} leads to {real}, which commands do"
                     f" not see: --readable {needed} shows it to this one")
    return list(dict.fromkeys(lines))
