"""Sentences on today's kernels, slow start, pages, and windows on many networks."""

from __future__ import annotations

from tests.golden.sentences.relations import (above, at_most, below, between, equal, no_different,
                                              rises)
from tests.golden.sentences.tables import Column, Run, states

LOST = "observed: dropped by queue"


@states("beta_after_slow_start")
def test_the_sentences_of_beta_after_slow_start_hold(run: Run) -> None:
    cells = run.table("cells", "Every cell").named("requested: module parameter")

    run.says("With a queue of half a BDP a larger cut of CUBIC's window takes longer")
    half_a_bdp = cells.where("requested: queue, packets", 85)["total, ms"].numbers
    of_hystart, without_hystart = half_a_bdp[:3], half_a_bdp[3:]
    assert of_hystart[0] < of_hystart[1] < of_hystart[2]
    assert without_hystart[0] < without_hystart[1] < without_hystart[2]

    run.says("with two BDP no cut changes the time")
    two_bdp = cells.where("requested: queue, packets", 345)
    assert equal(two_bdp["total, ms"], 1960.4, within=0.1)


@states("kernels2026")
def test_the_sentences_of_kernels2026_hold(run: Run) -> None:
    changed = run.table("cells", "What the kernel changed")

    run.says("The kernels that Debian ships send the same first flight")
    assert equal(run.table("cells", "Every cell")["observed: first flight"], 10)

    run.says("without random loss a response takes equally long on each, to 0.1 ms")
    no_loss = changed.where("requested: loss, %", 0)
    assert equal(no_loss["improved, ms"].without_intervals, 0, within=0.1)

    run.says("with random loss it takes as long on 7.3 as on 7.2")
    lossy = changed.where("requested: loss, %", 1)
    from_7_2 = lossy.where("requested: kernel", "default → debian-7.3")
    assert equal(from_7_2["improved, ms"].without_intervals, 0, within=1e-6)


@states("map_of_windows")
def test_the_sentences_of_map_of_windows_hold(run: Run) -> None:
    smallest = "Smallest sufficient window, segments: size"
    maps = run.tables("map", smallest)

    run.says("How large a window has to be depends on size, RTT and bandwidth")
    for of_a_size in maps:
        assert max(number.value for number in of_a_size["1000, ms"].numbers) > 3
        assert min(number.value for number in of_a_size["5, ms"].numbers) < 4
    of_60_kb = run.table("map", f"{smallest} 60 kB;")
    assert rises(of_60_kb.where("BW, kbit/s", 250, 1000, 2000, 3000, 5000, 10000)["50, ms"])

    run.says("three segments are enough on slow and near paths")
    for of_a_size in maps:
        slow = of_a_size.where("BW, kbit/s", 250, 500)
        for rtt in (5, 10, 15, 20, 30):
            assert equal(slow[f"{rtt}, ms"], 3)

    run.says("a window larger than the response helps nobody")
    for size, segments in (("5 kB", 6), ("10 kB", 10), ("15 kB", 16), ("30 kB", 24), ("60 kB", 48)):
        of_a_size = run.table("map", f"{smallest} {size};")
        for column in of_a_size.columns("")[1:]:
            assert at_most(column, segments)

    run.says("on a slow link a large one can make the response take half as long again")
    slow = run.table("cells", "What the larger window").where("requested: BW, kbit/s", 250)
    assert min(number.high for number in slow["improved, %"].numbers) < -50


@states("page2026")
def test_the_sentences_of_page2026_hold(run: Run) -> None:
    over_4g, on_cable = run.table("mobile"), run.table("cable")

    run.says("Over 4G 32 instead of 10 segments complete the median page of 2025")
    run.says("over HTTP/1.1 and HTTP/2")
    assert above(over_4g.where("IW", 32)["earlier, ms"], 0)

    run.says("and its first screen earlier")
    for of_version in over_4g.each(""):
        with_10, _, with_32 = of_version["first screen, ms"].numbers
        assert with_32.value < with_10.value

    over_1, over_2 = on_cable.where("IW", 32).each("")
    run.says("on cable they save less than 1 % over HTTP/2")
    assert between(over_2["earlier, %"], 0, 1)

    run.says("nothing for sure over HTTP/1.1")
    assert no_different(over_1["earlier, ms"], 0)


@states("browser2026")
def test_the_sentences_of_browser2026_hold(run: Run) -> None:
    run.says("Over 4G a real browser has each of four pages earlier with 32 than with 10 segments")
    run.says("over HTTP/1.1 and HTTP/2")
    for page in ("text", "pictures", "scripts", "hosts"):
        over_4g = run.table(f"mobile_{page}")
        for version in ("HTTP/1.1", "HTTP/2"):
            in_browser = over_4g.where("", f"{version}, Chromium")["page, ms"].without_intervals
            _, with_10, _, with_32 = in_browser.numbers
            assert with_32 < with_10

    def by_client(page: str, column: str) -> list[Column]:
        over_4g = run.table(f"mobile_{page}")
        return [over_4g.where("", f"HTTP/2, {client}")[column].without_intervals
                for client in ("Chromium", "libcurl")]

    run.says("Over 4G and HTTP/2 32 segments instead of 3 save")
    for column in by_client("hosts", "page, ms"):
        with_3, _, _, with_32 = column.numbers
        assert with_32 < with_3

    run.says("ms of the page of six hosts in Chromium")
    run.says("ms of what libcurl fetches, which is there earlier with every window")
    in_chromium, in_libcurl = by_client("hosts", "page, ms")
    assert all(mine < other for mine, other in zip(in_libcurl.numbers, in_chromium.numbers))

    run.says("Of the text and of the pictures both save the same to 2 %")
    for page in ("text", "pictures"):
        saved = [column.numbers[0].value - column.numbers[-1].value
                 for column in by_client(page, "page, ms")]
        assert abs(saved[1] / saved[0] - 1) <= 0.02


@states("slow_start_exit")
def test_the_sentences_of_slow_start_exit_hold(run: Run) -> None:
    of_5_mb = run.table("exit").where("size, bytes", 5000000)
    of_20_mb = run.table("cells", "Every cell").where("requested: size, bytes", 20000000)

    run.says("5 MB are acknowledged within 55 ms of the published time without HyStart, with it and"
             " with HyStart++")
    published = of_5_mb.where("kernel", "default with tcp_cubic.hystart=0", "default",
                              "rfc9406 with tcp_cubic.hystart=2")
    assert equal(published["latency, ms"], published["published: latency, ms"], within=55)

    run.says("of 20 MB more than a thousand packets are lost without HyStart")
    assert above(of_20_mb.where("requested: module parameter", "tcp_cubic.hystart=0")[LOST], 1000)

    run.says("with it fewer than a hundred")
    as_built = of_20_mb.where("requested: kernel", "default")
    assert below(as_built.where("requested: module parameter", "none")[LOST], 100)

    run.says("with HyStart++ within 20 of the published 704")
    hystart_pp = of_20_mb.where("requested: module parameter", "tcp_cubic.hystart=2")
    assert between(hystart_pp[LOST], 684, 724)


@states("suss2024_log")
def test_the_sentences_of_suss2024_log_hold(run: Run) -> None:
    latency = run.table("cells", "Every cell").named("requested: size, bytes")["latency, ms"]
    rtt = 49.5  # from the departure of the first segment to its acknowledgement
    published = {"1000000": 342.2, "2000000": 509.5, "5000000": 1011.7, "16000000": 2851.6}

    run.says("1, 2, 5 and 16 MB are acknowledged within 2 ms of when they are in a published log")
    assert set(latency.rows) == set(published)
    for size, after_first_acknowledgement in published.items():
        (here,) = [number.value for row, number in zip(latency.rows, latency.numbers)
                   if row == size]
        assert abs(here - after_first_acknowledgement - rtt) < 2
