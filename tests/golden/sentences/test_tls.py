"""Sentences on TLS handshakes: certificate chains, their bytes, and records."""

from __future__ import annotations

from itertools import pairwise

from tests.golden.sentences.relations import (above, at_least, at_most, below, between, equal,
                                              falls, highest_at, lowest_at, never_falls,
                                              rises_and_falls)
from tests.golden.sentences.tables import Column, Run, states


@states("chou2026_cliffs")
def test_the_sentences_of_chou2026_cliffs_hold(run: Run) -> None:
    first_byte, round_trips = run.table("steps"), run.table("rounds")

    run.says("From ten segments on, a larger certificate chain never has the earlier first byte")
    for window in (10, 20, 32, 64):
        assert never_falls(first_byte[f"first byte: IW {window}, ms"])
    for column in round_trips.columns("round trips: "):
        assert never_falls(column)

    run.says("each further flight of its handshake costs a round trip")
    for window in (10, 20, 32, 64):
        times = first_byte[f"first byte: IW {window}, ms"]
        flights = round_trips[f"round trips: IW {window}"]
        for time, flight in zip(times.numbers, flights.numbers):
            assert abs(time.value - 100 * flight.value - 203.5) <= 3.5

    run.says("with three a larger chain can be faster")
    assert rises_and_falls(first_byte["first byte: IW 3, ms"], within=50)


def smallest_with_a_round_trip_more(first_byte: Column) -> int:
    """The smallest chain, in bytes, whose first byte comes after a fourth round trip of 100 ms."""
    return min(int(chain) for chain, number in zip(first_byte.rows, first_byte.numbers)
               if number.value > 400)


@states("chou2026_mldsa")
def test_the_sentences_of_chou2026_mldsa_hold(run: Run) -> None:
    with_mlkem = run.table("signatures")
    classical = smallest_with_a_round_trip_more(run.table("today")["first byte: IW 10, ms"])
    ed25519, mldsa44, mldsa65 = (
        smallest_with_a_round_trip_more(with_mlkem[f"first byte: signature {signature}, ms"])
        for signature in ("ed25519", "mldsa44", "mldsa65"))

    run.says("At ten segments the round trip more comes at a smaller chain with ML-KEM")
    assert ed25519 < classical

    run.says("at a smaller one with ML-DSA-44")
    assert mldsa44 < ed25519

    run.says("at the smallest with ML-DSA-65")
    assert mldsa65 < mldsa44


@states("kampanakis2024_ttlb")
def test_the_sentences_of_kampanakis2024_ttlb_hold(run: Run) -> None:
    classical = "total: chain 2308 (classical), ms"
    post_quantum = {"": "total: chain 14305 (ML-DSA-65), ms",
                    "_real": "total: chain 11060 (ML-DSA-65 itself), ms"}

    for ending, name in post_quantum.items():
        fast, slow = run.table(f"fast{ending}"), run.table(f"slow{ending}")
        small_fast, small_slow = (table.where("size, bytes", 1, 10240) for table in (fast, slow))
        large_slow = slow.without("size, bytes", 1, 10240)
        large_fast = fast.where("size, bytes", 51200, 102400, 153600)

        run.says("Post-quantum certificates add a round trip to small responses")
        assert equal(small_fast[name] - small_fast[classical], 35, within=0.2)
        assert above(small_slow[name] - small_slow[classical], 190)

        run.says("to larger ones they add only the time of their bytes")
        assert equal(large_fast[name], large_fast[classical], within=0.2)
        assert at_most(large_slow[name] - large_slow[classical], 96)

    run.says("on a fast link they can add a round trip again")
    fast = run.table("fast")
    added = fast[post_quantum[""]] - fast[classical]
    of_200_kb = fast.where("size, bytes", 204800)
    assert equal(of_200_kb[post_quantum[""]] - of_200_kb[classical], 35, within=1)
    assert rises_and_falls(added, within=30)


@states("pq_chains")
def test_the_sentences_of_pq_chains_hold(run: Run) -> None:
    round_trips = run.table("real_rounds")

    run.says("Whether a post-quantum handshake fits the first flight depends on more than the size"
             " of its chain")
    assert rises_and_falls(round_trips["round trips: IW 3"])
    assert rises_and_falls(round_trips["round trips: IW 10"])

    run.says("ten segments hold ML-DSA-44 with an intermediate, and not the smaller chain of"
             " ML-DSA-87 alone")
    with_intermediate = round_trips.where("chain, bytes", "ML-DSA-44 with 1, real, 8002")
    alone = round_trips.where("chain, bytes", "ML-DSA-87 alone, real, 7480")
    assert equal(with_intermediate["round trips: IW 10"], 1)
    assert equal(alone["round trips: IW 10"], 2)


@states("tls_records")
def test_the_sentences_of_tls_records_hold(run: Run) -> None:
    small, large = "first byte: record 4096 bytes, ms", "first byte: record 16384 bytes, ms"
    fits = {"first_byte": (4000, 10000), "nginx_first_byte": (4000, 10000),
            "nginx_http2_first_byte": (4000,)}

    run.says("Records of 4 kB bring the first byte about a round trip earlier where a record of"
             " 16 kB does not fit the window")
    for figure, sizes in fits.items():
        one_flight = run.table(figure).where("size, bytes", *sizes)
        more_flights = run.table(figure).without("size, bytes", *sizes)
        assert above(one_flight[small] - one_flight[large], -11)
        assert below(more_flights[small] - more_flights[large], -95)

    run.says("never shorten the whole response")
    for figure in ("total", "nginx_total", "nginx_http2_total"):
        table = run.table(figure)
        assert at_least(table["total: record 4096 bytes, ms"],
                        table["total: record 16384 bytes, ms"], within=0.05)


@states("warm_handshake")
def test_the_sentences_of_warm_handshake_hold(run: Run) -> None:
    times = run.table("total")

    run.says("A large certificate chain warms the window")
    for window in run.table("window").columns("window: "):
        assert never_falls(window)
        assert highest_at(window, "45000")

    run.says("with up to 20 segments the whole transfer can take less time than with a small chain")
    up_to_20_kb = times.where("chain, bytes", 2000, 12000, 20000)
    for window in (3, 10, 20):
        assert rises_and_falls(up_to_20_kb[f"total: IW {window}, ms"], within=0.5)
    assert falls(times.where("chain, bytes", 2000, 12000)["total: IW 3, ms"])
    assert falls(times.where("chain, bytes", 2000, 20000)["total: IW 10, ms"])
    assert falls(times.where("chain, bytes", 2000, 20000)["total: IW 20, ms"])
    assert lowest_at(times["total: IW 32, ms"], "2000")


@states("westerbaan2021_bytes")
def test_the_sentences_of_westerbaan2021_bytes_hold(run: Run) -> None:
    handshakes = run.table("handshake")
    slow, fast = "handshake: BW 1000 kbit/s, ms", "handshake: BW 50000 kbit/s, ms"
    fits = handshakes.where("chain, bytes", 2000, 4000, 6000, 8000, 9000, 10000, 12000, 12588)
    longer = handshakes.without("chain, bytes", 2000, 4000, 6000, 8000, 9000, 10000, 12000, 12588)

    run.says("A TLS handshake with more bytes never ends earlier")
    for column in handshakes.columns("handshake: "):
        assert never_falls(column)

    run.says("where the window cannot hold them it takes a round trip more on a fast link")
    assert between(fits[fast], 100, 103)
    assert between(longer[fast], 150, 155)

    run.says("not on one of 1 Mbit/s")
    chains, times = handshakes["chain, bytes"].numbers, handshakes[slow].numbers
    for (chain, time), (more, later) in pairwise(zip(chains, times)):
        assert later.value - time.value <= 8.6e-3 * (more.value - chain.value) + 0.6
