"""Pictures of a page while it loads: the browser's frames, of which three are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from firstflight.testbed.hosts.browser.load import Load

# Of Page.startScreencast: a frame is as wide as a half of the window.
CASTING: dict[str, Any] = {"format": "png", "maxWidth": 683, "maxHeight": 384, "everyNthFrame": 1}
MOST_FRAMES, MOST_CHARACTERS = 2000, 64 << 20
MOMENTS = ("paint", "largest", "load")  # whose pictures are kept
NEAR_S = 0.001  # between a paint and the frame that shows it


@dataclass
class Film:
    """The frames of one load."""

    shift_s: float  # from the monotonic clock to that of the day, by which the browser dates frames
    frames: list[tuple[float, str]] = field(default_factory=list)  # (monotonic s, PNG in base64)
    characters: int = 0  # of all pictures in base64

    def take(self, parameters: Mapping[str, Any]) -> None:
        """Take a frame, unless there are too many. parameters: of its event."""
        picture = parameters["data"]
        self.characters += len(picture)
        if len(self.frames) < MOST_FRAMES and self.characters < MOST_CHARACTERS:
            at_s = parameters["metadata"].get("timestamp", 0.0) - self.shift_s
            self.frames.append((at_s, picture))

    def pictures(self, load: Load) -> dict[str, str]:
        """The PNGs in base64 at the MOMENTS that the load had.

        A picture is of the first frame from its moment on, or of the last one.
        """
        pictures: dict[str, str] = {}
        for name, moment_s in zip(MOMENTS, (load.paint_s, load.largest_s, load.loaded_s)):
            if moment_s is None or not self.frames:
                continue
            later = (picture for at_s, picture in self.frames if at_s >= moment_s - NEAR_S)
            _, last = self.frames[-1]
            pictures[name] = next(later, last)
        return pictures
