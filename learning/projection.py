"""Learning a projection: a metric of low rank for the rows of a descriptor (Simonyan14 section 5)."""

from dataclasses import dataclass

import numpy as np

from learning.dual_averaging import AveragingOptions, hinge_counts, low_rank_metric
from learning.pooling import fpr95_of
from learning.rows import DifferenceRows

NORMS = ("nuclear", "frobenius")


@dataclass(frozen=True)
class DifferencePairs:
    """θ = φ(x) - φ(y) of positive and of negative pairs."""

    positive: DifferenceRows
    negative: DifferenceRows

    def distances(self, projection: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Squared distances ‖Wθ‖² (equation 9) of positive and of negative pairs."""
        return self.positive.distances(projection), self.negative.distances(projection)

    def error(self, projection: np.ndarray) -> float:
        """False positive rate at 95% recall."""
        return fpr95_of(*self.distances(projection))


@dataclass(frozen=True)
class ProjectionScale:
    """Units in which μ* and γ are told (see `pooling.PoolingScale`): with μ* at 1 the rank is 0."""

    mu: float
    gamma: float

    @classmethod
    def of(cls, pairs: DifferencePairs) -> "ProjectionScale":
        """Measure it on the training pairs."""
        slope = pairs.negative.moment() - pairs.positive.moment()
        return cls(float(np.linalg.eigvalsh(slope)[-1]), float((slope**2).sum()))


def learn_projection(
    train: DifferencePairs, scale: ProjectionScale, mu: float, gamma: float, averaging: AveragingOptions, norm: str
) -> tuple[np.ndarray, float]:
    """Minimise equation 10; gives W (m, n) and the objective's value over all training pairs.

    `mu` and `gamma` are in units of `scale`; with the Frobenius norm μ is in units of γ, as both multiply ‖A‖²/2.
    """
    mu *= scale.mu if norm == "nuclear" else scale.gamma
    options = AveragingOptions(averaging.iterations, averaging.batch, gamma * scale.gamma, averaging.seed)
    projection = low_rank_metric(train.positive, train.negative, mu, options, norm)
    loss, _, _ = hinge_counts(*train.distances(projection))
    gram = projection @ projection.T
    regulariser = float(np.trace(gram) if norm == "nuclear" else 0.5 * (gram**2).sum())
    return projection, loss + mu * regulariser
