"""Makes a Request of what argparse has read: no other function takes its Namespace."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from firstflight.base.quantity import FIXED, OWN_WINDOW, InitialWindow
from firstflight.commands.request import (Export, Measuring, Output, OwnServer, PageRequest,
                                          Request, UsersRequest)
from firstflight.findings.quantities import FLAGS
from firstflight.runs.kinds import Overrides
from firstflight.testbed.messages import CHROMIUM
from firstflight.workloads.fetch.scenario.requested_users import TRIALS


def request_of(arguments: argparse.Namespace, scenarios: Sequence[str]) -> Request:
    """The request of a command line whose words were read.

    scenarios: what is named to be measured.
    """
    own_server = own_server_of(arguments)
    overrides = overrides_of(arguments, own_server)
    page = page_of(arguments)

    return Request(
        scenarios=tuple(scenarios),
        own=not scenarios and bool(overrides.given or arguments.name or page),
        name=arguments.name,
        overrides=overrides,
        one_in=arguments.sample if isinstance(arguments.sample, int) else None,
        own_server=own_server,
        allow_commands=arguments.allow_commands,
        dry_run=arguments.dry_run,
        allow_many=arguments.yes,
        measuring=measuring_of(arguments),
        output=output_of(arguments),
        list_words=tuple(arguments.names) if arguments.list else None,
        new=arguments.new,
        check=arguments.check,
        probe=arguments.probe,
        compare=arguments.compare,
        users=users_of(arguments),
        find_cliff=arguments.find_cliff,
        page=page)


def overrides_of(arguments: argparse.Namespace, own_server: OwnServer) -> Overrides:
    """The values of all flags that replace a scenario's."""
    lists = {name: getattr(arguments, name) for name in FLAGS
             if getattr(arguments, name) is not None}
    own_window = lists.get("initcwnd") == [InitialWindow.DEFAULT]
    if own_window:
        lists["initcwnd"] = [OWN_WINDOW]

    if FIXED in lists.get("initrwnd", ()):
        lists["initrwnd"] = [window for window in lists["initrwnd"] if window != FIXED]
        lists["rwnd_growth"] = [*lists.get("rwnd_growth", ()), FIXED]

    return Overrides(
        lists, arguments.repeat, arguments.client,
        many=arguments.yes or arguments.dry_run,
        sample="full" if arguments.sample == "full" else "",
        own_server=own_server.given,
        own_window=own_window)


def own_server_of(arguments: argparse.Namespace) -> OwnServer:
    return OwnServer(
        command=arguments.server_command,
        folders=tuple(arguments.server_folder),
        ready=arguments.server_ready,
        url_path=arguments.url_path if arguments.page is None else None,
        ca=arguments.ca,
        name=arguments.server_name)


def measuring_of(arguments: argparse.Namespace) -> Measuring:
    return Measuring(
        engine=arguments.engine,
        jobs=arguments.jobs,
        cluster=arguments.cluster,
        seed=arguments.seed,
        results=arguments.results,
        fresh=arguments.fresh,
        keep_captures=arguments.keep_captures,
        reasons=not arguments.no_reasons)


def output_of(arguments: argparse.Namespace) -> Output:
    return Output(
        exports=tuple(Export(form, place) for form, place in arguments.export),
        conditions=tuple(arguments.fail_if),
        figures=arguments.figures,
        formats=arguments.format,
        draw=not arguments.no_figures,
        full=arguments.full,
        quiet=arguments.quiet)


def users_of(arguments: argparse.Namespace) -> UsersRequest | None:
    if arguments.users is None:
        return None
    return UsersRequest(
        file=arguments.users,
        rtt_field=arguments.rtt_field,
        first_requests=arguments.first_requests,
        trials=arguments.trials or TRIALS)


def page_of(arguments: argparse.Namespace) -> PageRequest | None:
    if arguments.page is None and arguments.objects is None:
        return None
    return PageRequest(
        file=arguments.page,
        objects=arguments.objects,
        mine=arguments.mine or (),
        document_bytes=arguments.document[0] if arguments.document else None,
        connections=tuple(dict.fromkeys(arguments.connections or ())),
        client=arguments.client,
        url_path=arguments.url_path if arguments.page is not None else None,
        with_server_time=arguments.server_time != "0")


def unaccompanied(arguments: argparse.Namespace) -> str:
    """Why a flag lacks the one that it goes with; "" if none does."""
    for flag in ("rtt_field", "first_requests", "trials"):
        if getattr(arguments, flag) and arguments.users is None:
            return f"--{flag.replace('_', '-')} goes only with --users FILE"

    has_page = arguments.page is not None or arguments.objects is not None
    for flag, example in (("connections", "6"), ("document", "30kB")):
        if getattr(arguments, flag) and not has_page:
            return (f"--{flag} goes with --objects N or --page FILE, such as --objects 20"
                    f" --{flag} {example}")

    if arguments.client == CHROMIUM and arguments.page is None:
        return (f"--client {CHROMIUM} goes only with --page, such as --page site/ --client"
                f" {CHROMIUM}")
    is_browsed = arguments.page is not None and arguments.client == CHROMIUM
    if arguments.server_time is not None and not is_browsed:
        return f"--server-time goes only with --page FILE.har --client {CHROMIUM}"
    if arguments.page is not None and arguments.url_path and not is_browsed:
        return f"--url-path with --page goes only with --client {CHROMIUM}"
    if arguments.mine and arguments.page is None:
        return "--mine goes only with --page FILE"
    if len(arguments.document or ()) > 1:
        return "--document takes one size"
    return ""
