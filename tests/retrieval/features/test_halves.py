"""Casting of descriptors: as NumPy casts, whatever the numbers."""

import numpy as np
import pytest

from retrieval.features.halves import to_half, to_single


def test_all_halves_are_cast_and_back() -> None:
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16).reshape(-1, 128)
    single = to_single(halves)
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single, halves.astype(np.float32))
    np.testing.assert_array_equal(to_half(single), halves)


def test_numbers_between_halves_are_rounded_as_by_numpy() -> None:
    rng = np.random.default_rng(0)
    exponents = rng.uniform(-30, 17, (500, 128))
    rows = (np.exp2(exponents) * rng.choice([-1, 1], exponents.shape)).astype(np.float32)
    halves = np.arange(1 << 15, dtype=np.uint16).view(np.float16)[: 31 << 10].astype(np.float32)
    ties = ((halves[:-1] + halves[1:]) / 2)[None]
    for some in (rows, ties, rows[:, ::3]):
        with np.errstate(over="ignore"):
            expected = some.astype(np.float16)
        np.testing.assert_array_equal(to_half(some), expected)


@pytest.mark.parametrize("shape", [(0, 128), (3, 0)])
def test_nothing_is_cast_to_nothing(shape: tuple[int, int]) -> None:
    assert to_half(np.zeros(shape, np.float32)).shape == to_single(np.zeros(shape, np.float16)).shape == shape
