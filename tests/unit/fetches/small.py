"""Small scenarios of kind fetches as texts, which tests change and then read."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from firstflight.runs import scenario_file
from firstflight.study import fetches
from firstflight.workloads.fetch.scenario.scenario import Scenario

SMALL = """\
# A claim.
title = "t"
source = "s"
[defaults]
response_bytes = [9000]
initcwnd = [3, 10]
initrwnd = 27
congestion_control = "cubic"
client = "curl"
repeat = 1
queue = 1000
loss_percent = 0
uplink = "same"
[[sweep]]
name = "grid"
rtt_ms = [20, 50]
bandwidth_kbps = [56, 256]
[[axis]]
by = "rtt_ms"
values = [20, 50]
shares_percent = [40, 60]
[[axis]]
by = "bandwidth_kbps"
values = [56, 256]
shares_percent = [25, 75]
[[figure]]
name = "by_rtt"
title = "By RTT"
kind = "improvement"
sweep = "grid"
by = "rtt_ms"
weights = "bandwidth_kbps"
windows = [3, 10]
metric = "total_ms"
"""
MAP_OF_WINDOWS = SMALL[:SMALL.index("[[axis]]")].replace(
    "initcwnd = [3, 10]", "initcwnd = [3, 10, 20, 40]") + """\
[[figure]]
name = "map"
title = "Windows"
kind = "window_map"
sweep = "grid"
by = "rtt_ms"
down = "bandwidth_kbps"
windows = [10]
metric = "total_ms"
"""
FEW_USERS = """# Which window?
kind = "fetches"
title = "Which window?"
source = "x.csv"
[defaults]
client = "libcurl"
congestion_control = "cubic"
queue = 100
loss_percent = 0
repeat = 1
[users]
initcwnd = [10, 32]
baseline_initcwnd = 10
groups = ["near", "192.0.2.0/24"]
group = [0, 1, 1]
times = [1, 1, 2]
rtt_ms = [20, 200, 300]
bandwidth_kbps = [9000, 9000, 9000]
response_bytes = [9000, 60000, 60000]
"""
# Names of the project's scenarios of kind fetches.
NAMES = tuple(name for name in scenario_file.names()
              if scenario_file.find(name).raw.get("kind", "fetches") == "fetches")
# A change for small(): it removes the figures.
WITHOUT_FIGURES = (SMALL[SMALL.index("[[figure]]"):], "")


def small(folder: Path, *changes: tuple[str, str]) -> Scenario:
    """The scenario of SMALL after these changes, each (old text, new text).

    It is read from folder/small.toml.
    """
    text = SMALL
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    path = folder / "small.toml"
    path.write_text(text, encoding="utf-8")
    return fetches.read_scenario(scenario_file.read(path))


@cache
def scenario_of(name: str) -> Scenario:
    """A scenario of the project."""
    return fetches.read_scenario(scenario_file.find(name))
