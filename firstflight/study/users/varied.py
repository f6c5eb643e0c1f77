"""The choice of a window where the file does not say all that decides: bandwidth, queue, reuse.

What it does not say is assumed, and measured with other values, too. Each of these conditions is a
part of the trials (UserSample.parts); PART has the values of the file and of the flags. A window
*holds* under a condition if it is as good as the best one there, and harms nobody. Only a window
that holds under all conditions is recommended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from firstflight.base.words import join_words, plain
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
    """The window for some users."""

    # None where no window holds under all conditions.
    initcwnd: int | None
    # What the rule chooses under each condition, by its part.
    advice: Mapping[str, Recommendation]
    # The window that stays where no other one is better.
    baseline: int

    @property
    def whole(self) -> Recommendation:
        """What the rule chooses with the values of the file and of the flags."""
        return self.advice[PART]

    @property
    def holding(self) -> frozenset[int]:
        """The windows that hold under all conditions."""
        return _holding(self.advice)

    @property
    def deciding(self) -> list[str]:
        """The conditions under which the window that `whole` chooses does not hold."""
        return [part for part, advice in self.advice.items()
                if self.whole.initcwnd not in advice.holding]

    @property
    def largest_harmless(self) -> int | None:
        """The largest window that saves time and harms nobody under any condition, or None."""
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
    by_part = _with_users({part: analysis.measured(users, records, part) for part in users.parts})
    if PART not in by_part:
        return {}
    groups = _group_choices(users, by_part) if len(users.groups) > 1 else {}
    return {ALL: _choice(by_part, users.baseline_initcwnd, _forbidden(groups)), **groups}


def _with_users(by_part: Mapping[str, Measured]) -> dict[str, Measured]:
    """Those parts in which some user counts."""
    return {part: measured for part, measured in by_part.items() if len(measured.weight)}


def _group_choices(users: UserSample, by_part: Mapping[str, Measured]) -> dict[str, Choice]:
    """The choice for each group with users that count."""
    choices_by_group = {}
    for number, name in enumerate(users.groups):
        of_group = _with_users({part: measured.only(number)
                                for part, measured in by_part.items()})
        if PART in of_group:
            choices_by_group[name or OTHERS] = _choice(of_group, users.baseline_initcwnd, set())
    return choices_by_group


def _forbidden(groups: Mapping[str, Choice]) -> set[int]:
    """The windows that the choice for all users must not be, since they harm a group.

    A group that is a prefix gets a route with a window of its own, so it forbids none.
    """
    windows: set[int] = set()
    for name, choice in groups.items():
        if choice.whole.users >= FEW_USERS and not window_commands.is_prefix(name):
            windows.update(chain.from_iterable(advice.harm for advice in choice.advice.values()))
    return windows


def _choice(by_part: Mapping[str, Measured], baseline: int, forbidden: set[int]) -> Choice:
    """The window that the rule chooses in PART if it holds everywhere, else the smallest that does.
    """
    advice = {part: analysis.recommend(measured, baseline) for part, measured in by_part.items()}
    holding = _holding(advice) - forbidden
    chosen = advice[PART].initcwnd
    if chosen in holding:
        return Choice(chosen, advice, baseline)
    return Choice(min(holding, default=None), advice, baseline)


def _holding(advice: Mapping[str, Recommendation]) -> frozenset[int]:
    """The windows that hold under every condition."""
    return frozenset.intersection(*(recommendation.holding for recommendation in advice.values()))


def condition_in_words(part: str, users: UserSample) -> str:
    """The condition of a part, such as "with 500 kbit/s" or "on connections used before"."""
    if part == UNKNOWN["queue"]:
        return f"with a queue of {SHALLOW_PACKETS} packets"
    if part == UNKNOWN["kept"]:
        return "on connections used before"
    return f"with {plain(SCALES[part] * (users.assumed_kbps or 0))} kbit/s"


def quantity_of(part: str) -> str:
    """What a part varies: a key of TO_FIND_OUT."""
    for name, varying_part in UNKNOWN.items():
        if part == varying_part:
            return name
    return BANDWIDTH


def remarks(users: UserSample, choice: Choice) -> list[str]:
    """Sentences on what the file does not say: whether it decides, and how to find it out.

    [] where the file says all.
    """
    others = [part for part in choice.advice if part != PART]
    if not others or len(users.initcwnd) == 1:
        return []
    if not choice.deciding and choice.initcwnd is not None:
        conditions = join_words([condition_in_words(part, users) for part in others])
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
    """What these parts vary, in words: "the bandwidth and the queue"."""
    words = {BANDWIDTH: "the bandwidth", "queue": "the queue",
             "kept": "which connections were used before"}
    return join_words([words[name] for name in dict.fromkeys(map(quantity_of, parts))])


def _other_choice(part: str, users: UserSample, choice: Choice) -> str:
    """What the rule chooses under a condition, and why not what it chooses in PART."""
    advice = choice.advice[part]
    sentence = f"{condition_in_words(part, users)} the rule chooses {advice.initcwnd}"
    first = choice.whole.initcwnd
    if first in advice.harm:
        sentence += f", as {first} does harm ({advice.harm[first]})"
    return sentence
