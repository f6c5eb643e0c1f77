"""Queueing disciplines as netlink has them: requests to a kernel, and what it reports.

The bytes are those that `tc` (iproute2) sends for the commands that
engines/network/ports.py prints; structures from include/uapi/linux/pkt_sched.h.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from engines.network.netlink import attribute, attributes, u32
from net.tc import HTB_CEILING_BURST_BYTES, MOST_U32

RTM_NEWQDISC, RTM_DELQDISC, RTM_GETQDISC = 36, 37, 38
RTM_NEWTCLASS, RTM_GETTCLASS = 40, 42
_TCA_KIND, _TCA_OPTIONS, _TCA_STATS2 = 1, 2, 7
_TCA_STATS_BASIC, _TCA_STATS_QUEUE = 1, 3
_TC_H_ROOT = 0xFFFFFFFF
_TCMSG = struct.Struct("=BxxxiIII")  # family, interface, handle, parent, info

_TBF_PARMS, _TBF_RATE64, _TBF_BURST = 1, 4, 6
_TBF_QOPT = struct.Struct("=BBHhHIBBHhHIIII")  # struct tc_tbf_qopt with its two tc_ratespec
_LINKLAYER_ETHERNET = 1
_HTB_PARMS, _HTB_INIT, _HTB_RATE64, _HTB_CEIL64 = 1, 2, 6, 7
_RATESPEC = struct.Struct("=BBHhHI")  # struct tc_ratespec
_HTB_GLOB = struct.Struct("=5I")  # struct tc_htb_glob: version, rate to quantum, default class
_HTB_BUFFERS = struct.Struct("=5I")  # of struct tc_htb_opt, behind its rate and ceiling
_FQ_CODEL_LIMIT, _FQ_CODEL_ECN = 2, 4
(_CAKE_BASE_RATE64, _CAKE_ATM, _CAKE_FLOW_MODE, _CAKE_OVERHEAD, _CAKE_AUTORATE, _CAKE_MEMORY,
 _CAKE_RAW) = 2, 4, 5, 6, 9, 10, 12
_CAKE_FLOWS = 4


@dataclass(frozen=True)
class InstalledQdisc:
    """One qdisc, as a kernel reports it. handle: 1 for `1:`; bytes, packets: sent."""

    interface: int
    handle: int
    root: bool
    kind: str
    options: bytes
    bytes: int
    packets: int
    drops: int
    queued: int


def request(interface: int, number: int, kind: str, options: bytes) -> bytes:
    """Replace qdisc `number`: of an interface, counted from the root, 1, each in the one before."""
    parent = _TC_H_ROOT if number == 1 else (number - 1) << 16 | 1
    return (_TCMSG.pack(0, interface, number << 16, parent, 0)
            + attribute(_TCA_KIND, kind.encode() + b"\0") + attribute(_TCA_OPTIONS, options))


def class_request(interface: int, number: int, kind: str, options: bytes) -> bytes:
    """Replace class 1 of qdisc `number`: of an interface."""
    return (_TCMSG.pack(0, interface, number << 16 | 1, number << 16, 0)
            + attribute(_TCA_KIND, kind.encode() + b"\0") + attribute(_TCA_OPTIONS, options))


def class_question(interface: int) -> bytes:
    """For all classes of an interface."""
    return _TCMSG.pack(0, interface, 0, 0, 0)


def removal(interface: int) -> bytes:
    """Remove all qdiscs of an interface."""
    return _TCMSG.pack(0, interface, 0, _TC_H_ROOT, 0)


def question() -> bytes:
    """For all qdiscs of a namespace: kernels take no narrower one."""
    return _TCMSG.pack(0, 0, 0, 0, 0)


def parsed(answer: bytes) -> InstalledQdisc:
    """The qdisc of one answer to the question."""
    _, interface, handle, parent, _ = _TCMSG.unpack_from(answer)
    fields = attributes(answer[_TCMSG.size:])
    counters = attributes(fields.get(_TCA_STATS2, b""))
    sent_bytes, packets = struct.unpack_from("=QI", counters.get(_TCA_STATS_BASIC, bytes(12)))
    queued, _, drops = struct.unpack_from("=III", counters.get(_TCA_STATS_QUEUE, bytes(12)))
    return InstalledQdisc(interface, handle >> 16, parent == _TC_H_ROOT,
                          fields[_TCA_KIND].rstrip(b"\0").decode(),
                          fields.get(_TCA_OPTIONS, b""), sent_bytes, packets, drops, queued)


def ticks(microseconds: int) -> int:
    """The kernel's unit for a delay is 64 ns (PSCHED_SHIFT); tc cuts off what is over."""
    return microseconds * 125 // 8


# Other queues --------------------------------------------------------------------------

def tbf(rate: int, burst_bytes: int, limit_bytes: int) -> bytes:
    """The options of a token bucket. rate: bytes a second."""
    parameters = _TBF_QOPT.pack(0, _LINKLAYER_ETHERNET, 0, 0, 0, min(rate, MOST_U32),
                                0, 0, 0, 0, 0, 0, limit_bytes, 0, 0)
    return (attribute(_TBF_PARMS, parameters) + u32(_TBF_BURST, burst_bytes)
            + (attribute(_TBF_RATE64, struct.pack("=Q", rate)) if rate > MOST_U32 else b""))


HTB_GLOBAL = attribute(_HTB_INIT, _HTB_GLOB.pack(3, 10, 1, 0, 0))  # default class 1


def htb_class(rate: int, burst_bytes: int) -> bytes:
    """The options of HTB's class as `rate … burst …`: the ceiling is the rate.

    rate: bytes a second. The ceiling's own burst is tc's MTU, so that this is what
    limits (htb_class_mode): a packet leaves while neither bucket is overdrawn.
    """
    spec = _RATESPEC.pack(0, _LINKLAYER_ETHERNET, 0, 0, 0, min(rate, MOST_U32))
    buffers = (htb_ticks(rate, burst_bytes), htb_ticks(rate, HTB_CEILING_BURST_BYTES))
    large = b"".join(attribute(kind, struct.pack("=Q", rate)) for kind in (
        _HTB_RATE64, _HTB_CEIL64)) if rate > MOST_U32 else b""
    return attribute(_HTB_PARMS, spec * 2 + _HTB_BUFFERS.pack(*buffers, 0, 0, 0)) + large


def htb_ticks(rate: int, size_bytes: int) -> int:
    """How long so many bytes take, as tc counts it (tc_calc_xmittime): at least a tick."""
    return max(ticks(size_bytes * 1_000_000 // rate), 1)


def htb_values(options: bytes) -> dict[str, int]:
    """Values of HTB's class: "rate" in bytes a second, "burst" and "cburst" in ticks.

    options: as a kernel reports them. Raises ValueError where they are no class's.
    """
    fields = attributes(options)
    parameters = fields.get(_HTB_PARMS, b"")
    if len(parameters) < 2 * _RATESPEC.size + _HTB_BUFFERS.size:
        raise ValueError(f"{len(options)} bytes are no options of a class of HTB")
    *_, rate = _RATESPEC.unpack_from(parameters)
    if _HTB_RATE64 in fields:
        (rate,) = struct.unpack("=Q", fields[_HTB_RATE64])
    burst, ceiling_burst, *_ = _HTB_BUFFERS.unpack_from(parameters, 2 * _RATESPEC.size)
    return {"rate": rate, "burst": burst, "cburst": ceiling_burst}


def fq_codel(limit_packets: int) -> bytes:
    """The options of fq_codel that drops and does not mark."""
    return u32(_FQ_CODEL_LIMIT, limit_packets) + u32(_FQ_CODEL_ECN, 0)


def cake(rate: int, memory_bytes: int) -> bytes:
    """The options of cake as `bandwidth … raw flows memlimit …`. rate: bytes a second."""
    return (attribute(_CAKE_BASE_RATE64, struct.pack("=Q", rate)) + u32(_CAKE_ATM, 0)
            + u32(_CAKE_FLOW_MODE, _CAKE_FLOWS) + u32(_CAKE_OVERHEAD, 0) + u32(_CAKE_RAW, 0)
            + u32(_CAKE_AUTORATE, 0) + u32(_CAKE_MEMORY, memory_bytes))
