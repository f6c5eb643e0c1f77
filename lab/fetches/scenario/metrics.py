"""What a figure of fetches can be of: the measured columns of a record that are quantities."""

from __future__ import annotations

# lab.fetches.verify.record.Record has each, and lab.core.scenario.quantities its words.
METRICS = ("first_byte_ms", "total_ms", "latency_ms", "goodput_kbps", "appconnect_ms",
           "handshake_round_trips", "flight_bytes", "flight_segments", "window_after_handshake",
           "response_round_trips", "unvalidated_bytes", "allowed_bytes")
