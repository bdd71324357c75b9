"""Learning pooling regions: which rings of the pool, and how much each counts (Simonyan14 section 4)."""

from dataclasses import dataclass

import numpy as np

from learning.candidates import CandidatePool
from learning.dual_averaging import AveragingOptions, hinge_counts, sparse_weights
from learning.roc import fpr95
from learning.rows import BlockRows
from retrieval.learnt import Pooling
from retrieval.pooling import ChannelOptions


@dataclass(frozen=True)
class RankedPairs:
    """ψ of positive and of negative pairs."""

    positive: BlockRows
    negative: BlockRows

    def distances(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Squared distances wᵀψ (equation 4) of positive and of negative pairs."""
        return self.positive.dot(weights), self.negative.dot(weights)

    def error(self, weights: np.ndarray) -> float:
        """False positive rate at 95% recall."""
        positive, negative = self.distances(weights)
        return fpr95_of(positive, negative)


def fpr95_of(positive: np.ndarray, negative: np.ndarray) -> float:
    """False positive rate at 95% recall of distances of positive and of negative pairs."""
    return fpr95(np.concatenate([positive, negative]), np.arange(len(positive) + len(negative)) < len(positive))


@dataclass(frozen=True)
class PoolingScale:
    """Units in which μ₁ and γ are told, so that the same numbers suit any data.

    At w = 0 every combination is active and the subgradient is g = mean ψ(positive) - mean ψ(negative). With μ₁ at or
    above the largest entry of -g nothing is ever selected; and w = -g / ‖g‖² separates the means by the margin, so that
    steps with γ of the order of ‖g‖² reach it soon.
    """

    mu: float
    gamma: float

    @classmethod
    def of(cls, pairs: RankedPairs) -> "PoolingScale":
        """Measure it on the training pairs."""
        slope = pairs.negative.mean() - pairs.positive.mean()
        return cls(float(slope.max()), float(slope @ slope))


def learn_weights(
    train: RankedPairs, scale: PoolingScale, mu: float, gamma: float, averaging: AveragingOptions
) -> tuple[np.ndarray, float]:
    """Minimise equation 6; gives the weights (N,) and the objective's value over all training pairs.

    `mu` and `gamma` are in units of `scale`.
    """
    options = AveragingOptions(averaging.iterations, averaging.batch, gamma * scale.gamma, averaging.seed)
    weights = sparse_weights(train.positive, train.negative, mu * scale.mu, options)
    loss, _, _ = hinge_counts(*train.distances(weights))
    return weights, loss + mu * scale.mu * float(weights.sum())


def pooling_of(pool: CandidatePool, weights: np.ndarray, channels: ChannelOptions) -> Pooling:
    """Make the configuration of pooling regions that weights (N,) select."""
    regions, region_weights, rings = pool.select(weights)
    return Pooling(regions, region_weights, rings, channels)
