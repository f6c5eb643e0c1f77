"""The cost of a packet on a link without a rate, and the noise of a machine's times."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class LinkTimes:
    """Times of a guest, for its kernel's command line (vtime/kernel/link_time.c).

    The seed decides how large a noise is each time.
    """

    packet_cost_ns: int = 1000  # a netem without a rate is busy so long with a segment
    packet_noise_ns: int = 0  # the most by which timers of queues are late
    start_noise_us: int = 0  # the most by which the start of a program takes longer

    def with_noise(self) -> LinkTimes:
        """These times with the noise of a real machine, so that close outcomes vary.

        A timer of a busy machine is a few hundred nanoseconds late, and a program starts within a
        millisecond or two.
        """
        return replace(self, packet_noise_ns=1000, start_noise_us=1000)

    def words(self) -> list[str]:
        """The words of the kernel's command line."""
        return [f"packet_cost_ns={self.packet_cost_ns}", f"packet_noise_ns={self.packet_noise_ns}",
                f"start_noise_us={self.start_noise_us}"]
