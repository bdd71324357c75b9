"""The similarity of weak learners: its factors, its descent, and its embeddings."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learning.boosting.metric import (
    FORMS,
    KEPT,
    MetricOptions,
    PairResponses,
    covariance_of,
    embed,
    embedding_of,
    factorise,
    learn_metric,
    nearest_positive,
    principal_axes,
    similarity,
)
from learning.measures.roc import fpr95
from retrieval.descriptors.boosted import Boosted
from tests.support.learning.learnt_models import textures, weak_learners


def some_answers(number: int, learners: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).choice(np.array([-1, 1], np.int8), (number, learners))


def some_pairs(number: int, learners: int, seed: int = 0, useful: int | None = None) -> PairResponses:
    """Matches agree in more of the useful responses, the last ones; half of these are copies of the others."""
    rng = np.random.default_rng(seed)
    useful = learners if useful is None else useful
    first = some_answers(number, learners, seed)
    half = useful // 2
    first[:, learners - half :] = first[:, learners - 2 * half : learners - half]
    second = some_answers(number, learners, seed + 1)
    match = rng.permutation(np.arange(number) < number // 2)
    agree = (rng.uniform(size=first.shape) < 0.8) & match[:, None] & (np.arange(learners) >= learners - useful)
    second = np.where(agree, first, second)
    return PairResponses(np.concatenate([first, second]), np.arange(number), number + np.arange(number), match)


def symmetric(learners: int, seed: int) -> np.ndarray:
    matrix = np.random.default_rng(seed).normal(size=(learners, learners))
    return matrix + matrix.T


class TestSimilarity:
    @given(learners=st.integers(1, 12), seed=st.integers(0, 100))
    def test_it_is_the_sum_over_all_pairs_of_weak_learners(self, learners, seed):
        """Equation 4, term by term."""
        first, second = (some_answers(5, learners, seed + side).astype(float) for side in (0, 1))
        matrix = symmetric(learners, seed)
        expected = [
            sum(matrix[i, j] * one[i] * two[j] for i in range(learners) for j in range(learners))
            for one, two in zip(first, second, strict=True)
        ]
        np.testing.assert_allclose(similarity(first, second, matrix), expected, atol=1e-9)

    def test_a_diagonal_one_is_that_of_boosting(self):
        """Equation 2; and the rows of BGM lie so far apart as it says."""
        learners = weak_learners(number=40)
        rows = Boosted("bgm", learners).describe(textures(60, 31))
        answers = learners.answers(textures(60, 31)).astype(float)
        first, second = answers[:30], answers[30:]
        expected = (first * second) @ learners.weights.astype(float)
        np.testing.assert_allclose(similarity(first, second, np.diag(learners.weights.astype(float))), expected)
        np.testing.assert_allclose(similarity(first, second, learners.weights.astype(float)), expected)
        total = learners.weights.sum(dtype=float)
        for matrix in (learners.weights.astype(float), np.diag(learners.weights.astype(float))):
            np.testing.assert_allclose(similarity(first, second, matrix, "distance"), expected - total, rtol=1e-5)
        distances = np.square(rows[:30] - rows[30:]).sum(axis=1)
        np.testing.assert_allclose(distances, 2 - 2 * expected / learners.weights.sum(), atol=1e-5)


class TestFactors:
    @given(learners=st.integers(1, 20), seed=st.integers(0, 100))
    def test_all_of_them_give_the_matrix_and_its_similarity(self, learners, seed):
        """Equations 6 and 7."""
        matrix = symmetric(learners, seed)
        factor, signs = factorise(matrix, learners)
        np.testing.assert_allclose((factor * signs) @ factor.T, matrix, atol=1e-9)
        assert set(signs) <= {1.0, -1.0}
        first, second = (some_answers(7, learners, seed + side).astype(float) for side in (0, 1))
        signed = ((first @ factor) * signs * (second @ factor)).sum(axis=1)
        np.testing.assert_allclose(signed, similarity(first, second, matrix), atol=1e-8)

    @given(learners=st.integers(2, 20), seed=st.integers(0, 100), data=st.data())
    def test_fewer_are_the_best_matrix_of_their_rank(self, learners, seed, data):
        """Eckart and Young: the eigenvalues of least magnitude are lost."""
        dim = data.draw(st.integers(1, learners))
        matrix = symmetric(learners, seed)
        factor, signs = factorise(matrix, dim)
        assert factor.shape == (learners, dim)
        lost = np.sort(np.abs(np.linalg.eigvalsh(matrix)))[: learners - dim]
        assert np.linalg.norm(matrix - (factor * signs) @ factor.T) == pytest.approx(np.linalg.norm(lost), abs=1e-8)

    @pytest.mark.parametrize("diagonal", [False, True])
    @pytest.mark.parametrize("dim", [1, 5, 16])
    def test_an_embedding_has_the_similarity_for_its_inner_product(self, diagonal, dim):
        """Equation 8, for a positive semi-definite A, up to one scale."""
        matrix = nearest_positive(symmetric(16, 3))
        matrix = np.diag(matrix).copy() if diagonal else matrix
        embedding = embedding_of(matrix, dim)
        first, second = (some_answers(200, 16, side) for side in (0, 1))
        inner = (embed(first, embedding) * embed(second, embedding)).sum(axis=1)
        factor, signs = factorise(matrix, dim)
        expected = ((first @ factor) * signs * (second @ factor)).sum(axis=1)
        scale = (inner @ expected) / (expected @ expected)
        np.testing.assert_allclose(inner, scale * expected, atol=1e-5)
        assert np.linalg.norm(embed(first, embedding), axis=1).max() <= 1 + 1e-5
        if diagonal:
            assert (np.count_nonzero(embedding, axis=1) == 1).all()  # the weak learners of largest weight

    def test_what_is_negative_is_left_out(self):
        embedding = embedding_of(np.array([3.0, -5.0, 1.0, 0.0]), 4)
        assert embedding.shape == (2, 4) and not embedding[:, [1, 3]].any()
        values = np.linalg.eigvalsh(nearest_positive(symmetric(12, 0)))
        assert values.min() > -1e-9

    @given(learners=st.integers(2, 16), seed=st.integers(0, 50), data=st.data())
    def test_what_is_kept_of_the_variance_is_the_most_that_can_be(self, learners, seed, data):
        """The rows' principal axes by another computation: those of the rows in all dimensions."""
        dim = data.draw(st.integers(1, learners))
        answers = some_pairs(60, learners, seed).answers
        matrix = symmetric(learners, seed) @ symmetric(learners, seed)
        whole = embed(answers, embedding_of(matrix, learners)).astype(float)
        rows = embed(answers, embedding_of(matrix, dim, covariance_of(answers))).astype(float)
        kept = np.linalg.svd(rows - rows.mean(axis=0), compute_uv=False)
        most = np.linalg.svd(whole - whole.mean(axis=0), compute_uv=False)
        np.testing.assert_allclose(kept / kept[0], most[: len(kept)] / most[0], atol=1e-4)
        if dim == learners:
            apart = np.linalg.norm(rows[:30] - rows[30:60], axis=1)
            expected = np.linalg.norm(whole[:30] - whole[30:60], axis=1)
            np.testing.assert_allclose(apart / apart.max(), expected / expected.max(), atol=1e-4)

    @pytest.mark.parametrize("dim", [0, 5])
    def test_other_dimensions_are_refused(self, dim):
        with pytest.raises(ValueError, match="1 to so many dimensions"):
            factorise(np.eye(4), dim)


class TestDescent:
    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("kept", KEPT)
    @pytest.mark.parametrize("diagonal", [False, True])
    def test_it_lowers_the_error_and_keeps_what_did_best(self, diagonal, kept, form):
        train, validation = some_pairs(3000, 24, useful=12), some_pairs(1500, 24, seed=50, useful=12)
        options = MetricOptions(form, kept, batch=200, epochs=15, step=0.1, diagonal=diagonal)
        metric = learn_metric(train, validation, np.ones(24), 12, options, np.random.default_rng(0))
        assert metric.matrix.shape == ((24,) if diagonal else (24, 24))
        assert metric.errors[metric.chosen] == min(metric.errors) < 0.7 * metric.errors[0]
        assert validation.error(metric.embedding(12)) == metric.errors[metric.chosen]
        assert metric.losses[metric.chosen] < metric.losses[0]
        assert fpr95(-validation.similarities(metric.matrix, form), validation.match) == metric.similarity_error
        assert validation.loss(metric.matrix, metric.offset, form) == pytest.approx(metric.losses[metric.chosen])
        values = metric.matrix if diagonal else np.linalg.eigvalsh(metric.matrix)
        assert values.min() > -1e-9
        if not diagonal:
            np.testing.assert_allclose(metric.matrix, metric.matrix.T, atol=1e-12)
        # It has identified the informative weak learners.
        reported = metric.matrix if diagonal else np.diag(metric.matrix)
        assert reported[12:].min() > reported[:12].max()

    @pytest.mark.parametrize("learners", [16, 128, pytest.param(512, marks=pytest.mark.slow)])
    def test_the_loss_falls_epoch_by_epoch_however_many_learners_there_are(self, learners):
        """Most responses are shared by all patches, as with weak learners of gradients."""
        train = some_pairs(2000, learners)
        rng = np.random.default_rng(3)
        alike = rng.uniform(size=learners) < 0.5
        answers = np.where(alike & (rng.uniform(size=train.answers.shape) < 0.9), 1, train.answers).astype(np.int8)
        train = replace(train, answers=answers)
        weights = rng.uniform(0.01, 0.1, learners)
        for options in (MetricOptions(), MetricOptions("inner", step=5 / learners)):
            learnt = learn_metric(train, train, weights, 8, replace(options, epochs=4), np.random.default_rng(0))
            losses = learnt.losses
            assert (np.diff(losses) < 0).all(), (options.form, losses)

    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("offset", [True, False])
    def test_it_goes_down_the_gradient_of_the_loss(self, offset, form):
        """One step over all pairs, compared with the derivative of log L by finite differences."""
        train = some_pairs(300, 6)
        weights = np.full(6, 0.2)
        validation = some_pairs(100, 6, 9)
        for diagonal in (False, True):
            shared = {"start": 1, "positive": False, "diagonal": diagonal, "offset": offset}
            options = MetricOptions(form, step=1e-4, batch=300, epochs=1, **shared)
            before = weights if diagonal else np.diag(weights)
            still = learn_metric(train, validation, weights, 6, replace(options, epochs=0), np.random.default_rng(0))
            metric = learn_metric(train, validation, weights, 6, options, np.random.default_rng(0))
            assert metric.chosen == 1 and (still.matrix == before).all() and (still.offset != 0) == offset
            moved = (metric.matrix - before) / (1e-4 * 0.2)
            expected = np.zeros_like(before)
            for place in np.ndindex(before.shape):
                up, down = before.copy(), before.copy()
                up[place] += 1e-5
                down[place] -= 1e-5
                rise = np.log(train.loss(up, still.offset, form)) - np.log(train.loss(down, still.offset, form))
                expected[place] = -rise / 2e-5
            if not diagonal:
                expected = (expected + expected.T) / 2
            np.testing.assert_allclose(moved, expected, atol=4e-3)

    def test_the_same_seed_gives_the_same(self):
        train, validation = some_pairs(400, 10), some_pairs(200, 10, 7)
        options = MetricOptions(batch=50, epochs=4)

        def run(seed):
            return learn_metric(train, validation, np.ones(10), 4, options, np.random.default_rng(seed)).errors

        one, again = run(0), run(0)
        assert one == again

    def test_it_ends_where_nothing_gets_better(self):
        pairs = some_pairs(200, 4, useful=0)
        options = MetricOptions(step=1e-9, epochs=50, patience=3)
        metric = learn_metric(pairs, pairs, np.ones(4), 4, options, np.random.default_rng(0))
        # Uninformative learners have 95% false positives at 95% recall, before, and after each epoch of patience.
        assert metric.chosen == 0 and metric.errors == [0.95] * (1 + 3)


@settings(max_examples=10)
@given(seed=st.integers(0, 50))
def test_principal_axes_are_orthogonal_and_of_the_largest_variance(seed):
    answers = some_pairs(300, 12, seed).answers
    axes = principal_axes(answers, 5)
    np.testing.assert_allclose(12 * axes @ axes.T, np.eye(5), atol=1e-4)
    variances = embed(answers, axes).var(axis=0) * 12
    expected = np.linalg.svd(answers - answers.mean(axis=0), compute_uv=False)[:5] ** 2 / len(answers)
    np.testing.assert_allclose(variances, expected, rtol=1e-3)


def test_a_similarity_beyond_all_bounds_has_a_finite_loss_and_offset():
    pairs = some_pairs(60, 8)
    options = MetricOptions(start=1, step=50, batch=10, epochs=3)
    with np.errstate(all="raise", under="ignore"):
        metric = learn_metric(pairs, pairs, np.full(8, 1e3), 4, options, np.random.default_rng(0))
    assert np.isfinite([metric.offset, *metric.errors, *metric.losses]).all()
