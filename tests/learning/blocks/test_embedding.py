"""E-blocks compared with direct, dense solutions of the paper's equations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import eig, eigh

from index.errors import CairnError
from learning.blocks import embedding
from learning.blocks.embedding import Moments, learn_embedding, regularised

KINDS = ("lpp", "lde", "glde")
ORTHOGONAL = {"olpp": "lpp", "olde": "lde", "golde": "glde"}
DIM, ROWS, PAIRS = 14, 400, 900


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    points = rng.normal(size=(60, DIM)) * np.linspace(3, 0.3, DIM)
    owner = rng.integers(0, 60, ROWS)
    mixing = rng.normal(size=(DIM, DIM))
    rows = (points[owner] + rng.normal(size=(ROWS, DIM)) * np.linspace(0.2, 1.2, DIM)) @ mixing + 5
    first, second = rng.integers(0, ROWS, (2, 20_000))
    match = (owner[first] == owner[second]) & (first != second)
    chosen = np.concatenate([np.flatnonzero(match)[: PAIRS // 3], np.flatnonzero(~match)[:PAIRS]])
    return rows.astype(np.float32), first[chosen], second[chosen], match[chosen]


@pytest.fixture(scope="module")
def moments(data):
    return Moments.of(*data)


def numerator(kind, moments):
    return {"lpp": moments.matched, "lde": moments.different, "glde": moments.every}[kind]


def same_direction(first, second):
    return abs(first @ second) / np.linalg.norm(first) / np.linalg.norm(second)


def test_moments_are_sums_over_pairs(data, moments):
    """Equations 6 to 9, pair by pair."""
    rows, first, second, match = data
    x = rows.astype(np.float64) - rows.mean(axis=0)
    matched, different, same = np.zeros((3, DIM, DIM))
    for one, other, is_match in zip(first, second, match, strict=True):
        difference = np.outer(x[one] - x[other], x[one] - x[other])
        if is_match:
            matched += np.outer(x[one], x[one]) + np.outer(x[other], x[other])
            same += difference
        else:
            different += difference
    np.testing.assert_allclose(moments.matched, matched / (2 * match.sum()), rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(moments.different, different / (~match).sum(), rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(moments.same, same / match.sum(), rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(moments.every, x.T @ x / len(x), rtol=1e-4, atol=1e-3)


def test_moments_do_not_depend_on_how_many_rows_are_taken_at_a_time(data, moments, monkeypatch):
    monkeypatch.setattr(embedding, "_ROWS", 37)
    found = Moments.of(*data)
    for name in ("matched", "different", "every", "same"):
        np.testing.assert_allclose(getattr(found, name), getattr(moments, name), rtol=1e-10)


def test_without_centring_moments_are_those_of_the_equations(data, moments):
    rows, first, second, match = data
    plain = Moments.of(*data, centred=False)
    x = rows.astype(np.float64)
    np.testing.assert_allclose(plain.every, x.T @ x / len(x))  # equation 8
    both = np.concatenate([first[match], second[match]])
    np.testing.assert_allclose(plain.matched, x[both].T @ x[both] / len(both))  # equation 6
    for name in ("same", "different"):
        np.testing.assert_allclose(getattr(plain, name), getattr(moments, name))
    assert not plain.mean.any() and moments.mean.all()


class TestGeneralised:
    @pytest.mark.parametrize("kind", KINDS)
    def test_directions_are_the_generalised_eigenvectors(self, kind, moments):
        """Equation 11, by a solver that takes both matrices."""
        found = learn_embedding(kind, moments, 6)
        values, vectors = eigh(numerator(kind, moments), moments.same)
        for row, vector in zip(found, vectors[:, ::-1].T, strict=False):
            assert same_direction(row, vector) > 1 - 1e-6
        # Matches differ by as much along each, and the first has wᵀ A w = 1.
        same, a = (found @ one @ found.T for one in (moments.same, numerator(kind, moments)))
        np.testing.assert_allclose(same / same[0, 0], np.eye(6), atol=1e-4)
        np.testing.assert_allclose(np.diag(a) / np.diag(same), values[::-1][:6], rtol=1e-4)
        assert a[0, 0] == pytest.approx(1, rel=1e-5)

    @pytest.mark.parametrize("kind", KINDS)
    def test_no_direction_has_a_larger_ratio(self, kind, moments):
        best = learn_embedding(kind, moments, 1)[0].astype(np.float64)
        a = numerator(kind, moments)
        largest = (best @ a @ best) / (best @ moments.same @ best)
        for direction in np.random.default_rng(0).normal(size=(500, DIM)):
            assert (direction @ a @ direction) / (direction @ moments.same @ direction) <= largest * (1 + 1e-5)


class TestOrthogonal:
    @pytest.mark.parametrize("kind", ORTHOGONAL)
    def test_directions_are_orthonormal(self, kind, moments):
        found = learn_embedding(kind, moments, DIM).astype(np.float64)
        np.testing.assert_allclose(found @ found.T, np.eye(DIM), atol=1e-5)

    @pytest.mark.parametrize("kind", ORTHOGONAL)
    def test_each_is_the_leading_eigenvector_of_equation_18(self, kind, moments):
        found = learn_embedding(kind, moments, 6).astype(np.float64)
        a, b_inverse = numerator(ORTHOGONAL[kind], moments), np.linalg.inv(moments.same)
        for k in range(6):
            before = found[:k].T
            inside = np.eye(DIM)
            if k:
                q = before.T @ b_inverse @ before
                inside = np.eye(DIM) - b_inverse @ before @ np.linalg.inv(q) @ before.T
            values, vectors = eig(inside @ b_inverse @ a)
            leading = np.real(vectors[:, np.real(values).argmax()])
            assert same_direction(found[k], leading) > 1 - 1e-6

    @pytest.mark.parametrize("kind", ORTHOGONAL)
    def test_the_first_is_that_without_constraints(self, kind, moments):
        first, free = (learn_embedding(name, moments, 1)[0] for name in (kind, ORTHOGONAL[kind]))
        assert same_direction(first.astype(np.float64), free) > 1 - 1e-6

    def test_many_dimensions_are_solved_as_few_are(self):
        """Above 200 dimensions an iterative solver is at work."""
        rng = np.random.default_rng(1)
        a, b = (np.cov(rng.normal(size=(230, 600)) * np.linspace(1, 4, 230)[:, None]) for _ in range(2))
        moments = Moments(a, a, a, b, np.zeros(230))
        found = learn_embedding("olde", moments, 5, 0.05).astype(np.float64)
        np.testing.assert_allclose(found @ found.T, np.eye(5), atol=1e-5)
        values, vectors = eigh(b)
        regular = (vectors * regularised(values[::-1], 0.05)[::-1]) @ vectors.T
        for k in range(5):
            # A generalised problem in the subspace orthogonal to earlier directions.
            inside = np.linalg.svd(np.vstack([found[:k], np.zeros((1, 230))]))[2][k:].T
            best = inside @ eigh(inside.T @ a @ inside, inside.T @ regular @ inside)[1][:, -1]
            assert same_direction(found[k], best) > 1 - 1e-5


class TestPca:
    def test_it_is_the_singular_vectors_of_the_centred_rows(self, data, moments):
        rows = data[0].astype(np.float64)
        vectors = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)[2]
        for row, vector in zip(learn_embedding("pca", moments, 8), vectors, strict=False):
            assert same_direction(row.astype(np.float64), vector) > 1 - 1e-5


class TestRegularisation:
    @settings(deadline=None)
    @given(st.lists(st.floats(0, 100), min_size=2, max_size=20), st.floats(0, 0.9))
    def test_it_is_equations_20_and_21(self, values, alpha):
        values = np.sort(np.array(values))[::-1]
        if values[0] < 1e-3:
            return
        found = regularised(values, alpha)
        sums = [values[k:].sum() / values.sum() for k in range(len(values))]
        fitting = [k for k, part in enumerate(sums) if part <= alpha]
        floor = values[fitting[0]] if fitting else 0
        np.testing.assert_allclose(found, np.maximum(values, max(floor, 1e-6 * values[0])), rtol=1e-9)

    def test_directions_without_any_difference_do_no_harm(self, data):
        rows, first, second, match = data
        padded = np.hstack([rows, np.full((ROWS, 3), 7, np.float32)])
        for kind in (*KINDS, *ORTHOGONAL):
            found = learn_embedding(kind, Moments.of(padded, first, second, match), 4, 0.1)
            assert np.isfinite(found).all() and np.abs(found[:, DIM:]).max() < 1e-2 * np.abs(found).max()

    @pytest.mark.parametrize("kind", (*KINDS, *ORTHOGONAL))
    @pytest.mark.parametrize("alpha", [0.0, 1e-4])
    def test_what_rounding_makes_of_directions_without_any_difference_does_not_lead(self, data, kind, alpha):
        """Rows that vary in 14 of 90 dimensions, with a mean far larger than the variation."""
        rows, first, second, match = data
        rng = np.random.default_rng(0)
        frame = np.linalg.qr(rng.normal(size=(90, 90)))[0]
        # 1e-4 to 1 of the largest variance: all of it is signal.
        inside = (rows - rows.mean(axis=0)) @ np.linalg.qr(rng.normal(size=(DIM, DIM)))[0] @ frame[:DIM]
        inside = inside / np.linalg.norm(inside, axis=1).max() + 3 * frame[0] + rng.uniform(1, 2, 90)
        inside = (inside / np.linalg.norm(inside, axis=1).mean()).astype(np.float32)
        found = learn_embedding(kind, Moments.of(inside, first, second, match), 10, alpha).astype(np.float64)
        outside = np.linalg.norm(found @ frame[DIM:].T, axis=1) / np.linalg.norm(found, axis=1)
        assert outside.max() < 1e-3 and np.abs(found).max() < 1e4
        every = learn_embedding(kind, Moments.of(inside, first, second, match), 90, alpha).astype(np.float64)
        np.testing.assert_allclose(every[:10], found, rtol=1e-3, atol=1e-4 * np.abs(found).max())
        np.testing.assert_allclose(every[DIM:] @ every[DIM:].T, np.eye(90 - DIM), atol=1e-5)

    @pytest.mark.parametrize("kind", ("pca", *KINDS, *ORTHOGONAL))
    def test_fewer_dimensions_are_the_first_of_more_and_the_same_each_time(self, kind, moments):
        more = learn_embedding(kind, moments, 9, 0.1)
        np.testing.assert_array_equal(more, learn_embedding(kind, moments, 9, 0.1))
        np.testing.assert_allclose(learn_embedding(kind, moments, 4, 0.1), more[:4], rtol=1e-4, atol=1e-5)
        assert more.shape == (9, DIM) and more.dtype == np.float32
        assert (more[np.arange(9), np.abs(more).argmax(axis=1)] > 0).all()


@pytest.mark.parametrize("kind", ("pca", *KINDS, *ORTHOGONAL))
class TestNothingToLearn:
    def test_matches_of_no_difference(self, data, kind):
        rows, first, _, match = data
        second = np.where(match, first, data[2])
        moments = Moments.of(rows, first, second, match)
        if kind == "pca":
            assert learn_embedding(kind, moments, 3).shape == (3, DIM)
        else:
            with pytest.raises(CairnError, match="each match are the same"):
                learn_embedding(kind, moments, 3)

    def test_rows_that_are_all_the_same(self, data, kind):
        rows = np.full((ROWS, DIM), 0.1, np.float32)
        with pytest.raises(CairnError, match="nothing to embed"):
            learn_embedding(kind, Moments.of(rows, *data[1:]), 3)


@pytest.mark.parametrize("match", [True, False])
def test_pairs_of_one_kind_are_refused(data, match):
    rows, first, second, _ = data
    with pytest.raises(CairnError, match="both matches and non-matches"):
        Moments.of(rows, first, second, np.full(len(first), match))


@pytest.mark.parametrize(
    ("kind", "dim", "alpha"), [("none", 3, 0), ("lda", 3, 0), ("pca", 0, 0), ("lpp", DIM + 1, 0), ("lpp", 3, 1.0)]
)
def test_what_cannot_be_is_refused(kind, dim, alpha, moments):
    with pytest.raises(CairnError):
        learn_embedding(kind, moments, dim, alpha)
