"""In the guest: what its kernel is told (vtime/kernel/command.c), and what it tells of memory."""

from __future__ import annotations

from pathlib import Path

SETTINGS = Path("/proc/sys/kernel")
LEAST_SHARE = 0.05  # of its memory that programs can have; with less it is full


def pace(paced: bool) -> None:
    """Let time go on as on the wall, or not. Raises OSError."""
    (SETTINGS / "paced").write_text(f"{int(paced)}\n")


def restart_random_numbers() -> None:
    """Let what is random follow from the seed alone from here on. Raises OSError.

    How many numbers were drawn before depends on where the command is: each file in memory takes
    one, such as the folders above the command's own.
    """
    (SETTINGS / "restarted").write_text("1\n")


def is_memory_full() -> bool:
    """Whether little is left. The guest then reads all programs from the machine over and over."""
    with open("/proc/meminfo", encoding="ascii") as file:
        kb = {line.partition(":")[0]: int(line.split()[1]) for line in file}
    return kb["MemAvailable"] < kb["MemTotal"] * LEAST_SHARE
