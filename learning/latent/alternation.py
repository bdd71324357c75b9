"""The latent self-paced learner: chooses the matching positive of each feature, and the features with a match
(Simonyan14 section 9).

Equation 16 is minimised by alternation over η, the parameters; y_P(x), the nearest positive of each feature; and b(x),
which is 1 for the K features of least loss. The alternation works for any η, pooling weights or a metric.
"""

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from learning.convex.dual_averaging import Batch

Parameters = TypeVar("Parameters")
_TOLERANCE = 1e-3  # stop once an alternation lowers the objective by less than this share


@dataclass(frozen=True)
class LogEntry:
    """The state after one step. No step raises the objective within a round; a new round has another objective."""

    stage: str  # pooling or projection
    round: int  # from 0
    step: str  # one of STEPS: the last step
    objective: float  # of equation 16 on the training features, after the step
    recall: float | None  # share of training features for which equation 15 holds, if measured
    validation: float | None  # the same of validation features


@dataclass(frozen=True)
class GroupedRows:
    """Rows of pairs (x, y), grouped by the feature x: those of feature i are ``starts[i]`` to ``starts[i + 1]``."""

    starts: NDArray[np.int64]  # (F + 1,) int64; every feature has a row

    def __len__(self) -> int:
        return len(self.starts) - 1

    def least(self, distances: NDArray[np.number]) -> NDArray[np.number]:
        """Least distance (F,) of each feature, of distances (M,) of all rows."""
        return np.minimum.reduceat(distances, self.starts[:-1])

    def nearest(self, distances: NDArray[np.number]) -> NDArray[np.int64]:
        """Row (F,) of least distance of each feature; the first on ties."""
        at_least = distances == np.repeat(self.least(distances), np.diff(self.starts))
        rows = np.flatnonzero(at_least)
        owner = np.searchsorted(self.starts, rows, side="right") - 1
        return rows[np.unique(owner, return_index=True)[1]]

    def of(self, features: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows (R,) of some features (B,), and the start of each (B,)."""
        lengths = self.starts[features + 1] - self.starts[features]
        begins = np.cumsum(lengths) - lengths
        return np.repeat(self.starts[features] - begins, lengths) + np.arange(lengths.sum()), begins


class ConvexProblem(Protocol[Parameters]):
    """A convex problem of learning η, for fixed y_P and b."""

    @property
    def positives(self) -> GroupedRows:
        """P(x) of each feature."""

    @property
    def negatives(self) -> GroupedRows:
        """N(x), or the subset in use."""

    def distances(self, parameters: Parameters) -> tuple[NDArray[np.number], NDArray[np.number]]:
        """Squared distances d_η of all rows of positives and of all rows of negatives."""

    def penalty(self, parameters: Parameters) -> float:
        """Regulariser R(η)."""

    def learn(self, features: NDArray[np.int64], matches: NDArray[np.int64]) -> Parameters:
        """Minimise equation 16 over η by RDA, on features (K,) with b(x) = 1, and matches (K,), rows of y_P(x)."""


@dataclass(frozen=True)
class Alternation(Generic[Parameters]):
    """Result of the alternation."""

    parameters: Parameters
    features: NDArray[np.int64]  # (K,) int64: with b(x) = 1, rising
    matches: NDArray[np.int64]  # (F,) int64: row of y_P(x) among the positives
    objective: float  # of equation 16
    history: list[LogEntry]


def alternate(
    problem: ConvexProblem[Parameters],
    count: int,
    *,
    distances: tuple[NDArray[np.number], NDArray[np.number]] | None = None,
    initial: tuple[str, Parameters] | None = None,
    alternations: int = 3,
    stage: str = "",
    round: int = 0,
) -> Alternation[Parameters]:
    """Minimise equation 16, the sum of its losses divided by K, by alternation.

    RDA is stochastic: its parameters are taken only where they lower the objective on all features. The initial y_P and
    b follow from the `distances` of positives and negatives by another descriptor. Raises ValueError if there are too
    few features, or neither initial distances nor parameters.
    """
    if not 0 < count <= len(problem.positives):
        raise ValueError(f"{count} of {len(problem.positives)} features cannot be learnt from")
    if (distances is None) == (initial is None):
        raise ValueError("the alternation begins with distances or with parameters")
    history: list[LogEntry] = []

    def log(step: str) -> None:
        history.append(LogEntry(stage, round, step, objective, float((margins < 0).mean()), None))

    parameters: Parameters | None = None
    objective = np.inf
    if initial is not None:
        parameters = initial[1]
        distances = problem.distances(parameters)
    assert distances is not None
    matches, margins = _match(problem, *distances)
    features = _easiest(margins, count)
    if initial is not None:
        objective = _mean_loss(margins[features]) + problem.penalty(initial[1])
        log(initial[0])
    for _ in range(alternations):
        new_parameters = problem.learn(features, matches[features])
        positive, negative = problem.distances(new_parameters)
        penalty = problem.penalty(new_parameters)
        new_margins = positive[matches] - problem.negatives.least(negative)
        value = _mean_loss(new_margins[features]) + penalty
        if parameters is not None and value > objective:
            break
        before, parameters, objective, margins = objective, new_parameters, value, new_margins
        log("parameters")

        matches, margins = _match(problem, positive, negative)
        objective = _mean_loss(margins[features]) + penalty
        log("positives")

        features = _easiest(margins, count)
        objective = _mean_loss(margins[features]) + penalty
        log("selection")
        if before - objective < _TOLERANCE * objective:
            break
    assert parameters is not None
    return Alternation(parameters, features, matches, objective, history)


def _match(
    problem: ConvexProblem[Parameters], positive: NDArray[np.number], negative: NDArray[np.number]
) -> tuple[NDArray[np.int64], NDArray[np.number]]:
    """y_P of each feature, as rows (F,), and its margin (F,), below 0 if it is the nearest of all."""
    matches = problem.positives.nearest(positive)
    return matches, positive[matches] - problem.negatives.least(negative)


def nearest_batch(near: NDArray[np.float32], far: NDArray[np.float32], starts: NDArray[np.int64]) -> Batch:
    """Make a batch of RDA: rows (B, N) of matches, and (M, N) of negatives, a feature's from its start in `starts`."""

    def counts(
        one: NDArray[np.float32], other: NDArray[np.float32]
    ) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
        return nearest_counts(one, other, starts)

    return Batch(near, far, counts)


def nearest_counts(
    near: NDArray[np.floating], far: NDArray[np.floating], starts: NDArray[np.int64]
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Mean hinge loss max(d_near - min d_far + 1, 0) of features against their nearest negatives, its slope (B,) by
    each distance to a match, and minus a subgradient (M,) by each distance to a negative. `near` (B,), `far` (M,):
    squared distances to the match and to the negatives of each feature, which begin at `starts` (B,).
    """
    rows = GroupedRows(np.append(starts, len(far))).nearest(far)
    margins = near.astype(np.float64) - far[rows]
    by_near = (margins > -1) / len(near)
    by_far = np.zeros(len(far))
    by_far[rows] = by_near
    return _mean_loss(margins), by_near, by_far


def _mean_loss(margins: NDArray[np.number]) -> float:
    return float(np.maximum(margins.astype(np.float64) + 1, 0).mean())


def _easiest(margins: NDArray[np.number], count: int) -> NDArray[np.int64]:
    """The features of least loss; those without loss by margin."""
    return np.sort(np.argsort(margins, kind="stable")[:count])


STEPS = ("negatives", "rings", "parameters", "positives", "selection")
"""Kinds of steps: searching negatives or dropping rings, which begin a round, and the three that repeat."""
