"""Collects what a run is measured with: the machine, its tools, and the project's version."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from firstflight.base import __version__


def of_this_machine(project: Path, with_browser: bool = False
                    ) -> dict[str, Mapping[str, object]]:
    """Facts for run.json that hold for a run from its begin to its end.

    A fact that is not available is "". project: the folder of the project's files. with_browser:
    whether the run needs the browser.
    """
    commit = first_line(["git", "-C", str(project), "rev-parse", "HEAD"])
    # Without locks git does not write its index, which would be root's after sudo.
    changed = first_line(["git", "--no-optional-locks", "-C", str(project), "status",
                          "--porcelain", "--untracked-files=no"])
    return {"machine": machine(), "tools": {**tools(), **(browser() if with_browser else {})},
            "project": {"version": __version__, "commit": commit, "changed": bool(changed)}}


def machine() -> dict[str, str | int | None]:
    """This machine's kernel, processor, number of processors and distribution."""
    return {"kernel": platform.release(), "processor": processor(), "cpus": os.cpu_count(),
            "system": system()}


def tools() -> dict[str, str]:
    """The versions of the programs and libraries on which a measurement in a guest depends."""
    return {"python": sys.version.split()[0], "curl": first_line(["curl", "--version"]),
            "openssl": openssl(), "iproute2": first_line(["ip", "-V"]), "nginx": nginx()}


def browser() -> dict[str, str]:
    """The version of the browser, "" where it is missing, in the form of `tools`.

    It is not among `tools`: to ask for it starts the browser, and only pages in a browser depend on
    it.
    """
    return {"chromium": first_line(["chromium-headless-shell", "--version"])}


def nginx() -> str:
    """The versions of nginx and of the OpenSSL that it uses; "" if nginx is missing."""
    try:
        done = subprocess.run(["nginx", "-V"], capture_output=True, text=True, check=True,
                              timeout=10, env={"PATH": f"{os.defpath}:/usr/sbin:/sbin"})
    except (OSError, subprocess.SubprocessError):
        return ""
    first, *others = done.stderr.splitlines() or [""]
    version = first.rpartition(": ")[2]
    library = next((line for line in others if "OpenSSL" in line), "")
    library_version = library.rpartition("running with ")[2].rstrip(")")
    return ", ".join(part for part in (version, library_version) if part)


def openssl() -> str:
    """The version of the TLS library that server.py uses."""
    import ssl  # slow, and needed for a measurement only
    return ssl.OPENSSL_VERSION


def first_line(command: list[str]) -> str:
    """The first line that a command prints; "" if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.partition("\n")[0].strip()


def processor() -> str:
    """The model of this machine's processor; "" if it is not known."""
    return value_of(Path("/proc/cpuinfo"), "model name", ":")


def system() -> str:
    """The name of this machine's distribution; "" if it is not known."""
    return value_of(Path("/etc/os-release"), "PRETTY_NAME", "=").strip('"')


def value_of(path: Path, key: str, separator: str) -> str:
    """The first value of `key` in a file of keys and values; "" if there is none."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    for line in lines:
        name, found, value = line.partition(separator)
        if found and name.strip() == key:
            return value.strip()
    return ""
