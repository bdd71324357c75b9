"""Remarks on a photo that was read although its file is unusual or incomplete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Remarks:
    """Choices made in reading a photo that programs read differently; by default none."""

    missing: float = 0.0  # share of the photo's rows, the lowest ones, that the file does not have
    rough: bool = False  # the file ends early: fine details may be missing
    pages: int = 0  # number of other full pages of the file
    over_dark: bool = False  # light lines on transparency, which white would hide
    text: bool = False  # printed text was left out
    blank: int = 0  # frames of an animation before the one that was read, which show nothing

    def numbers(self) -> tuple[float, float, float, float]:
        """Return all as numbers, for an array; `of_numbers` is the inverse."""
        return (
            self.missing,
            float(self.rough + 2 * self.text),
            float(self.pages),
            float(self.over_dark + 2 * self.blank),
        )

    @classmethod
    def of_numbers(cls, numbers: Sequence[float]) -> Remarks:
        """Inverse of `numbers`."""
        missing, rough, pages, over_dark = numbers
        over_dark, blank = int(over_dark) & 1, int(over_dark) >> 1
        return cls(missing, bool(int(rough) & 1), int(pages), bool(over_dark), bool(int(rough) & 2), blank)

    def sentences(self) -> list[str]:
        """Return the remarks for users, each a part of a sentence."""
        remarks = []
        if self.missing:
            remarks.append(f"the lowest {max(1, round(100 * self.missing))}% are missing")
        if self.rough:
            remarks.append("the file ends early, and fine details may be missing")
        if self.pages:
            remarks.append(f"{self.pages} more {'page' if self.pages == 1 else 'pages'} of the file left out")
        if self.over_dark:
            remarks.append("its transparency was laid over black, as white hides it")
        if self.blank:
            frames = "frame is" if self.blank == 1 else f"{self.blank} frames are"
            remarks.append(f"its first {frames} blank, and the next was read")
        return remarks


NONE = Remarks()
