"""The stored traces of the kernel's own tests as if not all of them had worked.

One transfer failed, the rules contradict a second, and a third could not be judged. An initial
window that nobody measured has only failures. Two TCPs have the same title.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from firstflight.findings.findings import Report
from firstflight.runs import scenario_file
from firstflight.runs.kinds import NOTHING, Study
from firstflight.runs.results.records import FAIL
from firstflight.study.traces import KIND
from firstflight.workloads.trace.record import TraceRecord
from tests.golden import stored_trace

# Texts of the stored run's file, and what replaces each: a note, titles, and another window.
INSTEAD = (
    ('source = "Linux,', 'note = "One of them failed."\nsource = "Linux,'),
    ('title = "restart after idle"', 'title = "Linux"'),
    ('name = "nine"\nschedule', 'name = "nine"\ntitle = "nine packets"\ninitcwnd = [10, 20]\n'
     "schedule"))
SHOWN = """
[[figure]]
name = "all"
title = "Both traces"
kind = "window"
curves = ["idle/linux", "idle/restart", "idle/off", "idle/absent", "nine/linux/iw10",
          "nine/linux/iw20"]
from_s = 0.1
to_s = 2.2
sequence_to_s = 0.5

[[figure]]
name = "one"
title = "One trace"
kind = "window"
curves = ["nine/off/iw10", "nine/unvalidated/iw10"]
rtt = true

[[figure]]
name = "idle"
title = "The other one"
kind = "window"
curves = ["idle/linux", "idle/off", "idle/cwv"]
from_s = 2.25

[[figure]]
name = "none"
title = "Nothing to see"
kind = "window"
curves = ["idle/absent"]
"""
CLAIMS = (  # a figure, and two curves: the first is claimed to have the larger window
    ("all", "idle/linux", "nine/linux/iw10"), ("all", "nine/linux/iw10", "idle/absent"),
    ("all", "idle/restart", "nine/linux/iw10"), ("one", "nine/off/iw10", "nine/unvalidated/iw10"),
    ("idle", "idle/off", "idle/cwv"))


@cache
def troubled() -> Study:
    text = (stored_trace.FOLDER / "packetdrill.toml").read_text().partition("[[figure]]")[0]
    for old, new in INSTEAD:
        assert text.count(old) == 1
        text = text.replace(old, new)
    claims = "".join(f'\n[[claim]]\nfigure = "{figure}"\ncompares = ["{second}", "{first}"]\n'
                     f'says = "{first} is larger than {second}."\nmetric = "window"\n'
                     'where = { at_s = 0.15 }\n'
                     'expects = "more"\n' for figure, first, second in CLAIMS)
    return KIND.study(scenario_file.parse("troubled", text + SHOWN + claims), NOTHING, 1)


def report() -> Report:
    run = stored_trace.run()
    kept = {record.trial.id: record for record in run.records}
    wrong, unjudged = kept["idle-restart-iw10"], kept["nine-off-iw10"]
    kept[wrong.trial.id] = replace(wrong, verdict=FAIL, rule_wrong=2,
                                   verdict_reason="window: observed 2 of 8 samples differ")
    kept[unjudged.trial.id] = replace(unjudged, rule_checked=0)
    del kept["idle-linux-iw10"]
    records = [replace(kept[trial.id], trial=trial) if trial.id in kept
               else TraceRecord(trial, False, "curl 28: too late") for trial in troubled().trials]
    return troubled().report(replace(run, records=records))
