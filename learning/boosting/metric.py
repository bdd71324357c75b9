"""The similarity hᵀ A h' of weak learners, and embeddings made of it (Trzcinski12 sections 3.1 and 3.2)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from index.parallel import one_thread
from index.progress import Step, silent
from learning.measures.roc import fpr95
from learning.patches.rows import signed_products, squared_distances

_PAIRS = 8_192  # measured at a time
_LARGEST = 700.0  # exponent that double precision holds


FORMS = ("distance", "inner")
"""Argument of the loss: hᵀ A h', as in the paper (inner), or minus half the squared distance of embedded rows."""
COMPARISONS = ("distance", "inner")
"""Comparison of embedded rows: by distance, or by a signed inner product as in the paper (equation 7)."""
KEPT = ("variance", "eigenvalues")
"""Parts kept in an embedding: directions of largest variance, or A's largest eigenvalues as in the paper (equation
6)."""


@dataclass(frozen=True)
class MetricOptions:
    """Stochastic gradient descent on the exponential loss (equation 5), in the paper's way or in ours.

    Ours has -½ (h - h')ᵀ A (h - h') for f. For a diagonal A that is equation 4 up to a constant. Otherwise
    rows differ in length hᵀ A h, and descriptors are compared by distance. Answers shared by all patches cancel. (The
    paper's way: form inner, kept eigenvalues, comparison inner, start 1, offset
    False, positive False.)
    """

    form: str = "distance"  # one of FORMS
    comparison: str = "distance"  # one of COMPARISONS
    kept: str = "variance"  # one of KEPT; no effect on a diagonal A, whose largest entries are kept
    # Constant, as in the paper. The gradient is that of the logarithm of a batch's loss, whose entries lie between -2
    # and 2, and the step is a share of the trace of A over P, so that the scale of the weights does not matter. The
    # form inner takes smaller ones, 5 / P at most.
    step: float = 0.02
    # Ours: initial scale of AdaBoost's diagonal matrix, where the validation loss is least. It does not change
    # rankings, but at full scale a few pairs, some wrongly labelled, dominate the loss.
    start: float = 0.3
    batch: int = 1_000  # pairs a step
    epochs: int = 60  # at most
    patience: int = 10  # epochs without a better validation error before it ends
    diagonal: bool = False  # A is diagonal
    positive: bool = True  # A is kept positive semi-definite
    offset: bool = True  # add a constant to f that gives matches and others the same weight


@dataclass(frozen=True)
class PairResponses:
    """Pairs of rows of weak learners' answers."""

    answers: NDArray[np.int8]  # (U, P) int8: h, 1 or -1, of each patch
    first: NDArray[np.int64]  # (M,) int: row of a pair's first patch
    second: NDArray[np.int64]  # (M,) int
    match: NDArray[np.bool_]  # (M,) bool

    def __len__(self) -> int:
        return len(self.match)

    def take(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return h of both patches of pairs (K,): two arrays (K, P) float32."""
        return self.answers[self.first[rows]].astype(np.float32), self.answers[self.second[rows]].astype(np.float32)

    def similarities(self, matrix: NDArray[np.float64], form: str = "inner") -> NDArray[np.float64]:
        """Return f (M,) float64 of all pairs in one of `FORMS`; A is (P, P), or (P,) if diagonal."""
        values = np.empty(len(self))
        for start in range(0, len(self), _PAIRS):
            rows = np.arange(start, min(start + _PAIRS, len(self)))
            values[rows] = similarity(*self.take(rows), matrix, form)
        return values

    def loss(self, matrix: NDArray[np.float64], offset: float = 0.0, form: str = "inner") -> float:
        """Mean of exp(-l (f + offset)) (equation 5)."""
        exponents = -np.where(self.match, 1, -1) * (self.similarities(matrix, form) + offset)
        return float(np.exp(np.minimum(exponents, _LARGEST)).mean())

    def error(self, embedding: NDArray[np.float32], signs: NDArray[np.float32] | None = None) -> float:
        """FPR95 of the pairs, with answers embedded by Bᵀ (d, P): by distances, or with W by f (equation 7)."""
        rows = embed(self.answers, embedding)
        if signs is not None:
            return fpr95(-signed_products(rows.__getitem__, self.first, self.second, signs), self.match)
        return fpr95(squared_distances(rows.__getitem__, self.first, self.second), self.match)


@dataclass(frozen=True)
class BoostedMetric:
    """A similarity of weak learners, and a record of its learning."""

    matrix: NDArray[np.float64]  # A: (P, P) float64, symmetric; or (P,), its diagonal
    offset: float  # constant added in the loss
    errors: list[float]  # FPR95 of validation pairs by the embedding, before the first epoch and after each
    losses: list[float]  # of equation 5 on validation pairs, likewise
    chosen: int  # index of the chosen metric in these
    similarity_error: float  # FPR95 of validation pairs by f with all dimensions
    # (P, P), of the training answers, if variance is kept.
    covariance: NDArray[np.float64] | None = None
    signed: bool = False  # compared by signed inner products

    def embedding(self, dim: int) -> NDArray[np.float32]:
        """Return the embedding (d, P) float32 into at most this many dimensions."""
        return self._factors(dim)[0]

    def signs(self, dim: int) -> NDArray[np.float32] | None:
        """Return the signs (d,) float32 of its dimensions, for a comparison by signed inner products."""
        return self._factors(dim)[1]

    def _factors(self, dim: int) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
        if self.signed:
            return signed_embedding_of(self.matrix, dim)
        return embedding_of(self.matrix, dim, self.covariance), None


def embed(answers: NDArray[np.int8], embedding: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return Bᵀ h (U, d) float32 of answers (U, P) for Bᵀ (d, P) (equation 8)."""
    with one_thread():
        return answers.astype(np.float32) @ embedding.T.astype(np.float32)


def similarity(
    first: NDArray[np.floating], second: NDArray[np.floating], matrix: NDArray[np.float64], form: str = "inner"
) -> NDArray[np.floating]:
    """Return hᵀ A h' (equation 4) of pairs (M, P), or -½ (h - h')ᵀ A (h - h'); A is (P, P), or (P,) its diagonal."""
    if form == "distance":
        first = first - second
        return -0.5 * similarity(first, first, matrix)
    if matrix.ndim == 1:
        return np.asarray((first * second) @ matrix.astype(first.dtype))
    with one_thread():
        return np.asarray(np.einsum("mp,mp->m", first @ matrix.astype(first.dtype), second))


def learn_metric(
    train: PairResponses,
    validation: PairResponses,
    weights: NDArray[np.floating],
    dim: int,
    options: MetricOptions,
    rng: np.random.Generator,
    progress: Step = silent,
) -> BoostedMetric:
    """Learn A by stochastic gradient descent from the diagonal of AdaBoost's weights α (P,).

    The result is the A of the epoch whose embedding into `dim` dimensions has the least validation error. The constant
    added to f minimises the loss of each batch.
    """
    begin = options.start * weights.astype(np.float64)
    matrix = begin if options.diagonal else np.diag(begin)
    covariance = None
    if options.kept == "variance" and not options.diagonal:
        covariance = covariance_of(train.answers[np.union1d(train.first, train.second)])
    labels = np.where(train.match, 1.0, -1.0)
    step = options.step * float(begin.mean())

    signed = options.comparison == "inner"

    def error_of(of: NDArray[np.float64]) -> float:
        if signed:
            return validation.error(*signed_embedding_of(of, dim))
        return validation.error(embedding_of(of, dim, covariance))

    def best_offset(of: NDArray[np.float64]) -> float:
        return _best_offset(train.similarities(of, options.form), train.match) if options.offset else 0.0

    offset = best_offset(matrix)
    errors, losses, best, chosen, best_metric = [], [], (np.inf, np.inf), 0, (matrix, offset)
    for epoch in range(options.epochs + 1):
        errors.append(error_of(matrix))
        losses.append(validation.loss(matrix, offset, options.form))
        if (errors[-1], losses[-1]) < best:
            best, chosen, best_metric = (errors[-1], losses[-1]), epoch, (matrix.copy(), offset)
        progress(epoch, options.epochs)
        if epoch - chosen >= options.patience:
            break
        order = rng.permutation(len(train))
        for start in range(0, len(train), options.batch):
            rows = order[start : start + options.batch]
            matrix = _descend(matrix, offset, *train.take(rows), labels[rows], step, options)
        if options.positive:
            matrix = nearest_positive(matrix)
        offset = best_offset(matrix)
    own = fpr95(-validation.similarities(best_metric[0], options.form), validation.match)
    return BoostedMetric(best_metric[0], best_metric[1], errors, losses, chosen, own, covariance, signed)


def _descend(
    matrix: NDArray[np.float64],
    offset: float,
    first: NDArray[np.float32],
    second: NDArray[np.float32],
    labels: NDArray[np.float64],
    step: float,
    options: MetricOptions,
) -> NDArray[np.float64]:
    """One gradient step on the logarithm of the loss of some pairs."""
    scale = 1.0
    if options.form == "distance":  # a similarity of differences, see `similarity`
        first = second = first - second
        scale = -0.5
    similarities = scale * similarity(first, second, matrix)
    if options.offset and abs(labels.sum()) < len(labels):
        # The batch's own offset: with that of the last epoch, all pairs would pull A the same way, further each time.
        offset = _best_offset(similarities, labels > 0)
    exponents = -labels * (similarities + offset)
    weights = np.exp(exponents - exponents.max())
    weights /= weights.sum()
    pull = np.float32(scale) * (weights * labels).astype(np.float32)
    if matrix.ndim == 1:
        return np.asarray(matrix + step * (pull @ (first * second)))
    with one_thread():
        gradient = (first * pull[:, None]).T @ second
    return np.asarray(matrix + step / 2 * (gradient + gradient.T))


def _best_offset(similarities: NDArray[np.floating], match: NDArray[np.bool_]) -> float:
    """The constant added to f that minimises the loss: matches and others then weigh the same."""
    return float(0.5 * (logsumexp(-similarities[match]) - logsumexp(similarities[~match])))


def nearest_positive(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the nearest positive semi-definite matrix: a symmetric one (P, P), or the diagonal (P,) of one."""
    if matrix.ndim == 1:
        return np.maximum(matrix, 0)
    return _with_eigenvalues(matrix, lambda values: np.maximum(values, 0))


def _with_eigenvalues(
    matrix: NDArray[np.float64], change: Callable[[NDArray[np.float64]], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """A symmetric matrix (P, P) with its eigenvalues changed."""
    with one_thread():
        values, vectors = np.linalg.eigh(matrix)
        return np.asarray((vectors * change(values)) @ vectors.T)


def factorise(matrix: NDArray[np.float64], dim: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Factorise a symmetric A, or a diagonal (P,), as B W Bᵀ (equation 6): B (P, d), and the diagonal of W (d,), 1 or
    -1.

    Columns of B are eigenvectors times the root of their eigenvalues' magnitude, the largest first.
    """
    if not 1 <= dim <= len(matrix):
        raise ValueError(f"{len(matrix)} weak learners are embedded into 1 to so many dimensions, not {dim}")
    if matrix.ndim == 1:
        values, vectors = matrix, np.eye(len(matrix))
    else:
        with one_thread():
            values, vectors = np.linalg.eigh(matrix)
    order = np.argsort(-np.abs(values), kind="stable")[:dim]
    vectors = vectors[:, order] * np.sqrt(np.abs(values[order]))
    return _signed(vectors.T).T, np.where(values[order] < 0, -1.0, 1.0)


def embedding_of(
    matrix: NDArray[np.float64], dim: int, covariance: NDArray[np.float64] | None = None
) -> NDArray[np.float32]:
    """Embedding (d, P) float32 of the positive part of A, (P, P) or a diagonal, scaled so that no row h gets longer
    than 1.

    It has fewer than ``dim`` rows if fewer eigenvalues are positive. With the `covariance` (P, P) of the answers h, the
    principal axes of A^½ h are kept; without it A's largest eigenvalues (equations 6 and 8), as if they were
    independent.
    """
    if covariance is None:
        factor, signs = factorise(nearest_positive(matrix), dim)
        used = (signs > 0) & (np.square(factor).sum(axis=0) > 1e-12 * np.abs(matrix).sum())
        embedding = factor[:, used].T
    else:
        root = _with_eigenvalues(matrix, lambda values: np.sqrt(np.maximum(values, 0)))
        with one_thread():
            values, vectors = np.linalg.eigh(root @ covariance @ root)
            axes = vectors[:, ::-1][:, :dim].T[values[::-1][:dim] > 1e-12 * max(values[-1], 1e-300)]
            embedding = _signed(axes @ root)
    with one_thread():
        longest = np.linalg.norm(embedding, 2) * np.sqrt(embedding.shape[1])
    return np.ascontiguousarray(embedding / longest, np.float32)


def signed_embedding_of(matrix: NDArray[np.float64], dim: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return Bᵀ (d, P) float32 and the diagonal (d,) float32 of W, 1 or -1 (equations 6 and 8).

    Scaled as by `embedding_of`; f (equation 7) is defined up to that scale. Fewer rows come out if A has a lower rank.
    """
    factor, signs = factorise(matrix, dim)
    used = np.square(factor).sum(axis=0) > 1e-12 * np.abs(matrix).sum()
    embedding = factor[:, used].T
    with one_thread():
        longest = np.linalg.norm(embedding, 2) * np.sqrt(embedding.shape[1]) if len(embedding) else 1.0
    return np.ascontiguousarray(embedding / longest, np.float32), signs[used].astype(np.float32)


def _signed(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Flip rows (d, P) so that their entry of largest magnitude is positive, for the same signs on all computers."""
    return rows * np.where(rows[np.arange(len(rows)), np.abs(rows).argmax(axis=1)] < 0, -1, 1)[:, None]


def covariance_of(answers: NDArray[np.int8]) -> NDArray[np.float64]:
    """Covariance (P, P) float64 of answers h (U, P)."""
    total = np.zeros((answers.shape[1],) * 2)
    for start in range(0, len(answers), _PAIRS):
        rows = answers[start : start + _PAIRS].astype(np.float32)
        with one_thread():
            total += rows.T @ rows  # whole numbers below 2^24: exact
    mean = answers.mean(axis=0, dtype=np.float64)
    return np.asarray(total / len(answers) - np.outer(mean, mean))


def principal_axes(answers: NDArray[np.int8], dim: int) -> NDArray[np.float32]:
    """Return the principal axes (d, P) float32 of answers h (U, P), scaled as by `embedding_of` (BGM-PCA)."""
    with one_thread():
        vectors = np.linalg.eigh(covariance_of(answers))[1]
    axes = _signed(vectors[:, ::-1][:, :dim].T)
    return np.ascontiguousarray(axes / np.sqrt(answers.shape[1]), np.float32)
