"""--first-requests keeps the first request of each connection in logs that do not number them."""

from __future__ import annotations

from pathlib import Path

import pytest

from firstflight.base.errors import UsageError
from firstflight.study.users import logs
from firstflight.study.users.sample import scenario
from firstflight.workloads.fetch.scenario.requested_users import Requested, RttField

LATER = "on connections that were in use"  # the reason for which later requests are excluded
AGENT = '"-" "Mozilla/5.0"'
NGINX = '{address} - - [28/Nov/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 {size} ' + AGENT
HAPROXY = ("Nov 28 10:00:00 lb haproxy[1]: {address}:{port} [28/Nov/2026:10:00:0{second}.000] fe"
           " be/s1 0/0/1/20/21 200 9000 - - ---- 1/1/0/0/0 0/0 rtt={rtt} bytes=9000")
# Four requests on three connections: RTT in µs, number of the connection, client address and port.
ROWS = ((20_000, 1, "192.0.2.1", 4001), (30_000, 2, "192.0.2.1", 4002),
        (31_000, 2, "192.0.2.1", 4002), (40_000, 3, "2001:db8::1", 4002))


@pytest.mark.parametrize("lines", [
    [f"rtt={rtt} bytes=9000 connection={number}" for rtt, number, _, _ in ROWS],
    [f'{{"tcpinfo_rtt": {rtt}, "body_bytes_sent": 9000, "connection": {number}}}'
     for rtt, number, _, _ in ROWS],
    [f'{{"rtt": {rtt}, "bytes_sent": 9000, "connection_id": "{number}", "connection_type": "x"}}'
     for rtt, number, _, _ in ROWS],
    [f"{NGINX.format(address=address, size=9000)} rtt={rtt} remote_port={port}"
     for rtt, _, address, port in ROWS],
    [HAPROXY.format(rtt=rtt, address=address, port=port, second=second)
     for second, (rtt, _, address, port) in enumerate(ROWS)],
    [f"rtt={rtt} bytes=9000 client_ip={address} client_port={port}"
     for rtt, _, address, port in ROWS],
    [f"rtt={rtt} bytes=9000 client={f'[{address}]' if ':' in address else address}:{port}"
     for rtt, _, address, port in ROWS],
    [f"rtt:{rtt}\tsize:9000\tconnection:{number}" for rtt, number, _, _ in ROWS],
    ["rtt_ms,response_bytes,connection", *(f"{rtt / 1000},9000,{number}"
                                           for rtt, number, _, _ in ROWS)],
    ["#Fields: rtt sc-bytes c-ip c-port", *(f"{rtt} 9000 {address} {port}"
                                            for rtt, _, address, port in ROWS)]],
                         ids=["name=value", "nginx JSON", "Envoy JSON", "combined", "HAProxy",
                              "two fields", "one field", "LTSV", "CSV", "W3C"])
def test_each_format_of_log_yields_the_first_request_of_each_connection(lines: list[str]) -> None:
    assert logs.read(lines, "a file").count == len(ROWS)
    users = logs.read(lines, "a file", first_requests=True)
    assert users.rtt_ms.tolist() == [20, 30, 40]
    assert users.skipped == {LATER: 1}
    made = scenario(users, Requested((10,), given={"bandwidth_kbps": 9000.0}), Path("f"), 1)
    assert made.users is not None and "kept" not in made.users.unknown


def test_a_log_read_by_field_number_yields_first_requests() -> None:
    """The lines are HAProxy's httplog with the RTT as last field, without names."""
    lines = [HAPROXY.format(rtt=rtt, address=address, port=port, second=second)
             .replace("rtt=", "").replace(" bytes=9000", "")
             for second, (rtt, _, address, port) in enumerate(ROWS)]
    field = RttField(len(logs._FIELD.findall(lines[0])))
    users = logs.read(lines, "a file", field, first_requests=True)
    assert users.rtt_ms.tolist() == [20, 30, 40]


def test_requests_after_an_excluded_first_one_are_not_first_requests() -> None:
    """Excluded first requests: a redirect without a body, and a request of a bot."""
    users = logs.read(["rtt=20000 bytes=0 connection=1", "rtt=30000 bytes=9000 connection=1",
                       "rtt=20000 bytes=9 connection=2 agent=Googlebot/2.1",
                       "rtt=31000 bytes=9000 connection=2", "rtt=40000 bytes=9000 connection=3"],
                      "a file", first_requests=True)
    assert users.rtt_ms.tolist() == [40]
    assert users.skipped[LATER] == 2 and sum(users.skipped.values()) == 4


@pytest.mark.parametrize("lines", [
    ["rtt=20000 bytes=9000"], ["rtt=20000 bytes=9000 connection=keep-alive"],
    ["rtt=20000 bytes=9000 client=2001:db8::1"], ["rtt=20000 bytes=9000 remote_port=4000"],
    [f"{NGINX.format(address='192.0.2.1', size=9000)} rtt=20000"]])
def test_a_log_that_distinguishes_no_connections_is_refused_with_the_field_to_add(
        lines: list[str]) -> None:
    words = "no field of it distinguishes connections: add connection"
    with pytest.raises(UsageError, match=words):
        logs.read(lines, "a file", first_requests=True)


@pytest.mark.parametrize("lines", [
    ["State Recv-Q Send-Q\n", "rtt:37.5/4 bytes_acked:48211\n"],
    ["20261128.10h00m00s ssn_close 192.0.2.1 192.0.2.2 20000"]])
def test_first_requests_are_refused_for_a_log_whose_rows_are_connections(lines: list[str]) -> None:
    with pytest.raises(UsageError, match="a row of it is a connection, not a request"):
        logs.read(lines, "a file", first_requests=True)


def test_first_requests_are_refused_for_a_log_of_which_only_a_sample_is_read(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MOST_READ", 2)
    path = tmp_path / "log"
    path.write_text("rtt=20000 bytes=9000 connection=1\n" * 3, encoding="utf-8")
    assert logs.read_file(path).count
    with pytest.raises(UsageError, match="tail -n 2"):
        logs.read_file(path, first_requests=True)
