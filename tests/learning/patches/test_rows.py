"""Rows of pairs: in blocks, scaled, or computed when read, they equal a plain array."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from learning.patches import rows as module
from learning.patches.rows import (
    BYTE_VALUES,
    ArrayRows,
    BlockRows,
    DifferenceRows,
    in_bytes,
    signed_products,
    values_of,
)


@st.composite
def blocked(draw):
    """Blocks of 0 to 4 rows each, the scale of their columns or None, and the plain array (M, N) they stand for.

    Whole numbers and powers of two: nothing is rounded, so that equal means equal.
    """
    columns = draw(st.integers(1, 5))
    sizes = draw(st.lists(st.integers(0, 4), min_size=1, max_size=5).filter(any))
    values = draw(arrays(np.float16, (sum(sizes), columns), elements=st.integers(-8, 8).map(float)))
    blocks = np.split(values, np.cumsum(sizes)[:-1])
    powers = st.sampled_from([0.125, 1.0, 4.0])
    scale = draw(st.none() | arrays(np.float64, columns, elements=powers))
    plain = values.astype(np.float64) if scale is None else values.astype(np.float64) * scale
    return blocks, scale, plain


class TestBlocks:
    @given(case=blocked(), data=st.data())
    def test_they_are_one_array(self, case, data):
        blocks, scale, plain = case
        rows = BlockRows(blocks, scale)
        number, columns = plain.shape
        assert len(rows) == number
        # In any order, repeated or not, or none.
        wanted = np.array(data.draw(st.lists(st.integers(0, number - 1), max_size=12)), np.int64)
        taken = rows.take(wanted)
        assert taken.dtype == np.float32
        np.testing.assert_array_equal(taken, plain[wanted])
        chosen = np.array(data.draw(st.lists(st.integers(0, columns - 1), max_size=6)), np.int64)
        found = rows.columns(chosen)
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, plain[:, chosen])
        weights = data.draw(arrays(np.float64, columns, elements=st.sampled_from([0.0, 0.0, 0.5, 2.0])))
        product = rows.dot(weights)
        assert product.dtype == np.float32
        np.testing.assert_array_equal(product, plain @ weights)
        np.testing.assert_allclose(rows.mean(), plain.mean(axis=0), rtol=1e-12, atol=1e-12)

    @given(case=blocked(), factor=st.sampled_from([0.5, 2.0]))
    def test_a_scale_takes_the_place_of_the_last_one(self, case, factor):
        blocks, scale, plain = case
        unscaled = plain if scale is None else plain / scale
        rows = BlockRows(blocks, scale)
        again = rows.scaled(np.full(plain.shape[1], factor))
        everything = np.arange(len(plain))
        np.testing.assert_array_equal(again.take(everything), factor * unscaled)
        np.testing.assert_array_equal(rows.take(everything), plain)  # without changing the original rows

    def test_long_blocks_are_read_in_parts(self, monkeypatch):
        values = np.random.default_rng(0).integers(-8, 9, (700, 6)).astype(np.float16)
        rows, plain = BlockRows([values[:300], values[300:]]), values.astype(np.float64)
        monkeypatch.setattr(module, "_ROWS", 128)
        np.testing.assert_array_equal(rows.columns(np.array([4, 1])), plain[:, [4, 1]])
        np.testing.assert_array_equal(rows.dot(np.array([0, 3, 0, 0, 1, 0.5])), plain @ [0, 3, 0, 0, 1, 0.5])
        np.testing.assert_allclose(rows.mean(), plain.mean(axis=0), atol=1e-12)

    def test_sums_do_not_overflow_what_the_rows_are_kept_in(self):
        """Half precision ends at 65,504, and its whole numbers at 2,048."""
        rows = BlockRows([np.full((3000, 2), 40, np.float16)])
        np.testing.assert_array_equal(rows.mean(), [40, 40])
        np.testing.assert_array_equal(rows.dot(np.array([2000.0, 1.0]))[:2], [80_040, 80_040])

    def test_mapped_from_the_disk_they_are_the_same(self, tmp_path):
        values = np.random.default_rng(1).random((20, 4)).astype(np.float16)
        np.save(tmp_path / "a.npy", values)
        mapped, plain = BlockRows([np.load(tmp_path / "a.npy", mmap_mode="r")]), BlockRows([values])
        numbers = np.array([19, 0, 7])
        np.testing.assert_array_equal(mapped.take(numbers), plain.take(numbers))
        np.testing.assert_array_equal(mapped.mean(), plain.mean())


def test_rows_in_memory_are_themselves():
    values = np.random.default_rng(2).random((9, 3))
    rows = ArrayRows(values)
    assert len(rows) == 9
    assert rows.take(np.array([8, 8, 1])).dtype == np.float32
    np.testing.assert_array_equal(rows.take(np.array([8, 8, 1])), values[[8, 8, 1]].astype(np.float32))


NUMBER = 8192 + 77  # pairs: more than are read at a time


@pytest.fixture(scope="module")
def case():
    """Rows of differences, and the differences as they are defined."""
    rng = np.random.default_rng(3)
    descriptors = rng.normal(size=(50, 6)).astype(np.float32)
    first, second = rng.integers(0, 50, (2, NUMBER))
    plain = descriptors[first].astype(np.float64) - descriptors[second]
    return DifferenceRows(descriptors, first, second), plain


class TestDifferences:
    def test_rows_are_differences(self, case):
        rows, plain = case
        assert len(rows) == NUMBER
        numbers = np.array([NUMBER - 1, 0, 4, 4])
        assert rows.take(numbers).dtype == np.float32
        np.testing.assert_allclose(rows.take(numbers), plain[numbers], atol=1e-6)

    def test_distances_are_those_of_the_metric(self, case):
        """θᵀAθ with A = WᵀW (equation 9)."""
        rows, plain = case
        projection = np.random.default_rng(4).normal(size=(4, 6))
        metric = projection.T @ projection
        expected = np.einsum("mi,ij,mj->m", plain, metric, plain)
        np.testing.assert_allclose(rows.distances(projection), expected, rtol=1e-4, atol=1e-5)
        assert rows.distances(projection).dtype == np.float32
        np.testing.assert_array_equal(rows.distances(np.zeros((0, 6))), np.zeros(NUMBER))

    def test_the_moment_is_the_mean_of_outer_products(self, case):
        rows, plain = case
        moment = rows.moment()
        np.testing.assert_allclose(moment, np.einsum("mi,mj->ij", plain, plain) / NUMBER, rtol=1e-5, atol=1e-6)
        assert moment.dtype == np.float64
        # θᵀAθ averaged is <A, moment>.
        projection = np.random.default_rng(5).normal(size=(2, 6))
        np.testing.assert_allclose(
            rows.distances(projection).mean(dtype=np.float64), np.sum(projection.T @ projection * moment), rtol=1e-5
        )


class TestBytes:
    def test_values_come_back_to_within_three_percent(self):
        rng = np.random.default_rng(0)
        values = np.exp(rng.uniform(np.log(2**-16), np.log(64), (500, 7))).astype(np.float32)
        found = values_of(in_bytes(values))
        assert np.abs(found / values - 1).max() < 0.032
        np.testing.assert_array_equal(in_bytes(BYTE_VALUES), np.arange(256))
        small = np.array([0, 1e-9, 2**-18, 64, 100], np.float32)
        np.testing.assert_array_equal(values_of(in_bytes(small)), [0, 0, 0, 64, 64])

    def test_rows_in_bytes_are_read_as_their_values(self):
        kept = in_bytes(np.random.default_rng(1).random((9, 5)).astype(np.float32))
        plain = BlockRows([values_of(kept)])
        rows = BlockRows([kept[:4], kept[4:]], np.array([1.0, 2, 3, 4, 5]))
        scaled = plain.scaled(np.array([1.0, 2, 3, 4, 5]))
        chosen, weights = np.array([7, 0, 4]), np.array([0, 1.0, 0, 2, 0])
        np.testing.assert_array_equal(rows.take(chosen), scaled.take(chosen))
        np.testing.assert_array_equal(rows.columns(np.array([1, 3])), scaled.columns(np.array([1, 3])))
        np.testing.assert_allclose(rows.dot(weights), scaled.dot(weights), rtol=1e-6)
        np.testing.assert_allclose(rows.mean(), scaled.mean(), rtol=1e-6)

    def test_signed_products_are_those_of_pairs(self):
        rows = np.random.default_rng(2).normal(size=(6, 3)).astype(np.float32)
        first, second, signs = np.array([0, 5]), np.array([1, 2]), np.array([1, -1, 1], np.float32)
        found = signed_products(rows.__getitem__, first, second, signs)
        np.testing.assert_allclose(found, [rows[0] * signs @ rows[1], rows[5] * signs @ rows[2]], rtol=1e-5)
