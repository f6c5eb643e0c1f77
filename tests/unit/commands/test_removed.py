"""What earlier versions had: each is refused in one line that says what to use instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from firstflight.base.errors import UsageError
from firstflight.base.removed import REMOVED
from firstflight.commands import flags, run, users

# What somebody types who knows an earlier version; the first word, or the first two, is the key.
TYPED = {"paper_arithmetic": "paper_arithmetic", "--explain": "--explain 3500ms --rtt 50",
         "--packetdrill": "--packetdrill one.pkt", "--share-link": "--users x --share-link 20M",
         "--http 3": "--http 3 --rtt 50", "quic_amplification": "quic_amplification",
         "a capture": "--users server.pcap"}


def test_each_line_is_typed_below() -> None:
    assert TYPED.keys() == REMOVED.keys()


@pytest.mark.parametrize("key", REMOVED)
def test_what_is_gone_is_told_in_one_line(key: str, tmp_path: Path,
                                          monkeypatch: pytest.MonkeyPatch,
                                          capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("server.pcap").write_bytes(b"\xd4\xc3\xb2\xa1" + bytes(20))
    try:
        arguments = flags.parse(TYPED[key].split())
        (users if arguments.users else run).read(arguments)
        line = "it was taken"
    except UsageError as error:
        line = str(error)
    except SystemExit as ended:
        assert ended.code == 2
        line = capsys.readouterr().err.rstrip("\n")
    assert key.split()[-1] in line and REMOVED[key] in line and "\n" not in line
