"""Receiver operating characteristic of distances: separation of matching pairs from others by a threshold."""

import numpy as np
from numpy.typing import NDArray


def roc_curve(
    distances: NDArray[np.floating], match: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Rates of false positives (T,) and true positives (T,), which never fall, at every threshold (T,): minus infinity,
    then each distance that occurs, ascending; pairs with ``distances <= threshold`` are taken for matches. Pairs at the
    same distance enter together. Raises ValueError if lengths differ, a distance is NaN, or all pairs are of one kind.
    """
    true_positives, false_positives, thresholds = _counts(distances, match)
    return false_positives / false_positives[-1], true_positives / true_positives[-1], thresholds


def fpr_at_recall(distances: NDArray[np.floating], match: NDArray[np.bool_], recall: float = 0.95) -> float:
    """Rate of false positives, FP / (FP + TN), at the smallest distance whose recall, TP / (TP + FN), is as large as
    wanted. Nothing is interpolated: pairs at that distance all count as matches. Raises ValueError as `roc_curve`, and
    unless 0 < recall <= 1. `recall`: wanted TP / (TP + FN), above 0 and at most 1.
    """
    if not 0 < recall <= 1:
        raise ValueError(f"recall must lie above 0 and be at most 1, and is {recall}.")
    fpr, tpr, _ = roc_curve(distances, match)
    # A quotient of counts is rounded once, like the decimal 0.95, so 19 / 20 compares equal to it.
    return float(fpr[np.searchsorted(tpr, recall, side="left")])


def fpr95(distances: NDArray[np.floating], match: NDArray[np.bool_]) -> float:
    """Return the rate of false positives (0 to 1) at 95% recall, the measure of Brown11 and Simonyan14 section 10.1.

    See `fpr_at_recall`, ties and errors included.
    """
    return fpr_at_recall(distances, match, 0.95)


def auc(distances: NDArray[np.floating], match: NDArray[np.bool_]) -> float:
    """Return the area (0 to 1) under the ROC curve, straight between thresholds.

    The probability that a matching pair is closer than another one, with ties counting half: the statistic of
    Mann and Whitney over the number of pairs of pairs. Parameters and errors as those of `roc_curve`.
    """
    fpr, tpr, _ = roc_curve(distances, match)
    return float(np.trapezoid(tpr, fpr))


def _counts(
    distances: NDArray[np.floating], match: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """True positives, false positives (int64) and thresholds (float64), each (T,); see `roc_curve`."""
    distances, match = np.asarray(distances, np.float64), np.asarray(match, bool)
    if distances.ndim != 1 or distances.shape != match.shape:
        raise ValueError(f"distances and match must be one row each of the same length: {distances.shape, match.shape}")
    if np.isnan(distances).any():
        raise ValueError(f"{np.count_nonzero(np.isnan(distances))} of {len(distances)} distances are NaN.")
    if match.all() or not match.any():
        raise ValueError(f"{np.count_nonzero(match)} of {len(match)} pairs match; there must be both kinds.")
    order = np.argsort(distances)
    ranked = distances[order]
    last = np.append(np.flatnonzero(ranked[1:] > ranked[:-1]), len(ranked) - 1)  # the last of each distance
    true_positives = np.cumsum(match[order])[last]
    return (
        np.concatenate([[0], true_positives]),
        np.concatenate([[0], last + 1 - true_positives]),
        np.concatenate([[-np.inf], ranked[last]]),
    )
