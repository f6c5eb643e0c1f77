"""What the model says of random transfers: every number of a prediction, as it was.

That the kernel takes the same time is what benchmarks/transfers.py measures, and in part
test_transfers.py; here a rule that is changed in passing is seen, whatever it is of.
"""

from __future__ import annotations

import math
from dataclasses import astuple
from random import Random

from lab.tcp.predict import predict
from lab.tcp.transfer import Secure, Transfer

COUNT = 300
SECURE = Secure(517, (1200, 3100, 600), 80, (250, 250), 4096)


def text() -> str:
    """A line a transfer: what is asked, and what is predicted, times to the microsecond."""
    lines = []
    for number in range(COUNT):
        transfer = drawn(Random(number))
        asked = " ".join(f"{value:g}" if isinstance(value, float) else str(value)
                         for value in astuple(transfer))
        told = " ".join(f"{value:.3f}" if isinstance(value, float) else str(value)
                        for value in astuple(predict(transfer)))
        lines.append(f"{asked}: {told}")
    return "\n".join(lines) + "\n"


def drawn(chance: Random) -> Transfer:
    """Of short and long paths and responses, in one write or several, and of small windows."""
    kbps = chance.choice((56.0, 250.0, 1000.0, 4000.0, 20_000.0, 1e6))
    kind = chance.choice(("whole", "whole", "kept", "gap", "writes", "secure"))
    size = chance.choice((1, 900, 5000, 14_480, 30_000, 90_000, 250_000))
    kept = chance.choice((5000, 60_000)) if kind == "kept" else 0
    return Transfer(
        rtt_ms=chance.choice((1.0, 7.3, 20.0, 100.0, 350.0, 1200.0)), bandwidth_kbps=kbps,
        uplink_kbps=chance.choice((kbps, 64.0, math.inf)),
        initcwnd=chance.choice((1, 2, 3, 4, 10, 16, 42, 100)),
        initrwnd=chance.choice((2, 10, 27, 64, 200)), response_bytes=size,
        request_bytes=chance.choice((90, 1500)),
        burst_bytes=min(size, 1448) if kind == "gap" else 0,
        gap_ms=chance.choice((3.0, 80.0, 700.0)) if kind == "gap" else 0.0,
        restart_after_idle=chance.random() < 0.7, loss_probes=chance.random() < 0.7,
        earlier_bytes=kept, earlier_request_bytes=90 if kept else 0,
        writes=(61, max(size - 61, 1)) if kind == "writes" else (),
        secure=SECURE if kind == "secure" else None,
        congestion_control=chance.choice(("cubic", "cubic", "reno")),
        clock_phase_ns=chance.choice((2_002, 400_000, 999_000)),
        receive_buffers=chance.choice(((131_072, 6_291_456), (20_000, 60_000))),
        send_buffers=chance.choice(((16_384, 4_194_304), (16_384, 30_000))))
