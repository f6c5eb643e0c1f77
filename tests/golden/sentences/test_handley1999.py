"""Sentences on Congestion Window Validation, figure by figure of the report of 1999."""

from __future__ import annotations

from tests.golden.sentences.relations import (above, at_most, below, equal, falls,
                                              highest_at, rises)
from tests.golden.sentences.tables import Run, states

STUDIES = "docs/STUDIES.md"
CWV, LINUX = "the report's CWV", "Linux"
RESTART = "restart after idle (ns's TCP)"
UNMODIFIED = "unmodified TCP"
AFTER_PAUSES = "After idle times"  # how the title of a table begins, a row for each pause


@states("handley1999_idle")
def test_the_sentences_of_handley1999_idle_hold(run: Run) -> None:
    pauses = run.table("fig1", AFTER_PAUSES)

    run.says("After a pause a validated window has decayed, so no old full window leaves at once")
    assert at_most(pauses.where("TCP", RESTART, CWV, LINUX)["sent at once"], 6)
    not_validated = pauses.where("TCP", "Linux, validation off", "unmodified (grows unused)")
    assert equal(not_validated["sent at once"], 25)

    run.says("after an application-limited period Linux's has not")
    assert run.claim("fig1_burst", "RFC 2861, which Linux names").outcome == "not reproduced"

    run.says("With validation off it stays")
    assert equal(pauses.where("TCP", "Linux, validation off")["window"], 50)


@states("handley1999_clock")
def test_the_sentences_of_handley1999_clock_hold(run: Run) -> None:
    pauses = run.table("fig2", AFTER_PAUSES)
    fine, coarse = f"{CWV}, least RTO 5 ms", f"{CWV}, least RTO 500 ms"
    of_cwv = pauses.where("TCP", fine, f"{CWV}, least RTO 200 ms", coarse)
    of_linux = pauses.where("TCP", "Linux, least RTO 5 ms", "Linux, least RTO 500 ms")

    run.says("After a pause a large least RTO, as a coarse clock in 1999, leaves more of an unused"
             " window")
    for of_a_pause in of_cwv.each("at, s"):
        assert highest_at(of_a_pause["sent at once"], coarse)
    for of_a_pause in of_linux.each("at, s"):
        assert rises(of_a_pause["sent at once"])

    run.says("because its window then decays sooner")
    for of_a_pause in of_cwv.where("TCP", fine, coarse).each("at, s"):
        assert rises(of_a_pause["sent at once"])
    assert falls(run.table("fig2").where("TCP", fine, coarse)["finished, s"])


@states("handley1999_memory")
def test_the_sentences_of_handley1999_memory_hold(run: Run) -> None:
    transfers = run.table("fig3")

    run.says("With CWV ssthresh remembers the window from before a pause")
    assert run.claim("fig3", "ssthresh was increased").outcome == "direction"

    run.says("the window grows back faster than that of a TCP which only restarts, even after an"
             " early loss")
    assert run.claim("fig3", "the TCP [with CWV] quickly recovers").outcome == "direction"
    assert highest_at(transfers["finished, s"], RESTART)
    assert equal(transfers["lost"], 1)


@states("handley1999_growth")
def test_the_sentences_of_handley1999_growth_hold(run: Run) -> None:
    from_40_packets, from_90_packets = run.table("fig4"), run.table("fig4_ns")

    run.says("A window that grows while the application does not use it loses more in the next"
             " burst")
    assert highest_at(from_40_packets["lost"], UNMODIFIED)
    assert highest_at(from_40_packets["largest window"], UNMODIFIED)
    assert highest_at(from_90_packets["lost"], UNMODIFIED)

    run.says("which the queue cannot hold")
    assert above(from_40_packets["lost"], 0)
    assert above(from_90_packets["lost"], 0)

    run.says("ssthresh is then small, and the window grows less")
    assert below(from_90_packets["largest window"], from_40_packets["largest window"])


@states("handley1999_modem5")
def test_the_sentences_of_handley1999_modem5_hold(run: Run) -> None:
    of_1999, today = run.table("fig5"), run.table("fig5_today")

    run.says("Typing opens the window of the unmodified TCP so far that a listing loses many"
             " packets in a short modem queue")
    assert above(of_1999.where("TCP", "unmodified TCP, 1999")["lost"], 30)
    assert above(today.where("TCP", UNMODIFIED)["lost"], 30)

    run.says("with validation it loses fewer")
    assert highest_at(of_1999["lost"], "unmodified TCP, 1999")
    assert highest_at(today["lost"], UNMODIFIED)
    assert highest_at(today["largest window"], UNMODIFIED)

    run.says("from a window of one it has no timeout")
    from_one = today.without("TCP", UNMODIFIED, "Linux, today's initial window")
    assert equal(of_1999.where("TCP", "the report's CWV, 1999")["timeouts"], 0)
    assert equal(from_one["timeouts"], 0)

    run.says("The first 10 s of both are typing, so that the listing itself takes about half as"
             " long with CWV.")
    without, validated = of_1999["finished, s"].numbers
    assert 0.45 < (validated.value - 10) / (without.value - 10) < 0.55


@states("handley1999_modem_deep")
def test_the_sentences_of_handley1999_modem_deep_hold(run: Run) -> None:
    transfers = run.table("fig6")

    run.says("In a deep modem queue the burst of an unvalidated window loses no packet and gains"
             " nothing")
    assert equal(transfers["lost"], 0)
    assert equal(transfers["finished, s"], 28.631, within=0.001)

    run.says("it only brings the long RTT earlier")
    assert equal(transfers["longest RTT, ms"], 4895, within=1)
    assert run.claim("fig6", "[with CWV] linear increase occurs").outcome == "direction"


@states("handley1999_nagle")
def test_the_sentences_of_handley1999_nagle_hold(run: Run) -> None:
    transfers = run.table("nagle")
    exact = ("exact check, bulk transfer with Nagle",
             "exact check, 2000 bytes every 5 ms with Nagle")

    run.says("A window may stop growing for good if only an exactly full window counts as full")
    assert equal(transfers.where("TCP", *exact)["largest window"], 2)

    run.says("if it counts as full with less than a segment free, it grows")
    assert above(transfers.without("TCP", *exact)["largest window"], 30)


def test_linux_in_application_limited_periods_is_the_same_with_validation() -> None:
    """This holds in each scenario that has Linux with and without it, and such a period."""
    for name, figure in (("handley1999_growth", "fig4"), ("handley1999_growth", "fig4_ns"),
                         ("handley1999_modem5", "fig5_today"), ("handley1999_modem_deep", "fig6")):
        run = Run(name)
        run.says("mean with what is used, if no acknowledgement comes for an RTO: hardly ever",
                 STUDIES)
        transfers = run.table(figure)
        for column in ("lost", "largest window", "finished, s"):
            validated, not_validated = (transfers.where("TCP", tcp)[column].numbers
                                        for tcp in (LINUX, f"{LINUX}, validation off"))
            assert validated == not_validated

    run = Run("handley1999_growth")
    run.says("No growth alone is what Linux with validation off has", STUDIES)
    assert below(run.table("fig4").where("TCP", f"{LINUX}, validation off")["lost"],
                 run.table("fig4").where("TCP", UNMODIFIED)["lost"].numbers[0].value)


@states("handley1999_warm")
def test_the_sentences_of_handley1999_warm_hold(run: Run) -> None:
    validated, not_validated = run.table("think", "deep, linux"), run.table("think", "deep, off")
    short = run.table("think", "short, linux")
    short_not_validated = run.table("think", "short, off")
    larger_windows = ("IW 10", "IW 16", "IW 32")

    run.says("On a kept connection with a deep queue a larger initial window helps only after a"
             " pause, when Linux has reduced the old window to it")
    no_pause = validated.where("think time, s", 0.1, 0.3)
    for window in larger_windows:
        assert equal(no_pause[window], no_pause["IW 3"], within=0.1)
        assert equal(not_validated[window], not_validated["IW 3"], within=0.1)
    after_1_s = validated.without("think time, s", 0.1, 0.3)
    after_3_s = after_1_s.without("think time, s", 1)
    assert below(after_1_s["IW 32"], after_1_s["IW 3"])
    assert below(after_3_s["IW 16"], after_3_s["IW 3"])
    assert below(after_3_s["IW 10"], after_3_s["IW 3"])

    run.says("with a short queue it also matters without a pause, or without validation")
    for table in (short, short_not_validated):
        for window in larger_windows:
            assert below(table[window], table["IW 3"])

    run.says("After 300 s Linux has forgotten its least RTT (tcp_min_rtt_wlen): its loss recovery"
             " then waits longer with IW 3 and validation off, and as long as before with the"
             " others.")
    assert highest_at(short_not_validated["IW 3"], "300")
    before, after = (short_not_validated.where("think time, s", time) for time in (60, 300))
    for window in larger_windows:
        assert equal(after[window], before[window].numbers[0].value)
    before, after = (short.where("think time, s", time) for time in (60, 300))
    for window in ("IW 3", *larger_windows):
        assert equal(after[window], before[window].numbers[0].value)
