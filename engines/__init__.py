"""Guests in virtual time, this machine's kernel, and the workers that measure on them."""

from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
