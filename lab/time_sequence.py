"""Time-sequence views of a run's kept captures: what was sent, acknowledged, lost and sent again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lab import report_texts as texts
from lab.records import Record
from lab.tcp.exchange import Exchange, read_exchange
from lab.tcp.packets import CaptureError, client_ports
from lab.toml_file import plain
from lab.trial import Trial

CHART_WIDTH, CHART_HEIGHT = 560.0, 300.0  # with the margins
LEFT, RIGHT, TOP, BOTTOM = 52.0, 14.0, 14.0, 38.0


@dataclass(frozen=True)
class Mark:
    """A segment in a time-sequence view; heights grow downwards. kind: data, again, lost."""

    kind: str
    x: float
    top: float
    bottom: float


@dataclass(frozen=True)
class Tick:
    place: float
    label: str


@dataclass(frozen=True)
class Chart:
    """The time-sequence view of one connection, in units of the drawing."""

    title: str
    text: str
    marks: tuple[Mark, ...]
    acknowledged: str  # points of the line
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]


@dataclass(frozen=True)
class Kept:
    """The two captures of one trial, read."""

    name: str
    trial: Trial | None
    exchange: Exchange

    @property
    def title(self) -> str:
        if self.trial is None:
            return self.name
        trial = self.trial
        return (f"IW{trial.initcwnd}: RTT {plain(trial.rtt_ms)} ms,"
                f" {plain(trial.bandwidth_kbps)} kbit/s, {trial.response_bytes} bytes")


def charts(records: Sequence[Record], folder: Path) -> list[Chart]:
    """One capture kept in `folder`, and beside it the same cell with another window if there is one."""
    pairs = capture_pairs(folder)
    by_id = {record.trial.id: record for record in records}
    order = {trial_id: place for place, trial_id in enumerate(by_id)}
    names = sorted(pairs, key=lambda name: (order.get(name, len(order)), name))
    chosen: list[Kept] = []
    for name in names:
        record = by_id.get(name)
        if chosen and (record is None or not _is_counterpart(chosen[0].trial, record.trial)):
            continue
        kept = _kept(name, record, *pairs[name])
        if kept is not None:
            chosen.append(kept)
        if len(chosen) == 2 or chosen and chosen[0].trial is None:
            break
    if not chosen:
        return []
    chosen.sort(key=lambda kept: kept.trial.initcwnd if kept.trial else 0)
    last_ms = max(_elapsed_ms(kept.exchange)[-1] for kept in chosen)
    last_byte = max(segment.end_with_fin for kept in chosen for segment in kept.exchange.at_server
                    if segment.to_client)
    return [_chart(kept, last_ms * 1.03, last_byte * 1.05) for kept in chosen]


def capture_pairs(folder: Path) -> dict[str, tuple[Path, Path]]:
    """Captures at client and server, by what their names have in common."""
    pairs = {}
    for client in sorted(folder.glob("*client*.pcap")):
        head, _, tail = client.name.rpartition("client")
        server = client.with_name(f"{head}server{tail}")
        if server.is_file():
            pairs[(head + tail.removesuffix(".pcap")).strip("-._")] = client, server
    return pairs


def _is_counterpart(trial: Trial | None, other: Trial) -> bool:
    """Whether the two differ in the initial window alone."""
    return trial is not None and replace(trial, initcwnd=1) == replace(other, initcwnd=1)


def _kept(name: str, record: Record | None, client: Path, server: Path) -> Kept | None:
    """None where the captures cannot be read, or hold no data: then there is nothing to draw."""
    try:
        client_pcap, server_pcap = client.read_bytes(), server.read_bytes()
        ports = client_ports(server_pcap)
        response_bytes = (0 if record is None or record.header_bytes is None
                          else record.header_bytes + record.trial.response_bytes)
        exchange = read_exchange(client_pcap, server_pcap, ports[-1] if ports else 0,
                                 response_bytes)
    except (OSError, CaptureError):
        return None
    if not any(segment.to_client and segment.payload_bytes for segment in exchange.at_server):
        return None
    return Kept(name, record.trial if record else None, exchange)


def _elapsed_ms(exchange: Exchange) -> list[float]:
    """When each packet passed the server, from the client's first packet on."""
    start_ns = min(segment.time_ns for segment in exchange.at_client + exchange.at_server)
    return [(segment.time_ns - start_ns) / 1e6 for segment in exchange.at_server]


def _chart(kept: Kept, last_ms: float, last_byte: float) -> Chart:
    exchange = kept.exchange
    x_steps, y_steps = _steps(last_ms), _steps(last_byte / 1000)

    def across(ms: float) -> float:
        return round(LEFT + ms / (last_ms or 1) * (CHART_WIDTH - LEFT - RIGHT), 1)

    def up(byte: float) -> float:
        return round(CHART_HEIGHT - BOTTOM
                     - byte / (last_byte or 1) * (CHART_HEIGHT - TOP - BOTTOM), 1)

    marks, points, acknowledged = [], [], 1
    for segment, ms in zip(exchange.at_server, _elapsed_ms(exchange)):
        if segment.to_client and segment.payload_bytes:
            kind = ("again" if segment in exchange.retransmissions
                    else "lost" if segment in exchange.lost_to_client else "data")
            marks.append(Mark(kind, across(ms), up(segment.end), up(segment.seq)))
        elif not segment.to_client and segment.ack is not None and segment.ack >= acknowledged:
            points += [f"{across(ms)},{up(acknowledged)}", f"{across(ms)},{up(segment.ack)}"]
            acknowledged = segment.ack
    latency_ms = exchange.latency_ms
    text = (f"{len(marks)} data segments, {len(exchange.first_flight)} of them in"
            f" the first flight, {len(exchange.retransmissions)} sent again,"
            f" {len(exchange.lost_data)} lost; "
            + (f"all acknowledged {texts.short(latency_ms)} ms after the first left"
               if latency_ms is not None else "not all acknowledged"))
    return Chart(kept.title, text, tuple(marks), " ".join(points),
                 tuple(Tick(across(ms), _plain_tick(ms)) for ms in x_steps),
                 tuple(Tick(up(kilobytes * 1000), _plain_tick(kilobytes))
                       for kilobytes in y_steps))


def _steps(highest: float) -> list[float]:
    """Round numbers from 0 to `highest`, at most seven."""
    step = next((mantissa * 10.0 ** power for power in range(-3, 12) for mantissa in (1, 2, 5)
                 if highest / (mantissa * 10.0 ** power) <= 6), highest or 1.0)
    return [step * place for place in range(int(highest / step) + 1)]


def _plain_tick(value: float) -> str:
    return f"{value:.6g}"
