"""What is tampered with, and the check that refuses it: a table over stored trials.

In each of them what was requested agrees with what was read back: as if the network had been set up
otherwise, or as if a report or a capture had been changed. What passes nevertheless stands in
PASSES, and in docs/METHOD.md.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from firstflight.runs.results import checks
from firstflight.workloads.fetch.verify.verify import CHECKS, judge_fetch
from tests.golden import stored
from tests.golden.stored import Stored
from tests.unit.fetches.tampering import (ACK, FLAGS, SYN, Change, answered_later, both,
                                          client_said, cut, drops, flags, from_data, from_upload,
                                          later, longer_queue, lost_at_end, moved, offering, option,
                                          recorded, requested, resized, said, sent_again,
                                          shifted, shorter_flight, swapped, syn, tls, window,
                                          without, without_hello, without_last_acknowledgements,
                                          without_packet, without_records, without_ticket)

PLAIN, TLS, LOSSY, SLOW, BBR = "tail_probe", "https", "queue_and_loss", "queue_timer", "paced"
CUBIC, NGINX, PUBLISHED = "full_queue", "nginx_plain", "as_published"
FIXED = "fixed_window"
UPLOAD, RENO = "upload", "upload_reno"  # of 30 kB with a window of 5, and of 100 kB
EARLY, RESUMED, HTTP_2 = "nginx_early", "nginx_resumed", "nginx_http2"
# The trial, what is tampered with, how, and the check that refuses it.
TAMPERINGS: list[tuple[str, str, Change, str]] = [
    # A request with a body, as the client, the server, and the packets have it.
    *((UPLOAD, f"a request of {size} bytes requested", requested(request_bytes=size), "request")
      for size in (0, 29_999, 30_001)),
    (UPLOAD, "the server received a byte less", said("server", request_body_bytes=29_999),
     "request"),
    (UPLOAD, "the server received other bytes", said("server", request_sha256="0" * 64), "request"),
    (UPLOAD, "the client sent a byte more", client_said(request_bytes=30_001), "request"),
    (UPLOAD, "nothing is known of what the client sent", said("fetch", socket=None), "request"),
    ("iw10", "a body that nobody requested", said("server", request_body_bytes=9), "request"),
    *((name, f"all agree on a request of {size} bytes", resized(size), "request on the wire")
      for name, size in ((UPLOAD, 29_999), (UPLOAD, 30_001), (RENO, 98_552), (RENO, 101_448))),
    *((UPLOAD, f"a client's window of {window} requested", requested(client_initcwnd=window),
       "client's socket") for window in (0, 4, 6)),
    (RENO, "a client's window of 11 requested", requested(client_initcwnd=11), "client's socket"),
    (RENO, "a client's window of 11 at connect", client_said(initial_window=11),
     "client's socket"),
    (UPLOAD, "the client's Reno in the place of CUBIC", client_said(congestion_control="reno"),
     "client's socket"),
    (RENO, "the client's CUBIC in the place of Reno", client_said(congestion_control="cubic"),
     "client's socket"),
    (UPLOAD, "a client's MSS above the server's", client_said(mss=1449), "client's socket"),
    (UPLOAD, "a first flight of another window, reported too", both(
        requested(client_initcwnd=6), client_said(initial_window=6)), "client's first flight"),
    (UPLOAD, "no window that restarts after a pause",
     requested(sysctl="net.ipv4.tcp_slow_start_after_idle=0"), "model"),
    (UPLOAD, "the client is 300 µs late", from_upload(9, 300_000), "causes"),
    (RENO, "total 1.1 ms later", later("fetch", "total_ms", 1.1), "model"),
    (RENO, "first byte 0.1 ms later", later("fetch", "first_byte_ms", 0.1), "client times"),
    (RENO, "a slower uplink", requested(uplink_kbps=19_999.0), "path"),
    # A receive window that stays: 5 segments, and two more until the first data is read.
    (FIXED, "it offers 8 segments in the end", offering(window(8 * 1460), -6), "receive window"),
    (FIXED, "it may grow", requested(rwnd_growth="grows"), "TCP options"),
    (FIXED, "a window of 4", requested(initrwnd=4), "receive window"),
    (FIXED, "a window of 6", requested(initrwnd=6), "TCP options"),
    # Options of the SYNs, left at Linux's default or requested.
    (PLAIN, "client offers MSS 1200", syn(option("020405b4", "020404b0")), "TCP options"),
    (PLAIN, "client offers MSS 1459", syn(option("020405b4", "020405b3")), "TCP options"),
    (PLAIN, "server offers MSS 1400", syn(option("020405b4", "02040578"), True), "TCP options"),
    (PLAIN, "client has no SACK", syn(option("0402", "0101")), "TCP options"),
    (PLAIN, "server has no SACK", syn(option("0402", "0101"), True), "TCP options"),
    (PLAIN, "client has no time stamps", syn(option("080a", "fd0a")), "TCP options"),
    (PLAIN, "server has no time stamps", syn(option("080a", "fd0a"), True), "TCP options"),
    (PLAIN, "client scales windows by more", syn(option("030307", "030308")), "TCP options"),
    (PLAIN, "client scales no window", syn(option("030307", "010101")), "TCP options"),
    (PLAIN, "server scales windows by less", syn(option("030307", "030302"), True), "TCP options"),
    (PLAIN, "client asks for ECN", syn(flags(0xC0)), "TCP options"),
    (PLAIN, "server takes ECN", syn(flags(0x40), True), "TCP options"),
    (PLAIN, "client offers a smaller window", syn(window(29200)), "TCP options"),
    (BBR, "client has no SACK, no model", syn(option("0402", "0101")), "TCP options"),
    (LOSSY, "client has no SACK, losses", syn(option("0402", "0101")), "TCP options"),
    (PLAIN, "another MSS requested", requested(mss=1300), "TCP options"),
    (TLS, "longer segments than the MSS", requested(mss=1447), "segment size"),
    *((name, "no full segment", requested(mss=1449), "segment size")
      for name in (BBR, "https_records", "mldsa", LOSSY)),
    (PLAIN, "another receive window requested", requested(initrwnd=40), "TCP options"),
    # What the kernel of the server says of its socket.
    (PLAIN, "Reno in the place of CUBIC", said("server", congestion_control="reno"),
     "server's socket"),
    (LOSSY, "BBR in the place of CUBIC", said("server", congestion_control="bbr"),
     "server's socket"),
    (BBR, "another control requested than its socket has",
     said("server", congestion_control="westwood"), "server's socket"),
    (LOSSY, "tcp_reordering", said("server", reordering=30), "server's socket"),
    (PLAIN, "SO_SNDBUF that nobody requested", said("server", fixed_send_buffer=True),
     "server's socket"),
    (LOSSY, "SO_SNDBUF that was not set", both(
        requested(send_buffer_bytes=30_000), said("server", fixed_send_buffer=False)),
     "server's socket"),
    (BBR, "SO_MAX_PACING_RATE that nobody requested", said("server", is_pacing_limited=True),
     "server's socket"),
    *((name, f"a pacing rate {percent} % higher", later(
        "server", "pacing_bytes_per_s", 0, 1 + percent / 100), "server's socket")
      for name, percent in ((BBR, 1), (CUBIC, 1), (NGINX, 1), (CUBIC, -50))),
    (NGINX, "nginx with Reno", said("server", congestion_control="reno"), "server's socket"),
    *((name, "a larger send buffer at first", said("server", first_buffer_bytes=92_160),
       "server's socket") for name in (BBR, CUBIC, NGINX)),
    (BBR, "Nagle's algorithm that nobody requested", said("server", has_nagle=True),
     "server's socket"),
    (BBR, "no Nagle's algorithm where it is requested", requested(nagle="on"), "server's socket"),
    (LOSSY, "another MSS of its socket", said("server", mss=1012), "server's socket"),
    ("half_window", "an MSS above half the window", said("server", mss=1448), "server's socket"),
    (CUBIC, "SO_SNDBUF of another size", both(
        requested(send_buffer_bytes=30_000),
        said("server", fixed_send_buffer=True, send_buffer_bytes=50_000)), "server's socket"),
    *((name, f"a request of {size} bytes", said("server", request_bytes=size), "requests")
      for name in (PLAIN, LOSSY, BBR, TLS, "wget") for size in (90, 150, 1300)),
    *((name, "another client requested, whose request is longer", requested(client="wget"),
       "requests") for name in ("nginx", RESUMED, NGINX)),
    # The client's times, where a model says what they have to be and where none does.
    (TLS, "TLS's handshake 0.1 ms later", later("fetch", "appconnect_ms", 0.1), "client times"),
    ("wget", "total 0.2 ms later", later("fetch", "total_ms", 0.2), "client times"),
    (LOSSY, "times of another trial", swapped("iw10"), "client times"),
    (BBR, "times of another trial, no model", swapped("cake_full"), "client times"),
    # Drops by their cause.
    (LOSSY, "queue and random drops exchanged", drops(5, 9), "path"),
    (LOSSY, "one random drop is the queue's", drops(10, 4), "path"),
    (LOSSY, "one random drop more", drops(9, 6), "path"),
    (LOSSY, "one of the queue's drops less", drops(8, 5), "path"),
    (LOSSY, "a drop towards the server", drops(9, 5, 1), "path"),
    (LOSSY, "a loss besides those that were dropped", without("client", 0), "path"),
    (CUBIC, "a loss where the queue may overflow", without("client", 0), "path"),
    ("cake_full", "drops at random in the place of cake's", drops(0, 15), "path"),
    ("full_queue", "drops at random where there are none", drops(0, 9), "path"),
    # The network was another one.
    (PLAIN, "RTT 4 µs longer", requested(rtt_ms=20.004), "path"),
    (PLAIN, "RTT 4 µs shorter", requested(rtt_ms=19.996), "path"),
    (PLAIN, "1 kbit/s more", requested(bandwidth_kbps=257.0), "path"),
    (PLAIN, "1 kbit/s less", requested(bandwidth_kbps=255.0), "path"),
    (PLAIN, "a slower uplink", requested(uplink_kbps=250.0), "path"),
    (LOSSY, "a queue with one packet more", longer_queue(1), "path"),
    (LOSSY, "no loss", requested(loss_percent=0.0), "path"),
    (LOSSY, "another seed", requested(seed=99), "path"),
    ("jitter_and_bursts", "single losses", requested(loss_burst=1.0), "path"),
    ("jitter_and_bursts", "less jitter", requested(jitter_ms=0.5), "path"),
    (BBR, "another initial window", requested(initcwnd=5), "initial window"),
    # What a published set-up did.
    *((PUBLISHED, f"another switch, {switches}", requested(**switches), check)
      for switches, check in (({"head": ""}, "first flight"), ({"nagle": "off"}, "first flight"),
                              ({"htb_burst_bytes": 0}, "path"),
                              ({"integer_kbps": 0.0, "bandwidth_kbps": 512.0}, "path"),
                              ({"acts_as": "10=7"}, "initial window"))),
    # A packet, or a host.
    (PLAIN, "a packet arrives 3.5 µs late", moved("client", 9, 3500), "path"),
    (LOSSY, "a packet arrives 2 µs early", moved("client", 3, -2000), "path"),
    (PLAIN, "a packet that did not arrive", without("client", 5), "path"),
    (PLAIN, "a packet that nobody sent", without("server", 5), "path"),
    (PLAIN, "an acknowledgement that did not arrive", without_packet(2), "path"),
    (BBR, "the server, which paces, is 3 ms late with its answer", from_data(0, 3_000_000),
     "causes"),
    (PLAIN, "the server is 300 µs late", from_data(14, 300_000), "causes"),
    (LOSSY, "the server is 40 µs late after an arrival", from_data(14, 40_000), "causes"),
    (SLOW, "the server is 30 µs late after an arrival", from_data(3, 30_000), "causes"),
    (PLAIN, "the server is 4 µs late after an arrival", from_data(14, 4_000), "causes"),
    (PLAIN, "its timer is 1 µs early", from_data(28, -1_000), "causes"),
    (PLAIN, "its timer is 40 µs early", from_data(28, -40_000), "causes"),
    (PLAIN, "its timer is 5 µs late", from_data(28, 5_000), "causes"),
    (SLOW, "one of two timers is 3 µs late", from_data(5, 3_000), "causes"),
    (PLAIN, "both captures 300 µs later, with a timer", shifted(300_000), "causes"),
    (PLAIN, "a segment that was sent twice", sent_again(2, 30.0), "path"),
    # Reports of the server and the client.
    (PLAIN, "the latency that the server reports", later("server", "latency_ms", 0.2),
     "server latency"),
    (PLAIN, "the server's window at accept", said("server", initial_window=41), "initial window"),
    (PLAIN, "the digest that the server reports", said("server", sha256="0" * 64), "digest"),
    (PLAIN, "the client received a byte less", said("fetch", size=49_999), "size"),
    (PLAIN, "the client ended with an error", said("fetch", exit_status=18), "exit status"),
    (TLS, "TLS 1.2", tls(version="TLSv1.2"), "TLS"),
    (TLS, "another key exchange", tls(group="P-256"), "TLS"),
    (TLS, "a session that was resumed", tls(resumed=True), "TLS"),
    (TLS, "the server's window after the handshake", tls(window=11), "model handshake"),
    (TLS, "the server's flight is larger by a segment than the model's", later(
        "fetch", "first_byte_ms", 1.1), "model handshake"),
    (TLS, "the server's flight is a byte shorter", shorter_flight(1), "TLS flight"),
    *((name, "records of 4 kB", recorded(4096), "TLS records")
      for name in (TLS, "mldsa", "https_resumed", "nginx", RESUMED, EARLY, HTTP_2)),
    *((name, "the server's records are not known", without_records, "TLS records")
      for name in (TLS, "nginx", HTTP_2)),
    *((name, "a ticket less", without_ticket, "TLS records")
      for name in ("mldsa", "nginx", RESUMED, HTTP_2)),
    ("https_records", "records of 16 kB requested", requested(record_bytes=16_384), "TLS records"),
    (TLS, "a pause within the response", requested(gap_ms=50.0, burst_bytes=3000), "TLS records"),
    *(("nginx", f"a chain of {size} bytes requested", requested(chain_bytes=size), "TLS flight")
      for size in (9000, 10_000, 15_000)),
    ("nginx", "a resumed session requested", requested(resumed=1), "TLS flight"),
    ("nginx", "the digest of what it serves", said("server", sha256="0" * 64), "digest"),
    ("nginx", "a byte more requested", requested(response_bytes=20_001), "size"),
    ("nginx", "the server's window at accept", said("server", initial_window=9), "initial window"),
    (HTTP_2, "no window known but by the first flight", said("server", initial_window=None),
     "initial window"),
    *((name, f"HTTP {version or 'unknown'} was agreed on", said("fetch", http_version=version),
       "HTTP version") for name, version in ((HTTP_2, "1.1"), (HTTP_2, ""), ("nginx", "2"))),
    (PLAIN, "HTTP status 404", said("fetch", http_status=404), "HTTP status"),
    # Early data: whether it was sent, how much, and whether the answer waited.
    (RESUMED, "early data that was not sent", requested(early_data_bytes=3000), "early data"),
    (RESUMED, "any early data, and none was sent", requested(early_data_bytes=1), "early data"),
    (RESUMED, "early data that was refused", both(
        requested(early_data_bytes=3000), said("fetch", early_data_bytes=-3000)), "early data"),
    (RESUMED, "early data that no packet has room for", both(
        requested(early_data_bytes=1), said("fetch", early_data_bytes=100)), "early data"),
    (RESUMED, "early data that no packet shows", both(
        requested(early_data_bytes=3000), said("fetch", early_data_bytes=3000)), "capture"),
    (EARLY, "a byte of early data less", said("fetch", early_data_bytes=2999), "early data"),
    (EARLY, "more early data than all packets have", said("fetch", early_data_bytes=9000),
     "capture"),
    (EARLY, "more early data requested", requested(early_data_bytes=4000), "early data"),
    (EARLY, "an answer 100 ms later", answered_later(100), "early data"),
    # A capture that is not whole, or is another one.
    *(("iw3", f"the {side}'s capture without its last {size} bytes", cut(side, size), "capture")
      for side in ("client", "server") for size in (1, 20, 300)),
    *(("iw3", f"the {side}'s capture without its last 7 bytes, as its worker counted",
       cut(side, 7, is_reported=True), "capture") for side in ("client", "server")),
    *(("iw3", f"the {side}'s capture without its last packet", lost_at_end(side), "capture")
      for side in ("client", "server")),
    ("iw3", "the capture of another port", said("server", client_port=1), "capture"),
    ("iw3", "no last acknowledgements at the server", without_last_acknowledgements,
     "server latency"),
    (EARLY, "no hello of the client's", without_hello, "capture"),
    # What is lost, repeated, or slower than the model says.
    ("iw3", "a receive window of two segments requested", requested(initrwnd=2), "first flight"),
    ("full_queue", "a queue that holds all", requested(queue_packets=1000), "path"),
    ("random_loss", "no loss requested", requested(loss_percent=0.0), "path"),
    *((name, f"{part} {more} ms later", later(*part.split("."), more), check)
      for name, part, more, check in (
          ("iw3", "fetch.total_ms", 1.1, "model"), ("iw3", "fetch.total_ms", -1.1, "model"),
          ("iw3", "server.latency_ms", 5.0, "model latency"),
          (SLOW, "fetch.total_ms", 2.0, "model"), ("syn_timer", "fetch.total_ms", 5.0, "model"))),
]
# The same where packets are not judged one by one.
IN_REAL_TIME: list[tuple[str, str, Change, str]] = [
    ("iw3", "RTT 10 ms longer", requested(rtt_ms=110.0), "RTT"),
    ("iw3", "100 kbit/s more", requested(bandwidth_kbps=1100.0), "bandwidth"),
    ("iw3", "another initial window", requested(initcwnd=4), "initial window"),
    ("iw3", "a packet that did not arrive", without("client", 4), "lost packets"),
    ("full_queue", "a queue that holds all", requested(queue_packets=1000), "lost packets"),
    ("full_queue", "drops at random where there are none", drops(0, 9), "lost packets"),
    *((name, "a loss that no queue counted", without("client", 0), "lost packets")
      for name in (LOSSY, CUBIC)),
    (LOSSY, "a drop less", drops(9, 4), "lost packets"),
    (LOSSY, "a drop towards the server", drops(9, 5, 1), "lost packets"),
    ("iw3", "a segment that was sent twice", sent_again(1, 30.0), "retransmissions"),
    ("iw3", "total 50 ms later", later("fetch", "total_ms", 50.0), "client times"),
]
# What changes no number of a record, or what a host may really do. docs/METHOD.md names both.
PASSES: list[tuple[str, str, Change]] = [
    (TLS, "both captures 300 µs later, without a timer", shifted(300_000)),
    (TLS, "both captures a second earlier", shifted(-1_000_000_000)),
]
# In real time a host and a network may be as far off as this.
PASSES_IN_REAL_TIME = [requested(rtt_ms=103.0), requested(bandwidth_kbps=1030.0),
                       later("fetch", "total_ms", 4)]


def failed_checks(trial: Stored, exact: bool = True, known_kernel: bool = True) -> list[str]:
    """The names of the checks that refuse a trial."""
    return checks.failed_checks(trial.judge(exact, known_kernel))


@pytest.mark.parametrize(("trial", "exact", "check"), [
    (from_data(14, 300_000)(stored.load(PLAIN)), True, "causes"),
    (sent_again(1, 30.0)(stored.load("iw3")), False, "retransmissions")])
def test_a_patched_kernel_may_send_by_timers_of_its_own(trial: Stored, exact: bool,
                                                        check: str) -> None:
    """As SUSS does, which paces slow start: its trials would all fail."""
    assert check in failed_checks(trial, exact)
    assert check not in failed_checks(trial, exact, known_kernel=False)


@pytest.mark.parametrize(("exact", "name", "what", "change", "check"), [
    *((True, *row) for row in TAMPERINGS), *((False, *row) for row in IN_REAL_TIME)],
    ids=[f"{name}: {what}" for name, what, *_ in (*TAMPERINGS, *IN_REAL_TIME)])
def test_a_tampered_fetch_is_refused_by_its_check(exact: bool, name: str, what: str, change: Change,
                                                  check: str) -> None:
    trial = stored.load(name)
    assert trial.judge(exact).counts
    record = change(trial).judge(exact)
    assert not record.counts
    assert check in checks.failed_checks(record), record.verdict_reason


def test_every_check_refuses_something() -> None:
    """test_parameters.py has the last one: of a fetch that has to fail, and does not."""
    refused = {check for *_, check in (*TAMPERINGS, *IN_REAL_TIME)}
    assert {check.name for check in CHECKS} == refused | {"no connection"}


@pytest.mark.parametrize(("name", "what", "change"), PASSES, ids=[what for _, what, _ in PASSES])
def test_a_tampering_that_changes_no_number_passes(name: str, what: str, change: Change) -> None:
    record, tampered = stored.load(name).judge(), change(stored.load(name)).judge()
    assert tampered.counts and replace(tampered, trial=record.trial) == record, what


@pytest.mark.parametrize("change", PASSES_IN_REAL_TIME, ids=("RTT", "rate", "total"))
def test_real_time_is_judged_less_narrowly(change: Change) -> None:
    assert change(stored.load("iw3")).judge(exact=False).counts


@pytest.mark.parametrize(("first_only", "passes"), [(True, True), (False, False)])
def test_a_repeated_syn_that_asks_for_ecn_is_refused(first_only: bool, passes: bool) -> None:
    """Linux asks in the first SYN only (tcp_ecn_clear_syn).

    first_only: whether the first SYN asks, or all that repeat it.
    """
    trial = stored.load("syn_timer")
    captures = [stored.read(capture) for capture in (trial.client, trial.server)]
    for packets in captures:
        syns = [packet for packet in packets if packet.frame[FLAGS] & (SYN | ACK) == SYN]
        for packet in syns[:1] if first_only else syns[1:]:
            packets[packets.index(packet)] = replace(packet, frame=flags(0xC0)(packet.frame))
    asked = trial.captured(*captures)
    record = judge_fetch(asked.trial, asked.observation, asked.client, asked.server, exact=True,
                         sysctls={"net.ipv4.tcp_ecn": "1"})
    assert ("TCP options" not in record.failed_checks) == passes
    assert "TCP options" in failed_checks(asked)
