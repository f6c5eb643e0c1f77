"""Runs in the guest: controls its kernel's clock and random numbers (vtime/kernel/command.c)."""

from __future__ import annotations

from pathlib import Path

SETTINGS = Path("/proc/sys/kernel")
LEAST_SHARE = 0.05  # of its memory: with less available, it counts as full


def pace(paced: bool) -> None:
    """Let the clock run like the wall's, or skip idle time again. Raises OSError."""
    (SETTINGS / "paced").write_text(f"{int(paced)}\n")


def restart_random_numbers() -> None:
    """Let random numbers depend on the seed only, from here on. Raises OSError.

    Before that, how many numbers were drawn depends on the path of the command's folder: each file
    or folder that is made in memory draws one, and the parents of that folder are made.
    """
    (SETTINGS / "restarted").write_text("1\n")


def is_memory_full() -> bool:
    """Whether little memory is left: the guest then reads its programs again and again."""
    with open("/proc/meminfo", encoding="ascii") as file:
        kb = {line.partition(":")[0]: int(line.split()[1]) for line in file}
    return kb["MemAvailable"] < kb["MemTotal"] * LEAST_SHARE
