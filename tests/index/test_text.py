"""Text in messages."""

import pytest

from index.text import likely


@pytest.mark.parametrize(
    ("probability", "told"), [(0.0, "<1%"), (0.004, "<1%"), (0.01, "1%"), (0.5, "50%"), (0.994, "99%"), (1.0, ">99%")]
)
def test_no_probability_is_told_as_certain_or_impossible(probability: float, told: str) -> None:
    assert likely(probability) == told
