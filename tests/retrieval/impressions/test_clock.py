"""The print clock: what is read on lines is what was taken away, and order and years follow."""

import numpy as np
import pytest
from numpy.typing import NDArray

from index.errors import CairnError
from retrieval.impressions.clock import (
    calibrate_years,
    earlier_probabilities,
    interval,
    overrule,
    read_lines,
    sample_clock,
)

SIDE, GAP, WIDTH = 480, 16, 4
BREAKS = ((60, 100), (200, 100), (330, 212), (400, 404), (90, 308), (250, 20))  # x, y on lines


def _state(broken: int, width: float = WIDTH) -> NDArray[np.float32]:
    """Level lines, the first of `BREAKS` taken away, 14 pixels of a line each."""
    off = np.abs((np.arange(SIDE) + GAP // 4) % GAP - GAP / 2)
    ink = np.repeat(np.clip(width / 2 + 0.5 - off, 0, 1)[:, None], SIDE, 1).astype(np.float32)
    for x, y in BREAKS[:broken]:
        ink[y - GAP // 2 : y + GAP // 2, x : x + 14] = 0
    return ink


EVERYWHERE = np.ones((SIDE, SIDE), bool)


def test_breaks_are_counted_where_they_are_and_faint_ink_counts_for_none() -> None:
    faint = _state(2)
    faint[:, 290:430] *= 0.55  # ink failed there, and lines came out as dots
    for x in range(300, 420, 20):
        faint[:, x : x + 8] = 0
    found = read_lines([_state(0), faint, _state(5)], EVERYWHERE)
    # Of the five, those at 330 and 400 are where the second impression is faint.
    assert found.values("breaks").tolist() == [0, 2, 3]
    assert np.abs(found.places - [[66.5, 100], [206.5, 100], [96.5, 308]]).max() < 1
    assert not found.lines[:, 350:400].any() and found.lines[100, 280]


def test_widths_are_those_that_were_drawn() -> None:
    found = read_lines([_state(0), _state(3, 3.0)], EVERYWHERE)
    widths = found.values("widths")
    assert widths - widths[1] == pytest.approx([1, 0], abs=0.1) and widths[1] == pytest.approx(3, abs=0.1)
    shown, samples = sample_clock(found, "widths", inking=0)
    assert shown[0] < shown[1] and earlier_probabilities(samples)[0, 1] == 1


def test_order_and_its_probability_follow_breaks() -> None:
    found = read_lines([_state(5), _state(0), _state(1)], EVERYWHERE)
    shown, samples = sample_clock(found, "breaks", inking=0)
    earlier = earlier_probabilities(samples)
    assert shown.tolist() == [5, 0, 1] and earlier + earlier.T == pytest.approx(np.ones((3, 3)))
    # A single break is drawn again by the bootstrap with a probability of 1 - 1/e; else it is a tie.
    assert earlier[1, 2] == pytest.approx(1 - np.exp(-1) / 2, abs=0.03) and earlier[1, 0] > 0.98
    forced = earlier_probabilities(overrule(samples, [(0, 1)]))
    assert forced[0, 1] == 1 and 0.8 < forced[2, 0] < earlier[2, 0]
    with pytest.raises(CairnError, match="contradict each other"):
        overrule(samples, [(0, 1), (1, 2), (2, 0)])
    with pytest.raises(CairnError, match="Too few lines"):
        sample_clock(read_lines([np.zeros_like(EVERYWHERE, np.float32)] * 2, EVERYWHERE), "breaks")


def test_years_are_read_off_a_line_and_intervals_hold_them() -> None:
    rng = np.random.default_rng(1)
    years = np.array([1500.0, 1510, 1520, 1535, 1550, 1560])
    held, apart = [], []
    for seed in range(200):
        shown = (years - 1490) / 2 + rng.normal(0, 2, 6)
        samples = shown + rng.normal(0, 2, (400, 6))
        found = calibrate_years(shown, samples, [1500, None, 1520, None, None, 1560], seed)
        assert found is not None
        low, high = interval(found)
        held += [low[place] <= years[place] <= high[place] for place in (1, 3, 4)]
        apart += [abs(np.median(found[:, place]) - years[place]) for place in (1, 3, 4)]
    assert 0.87 < np.mean(held) < 0.98 and np.median(apart) < 5
    for known in ([1500, None, None, None, None, None], [1560, None, None, None, None, 1500], [1500] * 6):
        assert calibrate_years(shown, samples, known) is None
