"""The latent problem of pooling regions: the rings that bring features nearest to a positive (equation 16)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from learning.convex.dual_averaging import AveragingOptions, Batch, draw, minimise_weights, vector_penalty
from learning.convex.ring_selection import WeightUnits
from learning.latent.alternation import GroupedRows, nearest_batch
from learning.patches.rows import ArrayRows, BlockRows


@dataclass(frozen=True)
class PoolingProblem:
    """ψ of features and their candidates, and the learning of ring weights in units of `scale`."""

    positives: GroupedRows
    positive: BlockRows | ArrayRows  # ψ (M, N) of all positives
    negatives: GroupedRows
    negative: BlockRows | ArrayRows  # ψ (L, N) of the negatives in use
    scale: NDArray[np.float64]  # (N,)
    mu: float
    averaging: AveragingOptions

    @classmethod
    def of(
        cls,
        positives: tuple[GroupedRows, BlockRows],
        negatives: tuple[GroupedRows, BlockRows],
        means: tuple[NDArray[np.float64], NDArray[np.float64]],
        mu: float,
        averaging: AveragingOptions,
        *,
        balanced: bool,
        kept: NDArray[np.int64] | None = None,
    ) -> "PoolingProblem":
        """Make it in units of the data (`ring_selection.WeightUnits`), of all rings or of the `kept` ones (K,).

        `means` (N,) are the mean ψ of the positives and of the negatives.
        """
        near, far = means if kept is None else (means[0][kept], means[1][kept])
        units = WeightUnits.of(near, far, balanced)
        steps = replace(averaging, gamma=averaging.gamma * units.gamma)
        if kept is None:
            psi = positives[1].scaled(units.scale), negatives[1].scaled(units.scale)
            return cls(positives[0], psi[0], negatives[0], psi[1], units.scale, mu * units.mu, steps)
        scale = np.zeros(len(means[0]))
        scale[kept] = units.scale
        few = (ArrayRows(rows.scaled(scale).columns(kept)) for _, rows in (positives, negatives))
        return cls(positives[0], next(few), negatives[0], next(few), units.scale, mu * units.mu, steps)

    def distances(self, parameters: NDArray[np.float64]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Squared distances wᵀψ (equation 4) of all positives and all negatives, for w (N,)."""
        return self.positive.dot(parameters), self.negative.dot(parameters)

    def penalty(self, parameters: NDArray[np.float64]) -> float:
        """Return μ ‖w‖₁."""
        return vector_penalty(parameters, self.mu)

    def learn(self, features: NDArray[np.int64], matches: NDArray[np.int64]) -> NDArray[np.float64]:
        """Minimise over w (N,) by RDA; see `latent.Problem.learn`."""
        return minimise_weights(self._batches(features, matches), self.mu, self.averaging)

    def _batches(self, features: NDArray[np.int64], matches: NDArray[np.int64]) -> Iterator[Batch]:
        rng = np.random.default_rng(self.averaging.seed)
        for drawn in draw(len(features), self.averaging.batch, rng):
            candidates, begins = self.negatives.of(features[drawn])
            near, far = self.positive.take(matches[drawn]), self.negative.take(candidates)
            yield nearest_batch(near, far, begins)
