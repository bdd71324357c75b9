"""Learning a similarity: triplets, gradients and objective compared with their definitions, and results."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

import learning.similarity.pair_gradients
from index.errors import CairnError
from index.inverted import InvertedIndex, rank
from index.similarity import SimilarityMatrix
from learning.labels.labels import Labels, ObjectLabels
from learning.measures.precision import average_precision
from learning.similarity.learning import LearntSimilarity, learn_similarity
from learning.similarity.options import ObjectiveOptions, SimilarityOptions, TripletOptions
from learning.similarity.pair_gradients import WordPairs, pair_gradients, self_gradients
from learning.similarity.problem import TripletProblem
from learning.similarity.triplets import Triplets, collect_triplets
from learning.similarity.vectors import unit_vectors
from tests.support.learning.similarity_cases import dense_matrix, index_of, synonyms

seeds = st.integers(0, 2**32 - 1)


def some_vectors(rng: np.random.Generator, images: int, words: int) -> csr_matrix:
    """Rows, some of them empty."""
    dense = rng.random((images, words)) * (rng.random((images, words)) < 0.4)
    return csr_matrix(dense.astype(np.float32))


def some_pairs(rng: np.random.Generator, words: int) -> WordPairs:
    first, second = np.triu_indices(words, 1)
    kept = rng.random(len(first)) < 0.3
    return WordPairs(words, first[kept].astype(np.int32), second[kept].astype(np.int32))


def some_triplets(rng: np.random.Generator, images: int, count: int) -> Triplets:
    query, positive, negative = rng.integers(0, images, (3, count)).astype(np.int32)
    return Triplets(query, positive, negative, rng.random(count).astype(np.float32) + 0.1, 0)


class TestPairGradients:
    @given(seed=seeds, gathered=st.integers(1, 50), block=st.integers(1, 30))
    def test_products_are_the_similarities_and_their_slopes(self, seed: int, gathered: int, block: int) -> None:
        rng = np.random.default_rng(seed)
        images, words = int(rng.integers(1, 7)), int(rng.integers(1, 9))
        vectors, pairs = some_vectors(rng, images, words), some_pairs(rng, words)
        left, right = np.divmod(np.flatnonzero(rng.random(images * images) < 0.7), images)
        values = rng.random(pairs.parameters)
        slopes = rng.normal(size=len(left))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(learning.similarity.pair_gradients, "_GATHERED", gathered)
            patch.setattr(learning.similarity.pair_gradients, "_BLOCK", block)
            found = pair_gradients(vectors, pairs, left, right)
        dense = vectors.toarray().astype(np.float64)
        wanted = dense @ dense_matrix(values, pairs) @ dense.T
        np.testing.assert_allclose(found.similarities(values), wanted[left, right], rtol=1e-5, atol=1e-6)
        outer = sum(
            (slope * np.outer(dense[i], dense[j]) for i, j, slope in zip(left, right, slopes, strict=True)),
            np.zeros((words, words)),
        )
        entries = [*np.diag(outer), *(outer + outer.T)[pairs.first, pairs.second]]
        np.testing.assert_allclose(found.combine(slopes), entries, rtol=1e-4, atol=1e-5)
        own = self_gradients(vectors, pairs)
        np.testing.assert_allclose(own.similarities(values), np.diag(wanted), rtol=1e-5, atol=1e-6)
        kept = rng.random(len(left)) < 0.5
        some = found.subset(kept)
        np.testing.assert_array_equal(some.similarities(values), found.similarities(values)[kept])

    def test_threads_change_nothing(self) -> None:
        rng = np.random.default_rng(1)
        vectors, pairs = some_vectors(rng, 30, 40), some_pairs(rng, 40)
        left, right = np.divmod(np.arange(900), 30)
        values, slopes = rng.random(pairs.parameters), rng.normal(size=900)
        one, three = (pair_gradients(vectors, pairs, left, right, workers) for workers in (1, 3))
        np.testing.assert_array_equal(one.similarities(values), three.similarities(values))
        np.testing.assert_array_equal(one.combine(slopes), three.combine(slopes))


class TestProblem:
    @given(seed=seeds, power=st.sampled_from([1, 2]), smooth=st.sampled_from([0.0, 0.5]))
    def test_objective_is_that_of_equation_4(self, seed: int, power: int, smooth: float) -> None:
        rng = np.random.default_rng(seed)
        vectors, pairs = some_vectors(rng, 6, 8), some_pairs(rng, 8)
        triplets = some_triplets(rng, 6, 25)
        options = ObjectiveOptions(0.2, power, smooth, ridge_diagonal=0.3, ridge_pairs=0.7)
        problem = TripletProblem(vectors, pairs, triplets, options)
        dense = vectors.toarray().astype(np.float64)

        def loss(values: np.ndarray) -> float:
            total = 0.0
            cross = dense @ dense_matrix(values, pairs) @ dense.T
            for i, j, l, weight in zip(  # noqa: E741
                triplets.query, triplets.positive, triplets.negative, triplets.weights, strict=True
            ):
                near, far = (
                    (cross[i, k] ** 2 / (cross[i, i] * cross[k, k])) ** (power / 2) if cross[i, i] * cross[k, k] else 0
                    for k in (j, l)
                )
                z = max(far - near + 0.2, 0)
                corner = smooth * 0.2
                total += weight * (z if not corner else z * z / (2 * corner) if z < corner else z - corner / 2)
            return total

        values = rng.random(pairs.parameters)
        apart = values - problem.start
        ridge = 0.15 * np.square(apart[:8]).sum() + 0.35 * np.square(apart[8:]).sum()
        assert problem.evaluate(problem.start)[0] == pytest.approx(1, rel=1e-5)
        wanted = loss(values) / loss(problem.start) + ridge
        assert problem.evaluate(values)[0] == pytest.approx(wanted, rel=1e-4)
        # Inactive triplets add nothing at the point of the refresh.
        assert problem.refresh(values) == pytest.approx(wanted, rel=1e-4)
        assert problem.evaluate(values)[0] == pytest.approx(wanted, rel=1e-4)

    @given(seed=seeds, power=st.sampled_from([1, 2]))
    def test_gradient_is_that_of_finite_differences(self, seed: int, power: int) -> None:
        rng = np.random.default_rng(seed)
        vectors, pairs = some_vectors(rng, 6, 8), some_pairs(rng, 8)
        problem = TripletProblem(
            vectors, pairs, some_triplets(rng, 6, 25), ObjectiveOptions(0.3, power, smooth=1.0, ridge_diagonal=0.01)
        )
        values = 0.5 + rng.random(pairs.parameters)
        gradient = problem.evaluate(values)[1]
        for entry in range(pairs.parameters):
            step = np.zeros(pairs.parameters)
            step[entry] = 2e-3
            slope = (problem.evaluate(values + step)[0] - problem.evaluate(values - step)[0]) / 4e-3
            assert gradient[entry] == pytest.approx(slope, rel=0.02, abs=2e-3)

    def test_images_without_words_are_like_nothing(self) -> None:
        vectors = csr_matrix(np.array([[1, 0], [0, 0], [0.6, 0.8]], np.float32))
        triplets = Triplets(
            *(np.array([n, m], np.int32) for n, m in ((0, 1), (2, 0), (1, 2))), np.ones(2, np.float32), 0
        )
        pairs = WordPairs(2, np.array([0], np.int32), np.array([1], np.int32))
        value, gradient = TripletProblem(vectors, pairs, triplets, ObjectiveOptions()).evaluate(np.array([1.0, 2, 0.5]))
        assert np.isfinite(value) and np.isfinite(gradient).all()


class TestTriplets:
    @given(seed=seeds)
    def test_hard_ones_are_what_tf_idf_gets_wrong(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        vectors = some_vectors(rng, 9, 12)
        database = np.sort(rng.choice(50, 9, replace=False)).astype(np.int64)
        labels = Labels(
            (
                ObjectLabels("a", frozenset(database[:3].tolist()), frozenset({int(database[8])})),
                ObjectLabels("b", frozenset(database[3:5].tolist())),
            )
        )
        relevance = labels.relevance(database, rng)
        found = collect_triplets(vectors, relevance, TripletOptions(lower=100, hard=10_000, random=30))
        dense = vectors.toarray()
        scores = dense @ dense.T
        wanted = set()
        for i, group in [(0, {0, 1, 2}), (1, {0, 1, 2}), (2, {0, 1, 2}), (3, {3, 4}), (4, {3, 4})]:
            ignored = {8} if i < 3 else set()
            for j in group - {i}:
                for l in set(range(9)) - group - ignored:  # noqa: E741
                    if (-scores[i, l], l) < (-scores[i, j], j):
                        wanted.add((i, j, l))
        rows = list(zip(found.query.tolist(), found.positive.tolist(), found.negative.tolist(), strict=True))
        assert set(rows[: found.hard]) == wanted and found.hard == len(wanted)
        assert len(rows) - found.hard == 5 * 30
        for i, j, l in rows[found.hard :]:  # noqa: E741
            group = {0, 1, 2} if i < 3 else {3, 4}
            assert i in group and j in group - {i} and l not in group and not (i < 3 and l == 8)
        # Of three queries of the first object and two of the second.
        assert {weight for i, weight in zip(found.query.tolist(), found.weights.tolist(), strict=True) if i < 3} == {
            1.0
        }
        assert {weight for i, weight in zip(found.query.tolist(), found.weights.tolist(), strict=True) if i >= 3} == {
            1.5
        }

    def test_long_lists_are_thinned(self) -> None:
        rng = np.random.default_rng(0)
        labels = Labels((ObjectLabels("a", frozenset(range(20))),))
        relevance = labels.relevance(np.arange(60), rng)
        vectors = some_vectors(rng, 60, 30)
        found = collect_triplets(vectors, relevance, TripletOptions(lower=3, hard=40, random=0))
        assert found.hard == len(found) and np.bincount(found.query).max() <= 40
        again = collect_triplets(vectors, relevance, TripletOptions(lower=3, hard=40, random=0))
        np.testing.assert_array_equal(found.positive, again.positive)


def learn(folder: Path, **options: Any) -> LearntSimilarity:
    index, pairs, labels = synonyms(folder)
    relevance = labels.relevance(index.image_numbers, np.random.default_rng(0))
    return learn_similarity(index, "v", pairs, relevance, SimilarityOptions(**options))


class TestLearning:
    def test_words_that_mean_the_same_are_found(self, tmp_path: Path) -> None:
        learnt = learn(tmp_path / "s", iterations=40)
        first, chosen = learnt.history[0], learnt.history[learnt.chosen]
        assert first.held_out is not None and chosen.held_out is not None
        assert first.held_out < 0.5 and chosen.held_out > 0.75
        # Words of objects get larger weights than noise, and synonyms larger ones than other pairs.
        diagonal, values = learnt.matrix.diagonal, learnt.matrix.values
        assert diagonal[:96].mean() > 2 * diagonal[96:].mean()
        assert values[::2].mean() > 3 * values[1::2].mean()
        assert learnt.matrix.provenance["held_out"]["photos"] == len(learnt.held_out.queries) == 16

    def test_the_figure_on_held_out_photos_is_that_of_the_index(self, tmp_path: Path) -> None:
        learnt = learn(tmp_path / "s", iterations=15, refit=False)
        held_out = learnt.held_out
        plain, *_ = synonyms(tmp_path / "t")
        for matrix, entry in ((None, learnt.history[0]), (learnt.matrix, learnt.history[learnt.chosen])):
            index = InvertedIndex(plain.segments, plain.words, similarity=matrix)
            found = []
            for number, positives in zip(held_out.queries.tolist(), held_out.positives, strict=True):
                ranking = rank(index.score(index.images.features(number).words)).image_numbers.tolist()
                searched = [other for other in ranking if other in held_out.database]
                found.append(average_precision(searched, positives.tolist()))
            assert np.mean(found) == pytest.approx(entry.held_out, abs=1e-3)

    def test_held_out_photos_are_learnt_from_in_the_end(self, tmp_path: Path) -> None:
        once, again = (learn(tmp_path / str(refit), iterations=10, refit=refit) for refit in (False, True))
        assert once.history == again.history and once.chosen == again.chosen > 0
        assert not np.array_equal(once.matrix.diagonal, again.matrix.diagonal)
        index, pairs, labels = synonyms(tmp_path / "s")
        relevance = labels.relevance(index.image_numbers, np.random.default_rng(0))
        options = SimilarityOptions(iterations=again.chosen, hold_out=0)
        whole = learn_similarity(index, "v", pairs, relevance, options)
        np.testing.assert_array_equal(whole.matrix.diagonal, again.matrix.diagonal)

    def test_each_iteration_between_two_looks_descends(self, tmp_path: Path) -> None:
        learnt = learn(tmp_path / "s", iterations=20, full_every=5, patience=100)
        objectives = [entry.objective for entry in learnt.history]
        assert objectives[0] == pytest.approx(1)
        for start in range(0, len(objectives) - 5, 5):
            part = objectives[start + 1 : start + 6]
            assert part == sorted(part, reverse=True)
        assert learnt.history[-1].active < learnt.triplets

    def test_without_neighbours_only_weights_are_learnt(self, tmp_path: Path) -> None:
        index, _, labels = synonyms(tmp_path / "s")
        none = np.zeros(0, np.int32)
        relevance = labels.relevance(index.image_numbers, np.random.default_rng(0))
        learnt = learn_similarity(
            index, "v", WordPairs(112, none, none), relevance, SimilarityOptions(iterations=5, hold_out=0)
        )
        assert len(learnt.matrix.values) == 0 and learnt.chosen == len(learnt.history) - 1
        assert isinstance(learnt.matrix, SimilarityMatrix) and learnt.matrix.diagonal.std() > 0

    def test_nothing_to_learn_from_is_said(self, tmp_path: Path) -> None:
        index, pairs, _ = synonyms(tmp_path / "s")
        alone = Labels((ObjectLabels("a", frozenset({1})),)).relevance(index.image_numbers, np.random.default_rng(0))
        with pytest.raises(CairnError, match="two photos of one object"):
            learn_similarity(index, "v", pairs, alone)
        everything = Labels((ObjectLabels("a", frozenset(index.image_numbers.tolist())),))
        with pytest.raises(CairnError, match="something else"):
            learn_similarity(index, "v", pairs, everything.relevance(index.image_numbers, np.random.default_rng(0)))

    def test_vectors_are_those_of_tf_idf(self, tmp_path: Path) -> None:
        index = index_of(tmp_path / "s", [[0, 1, 1, 2], [0, 1], [0, 0, 3], []], 5)
        rows = unit_vectors(index, np.array([2, 0, 3])).toarray()
        for place, number in enumerate([2, 0]):
            scores = index.score(index.images.features(number).words)
            wanted = [rows[place] @ rows[other] for other in (1, 0)]
            assert scores.scores[[0, 2]] == pytest.approx(wanted, abs=1e-6)
        assert not rows[2].any()


def test_many_queries_share_what_triplets_there_may_be() -> None:
    rng = np.random.default_rng(0)
    labels = Labels((ObjectLabels("a", frozenset(range(20))),))
    relevance = labels.relevance(np.arange(60), rng)
    found = collect_triplets(some_vectors(rng, 60, 30), relevance, TripletOptions(total=200))
    assert len(found) <= 200 and np.bincount(found.query, minlength=20)[:20].min() >= 5


def test_nothing_better_than_tf_idf_is_tf_idf(tmp_path: Path) -> None:
    """If tf-idf already finds all held-out photos, no iteration counts as better."""
    images = [[2 * thing, 2 * thing, 2 * thing + 1] for thing in range(4) for _ in range(9)]
    index = index_of(tmp_path / "s", [*images, [8, 9], [9, 10]], 11)
    objects = tuple(ObjectLabels(str(thing), frozenset(range(9 * thing, 9 * thing + 9))) for thing in range(4))
    relevance = Labels(objects).relevance(index.image_numbers, np.random.default_rng(0))
    none = np.zeros(0, np.int32)
    learnt = learn_similarity(index, "v", WordPairs(11, none, none), relevance, SimilarityOptions(iterations=5))
    assert learnt.history[0].held_out == 1 and learnt.chosen == 0
    assert (learnt.matrix.diagonal == 1).all()
