"""One probability of what geometry and the score say: golden values, bounds, and what can never lower it."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.matching.verification import NOTHING, Verification
from retrieval.search.engines.registry import ENGINES, VerifiedPhotos
from retrieval.search.probability import (
    CALIBRATIONS,
    FOUND,
    UNCONFIRMED,
    Calibration,
    background,
    contrast,
    weigh_result,
)
from retrieval.search.ranking import Hit

SIMPLE = Calibration(evidence=0.5, contrast=1.0, constant=-1.0, alone=2.0, alone_constant=-4.0)
ENGINE = st.sampled_from(sorted(CALIBRATIONS))
SCORE = st.floats(0, 10, allow_subnormal=False)


def with_odds(log_odds: float) -> Verification:
    return Verification(np.zeros((5, 2), np.int32), np.eye(2, 3), log_odds)


def test_every_engine_has_a_calibration() -> None:
    assert CALIBRATIONS.keys() == ENGINES.keys()


def test_the_background_is_the_median_of_what_has_anything_in_common() -> None:
    assert background(np.array([0.0, 3.0, 0.0, 1.0, 2.0])) == 2
    assert background(np.zeros(4)) == background(np.zeros(0)) == 0


def test_contrast_is_a_logarithm_within_bounds() -> None:
    assert contrast(0.2, 0.1) == pytest.approx(math.log(2))
    assert (contrast(1e9, 0.1), contrast(1e-9, 0.1), contrast(0.0, 0.1)) == (3, -1, -1)
    assert (contrast(0.1, 0.0), contrast(0.0, 0.0), contrast(5e-324, 2.0)) == (3, -1, -1)


def test_probabilities_are_those_that_are_computed_by_hand() -> None:
    # 0.5 x 4 + log 2 - 1 = 1 + log 2: odds of 2e. Without a map 2 log 2 - 4: odds of 4 / e^4.
    assert weigh_result(with_odds(4.0), 0.2, 0.1, SIMPLE) == pytest.approx(2 * math.e / (1 + 2 * math.e))
    odds = 4 * math.exp(-4)
    assert weigh_result(NOTHING, 0.2, 0.1, SIMPLE) == pytest.approx(odds / (1 + odds))
    assert weigh_result(NOTHING, 0.0, 0.1, SIMPLE) == 0


@given(ENGINE, st.floats(-10, 40), st.floats(0, 10), SCORE, st.floats(0, 5), st.floats(0, 5))
def test_more_evidence_and_a_higher_score_never_lower_it(
    name: str, odds: float, more: float, score: float, higher: float, ground: float
) -> None:
    calibration = CALIBRATIONS[name]
    base = weigh_result(with_odds(odds), score, ground, calibration)
    assert 0 <= base <= 1
    assert weigh_result(with_odds(odds + more), score, ground, calibration) >= base
    assert weigh_result(with_odds(odds), score + higher, ground, calibration) >= base
    alone = weigh_result(NOTHING, score, ground, calibration)
    assert 0 <= alone <= weigh_result(NOTHING, score + higher, ground, calibration) <= 1


@given(ENGINE, st.floats(-10, 40), SCORE, st.floats(0, 5))
def test_what_the_query_has_no_map_to_is_never_found(name: str, odds: float, score: float, ground: float) -> None:
    """Though others lead to it, or a map that is not verified does; and the same odds with a map say more."""
    through = Verification(NOTHING.matches, None, odds, 30)
    unsure, sure = (weigh_result(one, score, ground, CALIBRATIONS[name]) for one in (through, with_odds(odds)))
    assert 0 <= unsure <= min(sure, UNCONFIRMED) < FOUND
    assert not Hit(1, score, 0, through, probability=1.0).found


@pytest.mark.parametrize("name", [one.name for one in ENGINES.values() if one.verified is not VerifiedPhotos.NONE])
def test_where_photos_are_verified_a_score_alone_finds_nothing(name: str) -> None:
    assert weigh_result(NOTHING, 1e9, 1e-9, CALIBRATIONS[name]) < FOUND
    assert weigh_result(with_odds(30.0), 0.0, 1.0, CALIBRATIONS[name]) > FOUND  # the photo itself is found
