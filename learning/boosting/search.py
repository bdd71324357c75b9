"""AdaBoost over pairs of patches: selection of weak learners that separate matches from others (Trzcinski12 sections 3
and 3.1).

The similarity f(x, y) = Σ α h(x) h(y) (equation 2) is built one weak learner at a time, each with the largest weighted
correlation r = Σ w l h(x) h(y) with the labels, α = ½ ln((1 + r) / (1 - r)), which lowers the exponential loss
(equation 1) by the factor √(1 - r²), the round's normaliser (Freund and Schapire, 1995). All candidates and thresholds
are evaluated on a sample of pairs, drawn by their weights, and the best of them on all pairs. So the time of a round
hardly grows with the number of pairs, and correlations are measured on all of them.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from index.parallel import run
from learning.boosting.weak_learners import LEVELS, PairLevels

_BLOCK = 64  # candidates at a time
_FAINTEST = 1e-6  # r below which a weak learner is no better than chance
_CLEAREST = 1 - 1e-6  # r is never taken to be larger: α stays finite


@dataclass(frozen=True)
class LearnerSearchOptions:
    """Options of the search for a weak learner."""

    sample: int = 8_192  # pairs on which all candidates are evaluated
    finalists: int = 48  # candidates evaluated on all pairs
    # Ours: each round first sets a constant of f that gives matches and others the same weight. It does not change
    # distances and rankings, but h(x) h(y), which is more often 1 than -1 for any two patches, need not compensate for
    # it. (64 learners of 9,000 pairs: FPR95 of validation pairs 3.6% with it, 11.5% without.)
    offset: bool = True


@dataclass(frozen=True)
class Round:
    """One selected weak learner."""

    candidate: int
    level: int  # t: its threshold, see `weak_learners.Candidates.threshold`
    correlation: float  # r, on all pairs
    weight: float  # α
    loss: float  # of equation 1, the mean over the pairs, after this round
    offset: float = 0.0  # the constant of f after this round


class Boosting:
    """AdaBoost's state: the similarity of each pair so far. `match` (N,) bool: labels of both kinds."""

    def __init__(
        self, match: NDArray[np.bool_], options: LearnerSearchOptions, rng: np.random.Generator, workers: int = 1
    ) -> None:
        if match.all() or not match.any():
            raise ValueError("boosting needs matches and others")
        self.options = options
        self.labels = np.where(match, 1.0, -1.0)  # l
        self.similarity = np.zeros(len(match))  # f, its constant included
        self.offset = 0.0
        self._rng = rng
        self._workers = workers

    @property
    def loss(self) -> float:
        """Mean of exp(-l f) (equation 1)."""
        return float(np.exp(-self.labels * self.similarity).mean())

    def weights(self) -> NDArray[np.float64]:
        """Weights (N,) of the pairs, of sum 1."""
        exponents = -self.labels * self.similarity
        weights = np.exp(exponents - exponents.max())
        return np.asarray(weights / weights.sum())

    def add(self, levels: PairLevels) -> Round | None:
        """Find one more weak learner; None if no candidate is better than chance."""
        if self.options.offset:
            self._balance()
        weights = self.weights()
        signed = weights * self.labels
        best = (0.0, 0, 0)
        for candidate in self._finalists(weights, levels):
            # Not the last level, which all responses reach.
            correlations = _correlations(levels.lower[candidate], levels.upper[candidate], signed)[:-1]
            level = int(correlations.argmax())
            best = max(best, (float(correlations[level]), int(candidate), level))
        correlation, candidate, level = best
        if correlation < _FAINTEST:
            return None
        correlation = min(correlation, _CLEAREST)
        weight = 0.5 * np.log((1 + correlation) / (1 - correlation))
        differ = (levels.lower[candidate] <= level) & (level < levels.upper[candidate])
        self.similarity += np.where(differ, -weight, weight)
        return Round(candidate, level, correlation, float(weight), self.loss, self.offset)

    def _balance(self) -> None:
        """Set the constant of f: the exponential loss is least where both kinds weigh the same."""
        weights = self.weights()
        matches = np.clip(weights[self.labels > 0].sum(), 1 - _CLEAREST, _CLEAREST)
        step = 0.5 * np.log(matches / (1 - matches))
        self.similarity += step
        self.offset += float(step)

    def _finalists(self, weights: NDArray[np.float64], levels: PairLevels) -> NDArray[np.int64]:
        """The best candidates (K,) on a sample of pairs, drawn by their weights."""
        sample = _draw(weights, self.options.sample, self._rng)
        of_matches, of_others = sample[self.labels[sample] > 0], sample[self.labels[sample] < 0]

        def best_of(start: int) -> NDArray[np.int64]:
            block = slice(start, start + _BLOCK)
            differing = [
                _differing(levels.lower[block].take(part, axis=1), levels.upper[block].take(part, axis=1))
                for part in (of_matches, of_others)
            ]
            # Pairs that differ lower the correlation if they match, and raise it if not.
            return np.asarray((differing[1] - differing[0]).max(axis=1))

        tasks = (partial(best_of, start) for start in range(0, len(levels.lower), _BLOCK))
        correlations = np.concatenate(list(run(tasks, self._workers, threads=True)))
        return np.argsort(-correlations, kind="stable")[: self.options.finalists]


def _draw(weights: NDArray[np.float64], number: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw pairs by their weights, evenly spread (systematic sampling): ascending numbers, some more than once."""
    ends = np.cumsum(weights)
    places = (np.arange(number) + rng.uniform()) * (ends[-1] / number)
    return np.asarray(np.minimum(np.searchsorted(ends, places, side="right"), len(weights) - 1))


def _correlations(
    lower: NDArray[np.uint8], upper: NDArray[np.uint8], signed: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Sums of w l h(x) h(y) over pairs, for every threshold of a candidate: (LEVELS,) float64.

    h(x) h(y) is -1 for the levels from the lower of the two to the one before the upper: a pair enters where the former
    is reached, and leaves at the latter.
    """
    steps = np.bincount(lower, signed, LEVELS) - np.bincount(upper, signed, LEVELS)
    return np.asarray(signed.sum() - 2 * np.cumsum(steps))


def _differing(lower: NDArray[np.uint8], upper: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Count the pairs with h(x) h(y) = -1 for every threshold of candidates: (C, n) uint8 twice to (C, LEVELS) int."""
    rows = len(lower)
    first = (np.arange(rows) * LEVELS)[:, None]
    entering, leaving = (
        np.bincount((first + part).ravel(), minlength=rows * LEVELS).reshape(rows, LEVELS) for part in (lower, upper)
    )
    return np.asarray(np.cumsum(entering - leaving, axis=1))
