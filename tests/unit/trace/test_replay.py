"""Which packets make a moment of TCP's, and which of them a sample of TCP_INFO comes after."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lab.tcp.packets import ACK, FIN
from lab.trace.replay import Group, _Replayer, groups_of
from tests.unit.tcp.conversation import MS, MSS, START_NS, Conversation


def test_a_moment_is_an_acknowledgement_or_a_write_and_what_leaves_for_it() -> None:
    """The handshake is none; what arrives without data acknowledged begins one, too."""
    talk = Conversation().handshake().flight(0, 1)
    talk.acknowledge(220, 1).flight(2, 3, at_ms=270)
    talk.send(290, True, FIN | ACK, seq=1 + 4 * MSS, ack=96)
    talk.send(300, True, ACK, seq=1 + 4 * MSS, ack=96)  # which holds nothing
    groups = groups_of(talk.read())
    told = [((group.time_ns - START_NS) / MS, group.ack, len(group.sends)) for group in groups]
    assert told == [(150, 1, 0), (150, 1, 2), (270, 1 + MSS, 2), (290, None, 1)]
    assert {group.window for group in groups if group.ack} == {500}
    assert groups[-1].sends[0].is_fin and not groups[-1].window


@pytest.mark.parametrize(("group_ms", "sample_ms", "unacked", "notsent", "first"), [
    (10, 11, 3, 0, True), (11, 10, 3, 0, False),
    # At one moment: it shows what is known already, or more outstanding, less, or more sent.
    (10, 10, 3, 500, False), (10, 10, 4, 500, True), (10, 10, 2, 500, True),
    (10, 10, 3, 400, True), (10, 10, 4, 400, True)])
def test_a_sample_comes_after_a_moment_of_its_time_that_it_shows(
        group_ms: int, sample_ms: int, unacked: int, notsent: int, first: bool) -> None:
    """Three packets are outstanding up to byte 1000, and 500 bytes more are written."""
    state: Any = SimpleNamespace(
        candidates=[SimpleNamespace(connection=SimpleNamespace(packets=3))],
        outstanding_end=1000, written=1500)
    sample: Any = SimpleNamespace(time_ns=sample_ms * MS, unacked=unacked, notsent_bytes=notsent)
    assert _Replayer._precedes(state, Group(group_ms * MS, None), sample) == first
    state.candidates = []  # rules that are not replayed: by the clock alone
    assert _Replayer._precedes(state, Group(group_ms * MS, None), sample) == (
        group_ms <= sample_ms)


@pytest.mark.parametrize(("windows", "scale"), [((64_000, 128_000), 7), ((4000, 8000), 3),
                                                ((500, 1000), 0)])
def test_the_scale_of_windows_is_what_makes_those_that_tcp_info_tells(
        windows: tuple[int, ...], scale: int) -> None:
    state: Any = SimpleNamespace(
        samples=[SimpleNamespace(send_window_bytes=each) for each in windows],
        groups=[Group(0, 1, 500), Group(1, 1449, 1000), Group(2, None, 77)])
    assert _Replayer._window_scale(state) == scale
