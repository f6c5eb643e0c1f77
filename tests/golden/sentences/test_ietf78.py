"""Sentences on the slides of IETF 78: a shared link, a data centre, the server's buffer."""

from __future__ import annotations

from math import ceil

from firstflight.runs import scenario_file
from tests.golden.sentences.relations import (above, at_least, at_most, below, equal, falls,
                                              highest_at, never_rises, no_different, rises)
from tests.golden.sentences.tables import Rows, Run, states

README, STUDIES, QUESTIONS = "README.md", "docs/STUDIES.md", "docs/QUESTIONS.md"
SAVED = "saved, %"


@states("ietf78_africa")
def test_the_sentences_of_ietf78_africa_hold(run: Run) -> None:
    for figure in ("all", "low_qps"):
        run.says("Far away, on slow and lossy links, IW 10 shortens Web search on average")
        saved = run.table(figure, "Here").where("", "Impr., ms", "% Impr.")
        assert above(saved["Avg."], 0)

        run.says("retransmits more")
        assert rises(run.table(figure, "The runs")["retransmitted, %"])


@states("ietf78_background")
def test_the_sentences_of_ietf78_background_hold(run: Run) -> None:
    run.says("Where four fifths of the traffic on a loaded link keep IW 3, IW 10 saves our own"
             " users more than it would if everybody had it, of 15 kB and of 50 kB")
    assert falls(run.numbers("kb15", "How much IW 10 saves"))
    assert falls(run.numbers("kb50", "How much IW 10 saves"))

    run.says("The first line is of 15 kB and 10 segments: the mean may be chance, the longer median"
             " is not.", QUESTIONS)
    of_others = run.table("kb15", "mix of IW 3").where("", "IW 3 in the mix saves, %")
    assert no_different(of_others["mean"], 0)
    assert below(of_others["p50"], 0)

    run.says("The second is of 50 kB and 16 segments, and no chance.", QUESTIONS)
    of_others = run.table("kb50_iw16", "mix of IW 3").where("", "IW 3 in the mix saves, %")
    assert below(of_others["mean"], 0)

    run.says("Of 50 kB and 10 segments mean and median may be chance, the longer 90th percentile is"
             " not.", QUESTIONS)
    of_others = run.table("kb50", "mix of IW 3").where("", "IW 3 in the mix saves, %")
    assert no_different(of_others["mean"], 0)
    assert no_different(of_others["p50"], 0)
    assert below(of_others["p90"], 0)

    run.says("The others wait a little longer.", QUESTIONS)
    for figure in ("kb15", "kb50", "kb50_iw16"):
        of_others = run.table(figure, "mix of IW 3").where("", "IW 3 in the mix saves, %")
        for percentile in ("mean", "p50", "p90", "p99"):
            assert below(of_others[percentile].without_intervals, 0)


@states("ietf78_beyond")
def test_the_sentences_of_ietf78_beyond_hold(run: Run) -> None:
    windows = run.table("windows")

    def of_slowest(senders: list[str], *larger: str) -> Rows:
        return windows.where("sender and queue", *senders).where("", *larger)

    run.says("With every sender and queue an initial window of 10 to 64 is faster on average"
             " than 3")
    assert above(windows.without("", "IW 3")[SAVED], 0)

    run.says("IW 10 saves most with BBR")
    assert highest_at(windows.where("", "IW 10").named("sender and queue")[SAVED], "bbr")

    run.says("through CAKE the slowest in a hundred gain with windows up to 64")
    through_cake = of_slowest(["cubic through cake"], "IW 10", "IW 16", "IW 32", "IW 64")
    assert above(through_cake["saved of p99, %"], 0)

    run.says("through a drop-tail queue with windows up to 16")
    senders = ["cubic", "reno", "bbr", "cubic paced by fq"]
    assert above(of_slowest(senders, "IW 10", "IW 16")["saved of p99, %"], 0)

    run.says("with 64 segments they lose under CUBIC and Reno that do not pace")
    assert below(of_slowest(["cubic", "reno"], "IW 64")["saved of p99, %"], 0)
    pacing = of_slowest(["cubic paced by fq", "bbr"], "IW 64")
    assert no_different(pacing["saved of p99, %"], 0)


@states("ietf78_buffer")
def test_the_sentences_of_ietf78_buffer_hold(run: Run) -> None:
    at_75 = run.table("buffer").where("offered load", 0.75)
    shortest = at_75.where("buffer", "0.1 BDP")

    run.says("At 75 % load a buffer of 40 % of the bandwidth-delay product costs IW 10 nothing")
    assert equal(at_75.where("buffer", "0.4 BDP", "1 BDP", "2 BDP")[SAVED], 19, within=0.5)

    run.says("a buffer of 10 % costs part of the gain, and retransmissions")
    assert rises(at_75.where("buffer", "0.1 BDP", "1 BDP")[SAVED])
    assert above(shortest["retransmits, %"], shortest["IW 3 retransmits, %"])


@states("ietf78_completion")
def test_the_sentences_of_ietf78_completion_hold(run: Run) -> None:
    for title in ("Completion time", "The same without the handshake"):
        saved = run.table("completion", title).where("", "IW 10 saves, %", "IW 16 saves, %")

        run.says("On a shared link at 95 % load IW 10 shortens 50 kB responses on average, and"
                 " IW 16 shortens them more")
        assert above(saved["mean"], 0)
        assert rises(saved["mean"])

        run.says("with both the slowest in a thousand take longer")
        assert below(saved["p99.9"], 0)


@states("ietf78_connections")
def test_the_sentences_of_ietf78_connections_hold(run: Run) -> None:
    home = run.table("home")
    several = home.where("connections at once", 4, 6, 12)

    run.says("With several connections at once a larger initial window gains less than with one")
    for figure in ("shared", "home", "deep"):
        for window, name in ((10, "IW 10 × {} = {} at once"), (16, "IW 16 × {}: {} at once")):
            segments = min(window, 14)  # of 14 a response consists
            at_once = [name.format(connections, segments * connections)
                       for connections in (1, 4, 6, 12)]
            assert highest_at(run.table(figure).where("", *at_once)[SAVED], at_once[0])

    run.says("retransmits more than IW 3")
    assert above(home["retransmits, %"], home["IW 3 retransmits, %"])
    deep = run.table("deep").where("connections at once", 4, 6, 12)
    assert above(deep["retransmits, %"], deep["IW 3 retransmits, %"])
    shared = run.table("shared").where("connections at once", 4, 6, 12)
    assert above(shared["retransmits, %"].without_intervals,
                 shared["IW 3 retransmits, %"].without_intervals)

    run.says("where the buffer is short, several connections lose")
    assert below(several[SAVED], 0)

    run.says("Users whose queue overflows, as on slow links.", README)
    on_all_links = Run("map_of_windows").table("cells", "What the larger window").named("reason")
    for reason, speed, saved in zip(on_all_links["improved, %"].rows,
                                    on_all_links["requested: BW, kbit/s"].numbers,
                                    on_all_links["improved, %"].without_intervals.numbers):
        if saved.value < -1:
            assert speed.value == 250 and reason in ("queue", "")

    run.says("With a queue of 100 packets the mean is never longer there, but the slowest in a"
             " hundred may take twice as long.", README)
    deep = run.table("deep")
    assert above(deep[SAVED].without_intervals, 0)
    assert min(number.high for number in deep["saved of p99, %"].numbers) < -95


def check_data_centre(run: Run) -> None:
    """Test the sentences that are stated of both data centres, with users far away and near."""
    ten, sixteen = run.table("iw10"), run.table("iw16")
    up_to_ten_segments = sixteen.where("size, bytes", 3000, 6000, 10000)
    longer = sixteen.without("size, bytes", 3000, 6000, 10000)
    assert above(longer["improved: ms"], 0)

    run.says("most for those of eleven to sixteen")
    assert highest_at(sixteen["improved: ms"], "15000", "20000")
    assert highest_at(sixteen["improved: %"], "15000", "20000")

    run.says("nothing up to 10 kB")
    assert equal(up_to_ten_segments["improved: ms"], 0, within=0.001)

    run.says("nothing for 3 kB")
    assert equal(ten.where("size, bytes", 3000)["improved: ms"], 0, within=0.001)

    run.says("As a share IW 10 saves most of 6 and 10 kB.")
    assert highest_at(ten["improved: %"], "6000", "10000")


@states("ietf78_dc1")
def test_the_sentences_of_ietf78_dc1_hold(run: Run) -> None:
    run.says("In a data centre whose users are far away IW 16 saves more than IW 10 for responses"
             " of more than ten segments")
    check_data_centre(run)


@states("ietf78_dc2")
def test_the_sentences_of_ietf78_dc2_hold(run: Run) -> None:
    run.says("In a data centre whose users are near IW 16 saves little more than IW 10 for"
             " responses of more than ten segments")
    check_data_centre(run)
    assert at_most(run.table("iw16")["improved: ms"], 21)


@states("ietf78_fairness")
def test_the_sentences_of_ietf78_fairness_hold(run: Run) -> None:
    run.says("Where half of the users have IW 10, those who keep IW 3 wait longer for small"
             " responses")
    of_others = run.table("kb15", "mix of IW 3").where("", "IW 3 in the mix saves, %")
    for percentile in ("mean", "p10", "p25", "p50", "p75", "p90", "p95", "p99", "p99.9"):
        assert below(of_others[percentile], 0)

    run.says("a comparison of the halves overstates what IW 10 saves")
    assert falls(run.numbers("kb15", "How much IW 10 saves"))
    assert falls(run.numbers("kb50", "How much IW 10 saves"))


@states("ietf78_live")
def test_the_sentences_of_ietf78_live_hold(run: Run) -> None:
    run.says("On one server and link a comparison by client address shows a larger gain than IW 10"
             " brings when everybody has it")
    assert falls(run.numbers("live", "How much IW 10 saves"))
    assert falls(run.numbers("live", "How much IW 16 saves"))


def test_a_comparison_within_a_mix_overstates_the_gain() -> None:
    """STUDIES says it of all scenarios that have a mix."""
    mixes = [(Run("ietf78_live"), "live", 10), (Run("ietf78_live"), "live", 16),
             (Run("ietf78_fairness"), "kb15", 10), (Run("ietf78_fairness"), "kb50", 10),
             (Run("ietf78_background"), "kb15", 10), (Run("ietf78_background"), "kb50", 10),
             (Run("ietf78_background"), "kb50_iw16", 16)]
    for run, figure, window in mixes:
        run.says("A comparison within a mix overstates the gain", STUDIES)
        assert falls(run.numbers(figure, f"How much IW {window} saves"))

        run.says("in each mix who keeps the smaller window is slower than where everybody has it,"
                 " and who has the larger one is faster. In some of them that may be"
                 " chance.", STUDIES)
        saved = "saved by the mix, %"
        groups = run.table(figure, "Fairness").where(
            "", "IW 3 in the mix", f"IW {window} in the mix")[saved]
        smaller, larger = groups.numbers
        assert smaller.value < 0 < larger.value


@states("ietf78_load")
def test_the_sentences_of_ietf78_load_hold(run: Run) -> None:
    loads = run.table("load")
    of_slowest = loads.where("offered load", 0.99)

    run.says("On average IW 10 is faster at every response size")
    assert above(loads["saved, ms"], 0)
    assert above(loads[SAVED], 0)

    run.says("saves a smaller share on a fuller link")
    for of_a_size in loads.each("response"):
        assert falls(of_a_size[SAVED].without_intervals)

    run.says("at 99 % load it retransmits more")
    assert run.claim("load", "But retransmission rates can be quite").outcome == "direction"

    run.says("the slowest in a hundred take longer, of 50 kB perhaps not")
    assert below(of_slowest.where("response", "15 kB", "100 kB", "200 kB")["saved of p99, %"], 0)
    assert no_different(of_slowest.where("response", "50 kB")["saved of p99, %"], 0)


@states("ietf78_losses")
def test_the_sentences_of_ietf78_losses_hold(run: Run) -> None:
    losses = run.table("losses")

    run.says("Transfers that lost packets are shorter with IW 10 than with IW 3")
    assert above(losses["own: saved, %"], 0)

    run.says("more transfers lose packets")
    assert above(losses["hit: IW 10, %"], losses["hit: IW 3, %"])

    run.says("the same ones are shorter at 95 % load only")
    assert above(losses.where("offered load", 0.95)["same: saved, %"], 0)
    assert below(losses.without("offered load", 0.95)["same: saved, %"], 0)


@states("ietf78_sndbuf")
def test_the_sentences_of_ietf78_sndbuf_hold(run: Run) -> None:
    cells = run.table("cells", "Every cell")
    buffer, window = "requested: SO_SNDBUF, bytes", "requested: IW, segments"
    not_set, ample, three_segments = 0, 92672, 4344
    with_16, with_32 = cells.where(window, 16), cells.where(window, 32)

    run.says("Today's Linux enlarges a send buffer that nobody set, so a server without SO_SNDBUF"
             " needs no recipe")
    enlarged = cells.where(buffer, not_set, ample)
    assert equal(enlarged["observed: first flight"], enlarged[window])
    for of_a_window in enlarged.each(window):
        unset, set_ample = of_a_window["total, ms"].numbers
        assert abs(unset.value - set_ample.value) < 0.01

    added = {}  # ms, by a buffer of IW × MSS
    for iw in (10, 16, 32):
        with_buffer, without = (cells.where(window, iw).where(buffer, size)["total, ms"].numbers[0]
                                for size in (iw * 1448, not_set))
        added[iw] = with_buffer.value - without.value
    run.says("with one of IW × MSS, as the deck's recipe has it, IW 32 takes as long as without")
    assert abs(added[32]) < 0.01

    run.says("IW 10 a little longer")
    assert 0.1 < added[10] < 5

    run.says("IW 16 a round trip longer")
    assert 90 < added[16] < 105
    assert above(with_16.where(buffer, 4344, 7240, 14480, 23168)["total, ms"], 400)
    assert equal(with_16.where(buffer, 0, 46336, 92672)["total, ms"], 306.5, within=0.1)

    run.says("With a small buffer no window is faster than without.")
    for of_a_window in cells.each(window):
        (unset,) = of_a_window.where(buffer, not_set)["total, ms"].numbers
        assert at_least(of_a_window["total, ms"], unset.value)

    run.says("Every window then takes longer")
    for of_a_window in cells.where(buffer, not_set, three_segments).each(window):
        assert rises(of_a_window["total, ms"])

    run.says("Of 32 segments only the first 24 leave at once with a buffer of up to ten segments.")
    assert equal(with_32.where(buffer, 4344, 7240, 14480)["observed: first flight"], 24)
    assert equal(with_32.without(buffer, 4344, 7240, 14480)["observed: first flight"], 32)

    run.says("Without SO_SNDBUF a window of 32 segments leaves at once, with tcp_wmem unchanged.")
    assert equal(with_32.where(buffer, not_set)["observed: first flight"], 32)


@states("ietf78_south_america")
def test_the_sentences_of_ietf78_south_america_hold(run: Run) -> None:
    over_one, over_several = ("web", "igoogle", "news"), ("photos", "maps")
    saved = {service: run.table(service, "Completion time").where("", "IW 10 saves, %")["mean"]
             for service in over_one + over_several}

    run.says("Services that open several connections at once gain least from IW 10")
    assert all(above(saved[service], 15) for service in over_one)
    assert all(below(saved[service], 15) for service in over_several)

    run.says("Retransmissions hardly grow with one connection.")
    for service in over_one:
        assert never_rises(run.table(service, "The runs")["retransmitted, %"], within=0.8)

    run.says("their retransmissions rise most")
    grown = {}
    for service in over_one + over_several:
        with_3, with_10 = run.table(service, "The runs")["retransmitted, %"].numbers
        grown[service] = with_10 - with_3
    for service in over_one:
        assert all(grown[service] < grown[several] for several in over_several)

    run.says("With several they grow by far more than in the deck.")
    for service, in_the_deck in (("photos", 2.93), ("maps", 1.28)):  # points
        with_3, with_10 = run.table(service, "The runs")["retransmitted, %"].numbers
        assert with_10.low - with_3.high > 3 * in_the_deck

    run.says("With IW 10 a page of Photos sends 60 segments at once and one of Maps 28. The queue"
             " holds 40, and pages share it.")
    raw = scenario_file.find(run.name).raw
    at_once = {}  # segments, with IW 10
    for sweep in raw["sweep"][-2:]:
        (connections,), (size,) = sweep["connections"], sweep["response_bytes"]
        at_once[sweep["name"]] = connections * min(10, ceil(size / 1448))
    assert at_once == {"photos": 60, "maps": 28}
    assert raw["defaults"]["access_queue_packets"] == 40
