"""A trial: one fetch under one setting, as plain data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from lab.core.scenario.quantities import AUTO
from lab.core.words import exact
from lab.fetches.scenario import buffers, own_server, setup
from lab.tcp.packets import MSS, TIMESTAMP_BYTES

# What a field of a trial says of itself; its unit, range, flag and words stand in
# lab.core.scenario.quantities, under its name.
SWEPT = "swept"  # a sweep has a list of it, the field's default where it is left out
MODELLED = "modelled"  # whether the model of TCP follows any other value than the default
FEATURE = "feature"  # whose rules (lab/fetches/features) it is requested by
# Its values that only Debian 13's programs have; ANY for all but its default.
NEEDS, ANY = "newer", ("any",)
# What a field is, besides its default, where nobody requested it: a table does not show it.
UNSAID = "unsaid"


def swept(modelled: bool = True, newer: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    """Marks a field that a sweep has a list of."""
    return {SWEPT: True, MODELLED: modelled, NEEDS: newer, **more}


def network(tag: str, random: bool = False, modelled: bool = True, computed: bool = True,
            disorder: str = "") -> dict[str, Any]:
    """Marks a field as one of the network's shape, applied by the worker under its name.

    tag: before its value in a trial's id, where it is not 0. random: what it
    does is drawn from the trial's seed. computed: lab.tcp.delivery knows what it does to
    each packet (lab.fetches.verify.path.ways); else no packet is judged by itself where it is
    set. disorder: why packets may come out of order, or TCP may hold some for lost.
    """
    return swept(modelled, shape=tag, random=random, computed=computed, disorder=disorder)


def switch(tag: str, modelled: bool = True) -> dict[str, Any]:
    """Marks a field as something that a published set-up did otherwise; off by default.

    tag: before its value in a trial's id, where it is on.
    """
    return swept(modelled, switch=tag)


def tls(*newer: str) -> dict[str, Any]:
    """Marks a field that says how TLS is spoken, to the worker under its name."""
    return {**swept(newer=newer), "tls": True, FEATURE: "tls"}


TIMEOUTS_S = 930.0  # after which Linux gives a connection up (tcp_retries2)
BUILTIN, OWN, NGINX, HTTP_1 = "builtin", "own", "nginx", "1.1"  # first and last: unless it says
HTTP_3 = "3"  # over QUIC
HERE, NEWER = "here", "debian13"  # whose programs run
OVERTAKEN = "packets that jitter let overtake each other look lost (RACK, duplicate ACKs)"


@dataclass(frozen=True, slots=True)
class Trial:
    """What is requested of the network, TCP and the client for one fetch.

    rtt_ms: propagation delay, both ways together.
    bandwidth_kbps, uplink_kbps: bottleneck towards the client, towards the
        server, in kbit/s, Ethernet headers counted.
    queue_packets: limit of either bottleneck; queue_from: what it follows from,
        as "50ms", "1bdp" or "auto", "" for itself. qdisc: fifo, fq_codel or cake at the
        bottleneck towards the client, or fq at the server with a fifo there.
    loss_percent: random loss towards the client; loss_burst: so many packets in
        a row, on average.
    jitter_ms: standard deviation of the delay towards the client, normal
        distribution; packets overtake each other.
    initcwnd, initrwnd: route metrics at the server, at the client (segments).
    response_bytes: size of the body; headers come on top.
    mss: most data in a segment, as the client asks for it.
    repeat: 1, 2, … for the same setting measured again.
    seed: of what is random.
    burst_bytes, gap_ms: a response in two stages: headers and this much of the
        body at once, the rest after the back-end's time; gap_ms 0 for one write.
    earlier_bytes: body of a response fetched before on the same connection;
        0 for a connection of its own. kept: so many responses like the one that
        counts, in its place; idle_ms: the client's pause after them.

    chain_bytes: TLS 1.3 with certificates of so many bytes, DER, 0 for plain HTTP.
    signature: of those certificates: ed25519, ecdsa (P-256), rsa2048, or one of
        OpenSSL 3.5: mldsa44, mldsa65, mldsa87, slhdsa128s.
    key_share: what the client offers for the key exchange, x25519 or x25519mlkem768.
    intermediates: certificates between the server's own and the root.
    tickets: session tickets after the handshake, a write each.
    resumed: 1 for the session of an earlier connection.
    early_data_bytes: of a request that leaves with the client's hello, 0 for none; curl's own,
        or padded to so many.
    record_bytes: most plain text in a record of the response, a write each.
    buffer_bytes: through which the server's first messages leave, in writes; 0
        for one write.
    system: whose programs run, HERE for the machine's (engines/system.py).

    server: who answers, "builtin" for server.py. http: the version of HTTP.
    own_server: what a server of the user's own is (lab.fetches.scenario.own_server).

    What published set-ups did otherwise, each off by default:

    htb_burst_bytes: HTB with this burst shapes, not netem.
    integer_kbps: rates in kbit/s are divided by 1000 as integers; a link that
        gets 0 Mbit/s has this rate.
    arp_ms: the network is new, and who asks for an address does again after so long.
    head: the sizes of the headers' writes, "17+38+2"; nagle: "on" or "off".
    framing: "close" where the connection's end is the body's.
    loss_probes: "off" for a server without tail loss probes.
    receive_rules: "linux3" for tcp_select_initial_window of Linux 2.6.39 to 3.x.
    acts_as: initial windows that act as others, "10=7,16=8".

    send_buffer_bytes: that the server asks for (SO_SNDBUF), 0 where it does not.

    For a client and a response drawn from a population (lab.fetches.features.population.draws):

    part: which population or variant; sample: its number there.
    key_rtt_ms, key_bandwidth_kbps: what the paper files the response under.
    weight: the share of the population that it stands for.
    """

    scenario: str
    rtt_ms: float = field(metadata=network("rtt"))
    bandwidth_kbps: float = field(metadata=network("bw"))
    uplink_kbps: float = field(metadata=network("up"))
    queue_packets: int = field(metadata=network("q"))
    loss_percent: float = field(metadata=network("loss", random=True))
    initcwnd: int
    initrwnd: int
    congestion_control: str
    client: str
    response_bytes: int
    repeat: int
    seed: int = 0
    burst_bytes: int = 0
    gap_ms: float = field(default=0.0, metadata=swept())
    earlier_bytes: int = 0
    part: str = ""
    sample: int = 0
    key_rtt_ms: float | None = None
    key_bandwidth_kbps: float | None = None
    weight: float = 1.0
    jitter_ms: float = field(default=0.0, metadata=network("jitter", random=True,
                                                           disorder=OVERTAKEN))
    loss_burst: float = field(default=1.0, metadata=network("burst"))
    qdisc: str = field(default="fifo", metadata=network("", modelled=False))
    queue_from: str = field(default="", metadata={UNSAID: AUTO})
    mss: int = field(default=MSS, metadata=swept())
    kept: int = field(default=0, metadata=swept())
    idle_ms: float = field(default=0.0, metadata=swept())
    htb_burst_bytes: int = field(default=0, metadata=network("htb", modelled=False))
    integer_kbps: float = field(default=0.0, metadata=switch("integer"))
    arp_ms: int = field(default=0, metadata=switch("arp", modelled=False))
    head: str = field(default="", metadata=switch("head", modelled=False))
    nagle: str = field(default="off", metadata=switch("nagle", modelled=False))
    framing: str = field(default="length", metadata=switch("", modelled=False))
    loss_probes: str = field(default="on", metadata=switch("probes"))
    receive_rules: str = field(default="today", metadata=switch(""))
    acts_as: str = field(default="", metadata=switch("acts"))
    send_buffer_bytes: int = field(default=0, metadata=switch("sndbuf"))
    chain_bytes: int = field(default=0, metadata=swept(feature="tls"))
    signature: str = field(default="ed25519", metadata=tls(
        "mldsa44", "mldsa65", "mldsa87", "slhdsa128s"))
    intermediates: int = field(default=0, metadata=tls())
    tickets: int = field(default=2, metadata=tls())
    resumed: int = field(default=0, metadata=tls())
    early_data_bytes: int = field(default=0, metadata=tls(*ANY))
    record_bytes: int = field(default=16_384, metadata=tls())
    buffer_bytes: int = field(default=4096, metadata=tls())
    key_share: str = field(default="x25519", metadata=tls("x25519mlkem768"))
    server: str = field(default=BUILTIN, metadata=swept())
    http: str = field(default=HTTP_1, metadata=swept(newer=(HTTP_3,)))
    system: str = HERE
    own_server: str = ""

    @property
    def id(self) -> str:
        """Names the trial in files and messages; unique within a run."""
        if self.part:
            return f"{self.part}-{self.sample}-iw{self.initcwnd}-{self.repeat}"
        shape = "-".join(
            f"{each.metadata['shape']}{value if isinstance(value, str) else exact(value)}"
            for each, value in zip(_SHAPE, self.shape) if value not in (0, each.default))
        seed = f"-seed{self.seed}" if self.is_random else ""
        stages = f"-burst{self.burst_bytes}-gap{exact(self.gap_ms)}" if self.gap_ms else ""
        earlier = f"-after{self.earlier_bytes}B" if self.earlier_bytes else ""
        earlier += f"-kept{self.kept}" if self.kept else ""
        earlier += f"-idle{exact(self.idle_ms)}" if self.idle_ms else ""
        segment = f"-mss{self.mss}" if self.mss != MSS else ""
        queue = f"-{self.queue_from}" if self.queue_from else ""
        otherwise = "".join(
            f"-{each.metadata['switch']}{value if isinstance(value, str) else exact(value)}"
            for each in _SWITCHES if (value := getattr(self, each.name)) != each.default)
        tls = f"-chain{self.chain_bytes}" if self.chain_bytes else ""
        tls += "".join(f"-{each.name.partition('_')[0]}{value}" for each in _TLS
                       if (value := getattr(self, each.name)) != each.default)
        tls += f"-{self.server}" if self.server != BUILTIN else ""
        tls += f"-http{self.http}" if self.http != HTTP_1 else ""
        tls += f"-{self.system}" if self.system != HERE else ""
        return (f"{shape}{queue}{otherwise}{seed}-iw{self.initcwnd}-rw{self.initrwnd}{segment}"
                f"-{self.congestion_control}-{self.client}{earlier}{tls}"
                f"-{self.response_bytes}B{stages}-{self.repeat}")

    @property
    def shape(self) -> tuple[Any, ...]:
        """The network's values, in the order of NETWORK; trials of one shape share a network."""
        return tuple(getattr(self, name) for name in NETWORK)

    @property
    def down_kbps(self) -> float:
        """The rate of the link towards the client."""
        return setup.limited_kbps(self.bandwidth_kbps, self.integer_kbps)

    @property
    def up_kbps(self) -> float:
        """The rate of the link towards the server."""
        return setup.limited_kbps(self.uplink_kbps, self.integer_kbps)

    @property
    def server_window(self) -> int:
        """The initial window that the server's route has, segments."""
        return setup.acting(self.acts_as, self.initcwnd)

    @property
    def client_window(self) -> int:
        """The initial receive window that the client's route has, segments."""
        return setup.receive_window(self.receive_rules, self.initrwnd)

    def with_buffers(self, sysctls: Mapping[str, str]) -> dict[str, str]:
        """A scenario's sysctls, and the buffers that this trial has beside them."""
        return {**buffers.needed(self.server_window, self.client_window,
                                 self.mss + TIMESTAMP_BYTES), **sysctls}

    @property
    def is_secure(self) -> bool:
        """Whether it goes over TLS."""
        return bool(self.chain_bytes or self.own_server and own_server.parsed(self.own_server).ca)

    @property
    def writes(self) -> tuple[int, ...]:
        """The sizes of the headers' writes, () where they leave with the body."""
        return tuple(map(int, filter(None, self.head.split("+"))))

    @property
    def cannot_connect(self) -> bool:
        """Whether the client gives up asking for the server's address before the answer comes."""
        return 0 < setup.ARP_PROBES * self.arp_ms < self.rtt_ms

    @property
    def is_modelled(self) -> bool:
        """Whether the model of TCP follows all that is requested by itself."""
        return all(getattr(self, each.name) == each.default for each in UNMODELLED)

    @property
    def is_computed(self) -> bool:
        """Whether what the network does to each packet can be computed."""
        return all(getattr(self, each.name) == each.default for each in _SHAPE
                   if not each.metadata["computed"])

    @property
    def disorder(self) -> str:
        """Why packets may come out of order, or look lost to TCP; "" where none can."""
        return next((each.metadata["disorder"] for each in _SHAPE if each.metadata["disorder"]
                     and getattr(self, each.name) != each.default), "")

    @property
    def is_random(self) -> bool:
        """Whether chance decides on its network."""
        return is_random(dict(zip(NETWORK, self.shape)))

    @property
    def queue(self) -> str:
        """The queue's length as it was requested (lab.core.scenario.quantities.Length)."""
        return self.queue_from or str(self.queue_packets)

    @property
    def before(self) -> tuple[int, ...]:
        """The bodies that are fetched first on the same connection, in bytes."""
        return (self.earlier_bytes,) if self.earlier_bytes else (self.response_bytes,) * self.kept

    @property
    def deadline_s(self) -> float:
        """Seconds of the network's time after which the client gives up.

        Room for a handshake that is retransmitted, for every round trip that
        slow start could need, for sending everything thrice, and for as long as
        TCP tries where losses come in a row.
        """
        sent_bytes = self.response_bytes + sum(self.before) + 2 * self.chain_bytes
        return (60 + 20 * self.rtt_ms * (1 + self.kept) / 1000
                + 3 * sent_bytes * 8 / (min(self.bandwidth_kbps, self.down_kbps) * 1000)
                + (self.gap_ms + self.idle_ms) / 1000 + (TIMEOUTS_S if self.loss_burst > 1 else 0))

    def job(self) -> dict[str, Any]:
        """The trial as the worker reads it."""
        more: dict[str, Any] = {}
        if self.mss != MSS:
            more["options"] = {"advertised_mss": self.mss + TIMESTAMP_BYTES}
        if grown := self.with_buffers({}):
            more["buffers"] = grown
        if self.own_server:
            more["own"] = own_server.parsed(self.own_server).job()
        if self.is_secure:
            more["tls"] = {**{name: getattr(self, name) for name in
                              ("chain_bytes", *(each.name for each in _TLS))},
                           "apart_s": self._apart_s if self.resumed else 0}
        more.update({name: value for name, value, usual in (
            ("server", self.server, BUILTIN), ("http", self.http, HTTP_1),
            ("system", self.system, HERE)) if value != usual})
        if self.idle_ms:
            more["think_s"] = [*(0.0 for _ in self.before), self.idle_ms / 1000]
        if self.arp_ms:
            more["arp_ms"] = self.arp_ms
        if self.loss_probes == "off":
            more["sysctls"] = {"net.ipv4.tcp_early_retrans": "0"}
        return {"kind": "fetch", "id": self.id, "initcwnd": self.server_window,
                "initrwnd": self.client_window, "congestion_control": self.congestion_control,
                "client": self.client, "paths": self._paths(), "deadline_s": self.deadline_s,
                "shape": {**dict(zip(NETWORK, self.shape)), "bandwidth_kbps": self.down_kbps,
                          "uplink_kbps": self.up_kbps, "seed": self.seed}, **more}

    @property
    def _apart_s(self) -> int:
        """From one connection to the next, so that the first one's last packets have left."""
        return math.ceil(2 + 10 * self.rtt_ms / 1000
                         + 2 * self.chain_bytes * 8 / (self.bandwidth_kbps * 1000))

    def _paths(self) -> list[str]:
        """What is fetched, in order, on one connection; the last is what is measured."""
        stages = [f"burst={self.burst_bytes}&gap_ms={exact(self.gap_ms)}"] if self.gap_ms else []
        requested = [*([f"head={','.join(map(str, self.writes))}"] if self.head else []),
                 *(["nagle=1"] if self.nagle == "on" else []),
                 *(["until_close=1"] if self.framing == "close" else []),
                 *([f"sndbuf={self.send_buffer_bytes}"] if self.send_buffer_bytes else [])]
        sizes = (*self.before, *((1,) if self.resumed else ()), self.response_bytes)
        if self.own_server:
            own = own_server.parsed(self.own_server).url_path
            return [own.replace(own_server.SIZE, str(size)) for size in sizes]
        return [*(_path(size, requested) for size in self.before),
                *(["/1"] if self.resumed else []),
                _path(self.response_bytes, stages + requested)]


def _path(size: int, requested: Sequence[str]) -> str:
    return f"/{size}{'?' if requested else ''}{'&'.join(requested)}"


_SHAPE = tuple(each for each in fields(Trial) if "shape" in each.metadata)
_SWITCHES = tuple(each for each in fields(Trial) if "switch" in each.metadata)
_TLS = tuple(each for each in fields(Trial) if "tls" in each.metadata)
NETWORK = tuple(each.name for each in _SHAPE)
SWITCHES = tuple(each.name for each in _SWITCHES)
UNMODELLED = tuple(each for each in fields(Trial) if not each.metadata.get(MODELLED, True))
RANDOM = tuple(each.name for each in _SHAPE if each.metadata["random"])


def is_random(values: dict[str, Any]) -> bool:
    """Whether chance decides on a network of these values, by name."""
    return any(values.get(name) for name in RANDOM)
