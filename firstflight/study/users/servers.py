"""Recognises the log of a server that records no round-trip time, and says how to get one."""

from __future__ import annotations

import re
from typing import NamedTuple

# [^]["]* ends at the next bracket. With .* in its place a line of brackets would be read to its end
# from each of them, which takes the square of its length.
COMBINED = re.compile(r'\S+ \S+ [^"]*\[[^]["]*\] "(?P<request>[^"]*)" (?P<status>\d{3})'
                      r' (?P<bytes>\d+|-)(?: |$)')
_USE_SS = "take the output of ss -tin, or CSV, from what the users connect to"
_ADD_TO_HAPROXY = ("add rtt=%[fc_rtt(us)] bytes=%B to its log-format. If one of its fields is"
                   " fc_rtt, say which: --rtt-field N, N:ms for fc_rtt(ms)")


class ServerLog(NamedTuple):
    """A format in which a server writes its log, without a round-trip time."""

    # As in "looks like …".
    name: str
    # Matches the beginning of each line.
    pattern: re.Pattern[str]
    # What the user can do to have a round-trip time.
    cure: str


LOGS = (
    ServerLog("the log of an AWS load balancer",
              re.compile(r"(?:https?|h2|wss?|grpcs) \d{4}-\d\d-\d\dT\S+ app/"),
              f"its fields cannot be changed: {_USE_SS}"),
    ServerLog("HAProxy's log in the common log format",
              re.compile(COMBINED.pattern + r'"" "" \d+ \d+ "'),
              _ADD_TO_HAPROXY),
    ServerLog("HAProxy's log",
              re.compile(r"\S.*? \[\d\d/\w{3}/\d{4}:[\d:.]+\] \S+ \S+/\S+ [-+\d]+/[-+\d]+"),
              _ADD_TO_HAPROXY),
    ServerLog("Envoy's log", re.compile(
        r'\[\d{4}-\d\d-\d\dT[\d:.]+Z\] "[^"]*" \d{1,3} \S+ \d+ \d+ \d+ '),
        f"Envoy logs no round-trip time: {_USE_SS}"),
    ServerLog("Envoy's log", re.compile(r'\{.{0,4000}"(?:upstream_cluster|response_flags)"'),
              f"Envoy logs no round-trip time: {_USE_SS}"),
    ServerLog("Caddy's log", re.compile(r'\{.{0,4000}"logger":\s?"http\.log\.access'),
              f"Caddy logs no round-trip time: {_USE_SS}"),
    ServerLog("Traefik's log", re.compile(r'\{.{0,4000}"(?:RouterName|DownstreamStatus)"'),
              f"Traefik logs no round-trip time: {_USE_SS}"),
    ServerLog("Traefik's log", re.compile(
        COMBINED.pattern + r'"[^"]*" "[^"]*" \d+ "[^"]*" "[^"]*" \d+ms'),
        f"Traefik logs no round-trip time: {_USE_SS}"),
    ServerLog("a log in the common or combined format", COMBINED,
              "nginx: add rtt=$tcpinfo_rtt to its log_format; Apache cannot log it: take the output"
              " of ss -tin. If one of its fields is $tcpinfo_rtt, say which: --rtt-field N"))


def recognise_log(line: str) -> ServerLog | None:
    """The format that a line is in; None where it is in none of LOGS."""
    return next((log for log in LOGS if log.pattern.match(line)), None)
