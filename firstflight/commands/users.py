"""run.sh --users: which window for the users of a file, as scenarios of their own."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from firstflight.base import errors
from firstflight.base.argument_types import argument, file_path, positive_number
from firstflight.base.errors import UsageError
from firstflight.base.terminal import say
from firstflight.commands.request import Request, UsersRequest
from firstflight.findings.quantities import FLAGS
from firstflight.runs import scenario_file
from firstflight.runs.kinds import AnyStudy, RunData
from firstflight.study import registry
from firstflight.workloads.fetch.scenario.requested_users import (CHOSEN, LARGEST_WINDOW,
                                                                  QUANTITY_NAMES, TRIALS, WINDOWS,
                                                                  Requested, RttField)

if TYPE_CHECKING:
    from firstflight.runs.earlier import Refining
    from firstflight.study.fetches import FetchStudy
    from firstflight.study.users.rows import UserTable
    from firstflight.workloads.fetch.record.record import Record
    from firstflight.workloads.fetch.scenario.users import UserSample
    from firstflight.workloads.fetch.trial import Trial


def add_flags(add: Callable[..., object]) -> None:
    add("--users", type=file_path, metavar="FILE",
        help="which window for the users of a file: a CSV with rtt_ms,bandwidth_kbps,"
             "response_bytes[,group][,weight], JSON lines, a log with rtt=$tcpinfo_rtt, the output"
             " of ss -tin, each also as gzip; --iw, --bw and --size for what it does not know")
    add("--rtt-field", type=argument(rtt_field), metavar="N[:ms]|NAME:us",
        help="with --users: which field of a log is the RTT: its number, from 1 on, or its name in"
             " JSON, LTSV, CSV and name=value. Words in quotes or brackets are one field. 12 is in"
             " µs, as nginx's $tcpinfo_rtt, 12:ms is in ms; a name needs its unit: client_rtt:ms"
             " (default: the field that is named so)")
    add("--first-requests", action="store_true",
        help="with --users: use only the first request of each connection of a log. The field"
             " connection, or the client's address and port, distinguishes connections (default:"
             " all requests, or those that connection_requests or http_first_req names)")
    add("--trials", type=positive_number, metavar="N",
        help=f"with --users: how many users are measured under each window (default {TRIALS})")


def rtt_field(word: str) -> RttField:
    """Reads the number or name of a field, and its unit. Raises ValueError."""
    field, unit = word, ""
    if ":" in word:
        field, _, unit = word.rpartition(":")
    if unit == "us":
        unit = "µs"

    if field.isdecimal() and 0 < int(field) <= 1000 and unit in ("", "µs", "ms"):
        return RttField(int(field), unit or "µs")
    is_name = field.isprintable() and bool(field.strip()) and not field.isdecimal()
    if is_name and unit in ("µs", "ms"):
        return RttField(0, unit, field)
    raise ValueError(
        f"{word!r} is neither the number of a field, such as 12 (in µs) or 12:ms, nor its name with"
        " a unit, such as client_rtt:us")


def is_requested(request: Request) -> bool:
    return request.users is not None


def check(request: Request) -> str:
    """Why the other flags do not go with --users; "" if they do."""
    refused = {"repeat", "client", "sysctl"} & request.overrides.given.keys()
    if is_requested(request) and (request.scenarios or refused):
        return "--users goes without a scenario, --repeat, --client and --sysctl"
    return ""


def read(request: Request) -> list[AnyStudy]:
    """The study of a sample of a file's users. Raises UsageError."""
    users = _read_users(_users_request(request))
    return [_study(users, request, requested_of(request))]


def _users_request(request: Request) -> UsersRequest:
    assert request.users is not None
    return request.users


def _read_users(users: UsersRequest) -> UserTable:
    from firstflight.study.users import logs
    return logs.read_file(users.file, users.rtt_field, users.first_requests)


def _study(users: UserTable, request: Request, requested: Requested) -> FetchStudy:
    from firstflight.study.users import sample
    seed = request.measuring.seed
    scenario = sample.scenario(users, requested, _users_request(request).file, seed)
    return registry.fetches_of(scenario, request.allow_many, seed)


def run(request: Request) -> int:
    """Measure the users. Without --iw, add larger windows while the largest one is the best."""
    from firstflight.commands.users_conditions import OfUsers, check_conditions
    conditions = request.output.conditions
    if request.dry_run:
        from firstflight.commands.dry_run import dry_run
        study, = read(request)
        check_conditions(conditions, study)
        print(f"{study.head.source}.")
        dry_run(study, request.measuring, request.overrides)
        return errors.OK

    # What boots guests, judges and renders, which a dry run does not load.
    from firstflight.commands import measure, runners
    runners.check_rights(request.measuring.engine)
    runners.check_kernels(request.overrides)
    requested = requested_of(request)
    # Read once: a log may grow meanwhile, and the windows have to be measured with the same users.
    users = _read_users(_users_request(request))

    while True:
        study = _study(users, request, requested)
        check_conditions(conditions, study)
        measured = measure.measure_study(study, request, _refining(study))
        largest = max(requested.windows)
        if ("initcwnd" in request.overrides.lists or largest >= LARGEST_WINDOW
                or largest not in _chosen(study, measured)):
            break
        say(f"run.sh: {largest} segments, the largest window so far, is the best:"
            f" {2 * largest} are measured too (--iw with a list of windows prevents this)")
        requested = replace(requested, windows=(*requested.windows, 2 * largest))

    source = OfUsers(_sample_of(study), measured.records)
    return measure.show(study, measured, request.output, source)


def _sample_of(study: FetchStudy) -> UserSample:
    """The users that a study measures."""
    assert study.scenario.users is not None
    return study.scenario.users


def _refining(study: FetchStudy) -> Refining[Trial, Record]:
    """How to measure users: equal trials once, in an order that gives a fair first answer."""
    from firstflight.runs.earlier import Refining
    from firstflight.study.users.recommendation import first_answer
    from firstflight.workloads.fetch.scenario.users import content, order
    return Refining(content=content, content_of=lambda record: content(record.trial), order=order,
                    answer=lambda records: first_answer(_sample_of(study), records))


def _chosen(study: FetchStudy, measured: RunData[Record]) -> set[int | None]:
    """The windows that are recommended for all users, one for each option."""
    from firstflight.study.users import varied
    users = _sample_of(study)
    of_options = [varied.choices(users, varied.with_option(measured.records, option))
                  for option in users.options]
    return {choices[varied.ALL].initcwnd for choices in of_options if choices}


def requested_of(request: Request) -> Requested:
    """The windows, number of trials and parameters that the flags request. Raises UsageError."""
    overrides = request.overrides
    if overrides.own_window:
        raise UsageError("--users: --iw default is no window to recommend: give numbers, such as"
                         " --iw 10,32")
    given = overrides.checked()
    if "load" in given:
        raise UsageError("--load: --users measures no shared link")
    windows = given.pop("initcwnd", WINDOWS)
    options = {name: given.pop(name) for name in CHOSEN if name in given}
    _check_single_values(given)

    trials = _users_request(request).trials
    count = math.prod(map(len, options.values()), start=len(windows) * trials)
    scenario_file.check_count(count, many=overrides.many)

    for_gaps = {}  # of rows that lack the quantity
    for_everybody: dict[str, str | float | tuple[str, ...]] = {**options}
    for name, (value,) in given.items():
        if name in QUANTITY_NAMES:
            for_gaps[name] = value
        else:
            for_everybody[name] = value
    return Requested(windows, trials, given=for_gaps, defaults=for_everybody)


def _check_single_values(given: Mapping[str, Sequence[object]]) -> None:
    """Refuse a list for a flag that holds for everybody. Raises UsageError."""
    for name, values in given.items():
        if len(values) != 1:
            lists = ", ".join(FLAGS[other].flag for other in CHOSEN)
            raise UsageError(f"{FLAGS[name].flag}: --users takes one value of this flag, the same"
                             f" for everybody; --iw, {lists} take lists")
