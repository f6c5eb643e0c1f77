"""Reads the table [sysctls] of a scenario's file, whose settings hold for all of its trials."""

from __future__ import annotations

from collections.abc import Mapping

from firstflight.base.errors import UsageError
from firstflight.net import sysctls
from firstflight.runs import schema


def sysctls_of(raw: Mapping[str, object], where: str, one_word: bool = False) -> dict[str, str]:
    """The settings in the table [sysctls] of `raw`. Raises UsageError.

    one_word: whether a value must not have a space.
    """
    settings = schema.table(raw, "sysctls", where)
    for name, value in settings.items():
        try:
            sysctls.check(name, value)
        except ValueError as error:
            raise UsageError(f"{where}: [sysctls]: {error}") from None
        if one_word and " " in value:
            raise UsageError(f"{where}: [sysctls]: {name} = {value!r} is not a number or a word in"
                             ' quotes, like "0"')
    return settings
