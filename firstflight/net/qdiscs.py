"""Queueing disciplines over netlink: requests to a kernel, and its reports.

The bytes are those that `tc` (iproute2) sends for the commands of testbed/network/ports.py. The
structures are from include/uapi/linux/pkt_sched.h. netem's options are in net/netem.py.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NamedTuple

from firstflight.net.netlink import attribute, attributes, text_attribute, u32, u64
from firstflight.net.tc import HTB_CEILING_BURST_BYTES, MOST_U32, htb_ticks

NEWQDISC, DELQDISC, GETQDISC = 36, 37, 38  # types of messages: RTM_…
NEWTCLASS, GETTCLASS = 40, 42
ROOT = 0xFFFFFFFF  # TC_H_ROOT: the parent of a root qdisc, and of a class at the top
_TCA_KIND, _TCA_OPTIONS, _TCA_STATS2 = 1, 2, 7
_TCA_STATS_BASIC, _TCA_STATS_QUEUE = 1, 3
_TCMSG = struct.Struct("=BxxxiIII")  # family, interface, handle, parent, info
_BASIC = struct.Struct("=QI")  # struct gnet_stats_basic: bytes, packets
_QUEUE = struct.Struct("=III")  # struct gnet_stats_queue: packets queued, bytes, drops

_RATESPEC = struct.Struct("=BBHhHI")  # struct tc_ratespec
_LINKLAYER_ETHERNET = 1
_TBF_PARMS, _TBF_RATE64, _TBF_BURST = 1, 4, 6
_TBF_LIMITS = struct.Struct("=III")  # struct tc_tbf_qopt after its two rates: limit, buffer, mtu
_HTB_PARMS, _HTB_INIT, _HTB_RATE64, _HTB_CEIL64 = 1, 2, 6, 7
_HTB_GLOB = struct.Struct("=5I")  # struct tc_htb_glob: version, rate to quantum, default class
# struct tc_htb_opt after its rate and ceiling: buffer, buffer of the ceiling, quantum, level, prio.
_HTB_BUFFERS = struct.Struct("=5I")
_FQ_CODEL_LIMIT, _FQ_CODEL_ECN = 2, 4
(_CAKE_BASE_RATE64, _CAKE_ATM, _CAKE_FLOW_MODE, _CAKE_OVERHEAD, _CAKE_AUTORATE, _CAKE_MEMORY,
 _CAKE_RAW) = 2, 4, 5, 6, 9, 10, 12
CAKE_FLOWS = 4  # a flow mode: one queue for each connection


@dataclass(frozen=True)
class InstalledQdisc:
    """One qdisc or class, from a kernel's report."""

    interface: int  # its number
    handle: int  # tc's 1:1 is 0x10001
    parent: int  # a handle, or ROOT
    kind: str
    options: bytes
    bytes: int = 0  # sent so far
    packets: int = 0  # sent so far
    drops: int = 0  # packets dropped so far
    queued: int = 0  # packets in the queue now

    @property
    def major(self) -> int:
        """The number before the colon: 1 for qdisc `1:` and for its class `1:1`."""
        return self.handle >> 16

    @property
    def is_root(self) -> bool:
        """Whether it is an interface's root qdisc, or a class at the top."""
        return self.parent == ROOT


def request(interface: int, number: int, kind: str, options: bytes) -> bytes:
    """The request to replace qdisc `number:` of an interface: 1 is the root, 2 its child, …"""
    parent = ROOT if number == 1 else (number - 1) << 16 | 1
    return (_TCMSG.pack(0, interface, number << 16, parent, 0)
            + text_attribute(_TCA_KIND, kind) + attribute(_TCA_OPTIONS, options))


def class_request(interface: int, number: int, kind: str, options: bytes) -> bytes:
    """The request to replace class `number:1` of an interface."""
    return (_TCMSG.pack(0, interface, number << 16 | 1, number << 16, 0)
            + text_attribute(_TCA_KIND, kind) + attribute(_TCA_OPTIONS, options))


def class_question(interface: int) -> bytes:
    """The request for all classes of an interface."""
    return _TCMSG.pack(0, interface, 0, 0, 0)


def removal(interface: int) -> bytes:
    """The request to remove all qdiscs of an interface."""
    return _TCMSG.pack(0, interface, 0, ROOT, 0)


def question() -> bytes:
    """The request for all qdiscs of a namespace; a kernel cannot be asked for fewer."""
    return _TCMSG.pack(0, 0, 0, 0, 0)


def read_qdisc(answer: bytes) -> InstalledQdisc:
    """The qdisc or class in one answer to a question. Raises ValueError if the answer is cut."""
    if len(answer) < _TCMSG.size:
        raise ValueError("a qdisc that is cut")
    _, interface, handle, parent, _ = _TCMSG.unpack_from(answer)
    fields = attributes(answer[_TCMSG.size:])
    kind = fields.get(_TCA_KIND, b"").rstrip(b"\0").decode("ascii", "replace")

    counters = attributes(fields.get(_TCA_STATS2, b""))
    basic = counters.get(_TCA_STATS_BASIC, b"").ljust(_BASIC.size, b"\0")
    sent_bytes, packets = _BASIC.unpack_from(basic)
    queue = counters.get(_TCA_STATS_QUEUE, b"").ljust(_QUEUE.size, b"\0")
    queued, _, drops = _QUEUE.unpack_from(queue)
    return InstalledQdisc(interface, handle, parent, kind=kind,
                          options=fields.get(_TCA_OPTIONS, b""), bytes=sent_bytes,
                          packets=packets, drops=drops, queued=queued)


# Token buckets -------------------------------------------------------------------------

class Bucket(NamedTuple):
    """The options of a class of HTB, or of tbf. Rates are bytes a second, bursts are ticks."""

    rate: int
    ceiling: int
    burst: int
    ceiling_burst: int
    level: int = 0  # of HTB's class, above 0 if it has children
    limit_bytes: int = 0  # of tbf's queue
    peak_rate: int = 0  # of tbf's second bucket; 0 for none
    mtu: int = 0  # of tbf's second bucket; 0 for none


def tbf(rate: int, burst_bytes: int, limit_bytes: int) -> bytes:
    """The options of a token bucket. rate: bytes a second."""
    no_peak_rate = bytes(_RATESPEC.size)
    parameters = _ratespec(rate) + no_peak_rate + _TBF_LIMITS.pack(limit_bytes, 0, 0)
    options = attribute(_TBF_PARMS, parameters) + u32(_TBF_BURST, burst_bytes)
    if rate > MOST_U32:
        options += u64(_TBF_RATE64, rate)
    return options


def read_tbf(options: bytes) -> Bucket:
    """The bucket of tbf's options. Raises ValueError if they are not tbf's."""
    fields = attributes(options)
    parameters = fields.get(_TBF_PARMS, b"")
    if len(parameters) < 2 * _RATESPEC.size + _TBF_LIMITS.size:
        raise ValueError(f"{len(options)} bytes are not options of tbf")
    limit_bytes, burst, mtu = _TBF_LIMITS.unpack_from(parameters, 2 * _RATESPEC.size)
    rate = _rate(parameters, fields.get(_TBF_RATE64))
    peak_rate = _rate(parameters[_RATESPEC.size:], None)
    return Bucket(rate=rate, ceiling=rate, burst=burst, ceiling_burst=0, limit_bytes=limit_bytes,
                  peak_rate=peak_rate, mtu=mtu)


HTB_GLOBAL = attribute(_HTB_INIT, _HTB_GLOB.pack(3, 10, 1, 0, 0))  # default class 1


def htb_class(rate: int, burst_bytes: int) -> bytes:
    """The options of HTB's class for `rate … burst …`, with a ceiling equal to the rate.

    rate: bytes a second. The ceiling's burst is tc's MTU, so the ceiling limits what leaves: a
    packet leaves while neither bucket is overdrawn (htb_class_mode).
    """
    burst, ceiling_burst = htb_ticks(rate, burst_bytes), htb_ticks(rate, HTB_CEILING_BURST_BYTES)
    buffers = _HTB_BUFFERS.pack(burst, ceiling_burst, 0, 0, 0)
    options = attribute(_HTB_PARMS, _ratespec(rate) * 2 + buffers)
    if rate > MOST_U32:
        options += u64(_HTB_RATE64, rate) + u64(_HTB_CEIL64, rate)
    return options


def has_htb_class(options: bytes) -> bool:
    """Whether options of HTB include those of a class."""
    return _HTB_PARMS in attributes(options)


def htb_default(options: bytes) -> int:
    """The class of packets that no filter classifies; 1 if these are the options of a class only.
    """
    fields = attributes(options)
    if _HTB_INIT not in fields:
        return 1
    _, _, default_class, _, _ = _HTB_GLOB.unpack_from(fields[_HTB_INIT])
    return int(default_class)


def read_htb_class(options: bytes) -> Bucket:
    """The buckets of a class's options. Raises ValueError if they are not a class's."""
    fields = attributes(options)
    parameters = fields.get(_HTB_PARMS, b"")
    if len(parameters) < 2 * _RATESPEC.size + _HTB_BUFFERS.size:
        raise ValueError(f"{len(options)} bytes are not options of a class of HTB")
    burst, ceiling_burst, _, level, _ = _HTB_BUFFERS.unpack_from(parameters, 2 * _RATESPEC.size)
    return Bucket(rate=_rate(parameters, fields.get(_HTB_RATE64)),
                  ceiling=_rate(parameters[_RATESPEC.size:], fields.get(_HTB_CEIL64)),
                  burst=burst, ceiling_burst=ceiling_burst, level=level)


def _ratespec(rate: int) -> bytes:
    """A struct tc_ratespec of Ethernet, which holds rates below 4 GB/s. rate: bytes a second."""
    return _RATESPEC.pack(0, _LINKLAYER_ETHERNET, 0, 0, 0, min(rate, MOST_U32))


def _rate(spec: bytes, rate64: bytes | None) -> int:
    """Bytes a second: from the 64-bit attribute if there is one, else from a tc_ratespec."""
    return int.from_bytes(rate64, "little") if rate64 else int(_RATESPEC.unpack_from(spec)[-1])


# Managed queues ------------------------------------------------------------------------

def fq_codel(limit_packets: int) -> bytes:
    """The options of an fq_codel that drops packets and marks none."""
    return u32(_FQ_CODEL_LIMIT, limit_packets) + u32(_FQ_CODEL_ECN, 0)


def cake(rate: int, memory_bytes: int) -> bytes:
    """The options of cake for `bandwidth … raw flows memlimit …`. rate: bytes a second."""
    return (u64(_CAKE_BASE_RATE64, rate) + u32(_CAKE_ATM, 0)
            + u32(_CAKE_FLOW_MODE, CAKE_FLOWS) + u32(_CAKE_OVERHEAD, 0) + u32(_CAKE_RAW, 0)
            + u32(_CAKE_AUTORATE, 0) + u32(_CAKE_MEMORY, memory_bytes))
