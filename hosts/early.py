"""Early data (0-RTT): a request that leaves with the client's hello, as long as asked for."""

from __future__ import annotations

from urllib.parse import urlsplit

# What nginx takes in a line of a request is 8 kB (large_client_header_buffers).
MOST_IN_A_LINE, _PAD = 7000, "P: "
# From this size on a request is padded; a shorter one curl's own headers may pass.
LEAST_PADDED_BYTES = 128


def flags(url: str, size: int) -> list[str]:
    """Of curl, for a request of so many bytes over HTTP/1.1 that leaves early.

    size: less than LEAST_PADDED_BYTES for the request as it is.
    """
    early = ["--tls-earlydata"]
    if size < LEAST_PADDED_BYTES:
        return early
    parts = urlsplit(url)
    rest = size - len(f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nUser-Agent: \r\n"
                      "Accept: */*\r\nConnection: close\r\n\r\n")
    while rest > MOST_IN_A_LINE:
        line = _PAD + "x" * (MOST_IN_A_LINE - len(_PAD) - len("\r\n"))
        early += ["--header", line]
        rest -= len(line) + len("\r\n")
    return [*early, "--user-agent", "x" * max(rest, 1)]
