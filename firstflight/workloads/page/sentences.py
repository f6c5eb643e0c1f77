"""Sentences on how a larger window changes pages, and on what packets show of the reason."""

from __future__ import annotations

from collections.abc import Sequence

from firstflight.base.words import format_brief, join_words
from firstflight.workloads.page import analysis
from firstflight.workloads.page.analysis import SAME_MS, Setting, WindowTimes
from firstflight.workloads.page.browser_findings import browser_notes

MOST_NAMED = 4  # settings that one sentence names


def sentence(settings: Sequence[Setting], names: Sequence[str]) -> str:
    """How the window changes the pages of all settings that can be compared.

    In these, at least two windows have a page that counts (Setting.counting).
    """
    compared = [(setting, name) for setting, name in zip(settings, names)
                if len(setting.counting) > 1]
    if not compared:
        times = settings[0].counting[0]
        return (f"With {times.window} segments the page is there after"
                f" {format_brief(times.page.value)} ms, its document after"
                f" {format_brief(times.mean('document_ms'))} ms.")
    if len(compared) == 1:
        (only_setting, _), = compared
        return f"{_describe_change(only_setting)}."
    if len(compared) <= MOST_NAMED:
        changes = [f"{name}: {_describe_briefly(setting)}" for setting, name in compared]
        return f"{'; '.join(changes)}."
    return _describe_many(compared)


def _describe_many(compared: Sequence[tuple[Setting, str]]) -> str:
    """The largest and the smallest significant change by the largest window, in a sentence."""
    windows = {(setting.counting[0].window, setting.counting[-1].window) for setting, _ in compared}
    which = "the largest instead of the smallest window"
    if len(windows) == 1:
        base, largest = windows.pop()
        which = f"{largest} instead of {base} segments"

    changed = []
    for setting, name in compared:
        saved = setting.saved(setting.counting[-1].window)
        if saved is not None and (saved.absolute.interval is None or saved.absolute.sign):
            changed.append((saved.percent.value, name))
    if not changed:
        return f"With {which}, the page changes significantly in none of {len(compared)} settings."

    extremes = []
    for percent, name in dict.fromkeys((max(changed), min(changed))):
        direction = "earlier" if percent >= 0 else "later"
        extremes.append(f"{format_brief(abs(percent))} % {direction} ({name})")
    unsure = len(compared) - len(changed)
    rest = ""
    if unsure:
        rest = f"; in {unsure} of {len(compared)} settings it does not differ significantly"
    return f"With {which}, the page is there {' to '.join(extremes)}{rest}."


def _describe_change(setting: Setting) -> str:
    """How the fastest window changes one page, in a sentence without its full stop."""
    base, *others = setting.counting
    if all(abs(times.page.value - base.page.value) <= SAME_MS for times in others):
        windows = join_words([str(times.window) for times in setting.counting])
        return (f"No window changes the page: with {windows} it takes"
                f" {format_brief(base.page.value)} ms")

    unsure = _describe_unsure(setting)
    if unsure:
        return unsure
    fastest = setting.fastest
    if fastest is base:
        return _base_is_fastest(setting)

    saved_ms = base.page.value - fastest.page.value
    document_ms = (base.mean("document_ms") or 0.0) - (fastest.mean("document_ms") or 0.0)
    plus_minus = _plus_minus(setting, fastest.window)
    which = ""
    # An interval compares two windows: it does not show which is the fastest of three.
    if len(others) > 1 and not plus_minus:
        windows = join_words([str(times.window) for times in setting.counting])
        which = f", the fastest of {windows}"
    return (f"With {fastest.window} instead of {base.window} segments{which}, the page is there"
            f" {format_brief(saved_ms)}{plus_minus} ms earlier, after"
            f" {format_brief(fastest.page.value)} instead of {format_brief(base.page.value)} ms"
            f" ({format_brief(saved_ms / base.page.value * 100)} %); its document"
            f" {_format_earlier(document_ms)}")


def _base_is_fastest(setting: Setting) -> str:
    """How much later the page is with the larger windows, in a sentence."""
    base, *others = setting.counting
    # Windows with an interval, which shows neither an earlier nor a later page.
    unsure = [times for times in others
              if not setting.effect(times.window) and _plus_minus(setting, times.window)]
    slower = join_words([_format_later(setting, times) for times in others if times not in unsure])
    rest = ""
    if unsure:
        windows = join_words([str(times.window) for times in unsure])
        rest = f"; with {windows} it does not differ significantly"
    return (f"{base.window} segments are the fastest: the page is there after"
            f" {format_brief(base.page.value)} ms, and {slower}{rest}")


def _describe_unsure(setting: Setting) -> str:
    """A sentence where no window differs significantly from the first one; "" where one does."""
    base, *others = setting.counting
    parts = []
    for times in others:
        saved = setting.saved(times.window)
        if saved is None:
            continue
        if saved.absolute.interval is None or saved.absolute.sign:
            return ""

        saved_ms = saved.absolute.value
        parts.append(f"{format_brief(abs(saved_ms))}{_plus_minus(setting, times.window)} ms"
                     f" {'earlier' if saved_ms > 0 else 'later'} with {times.window}")
    if not parts:
        return ""
    return (f"No window differs significantly from {base.window} segments, with which the page"
            f" takes {format_brief(base.page.value)} ms: it is there {join_words(parts)}")


def _plus_minus(setting: Setting, window: int) -> str:
    """Half the width of the interval of what a window saves, such as " ± 3.2"; "" without one."""
    saved = setting.saved(window)
    if saved is None or saved.absolute.interval is None:
        return ""
    low, high = saved.absolute.interval
    return f" ± {format_brief((high - low) / 2)}"


def _format_later(setting: Setting, times: WindowTimes) -> str:
    """How much later the page is there with a window that is not faster than the baseline."""
    later_ms = times.page.value - setting.counting[0].page.value
    if abs(later_ms) <= SAME_MS:
        return f"at the same time with {times.window}"
    return (f"{format_brief(later_ms)}{_plus_minus(setting, times.window)} ms later with"
            f" {times.window}")


def _format_earlier(saved_ms: float) -> str:
    """How much earlier or later something is there, in words."""
    if abs(saved_ms) <= SAME_MS:
        return "at the same time"
    return f"{format_brief(abs(saved_ms))} ms {'earlier' if saved_ms > 0 else 'later'}"


def _describe_briefly(setting: Setting) -> str:
    """How the fastest window changes one page, briefly, for a sentence on several settings."""
    base, fastest = setting.counting[0], setting.fastest
    if not any(abs(times.page.value - base.page.value) > SAME_MS for times in setting.counting):
        return f"no window changes the page, which takes {format_brief(base.page.value)} ms"
    if unsure := _describe_unsure(setting):
        return f"{unsure[0].lower()}{unsure[1:]}"
    if fastest is base:
        more_ms = max(times.page.value for times in setting.counting) - base.page.value
        return (f"{base.window} segments are the fastest, {format_brief(base.page.value)} ms, and"
                f" others take up to {format_brief(more_ms)} ms more")

    saved_ms = base.page.value - fastest.page.value
    return (f"{fastest.window} instead of {base.window} segments save"
            f" {format_brief(saved_ms)}{_plus_minus(setting, fastest.window)} of"
            f" {format_brief(base.page.value)} ms"
            f" ({format_brief(saved_ms / base.page.value * 100)} %)")


def notes(setting: Setting, name: str) -> list[str]:
    """Sentences on what the packets of a setting show: drops, idle time, and a link that is full.

    name: what distinguishes the setting; "" for the only setting.
    """
    place = f"{name}: " if name else ""
    counting = setting.counting
    lines = _drop_notes(counting, place)
    if counting[0].records[0].trial.site:
        lines += browser_notes(setting, place)

    idle = [f"{format_brief(times.mean('idle_ms'))} of {format_brief(times.page.value)} ms with"
            f" {times.window}" for times in counting]
    lines.append(f"{place}the link to the client sends nothing for {join_words(idle)}.")
    full = [times for times in counting if 1 - times.idle_share >= analysis.BUSY]
    if full:
        windows = join_words([str(times.window) for times in full])
        least_percent = format_brief(min(1 - times.idle_share for times in full) * 100)
        share = f"{'at least ' if len(full) > 1 else ''}{least_percent} %"
        if least_percent == "100":
            share = "all"
        lines.append(f"{place}with {windows} the link is never free for long from the first byte on"
                     f" (it sends {share} of the time): its bandwidth is the limit.")
    return [f"{note[0].upper()}{note[1:]}" for note in lines]


def _drop_notes(counting: Sequence[WindowTimes], place: str) -> list[str]:
    """A sentence on how many packets the queue drops with each window; [] where it drops none."""
    drops = [times.mean("queue_drops") or 0.0 for times in counting]
    if not any(drops):
        return []
    average = "on average " if any(len(times.records) > 1 for times in counting) else ""
    words = []
    for times, dropped in zip(counting, drops):
        packets = "none"
        if dropped:
            packets = f"{format_brief(dropped).removesuffix('.0')} packets"
        words.append(f"{packets} with {times.window}")
    return [f"{place}the queue drops {average}{join_words(words)}."]
