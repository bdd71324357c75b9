#!/usr/bin/env python3
"""Measure what a cheap global descriptor brings: a shortlist, scores that its likeness raises, a ranking by it alone.

The descriptor is VLAD (Jégou et al., CVPR 2010): rootSIFT at OpenCV's keypoints, 64 words, 256 dimensions by PCA,
learnt from every fourth photo of the set unlabelled. Every query of a set in the layout of Oxford5K is asked in each
way; with --part the queries whose names begin so are a row of their own.

usage: scripts/global_descriptors.py DIR SET COLLECTION [--part PREFIX]... [--engine NAME] [--turns N]
"""

import argparse
import hashlib
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

import cairn
from eval.protocols.scoring import score_ranking
from eval.protocols.truth import read_truth
from eval.tables.retrieval import markdown
from retrieval.library.collection import Collection
from retrieval.search.options import ALONE, FUSED, NO_GLOBAL, SHORTLIST

WAYS = (NO_GLOBAL, SHORTLIST, FUSED, ALONE)
WORDS, DIM, SIDE, KEYPOINTS = 64, 256, 640, 1_000


class Vlad:
    """Vector of locally aggregated descriptors."""

    name, dim = "vlad", DIM

    def __init__(
        self, centres: NDArray[np.float32], mean: NDArray[np.float32], projection: NDArray[np.float32]
    ) -> None:
        self.centres, self.mean, self.projection = centres, mean, projection
        made = b"".join(one.tobytes() for one in (centres, mean, projection))
        self.fingerprint = hashlib.sha256(made).hexdigest()

    def describe(self, image: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Describe an image (H, W, 3)."""
        row: NDArray[np.float32] = self.projection @ (aggregated(root_sift(image), self.centres) - self.mean)
        return row


def root_sift(image: NDArray[np.uint8]) -> NDArray[np.float32]:
    """RootSIFT (N, 128) at the strongest keypoints of an image, reduced to `SIDE`."""
    any_cv2: Any = cv2  # its types lack much
    scale = min(1.0, SIDE / max(image.shape[:2]))
    grey = cv2.resize(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    rows = any_cv2.SIFT_create(KEYPOINTS).detectAndCompute(grey, None)[1]
    if rows is None:
        return np.zeros((0, 128), np.float32)
    return np.asarray(np.sqrt(rows / np.maximum(rows.sum(axis=1, keepdims=True), 1e-9)), np.float32)


def aggregated(rows: NDArray[np.float32], centres: NDArray[np.float32]) -> NDArray[np.float32]:
    """Sums of differences to the nearest centres, each and all together at unit length, (words × 128,)."""
    found = np.zeros(centres.shape, np.float32)
    if len(rows):
        words = (2 * rows @ centres.T - (centres**2).sum(axis=1)).argmax(axis=1)
        np.add.at(found, words, rows - centres[words])
    found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9)
    return found.ravel() / max(float(np.linalg.norm(found)), 1e-9)


def learn(photos: Sequence[Path]) -> Vlad:
    """Learn words and projection from photos."""
    any_cv2: Any = cv2  # its types lack much
    described = [root_sift(any_cv2.cvtColor(cv2.imread(str(photo)), cv2.COLOR_BGR2RGB)) for photo in photos]
    every = np.concatenate(described)
    some = every[np.random.default_rng(0).permutation(len(every))[:50_000]]
    cv2.setRNGSeed(0)
    criteria = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_MAX_ITER, 10, 1e-4)
    centres = any_cv2.kmeans(some, WORDS, None, criteria, 1, cv2.KMEANS_PP_CENTERS)[2]
    rows = np.stack([aggregated(one, centres) for one in described])
    mean = rows.mean(axis=0)
    _, spread, axes = np.linalg.svd(rows - mean, full_matrices=False)
    return Vlad(centres, mean, axes[:DIM] / np.sqrt(spread[:DIM, None]))


def measure(
    collection: Collection, root: Path, parts: Sequence[str], options: Mapping[str, Any]
) -> dict[tuple[str, str], tuple[list[float], list[float]]]:
    """Average precisions and seconds of the queries, by part and way."""
    truth = read_truth(root / "gt")
    photos = {Path(photo.name).stem: photo.name for photo in collection}
    found: dict[tuple[str, str], tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for query in truth.queries:
        photo_or_file: str | Path = photos.get(query.stem) or next((root / "queries").glob(f"{query.stem}.*"))
        for way in WAYS:
            answer = collection.search(photo_or_file, query.box, top=len(photos), global_descriptors=way, **options)
            ranking = [Path(one.name).stem for one in answer]
            score = score_ranking(query, truth.protocols[0], ranking, answer.seconds["total"], truth)
            for part in ("", *(one for one in parts if query.name.startswith(one))):
                found[part, way][0].append(score.ap)
                found[part, way][1].append(answer.seconds["search"] + answer.seconds["verify"])
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="folder of the sets")
    parser.add_argument("set", help="set that is searched")
    parser.add_argument("collection", type=Path, help="collection of its photos, which is made if it is not there")
    parser.add_argument("--part", action="append", default=[], help="beginning of the names of queries")
    parser.add_argument("--engine", default="best")
    parser.add_argument("--turns", type=int, default=8)
    given = parser.parse_args()
    root = given.folder / given.set
    vlad = learn(sorted((given.folder / "unlabelled").rglob("*.jpg"))[::4])
    with cairn.create(given.collection, exist_ok=True) as collection:
        collection.add(root / "images")
        collection.add_global_descriptors(vlad)
        found = measure(collection, root, given.part, {"engine": given.engine, "turns": given.turns})
    rows = [
        [part or "all", str(len(found[part, NO_GLOBAL][0]))]
        + [f"{100 * np.mean(found[part, way][0]):.1f} ({1000 * np.mean(found[part, way][1]):.0f} ms)" for way in WAYS]
        for part in ("", *given.part)
    ]
    print(markdown(["queries", "number", *WAYS], rows))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
