import faiss
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from index.errors import CairnError
from learning.codes.product import ProductOptions, balanced_rotation, learn_product, rows_of_moments

DIM = 20
SPECTRUM = np.exp(-np.arange(DIM) / 5)


def gaussian_rows(number, spectrum=SPECTRUM, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((number, len(spectrum))) * np.sqrt(spectrum)).astype(np.float32)


def mixed_rows(number, seed=0):
    """Rows whose principal axes are not the dimensions."""
    turn = np.linalg.qr(np.random.default_rng(77).standard_normal((DIM, DIM)))[0]
    return (gaussian_rows(number, seed=seed) @ turn + 3).astype(np.float32)


def error(code, rows):
    """Part of the rows' variance that their codes lose."""
    return ((code.apply(rows) - rows) ** 2).sum() / ((rows - rows.mean(axis=0)) ** 2).sum()


TRAIN, TEST = gaussian_rows(6000), gaussian_rows(2000, seed=1)


def options(bits, method="balanced", seed=0):
    return ProductOptions(bits, method, iterations=8, seed=seed)


@pytest.mark.slow
def test_plain_product_quantisation_is_as_good_as_that_of_faiss():
    peer = faiss.ProductQuantizer(DIM, 4, 8)
    peer.train(TRAIN)
    decoded = peer.decode(peer.compute_codes(TEST))
    expected = ((decoded - TEST) ** 2).sum() / ((TEST - TEST.mean(axis=0)) ** 2).sum()
    assert error(learn_product(TRAIN, options(32, "plain")), TEST) == pytest.approx(expected, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("make", [gaussian_rows, mixed_rows])
@pytest.mark.parametrize("bits", [16, pytest.param(32, marks=pytest.mark.slow)])
def test_balanced_parts_lose_less_than_plain_ones(make, bits):
    train, test = make(6000), make(2000, seed=1)
    errors = {method: error(learn_product(train, options(bits, method)), test) for method in ("balanced", "plain")}
    assert errors["balanced"] < 0.9 * errors["plain"]


@pytest.mark.slow
def test_the_error_falls_as_bits_grow():
    errors = [error(learn_product(TRAIN, options(bits)), TEST) for bits in (8, 16, 32, 80, 160)]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-3


def test_as_many_bytes_as_dimensions_lose_next_to_nothing_and_no_more_are_used():
    code = learn_product(TRAIN, ProductOptions(1024))
    assert code.bytes == DIM
    assert code.rotation is None
    # The best scalar quantiser of 256 levels has the error (√3 π / 2) / 256² for a Gaussian that is known (Panter,
    # Dite, 1951); this one knows 23 rows a codeword.
    best = np.sqrt(3) * np.pi / 2 / 256**2
    assert error(code, TEST) < 2.5 * best
    assert best / 2 < error(code, TRAIN) < best
    distances = [np.linalg.norm(rows[:1000] - rows[1000:], axis=1) for rows in (TEST, code.apply(TEST))]
    assert np.abs(distances[1] / distances[0] - 1).mean() < 0.005


@pytest.mark.parametrize(("bits", "dim", "sizes"), [(64, 20, [2, 3]), (8, 20, [20]), (64, 9, [1, 2]), (24, 3, [1])])
@pytest.mark.parametrize("method", ["balanced", "plain"])
def test_parts_of_any_number_cover_all_dimensions(bits, dim, sizes, method):
    code = learn_product(gaussian_rows(300, np.ones(dim)), options(bits, method))
    assert sorted(set(code.sizes.tolist())) == sizes
    assert code.sizes.sum() == dim
    assert code.bytes == min(bits // 8, dim)


@settings(max_examples=25)
@given(dim=st.integers(1, 30), parts=st.integers(1, 30), flat=st.booleans(), seed=st.integers(0, 99))
def test_axes_are_dealt_once_each_to_parts_of_like_products(dim, parts, flat, seed):
    parts = min(parts, dim)
    spectrum = np.exp(-np.arange(dim) / 4) * (np.arange(dim) < (dim + 1) // 2 if flat else 1)
    rows = gaussian_rows(400, spectrum, seed)
    rotation, sizes = balanced_rotation(rows, parts)
    np.testing.assert_allclose(rotation.T @ rotation, np.eye(dim), atol=1e-5)
    assert len(sizes) == parts
    assert sizes.sum() == dim
    assert 1 <= sizes.min() <= sizes.max() <= -(-dim // parts)
    turned = np.cov((rows.astype(np.float64) @ rotation).T).reshape(dim, dim)
    assert np.abs(turned - np.diag(np.diag(turned))).max() < 1e-5 * np.abs(turned).max()


def test_products_of_variances_are_alike_where_parts_are_of_one_length():
    rotation, sizes = balanced_rotation(TRAIN, 4)
    assert sizes.tolist() == [5, 5, 5, 5]
    logarithms = np.log(np.var(TRAIN @ rotation, axis=0)).reshape(4, 5).sum(axis=1)
    plain = np.log(np.var(TRAIN, axis=0)).reshape(4, 5).sum(axis=1)
    assert np.ptp(logarithms) < 0.1 * np.ptp(plain)


def test_the_seed_alone_decides():
    codes = [learn_product(TRAIN, options(16, seed=seed)).centroids for seed in (3, 3, 4)]
    np.testing.assert_array_equal(codes[0], codes[1])
    assert (codes[0] != codes[2]).any()


def test_few_distinct_rows_are_coded_without_loss():
    rows = np.repeat(gaussian_rows(40), 10, axis=0)
    for bits in (16, 160):
        code = learn_product(rows, options(bits))
        np.testing.assert_allclose(code.apply(rows), rows, atol=0.02 if bits == 160 else 1e-5)
    same = np.full((300, 6), 0.25, np.float32)
    np.testing.assert_allclose(learn_product(same, options(16)).apply(same), same, atol=1e-6)


def test_rows_drawn_from_moments_have_them():
    covariance = np.cov(mixed_rows(3000).T)
    rows = rows_of_moments(np.arange(DIM), covariance, 50_000, np.random.default_rng(0))
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows.mean(axis=0), np.arange(DIM), atol=0.02)
    np.testing.assert_allclose(np.cov(rows.T), covariance, atol=0.02)


def test_moments_of_less_than_full_rank_give_finite_rows():
    low = np.outer(np.arange(4), np.arange(4)).astype(np.float32)
    rows = rows_of_moments(np.zeros(4), low, 1000, np.random.default_rng(0))
    assert np.isfinite(rows).all()
    np.testing.assert_allclose(rows, rows[:, 1:2] * np.arange(4), atol=1e-5)


@pytest.mark.slow
def test_rows_drawn_from_moments_serve_as_well_as_the_rows_where_these_are_gaussian():
    train, test = mixed_rows(6000), mixed_rows(2000, seed=1)
    drawn = rows_of_moments(train.mean(axis=0), np.cov(train.T), 6000, np.random.default_rng(0))
    assert error(learn_product(drawn, options(32)), test) < 1.05 * error(learn_product(train, options(32)), test)


@pytest.mark.parametrize("bits", [0, -8, 7, 65])
def test_codes_of_other_than_whole_bytes_are_refused(bits):
    with pytest.raises(CairnError, match="multiple of 8"):
        ProductOptions(bits)


def test_an_unknown_method_is_refused():
    with pytest.raises(CairnError, match="balanced, plain"):
        ProductOptions(64, "best")


@pytest.mark.parametrize("rows", [np.zeros((255, 4), np.float32), np.full((300, 4), np.inf, np.float32)])
def test_rows_that_cannot_be_learnt_from_are_refused(rows):
    with pytest.raises(CairnError, match="rows"):
        learn_product(rows, options(16))
