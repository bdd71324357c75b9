"""The latent problem of a metric: the projection that brings features nearest to a positive (equation 16)."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from index.parallel import one_thread
from learning.convex.dual_averaging import AveragingOptions, Batch, draw, metric_penalty, minimise_metric
from learning.convex.projection import MetricUnits
from learning.latent.alternation import GroupedRows, nearest_batch
from learning.latent.anchors import Anchors
from learning.latent.described_patches import Described
from learning.patches.rows import squared_distances

_SAMPLE = 20_000  # candidates of each kind for measuring units


@dataclass(frozen=True)
class MetricProblem:
    """θ = φ(x) - φ(y) of features and their candidates, and the learning of a metric."""

    rows: NDArray[np.float32]  # (V, n) float32: φ of the patches in use
    references: NDArray[np.int64]  # (F,) row of each feature
    positives: GroupedRows
    positive_rows: NDArray[np.int64]  # (M,)
    negatives: GroupedRows
    negative_rows: NDArray[np.int64]  # (L,)
    mu: float
    norm: str
    averaging: AveragingOptions

    @classmethod
    def of(
        cls, anchors: Anchors, described: Described, mu: float, norm: str, averaging: AveragingOptions
    ) -> "MetricProblem":
        """Take the rows of the patches in use."""
        named = anchors.patches()
        return cls(
            described.take(named),
            np.searchsorted(named, anchors.references),
            anchors.positives,
            np.searchsorted(named, anchors.positive_patches),
            anchors.negatives,
            np.searchsorted(named, anchors.negative_patches),
            mu,
            norm,
            averaging,
        )

    def distances(self, parameters: NDArray[np.float64]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Squared distances ‖Wθ‖² of all positives and all negatives, for W (m, n)."""
        with one_thread():
            rows = self.rows @ parameters.T.astype(np.float32)
        positive, negative = (
            squared_distances(rows.__getitem__, np.repeat(self.references, np.diff(owners.starts)), members)
            for owners, members in ((self.positives, self.positive_rows), (self.negatives, self.negative_rows))
        )
        return positive, negative

    def penalty(self, parameters: NDArray[np.float64]) -> float:
        """Return μ ‖A‖_*, or μ/2 ‖A‖_F², of A = WᵀW."""
        return metric_penalty(parameters, self.mu, self.norm)

    def learn(self, features: NDArray[np.int64], matches: NDArray[np.int64]) -> NDArray[np.float64]:
        """Minimise over W (m, n) by RDA; see `latent.Problem.learn`."""
        with one_thread():
            return minimise_metric(self._batches(features, matches), self.mu, self.averaging, self.norm)

    def _batches(self, features: NDArray[np.int64], matches: NDArray[np.int64]) -> Iterator[Batch]:
        rng = np.random.default_rng(self.averaging.seed)
        for drawn in draw(len(features), self.averaging.batch, rng):
            chosen = features[drawn]
            candidates, begins = self.negatives.of(chosen)
            owners = np.repeat(chosen, np.diff(np.append(begins, len(candidates))))
            near = self.rows[self.references[chosen]] - self.rows[self.positive_rows[matches[drawn]]]
            far = self.rows[self.references[owners]] - self.rows[self.negative_rows[candidates]]
            yield nearest_batch(near, far, begins)


def units_of(anchors: Anchors, described: Described, norm: str, seed: int = 0) -> MetricUnits:
    """Measure the units of μ and γ on some of the candidates; see `projection.MetricUnits`."""
    rng = np.random.default_rng(seed)
    slope = np.zeros((described.dim,) * 2)
    for (first, patches), sign in zip(anchors.candidates, (-1, 1), strict=True):
        chosen = np.sort(rng.permutation(len(patches))[:_SAMPLE])
        theta = described.take(first[chosen]) - described.take(patches[chosen])
        with one_thread():
            slope += sign * (theta.T @ theta).astype(np.float64) / len(chosen)
    return MetricUnits.of_slope(slope, norm)
