"""Files of mined matches for tests: written from arrays, or drawn at random."""

from pathlib import Path

import numpy as np

from learning.mining.matches import PATCH, ArrayWriter, MinedMatches, _check, write_mined

Arrays = dict[str, np.ndarray]


def write(path: Path, arrays: Arrays, pieces: int = 2) -> Path:
    """Write a file, with each array in `pieces` pieces."""

    def entry(name: str, array: np.ndarray) -> ArrayWriter:
        return ArrayWriter(name, array.shape, iter(np.array_split(array, pieces)), array.dtype.str)

    write_mined(path, (entry(name, array) for name, array in arrays.items()), {"source": "example"})
    return path


def drawn(rng: np.random.Generator, pairs: int = 3, largest: int = 9, positive: float = 0.3) -> Arrays:
    """Draw image pairs of few photos, so that some share a photo, and overlapping lists of matches.

    A pair may be without reference features, and a feature without negatives.

    Parameters
    ----------
    rng : Generator
        Decides.
    pairs : int
        How many.
    largest : int
        Features of a photo, at most.
    positive : float
        Probability of a feature of the second photo being a positive.
    """
    sizes = rng.integers(1, largest + 1, 4)
    photos = np.repeat(np.arange(4, dtype=np.int32), sizes)
    of_photo = [np.flatnonzero(photos == photo).astype(np.int32) for photo in range(4)]
    of_pair = np.array([rng.permutation(4)[:2] for _ in range(pairs)], np.int32)
    reference, pair = [], []
    lists: dict[str, list[np.ndarray]] = {"positive": [], "ambiguous": []}
    for number, (first, second) in enumerate(of_pair):
        targets = of_photo[second]
        for x in of_photo[first][rng.random(sizes[first]) < 0.7]:
            kind = rng.choice(["positive", "ambiguous", "negative"], len(targets), p=[positive, 0.2, 0.8 - positive])
            if rng.random() < 0.1:
                kind[kind == "negative"] = "ambiguous"
            kind[rng.integers(len(targets))] = "positive"
            reference.append(x)
            pair.append(number)
            for name, rows in lists.items():
                rows.append(targets[kind == name])
    count = len(photos)
    arrays = {
        "names": np.array([f"photo{number}" for number in range(4)]),
        "pairs": of_pair,
        "homographies": rng.normal(size=(pairs, 3, 3)),
        "inliers": np.full(pairs, 50, np.int32),
        "patches": rng.integers(0, 256, (count, PATCH, PATCH), np.uint8),
        "photos": photos,
        "ellipses": rng.uniform(1, 2, (count, 5)).astype(np.float32),
        "reference": np.array(reference, np.int32),
        "pair": np.array(pair, np.int32),
        "target_starts": np.cumsum([0, *(sizes[second] for _, second in of_pair)]),
        "targets": np.concatenate([of_photo[second] for _, second in of_pair]),
    }
    for name, rows in lists.items():
        arrays[f"{name}_starts"] = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        arrays["positives" if name == "positive" else name] = np.concatenate([np.zeros(0, np.int32), *rows])
    return arrays


def in_memory(arrays: Arrays) -> MinedMatches:
    """Result of `MinedMatches.open` for a file of these arrays, without the file."""
    _check(arrays)
    return MinedMatches(Path("mined.npz"), arrays, {}, "")


def some_mined(seed: int, least: int = 1) -> tuple[MinedMatches, np.random.Generator]:
    """Random matches with at least `least` features."""
    rng = np.random.default_rng(seed)
    while len((arrays := drawn(rng))["reference"]) < least:
        pass
    return in_memory(arrays), rng


def some_features(matches: MinedMatches, rng: np.random.Generator) -> np.ndarray:
    """At least one, ascending."""
    return np.sort(rng.permutation(matches.features)[: rng.integers(1, matches.features + 1)])
