"""What one impression lacks, and by how far lines are displaced."""

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from retrieval.impressions.residual import Break, agreeing_region, compare_impressions
from tests.support.printed_blocks import cut_alike, cut_block, draw_strokes

LINES = 12
"""Pixels from one line to the next."""


def _lines(shift: float = 0.0, width: float = 5.0, side: int = 240) -> NDArray[np.float32]:
    """Level lines with soft edges, of some width."""
    off = (np.arange(side) - shift) % LINES - LINES / 2
    ink = np.clip(width / 2 + 0.5 - np.abs(off), 0, 1)
    return np.repeat(ink[:, None], side, 1).astype(np.float32)


def test_a_break_is_found_where_it_is_and_in_its_direction() -> None:
    whole, worn = _lines(), _lines()
    worn[60:72, 100:130] = 0  # one line: its 5 rows of ink
    found = compare_impressions(whole, worn, tolerance=1)
    # Ink within a pixel of what is left counts as there.
    (place,) = found.breaks(0)
    assert place == Break(101, 64, 28, 5, 140) and not found.breaks(1)
    assert found.missing == (pytest.approx(140 / (20 * 5 * 240)), 0.0)
    assert found.verdict == "one block" and found.displacement == pytest.approx(0, abs=1e-3)


def test_thinner_lines_are_neither_displaced_nor_missing() -> None:
    found = compare_impressions(_lines(), _lines(width=3.0))
    assert found.displacement == pytest.approx(0, abs=0.05) and max(found.missing) == 0
    assert found.line_widths[0] == pytest.approx(5, abs=0.7)
    assert found.line_widths[0] - found.line_widths[1] == pytest.approx(2, abs=0.4)


@pytest.mark.parametrize("shift", (0.5, 1.0))
def test_displacement_is_measured_in_pixels(shift: float) -> None:
    found = compare_impressions(_lines(), _lines(shift))
    assert found.displacement == pytest.approx(shift, rel=0.15)


def test_next_to_nothing_leaves_it_unsure() -> None:
    blank = np.zeros((240, 240), np.float32)
    for one, other in ((blank, blank), (_lines(), blank), (_lines(width=1.2), _lines(width=1.2))):
        assert compare_impressions(one, other).verdict == "unsure"
    nowhere = np.zeros((240, 240), bool)
    assert compare_impressions(_lines(), _lines(), nowhere).verdict == "unsure"


def test_a_region_is_narrowed_to_what_agrees() -> None:
    block = cut_block(5)
    one, other = (cv2.resize(draw_strokes(some), (320, 320), interpolation=cv2.INTER_AREA) for some in (block, block))
    first, second = (np.zeros((480, 320), np.float32) for _ in range(2))
    first[:320], second[:320] = one, other
    for page, seed in ((first, 1), (second, 2)):  # lines of other letters below, at the same heights
        letters = "".join(np.random.default_rng(seed).choice(list("abcdehlmnorst"), 17))
        for y in (390, 430, 470):
            cv2.putText(page, letters, (4, y), cv2.FONT_HERSHEY_COMPLEX, 1.0, 1.0, 2, cv2.LINE_AA)
            letters = letters[3:] + letters[:3]
    found = agreeing_region(first, second, np.ones((480, 320), bool))
    assert found[20:300, 20:300].all() and not found[345:].any()
    assert compare_impressions(first, second, found).missing == (0, 0)


def test_a_block_that_is_cut_alike_is_told(recwarn: pytest.WarningsRecorder) -> None:
    block = cut_block(6)
    one, other = (cv2.GaussianBlur(draw_strokes(some), (0, 0), 1) for some in (block, cut_alike(block, 6, 1.5)))
    assert compare_impressions(one, other).verdict == "cut alike" and not recwarn.list
    assert compare_impressions(one, one).verdict == "one block"
