"""Every parameter of a fetch, once: a row has all that there is to know of it.

Its name ends in the unit. It is the name of a column in records, of a key in scenario files, and of
a field of a trial. A new parameter is a row here, in the place where sweeps vary it, and a typed
field in setting/ or workloads/fetch/scenario; one of the network is a field of Link as well
(net/link.py).
Flags, --help, keys of files, sweeps, defaults, columns, ids of trials and documents follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from firstflight.base.quantity import (FIXED, GROWS, ClientWindow, InitialWindow, KernelName,
                                       ModuleParameters, Quantity, ReceiveWindow, Sizes, Windows,
                                       Word)
from firstflight.net import sysctls
from firstflight.net.queue_length import AUTO, LEAST_AUTO_PACKETS, PACKETS, Length

# Subjects: what a parameter is of.
NETWORK, TCP, RESPONSE, TLS, SERVER = "network", "TCP", "response", "TLS", "server"
PUBLISHED = "published"  # what published set-ups did otherwise; without a flag
OVERTAKEN = "packets that jitter let overtake each other look lost (RACK, duplicate ACKs)"
# Values of parameters by their names; what type each has follows from its row.
Lists = Mapping[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Parameter:
    """One row.

    quantity: the name with its unit, range, default, flag and words. tag: in a trial's id, before
        a value that is not the default; None where the id has the value always or never.
    key: in scenario files; field: of Trial, both if not the name. required: a scenario file has to
        give it. follows: its default follows from other values, and is words only.
    modelled: the model of TCP follows any value, not only the default.
    random: what it does is drawn from the trial's seed. computed: the wire shows what it does to
        each packet, and wire.delivery computes that; else no packet is judged by itself where it
        is set. disorder: why packets may come out of order, or look lost to TCP.
    builtin: in words, what only server.py can do if it is not the default. newer: what only
        Debian 13's programs can do if it is not the default; newer_values: which values only they
        can.
    """

    subject: str
    quantity: Quantity
    tag: str | None = None
    key: str = ""
    field: str = ""
    required: bool = False
    follows: bool = False
    modelled: bool = True
    random: bool = False
    computed: bool = True
    disorder: str = ""
    builtin: str = ""
    newer: str = ""
    newer_values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for attribute in ("key", "field"):
            object.__setattr__(self, attribute, getattr(self, attribute) or self.name)

    @property
    def name(self) -> str:
        return self.quantity.name

    @cached_property
    def default(self) -> Any:
        """A trial's value where none is requested."""
        return self.quantity.defaults[0]


# In the order in which sweeps vary them, the slowest first, and in which --help has them.
_ROWS = (
    # Below 0.1 ms the guest's own processing outweighs the link.
    Parameter(NETWORK, Quantity(
        "rtt_ms", "an RTT", "ms", 0.1, 100_000, head="RTT", flag="--rtt", default="50",
        flag_help="round-trip times of the empty path",
        why="; over longer ones Linux's timers give the connection up (measured: from 101 s on)"),
        required=True),
    Parameter(NETWORK, Quantity(
        "bandwidth_kbps", "a bandwidth", "kbit/s", 1, 10_000_000, head="BW", label="bandwidth",
        flag="--bw", default="10000", flag_help="bandwidths of the bottleneck towards the client"),
        required=True),
    Parameter(NETWORK, Quantity(
        "uplink_kbps", "an uplink", "kbit/s", 1, 10_000_000, head="uplink", flag="--uplink",
        flag_help="bandwidths towards the server", default="as --bw"),
        key="uplink", follows=True),
    Parameter(NETWORK, Length(
        "queue", "a queue", head="queue", label="queue (packets, ms or BDP)", flag="--queue",
        flag_help=f"lengths of the bottleneck's queue; {AUTO}: one BDP, at least"
                  f" {LEAST_AUTO_PACKETS} packets", default=AUTO),
        field=PACKETS.name),
    Parameter(NETWORK, Word(
        "qdisc", "a queueing discipline", head="qdisc", label="queueing discipline",
        flag="--qdisc", default="fifo", known=("fifo", "fq", "fq_codel", "cake"),
        flag_help="the bottleneck's queue: fifo, fq_codel or cake; fq paces the server, before a"
                  " fifo"),
        tag="", modelled=False),
    # A smaller one in bursts of 1000 would be 0 in the kernel's 32 bits.
    Parameter(NETWORK, Quantity(
        "loss_percent", "a loss rate", "%", 0, 99, above=0.0001, head="loss",
        label="random loss towards the client", flag="--loss", default="0",
        flag_help="random loss towards the client"),
        tag="loss", random=True),
    Parameter(NETWORK, Quantity(
        "loss_burst", "a burst of losses", "packets", 1, 1000, head="burst",
        label="mean burst of losses", flag="--burst-loss", default="1",
        flag_help="how many packets --loss takes in a row on average (Gilbert's model)"),
        tag="burst"),
    Parameter(NETWORK, Quantity(
        "jitter_ms", "a jitter", "ms", 0, 2147, above=0.001, head="jitter",
        label="jitter of the delay towards the client", flag="--jitter", default="0",
        why=" (netem holds no more nanoseconds than 31 bits, and tc whole microseconds)",
        flag_help="standard deviations of the delay towards the client, normal distribution"),
        tag="jitter", random=True, disorder=OVERTAKEN),
    Parameter(RESPONSE, Quantity(
        "response_bytes", "a response", "bytes", 1, 50_000_000, whole=True, head="size",
        label="response", flag="--size", flag_help="responses' bodies", default="30000",
        why=" (body and packets of more do not fit in a guest's memory, 512 MB; measured: 70 MB do,"
            " 100 do not)"),
        required=True),
    Parameter(RESPONSE, Quantity(
        "request_bytes", "a request's body", "bytes", 0, 50_000_000, whole=True, head="request",
        label="request", flag="--request", default="0",
        flag_help="requests' bodies, which the client uploads (POST) and the server reads whole"
                  " before it answers; --size is then 1 kB, and the client's windows are compared,"
                  " unless you give --size and --iw",
        why=" (body and packets of more do not fit in a guest's memory, 512 MB)"),
        tag="request", builtin="a request with a body (request_bytes, --request)"),
    Parameter(RESPONSE, ClientWindow(
        "client_initcwnd", "a client's initial window", "segments", 0, 1000, whole=True,
        head="client's IW", label="client's initial window", flag="--client-iw",
        default=ClientWindow.DEFAULT, zero=ClientWindow.DEFAULT,
        flag_help="the client's initial windows, with which it begins to upload --request; default:"
                  " the kernel's own, which no route sets"),
        tag="clientiw"),
    Parameter(TCP, InitialWindow(
        "initcwnd", "an initial window", "segments", 1, 65_535, whole=True, head="IW",
        label="initial window", flag="--iw", default="10,30",
        flag_help="the server's initial windows; the others are compared with the first; default:"
                  " the kernel's own, which no route sets"),
        required=True),
    Parameter(TCP, ReceiveWindow(
        "initrwnd", "an initial receive window", "segments", 1, 65_535, whole=True, head="rwnd",
        label="initial receive window", flag="--rwnd", default="1000",
        flag_help="the client's initial receive windows; 45,fixed: it stays (--rwnd-growth)")),
    Parameter(TCP, Word(
        "rwnd_growth", "a receive window", head="rwnd growth",
        label="whether the receive window grows", flag="--rwnd-growth", default=GROWS,
        known=(GROWS, FIXED), flag_help="whether the client's receive window grows from --rwnd on"),
        tag="rwnd"),
    Parameter(TCP, Word(
        "congestion_control", "a congestion control", head="congestion control", flag="--cc",
        flag_help="the server's congestion controls; dctcp sets tcp_ecn=1 at both hosts",
        default="cubic")),
    Parameter(TCP, Quantity(
        "mss", "a segment", "bytes", 88, 1448, whole=True, head="segment", flag="--mss",
        flag_help="most data in a segment", default="1448", why=" (1460 less 12 of time stamps)"),
        tag="mss"),
    Parameter(RESPONSE, Quantity(
        "kept", "a number of earlier responses", "", 0, 100, whole=True, head="earlier",
        label="earlier responses on the connection", flag="--kept", default="0",
        flag_help="how many responses of the same size came before on the connection"),
        tag="kept"),
    Parameter(RESPONSE, Quantity(
        "idle_ms", "a pause", "ms", 0, 3_600_000, head="idle", label="pause before the request",
        flag="--idle", default="0",
        flag_help="pauses before the last request; --kept is then 1 unless you give it"),
        tag="idle"),
    Parameter(RESPONSE, Quantity(
        "gap_ms", "a pause", "ms", 0, 60_000, head="gap", label="time of the back-end",
        flag="--think", default="0",
        flag_help="times of the back-end: headers leave at once, the body after them"),
        builtin="a back-end (gap_ms, --think)"),
    Parameter(NETWORK, Quantity(
        "htb_burst_bytes", "a burst", "bytes", 0, 10_000_000, whole=True, head="HTB burst",
        label="burst of HTB, which shapes in the place of netem", default="0"),
        tag="htb", modelled=False),
    Parameter(PUBLISHED, Quantity(
        "integer_kbps", "a rate", "kbit/s", 0, 10_000_000, head="rate lost to integers",
        label="rate of a link whose Mbit/s an integer division made 0", default="0"),
        tag="integer"),
    Parameter(PUBLISHED, Quantity(
        "arp_ms", "a time", "ms", 0, 60_000, whole=True, head="ARP",
        label="ARP inside the time, asked again after", default="0"),
        tag="arp", modelled=False),
    Parameter(PUBLISHED, Sizes(
        "head", "the writes of the headers", "bytes", head="writes of the headers"),
        tag="head", modelled=False, builtin="writes of headers (head)"),
    Parameter(PUBLISHED, Word(
        "nagle", "Nagle's algorithm", head="Nagle", known=("off", "on"), default="off"),
        tag="nagle", modelled=False, builtin="Nagle's algorithm (nagle)"),
    Parameter(PUBLISHED, Word(
        "framing", "what ends a body", head="body ends by", known=("length", "close"),
        default="length"),
        tag="", modelled=False, builtin="a body without a length (framing)"),
    Parameter(TCP, Word(
        "window_by", "what sets the initial window", head="window set by",
        known=("route", "kernel"), default="route"),
        tag="windowby"),
    Parameter(PUBLISHED, Word(
        "loss_probes", "the server's tail loss probes", head="loss probes", known=("on", "off"),
        default="on"),
        tag="probes"),
    Parameter(PUBLISHED, Word(
        "receive_rules", "the rules of the receive window", head="receive window as in",
        known=("today", "linux3"), default="today"),
        tag=""),
    Parameter(PUBLISHED, Windows(
        "acts_as", "windows that act as others", "segments", head="window acts as"),
        tag="acts"),
    Parameter(PUBLISHED, Quantity(
        "send_buffer_bytes", "a send buffer", "bytes", 0, 212_992, whole=True, head="SO_SNDBUF",
        label="SO_SNDBUF of the server", default="0", zero="not set", why=" (net.core.wmem_max)"),
        tag="sndbuf", builtin="a send buffer of its own (send_buffer_bytes)"),
    Parameter(TLS, Quantity(
        "chain_bytes", "a certificate chain", "bytes", 0, 96_000, whole=True, head="chain",
        label="certificate chain", flag="--chain", default="0",
        flag_help="TLS 1.3 with a certificate chain of so many bytes, in DER; 0: plain HTTP (a page"
                  " over HTTP/2: 4000)",
        why=" (OpenSSL's clients take 100 kB)"),
        tag="chain"),
    Parameter(TLS, Word(
        "signature", "a signature", head="signature", label="signature of the certificates",
        flag="--signature", default="ed25519",
        known=("ed25519", "ecdsa", "rsa2048", "mldsa44", "mldsa65", "mldsa87", "slhdsa128s"),
        flag_help="signatures of the chains; the rest of a chain's bytes is an extension"),
        tag="signature", newer_values=("mldsa44", "mldsa65", "mldsa87", "slhdsa128s")),
    Parameter(TLS, Quantity(
        "intermediates", "a number of intermediates", "", 0, 8, whole=True, head="intermediates",
        label="intermediate certificates", flag="--intermediates", default="0",
        flag_help="intermediate certificates in a chain"),
        tag="intermediates"),
    Parameter(TLS, Quantity(
        "tickets", "a number of tickets", "", 0, 10, whole=True, head="tickets",
        label="session tickets", flag="--tickets", default="2",
        flag_help="session tickets that the server sends after a handshake"),
        tag="tickets"),
    Parameter(TLS, Quantity(
        "resumed", "a resumed session", "", 0, 1, whole=True, head="resumed",
        label="session resumed", flag="--resumed", default="0",
        flag_help="1: the session resumes that of an earlier connection, without a chain"),
        tag="resumed"),
    Parameter(TLS, Quantity(
        "early_data_bytes", "early data", "bytes", 0, 16_384, whole=True, head="early data",
        label="early data (0-RTT)", flag="--early-data", default="0",
        flag_help="0-RTT: a resumed session's request leaves with the client's hello, to nginx;"
                  " 1: as it is, else padded to so many bytes"),
        tag="early", newer="early data (0-RTT) (early_data_bytes, --early-data)"),
    Parameter(TLS, Quantity(
        "record_bytes", "a record", "bytes", 64, 16_384, whole=True, head="record",
        label="TLS record, and write", flag="--record", default="16384",
        flag_help="plain text in a TLS record; each is a write (nginx: ssl_buffer_size)"),
        tag="record"),
    Parameter(TLS, Quantity(
        "buffer_bytes", "a buffer", "bytes", 0, 65_536, whole=True, head="buffer",
        label="buffer of the first messages", flag="--tls-buffer", default="4096",
        flag_help="the buffer that the server writes its first messages through; 0: one write"),
        tag="buffer", builtin="a buffer of its own (buffer_bytes, --tls-buffer)"),
    Parameter(TLS, Word(
        "key_share", "a key share", head="key share", label="key exchange", flag="--key-share",
        default="x25519", known=("x25519", "x25519mlkem768"),
        flag_help="key exchanges that the client offers"),
        tag="key", newer_values=("x25519mlkem768",)),
    Parameter(SERVER, Word(
        "server", "a server", head="server", label="server", flag="--server", default="builtin",
        known=("builtin", "nginx", "own"),
        flag_help="the servers: server.py, the distribution's nginx (./install.sh --with-nginx),"
                  " your own (--server-command)"),
        tag=""),
    Parameter(SERVER, Word(
        "http", "a version of HTTP", head="HTTP", label="version of HTTP", flag="--http",
        default="1.1", known=("1.1", "2"),
        flag_help="the versions of HTTP; 2 is over TLS, and not from builtin"),
        tag="http"),
    Parameter(SERVER, Word(
        "system", "a system", head="system", label="system whose programs run", flag="--system",
        default="debian13 where --signature, --key-share or --early-data needs it, else here",
        known=("here", "debian13"),
        flag_help="whose programs guests run: this machine's, or Debian 13's with OpenSSL 3.5"
                  " (./install.sh --with-pq)"),
        follows=True),
    # Two kernels, or one with two values, run in guests of their own.
    Parameter(TCP, KernelName(
        "kernel", "a kernel", head="kernel", label="guest kernel", flag="--kernel",
        default="default",
        flag_help="guest kernels that ./install.sh --kernel NAME has built; default: the one that"
                  " runs use otherwise"),
        tag="kernel-"),
    Parameter(TCP, ModuleParameters(
        "module_parameter", "a parameter of a module", head="module parameter",
        label="parameter of a kernel's module", flag="--module-parameter", default="none",
        flag_help="parameters of the guest kernel's modules, as tcp_cubic.hystart=0"),
        tag="", modelled=False),
    # Which of them the model follows: MODELLED_SYSCTLS of workloads/fetch/record/evidence.py.
    Parameter(TCP, sysctls.Sysctls(
        "sysctl", "a sysctl", head="sysctl", label="sysctl of both hosts", flag="--sysctl",
        default=sysctls.NONE,
        flag_help="TCP settings of both hosts that differ from a current distribution's; of several"
                  " names each combination"),
        tag=""),
)

PARAMETERS = {row.name: row for row in _ROWS}
# What a sweep has a list of. Initial windows are compared within each cell, so they stand apart.
SWEPT = tuple(name for name in PARAMETERS if name != "initcwnd")


def default(name: str) -> Any:
    """The default of a trial's field."""
    return PARAMETERS[name].default


def of_subject(subject: str) -> tuple[Parameter, ...]:
    """The rows of a subject's parameters."""
    return tuple(row for row in _ROWS if row.subject == subject)
