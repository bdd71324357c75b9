"""Small latent problems for tests, with θ or ψ of each feature's candidates also as plain lists."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from learning.convex.dual_averaging import AveragingOptions
from learning.latent.alternation import ConvexProblem, GroupedRows
from learning.latent.metric_problem import MetricProblem
from learning.latent.pooling_problem import PoolingProblem
from learning.patches.rows import ArrayRows

KINDS = ("nuclear", "frobenius", "weights")
"""Parameters to learn: a metric of either norm, or weights."""


@dataclass(frozen=True)
class Case:
    """A problem, and its equation 16, evaluated term by term."""

    kind: str
    problem: ConvexProblem[np.ndarray]
    positives: list[np.ndarray]  # by feature: θ or ψ of its positives (P, n)
    negatives: list[np.ndarray]  # of its negatives
    mu: float

    def distance(self, parameters: np.ndarray, row: np.ndarray) -> float:
        """d_η of one candidate."""
        row = row.astype(np.float64)
        return float(parameters @ row) if self.kind == "weights" else float(row @ (parameters.T @ parameters) @ row)

    def far(self, parameters: np.ndarray, x: int) -> float:
        """Distance of feature x to its nearest negative."""
        return min(self.distance(parameters, row) for row in self.negatives[x])

    def near(self, parameters: np.ndarray, x: int) -> list[float]:
        """Distances of feature x to its positives."""
        return [self.distance(parameters, row) for row in self.positives[x]]

    def loss(self, parameters: np.ndarray, x: int, match: int) -> float:
        """Loss of feature x with a match, the index of a positive in the problem."""
        number = match - sum(len(rows) for rows in self.positives[:x])
        assert 0 <= number < len(self.positives[x])
        return max(self.near(parameters, x)[number] - self.far(parameters, x) + 1, 0)

    def penalty(self, parameters: np.ndarray) -> float:
        """R(η)."""
        if self.kind == "weights":
            return self.mu * sum(abs(weight) for weight in parameters.tolist())
        metric = parameters.T @ parameters
        if self.kind == "nuclear":
            return self.mu * float(np.linalg.norm(metric, "nuc"))
        return self.mu / 2 * float(np.linalg.norm(metric, "fro")) ** 2

    def objective(self, parameters: np.ndarray, features: np.ndarray, matches: np.ndarray) -> float:
        """Return equation 16, the sum of its losses divided by K, for features with b(x) = 1 and the match of each."""
        pairs = zip(features.tolist(), matches.tolist(), strict=True)
        return sum(self.loss(parameters, x, match) for x, match in pairs) / len(features) + self.penalty(parameters)


def rows_of(lengths: Sequence[int]) -> GroupedRows:
    """Rows of features with these numbers of rows."""
    return GroupedRows(np.cumsum([0, *lengths], dtype=np.int64))


def make_case(
    kind: str,
    positives: list[np.ndarray],
    negatives: list[np.ndarray],
    share: float = 0.1,
    gamma: float = 0.1,
    of: int | None = None,
    **steps: int,
) -> Case:
    """Make a problem of rows: φ(y) - φ(x) with φ(x) = 0 for a metric, ψ for weights.

    Parameters
    ----------
    kind : str
        One of KINDS.
    positives, negatives : list of ndarray, shape (any, n), float32
        By feature.
    share, gamma : float
        μ and γ, approximately in units of the subgradient at 0,
    of : int, optional
        of the first `of` features.
    steps
        Of `AveragingOptions`.
    """
    near, far = np.concatenate(positives), np.concatenate(negatives)
    one, other = rows_of([len(rows) for rows in positives]), rows_of([len(rows) for rows in negatives])
    first, others = np.concatenate(positives[:of]), np.concatenate(negatives[:of])
    if kind == "weights":
        slope = others.mean(axis=0) - first.mean(axis=0)
        largest = slope.max()
    else:
        slope = others.T @ others / len(others) - first.T @ first / len(first)
        largest = np.linalg.eigvalsh(slope)[-1] if kind == "nuclear" else (slope**2).sum()
    mu = share * max(float(largest), 1e-3)
    averaging = AveragingOptions(**{"iterations": 200, "batch": 0} | steps, gamma=gamma * float((slope**2).sum()))
    problem: ConvexProblem[np.ndarray]
    if kind == "weights":
        problem = PoolingProblem(one, ArrayRows(near), other, ArrayRows(far), np.ones(near.shape[1]), mu, averaging)
    else:
        # One feature at zero for each, then all candidates.
        zeros = np.zeros((len(positives), near.shape[1]), np.float32)
        numbers = np.arange(len(zeros) + len(near) + len(far))
        x, y, u = np.split(numbers, [len(zeros), len(zeros) + len(near)])
        problem = MetricProblem(np.concatenate([zeros, near, far]), x, one, y, other, u, mu, kind, averaging)
    return Case(kind, problem, positives, negatives, mu)


def drawn_rows(
    kind: str, rng: np.random.Generator, lengths: tuple[Sequence[int], Sequence[int]], size: int = 5
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Rows of positives and negatives, `lengths` of each feature, with positives nearer along half of the axes."""
    found = []
    for least, counts in zip((0.4, 1.0), lengths, strict=True):
        spread = np.where(np.arange(size) % 2 == 0, least, 1)
        rows = [(rng.normal(size=(count, size)) * spread).astype(np.float32) for count in counts]
        found.append([row**2 for row in rows] if kind == "weights" else rows)
    return found[0], found[1]


def planted_rows(
    kind: str, rng: np.random.Generator, matchable: int, unmatchable: int, number: int = 6
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Rows of features that match along four axes of eight, then of unmatchable ones.

    The latter model an occluded repeated structure: its positives are something else, similar only along the other
    axes, and its negatives are similar along the four.
    """
    matched = np.arange(8) < 4
    found: tuple[list[np.ndarray], list[np.ndarray]] = [], []
    for x in range(matchable + unmatchable):
        positives, negatives = rng.normal(size=(2, 8)), rng.normal(size=(number, 8))
        if x < matchable:
            positives[rng.integers(2)] *= np.where(matched, 0.2, 0.6)
        else:
            positives *= np.where(matched, 1, 0.6)
            negatives *= np.where(matched, 0.2, 1)
        for rows, new in zip(found, (positives, negatives), strict=True):
            rows.append((new**2 if kind == "weights" else new).astype(np.float32))
    return found
