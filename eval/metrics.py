"""Average precision of a ranking, as the programs of the Oxford and Paris benchmarks compute it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np


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


def average_precision(ranking: Sequence[str], positives: Collection[str], junk: Collection[str] = ()) -> float:
    """Return the area under the precision-recall curve by trapezoids: the figure that Oxford5K and Paris6K report.

    The curve starts at recall 0 and precision 1; each image that is not junk adds
    (recall - previous recall) * (previous precision + precision) / 2. Junk takes no rank. A positive that is not in
    the ranking counts as never found. Source: Philbin et al., CVPR 2007, whose ``compute_ap`` program this follows.

    Parameters
    ----------
    ranking : sequence of str
        Images, best first.
    positives : collection of str
        Images to be found.
    junk : collection of str, optional
        Images that count neither way.

    Returns
    -------
    float
        0 (nothing found) to 1 (every positive comes before everything else).

    Raises
    ------
    ValueError
        There are no positives (the figure is then undefined: leave such a query out of a mean), an image is ranked
        twice, or an image is both positive and junk.
    """
    hits, size = _hits(ranking, positives, junk)
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    previous = np.concatenate([[1.0], precision[:-1]])
    return float(((previous + precision) / 2)[hits].sum() / size)


def rectangular_average_precision(
    ranking: Sequence[str], positives: Collection[str], junk: Collection[str] = ()
) -> float:
    """Return the mean precision at the ranks of the positives, as TREC and most libraries define it. For reference.

    It reads up to two points higher than `average_precision`; the two must never be mixed in one table.

    Parameters, return value and errors are those of `average_precision`.
    """
    hits, size = _hits(ranking, positives, junk)
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


def _hits(ranking: Sequence[str], positives: Collection[str], junk: Collection[str]) -> tuple[np.ndarray, int]:
    """Return, for each ranked image that is not junk, whether it is a positive; and the number of positives."""
    wanted, ignored = frozenset(positives), frozenset(junk)
    if not wanted:
        raise ValueError("a query without positives has no average precision")
    if both := wanted & ignored:
        raise ValueError(f"{min(both)!r} is both positive and junk")
    if len(set(ranking)) != len(ranking):
        raise ValueError("an image is ranked twice")
    return np.array([name in wanted for name in ranking if name not in ignored], bool), len(wanted)
