"""Average precision of a ranking, as the programs of the Oxford and Paris benchmarks compute it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from learning.measures.precision import average_precision, ranked_hits

__all__ = ["average_precision", "mean_average_precision", "ranked", "rectangular_average_precision"]


def ranked(scores: np.ndarray, numbers: np.ndarray | None = None) -> np.ndarray:
    """Order images by falling score, and images of equal score by rising number.

    So a ranking, and with it the average precision, never hangs on the order in which images were scored.

    Parameters
    ----------
    scores : ndarray of shape (N,)
        Larger is better; infinities are allowed.
    numbers : ndarray of int, shape (N,), optional
        Image numbers, by default 0 to N - 1.

    Returns
    -------
    ndarray of int64, shape (N,)
        The image numbers, best first.

    Raises
    ------
    ValueError
        The shapes differ, a score is NaN, or an image number comes twice.
    """
    scores = np.asarray(scores)
    numbers = np.arange(len(scores)) if numbers is None else np.asarray(numbers)
    if scores.ndim != 1 or scores.shape != numbers.shape:
        raise ValueError(f"scores {scores.shape} and image numbers {numbers.shape} must be two lists of one length")
    if np.isnan(scores).any():
        raise ValueError("a score is NaN, so the images have no order")
    numbers = numbers.astype(np.int64)
    if len(np.unique(numbers)) != len(numbers):
        raise ValueError("an image number is scored twice")
    return numbers[np.lexsort((numbers, -scores.astype(np.float64)))]


def rectangular_average_precision(
    ranking: Sequence[str], positives: Collection[str], junk: Collection[str] = ()
) -> float:
    """Return the mean precision at the ranks of the positives, as TREC and most libraries define it. For reference.

    It reads up to two points higher than `average_precision`; the two must never be mixed in one table.

    Parameters, return value and errors are those of `average_precision`.
    """
    hits, size = ranked_hits(ranking, positives, junk)
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    return float(precision[hits].sum() / size)


def mean_average_precision(values: Iterable[float]) -> float:
    """Return the mean over queries of their average precisions.

    Raises
    ------
    ValueError
        There are none, or one is not between 0 and 1.
    """
    array = np.array(list(values), np.float64)
    if not array.size:
        raise ValueError("no query has an average precision, so there is no mean")
    if not ((array >= 0) & (array <= 1 + 1e-9)).all():
        raise ValueError("an average precision lies between 0 and 1")
    return float(array.mean())
