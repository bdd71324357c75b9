"""The similarity hᵀ A h' of weak learners, and embeddings made of it (Trzcinski12 sections 3.1 and 3.2)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from learning.roc import fpr95
from learning.rows import squared_distances
from retrieval.threads import one_thread

_PAIRS = 8_192  # measured at a time
_LARGEST = 700.0  # exponent that double precision holds


@dataclass(frozen=True)
class MetricOptions:
    """Stochastic gradient descent on the exponential loss (equation 5)."""

    # Constant, as in the paper. The gradient is that of the loss's logarithm, whose entries lie between -1 and 1, and
    # the step is a share of the trace of A over P: neither the number of weak learners nor their weights' scale matter.
    step: float = 0.05
    # Ours: AdaBoost's diagonal matrix is taken times this to begin with. No ranking hangs on it, but with all of it the
    # loss hangs on a few pairs, wrongly labelled ones among them, and the descent is led astray by them.
    start: float = 0.1
    batch: int = 1_000  # pairs a step
    epochs: int = 60  # at most
    patience: int = 10  # epochs without a better error on validation pairs, after which it ends
    diagonal: bool = False  # A is diagonal
    positive: bool = True  # A is kept positive semi-definite


@dataclass(frozen=True)
class PairResponses:
    """Pairs of rows of weak learners' answers."""

    answers: np.ndarray  # (U, P) int8: h, 1 or -1, of each patch
    first: np.ndarray  # (M,) int: row of a pair's first patch
    second: np.ndarray  # (M,) int
    match: np.ndarray  # (M,) bool

    def __len__(self) -> int:
        return len(self.match)

    def take(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Give h of both patches of pairs (K,): twice (K, P) float32."""
        return self.answers[self.first[rows]].astype(np.float32), self.answers[self.second[rows]].astype(np.float32)

    def similarities(self, matrix: np.ndarray) -> np.ndarray:
        """Give f (M,) float64 of all pairs, A being (P, P), or (P,) where it is diagonal (equation 4)."""
        found = np.empty(len(self))
        for start in range(0, len(self), _PAIRS):
            rows = np.arange(start, min(start + _PAIRS, len(self)))
            found[rows] = similarity(*self.take(rows), matrix)
        return found

    def loss(self, matrix: np.ndarray, offset: float = 0.0) -> float:
        """Mean of exp(-l (f + offset)) (equation 5)."""
        exponents = -np.where(self.match, 1, -1) * (self.similarities(matrix) + offset)
        return float(np.exp(np.minimum(exponents, _LARGEST)).mean())

    def error(self, embedding: np.ndarray) -> float:
        """FPR95 of the pairs by their distances, answers being embedded by Bᵀ (d, P)."""
        rows = embed(self.answers, embedding)
        return fpr95(squared_distances(rows.__getitem__, self.first, self.second), self.match)


@dataclass(frozen=True)
class BoostedMetric:
    """A similarity of weak learners, and how it came about."""

    matrix: np.ndarray  # A: (P, P) float64, symmetric; or (P,), its diagonal
    offset: float  # what is added to it in the loss
    errors: list[float]  # FPR95 of validation pairs by the embedding, before the first epoch and after each
    losses: list[float]  # of equation 5 on validation pairs, likewise
    chosen: int  # place in these of the metric that was taken
    similarity_error: float  # FPR95 of validation pairs by f itself


def embed(answers: np.ndarray, embedding: np.ndarray) -> np.ndarray:
    """Give Bᵀ h (U, d) float32 of answers (U, P), Bᵀ being (d, P) (equation 8)."""
    with one_thread():
        return answers.astype(np.float32) @ embedding.T.astype(np.float32)


def similarity(first: np.ndarray, second: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Give hᵀ A h' (equation 4), pair by pair.

    Parameters
    ----------
    first, second : ndarray, shape (M, P)
        h of either patch.
    matrix : ndarray, shape (P, P) or (P,)
        A, or its diagonal.

    Returns
    -------
    ndarray, shape (M,)
    """
    if matrix.ndim == 1:
        return np.asarray((first * second) @ matrix.astype(first.dtype))
    with one_thread():
        return np.einsum("mp,mp->m", first @ matrix.astype(first.dtype), second)


def learn_metric(
    train: PairResponses,
    validation: PairResponses,
    weights: np.ndarray,
    dim: int,
    options: MetricOptions,
    rng: np.random.Generator,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> BoostedMetric:
    """Learn A by stochastic gradient descent from the diagonal matrix of AdaBoost's weights.

    That epoch's A is taken whose embedding into the wanted dimensions does best on the validation pairs, as it is the
    embedding that is asked for. A constant beside f, as in `boosted_search.SearchOptions.offset`, is put where the loss
    is least before every epoch.

    Parameters
    ----------
    train, validation : PairResponses
        To learn from; to tell when to stop and which epoch's A to take.
    weights : ndarray, shape (P,)
        α.
    dim : int
        d, from 1 to P.
    options : MetricOptions
        How.
    rng : Generator
        Orders the pairs.
    progress : callable, optional
        Told how many epochs are done, and how many there are at most.
    """
    begin = options.start * weights.astype(np.float64)
    matrix = begin if options.diagonal else np.diag(begin)
    labels = np.where(train.match, 1.0, -1.0)
    step = options.step * float(begin.mean())
    offset = _best_offset(train.similarities(matrix), train.match)
    errors, losses, best, chosen, kept = [], [], (np.inf, np.inf), 0, (matrix, offset)
    for epoch in range(options.epochs + 1):
        errors.append(validation.error(embedding_of(matrix, dim)))
        losses.append(validation.loss(matrix, offset))
        if (errors[-1], losses[-1]) < best:
            best, chosen, kept = (errors[-1], losses[-1]), epoch, (matrix.copy(), offset)
        progress(epoch, options.epochs)
        if epoch - chosen >= options.patience:
            break
        order = rng.permutation(len(train))
        for start in range(0, len(train), options.batch):
            rows = order[start : start + options.batch]
            matrix = _descend(matrix, offset, *train.take(rows), labels[rows], step)
        if options.positive:
            matrix = nearest_positive(matrix)
        offset = _best_offset(train.similarities(matrix), train.match)
    own = fpr95(-validation.similarities(kept[0]), validation.match)
    return BoostedMetric(kept[0], kept[1], errors, losses, chosen, own)


def _descend(
    matrix: np.ndarray, offset: float, first: np.ndarray, second: np.ndarray, labels: np.ndarray, step: float
) -> np.ndarray:
    """One step down the logarithm of the loss of some pairs."""
    found = similarity(first, second, matrix) + offset
    exponents = -labels * found
    weights = np.exp(exponents - exponents.max())
    weights /= weights.sum()
    pull = (weights * labels).astype(np.float32)
    if matrix.ndim == 1:
        return np.asarray(matrix + step * (pull @ (first * second)))
    with one_thread():
        gradient = (first * pull[:, None]).T @ second
    return np.asarray(matrix + step / 2 * (gradient + gradient.T))


def _best_offset(similarities: np.ndarray, match: np.ndarray) -> float:
    """The constant that, added to f, makes the loss least: matches and others weigh the same then."""
    return float(0.5 * (logsumexp(-similarities[match]) - logsumexp(similarities[~match])))


def nearest_positive(matrix: np.ndarray) -> np.ndarray:
    """Give the nearest positive semi-definite matrix: a symmetric one (P, P), or the diagonal (P,) of one."""
    if matrix.ndim == 1:
        return np.maximum(matrix, 0)
    with one_thread():
        values, vectors = np.linalg.eigh(matrix)
        return np.asarray((vectors * np.maximum(values, 0)) @ vectors.T)


def factorise(matrix: np.ndarray, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Factorise A = B W Bᵀ (equation 6), keeping the eigenvalues of largest magnitude.

    Parameters
    ----------
    matrix : ndarray, shape (P, P) or (P,)
        A symmetric matrix, or the diagonal of one.
    dim : int
        d, from 1 to P.

    Returns
    -------
    factor : ndarray, shape (P, d), float64
        B: eigenvectors times the root of their eigenvalues' magnitude, the largest first.
    signs : ndarray, shape (d,), float64
        The diagonal of W: 1 or -1.
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
    # An eigenvector's sign is anyone's guess: its largest entry is made positive, so that all computers agree.
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(dim)]
    return vectors * np.where(largest < 0, -1, 1), np.where(values[order] < 0, -1.0, 1.0)


def embedding_of(matrix: np.ndarray, dim: int) -> np.ndarray:
    """Give Bᵀ (d, P) float32 of what is positive of A, scaled so that no row h is made longer than 1.

    A negative eigenvalue would take away from a distance, which none does; `MetricOptions.positive` leaves none. Fewer
    than ``dim`` rows come out where fewer eigenvalues are positive.
    """
    factor, signs = factorise(nearest_positive(matrix), dim)
    used = (signs > 0) & (np.square(factor).sum(axis=0) > 1e-12 * np.abs(matrix).sum())
    embedding = factor[:, used].T
    with one_thread():
        longest = np.linalg.norm(embedding, 2) * np.sqrt(embedding.shape[1])
    return np.ascontiguousarray(embedding / longest, np.float32)


def principal_axes(answers: np.ndarray, dim: int) -> np.ndarray:
    """Give the principal axes (d, P) float32 of answers h (U, P), scaled as by `embedding_of` (BGM-PCA)."""
    total = np.zeros((answers.shape[1],) * 2)
    for start in range(0, len(answers), _PAIRS):
        rows = answers[start : start + _PAIRS].astype(np.float32)
        total += rows.T @ rows  # whole numbers below 2^24: exact
    mean = answers.mean(axis=0, dtype=np.float64)
    with one_thread():
        vectors = np.linalg.eigh(total / len(answers) - np.outer(mean, mean))[1]
    axes = vectors[:, ::-1][:, :dim].T
    axes = axes * np.where(axes[np.arange(dim), np.abs(axes).argmax(axis=1)] < 0, -1, 1)[:, None]
    return np.ascontiguousarray(axes / np.sqrt(answers.shape[1]), np.float32)
