"""The print clock: breaks and widths of the lines that all impressions of a block or plate have, and the order and the
years of printing that follow.

Lines of a woodcut break, and engraved lines thin, at a steady rate (Hedges, *A method for dating early books and prints
using image analysis*, Proc. R. Soc. A 462, 2006). Where the ink of an impression failed, its lines are faint as well as
broken: there they are left out in all.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from retrieval.impressions.residual import INKED, bare_around, line_width

CLOCKS = ("breaks", "widths")
"""Signs of age: breaks, of woodcuts; or widths of lines, of engravings."""
LEVEL = 0.9
"""Share of the probability that intervals hold."""

INKING = {"breaks": 2.0, "widths": 0.06}
"""Standard deviation of what ink and paper add to an impression: breaks, and a share of the width of lines."""

_SAMPLES = 2000
_TILES = 8  # along the longer side of a frame: lines are drawn again by tiles, as ink fails in patches
_AROUND = 3.0  # widths of a line along which a line has to be well inked
_FAINT = 0.7  # of ink: lines that have less where they are not broken are faint
_GONE = 0.5  # of a line: where an impression lacks more, it has not got that line
_SHORT = 4.0  # widths of a line: shorter lines are not taken
_END = 1.5  # widths of a line, at ends, where taper and ink decide
_FEWEST = 8  # tiles with lines


@dataclass(frozen=True, eq=False)
class LineReadings:
    """What was read on the lines that N impressions in one frame have."""

    lines: NDArray[np.bool_]  # (H, W): middles of the lines that are taken
    width: float  # of a line, pixels of the frame
    places: NDArray[np.float64]  # (K, 2): x and y of where a line is broken in at least one impression
    broken: NDArray[np.bool_]  # (K, N): in which
    # by tiles: breaks (T, N), ink around the lines (T, N) and their lengths (T,) in pixels
    breaks: NDArray[np.float64]
    ink: NDArray[np.float64]
    lengths: NDArray[np.float64]

    def values(self, clock: str, weights: NDArray[Any] | None = None) -> NDArray[np.float64]:
        """Breaks or mean widths of lines (N,) or (R, N), tiles counted by `weights` (R, T); by default each once."""
        counted = np.ones(len(self.lengths)) if weights is None else np.asarray(weights, np.float64)
        if clock == "breaks":
            return np.asarray(counted @ self.breaks)
        return np.asarray(counted @ self.ink / np.maximum(counted @ self.lengths, 1)[..., None])

    def take(self, order: NDArray[np.integer]) -> "LineReadings":
        """Put the impressions into another order."""
        columns = (self.broken[:, order], self.breaks[:, order], self.ink[:, order])
        return replace(self, broken=columns[0], breaks=columns[1], ink=columns[2])


def read_lines(inks: Sequence[NDArray[np.float32]], region: NDArray[np.bool_]) -> LineReadings:
    """Take the lines within a region (H, W) that all impressions have, and read breaks and widths.

    `inks` (H, W) float32: see `ink_of`. A break is a gap, as long as a line is wide at least, in the middle of a line.
    """
    from skimage.morphology import skeletonize

    width = max(1.0, float(np.median([line_width(ink, region) for ink in inks])))
    middles = skeletonize((np.maximum.reduce(list(inks)) >= INKED) & region)
    neighbours = cv2.filter2D(middles.astype(np.uint8), -1, np.ones((3, 3)), borderType=cv2.BORDER_CONSTANT)
    parts = middles & ~_grown(middles & (neighbours > 3), 1)  # without crossings
    bare = [bare_around(ink, max(1.0, width / 2)) for ink in inks]
    count, labels = cv2.connectedComponents(parts.astype(np.uint8), connectivity=8)
    sizes = np.bincount(labels.ravel(), minlength=count)
    taken = sizes >= _SHORT * width
    taken[0] = False
    for gaps in bare:
        taken &= np.bincount(labels[gaps], minlength=count) <= _GONE * sizes
    lines = taken[labels] & ~_grown(middles & (neighbours == 2), round(_END * width))
    lines &= np.logical_and.reduce(
        [_well_inked(ink, lines & ~gaps, width) for ink, gaps in zip(inks, bare, strict=True)]
    )
    return _readings(inks, lines, width, [gaps & lines for gaps in bare])


def _well_inked(ink: NDArray[np.float32], there: NDArray[np.bool_], width: float) -> NDArray[np.bool_]:
    """Where lines are not faint by what is there of them, breaks left out."""
    weight = there.astype(np.float32)
    peak = cv2.dilate(ink, np.ones((3, 3), np.uint8))
    near, total = (cv2.GaussianBlur(one, (0, 0), _AROUND * width) for one in (peak * weight, weight))
    return np.asarray(near >= _FAINT * np.maximum(total, 1e-4))


def _readings(
    inks: Sequence[NDArray[np.float32]], lines: NDArray[np.bool_], width: float, gaps: list[NDArray[np.bool_]]
) -> LineReadings:
    broken_somewhere = np.logical_or.reduce(gaps)
    count, labels, _, centres = cv2.connectedComponentsWithStats(broken_somewhere.astype(np.uint8), connectivity=8)
    broken = np.stack([np.bincount(labels[one], minlength=count)[1:] >= width for one in gaps], 1)
    places, broken = centres[1:][broken.any(axis=1)], broken[broken.any(axis=1)]
    side = -(-max(lines.shape) // _TILES)
    tiles = np.add.outer(np.arange(lines.shape[0]) // side * _TILES, np.arange(lines.shape[1]) // side)
    measured = lines & ~_grown(broken_somewhere, round(2 * width))
    around = _grown(measured, round(width))
    breaks = np.zeros((_TILES**2, len(inks)))
    columns, rows = np.rint(places).astype(int).T
    np.add.at(breaks, tiles[rows, columns], broken)
    ink = np.stack([np.bincount(tiles[around], one[around], _TILES**2) for one in inks], 1).astype(np.float64)
    lengths = np.bincount(tiles[measured], minlength=_TILES**2).astype(np.float64)
    there = np.bincount(tiles[lines], minlength=_TILES**2) > 0
    return LineReadings(lines, width, places, broken, breaks[there], ink[there], lengths[there])


def _grown(mask: NDArray[np.bool_], reach: int) -> NDArray[np.bool_]:
    return np.asarray(cv2.dilate(mask.astype(np.uint8), np.ones((2 * reach + 1, 2 * reach + 1), np.uint8)) > 0)


def sample_clock(
    readings: LineReadings, clock: str, *, inking: float | None = None, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What the clock of each impression shows (N,), and samples (R, N) of what it might have shown: it grows with age.

    Samples draw tiles with replacement (bootstrap), and add normal noise for what ink and paper do to an impression as
    a whole, of standard deviation `inking`: breaks, or a share of the width of lines; by default as `INKING` has it.
    """
    tiles, impressions = readings.breaks.shape
    if tiles < _FEWEST:
        raise CairnError(
            "Too few lines are in all impressions to tell their order: leave one out, or give a larger box."
        )
    sign = 1.0 if clock == "breaks" else -1.0
    shown = sign * readings.values(clock)
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(tiles, np.full(tiles, 1 / tiles), _SAMPLES)
    noise = INKING[clock] if inking is None else inking
    scale = noise * (1.0 if clock == "breaks" else float(np.abs(shown).mean()))
    return shown, sign * readings.values(clock, drawn) + rng.normal(0, scale, (_SAMPLES, impressions))


def overrule(samples: NDArray[np.float64], before: Sequence[tuple[int, int]]) -> NDArray[np.float64]:
    """Move both samples (R, N) of pairs to their mean where the first is not earlier; raises CairnError on cycles."""
    graph: dict[int, set[int]] = {}
    for earlier, later in before:
        graph.setdefault(later, set()).add(earlier)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError:
        raise CairnError(
            "The decisions about the order of impressions contradict each other: take some of them back."
        ) from None
    found = samples.copy()
    apart = 1e-6 * (float(np.ptp(samples)) + 1.0)
    for _ in range(samples.shape[1] ** 2):
        moved = False
        for earlier, later in before:
            wrong = found[:, earlier] >= found[:, later]
            if wrong.any():
                moved = True
                mean = (found[wrong, earlier] + found[wrong, later]) / 2
                found[wrong, earlier], found[wrong, later] = mean - apart, mean + apart
        if not moved:
            break
    return found


def earlier_probabilities(samples: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probability (N, N) that the impression of a row was printed before that of a column; one half for itself."""
    one, other = samples[:, :, None], samples[:, None, :]
    return np.asarray((one < other).mean(axis=0) + (one == other).mean(axis=0) / 2)


def calibrate_years(
    shown: NDArray[np.float64], samples: NDArray[np.float64], years: Sequence[float | None], seed: int = 0
) -> NDArray[np.float64] | None:
    """Years (R, N) that samples of the clock say, by a straight line through the impressions whose year is known.

    In each sample the line is fitted by least squares and all are read off. Where the dated ones lie further off the
    line than samples account for, each sample gets as much noise more. None where fewer than two years are known, or
    where clock and years do not grow together in half of the samples.
    """
    dated = [place for place, year in enumerate(years) if year is not None]
    known = np.array([years[place] for place in dated], np.float64)
    if len(np.unique(known)) < 2:
        return None
    off = known - known.mean()

    def fit(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        middles = values.mean(axis=1)
        slopes = (values - middles[:, None]) @ off / (off @ off)
        residuals = values - middles[:, None] - slopes[:, None] * off
        return middles, slopes, np.asarray((residuals**2).sum(axis=1))

    middles, slopes, squares = fit(samples[:, dated])
    fits = slopes > 0
    if fits.mean() < 0.5:
        return None
    # Samples lie off by the residuals of what is shown, and by their own noise.
    excess = 2 * float(fit(shown[None, dated])[2][0]) - float(squares.mean())
    scatter = np.sqrt(max(0.0, excess) / max(1, len(dated) - 2))
    noisy = samples + np.random.default_rng(seed).normal(0, scatter, samples.shape)
    return np.asarray(known.mean() + (noisy[fits] - middles[fits, None]) / slopes[fits, None])


def interval(samples: NDArray[Any]) -> NDArray[np.float64]:
    """Ends (2, N) of the intervals that hold `LEVEL` of samples (R, N)."""
    return np.asarray(np.quantile(samples, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0))
