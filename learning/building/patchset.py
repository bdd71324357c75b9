"""Build a set of labelled patches in the PhotoTour layout, split into training, validation and test pairs."""

import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from index.arrays import publish_folder, save_json, temporary_path
from index.errors import CairnError
from index.parallel import one_thread
from index.progress import Progress, silent
from learning.building.correspondence import Detections
from learning.building.detections import SIFT_SIDE
from learning.building.jitter import JitterOptions
from learning.building.labelled import Labelled
from learning.building.options import POINTS, DetectionOptions, MatchRule, SplitOptions
from learning.building.planar import label_sequences
from learning.building.point_file import label_points, read_points
from learning.building.point_splits import draw_matches, draw_non_matches, split_points
from learning.building.sequences import read_sequences
from learning.patches.phototour import PATCH, SPLITS, write_bitmaps, write_info, write_interest, write_pairs


@dataclass(frozen=True)
class BuildReport:
    """Report of the build."""

    patches: int
    points: int
    images: int
    pairs: dict[str, dict[str, Any]]  # by split: its file, matches, non_matches, and the matches requested
    unused: int  # ambiguous detections


def build_from_sequences(
    out: Path,
    folders: list[Path],
    detection: DetectionOptions | None = None,
    rule: MatchRule | None = None,
    splits: SplitOptions | None = None,
    progress: Progress = silent,
    noise: JitterOptions | None = None,
) -> BuildReport:
    """Build a set in an empty or new folder from image sequences with known homographies.

    With `noise`, only the first images are searched; the others get the same points with synthetic jitter.
    """
    detection, rule = detection or DetectionOptions(), rule or MatchRule()
    if noise is not None and detection.detector not in POINTS:
        raise CairnError(
            "Synthetic jitter is for points with an orientation: choose {--detector} {points}.",
            points=" or ".join(POINTS),
        )
    sequences = [sequence for folder in folders for sequence in read_sequences(folder)]
    if not sequences:
        raise CairnError("No sequence is named: name at least one folder.")
    origin: dict[str, Any] = {
        "sequences": [sequence.name for sequence in sequences],
        "detection": asdict(detection),
        "rule": asdict(rule),
    }
    if noise is not None:
        origin["jitter"] = asdict(noise)
    return _build(
        out,
        lambda pixels: label_sequences(sequences, detection, rule, pixels, progress, noise),
        origin,
        splits or SplitOptions(),
        progress,
    )


def build_from_points(
    out: Path,
    file: Path,
    photos: Path,
    pattern: str = "*",
    min_angle: float = 0.0,
    rule: MatchRule | None = None,
    splits: SplitOptions | None = None,
    progress: Progress = silent,
) -> BuildReport:
    """Build a set in an empty or new folder from given correspondences: see `read_points` and `label_points`."""
    rule = rule or MatchRule()
    points = read_points(file, min_angle)
    origin = {
        "points": Path(file).name,
        "photos": Path(photos).resolve().name,
        "images": pattern,
        "min_angle": min_angle,
        "rule": asdict(rule),
    }
    return _build(
        out,
        lambda pixels: label_points(points, photos, pattern, rule, pixels, progress),
        origin,
        splits or SplitOptions(),
        progress,
    )


def _build(
    out: Path, label: Callable[[BinaryIO], Labelled], origin: dict[str, Any], splits: SplitOptions, progress: Progress
) -> BuildReport:
    """Label, choose pairs, write everything in a folder next to `out`, and rename it to `out`."""
    out = Path(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise CairnError(f"{out} already exists: remove it first, or choose another name.")
    out.parent.mkdir(parents=True, exist_ok=True)
    folder = temporary_path(out)
    folder.mkdir()
    try:
        # Patches are many: they are stored in a file until the order of the points is known.
        spool = folder / "patches.raw"
        with one_thread(), spool.open("wb") as pixels:
            labelled = label(pixels)
        if not len(labelled.matches):
            raise CairnError("No two detections match: check that the homographies or pairs belong to these photos.")
        report = _write(folder, labelled, np.memmap(spool, np.uint8, "r").reshape(-1, PATCH, PATCH), splits, progress)
        spool.unlink()
        counts = asdict(report)
        save_json(folder / "provenance.json", {**origin, "splits": asdict(splits), "counts": counts})
        publish_folder(folder, out)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return report


def _write(
    folder: Path, labelled: Labelled, pixels: NDArray[np.uint8], splits: SplitOptions, progress: Progress
) -> BuildReport:
    rng = np.random.default_rng(splits.seed)
    # Patches of one point are adjacent, as in the published sets.
    order = np.argsort(labelled.points, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    points = labelled.points[order]
    split_of = split_points(labelled.points, splits.sizes, rng)

    def different(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.bool_]:
        return np.asarray((labelled.points[first] != labelled.points[second]) & labelled.are_apart(first, second))

    report: dict[str, dict[str, Any]] = {}
    for split, (name, size) in enumerate(zip(SPLITS, splits.sizes, strict=True)):
        if not size:
            continue
        there = labelled.matches[split_of[labelled.matches[:, 0]] == split]
        matches = draw_matches(there, size - size // 2, rng)
        others = draw_non_matches(np.flatnonzero(split_of == split), labelled.groups, different, size // 2, rng)
        pairs = place[rng.permutation(np.concatenate([matches, others]))]
        file = write_pairs(folder, split, pairs[:, 0], pairs[:, 1], points)
        report[name] = {
            "file": file,
            "matches": len(matches),
            "non_matches": len(others),
            "wanted": size,
            "points": len(np.unique(labelled.points[split_of == split])),
        }

    write_info(folder, points, labelled.photos[order])
    write_interest(folder, labelled.photos[order], _geometry(labelled.detections.take(order)))
    write_bitmaps(folder, pixels, order, lambda done, of: progress("write", done, of))
    return BuildReport(len(points), len(np.unique(points)), labelled.images, report, labelled.unused)


def _geometry(detections: Detections) -> NDArray[np.float64]:
    """Columns of `write_interest` (N, 4); scale is that of an OpenCV keypoint's size, whose patch has 6.75 times it."""
    size = detections.sides / SIFT_SIDE
    return np.column_stack([detections.centres, detections.angles, np.log2(size)])
