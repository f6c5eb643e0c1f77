"""What the flags of a command line set in place of a scenario's values."""

from __future__ import annotations

import argparse

from firstflight.base.quantity import OWN_WINDOW, InitialWindow
from firstflight.findings.quantities import FLAGS
from firstflight.runs.kinds import Overrides


def overrides_of(arguments: argparse.Namespace) -> Overrides:
    """The values of all flags that replace a scenario's."""
    lists = {name: getattr(arguments, name) for name in FLAGS
             if getattr(arguments, name) is not None}
    own_window = lists.get("initcwnd") == [InitialWindow.DEFAULT]
    if own_window:
        lists["initcwnd"] = [OWN_WINDOW]
    return Overrides(lists, arguments.repeat, arguments.client,
                     many=arguments.yes or arguments.dry_run, sysctls=tuple(arguments.sysctl),
                     sample="full" if arguments.sample == "full" else "",
                     own_server=own_server(arguments), own_window=own_window)


def own_server(arguments: argparse.Namespace) -> dict[str, object]:
    """The flags of the user's own server that are given, by name."""
    given = {"command": arguments.server_command, "ready": arguments.server_ready,
             "url_path": arguments.url_path, "name": arguments.server_name,
             "ca": arguments.ca and str(arguments.ca.absolute()),
             "folders": [str(folder.absolute()) for folder in arguments.server_folder]}
    return {name: value for name, value in given.items() if value not in (None, [])}
