"""The objective of similarity learning (Yan13 equation 4), over all triplets or over the active ones."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from index.progress import Step, silent
from learning.similarity.options import ObjectiveOptions
from learning.similarity.pair_gradients import PairGradients, WordPairs, pair_gradients, self_gradients
from learning.similarity.triplets import Triplets

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class TripletProblem:
    """Σ w_ijl [Ŝ_il - Ŝ_ij + γ]₊ (equation 4) by the parameters of R, with the mask of equation 5.

    In each iteration only active triplets, those with nonzero loss, count; `refresh` evaluates all of them
    (section IV.C). Parameters are R relative to tf-idf: at R = I the mean loss of all triplets is 1.

    Parameters
    ----------
    vectors : csr_matrix, shape (N, K), float32
        Unit tf-idf vectors of the images.
    pairs : WordPairs
        Free off-diagonal entries of R.
    triplets : Triplets
        At least one.
    options : ObjectiveOptions
        Margin and shape of the loss.
    workers : int
        Threads; the result does not depend on it.
    progress : callable, optional
        Called with the number of images whose gradients are computed, and the total.
    """

    def __init__(
        self,
        vectors: "csr_matrix",
        pairs: WordPairs,
        triplets: Triplets,
        options: ObjectiveOptions,
        workers: int = 1,
        progress: Step = silent,
    ) -> None:
        self.pairs = pairs
        self.options = options
        self.start = np.concatenate([np.ones(pairs.words), np.zeros(len(pairs.first))])
        self._selves = self_gradients(vectors, pairs, workers)
        images = vectors.shape[0]
        keys = [triplets.query.astype(np.int64) * images + of for of in (triplets.positive, triplets.negative)]
        known = np.unique(np.concatenate([np.unique(key) for key in keys]))
        near, far = (np.searchsorted(known, key).astype(np.int32) for key in keys)
        left, right = np.divmod(known, images)
        gradients = pair_gradients(vectors, pairs, left, right, workers, progress)
        weights = triplets.weights / triplets.weights.sum(dtype=np.float64)
        self._all = _TripletPart(gradients, left, right, near, far, weights.astype(np.float64))
        self._active = self._all
        self._unit = 1.0
        self._unit = max(self._loss(self._all, self.start)[0], np.finfo(float).tiny)

    @property
    def entries(self) -> int:
        """Stored entries of the gradients of all image pairs."""
        return self._all.gradients.entries

    @property
    def image_pairs(self) -> int:
        """Image pairs in the triplets."""
        return len(self._all.left)

    @property
    def active(self) -> int:
        """Number of active triplets."""
        return len(self._active.near)

    def norms(self, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
        """√S_jj of each image (N,)."""
        return np.sqrt(self._selves.similarities(matrix))

    def refresh(self, matrix: NDArray[np.float64]) -> float:
        """Evaluate all triplets, keep the active ones, and return the whole objective."""
        value, hinge = self._hinges(self._all, matrix)[:2]
        # Nearly violated triplets may be violated after the next step.
        self._active = self._all.where(hinge > -0.5 * self.options.margin)
        return value / self._unit + self._ridge(matrix)[0]

    def evaluate(self, matrix: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Objective of the active triplets, and its gradient by the parameters (K + P,)."""
        value, gradient = self._loss(self._active, matrix)
        pull, slope = self._ridge(matrix)
        return value / self._unit + pull, gradient / self._unit + slope

    def _ridge(self, matrix: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """½ Σ μ (R - I)², with one μ for the diagonal and one for the pairs."""
        apart = matrix - self.start
        strength = np.repeat(
            [self.options.ridge_diagonal, self.options.ridge_pairs], [self.pairs.words, len(self.pairs.first)]
        )
        slope = strength * apart
        return float(0.5 * slope @ apart), slope

    def _hinges(
        self, part: "_TripletPart", matrix: NDArray[np.float64]
    ) -> tuple[float, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Loss of some triplets, Ŝ_il - Ŝ_ij + γ of each, and S of their pairs, √(S_ii S_jj) and S_ii."""
        cross = part.gradients.similarities(matrix)
        own = self._selves.similarities(matrix)
        scale = np.sqrt(own[part.left] * own[part.right])
        normalised = np.divide(cross, scale, out=np.zeros_like(cross), where=scale > 0) ** self.options.power
        hinge = normalised[part.far] - normalised[part.near] + self.options.margin
        corner = self.options.smooth * self.options.margin
        loss = np.maximum(hinge, 0)
        if corner > 0:
            loss = np.where(hinge < corner, loss * loss / (2 * corner), loss - corner / 2)
        return float(part.weights @ loss), hinge, cross, scale, own

    def _loss(self, part: "_TripletPart", matrix: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        value, hinge, cross, scale, own = self._hinges(part, matrix)
        corner = self.options.smooth * self.options.margin
        slopes = part.weights * (np.clip(hinge / corner, 0, 1) if corner > 0 else hinge > 0)
        # Slope of the loss by Ŝ, for each image pair.
        by_pair = np.bincount(part.far, slopes, len(cross)) - np.bincount(part.near, slopes, len(cross))
        power = self.options.power
        inverse = np.divide(1, scale, out=np.zeros_like(scale), where=scale > 0)
        cosine = cross * inverse
        # ∂Ŝ/∂S_ij = p S^(p-1) / (S_ii S_jj)^(p/2), and ∂Ŝ/∂S_ii = -p/2 Ŝ / S_ii.
        gradient = part.gradients.combine(by_pair * power * cosine ** (power - 1) * inverse)
        shares = by_pair * (power / 2) * cosine**power
        towards = np.bincount(part.left, shares, len(own)) + np.bincount(part.right, shares, len(own))
        by_image = np.divide(towards, own, out=np.zeros_like(own), where=own > 0)
        return value, gradient - self._selves.combine(by_image)


@dataclass(frozen=True)
class _TripletPart:
    """Some triplets, and their image pairs."""

    gradients: PairGradients  # of each image pair
    left: NDArray[np.int64]  # (M,) int64: image i of each image pair
    right: NDArray[np.int64]  # (M,) int64
    near: NDArray[np.int32]  # (T,) int32: image pair (i, j) of each triplet
    far: NDArray[np.int32]  # (T,) int32: image pair (i, l)
    weights: NDArray[np.float64]  # (T,) float64

    def where(self, mask: NDArray[np.bool_]) -> "_TripletPart":
        """Take the triplets of a mask (T,), with their image pairs."""
        near, far = self.near[mask], self.far[mask]
        rows = np.zeros(len(self.left), bool)
        rows[near] = rows[far] = True
        if rows.mean() > 0.5:  # a copy would take more memory than it saves time
            return _TripletPart(self.gradients, self.left, self.right, near, far, self.weights[mask])
        renumbered = np.cumsum(rows, dtype=np.int32) - 1
        return _TripletPart(
            self.gradients.subset(rows),
            self.left[rows],
            self.right[rows],
            renumbered[near],
            renumbered[far],
            self.weights[mask],
        )
