import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import CairnError
from learning.codes.binary import centred_code, learn_binary, random_projections, spread_code, tight_frame


@given(dim=st.integers(1, 40), more=st.integers(0, 90), seed=st.integers(0, 99))
def test_a_frame_is_a_parseval_tight_frame(dim, more, seed):
    frame = tight_frame(dim + more, dim, np.random.default_rng(seed)).astype(np.float64)
    np.testing.assert_allclose(frame.T @ frame, np.eye(dim), atol=1e-6)


def test_a_long_frame_keeps_distances():
    rows = np.random.default_rng(1).standard_normal((30, 80))
    expanded = rows @ tight_frame(1024, 80, np.random.default_rng(0)).T
    for left, right in ((rows, expanded), (rows - rows[0], expanded - expanded[0])):
        np.testing.assert_allclose(np.linalg.norm(right, axis=1), np.linalg.norm(left, axis=1), rtol=1e-6)


def test_a_frame_is_the_first_columns_of_the_qr_decomposition_of_a_square_matrix():
    rng = np.random.default_rng(5)
    columns = rng.standard_normal((12, 7))
    square = np.concatenate([columns, rng.standard_normal((12, 5))], axis=1)
    orthogonal, triangular = np.linalg.qr(square)
    expected = (orthogonal * np.sign(np.diag(triangular)))[:, :7]
    np.testing.assert_allclose(tight_frame(12, 7, np.random.default_rng(5)), expected, atol=1e-6)


def angle_error(method, bits, spread, seed):
    """Root mean square error, in bits, of a line from the angle between centred rows to Hamming distance."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((400, 32)) * spread
    bits_of = learn_binary(rows.astype(np.float32), bits, method=method, seed=seed).apply(rows.astype(np.float32))
    hamming = (bits_of[:200] != bits_of[200:]).mean(axis=1)
    centred = rows - rows.mean(axis=0)
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    angle = np.arccos((centred[:200] * centred[200:]).sum(axis=1)) / np.pi
    return np.sqrt(((hamming - angle) ** 2).mean())


@pytest.mark.parametrize("spread", [np.ones(32), 0.9 ** np.arange(32)], ids=["round", "decaying"])
def test_a_frame_keeps_angles_better_than_random_projections_of_as_many_bits(spread):
    errors = {
        method: np.mean([angle_error(method, 48, spread, seed) for seed in range(8)]) for method in ("frame", "lsh")
    }
    assert errors["frame"] < 0.9 * errors["lsh"]


def test_angles_are_kept_better_by_more_bits():
    errors = [angle_error("frame", bits, np.ones(32), 0) for bits in (32, 128, 512, 2048)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < errors[0] / 4


def test_rows_are_centred_on_the_mean_of_training_rows():
    rows = np.random.default_rng(0).standard_normal((500, 8)).astype(np.float32) + 100
    code = learn_binary(rows, 16)
    np.testing.assert_allclose(code.mean, rows.mean(axis=0, dtype=np.float64), rtol=1e-6)
    # Centred, so that each bit parts the rows evenly.
    assert np.abs(code.apply(rows).mean(axis=0) - 0.5).max() < 0.15
    np.testing.assert_array_equal(code.frame, centred_code(rows.mean(axis=0), 16).frame)


@pytest.mark.parametrize("method", ["frame", "lsh"])
def test_the_seed_alone_decides(method):
    rows = np.random.default_rng(0).standard_normal((10, 8)).astype(np.float32)
    codes = [learn_binary(rows, 16, method=method, seed=seed).frame for seed in (3, 3, 4)]
    np.testing.assert_array_equal(codes[0], codes[1])
    assert (codes[0] != codes[2]).any()


def test_a_frame_of_too_few_bits_says_how_many_work():
    with pytest.raises(CairnError, match="choose 80 or more rather than 64"):
        tight_frame(64, 80, np.random.default_rng(0))
    assert random_projections(64, 80, np.random.default_rng(0)).shape == (64, 80)


@pytest.mark.parametrize("bits", [0, -8, 100_000])
def test_numbers_of_bits_out_of_range_are_refused(bits):
    for make in (tight_frame, random_projections):
        with pytest.raises(CairnError, match="8,192"):
            make(bits, 4, np.random.default_rng(0))


@pytest.mark.parametrize("rows", [np.zeros((0, 4), np.float32), np.full((3, 4), np.nan, np.float32)])
def test_rows_without_a_mean_are_refused(rows):
    with pytest.raises(CairnError, match="rows"):
        learn_binary(rows, 16)


class TestSpread:
    """Thresholds at quantiles of the projections on each vector of the frame."""

    def rows(self, number=4000, dim=16):
        rng = np.random.default_rng(5)
        return (rng.standard_normal((number, dim)) * 0.8 ** np.arange(dim) + 3).astype(np.float32)

    def test_two_bits_a_dimension_are_the_papers(self):
        rows = self.rows()
        code, plain = learn_binary(rows, 32, method="spread"), learn_binary(rows, 32)
        np.testing.assert_array_equal(code.thresholds, 0)
        np.testing.assert_array_equal(code.apply(rows), plain.apply(rows))

    def test_they_are_quantiles_of_training_rows(self):
        rows = self.rows(40_000)
        code = learn_binary(rows, 512, method="spread", seed=3)
        # Undone the factor 1 - 2m / q, each share of rows beyond its threshold comes once, evenly over 0..1.
        full = code.thresholds / (1 - 32 / 512)
        shares = np.sort(((rows - code.mean) @ code.frame.T > full).mean(axis=0))
        np.testing.assert_allclose(shares, (np.arange(512) + 0.5) / 512, atol=0.03)

    def test_lengths_count_beside_directions(self):
        mean, direction = np.zeros(16, np.float32), np.eye(1, 16, dtype=np.float32)
        near, far = direction * 0.5, direction * 2
        spread, plain = spread_code(mean, np.eye(16), 1024), centred_code(mean, 1024)
        assert (plain.apply(near) == plain.apply(far)).all()
        assert (spread.apply(near) != spread.apply(far)).sum() > 50

    def test_distances_are_kept_better_than_by_signs(self):
        rows = self.rows()
        first, second = rows[::2], rows[1::2]
        true = np.square(first - second).sum(axis=1)

        def agreement(method):
            code = learn_binary(rows, 1024, method=method)
            return np.corrcoef(true, np.square(code.apply(first) - code.apply(second)).sum(axis=1))[0, 1]

        assert agreement("spread") > agreement("frame") + 0.05
