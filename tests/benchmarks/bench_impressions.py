"""How often impressions of one block are told apart from those of two blocks cut alike, and how much wear is seen.

Run as `python -m tests.benchmarks.bench_impressions`; it never gates. Blocks are drawn by rules, worn or cut once more,
printed by a simulated press and photographed (`tests/support/printed_blocks.py`). The start of each registration is the
true map with its corners moved by some pixels, as verification leaves it. `--coarse` photographs the second impression
at half the size.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import cv2
import numpy as np
from numpy.typing import NDArray

from index.parallel import one_thread
from retrieval.impressions.frames import (
    AlignedImpression,
    Frame,
    ReadPhoto,
    align_impression,
    align_reference,
    frame_around,
)
from retrieval.impressions.residual import VERDICTS, ImpressionResidual, compare_impressions
from tests.support.printed_blocks import (
    Stroke,
    age_block,
    cut_alike,
    cut_block,
    draw_strokes,
    impression,
    place_of_block,
)

KINDS: dict[str, Callable[[list[Stroke], int], list[Stroke]]] = {
    "one block, same state": lambda block, _: block,
    "one block, 12 breaks, thinned 0.3": lambda block, seed: age_block(block, seed, 12, 0.3),
    "one block, 40 breaks, thinned 0.8": lambda block, seed: age_block(block, seed, 40, 0.8),
    "one block, 90 breaks, thinned 1.2": lambda block, seed: age_block(block, seed, 90, 1.2),
    **{
        f"cut alike, {jitter:.1f} pixels off": lambda block, seed, jitter=jitter: cut_alike(block, seed, jitter)
        for jitter in (0.5, 1.0, 1.5, 2.5)
    },
}
LEAST, NEAR = 20, 8
"""Pixels of a break that should be found, at least, and how far off it may be: paper stretches."""
CORNERS = 4.0
"""Standard deviation of the corners at which a registration begins, pixels."""


@dataclass
class KindFigures:
    """What was reported of the pairs of one kind."""

    verdicts: Counter[str] = field(default_factory=Counter)
    displacements: list[float] = field(default_factory=list)
    missing: list[tuple[float, float]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def note(self, pair: PairCompared | None, seconds: float) -> None:
        """Note what was reported of a pair."""
        if pair is None:
            self.verdicts["not registered"] += 1
            return
        self.verdicts[pair.residual.verdict] += 1
        self.displacements.append(pair.residual.displacement_widths or np.nan)
        self.missing.append(pair.residual.missing)
        self.seconds.append(seconds)


@dataclass
class PairCompared:
    """Two photos in one frame, and the map (3, 3) from the page of the first to the frame."""

    residual: ImpressionResidual
    bend: float
    into_frame: NDArray[np.float64]


def align_shots(
    shots: list[tuple[NDArray[np.uint8], NDArray[np.float64]]], rng: np.random.Generator
) -> tuple[Frame, list[AlignedImpression | None]]:
    """Take photos, with their maps from the page, into the frame of the first; None of what is not registered."""
    (_, to_first), photos = shots[0], [ReadPhoto(np.dstack([grey] * 3), *grey.shape[::-1]) for grey, _ in shots]
    outline = cv2.perspectiveTransform(place_of_block()[None], to_first)[0]
    frame = frame_around([outline], photos[0])
    with one_thread():
        reference = align_reference(frame, photos[0])
        aligned: list[AlignedImpression | None] = [reference]
        for photo, (_, own) in zip(photos[1:], shots[1:], strict=True):
            moved = (outline + rng.normal(0, CORNERS, (4, 2))).astype(np.float32)
            start = own @ np.linalg.inv(to_first) @ cv2.getPerspectiveTransform(outline.astype(np.float32), moved)
            aligned.append(align_impression(frame, reference, photo, start, frame.mask(outline)))
    return frame, aligned


def compare(block: list[Stroke], other: list[Stroke], seed: int, scale: float = 1.0) -> PairCompared | None:
    """Print and photograph two blocks, and compare the photos; None where they are not registered."""
    shots = [impression(block, 10 * seed + 1), impression(other, 10 * seed + 2, scale=(0.85 * scale, scale))]
    frame, (one, two) = align_shots(shots, np.random.default_rng(seed))
    if one is None or two is None:
        return None
    with one_thread():
        residual = compare_impressions(one.ink, two.ink, two.region)
    return PairCompared(residual, two.bend, np.linalg.inv(frame.matrix) @ shots[0][1])


def count_breaks(seed: int, breaks: int = 40) -> tuple[int, int, int]:
    """Break a block without thinning it, and count its breaks, those of them that are found, and what else is found."""
    block = cut_block(seed)
    worn = age_block(block, seed, breaks, 0.0)
    pair = compare(block, worn, seed)
    lost = (draw_strokes(block) >= 0.5) & (draw_strokes(worn) < 0.25)
    _, _, pieces, centres = cv2.connectedComponentsWithStats(lost.astype(np.uint8), connectivity=8)
    true = centres[1:][pieces[1:, cv2.CC_STAT_AREA] >= LEAST] + place_of_block()[0]
    if pair is None:
        return len(true), 0, 0
    places = cv2.perspectiveTransform(true[None], pair.into_frame)[0]
    boxes = np.array([one[:4] for one in pair.residual.breaks(0)], np.float64).reshape(-1, 4)
    low, high = boxes[:, :2] - NEAR, boxes[:, :2] + boxes[:, 2:] + NEAR
    hits = ((places[:, None] >= low) & (places[:, None] <= high)).all(axis=2)
    return len(true), int(hits.any(axis=1).sum()), int((~hits.any(axis=0)).sum())


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=25, help="pairs of each kind")
    parser.add_argument("--seed", type=int, default=1000, help="of the first block")
    parser.add_argument("--coarse", action="store_true", help="photograph the second impression at half the size")
    arguments = parser.parse_args()
    print("kind | " + " | ".join(VERDICTS) + " | displaced, least to most | missing of the first, of the second | s")
    for kind, make in KINDS.items():
        figures = KindFigures()
        for seed in range(arguments.seed, arguments.seed + arguments.blocks):
            block = cut_block(seed)
            began = time.perf_counter()
            pair = compare(block, make(block, seed), seed, 0.5 if arguments.coarse else 1.0)
            figures.note(pair, time.perf_counter() - began)
        reported = " | ".join(str(figures.verdicts[verdict]) for verdict in VERDICTS)
        low, middle, high = np.nanquantile(figures.displacements, [0, 0.5, 1])
        first, second = np.median(figures.missing, axis=0)
        print(
            f"{kind} | {reported} | {low:.3f}, {middle:.3f}, {high:.3f} | {first:.1%}, {second:.1%} | "
            f"{np.median(figures.seconds):.1f}",
            flush=True,
        )
    counts = [count_breaks(seed) for seed in range(arguments.seed, arguments.seed + max(1, arguments.blocks // 2))]
    true, found, others = np.sum(counts, axis=0)
    print(f"breaks: {found} of {true} found, and {others / len(counts):.0f} other places a pair")


if __name__ == "__main__":
    main()
