"""Average precision of rankings and precision at k, as the programs of Oxford, Paris and Revisited compute them."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray


def average_precision(
    ranking: Sequence[Hashable], positives: Collection[Hashable], junk: Collection[Hashable] = ()
) -> float:
    """Area under the precision-recall curve by trapezoids, 0 to 1: the figure that Oxford5K and Paris6K report.

    The curve starts at recall 0 and precision 1; each non-junk image adds (recall - previous recall) * (previous
    precision + precision) / 2. Junk takes no rank; an unranked positive counts as not found. Source: Philbin et al.,
    CVPR 2007 (``compute_ap``). Raises ValueError if there are no positives, an image is ranked twice, or it is positive
    and junk.
    """
    hits, size = _hits(ranking, positives, junk)
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    previous = np.concatenate([[1.0], precision[:-1]])
    return float(((previous + precision) / 2)[hits].sum() / size)


def average_precision_at(
    ranking: Sequence[Hashable], positives: Collection[Hashable], depth: int, junk: Collection[Hashable] = ()
) -> float:
    """Average precision of the first images, whose mean at 100 is mAP@100 of Google Landmarks (Weyand et al., CVPR
    2020, section 5.1): the sum of the precisions at each positive among the first ``depth`` images that are not junk,
    over the number of positives or ``depth``, whichever is less. Raises ValueError as `average_precision`, or if depth
    < 1.
    """
    if depth < 1:
        raise ValueError(f"a ranking counts to one image at least, not to {depth}")
    hits, size = _hits(ranking, positives, junk)
    hits = hits[:depth]
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    return float(precision[hits].sum() / min(size, depth))


def global_average_precision(right: Sequence[bool], positives: int) -> float:
    """Return the global average precision (GAP, or micro-AP) of predictions of many queries, one of each at most.

    The sum of the precisions at each right prediction, over the number of queries that have an answer.

    Parameters
    ----------
    right : sequence of bool
        Whether each prediction is right, most confident first; one for a query without an answer is wrong.
    positives : int
        Queries that have an answer, at least 1.

    Notes
    -----
    Source: Perronnin, Liu, Renders, A Family of Contextual Measures of Similarity, CVPR 2009, as Weyand et al., CVPR
    2020, report it.

    Examples
    --------
    Two of three are right, the first and the last: (1 + 2 / 3) / 4.

    >>> round(global_average_precision([True, False, True], 4), 6)
    0.416667
    """
    if positives < 1:
        raise ValueError("no query has an answer, so there is no average precision")
    hits = np.asarray(right, bool)
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    return float(precision[hits].sum() / positives)


def precision_at(
    ranking: Sequence[Hashable], positives: Collection[Hashable], k: int, junk: Collection[Hashable] = ()
) -> float:
    """Share of positives among the first k images that are not junk, 0 to 1, as Revisited reports it: if the last
    positive comes before place k, only the images up to that one count (Radenović et al., CVPR 2018, ``compute_map``).
    Raises ValueError as `average_precision`, or if k < 1.
    """
    if k < 1:
        raise ValueError(f"precision is at one image at least, not at {k}")
    hits, _ = _hits(ranking, positives, junk)
    places = np.flatnonzero(hits) + 1
    if not len(places):
        return 0.0
    last = min(int(places[-1]), k)
    return float((places <= last).sum() / last)


def mean_average_precision(values: Iterable[float]) -> float:
    """Mean of average precisions over queries. Raises ValueError without values, or if one is not between 0 and 1."""
    array = np.array(list(values), np.float64)
    if not array.size:
        raise ValueError("no query has an average precision, so there is no mean")
    if not ((array >= 0) & (array <= 1 + 1e-9)).all():
        raise ValueError("an average precision lies between 0 and 1")
    return float(array.mean())


def _hits(
    ranking: Sequence[Hashable], positives: Collection[Hashable], junk: Collection[Hashable]
) -> tuple[NDArray[np.bool_], int]:
    """Return, for each ranked non-junk image, whether it is a positive; and the number of positives."""
    wanted, ignored = frozenset(positives), frozenset(junk)
    if not wanted:
        raise ValueError("a query without positives has no average precision")
    if both := wanted & ignored:
        raise ValueError(f"{min(both, key=str)!r} is both positive and junk")
    if len(set(ranking)) != len(ranking):
        raise ValueError("an image is ranked twice")
    return np.array([name in wanted for name in ranking if name not in ignored], bool), len(wanted)
