"""run.sh --probe: what initial window a server uses, as lines, data and a condition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from firstflight.base import errors
from firstflight.base.argument_types import nonempty
from firstflight.base.errors import CannotError, FirstFlightError, UsageError
from firstflight.commands.conditions import Mean, UndeterminedError
from firstflight.commands.request import Output, Request
from firstflight.findings.quantities import QUANTITIES

if TYPE_CHECKING:
    from firstflight.findings.findings import Report
    from firstflight.probe.verdict import ProbedConnection, ProbeResult


def add_flags(add: Callable[..., object]) -> None:
    add("--probe", metavar="URL", type=nonempty,
        help="measure the initial window of your server from this machine, by one connection to"
             " this URL; the only flag that uses the network. With the right to"
             " capture (root, CAP_NET_RAW) it reads that connection's packets, else it counts"
             " them; take a page of 100 kB or more")


def is_requested(request: Request) -> bool:
    return request.probe is not None


def run(request: Request) -> int:
    """Print what window a server uses, by one connection to it.

    With --dry-run it opens none. Raises UsageError.
    """
    from firstflight.probe import verdict  # only where it is requested
    assert request.probe is not None
    address = request.probe
    url = probed_url(address)
    for condition in request.output.conditions:
        condition.check_names(NUMBERS, "--probe")
    if request.dry_run:
        print(f"one connection to {errors.one_line(url.netloc)}, and one request for"
              f" {errors.one_line(url.path or '/')}; --dry-run opens none")
        return errors.OK
    return show(verdict.judge_probe(observe(address, url)), address, request.output)


def observe(address: str, url: SplitResult) -> ProbedConnection:
    """Open one connection to a server; return what was observed on it.

    address: the URL as it was typed, for messages. Raises CannotError without the right to probe,
    FirstFlightError where the server does not answer with a page.
    """
    from firstflight.probe import client  # only where it is requested
    if client.is_this_machine(url):
        raise FirstFlightError(f"--probe: {address} {client.THIS_MACHINE}")
    try:
        observed = client.observe(url)
    except client.ProbeNotAllowed as error:
        raise CannotError(f"--probe: {address} {error}") from error
    except client.ProbeFailed as error:
        raise FirstFlightError(f"--probe: {address} {error}") from error

    response = observed.response
    if response.status // 100 == 3:
        raise FirstFlightError(f"--probe: {address} answers with status {response.status} and"
                               f" redirects to {response.location or 'nowhere'}: probe that URL"
                               " if it is yours")
    if response.status != 200:
        raise FirstFlightError(f"--probe: {address} answers with status {response.status}: name a"
                               " page that it has, a large one if possible")
    return observed


def show(probed: ProbeResult, address: str, output: Output) -> int:
    """Print the result, write it for --export, judge it by --fail-if; return the exit status.

    address: the URL as it was typed. Raises UndeterminedError, WriteError.
    """
    from firstflight.commands import export, fail_if
    from firstflight.probe import verdict
    report = report_of(probed, address)
    lines = [address, *(f"  {line}" for line in verdict.result_lines(probed))]
    if (command := verdict.next_command(probed)) is not None:
        lines.append(f"  what other windows do at this RTT: {command}")

    export.write_files(output, report)
    was_read = export.print_text(output, "\n".join(lines))
    was_read = export.print_data(output, report) and was_read
    return fail_if.judge(output, OfProbe(probed), was_read)


def values_of(probed: ProbeResult) -> dict[str, object]:
    """The result as JSON.

    iw is the initial window, in segments. Where at_least or at_most is true, it is only a bound of
    the window, whose ends are iw_least and iw_most. What is not known is null.
    """
    least, most = probed.window_range
    has_upper_bound = least is None or (most is not None and most != least)
    return {"iw": most if least is None else least, "at_least": most is None,
            "at_most": has_upper_bound, "iw_least": least, "iw_most": most,
            "segments": probed.segments, "rtt_ms": probed.rtt_ms, "mss_bytes": probed.mss,
            "response_bytes": probed.size_bytes, "captured": probed.is_captured,
            "lost": probed.lost, "limit": probed.limit}


def report_of(probed: ProbeResult, address: str) -> Report:
    """The result as a report, for --export."""
    from firstflight.findings.findings import Answer, Column, Finding, Report, Table
    from firstflight.probe import verdict
    values = values_of(probed)
    rows = tuple((name, "" if value is None else str(value)) for name, value in values.items())
    lines = verdict.result_lines(probed)
    table = Table("", (Column("what", is_text=True), Column("value", is_text=True)), rows)
    return Report(
        name="probe", title=f"The initial window of {address}", claim=lines[0],
        source="One connection to this server", path="", facts={}, verified=1, count=1,
        findings=(Finding("probe", "The first flight", (table,)),), sentences=tuple(lines),
        answer=Answer(lines[0], values={"url": address, **values}))


# The numbers that a condition of --fail-if may name.
NUMBERS = ("iw", "segments", "rtt_ms", "mss_bytes", "response_bytes")


@dataclass(frozen=True)
class OfProbe:
    """The numbers of a probe, for --fail-if."""

    probed: ProbeResult

    def ends(self, mean: Mean) -> tuple[float, float]:
        """The least and the largest value that a number may have.

        mean: the number as a condition names it. Raises UndeterminedError where it is not known.
        """
        if mean.column == "iw":
            least, most = self.probed.window_range
            possible = QUANTITIES["initcwnd"]
            return least or possible.lowest, most or possible.highest
        value = values_of(self.probed)[mean.column]
        if not isinstance(value, (int, float)):
            raise UndeterminedError("the probe did not learn it")
        return value, value


def probed_url(address: str) -> SplitResult:
    """The URL of --probe. Raises UsageError."""
    try:
        url = urlsplit(address)
        if url.scheme in ("http", "https") and url.hostname and "@" not in url.netloc \
                and url.netloc.isprintable() and " " not in url.netloc and url.port != 0:
            return url
    except ValueError:  # a port that is no number, brackets that do not close
        pass
    raise UsageError(f"--probe: {address!r} is not a URL like http://example.org/page or"
                     " https://example.org:8443/, without a user's name")
