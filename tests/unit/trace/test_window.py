"""Samples of a window as a server wrote them, and as a disk or a stranger may have left them."""

from __future__ import annotations

import pytest

from firstflight.study.trace.window import FIELDS, WindowError, parse

HEAD = ",".join(FIELDS) + "\n"
RTO = ",1000,"  # microseconds
ROW = ",".join(map(str, range(len(FIELDS)))).replace(",9,", RTO) + "\n"


def test_rows_are_samples_in_their_order() -> None:
    last = (1 << 63) - 1
    first, second = parse((HEAD + ROW + ROW.replace("0,", f"{last},", 1)).encode(), "window.csv")
    assert (first.time_ns, second.time_ns, first.send_window_bytes) == (0, last, len(FIELDS) - 1)


@pytest.mark.parametrize(("content", "why"), [
    (HEAD, "holds no sample"), ("", "its columns are not"), ("time_ns\n1\n", "its columns are not"),
    (HEAD + "1,2\n", "a row is not one of numbers"),
    (HEAD + ROW.replace("1,", "x,", 1), "a row is not one of numbers"),
    (HEAD + ROW.replace("1,", "1\r,", 1), "a row is not one of numbers"),
    (HEAD + ROW.replace("0,", "-1,", 1), "a row is not one of numbers: -1 is none of a kernel's"),
    (HEAD + ROW.replace("0,", f"{1 << 63},", 1), "a row is not one of numbers: 9223372036854775808"),
    (HEAD + "\xe9", "a row is not one of numbers"),
    (HEAD + ROW + ROW.replace(RTO, ",999,"), "a retransmission timeout is shorter than a tick")])
def test_what_is_none_is_refused_with_the_name_of_the_file(content: str, why: str) -> None:
    with pytest.raises(WindowError, match=f"^window.csv: {why}"):
        parse(content.encode(), "window.csv")
