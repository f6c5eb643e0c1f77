"""Makes the model's Transfer of a trial, which need not be measured yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from firstflight.model.transfer import Secure, Transfer
from firstflight.setting.server import NEWER
from firstflight.setting.tcp import RECEIVE, SEND, buffer_sizes, fixed_send_buffer
from firstflight.testbed.hosts.tls_records import (RECORD_OVERHEAD_BYTES, flight_of,
                                                   newer_openssl, sealed_sizes, writes_of)
from firstflight.testbed.messages import Response
from firstflight.workloads.fetch.trial import Trial

# Sizes on the wire of TLS's messages. The client's hello depends on whether OpenSSL is 3.5 or newer
# (SHA-384), and on the key exchange.
HELLO_BYTES = {(False, "x25519"): 240, (True, "x25519"): 241, (True, "x25519mlkem768"): 1417}
FINISHED_BYTES, OWN_TICKET_BYTES = 80, 255
WRITTEN_AT_ONCE_BYTES = 1 << 16  # by curl: MAX_INITIAL_POST_SIZE, UPLOADBUFFER_DEFAULT
# Sizes of server.py's headers and of curl's request, without the digits of the response's size.
HEADER_BYTES, REQUEST_BYTES = 56, 91
CLOSE_BYTES = 19  # "Connection: close", which both lack on a connection of several responses


def transfer_of(trial: Trial, sysctls: Mapping[str, str], header_bytes: int, request_bytes: int,
                secure: Secure | None = None, writes: tuple[int, ...] = ()
                ) -> Transfer:
    """A trial as the model's Transfer.

    sysctls: the scenario's. header_bytes, request_bytes: the sizes of HTTP's messages, before TLS.
    With TLS, secure is the handshake, and writes are the sizes of the response's records.
    """
    settings = trial.with_buffers(sysctls)
    of_hosts = trial.host_settings(sysctls)
    send_buffers = buffer_sizes(settings, SEND)
    if trial.send_buffer_bytes:
        send_buffers = fixed_send_buffer(trial.send_buffer_bytes)
    probes = settings.get("net.ipv4.tcp_early_retrans", "3") in ("3", "4")
    record_bytes = 0 if secure is None else RECORD_OVERHEAD_BYTES

    return Transfer(
        path=trial.path.lossless,  # equal for trials that differ in queue, loss or seed only
        initcwnd=trial.server_window, initrwnd=trial.client_window,
        congestion_control=trial.congestion_control,
        response_bytes=sum(writes) or header_bytes + trial.response_bytes,
        request_bytes=request_bytes + record_bytes,
        mss=trial.mss, idle_ms=trial.idle_ms, gap_ms=trial.gap_ms,
        burst_bytes=header_bytes + trial.burst_bytes,
        receive_buffers=buffer_sizes(settings, RECEIVE), send_buffers=send_buffers,
        most_window_bytes=trial.most_window_bytes,
        restart_after_idle=settings.get("net.ipv4.tcp_slow_start_after_idle") != "0",
        loss_probes=trial.loss_probes == "on" and probes,
        request_writes=upload_writes(request_bytes, trial.request_bytes),
        client_initcwnd=trial.uploading_window,
        server_receive_buffers=buffer_sizes(of_hosts, RECEIVE),
        client_send_buffers=buffer_sizes(of_hosts, SEND),
        writes=writes, secure=secure)


def upload_writes(head_bytes: int, body_bytes: int) -> tuple[int, ...]:
    """The writes of a request with a body, as curl has them; () without a body.

    A body of less than 64 KiB is written with the head. A longer one is written after the head, in
    parts of 64 KiB.
    """
    if not body_bytes:
        return ()
    if body_bytes < WRITTEN_AT_ONCE_BYTES:
        return (head_bytes + body_bytes,)
    full_writes, rest = divmod(body_bytes, WRITTEN_AT_ONCE_BYTES)
    return (head_bytes, *[WRITTEN_AT_ONCE_BYTES] * full_writes, *([rest] if rest else []))


def computed(trial: Trial, sysctls: Mapping[str, str]) -> Transfer:
    """The Transfer of a trial that was not measured, over plain HTTP or TLS with a new session.

    All earlier responses have the size of the first one.
    """
    head_bytes = header_bytes(trial)
    request_bytes = head_bytes + REQUEST_BYTES - HEADER_BYTES
    secure: Secure | None = None
    writes: tuple[int, ...] = ()
    if trial.chain_bytes:
        flight = flight_writes(trial)
        writes = sealed_sizes(head_bytes + trial.response_bytes, trial.record_bytes)
        secure = Secure(HELLO_BYTES[_is_newer(trial), trial.key_share], flight, FINISHED_BYTES,
                        tickets=(OWN_TICKET_BYTES,) * trial.tickets, first_bytes=writes[0])
    transfer = transfer_of(trial, sysctls, head_bytes, request_bytes=request_bytes, secure=secure,
                           writes=writes)
    if not trial.before:
        return transfer

    digits = more_digits(trial)
    return replace(transfer, earlier_bytes=head_bytes + digits + trial.before[0],
                   earlier_request_bytes=request_bytes + digits, earlier_count=len(trial.before))


def more_digits(trial: Trial) -> int:
    """How many bytes an earlier request has more than the measured one; negative for fewer.

    The headers of the responses differ by as many: both contain the response's size in digits.
    """
    return len(str(trial.before[0])) - len(str(trial.response_bytes))


def header_bytes(trial: Trial) -> int:
    """Size of the headers of server.py's response."""
    return HEADER_BYTES + len(str(trial.response_bytes)) - (CLOSE_BYTES if trial.before else 0)


def _is_newer(trial: Trial) -> bool:
    """Whether the trial's programs have OpenSSL 3.5 or newer."""
    return trial.system == NEWER or newer_openssl()


def flight_writes(trial: Trial) -> tuple[int, ...]:
    """Sizes of the writes in which server.py's first messages leave."""
    with_mlkem = trial.key_share != "x25519"
    flight = flight_of(trial.chain_bytes, 1 + trial.intermediates, trial.signature,
                       with_mlkem, _is_newer(trial) and not with_mlkem)
    return writes_of(flight, trial.buffer_bytes)


def is_computable(trial: Trial) -> bool:
    """Whether computed() covers everything that affects the trial."""
    return not (trial.resumed or trial.gap_ms or trial.before or trial.head
                or trial.send_buffer_bytes)


def secure_of(report: Response) -> Secure | None:
    """The TLS handshake in a server's report; None for plain HTTP."""
    if "tls" not in report:
        return None
    tls = report["tls"]
    return Secure(tls["hello_bytes"], tuple(tls["flight"]), tls["finished_bytes"],
                  tickets=tuple(tls["tickets"]), first_bytes=tls["response"][0])


def wire_bytes(report: Response) -> int:
    """Size of the response on the network; 0 where nothing was reported."""
    if "tls" in report:
        return sum(report["tls"]["response"])
    return report.get("header_bytes", 0) + report.get("body_bytes", 0)


def sealed_bytes(early_bytes: int) -> int:
    """Size of early data on the network: one TLS record."""
    return early_bytes + RECORD_OVERHEAD_BYTES
