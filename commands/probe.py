"""run.sh --probe: what window a server uses, by one connection to it, and nothing else."""

from __future__ import annotations

import argparse
from urllib.parse import SplitResult, urlsplit

from lab.core import errors
from lab.core.errors import CannotError, FirstFlightError, UsageError


def run(arguments: argparse.Namespace) -> int:
    """Connect, and print what was seen; with --dry-run not even that. Raises UsageError."""
    from probe import client, verdict  # only where it is asked
    words = arguments.probe
    url = probed_url(words)
    if arguments.dry_run:
        print(f"one connection to {errors.one_line(url.netloc)}, and one request for"
              f" {errors.one_line(url.path or '/')}; --dry-run opens none")
        return errors.OK
    if client.is_this_machine(url):
        raise FirstFlightError(f"--probe: {words} {client.THIS_MACHINE}")
    try:
        seen = client.observe(url)
    except client.NotAllowed as error:
        raise CannotError(f"--probe: {words} {error}") from error
    except client.NoAnswer as error:
        raise FirstFlightError(f"--probe: {words} {error}") from error
    if seen["status"] // 100 == 3:
        raise FirstFlightError(f"--probe: {words} answers with status {seen['status']} and sends"
                               f" on to {seen['location'] or 'nowhere'}: probe that, if it is"
                               " yours")
    if seen["status"] != 200:
        raise FirstFlightError(f"--probe: {words} answers with status {seen['status']}: name a"
                               " page that it has, a large one if possible")
    found = verdict.judged(seen)
    print("\n".join([errors.one_line(words), *(f"  {line}" for line in verdict.lines(found))]))
    print(f"  what other windows do at this RTT: ./run.sh --rtt {max(0.1, found.rtt_ms):.1f}"
          f" --size {found.size_bytes} --iw {found.segments},{2 * found.segments}")
    return errors.OK


def probed_url(words: str) -> SplitResult:
    """The URL of --probe. Raises UsageError."""
    try:
        url = urlsplit(words)
        if url.scheme in ("http", "https") and url.hostname and "@" not in url.netloc \
                and url.port != 0:
            return url
    except ValueError:  # a port that is no number, brackets that do not close
        pass
    raise UsageError(f"--probe: {words!r} is no URL like http://example.org/page or"
                     " https://example.org:8443/, without a user's name")
