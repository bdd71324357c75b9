"""Learn a projection: a metric of low rank for the rows of a descriptor (Simonyan14 section 5)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from learning.convex.dual_averaging import AveragingOptions, hinge_counts, low_rank_metric, metric_penalty
from learning.convex.ring_selection import fpr95_of
from learning.patches.rows import DifferenceRows

NORMS = ("nuclear", "frobenius")


@dataclass(frozen=True)
class ProjectionOptions:
    """Options of learning projections."""

    mus: tuple[float, ...] = (0.002, 0.001, 0.0005, 0.0002, 0.0001)  # μ*; at 1 the nuclear norm leaves rank 0
    gammas: tuple[float, ...] = (0.03, 0.1)  # γ; see `MetricUnits`
    iterations: int = 300  # of RDA
    batch: int = 1_000  # positive pairs an iteration, and the same number of negative ones
    seed: int = 0  # seed of the order of drawing pairs
    norm: str = "nuclear"  # or frobenius, which keeps the dimension

    def __post_init__(self) -> None:
        if self.norm not in NORMS:
            raise CairnError(f"There is no norm {self.norm!r}; choose one of {', '.join(NORMS)}.")


@dataclass(frozen=True)
class DifferencePairs:
    """θ = φ(x) - φ(y) of positive and of negative pairs."""

    positive: DifferenceRows
    negative: DifferenceRows

    @classmethod
    def of(
        cls, rows: NDArray[np.float32], first: NDArray[np.int64], second: NDArray[np.int64], match: NDArray[np.bool_]
    ) -> "DifferencePairs":
        """Make them of descriptors (U, n) and pairs of their rows (M,)."""
        return cls(
            DifferenceRows(rows, first[match], second[match]), DifferenceRows(rows, first[~match], second[~match])
        )

    def distances(self, projection: NDArray[np.float64]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Squared distances ‖Wθ‖² (equation 9) of positive and of negative pairs."""
        return self.positive.distances(projection), self.negative.distances(projection)

    def error(self, projection: NDArray[np.float64]) -> float:
        """False positive rate at 95% recall."""
        return fpr95_of(*self.distances(projection))


@dataclass(frozen=True)
class MetricUnits:
    """Units of μ* and γ (see `ring_selection.WeightUnits`), of the subgradient at A = 0."""

    mu: float
    gamma: float

    @classmethod
    def of(cls, pairs: DifferencePairs, norm: str) -> "MetricUnits":
        """Measure them on the training pairs."""
        return cls.of_slope(pairs.negative.moment() - pairs.positive.moment(), norm)

    @classmethod
    def of_slope(cls, slope: NDArray[np.float64], norm: str) -> "MetricUnits":
        """Compute them from the mean θθᵀ (n, n) of negative pairs minus that of positive ones."""
        squared = float(max((slope**2).sum(), 1e-12))
        # The Frobenius norm is quadratic, as is the term of γ: it has γ's unit.
        return cls(float(max(np.linalg.eigvalsh(slope)[-1], 1e-12)) if norm == "nuclear" else squared, squared)


@dataclass(frozen=True)
class Metric:
    """A learnt projection, and a record of its learning."""

    projection: NDArray[np.float64]  # W (m, n) float64
    mu: float
    gamma: float
    objective: float  # of equation 10 over all training pairs


def learn_projection(
    train: DifferencePairs, units: MetricUnits, mu: float, gamma: float, options: ProjectionOptions
) -> Metric:
    """Minimise equation 10; μ* and γ are in `units`. The projection may have no rows."""
    averaging = AveragingOptions(options.iterations, options.batch, gamma * units.gamma, options.seed)
    projection = low_rank_metric(train.positive, train.negative, mu * units.mu, averaging, options.norm)
    loss, _, _ = hinge_counts(*train.distances(projection))
    penalty = metric_penalty(projection, mu * units.mu, options.norm)
    return Metric(projection, mu, gamma, loss + penalty)
