"""Regularised Dual Averaging for ranking pairs of descriptors (Simonyan14 section 7; Xiao, JMLR 2010).

Both objectives are sums of the hinge L(z) = max(z + 1, 0) over all combinations of a positive pair and a negative pair,
of the difference of their distances. The loss and its subgradient over *all* P·N combinations follow from sorting the
distances, in the time of P + N pairs: combination (p, n) is active where d_n < d_p + 1. The objective of section 9,
where each feature has its own negatives, is solved by the same steps on other batches (`learning.latent.alternation`).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from index.parallel import one_thread


class PairRows(Protocol):
    """Rows of pairs, in memory or on disk."""

    def __len__(self) -> int: ...

    def take(self, numbers: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return rows (K, N) float32."""
        ...


@dataclass(frozen=True)
class AveragingOptions:
    """Number and size of the steps of RDA."""

    iterations: int = 2_000  # t of equation 12
    batch: int = 500  # positive pairs an iteration, and as many negative ones; all combinations count; 0: all pairs
    gamma: float = 1.0  # γ of β_t = γ √t, equation 13
    seed: int = 0  # seed of the order of drawing pairs


Counts = Callable[[NDArray[np.floating], NDArray[np.floating]], tuple[float, NDArray[np.float64], NDArray[np.float64]]]
"""Maps distances of matches and of others to the loss, its slope by the first, and minus its slope by the second."""


@dataclass(frozen=True)
class Batch:
    """Pairs of one step of RDA."""

    near: NDArray[np.float32]  # (P, N) float32: rows of matches
    far: NDArray[np.float32]  # (M, N) float32: rows of others
    counts: Counts


def hinge_counts(
    positive: NDArray[np.floating], negative: NDArray[np.floating]
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Mean hinge loss over all combinations of distances, and the active share of each.

    Parameters
    ----------
    positive, negative : ndarray, shape (P,) and (N,)
        Squared distances of positive and of negative pairs.

    Returns
    -------
    float
        Mean over the P·N combinations of max(d_p - d_n + 1, 0).
    ndarray, shape (P,), float64
        For each positive pair the share 1 / (P·N) of each combination that is active: the loss's slope by d_p.
    ndarray, shape (N,), float64
        The same for each negative pair: minus the loss's slope by d_n.
    """
    positive, negative = positive.astype(np.float64), negative.astype(np.float64)
    combinations = len(positive) * len(negative)
    # Both use the same comparison, d_n < d_p + 1, so that rounding cannot make them disagree.
    reach = positive + 1
    by_positive = np.searchsorted(np.sort(negative), reach, side="left") / combinations
    by_negative = (len(positive) - np.searchsorted(np.sort(reach), negative, side="right")) / combinations
    loss = by_positive @ reach - by_negative @ negative
    return float(loss), by_positive, by_negative


def all_combinations(positive: PairRows, negative: PairRows, size: int, seed: int) -> Iterator[Batch]:
    """Draw batches without end for the ranking of every positive pair above every negative pair (equation 11).

    Parameters
    ----------
    positive, negative : PairRows
        Of the pairs.
    size : int
        Positive pairs a batch, and the same number of negative ones; 0: all.
    seed : int
        Of the order. Each pair comes once before any is repeated.
    """
    rng = np.random.default_rng(seed)
    for of_positive, of_negative in zip(draw(len(positive), size, rng), draw(len(negative), size, rng), strict=True):
        yield Batch(positive.take(of_positive), negative.take(of_negative), hinge_counts)


def draw(number: int, size: int, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Draw batches of indices (0: all) without end, each index once before any is repeated."""
    size = min(size or number, number)
    while True:
        order = rng.permutation(number) if size < number else np.arange(number)
        for start in range(0, number - size + 1, size):
            yield np.sort(order[start : start + size])


def sparse_weights(
    positive: PairRows,
    negative: PairRows,
    mu: float,
    options: AveragingOptions,
    monitor: Callable[[int, NDArray[np.float64]], None] | None = None,
) -> NDArray[np.float64]:
    """Minimise equation 6 by `minimise_weights`, for ψ of positive and of negative pairs, rows of N."""
    batches = all_combinations(positive, negative, options.batch, options.seed)
    return minimise_weights(batches, mu, options, monitor)


def minimise_weights(
    batches: Iterator[Batch],
    mu: float,
    options: AveragingOptions,
    monitor: Callable[[int, NDArray[np.float64]], None] | None = None,
) -> NDArray[np.float64]:
    """Minimise a ranking loss and the L1 norm of non-negative weights by equation 13.

    Parameters
    ----------
    batches : iterator of Batch
        ψ of pairs, rows of N.
    mu : float
        μ₁, relative to the *mean* of the loss over combinations (equation 11) or features.
    options : AveragingOptions
        Steps.
    monitor : callable, optional
        Told the iteration and its weights.

    Returns
    -------
    ndarray, shape (N,), float64
        Weights; most are zero.
    """
    weights: NDArray[np.float64] = np.zeros(0)
    average = weights
    with one_thread():
        for step, batch in enumerate(batches, start=1):
            if step == 1:
                weights, average = np.zeros((2, batch.near.shape[1]))
            current = weights.astype(np.float32)
            _, by_near, by_far = batch.counts(batch.near @ current, batch.far @ current)
            gradient = _combine(by_near, batch.near) - _combine(by_far, batch.far)
            average += (gradient - average) / step
            weights = np.maximum(-np.sqrt(step) / options.gamma * (average + mu), 0)
            if monitor:
                monitor(step, weights)
            if step >= options.iterations:
                return weights
    raise AssertionError("the batches never end")


def _combine(counts: NDArray[np.float64], rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Sum of rows times their counts; rows with count 0 are not read."""
    used = np.flatnonzero(counts)
    return counts[used].astype(np.float32) @ rows[used]


def low_rank_metric(
    positive: PairRows,
    negative: PairRows,
    mu: float,
    options: AveragingOptions,
    norm: str = "nuclear",
    monitor: Callable[[int, NDArray[np.float64]], None] | None = None,
) -> NDArray[np.float64]:
    """Minimise equation 10 by `minimise_metric`, for θ = φ(x) - φ(y) of positive and of negative pairs, rows of n."""
    batches = all_combinations(positive, negative, options.batch, options.seed)
    return minimise_metric(batches, mu, options, norm, monitor)


def minimise_metric(
    batches: Iterator[Batch],
    mu: float,
    options: AveragingOptions,
    norm: str = "nuclear",
    monitor: Callable[[int, NDArray[np.float64]], None] | None = None,
) -> NDArray[np.float64]:
    """Minimise a ranking loss and a norm of a positive semi-definite metric by equation 13.

    Parameters
    ----------
    batches : iterator of Batch
        θ = φ(x) - φ(y) of pairs, rows of n.
    mu : float
        μ*, relative to the mean of the loss over combinations or features.
    options : AveragingOptions
        Steps.
    norm : {"nuclear", "frobenius"}
        μ ‖A‖_* lowers the rank; μ/2 ‖A‖_F² keeps the dimension.
    monitor : callable, optional
        Told the iteration and a W with WᵀW = A.

    Returns
    -------
    ndarray, shape (m, n), float64
        W = √D_r Vᵀ, by falling eigenvalue; m is the rank of A.
    """
    projection = average = np.zeros((0, 0))
    for step, batch in enumerate(batches, start=1):
        size = batch.near.shape[1]
        if step == 1:
            projection, average = np.zeros((0, size)), np.zeros((size, size))
        current = projection.T.astype(np.float32)
        distances = [np.einsum("ij,ij->i", rows, rows) for rows in (batch.near @ current, batch.far @ current)]
        _, by_near, by_far = batch.counts(*distances)
        average += (_moment(by_near, batch.near) - _moment(by_far, batch.far) - average) / step
        if norm == "nuclear":
            scale, target = np.sqrt(step) / options.gamma, -average - mu * np.eye(size)
        else:  # the norm itself is strongly convex: its minimum with (γ / √t) ‖A‖²/2 has a closed form
            scale, target = 1 / (mu + options.gamma / np.sqrt(step)), -average
        projection = root_of(scale * target)
        if monitor:
            monitor(step, projection)
        if step >= options.iterations:
            return projection
    raise AssertionError("the batches never end")


def _moment(counts: NDArray[np.float64], rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Sum of θθᵀ times their counts."""
    used = np.flatnonzero(counts)
    scaled = rows[used] * np.sqrt(counts[used], dtype=np.float32)[:, None]
    return scaled.T @ scaled


def root_of(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return W = √D_r Vᵀ (m, n) of the projection of a symmetric matrix onto the positive semi-definite cone, Π.

    Eigenvalues below 0 are cropped, and so are positive ones within rounding error.
    """
    values, vectors = eigh(matrix, subset_by_value=(0, np.inf), check_finite=False)
    positive = values > 1e-7 * max(values.max(initial=0), 1e-30)
    order = np.argsort(-values[positive], kind="stable")
    return np.asarray((np.sqrt(values[positive]) * vectors[:, positive])[:, order].T)


def vector_penalty(weights: NDArray[np.float64], mu: float) -> float:
    """Return μ ‖w‖₁."""
    return mu * float(np.abs(weights).sum())


def metric_penalty(projection: NDArray[np.float64], mu: float, norm: str) -> float:
    """Return μ ‖A‖_*, or μ/2 ‖A‖_F² with the norm "frobenius", of A = WᵀW."""
    gram = projection @ projection.T  # has the eigenvalues of A
    return mu * float(np.trace(gram) if norm == "nuclear" else 0.5 * (gram**2).sum())
