"""The choice of a window where the file does not say what decides: bandwidth, queue, reuse.

Each of these is measured with other values too. A window is recommended only if it is as good as
the best, and harms nobody, with all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from dataclasses import dataclass

from firstflight.base.words import plain
from firstflight.study.users import analysis, window_commands
from firstflight.study.users.analysis import Measured, Recommendation
from firstflight.workloads.fetch.record.record import Record
from firstflight.workloads.fetch.scenario.users import (PART, SCALES, SHALLOW_PACKETS, UNKNOWN,
                                                        Option, UserSample, has_option)

ALL, OTHERS = "all", "without a group"
FEW_USERS = 30  # with fewer users the answer has a warning, and a group cannot forbid a window
BANDWIDTH = "bandwidth"
# How to learn what the file does not say, and how to say it then.
TO_FIND_OUT = {
    BANDWIDTH: "Their bandwidth: ss -tin on the server, at a busy hour, has it as delivery_rate;"
               " give --bw, or a column bandwidth_kbps",
    "queue": "Their queue: during a long download ss -tin has rtt and minrtt, whose difference is"
             " the queue in ms; give it, as --queue 50ms",
    "kept": "Which requests are the first of their connection: add"
            " connection_requests=$connection_requests to nginx's log_format (HAProxy:"
            " http_first_req=%[http_first_req]); or give --first-requests where the log has the"
            " client's port, or --kept 0 where all are"}


@dataclass(frozen=True)
class Choice:
    """The window for some users.

    initcwnd: None where no window holds under all conditions. advice: what the rule chooses, by the
    part that was measured. baseline: the window that stays where no other one is better.
    """

    initcwnd: int | None
    advice: Mapping[str, Recommendation]
    baseline: int

    @property
    def whole(self) -> Recommendation:
        """What the rule chooses by what the file and the flags say."""
        return self.advice[PART]

    @property
    def holding(self) -> frozenset[int]:
        """The windows that are as good as the best and do no harm in every part."""
        return frozenset.intersection(*(each.holding for each in self.advice.values()))

    @property
    def deciding(self) -> list[str]:
        """The parts in which the rule does not accept the choice of the whole."""
        return [part for part, advice in self.advice.items()
                if self.whole.initcwnd not in advice.holding]

    @property
    def largest_harmless(self) -> int | None:
        """The largest window that harms nobody in any part and saves time; None for none."""
        harmful = set(chain.from_iterable(advice.harm for advice in self.advice.values()))
        harmless = [outcome.initcwnd for outcome in self.whole.outcomes
                    if outcome.saved.absolute.sign > 0 and outcome.initcwnd not in harmful]
        return max(harmless, default=None)

    @property
    def why(self) -> str:
        """Why this window, in words."""
        if self.initcwnd is None or self.initcwnd == self.whole.initcwnd:
            return self.whole.why
        return self.whole.why_of(self.initcwnd, self.baseline)


def with_option(records: Sequence[Record], option: Option) -> list[Record]:
    """The records that were measured with an option."""
    return [record for record in records if has_option(record.trial, option)]


def choices(users: UserSample, records: Sequence[Record]) -> dict[str, Choice]:
    """The choice for all users, and for each group of several; {} where no user counts."""
    measured = {part: analysis.measured(users, records, part) for part in users.parts}
    measured = {part: those for part, those in measured.items() if len(those.weight)}
    if PART not in measured:
        return {}
    groups = _of_groups(users, measured) if len(users.groups) > 1 else {}
    forbidden = {window for name, choice in groups.items()
                 if choice.whole.users >= FEW_USERS and not window_commands.is_prefix(name)
                 for advice in choice.advice.values() for window in advice.harm}
    return {ALL: _choice(measured, users.baseline_initcwnd, forbidden), **groups}


def _of_groups(users: UserSample, measured: Mapping[str, Measured]) -> dict[str, Choice]:
    """The choice for each group with users that count."""
    made = {}
    for place, name in enumerate(users.groups):
        own = {part: those.only(place) for part, those in measured.items()}
        own = {part: those for part, those in own.items() if len(those.weight)}
        if PART in own:
            made[name or OTHERS] = _choice(own, users.baseline_initcwnd, set())
    return made


def _choice(measured: Mapping[str, Measured], baseline: int, forbidden: set[int]) -> Choice:
    """The rule's window if it holds in every part, else the smallest window that does."""
    advice = {part: analysis.recommend(those, baseline) for part, those in measured.items()}
    holding = frozenset.intersection(*(each.holding for each in advice.values())) - forbidden
    first = advice[PART].initcwnd
    smallest = min(holding) if holding else None
    return Choice(first if first in holding else smallest, advice, baseline)


def in_words(part: str, users: UserSample) -> str:
    """The condition of a part, behind "with" or "on"."""
    if part in SCALES:
        return f"with {plain(SCALES[part] * (users.assumed_kbps or 0))} kbit/s"
    return {UNKNOWN["queue"]: f"with a queue of {SHALLOW_PACKETS} packets",
            UNKNOWN["kept"]: "on connections used before"}[part]


def quantity_of(part: str) -> str:
    """What a part varies: a key of TO_FIND_OUT."""
    return next((name for name, other in UNKNOWN.items() if other == part), BANDWIDTH)


def remarks(users: UserSample, choice: Choice) -> list[str]:
    """What the file does not say, whether it decides, and how to find it out; [] for nothing."""
    others = [part for part in choice.advice if part != PART]
    if not others or len(users.initcwnd) == 1:
        return []
    if not choice.deciding and choice.initcwnd is not None:
        conditions = _listed([in_words(part, users) for part in others])
        return [f"The file does not say {_unsaid(others)}. {choice.initcwnd} segments also hold"
                f" {conditions}."]

    lines = []
    if choice.deciding:
        decided = "; ".join(_other_choice(part, users, choice) for part in choice.deciding)
        lines.append(f"The file does not say {_unsaid(others)}, and that decides: {decided}.")
    safe = choice.largest_harmless
    if safe is not None:
        lines.append(f"The largest window that harms nobody with any of these is {safe}:"
                     f" {choice.whole.why_of(safe, choice.baseline)}.")

    quantities = dict.fromkeys(map(quantity_of, choice.deciding))
    return [*lines, *(f"{TO_FIND_OUT[name]}." for name in quantities)]


def _unsaid(parts: Sequence[str]) -> str:
    words = {BANDWIDTH: "the bandwidth", "queue": "the queue",
             "kept": "which connections were used before"}
    return _listed([words[name] for name in dict.fromkeys(map(quantity_of, parts))])


def _listed(words: Sequence[str]) -> str:
    """The words with commas, and "and" before the last one."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _other_choice(part: str, users: UserSample, choice: Choice) -> str:
    """What the rule chooses in a part, and what it has against the choice of the whole."""
    advice, first = choice.advice[part], choice.whole.initcwnd
    harm = f", as {first} does harm ({advice.harm[first]})" if first in advice.harm else ""
    return f"{in_words(part, users)} the rule chooses {advice.initcwnd}{harm}"
