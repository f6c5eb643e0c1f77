"""Servers that are not ours: what their packets say, how they are requested, what is skipped."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import Any

import pytest

from firstflight.base.errors import UsageError
from firstflight.base.words import to_cell
from firstflight.runs.kinds import Overrides
from firstflight.runs.results.records import SKIPPED
from firstflight.runs.scenario_file import find
from firstflight.study import registry
from firstflight.study.fetches.figures.swept_bars import counting
from firstflight.study.fetches.figures.summary import summary
from firstflight.study.fetches.scenario.server import OWN, OwnServer, parsed
from firstflight.study.fetches.scenario.trial import Trial
from firstflight.study.fetches.study import KIND
from firstflight.study.fetches.verify.notes import run_notes, server_notes
from firstflight.testbed.network.commands import commands_of, named_of
from firstflight.wire.exchange import read_exchange
from firstflight.wire.messages import find_messages, retime
from tests.golden import stored

NGINX, HTTP_2, PLAIN = map(stored.load, ("nginx", "nginx_http2", "nginx_plain"))


def trials(**lists: list[Any]) -> list[Trial]:
    one = {"rtt_ms": [40], "bandwidth_kbps": [2000], "initcwnd": [10], "response_bytes": [60000]}
    return list(KIND.study(find("zhao2019"), Overrides({**one, **lists}, client="curl")).trials)


def test_a_trial_names_its_server_and_its_http() -> None:
    (trial,) = trials(server=["nginx"], http=["2"], chain_bytes=[4000], record_bytes=[4096])
    assert "-chain4000-record4096-nginx-http2-" in trial.id
    assert (trial.job()["server"], trial.job()["http"]) == ("nginx", "2")
    said = commands_of(trial.job())
    assert "curl --http2 https://10.0.0.2:8443/60000" in said
    assert any(line.startswith("nginx: TLS 1.3, a chain of 4000 bytes") for line in said)
    (ours,) = trials()
    assert not {"server", "http"} & ours.job().keys()


@pytest.mark.parametrize("name", ["https", "https_records", "iw10", "persistent"])
def test_the_packets_of_our_server_say_what_it_tells(name: str) -> None:
    """Where its flight and its response begin and end: to the byte, but for its tickets."""
    ours = stored.load(name)
    record = ours.judge()
    port = ours.observation["server"]["client_port"]
    exchange = read_exchange(ours.client, ours.server, port)
    found = find_messages(exchange, bool(ours.trial.chain_bytes), len(ours.trial.before))
    assert found is not None and found.flight_bytes == (record.flight_bytes or 0)
    told = ours.observation["server"]
    if "tls" in told:
        assert found.before_request_bytes == told["tls"]["hello_bytes"] + told["tls"][
            "finished_bytes"]
        response = sum(told["tls"]["response"])
    else:
        response = told["header_bytes"] + told["body_bytes"]
    assert found.end - found.start == response
    assert retime(exchange, found).latency_ms == record.wire_latency_ms


def test_a_request_over_http_2_is_behind_the_settings() -> None:
    """Of nginx two tickets, its settings and their acknowledgement leave before the response."""
    port = HTTP_2.observation["server"]["client_port"]
    found = find_messages(read_exchange(HTTP_2.client, HTTP_2.server, port), True)
    assert found is not None and found.flight_bytes == 4373
    assert found.start == 4373 + 271 + 271 + 62 + 31


def test_a_server_that_is_missing_is_no_failure() -> None:
    why = "nginx is missing: ./install.sh --with-nginx brings it"
    record = replace(NGINX, observation={"trial": "x", "skipped": why}).judge()
    assert (record.ok, record.verdict, record.outcome, record.why_not) == (
        True, SKIPPED, "skipped", why)
    assert not record.counts and record.total_ms is None
    values, excluded = counting([record, NGINX.judge()], "total_ms")
    assert len(values) == 1 and str(excluded) == "1 skipped trial"


# A server of one's own ---------------------------------------------------------------

COMMAND = {"command": "serve 'a  b' --port={p}"}


def question(own: dict[str, Any], client: str | None = None, **lists: Any) -> Trial:
    (trial,) = registry.own_question("own", Overrides(
        {"initcwnd": [10], **lists}, client=client, own_server=own)).trials
    return trial


def test_a_question_about_ones_own_server() -> None:
    trial = question(COMMAND, response_bytes=[20000])
    assert trial.server == OWN and trial.client == "libcurl" and "-own-" in trial.id
    job = trial.job()
    assert job["own"]["command"] == ["serve", "a  b", "--port={p}"]
    assert job["paths"] == ["/20000"] and "tls" not in job
    assert "libcurl http://10.0.0.2:8080/20000" in commands_of(job)
    text = to_cell(trial.own_server)
    assert json.loads(text)["command"] == COMMAND["command"], "a column keeps its blanks"


def test_its_own_certificate_makes_it_https() -> None:
    own = {**COMMAND, "ca": "/c/root.pem", "name": "example.org", "url_path": "/page?x=1",
           "folders": ["/srv/mine"]}
    trial = question(own, response_bytes=[20000], http=["2"])
    job = trial.job()
    assert trial.is_secure and trial.client == "curl" and not trial.chain_bytes
    assert named_of(job) == "example.org:8443:10.0.0.2"
    assert "curl --http2 https://example.org:8443/page?x=1" in commands_of(job)
    assert job["own"]["folders"] == ["/srv/mine"] and job["own"]["ca"] == "/c/root.pem"


def test_a_scenario_is_measured_with_ones_own_server_instead() -> None:
    made = KIND.study(find("zhao2019"), Overrides({"rtt_ms": [20]}, own_server=COMMAND))
    assert {trial.server for trial in made.trials} == {OWN} and not made.whole
    assert all(trial.own_server for trial in made.trials)
    both = KIND.study(find("zhao2019"),
                      Overrides({"server": ["builtin", "own"]}, own_server=COMMAND))
    assert {(trial.server, bool(trial.own_server)) for trial in both.trials} == {
        ("builtin", False), (OWN, True)}


def test_its_repeats_have_the_bytes_of_the_first() -> None:
    mine = replace(PLAIN, trial=replace(PLAIN.trial, server=OWN, own_server=json.dumps(COMMAND)))
    assert mine.judge().counts
    assert "as it came at first" in mine.said("server", sha256="0" * 64).judge().error


def test_what_is_not_known_of_servers_is_said() -> None:
    record, ours = NGINX.judge(), stored.load("https").judge()
    skipped = replace(NGINX, observation={"trial": "x", "skipped": "no nginx"}).judge()
    _, first, second, *_ = run_notes([record, ours, skipped])
    assert first == "1 of 3 trials are skipped: no nginx."
    assert second.startswith("The writes of nginx are not known, so 1 of 3 trials")
    assert second.endswith("retransmissions and the received bytes.")
    assert server_notes([ours]) == []
    assert summary([record, ours, skipped]).endswith("excluded: 1 skipped trial")


# Its words ----------------------------------------------------------------------------

@pytest.mark.parametrize("server", [
    OwnServer("serve  --root  'a  b'"), OwnServer("serve {p}", "/ok", "/page?id=1", "own.pem",
                                                  "example.org", ("here", "/srv"))])
def test_what_is_said_of_a_server_is_read_back_from_its_column(server: OwnServer) -> None:
    assert "  " not in server.text and parsed(server.text) == server



@pytest.mark.parametrize(("server", "key"), [
    (OwnServer("'"), "command"), (OwnServer(" "), "command"),
    (OwnServer("x", url_path="a"), "url_path"),
    (OwnServer("x", ready="a b"), "ready"), (OwnServer("x", name="a_b"), "name")])
def test_what_makes_no_sense_is_refused_by_its_key(server: OwnServer, key: str) -> None:
    with pytest.raises(UsageError, match=f"^here: {key}: "):
        server.check("here")


def test_a_worker_gets_words_and_whole_paths() -> None:
    job = OwnServer("serve 'a b' {p}", ca="own.pem", folders=("here", "/srv")).job()
    assert job == {"command": ["serve", "a b", "{p}"], "ready": "", "name": "",
                   "ca": os.path.abspath("own.pem"), "folders": [os.path.abspath("here"), "/srv"]}
    assert OwnServer("serve").job()["ca"] == "" and OwnServer("serve").job()["folders"] == []
