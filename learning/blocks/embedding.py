"""E-blocks: linear embeddings learnt from matches and non-matches (Brown11, sections III.D and V)."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator, eigsh

from index.errors import CairnError
from index.parallel import one_thread
from retrieval.descriptors.blocks.descriptor import EMBEDDINGS

_ROWS = 2_048  # at a time
_SMALL = 200  # dimensions up to which an eigenproblem is solved as a whole
_SINGULAR = 1e-6  # lower bound of divisors, relative to the largest eigenvalue of B
_FLAT = 1e-10  # of the largest variance of x along a direction: less is rounding, of the entries by 1e-7 to 1e-6
_ROUNDING = 1e-12  # of the mean of xᵀ x: variance that may be due to rounding


@dataclass(frozen=True)
class Moments:
    """Second moments of descriptors x and of their differences, equations 6 to 9, each a mean and not a sum."""

    matched: NDArray[np.float64]  # (n, n) float64: A₁, of the x of matches, each as often as it is in one
    different: NDArray[np.float64]  # A₂, of the differences of non-matches
    every: NDArray[np.float64]  # A₃, of all x
    same: NDArray[np.float64]  # B, of the differences of matches
    mean: NDArray[np.float64]  # (n,) float64: subtracted from x in A₁ and A₃: μ of all x, or zero

    @classmethod
    def of(
        cls,
        rows: NDArray[np.float32],
        first: NDArray[np.int64],
        second: NDArray[np.int64],
        match: NDArray[np.bool_],
        *,
        centred: bool = True,
    ) -> "Moments":
        """Compute them from rows x (U, n) of patches, and the rows `first`, `second` (M,) of each pair.

        `centred` subtracts the mean of x, so that equations 2 and 4 maximise a variance, as the paper's text says.
        """
        if not match.any() or match.all():
            raise CairnError("An embedding is learnt from both matches and non-matches: build the patches with more.")
        mean = rows.mean(axis=0, dtype=np.float64) if centred else np.zeros(rows.shape[1])
        uses = np.bincount(np.concatenate([first[match], second[match]]), minlength=len(rows))
        with one_thread():
            return cls(
                _moment(_Centred(rows, mean), uses),
                _moment(_Differences(rows, first[~match], second[~match])),
                _moment(_Centred(rows, mean)),
                _moment(_Differences(rows, first[match], second[match])),
                mean,
            )

    @cached_property
    def axes(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Principal axes (n, r) along which x varies, and those (n, n - r), mostly none, along which it does not.

        Along the latter A and B are only rounding errors: their ratio is arbitrary.
        """
        values, vectors = eigh(self.every)
        varying = int((values > _FLAT * values[-1]).sum())
        return vectors[:, ::-1][:, :varying], vectors[:, ::-1][:, varying:]

    def is_nothing(self, moment: NDArray[np.float64]) -> bool:
        """Whether a moment is only the rounding error of equal rows."""
        return bool(np.trace(moment) <= _ROUNDING * (np.trace(self.every) + self.mean @ self.mean))


def learn_embedding(kind: str, moments: Moments, dim: int, alpha: float = 0.0) -> NDArray[np.float32]:
    """Find an E-block's projection W (K, n), best direction first; the first rows for a larger K are those for a
    smaller one.

    Directions of E1 and of the orthogonal blocks are orthonormal. Those of E2, E4 and E6 are generalised eigenvectors
    of one wᵀ B' w, B' being B regularised, scaled so that wᵀ A w = 1 for the first. Directions in which no rows vary
    come last, of length 1. `alpha`: share of B's power treated as noise by power regularisation (equation 21).
    """
    if kind not in EMBEDDINGS or kind == "none":
        raise CairnError(f"There is no embedding {kind!r}; choose one of {', '.join(EMBEDDINGS)}.")
    number = len(moments.same)
    if not 1 <= dim <= number:
        raise CairnError(f"The embedding has rows of {number} entries: ask for 1 to {number} dimensions.")
    if not 0 <= alpha < 1:
        raise CairnError(f"The part of power that is taken for noise lies between 0 and 1, and is {alpha}.")
    with one_thread():
        if kind == "pca":
            if moments.is_nothing(moments.every):
                raise CairnError("The patches' descriptors are all the same: there is nothing to embed.")
            projection = _leading(moments.every, dim)
        else:
            numerator = {"lpp": moments.matched, "lde": moments.different, "glde": moments.every}
            orthogonal = kind not in numerator
            a = numerator[kind.replace("o", "", 1) if orthogonal else kind]
            if moments.is_nothing(a):
                raise CairnError("The descriptors of different patches are the same: there is nothing to embed.")
            if moments.is_nothing(moments.same):
                raise CairnError(f"The two descriptors of each match are the same, from which {kind} learns nothing.")
            find = _orthogonal_directions if orthogonal else _generalised_directions
            whitening = _whitening(moments, alpha)
            directions = find(a, whitening, min(dim, whitening.shape[1]))
            projection = np.concatenate([directions, moments.axes[1].T[: dim - len(directions)]])
    return _oriented(projection).astype(np.float32)


def regularised(eigenvalues: NDArray[np.float64], alpha: float) -> NDArray[np.float64]:
    """Raise the smallest eigenvalues (n,) of B, a share `alpha` of their sum, to their largest (equations 20, 21)."""
    tails = np.cumsum(eigenvalues[::-1])[::-1]
    noise = np.flatnonzero(tails <= alpha * tails[0])
    floor = eigenvalues[noise[0]] if len(noise) else 0.0
    return np.maximum(eigenvalues, max(floor, _SINGULAR * eigenvalues[0], np.finfo(float).tiny))


def _whitening(moments: Moments, alpha: float) -> NDArray[np.float64]:
    """Matrix T (n, r) with Tᵀ B' T = I, where B' is B regularised, within the r axes along which x varies."""
    inside, outside = moments.axes
    if outside.size:
        values, vectors = eigh(inside.T @ moments.same @ inside)
        vectors = inside @ vectors
    else:
        values, vectors = eigh(moments.same)
    return np.asarray(vectors[:, ::-1] / np.sqrt(regularised(np.maximum(values[::-1], 0), alpha)))


def _generalised_directions(a: NDArray[np.float64], whitening: NDArray[np.float64], dim: int) -> NDArray[np.float64]:
    """Leading solutions (K, n) of A w = λ B' w (equation 11), of one length wᵀ B' w; wᵀ A w = 1 for the first."""
    directions = _leading(whitening.T @ a @ whitening, dim) @ whitening.T
    return np.asarray(directions / np.sqrt(directions[0] @ a @ directions[0]))


def _orthogonal_directions(a: NDArray[np.float64], whitening: NDArray[np.float64], dim: int) -> NDArray[np.float64]:
    """Solutions (K, n) of equations 13 to 17, each orthogonal to the previous ones.

    With w = T v, the objective is vᵀ C v over vᵀ v, C = Tᵀ A T, and wᵀ w_j = 0 is vᵀ (Tᵀ w_j) = 0. So v is the leading
    eigenvector of C in the subspace orthogonal to all Tᵀ w_j. It is that of equation 18, whose matrix is not symmetric.
    In the eigenbasis of C a product costs n instead of n² operations.
    """
    values, vectors = eigh(whitening.T @ a @ whitening)
    turned = whitening @ vectors  # w is a combination of these
    directions = np.zeros((dim, len(whitening)))
    forbidden = np.zeros((len(values), 0))
    for number in range(dim):
        directions[number] = turned @ _leading_within(values, forbidden)
        # Twice, to remove rounding errors along the earlier ones.
        for _ in range(2):
            directions[number] -= (directions[:number] @ directions[number]) @ directions[:number]
        directions[number] /= np.linalg.norm(directions[number])
        direction = turned.T @ directions[number]
        for _ in range(2):
            direction -= forbidden @ (forbidden.T @ direction)
        forbidden = np.column_stack([forbidden, direction / np.linalg.norm(direction)])
    return directions


def _leading_within(values: NDArray[np.float64], forbidden: NDArray[np.float64]) -> NDArray[np.float64]:
    """Leading eigenvector (n,) of a diagonal matrix in the subspace orthogonal to some orthonormal columns."""
    number = len(values)

    def allowed(vector: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(vector - forbidden @ (forbidden.T @ vector))

    # Forbidden directions get an eigenvalue below all others.
    lowest = min(values[0], 0) - abs(values[-1]) - 1e-300
    if number <= _SMALL:
        inside = np.eye(number) - forbidden @ forbidden.T
        matrix = inside @ (values[:, None] * inside) + lowest * (forbidden @ forbidden.T)
        return allowed(eigh(matrix, subset_by_index=(number - 1, number - 1))[1][:, 0])

    def product(vector: NDArray[np.float64]) -> NDArray[np.float64]:
        vector = vector.ravel()
        inside = allowed(vector)
        return np.asarray(allowed(values * inside) + lowest * (vector - inside))

    operator = LinearOperator((number, number), matvec=product, dtype=np.float64)
    start = allowed(np.linspace(1, 2, number))
    return allowed(eigsh(operator, k=1, which="LA", v0=start, ncv=min(number, 60), tol=1e-12)[1][:, 0])


def _leading(matrix: NDArray[np.float64], dim: int) -> NDArray[np.float64]:
    """Leading eigenvectors (K, n) of a symmetric matrix."""
    number = len(matrix)
    return np.asarray(eigh(matrix, subset_by_index=(number - dim, number - 1))[1][:, ::-1].T)


def _oriented(projection: NDArray[np.float64]) -> NDArray[np.float64]:
    """Flip directions so that their entry of largest magnitude is positive: solvers leave the sign open."""
    largest = np.abs(projection).argmax(axis=1)
    return np.asarray(projection * np.sign(projection[np.arange(len(projection)), largest])[:, None])


class _Centred:
    """Rows (U, n) minus their mean, computed when sliced."""

    def __init__(self, rows: NDArray[np.float32], mean: NDArray[np.float64]) -> None:
        self.rows, self.mean = rows, mean

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, part: slice) -> NDArray[np.float64]:
        return np.asarray(self.rows[part] - self.mean)


class _Differences:
    """Differences (M, n) of the rows of pairs, computed when sliced."""

    def __init__(self, rows: NDArray[np.float32], first: NDArray[np.int64], second: NDArray[np.int64]) -> None:
        self.rows, self.first, self.second = rows, first, second

    def __len__(self) -> int:
        return len(self.first)

    def __getitem__(self, part: slice) -> NDArray[np.float64]:
        return self.rows[self.first[part]].astype(np.float64) - self.rows[self.second[part]]


def _moment(rows: _Centred | _Differences, uses: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
    """Mean of x xᵀ (n, n), weighted by uses; float64, as in single precision small eigenvalues could be negative."""
    total: NDArray[np.float64] | float = 0.0
    for start in range(0, len(rows), _ROWS):
        part = rows[slice(start, start + _ROWS)]
        if uses is not None:
            part *= np.sqrt(uses[start : start + _ROWS, None])
        total = total + part.T @ part
    return np.asarray(total / (len(rows) if uses is None else uses.sum()))
