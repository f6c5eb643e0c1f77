"""Routes as data: TCP's windows, congestion control and timers are metrics of a route."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

CLIENT_IP = "10.0.0.1"
SERVER_IP = "10.0.0.2"
# The dumbbell's two networks; each side's gateway is .254, its hosts count from .1.
CLIENT_SIDE, SERVER_SIDE = "10.0.1", "10.0.2"


@dataclass(frozen=True)
class Route:
    """A route to one host, or `default`, with the metrics that it carries."""

    to: str
    interface: str
    metrics: dict[str, Any]  # by the names that `ip -json` prints
    via: str = ""

    @property
    def command(self) -> str:
        """For `ip -batch`."""
        # The metrics that ip prints by another name or in another unit than it takes.
        metrics = " ".join(f"congctl {value}" if name == "congestion" else
                           f"rto_min {value}ms" if name == "rto_min" else f"{name} {value}"
                           for name, value in self.metrics.items())
        via = f"via {self.via} " if self.via else ""
        return f"route replace {self.to} {via}dev {self.interface} {metrics}"

    @property
    def question(self) -> str:
        return f"route show {self.to}"

    def differences(self, rows: list[dict[str, Any]]) -> list[str]:
        """What the answer to the question tells otherwise than it was asked; empty if nothing."""
        told = {name: value for row in rows for metric in row.get("metrics", [])
                for name, value in metric.items()}
        return [] if told == self.metrics else [f"{told}, asked {self.metrics}"]


@dataclass(frozen=True)
class RouteOptions:
    """What else a trial may ask of the star's two routes; nothing by default.

    rto_min_ms: the least retransmission timeout of the server, 0 for the kernel's.
    quickack: the client acknowledges every segment at once.
    advertised_mss: that the client tells the server, 0 for the device's.
    """

    rto_min_ms: int = 0
    quickack: bool = False
    advertised_mss: int = 0


def star_routes(initcwnd: int, initrwnd: int, congestion_control: str,
                options: RouteOptions = RouteOptions()) -> tuple[Route, Route]:
    """The server's route to the client, and the client's. Windows in segments."""
    server: dict[str, Any] = {"initcwnd": initcwnd, "congestion": congestion_control}
    client: dict[str, Any] = {"initrwnd": initrwnd}
    if options.rto_min_ms:
        server["rto_min"] = options.rto_min_ms
    if options.quickack:
        client["quickack"] = 1
    if options.advertised_mss:
        client["advmss"] = options.advertised_mss
    return Route(CLIENT_IP, "server-eth0", server), Route(SERVER_IP, "client-eth0", client)


def dumbbell_routes(server: str, initcwnd: list[int], congestion_control: str) -> list[Route]:
    """The routes of host `server` to each client. initcwnd: by client, segments."""
    return [Route(f"{CLIENT_SIDE}.{number}", f"{server}-eth0",
                  {"initcwnd": window, "congestion": congestion_control},
                  via=f"{SERVER_SIDE}.254")
            for number, window in enumerate(initcwnd, start=1)]
