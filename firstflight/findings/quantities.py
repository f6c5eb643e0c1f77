"""Every quantity, once: its column, unit, range, its words for people, and its flag.

A quantity's name is its column in records, its key in scenario files and its
attribute in trials; it ends in the unit. Reading, checking, messages, --help,
heads of tables and axes of figures all follow from its line.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from firstflight.base import typed
from firstflight.base.errors import UsageError
from firstflight.base.words import plain
from firstflight.findings.quantity import Quantity, Sizes, Windows, Word
from firstflight.net.tc import FULL_FRAME_BYTES

# A queue that is long enough for slow start to fill the path: what routers are built with.
AUTO, LEAST_AUTO_PACKETS = "auto", 100


@dataclass(frozen=True)
class Length(Quantity):
    """A queue's length: packets, or a time or bandwidth-delay products from which they follow.

    Values are words: "100", "50ms", "1bdp", or AUTO.
    """

    def check(self, value: object, where: str) -> str:
        if isinstance(value, (int, float)):
            return str(QUANTITIES["queue_packets"].check(value, where))
        if value == AUTO:
            return AUTO
        match = re.fullmatch(r"(\d{0,9}(?:\.\d{1,6})?)(ms|bdp|)", value) \
            if isinstance(value, str) else None
        if match is None or not match[1] and match[2] != "bdp":
            raise UsageError(f"{where}: {value!r} is not a queue length; write packets, a time or"
                             f" bandwidth-delay products, like 100, 50ms or 0.5bdp; {AUTO} is one"
                             f" BDP, at least {LEAST_AUTO_PACKETS} packets")
        name = {"ms": "queue_ms", "bdp": "queue_bdp", "": "queue_packets"}[match[2]]
        return f"{plain(QUANTITIES[name].check(float(match[1] or 1), where))}{match[2]}"

    def listed(self, words: str) -> list[str]:
        """Lengths as typed, units in any case. Bytes are refused, with their number of packets."""
        lengths = []
        for word in typed.expand_range(words, "packets", whole=True):
            low = re.sub(r"(?<=\d)\s*(p|pkts?|packets?)$|\s", "", word.lower())
            if re.fullmatch(r"[\d.]+[kmg]?i?b(ytes)?", low):
                packets = math.ceil(typed.number(low, "bytes") / FULL_FRAME_BYTES)
                raise ValueError(f"{word!r} is a length in bytes; a queue holds packets, here"
                                 f" {packets} of {FULL_FRAME_BYTES} bytes: write {packets}, 50ms or"
                                 " 1bdp")
            if re.fullmatch(r"\d*\.\d*[1-9]\d*", low):
                raise ValueError(f"{word!r} is not a whole number of packets; write {low}bdp,"
                                 f" {low}ms or whole packets")
            if seconds := re.fullmatch(r"([\d.]+)(us|s)", low):
                low = f"{plain(typed.number(seconds[0], 'ms'))}ms"
            lengths.append(low)
        return lengths

    def parsed(self, word: str) -> str:
        return word

    @property
    def metavar(self) -> str:
        return "PACKETS|MSms|bdp,…"

    @property
    def range(self) -> str:
        ends = ", ".join(QUANTITIES[name].range for name in ("queue_packets", "queue_ms",
                                                             "queue_bdp"))
        return f"{ends}, like 100, 50ms or 0.5bdp; {AUTO}"


# What is measured of a fetch, in the order of the columns (study.fetches.verify.record): what a
# figure can be of.
_METRICS: tuple[Quantity, ...] = (
    Quantity("first_byte_ms", "the time to the first byte", "ms", head="first byte",
             label="time to the first byte"),
    Quantity("total_ms", "the client's total time, handshake included", "ms", head="total",
             label="total time"),
    Quantity("latency_ms", "the latency at the server, T_ACK − T_Res1", "ms", head="latency",
             label="latency"),
    Quantity("goodput_kbps", "the goodput of the transfer", "kbit/s", head="goodput",
             label="goodput", more_is_better=True),
    Quantity("appconnect_ms", "the time of both handshakes", "ms", head="handshake",
             label="handshake, TLS included"),
    Quantity("handshake_round_trips", "round trips of the TLS handshake", "",
             head="round trips", label="round trips of the TLS handshake"),
    Quantity("flight_bytes", "what a server's handshake sends", "bytes", head="flight",
             label="the server's messages of the handshake"),
    Quantity("flight_segments", "the number of segments of a server's handshake", "segments",
             head="flight", label="segments of the server's messages of the handshake"),
    Quantity("window_after_handshake", "the window after the handshake", "segments",
             head="window", label="the server's window after the handshake"),
    Quantity("response_round_trips", "round trips of the response", "", head="round trips",
             label="round trips of the response"),
)

_ALL: tuple[Quantity, ...] = (
    # The network. Below 0.1 ms the guest's own processing outweighs the link.
    Quantity("rtt_ms", "an RTT", "ms", 0.1, 100_000, head="RTT", flag="--rtt",
             flag_help="round-trip times of the empty path", default="50",
             why="; over longer ones Linux's timers give the connection up (measured: from 101 s"
             " on)"),
    Quantity("bandwidth_kbps", "a bandwidth", "kbit/s", 1, 10_000_000, head="BW",
             label="bandwidth", flag="--bw", default="10000",
             flag_help="bandwidths of the bottleneck towards the client"),
    Quantity("uplink_kbps", "an uplink", "kbit/s", 1, 10_000_000, head="uplink", flag="--uplink",
             flag_help="bandwidths towards the server", default="as --bw"),
    Quantity("queue_packets", "a queue", "packets", 1, 1_000_000, whole=True, head="queue"),
    Quantity("queue_ms", "a queue", "ms", 0.01, 60_000, head="queue"),
    Quantity("queue_bdp", "a queue", "bandwidth-delay products", 0.001, 100, head="buffer",
             why=" (a bottleneck without a buffer passes nothing on)"),
    Length("queue", "a queue", head="queue", label="queue (packets, ms or BDP)", flag="--queue",
           flag_help=f"lengths of the bottleneck's queue; {AUTO}: one BDP, at least"
                     f" {LEAST_AUTO_PACKETS} packets", default=AUTO),
    Quantity("access_queue_packets", "a queue", "packets", 1, 1_000_000, whole=True,
             head="access queue"),
    Word("qdisc", "a queueing discipline", head="qdisc", label="queueing discipline",
         flag="--qdisc", default="fifo", known=("fifo", "fq", "fq_codel", "cake"),
         flag_help="the bottleneck's queue: fifo, fq_codel or cake; fq paces the server, before a"
         " fifo"),
    # A smaller one in bursts of 1000 would be 0 in the kernel's 32 bits.
    Quantity("loss_percent", "a loss rate", "%", 0, 99, above=0.0001, head="loss",
             label="random loss towards the client", flag="--loss",
             flag_help="random loss towards the client", default="0"),
    Quantity("loss_burst", "a burst of losses", "packets", 1, 1000, head="burst",
             label="mean burst of losses", flag="--burst-loss", default="1",
             flag_help="how many packets --loss takes in a row on average (Gilbert's model)"),
    Quantity("jitter_ms", "a jitter", "ms", 0, 2147, above=0.001, head="jitter",
             label="jitter of the delay towards the client", flag="--jitter", default="0",
             why=" (netem holds no more nanoseconds than 31 bits, and tc whole microseconds)",
             flag_help="standard deviations of the delay towards the client, normal distribution"),
    Quantity("bdp_bytes", "a bandwidth-delay product", "bytes", 0.01, 1e12, head="BDP",
             label="bandwidth-delay product"),
    Quantity("outage_ms", "a time", "ms", 0, 86_400_000),
    # TCP.
    Quantity("initcwnd", "an initial window", "segments", 1, 65_535, whole=True, head="IW",
             label="initial window", flag="--iw", default="10,30",
             flag_help="the server's initial windows; the others are compared with the first"),
    Quantity("initrwnd", "an initial receive window", "segments", 1, 65_535, whole=True,
             head="rwnd", label="initial receive window", flag="--rwnd",
             default="1000",
             flag_help="the client's initial receive windows"),
    Word("congestion_control", "a congestion control", head="congestion control", flag="--cc",
         flag_help="the server's congestion controls", default="cubic"),
    Quantity("mss", "a segment", "bytes", 88, 1448, whole=True, head="segment", flag="--mss",
             flag_help="most data in a segment", default="1448",
             why=" (1460 less 12 of time stamps)"),
    Quantity("receive_window", "a receive window", "segments", 0, 1000, whole=True),
    Quantity("rto_min_ms", "a least timeout", "ms", 0, 60_000, whole=True),
    # The responses.
    Quantity("response_bytes", "a response", "bytes", 1, 50_000_000, whole=True, head="size",
             label="response", flag="--size", flag_help="responses' bodies", default="30000",
             why=" (body and packets of more do not fit in a guest's memory, 512 MB; measured:"
                 " 70 MB do, 100 do not)"),
    Quantity("response_segments", "a response", "segments", head="size",
             label="response at 1430 bytes a segment, up to"),
    Quantity("kept", "a number of earlier responses", "", 0, 100, whole=True, head="earlier",
             label="earlier responses on the connection", flag="--kept", default="0",
             flag_help="how many responses of the same size came before on the connection"),
    Quantity("idle_ms", "a pause", "ms", 0, 3_600_000, head="idle",
             label="pause before the request", flag="--idle", default="0",
             flag_help="pauses before the last request; --kept is then 1 unless you give it"),
    # The server, TLS, and the server's writes.
    Word("server", "a server", head="server", label="server", flag="--server",
         default="builtin", known=("builtin", "nginx", "own"),
         flag_help="the servers: server.py, the distribution's nginx (./install.sh --with-nginx),"
         " your own (--server-command)"),
    Word("http", "a version of HTTP", head="HTTP", label="version of HTTP", flag="--http",
         default="1.1", known=("1.1", "2"),
         flag_help="the versions of HTTP; 2 is over TLS, and not from builtin"),
    Quantity("chain_bytes", "a certificate chain", "bytes", 0, 96_000, whole=True, head="chain",
             label="certificate chain", flag="--chain", default="0",
             flag_help="TLS 1.3 with a certificate chain of so many bytes, in DER; 0: plain HTTP",
             why=" (OpenSSL's clients take 100 kB)"),
    Word("signature", "a signature", head="signature", label="signature of the certificates",
         flag="--signature", default="ed25519",
         known=("ed25519", "ecdsa", "rsa2048", "mldsa44", "mldsa65", "mldsa87", "slhdsa128s"),
         flag_help="signatures of the chains; the rest of a chain's bytes is an extension"),
    Word("key_share", "a key share", head="key share", label="key exchange", flag="--key-share",
         default="x25519", known=("x25519", "x25519mlkem768"),
         flag_help="key exchanges that the client offers"),
    Word("system", "a system", head="system", label="system whose programs run",
         flag="--system",
         default="debian13 where --signature, --key-share or --early-data needs it, else here",
         known=("here", "debian13"),
         flag_help="whose programs guests run: this machine's, or Debian 13's with OpenSSL 3.5"
         " (./install.sh --with-pq)"),
    Quantity("intermediates", "a number of intermediates", "", 0, 8, whole=True,
             head="intermediates", label="intermediate certificates", flag="--intermediates",
             default="0", flag_help="intermediate certificates in a chain"),
    Quantity("tickets", "a number of tickets", "", 0, 10, whole=True, head="tickets",
             label="session tickets", flag="--tickets", default="2",
             flag_help="session tickets that the server sends after a handshake"),
    Quantity("resumed", "a resumed session", "", 0, 1, whole=True, head="resumed",
             label="session resumed", flag="--resumed", default="0",
             flag_help="1: the session resumes that of an earlier connection, without a chain"),
    Quantity("early_data_bytes", "early data", "bytes", 0, 16_384, whole=True, head="early data",
             label="early data (0-RTT)", flag="--early-data", default="0",
             flag_help="0-RTT: a resumed session's request leaves with the client's hello, to"
             " nginx; 1: as it is, else padded to so many bytes"),
    Quantity("record_bytes", "a record", "bytes", 64, 16_384, whole=True, head="record",
             label="TLS record, and write", flag="--record", default="16384",
             flag_help="plain text in a TLS record; each is a write (nginx: ssl_buffer_size)"),
    Quantity("buffer_bytes", "a buffer", "bytes", 0, 65_536, whole=True, head="buffer",
             label="buffer of the first messages", flag="--tls-buffer", default="4096",
             flag_help="the buffer that the server writes its first messages through; 0: one"
             " write"),
    Quantity("write_bytes", "a size", "bytes", 1, 50_000_000, whole=True),
    Quantity("write_segments", "a size", "segments", 1, 100_000, whole=True),
    Quantity("gap_ms", "a pause", "ms", 0, 60_000, head="gap", label="time of the back-end",
             flag="--think", default="0",
             flag_help="times of the back-end: headers leave at once, the body after them"),
    Quantity("send_buffer_bytes", "a send buffer", "bytes", 0, 212_992, whole=True,
             head="SO_SNDBUF", label="SO_SNDBUF of the server", default="0", zero="not set",
             why=" (net.core.wmem_max)"),
    # What published set-ups did otherwise.
    Quantity("htb_burst_bytes", "a burst", "bytes", 0, 10_000_000, whole=True, head="HTB burst",
             label="burst of HTB, which shapes in the place of netem", default="0"),
    Quantity("integer_kbps", "a rate", "kbit/s", 0, 10_000_000, head="rate lost to integers",
             label="rate of a link whose Mbit/s an integer division made 0", default="0"),
    Quantity("arp_ms", "a time", "ms", 0, 60_000, whole=True, head="ARP",
             label="ARP inside the time, asked again after", default="0"),
    Sizes("head", "the writes of the headers", "bytes", head="writes of the headers"),
    Word("nagle", "Nagle's algorithm", head="Nagle", known=("off", "on"), default="off"),
    Word("framing", "what ends a body", head="body ends by", known=("length", "close"),
         default="length"),
    Word("loss_probes", "the server's tail loss probes", head="loss probes", known=("on", "off"),
         default="on"),
    Word("receive_rules", "the rules of the receive window", head="receive window as in",
         known=("today", "linux3"), default="today"),
    Windows("acts_as", "windows that act as others", "segments", head="window acts as"),
    Quantity("process_ms", "a process", "ms", 0, 60_000),
    Quantity("failed_ms", "a time", "ms", 0, 600_000),
    Quantity("percentile", "a percentile", head="percentile", label="percentile of the latency"),
    # The traffic of a shared link.
    Quantity("load", "an offered load", "", 0.001, 1, head="offered load", flag="--load",
             flag_help="offered loads, of scenarios of kind load: parts of the bottleneck like"
             " 0.5,0.95",
             why=" (over 1 the queue only grows, and no run is long enough)"),
    Quantity("connections", "a number of connections at once", "", 1, 1000, whole=True,
             head="connections at once"),
    Quantity("clients", "a number of client hosts", "", 1, 250, whole=True),
    Quantity("servers", "a number of server hosts", "", 1, 250, whole=True),
    Quantity("duration_s", "a run", "s", 0.1, 86_400),
    Quantity("warmup_s", "a warm-up", "s", 0, 86_400),
    Quantity("cooldown_s", "a cool-down", "s", 0, 86_400),
    Quantity("share", "a share", "", 0.0001, 1),
    # Times and counts of what is requested.
    Quantity("repeat", "a number of repeats", "", 1, 10_000, whole=True, head="repeat"),
    Quantity("one_in", "a part of a grid", "", 1, 10_000, whole=True),
    Quantity("seed", "a seed", "", 0, 2**32 - 1, whole=True),
    Quantity("shares_percent", "a share", "%", 0, 100, head="share"),
    Quantity("time_s", "a time", "s", 0, 86_400, head="time"),
    Quantity("every_s", "an interval", "s", 0.0001, 86_400),
    Quantity("sample_ms", "an interval", "ms", 0.05, 60_000),
    Quantity("published", "a published number", "", -1e9, 1e9),
    Quantity("within", "a tolerance", "", 0, 1e9),
    *_METRICS,
    # What else is measured.
    Quantity("mean_ms", "the mean completion time", "ms", head="mean"),
    Quantity("p50_ms", "the median completion time", "ms", head="p50"),
    Quantity("p90_ms", "the 90th percentile", "ms", head="p90"),
    Quantity("p95_ms", "the 95th percentile", "ms", head="p95"),
    Quantity("p99_ms", "the 99th percentile", "ms", head="p99"),
    Quantity("hit_mean_ms", "the mean of transfers with a retransmission", "ms"),
    Quantity("retransmission_percent", "the retransmission rate", "%", head="retransmitted"),
    # What distinguishes runs and queues.
    Quantity("variant", "a sender and queue", head="sender and queue"),
    Quantity("window", "an initial window", head="initial window"),
)

QUANTITIES = {quantity.name: quantity for quantity in _ALL}
FLAGS = {quantity.name: quantity for quantity in _ALL if quantity.flag}
METRICS = tuple(quantity.name for quantity in _METRICS)


def quantity(name: str) -> Quantity:
    """A quantity by its name; one that has no line has only its name."""
    return QUANTITIES.get(name) or Quantity(name, name.replace("_", " "),
                                            head=name.replace("_", " "))
