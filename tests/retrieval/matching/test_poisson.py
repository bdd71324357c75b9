import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import gammainc

from retrieval.matching.poisson import at_least

numbers = st.floats(-9, 7).map(math.exp)


@given(numbers, numbers)
@example(30.0, 30.0)
@example(1e3, 1001.5)
@example(2.0, 3.0)
def test_it_is_the_incomplete_gamma_function(count: float, expected: float) -> None:
    assert at_least(count, expected) == pytest.approx(float(gammainc(count, expected)), rel=1e-11, abs=1e-300)


def test_it_is_the_share_of_the_law_from_a_number_on() -> None:
    law = [math.exp(-2.5) * 2.5**k / math.factorial(k) for k in range(100)]
    for count in range(20):
        assert at_least(count, 2.5) == pytest.approx(sum(law[count:]), rel=1e-9)


def test_nothing_is_sure_and_something_never_where_none_is_expected() -> None:
    assert (at_least(0, 0.0), at_least(0, 3.0), at_least(1, 0.0)) == (1, 1, 0)
    assert at_least(5000, 1e-9) == 0
