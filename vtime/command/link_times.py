"""What a packet costs where nobody limited a link, and how much a machine's times vary."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class LinkTimes:
    """Times of a guest, as its kernel's command line has them (vtime/kernel/link_time.c).

    packet_cost_ns: for how long a netem without a rate is busy after a segment, 0 for not at all.
    packet_noise_ns: by how much, at most, the timers of all queues are late. start_noise_us: by
    how much, at most, the start of a program takes longer. The seed decides by how much each is.
    """

    packet_cost_ns: int = 1000
    packet_noise_ns: int = 0
    start_noise_us: int = 0

    def with_noise(self) -> LinkTimes:
        """The same with noise as small as a machine's, so that a hair falls to either side.

        A timer of a busy machine is a few hundred nanoseconds late, and a program starts within a
        millisecond or two.
        """
        return replace(self, packet_noise_ns=1000, start_noise_us=1000)

    def words(self) -> list[str]:
        """The words of the kernel's command line."""
        return [f"packet_cost_ns={self.packet_cost_ns}", f"packet_noise_ns={self.packet_noise_ns}",
                f"start_noise_us={self.start_noise_us}"]
