"""Small indexes with known synonyms among words."""

from pathlib import Path

import numpy as np

from index.inverted import InvertedIndex
from index.segments.writing import write_segment
from learning.labels.labels import Labels, ObjectLabels
from learning.similarity.pair_gradients import WordPairs


def index_of(folder: Path, images: list[list[int]], words: int) -> InvertedIndex:
    """Images 0, 1, … with these words."""
    segment = write_segment(
        folder,
        image_numbers=np.arange(len(images), dtype=np.uint32),
        words=[np.array(row, dtype=np.int32) for row in images],
        columns={},
        vocabulary_fingerprint="v",
        descriptor_fingerprint="d",
    )
    return InvertedIndex([segment], words)


def dense_matrix(values: np.ndarray, pairs: WordPairs) -> np.ndarray:
    """R with all its zeros."""
    matrix = np.diag(values[: pairs.words].astype(np.float64))
    matrix[pairs.first, pairs.second] = matrix[pairs.second, pairs.first] = values[pairs.words :]
    return matrix


def synonyms(folder: Path, seed: int = 0) -> tuple[InvertedIndex, WordPairs, Labels]:
    """Four objects of twelve features, each with one of two words, among noise shared by all photos.

    Words 2 n and 2 n + 1 are synonyms, the pairs of even number; pairs of odd number, 2 n + 1 and 2 n + 2, are of
    different objects. Words 96 to 111 are bursts of noise.
    """
    rng = np.random.default_rng(seed)
    images: list[list[int]] = []
    objects = []
    for thing in range(4):
        photos = range(len(images), len(images) + 12)
        for _ in photos:
            features = 4 * rng.permutation(12)[:5] + thing
            noise = rng.choice(16, 3, replace=False) + 96
            images.append([*(2 * features + rng.integers(0, 2, 5)), *np.repeat(noise, rng.integers(1, 4, 3))])
        objects.append(ObjectLabels(f"object {thing}", frozenset(photos)))
    for _ in range(20):
        noise = rng.choice(16, 4, replace=False) + 96
        images.append([*rng.choice(96, 4), *np.repeat(noise, 2)])
    first = np.arange(95, dtype=np.int32)
    return index_of(folder, images, 112), WordPairs(112, first, first + 1), Labels(tuple(objects))
