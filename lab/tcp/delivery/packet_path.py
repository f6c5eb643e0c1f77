"""What every kind compares of its path, packet by packet (lab.tcp.delivery)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lab.core.results.checks import Compared
from lab.tcp.delivery.check import Delivery

TO_CLIENT, TO_SERVER = SIDES = ("to_client", "to_server")
PATH = "path"  # of what a record's column judged_by names
NAME = "path"
WHY = ("each packet arrives to the microsecond when delay, rate and queue let it, or is dropped"
       " where they have to")
_NAMED = 3  # deviations in one reason


def compared(path: Sequence[Delivery] | None, drops: Mapping[str, Mapping[str, int]]
             ) -> Iterable[Compared]:
    """Each packet, and as many dropped as the qdiscs counted; nothing where it is not judged.

    path: to client and to server, None in real time. drops: by side, then by cause, {} where
    nobody counted.
    """
    for side, delivery in zip(SIDES, path or ()):
        way, deviations = side.replace("_", " "), delivery.deviations
        named = ", ".join(f"packet {each.number} {each.what}" for each in deviations[:_NAMED])
        yield Compared(not deviations, f"{len(deviations)} of {delivery.sent} packets {way} differ"
                       f" ({named})", "none")
        if dropped := drops.get(side):
            counted = sum(dropped.values())
            yield Compared(delivery.dropped == counted, f"{delivery.dropped} lost {way}",
                           f"{counted} as the network dropped")
