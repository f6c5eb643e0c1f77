"""Reads a command and its script to find programs that they need and cannot have in the guest."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from firstflight.base import reading
from vtime.readable import HIDDEN, homes

# The programs that `./install.sh --with-mininet` installs, each with the pattern of the words by
# which a command or its script uses it. Mininet's iperf() waits with telnet for its server.
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
    """The words of a command, and the text of the script that it runs if that can be read.

    The script is the first file among the command's first three words, as in `sudo python3 a.py`.
    """
    text = " ".join(words)
    with suppress(OSError, StopIteration):
        script = next(Path(word) for word in words[:3]
                      if not word.startswith("/usr/") and Path(word).is_file())
        text += "\n" + reading.content(script, MOST_SCRIPT_BYTES).decode(errors="replace")
    return text


def advice(words: Sequence[str], which: Callable[[str], str | None]) -> list[str]:
    """Lines on programs that the command seems to use and that are not installed; [] for none.

    One line has the programs that install.sh installs, another one those that users install. which:
    returns the path of a program of this machine, None where it is missing.
    """
    text = text_of(words)
    lines = []

    # Where a script of Mininet chooses no switch, Mininet takes Open vSwitch.
    is_mininet = Path(words[0]).name == "mn" or re.search(
        r"^from mininet.* import .*Mininet", text, re.M)
    uses_default_switch = is_mininet and not re.search(r"switch", text)
    missing = []
    for name, pattern in INSTALLED.items():
        is_used = re.search(pattern, text) or (name == "ovs-vsctl" and uses_default_switch)
        if is_used and not which(name):
            missing.append(name)
    if missing:
        lines.append(f"{', '.join(missing)}: used and not installed; ./install.sh --with-mininet"
                     f" installs {'them' if len(missing) > 1 else 'it'}")

    # A program's name counts only where a command begins: at the start of a line or of a string,
    # or after a character that ends another command.
    others = []
    for name in _OTHERS:
        is_used = re.search(
            rf"(?m)(['\"`;&|(]|^)\s*(sudo\s+)?{re.escape(name)}(\s+-|\s+\w|['\"])", text)
        if is_used and not which(name):
            others.append(name)
    if others:
        lines.append(f"{', '.join(others)}: used and not installed on this machine, whose"
                     " programs the guest has")
    return lines


def hidden_programs(words: Sequence[str], folder: Path, readable: Sequence[Path]) -> list[str]:
    """Lines on programs that the command cannot see, although its folder has links to them.

    The Python of a virtual environment is such a link. The function looks at the command's own
    program, and at the environments that the command or its script names. folder, readable: paths
    without links.
    """
    text = text_of(words)
    programs = [folder / words[0]]
    for config in sorted(folder.glob("*/pyvenv.cfg")):
        if f"{config.parent.name}/bin/" in text:
            programs.append(config.parent / "bin" / "python")

    visible = (folder, *readable)
    hidden = (*homes(), *map(Path, HIDDEN))
    lines = []
    for program in filter(Path.is_symlink, programs):
        real = Path(os.path.realpath(program))
        is_hidden = any(map(real.is_relative_to, hidden))
        is_visible = not is_hidden or any(map(real.is_relative_to, visible))
        if is_visible or not os.access(real, os.X_OK):
            continue

        # A Python needs its library, too. But a whole home folder is never advised.
        prefix = real.parent.parent
        holds_a_home = any(home.is_relative_to(prefix) for home in hidden)
        needed = prefix if real.parent.name == "bin" and not holds_a_home else real
        lines.append(f"{os.path.relpath(program, folder)} leads to {real}, which commands do"
                     f" not see: --readable {needed} shows it to this one")
    return list(dict.fromkeys(lines))
