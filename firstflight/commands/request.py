"""What a command line of run.sh asks for. `flags.parse` makes it, and every command takes it.

A command hands on the part that a function needs: how to measure, or what to show. What a flag
means in full is in its help (`./run.sh --help all`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from firstflight.base import PROJECT
from firstflight.commands.conditions import Condition
from firstflight.runs.kinds import Overrides
from firstflight.workloads.fetch.scenario.requested_users import TRIALS, RttField


class Export(NamedTuple):
    """One --export: in which format the findings are written, and where."""

    form: str
    # A path, in which {name} stands for the scenario's name; - for standard output.
    place: str


@dataclass(frozen=True)
class Measuring:
    """How trials are measured, and where their results go."""

    # "uml": guests; "host": this machine's kernel; "auto": guests where their kernel is built.
    engine: str = "auto"
    # Guests side by side; None for as many as this machine has cores and memory for.
    jobs: int | None = None
    # The address of a Dask cluster's scheduler; None to measure on this machine.
    cluster: str | None = None
    # The seed of everything that is drawn at random.
    seed: int = 1
    results: Path = PROJECT / "results"
    # Begin a new run even where an interrupted one could be resumed.
    fresh: bool = False
    # Keep the packets of every trial, not only of some.
    keep_captures: bool = False
    # Also measure the few trials that show why a window changes a time.
    reasons: bool = True


@dataclass(frozen=True)
class Output:
    """What is shown of what was measured, and where it is written."""

    exports: Sequence[Export] = ()
    # The conditions of --fail-if: where one holds, the exit status says so.
    conditions: Sequence[Condition] = ()
    # The folder and the formats of figures.
    figures: Path = PROJECT / "figures"
    formats: Sequence[str] = ("png",)
    draw: bool = True
    # Print every table of a run, not only its answer.
    full: bool = False
    # Print no progress.
    quiet: bool = False


@dataclass(frozen=True)
class OwnServer:
    """The user's own server as it was typed; None or () for what was not given."""

    # The command that starts it, as in a shell, with {p} for its port.
    command: str | None = None
    # The folders that it may read; it starts in the first of them.
    folders: Sequence[Path] = ()
    # The path that it answers once it is ready.
    ready: str | None = None
    # The path that is fetched, with {size} for the number of bytes.
    url_path: str | None = None
    # The file with the root of its certificate.
    ca: Path | None = None
    # The name in its certificate.
    name: str | None = None

    @property
    def given(self) -> dict[str, object]:
        """What was given, by the keys of a scenario's [own_server]; paths are absolute."""
        typed = {"command": self.command, "ready": self.ready, "url_path": self.url_path,
                 "name": self.name, "ca": self.ca and str(self.ca.absolute()),
                 "folders": [str(folder.absolute()) for folder in self.folders]}
        return {key: value for key, value in typed.items() if value not in (None, [])}


@dataclass(frozen=True)
class UsersRequest:
    """--users: which window for the users of a file?"""

    file: Path
    # The field of a log that has the RTT; None for the field whose name says so.
    rtt_field: RttField | None = None
    # Whether only the first request of each connection is taken from a log.
    first_requests: bool = False
    # How many users are measured under each window.
    trials: int = TRIALS


@dataclass(frozen=True)
class PageRequest:
    """--page or --objects: what does a window change of a page?"""

    # A HAR file or a list of objects; None where the page is made of `objects` equal ones.
    file: Path | None = None
    objects: int | None = None
    # The hosts whose objects are taken from a HAR; () for all of its hosts.
    mine: Sequence[str] = ()
    # The size of the document of a page of equal objects; None if it is as large as an object.
    document_bytes: int | None = None
    # How many connections to a host the client opens; () for as many as browsers do.
    connections: Sequence[int] = ()
    # The program that loads the page: "libcurl" or "chromium"; None for libcurl.
    client: str | None = None
    # The path of the page in a folder; None for the folder's index.
    url_path: str | None = None
    # Whether a browser waits for each answer of a HAR as long as its server took.
    with_server_time: bool = True


@dataclass(frozen=True)
class Request:
    """A command line of run.sh."""

    # What to measure: names of scenarios, or paths of files; () for a question by flags.
    scenarios: Sequence[str] = ()
    # Whether it is a question by flags: a network, a page or a name without a scenario.
    own: bool = False
    # The name of that question; None for "own".
    name: str | None = None
    # What the flags set in place of a scenario's values.
    overrides: Overrides = Overrides({})
    # N of --sample 1/N: one in N of a scenario's networks or clients is measured; None for all.
    one_in: int | None = None
    own_server: OwnServer = OwnServer()
    # Whether a scenario's file may name a command that is run.
    allow_commands: bool = False
    # Print what would be measured, and measure nothing.
    dry_run: bool = False
    # --yes: more trials than anybody measures by mistake are allowed.
    allow_many: bool = False
    measuring: Measuring = Measuring()
    output: Output = Output()

    # What each command needs; None where its flag is not given. --list needs the words that a
    # scenario's file has to contain.
    list_words: Sequence[str] | None = None
    new: str | None = None
    check: str | None = None
    probe: str | None = None
    compare: Sequence[Path] | None = None
    users: UsersRequest | None = None
    find_cliff: str | None = None
    page: PageRequest | None = None
