"""What is to be known of a photo that was read although its file is not quite one photo, or not whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Remarks:
    """What was done to read a photo that not every program reads alike; by default nothing."""

    missing: float = 0.0  # share of the photo's rows, the lowest ones, that the file does not have
    rough: bool = False  # the file ends early: fine details may be missing
    pages: int = 0  # full pages of the file beside the one that was read
    over_dark: bool = False  # light lines on transparency, which white would hide
    text: bool = False  # printed text was left out
    blank: int = 0  # frames of an animation before the one that was read, which show nothing

    def numbers(self) -> tuple[float, float, float, float]:
        """Return all as numbers, for an array; `of_numbers` takes them."""
        return (
            self.missing,
            float(self.rough + 2 * self.text),
            float(self.pages),
            float(self.over_dark + 2 * self.blank),
        )

    @classmethod
    def of_numbers(cls, numbers: Sequence[float]) -> Remarks:
        """Return what `numbers` gave."""
        missing, rough, pages, over_dark = numbers
        over_dark, blank = int(over_dark) & 1, int(over_dark) >> 1
        return cls(missing, bool(int(rough) & 1), int(pages), bool(over_dark), bool(int(rough) & 2), blank)

    def sentences(self) -> list[str]:
        """Return what a user is told, a part of a sentence each."""
        found = []
        if self.missing:
            found.append(f"the lowest {max(1, round(100 * self.missing))}% are missing")
        if self.rough:
            found.append("the file ends early, and fine details may be missing")
        if self.pages:
            found.append(f"{self.pages} more {'page' if self.pages == 1 else 'pages'} of the file left out")
        if self.over_dark:
            found.append("its transparency was laid over black, as white hides it")
        if self.blank:
            frames = "frame is" if self.blank == 1 else f"{self.blank} frames are"
            found.append(f"its first {frames} blank, and the next was read")
        return found


NONE = Remarks()
