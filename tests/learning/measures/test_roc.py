"""ROC curves, FPR95 and AUC, against cases worked by hand and the Mann-Whitney statistic."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

from learning.measures.roc import auc, fpr95, fpr_at_recall, roc_curve

M, N = True, False  # a matching pair, and another


def test_a_curve_worked_by_hand() -> None:
    #                      closest ...                 ... furthest; 0.4 occurs thrice
    distances = np.array([0.1, 0.2, 0.3, 0.4, 0.4, 0.4, 0.9])
    match = np.array([M, M, N, M, N, N, M])
    fpr, tpr, thresholds = roc_curve(distances, match)
    np.testing.assert_array_equal(thresholds, [-np.inf, 0.1, 0.2, 0.3, 0.4, 0.9])
    np.testing.assert_allclose(tpr, [0, 1 / 4, 2 / 4, 2 / 4, 3 / 4, 1], rtol=1e-15)
    np.testing.assert_allclose(fpr, [0, 0, 0, 1 / 3, 1, 1], rtol=1e-15)
    # Of the 12 pairs of pairs: the first two matches win 3 each, the third loses 1 and ties 2, the last loses all.
    assert auc(distances, match) == pytest.approx((3 + 3 + 0 + 1) / 12, abs=1e-15)


@pytest.mark.parametrize(
    ("distances", "match", "recall", "expected"),
    [
        # Separated: nothing false is taken.
        ([1, 2, 3, 4], [M, M, N, N], 0.95, 0.0),
        # The wrong way round: all is taken before the first match.
        ([1, 2, 3, 4], [N, N, M, M], 0.95, 1.0),
        # Recall 1/2 is reached at 1, before the false pair at 2; any more needs the match at 3.
        ([1, 2, 3, 4], [M, N, M, N], 0.5, 0.0),
        ([1, 2, 3, 4], [M, N, M, N], 0.51, 0.5),
        # A false pair exactly at the threshold is taken, in either order.
        ([1, 2, 2, 3], [M, M, N, N], 0.95, 0.5),
        ([1, 2, 2, 3], [M, N, M, N], 0.95, 0.5),
        # All at one distance: one threshold takes everything.
        ([7, 7, 7, 7], [M, N, M, N], 0.95, 1.0),
        ([7, 7, 7, 7], [M, N, M, N], 0.01, 1.0),
        # The last match may be beyond everything, and need not be found.
        ([*range(19), np.inf, 18.5, 99], [M] * 20 + [N, N], 0.95, 0.0),
        ([*range(19), np.inf, 18.5, 99], [M] * 20 + [N, N], 1.0, 1.0),
    ],
)
def test_rates_at_a_recall_worked_by_hand(
    distances: list[float], match: list[bool], recall: float, expected: float
) -> None:
    assert fpr_at_recall(np.array(distances), np.array(match), recall) == expected


@pytest.mark.parametrize("matches", [20, 40, 100, 1000, 100_000])
def test_exactly_95_of_100_matches_are_enough(matches: int) -> None:
    # 95% of the matches come first, then one false pair, then the other matches, then a false pair.
    enough = matches * 95 // 100
    match = np.array([M] * enough + [N] + [M] * (matches - enough) + [N])
    distances = np.arange(len(match), dtype=np.float32)
    assert fpr95(distances, match) == 0
    match[enough - 1], match[enough] = N, M  # the false pair now comes before the match that reaches 95%
    assert fpr95(distances, match) == 0.5


@st.composite
def measured(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Distances with many ties, and both kinds of pairs."""
    match = np.array(draw(st.lists(st.booleans(), min_size=2, max_size=60)))
    assume(match.any() and not match.all())
    size = len(match)
    return np.array(draw(st.lists(st.integers(0, 12), min_size=size, max_size=size)), np.float64) / 4, match


@given(measured())
def test_the_area_is_the_mann_whitney_statistic(case: tuple[np.ndarray, np.ndarray]) -> None:
    distances, match = case
    statistic = mannwhitneyu(-distances[match], -distances[~match]).statistic
    assert auc(distances, match) == pytest.approx(statistic / (match.sum() * (~match).sum()), abs=1e-12)


@given(measured(), st.sampled_from([0.05, 0.5, 0.95, 1.0]))
def test_the_rate_is_that_of_a_search_over_all_thresholds(case: tuple[np.ndarray, np.ndarray], recall: float) -> None:
    distances, match = case
    for threshold in sorted(set(distances.tolist())):
        if sum(distances[match] <= threshold) >= recall * match.sum() - 1e-9:
            break
    expected = sum(distances[~match] <= threshold) / (~match).sum()
    assert fpr_at_recall(distances, match, recall) == pytest.approx(expected, abs=1e-12)


@given(measured(), st.randoms(use_true_random=False))
def test_neither_the_order_nor_a_rising_function_of_the_distances_counts(
    case: tuple[np.ndarray, np.ndarray], random: object
) -> None:
    distances, match = case
    order = np.array(random.sample(range(len(match)), len(match)))  # type: ignore[attr-defined]
    fpr, tpr, thresholds = roc_curve(distances, match)
    for other, labels in ((distances[order], match[order]), (np.exp(distances) - 7, match)):
        changed = roc_curve(other, labels)
        np.testing.assert_array_equal(changed[0], fpr)
        np.testing.assert_array_equal(changed[1], tpr)
        assert fpr95(other, labels) == fpr95(distances, match)
        assert auc(other, labels) == auc(distances, match)
    np.testing.assert_array_equal(roc_curve(distances[order], match[order])[2], thresholds)


@given(measured())
def test_a_curve_runs_from_nothing_to_everything(case: tuple[np.ndarray, np.ndarray]) -> None:
    fpr, tpr, thresholds = roc_curve(*case)
    assert (fpr[0], tpr[0], fpr[-1], tpr[-1]) == (0, 0, 1, 1)
    for row in (fpr, tpr):
        assert (np.diff(row) >= 0).all()
    assert (np.diff(thresholds) > 0).all()
    assert len(thresholds) == len(set(case[0].tolist())) + 1


@pytest.mark.parametrize(
    ("distances", "match", "says"),
    [
        ([1.0, np.nan, 2.0], [M, N, M], "NaN"),
        ([1.0, 2.0], [M, M], "both kinds"),
        ([1.0, 2.0], [N, N], "both kinds"),
        ([], [], "both kinds"),
        ([1.0, 2.0], [M, N, M], "length"),
        ([[1.0, 2.0]], [[M, N]], "length"),
    ],
)
def test_what_has_no_curve_is_refused(distances: list[float], match: list[bool], says: str) -> None:
    for measure in (roc_curve, fpr95, auc):
        with pytest.raises(ValueError, match=says):
            measure(np.array(distances), np.array(match))


@pytest.mark.parametrize("recall", [0, -0.1, 1.01, np.nan])
def test_a_recall_out_of_range_is_refused(recall: float) -> None:
    with pytest.raises(ValueError, match="recall"):
        fpr_at_recall(np.array([1.0, 2.0]), np.array([M, N]), recall)
