"""Calibration of evidence and scores to probabilities, by logistic regression over the pairs of the panel."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from eval.panel.measuring import QueryOutcome
from learning.measures.logistic import fit_logistic, held_out
from retrieval.search.probability import FOUND, LIKELY, UNCONFIRMED, Calibration

_FOLDS = 5


@dataclass(frozen=True)
class CalibrationOutcome:
    """Quality of cross-validated probabilities, for scenes left out of the fit."""

    # by kind: right and wrong photos of this level
    found: dict[str, tuple[int, int]]
    likely: dict[str, tuple[int, int]]
    # by kind: mean prediction, share of right ones, and number of photos, for deciles with photos
    deciles: dict[str, list[tuple[float, float, int]]]


def calibrate(outcomes: Mapping[str, QueryOutcome]) -> tuple[Calibration, CalibrationOutcome]:
    """Fit the weights, with equal weight of kinds, and judge them on scenes left out."""
    queries_by_kind = Counter(one.kind for one in outcomes.values())
    rows, signs, weights, folds, kinds = [], [], [], [], []
    for one in outcomes.values():
        for odds, stands_out, right in one.weighed:
            rows.append((np.nan if odds is None else odds, stands_out))
            signs.append(1.0 if right else -1.0)
            weights.append(1 / queries_by_kind[one.kind])
            folds.append(crc32(one.scene.encode()) % _FOLDS)
            kinds.append(one.kind)
    table, sign, weight, fold = np.array(rows), np.array(signs), np.array(weights), np.array(folds)
    mapped = np.isfinite(table[:, 0])
    ones = np.ones(len(table))
    designs = [(mapped, np.column_stack([table, ones])), (~mapped, np.column_stack([table[:, 1], ones]))]
    log_odds = np.zeros(len(table))
    fitted: list[float] = []
    for some, design in designs:
        samples = design[some], sign[some]
        log_odds[some] = held_out(*samples, fold[some], weight[some])
        fitted += fit_logistic(*samples, weight[some]).round(3).tolist()
    likelihood = 1 / (1 + np.exp(-log_odds))
    likelihood[~mapped] = np.minimum(likelihood[~mapped], UNCONFIRMED)
    names = [field.name for field in fields(Calibration)]
    return Calibration(**dict(zip(names, fitted, strict=True))), _judge(likelihood, sign > 0, mapped, kinds)


def _judge(
    log_odds: NDArray[np.float64], right: NDArray[np.bool_], mapped: NDArray[np.bool_], kinds: list[str]
) -> CalibrationOutcome:
    of = np.array(kinds)
    sure = mapped & (log_odds >= FOUND)
    certain, maybe, deciles = {}, {}, {}
    for kind in dict.fromkeys(kinds):
        here = of == kind
        certain[kind], maybe[kind] = (
            (int((some & right).sum()), int((some & ~right).sum()))
            for some in (here & sure, here & ~sure & (log_odds >= LIKELY))
        )
        tenth = np.minimum((10 * log_odds).astype(int), 9)
        deciles[kind] = [
            (float(log_odds[some].mean()), float(right[some].mean()), int(some.sum()))
            for some in (here & (tenth == step) for step in range(10))
            if some.any()
        ]
    return CalibrationOutcome(certain, maybe, deciles)
