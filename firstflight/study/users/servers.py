"""Logs without a round-trip time, by how their lines look, and what their own server can do."""

from __future__ import annotations

import re
from typing import NamedTuple

# No part of it may stand for what the next one begins with: that takes the square of a line.
COMBINED = re.compile(r'\S+ \S+ [^"]*\[[^]["]*\] "(?P<request>[^"]*)" (?P<status>\d{3})'
                      r' (?P<bytes>\d+|-)(?: |$)')
_SS = "take the output of ss -tin, or CSV, from what the users connect to"
_HAPROXY = ("add rtt=%[fc_rtt(us)] bytes=%B to its log-format. If one of its fields is fc_rtt, say"
            " which: --rtt-field N, N:ms for fc_rtt(ms)")


class ServerLog(NamedTuple):
    """A log of a server. pattern: of its first line. cure: what to do about it."""

    name: str
    pattern: re.Pattern[str]
    cure: str


LOGS = (
    ServerLog("the log of an AWS load balancer",
              re.compile(r"(?:https?|h2|wss?|grpcs) \d{4}-\d\d-\d\dT\S+ app/"),
              f"its fields cannot be changed: {_SS}"),
    ServerLog("HAProxy's log in the common log format",
              re.compile(COMBINED.pattern + r'"" "" \d+ \d+ "'), _HAPROXY),
    ServerLog("HAProxy's log",
              re.compile(r"\S.*? \[\d\d/\w{3}/\d{4}:[\d:.]+\] \S+ \S+/\S+ [-+\d]+/[-+\d]+"),
              _HAPROXY),
    ServerLog("Envoy's log", re.compile(
        r'\[\d{4}-\d\d-\d\dT[\d:.]+Z\] "[^"]*" \d{1,3} \S+ \d+ \d+ \d+ '),
        f"Envoy logs no round-trip time: {_SS}"),
    ServerLog("Envoy's log", re.compile(r'\{.{0,4000}"(?:upstream_cluster|response_flags)"'),
              f"Envoy logs no round-trip time: {_SS}"),
    ServerLog("Caddy's log", re.compile(r'\{.{0,4000}"logger":\s?"http\.log\.access'),
              f"Caddy logs no round-trip time: {_SS}"),
    ServerLog("Traefik's log", re.compile(r'\{.{0,4000}"(?:RouterName|DownstreamStatus)"'),
              f"Traefik logs no round-trip time: {_SS}"),
    ServerLog("Traefik's log", re.compile(
        COMBINED.pattern + r'"[^"]*" "[^"]*" \d+ "[^"]*" "[^"]*" \d+ms'),
        f"Traefik logs no round-trip time: {_SS}"),
    ServerLog("a log in the common or combined format", COMBINED,
              "nginx: add rtt=$tcpinfo_rtt to its log_format; Apache knows none: take the output of"
              " ss -tin. If one of its fields is $tcpinfo_rtt, say which: --rtt-field N"))


def log_of(line: str) -> ServerLog | None:
    """The server's log that looks like this line, None for none that is known."""
    return next((log for log in LOGS if log.pattern.match(line)), None)
