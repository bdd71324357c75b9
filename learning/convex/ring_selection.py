"""Learn pooling regions: select and weight rings of the pool (Simonyan14 section 4)."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from learning.convex.candidates import CandidatePool
from learning.convex.dual_averaging import AveragingOptions, hinge_counts, sparse_weights, vector_penalty
from learning.measures.roc import fpr95
from learning.patches.rows import ArrayRows, BlockRows
from retrieval.descriptors.learnt import Pooling
from retrieval.descriptors.pooling import ChannelOptions


@dataclass(frozen=True)
class SelectionOptions:
    """Options of selecting rings."""

    mus: tuple[float, ...] = (0.7, 0.5, 0.3, 0.15)  # μ₁; at 1 nothing is selected
    gammas: tuple[float, ...] = (0.03, 0.1)  # γ; see `WeightUnits`
    iterations: int = 1_000  # of RDA
    batch: int = 300  # positive pairs an iteration, and the same number of negative ones
    seed: int = 0  # seed of the order of drawing pairs
    # Ours. The paper's norm sums plain weights, and so favours rings with large squared differences, especially narrow
    # Gaussians. Balanced, a ring is charged by its share in the distance of a non-match.
    balanced: bool = True
    # Ours. While a selection has too many dimensions, at most this share of them is kept, in the rings that contribute
    # most, and their weights are learnt again; 0: never, as in the paper, where only μ₁ makes it smaller.
    keep: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.keep < 1:
            raise CairnError(f"The share of dimensions that is kept must be below 1, and is {self.keep}.")


@dataclass(frozen=True)
class RankedPairs:
    """ψ of positive and of negative pairs."""

    positive: BlockRows
    negative: BlockRows

    def distances(self, weights: NDArray[np.float64]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Squared distances wᵀψ (equation 4) of positive and of negative pairs."""
        return self.positive.dot(weights), self.negative.dot(weights)

    def error(self, weights: NDArray[np.float64]) -> float:
        """False positive rate at 95% recall."""
        return fpr95_of(*self.distances(weights))


def fpr95_of(positive: NDArray[np.floating], negative: NDArray[np.floating]) -> float:
    """False positive rate at 95% recall of distances of positive and of negative pairs."""
    return fpr95(np.concatenate([positive, negative]), np.arange(len(positive) + len(negative)) < len(positive))


@dataclass(frozen=True)
class WeightUnits:
    """Units of weights, μ₁ and γ, so that the same numbers suit any data.

    At w = 0 every combination is active and the subgradient is g = mean ψ(positive) - mean ψ(negative). With μ₁ at or
    above the largest entry of -g nothing is ever selected: that is μ = 1. And w = -g / ‖g‖² separates the means by the
    margin, so that steps with γ of the order of ‖g‖² get there soon: that is γ = 1.
    """

    scale: NDArray[np.float64]  # (N,) factor of each ring's ψ
    mu: float
    gamma: float

    @classmethod
    def of(cls, positive: NDArray[np.float64], negative: NDArray[np.float64], balanced: bool) -> "WeightUnits":
        """Measure them on the mean ψ (N,) of positive and of negative training pairs."""
        scale = 1 / np.maximum(negative, 1e-12) if balanced else np.ones_like(negative)
        slope = scale * (negative - positive)
        return cls(scale, max(float(slope.max()), 1e-12), max(float(slope @ slope), 1e-12))


@dataclass(frozen=True)
class Selection:
    """Learnt weights, and a record of their learning."""

    weights: NDArray[np.float64]  # (N,) float64 of the rings, in the pool's own units
    mu: float
    gamma: float
    objective: float  # of equation 6 over all training pairs, in the units of the minimisation
    refits: int  # number of times that weights were learnt again on the rings that contribute most


def learn_weights(
    train: RankedPairs,
    means: tuple[NDArray[np.float64], NDArray[np.float64]],
    mu: float,
    gamma: float,
    options: SelectionOptions,
) -> Selection:
    """Minimise equation 6 over the whole pool, by mean ψ (N,) of both kinds of pairs; weights may all be zero."""
    units = WeightUnits.of(*means, options.balanced)
    positive, negative = train.positive.scaled(units.scale), train.negative.scaled(units.scale)
    weights = sparse_weights(positive, negative, mu * units.mu, _steps(options, gamma * units.gamma))
    loss, _, _ = hinge_counts(positive.dot(weights), negative.dot(weights))
    objective = loss + vector_penalty(weights, mu * units.mu)
    return Selection(weights * units.scale, mu, gamma, objective, 0)


def refine(
    train: RankedPairs,
    means: tuple[NDArray[np.float64], NDArray[np.float64]],
    selection: Selection,
    pool: CandidatePool,
    orientations: int,
    limit: int,
    options: SelectionOptions,
) -> Iterator[Selection]:
    """Shrink a selection to a limit of dimensions: drop rings, learn the weights again, repeat; yield each selection.

    With each comes the minimum of equation 6 over the remaining rings.
    """
    if not options.keep:
        return
    dim = dim_of(pool, selection.weights, orientations)
    step = selection
    while dim > limit:
        # No step aims below the limit.
        wanted = max(limit, int(dim * options.keep))
        rings = largest_contributions(pool, step.weights * means[1], orientations, wanted)
        if not len(rings):
            return
        units = WeightUnits.of(means[0][rings], means[1][rings], options.balanced)
        scale = np.zeros(len(pool))
        scale[rings] = units.scale
        positive, negative = (rows.scaled(scale).columns(rings) for rows in (train.positive, train.negative))
        few = sparse_weights(
            ArrayRows(positive), ArrayRows(negative), step.mu * units.mu, _steps(options, step.gamma * units.gamma)
        )
        single = few.astype(np.float32)
        loss, _, _ = hinge_counts(positive @ single, negative @ single)
        weights = np.zeros(len(pool))
        weights[rings] = few * units.scale
        objective = loss + vector_penalty(few, step.mu * units.mu)
        step = Selection(weights, step.mu, step.gamma, objective, step.refits + 1)
        dim = dim_of(pool, weights, orientations)
        yield step


def largest_contributions(
    pool: CandidatePool, contribution: NDArray[np.float64], orientations: int, dim: int
) -> NDArray[np.int64]:
    """Rings (K,), ascending, of most weight times mean ψ of negative pairs, within a limit of dimensions."""
    first = np.unique(pool.columns, return_index=True)[1]
    same = (np.arange(len(pool.sigmas))[:, None] * len(pool.columns) + first[pool.columns]).reshape(-1)
    sizes = np.where(same == np.arange(len(pool)), pool.sizes * orientations, 0)
    joint = np.bincount(same, contribution, len(pool))[same]
    order = np.argsort(-joint, kind="stable")
    return np.sort(order[(np.cumsum(sizes[order]) <= dim) & (joint[order] > 0)])


def dim_of(pool: CandidatePool, weights: NDArray[np.float64], orientations: int) -> int:
    """Dimensions of the pooled descriptor with weights (N,)."""
    return orientations * len(pool.select(weights)[0])


def pooling_of(pool: CandidatePool, weights: NDArray[np.float64], channels: ChannelOptions) -> Pooling:
    """Make the configuration of pooling regions for weights (N,)."""
    regions, region_weights, rings = pool.select(weights)
    return Pooling(regions, region_weights, rings, channels)


def _steps(options: SelectionOptions, gamma: float) -> AveragingOptions:
    return AveragingOptions(options.iterations, options.batch, gamma, options.seed)
