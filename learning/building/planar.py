"""Labelled patches from image sequences with known homographies, by the rule of Brown11."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from index.progress import Progress
from learning.building.correspondence import ALONE, AMBIGUOUS, Detections, assign_points, disagreement, is_match
from learning.building.detections import cut, detect, keypoint_space, read_full
from learning.building.jitter import JitterOptions, jitter
from learning.building.labelled import Labelled
from learning.building.options import DetectionOptions, MatchRule
from learning.building.sequences import Sequence


@dataclass(frozen=True)
class _View:
    """The detections of one image; points are numbered within its sequence."""

    points: NDArray[np.int64]  # (N,) int64
    detections: Detections  # (N,) in its own pixels
    reference: Detections  # (N,) in the pixels of the sequence's first image


def label_sequences(
    sequences: list[Sequence],
    options: DetectionOptions,
    rule: MatchRule,
    pixels: BinaryIO,
    progress: Progress,
    noise: JitterOptions | None = None,
) -> Labelled:
    """Detect in the images of sequences, and label by the homographies; patches (N, 64, 64) are written to `pixels`.

    A detection of a sequence's first image is a point. One of another image belongs to the point that it matches best,
    to no point if it is a non-match with all, and is dropped if ambiguous (`assign_points`). Matches are patches of one
    point that also match by the rule in the later image; non-matches are non-matches in the first image of one
    sequence.
    """
    images = sum(len(sequence.images) for sequence in sequences)
    views: list[_View] = []
    groups: list[int] = []  # of the views
    matches: list[NDArray[np.int64]] = []
    points = patches = unused = 0
    for group, sequence in enumerate(sequences):
        before = len(views)
        for view, ambiguous in _label_views(sequence, options, rule, pixels, noise):
            views.append(view)
            unused += ambiguous
            progress("detect", len(views), images)
        own = views[before:]
        matches.append(_match_views(own, sequence, rule) + patches)
        views[before:] = [_View(view.points + points, view.detections, view.reference) for view in own]
        groups += [group] * len(own)
        points += 1 + max(int(view.points.max(initial=-1)) for view in own)
        patches += sum(len(view.points) for view in own)

    counts = [len(view.points) for view in views]
    reference = Detections.concatenate([view.reference for view in views])
    return Labelled(
        np.concatenate([view.points for view in views]),
        np.repeat(np.arange(len(views)), counts),
        np.repeat(groups, counts),
        Detections.concatenate([view.detections for view in views]),
        np.concatenate(matches),
        # A position outside the first image (NaN) is ambiguous.
        lambda first, second: disagreement(reference.take(first), reference.take(second), rule) > 2,
        images,
        unused,
    )


def _label_views(
    sequence: Sequence,
    options: DetectionOptions,
    rule: MatchRule,
    pixels: BinaryIO,
    noise: JitterOptions | None,
) -> Iterator[tuple[_View, int]]:
    """Yield each image's view, and the number of its ambiguous detections."""
    first: Detections | None = None
    number = 0
    for image, (path, homography) in enumerate(zip(sequence.images, sequence.homographies, strict=True)):
        photo = read_full(path)
        if first is None or noise is None:
            detections, patches = detect(photo, options)
        else:
            jittered = jitter(first.transfer(homography), rule, noise, image)
            # Nothing smaller than a detector finds: it would span only a few pixels.
            points = np.flatnonzero(jittered.sides >= first.sides.min(initial=np.inf))
            rows, patches = cut(photo, keypoint_space(photo), jittered.take(points))
            points = points[rows]
            detections = jittered.take(points)
        if first is None:
            first = detections
            points = np.arange(len(detections))
        elif noise is None:
            points = assign_points(first.transfer(homography), detections, rule)
            points[points == ALONE] = number + np.arange((points == ALONE).sum())
        number = max(number, int(points.max(initial=-1)) + 1)
        used = points != AMBIGUOUS
        pixels.write(patches[used].tobytes())
        detections = detections.take(used)
        yield _View(points[used], detections, detections.transfer(np.linalg.inv(homography))), int((~used).sum())


def _match_views(views: list[_View], sequence: Sequence, rule: MatchRule) -> NDArray[np.int64]:
    """Numbers (M, 2) of a sequence's patches that match, the one of the earlier image first."""
    starts = np.cumsum([0] + [len(view.points) for view in views])
    rows = [np.zeros((0, 2), np.int64)]
    for a in range(len(views)):
        for b in range(a + 1, len(views)):
            # A point is at most once in an image.
            _, in_a, in_b = np.intersect1d(views[a].points, views[b].points, assume_unique=True, return_indices=True)
            onto = sequence.homographies[b] @ np.linalg.inv(sequence.homographies[a])
            moved = views[a].detections.take(in_a).transfer(onto)
            match = is_match(moved, views[b].detections.take(in_b), rule)
            rows.append(np.stack([starts[a] + in_a[match], starts[b] + in_b[match]], axis=1))
    return np.concatenate(rows)
