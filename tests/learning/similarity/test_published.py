"""The similarity as published: its choices, and one step computed from the paper's equations alone."""

from pathlib import Path

import numpy as np
import pytest

from index.errors import CairnError
from index.options.declaration import options_of
from index.similarity import SimilarityMatrix
from learning.labels.labels import Labels, ObjectLabels, hold_out
from learning.library.similarity_options import similarity_options
from learning.similarity.learning import learn_similarity
from learning.similarity.options import ObjectiveOptions, SimilarityOptions, TripletOptions
from learning.similarity.pair_gradients import WordPairs
from learning.similarity.triplets import collect_triplets
from learning.similarity.vectors import unit_vectors
from tests.support.learning.similarity_cases import dense_matrix, index_of

WORDS = 12
PAIRS = WordPairs(WORDS, np.arange(0, 11, dtype=np.int32), np.arange(1, 12, dtype=np.int32))


def photos(seed: int) -> tuple[list[list[int]], Labels]:
    """Two objects of four photos and six background photos, with words drawn so that tf-idf often fails."""
    rng = np.random.default_rng(seed)
    images = [rng.integers(0, WORDS, 8).tolist() for _ in range(14)]
    for image in range(8):
        images[image][:2] = [image // 4 * 2 + int(rng.integers(2)) for _ in range(2)]
    return images, Labels((ObjectLabels("a", frozenset(range(4))), ObjectLabels("b", frozenset(range(4, 8)))))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_first_step_is_that_of_the_papers_equations(tmp_path: Path, seed: int) -> None:
    """L-BFGS-B begins with P(M - g) - M, of a length that it chooses; g is of equation 4, at the diagonal idf²."""
    images, labels = photos(seed)
    index = index_of(tmp_path / "s", images, WORDS)
    relevance = labels.relevance(index.image_numbers, np.random.default_rng(0))
    gamma = 0.05
    options = similarity_options(
        {"iterations": 1, "hold_out": 0, "margin": gamma, "random": 0, "as_published": True}, neighbours=2, seed=seed
    )
    learnt = learn_similarity(index, "v", PAIRS, relevance, options)

    counts = np.array([np.bincount(image, minlength=WORDS) for image in images], float)
    term = counts / counts.sum(1, keepdims=True)  # I_i, of length 1 in L1
    idf = np.log(len(images) / np.maximum((counts > 0).sum(0), 1))
    matrix = np.diag(idf**2)

    def similarity(i: int, j: int) -> tuple[float, np.ndarray]:
        """Ŝ_ij of equation 3, and its slope by M, every entry for itself."""
        cross, one, other = (term[a] @ matrix @ term[b] for a, b in ((i, j), (i, i), (j, j)))
        slope = 2 * cross / (one * other) * np.outer(term[i], term[j])
        for own, photo in ((one, i), (other, j)):
            slope = slope - cross**2 / (one * other) / own * np.outer(term[photo], term[photo])
        return cross**2 / (one * other), slope

    # Hard triplets of section IV.B: l is ranked above j. All objects have as many photos, so all weights are 1.
    value, gradient, triplets = 0.0, np.zeros((WORDS, WORDS)), 0
    for i in range(8):
        own = set(range(4)) if i < 4 else set(range(4, 8))
        for j in own - {i}:
            for l in set(range(14)) - own:  # noqa: E741
                (near, near_slope), (far, far_slope) = similarity(i, j), similarity(i, l)
                if far > near or (far == near and l < j):
                    triplets += 1
                    value += far - near + gamma
                    gradient += far_slope - near_slope
    assert learnt.triplets == learnt.hard == triplets > 20
    gradient = (gradient + gradient.T) / value  # of a symmetric matrix: an off-diagonal entry occurs twice
    gradient[np.diag_indices(WORDS)] /= 2
    mask = dense_matrix(np.ones(PAIRS.parameters), PAIRS) > 0  # equation 5
    wanted = np.where(mask, np.maximum(matrix - gradient, 0) - matrix, 0)
    found = idf[:, None] * dense_matrix(values_of(learnt.matrix), PAIRS) * idf - matrix
    length = (found * wanted).sum() / (wanted**2).sum()
    assert length > 0
    np.testing.assert_allclose(found, length * wanted, rtol=2e-3, atol=2e-3 * np.abs(found).max())


def values_of(matrix: SimilarityMatrix) -> np.ndarray:
    return np.concatenate([matrix.diagonal, matrix.values]).astype(float)


def test_published_choices_are_those_of_the_paper_and_any_of_them_can_be_another() -> None:
    published = SimilarityOptions.as_published()
    assert published.objective == ObjectiveOptions(0.01, power=2, smooth=0, ridge_diagonal=0, ridge_pairs=0)
    assert (published.triplets.hard, published.triplets.lower) == (None, None)
    assert not published.refit and not published.thirds and not published.relative and published.neighbours == 2
    assert similarity_options({"as_published": True}, neighbours=2, seed=0) == published
    none = dict.fromkeys(options_of(SimilarityOptions))
    assert similarity_options({**none, "as_published": True}, neighbours=2, seed=0) == published
    assert similarity_options(none, neighbours=2, seed=0) == SimilarityOptions()
    given = {
        "iterations": 7,
        "margin": 0.2,
        "margin_on": "cosine",
        "smooth": 0.3,
        "ridge_words": 0.4,
        "ridge_pairs": 0.5,
        "relative": True,
        "full_every": 3,
        "patience": 4,
        "memory": 5,
        "triplets": "all",
        "hard": "60",
        "lower": "all",
        "random": 8,
        "hold_out": 9,
        "thirds": True,
        "refit": True,
    }
    assert given.keys() == none.keys()
    wanted = SimilarityOptions(
        neighbours=3,
        iterations=7,
        full_every=3,
        patience=4,
        memory=5,
        relative=True,
        hold_out=9,
        thirds=True,
        refit=True,
        seed=6,
        triplets=TripletOptions(lower=None, hard=60, random=8, total=None),
        objective=ObjectiveOptions(0.2, 1, 0.3, 0.4, 0.5),
    )
    for as_published in (True, False):
        assert similarity_options({**given, "as_published": as_published}, neighbours=3, seed=6) == wanted


@pytest.mark.parametrize(
    "wrong", [{"margin": 0.0}, {"margin_on": "angle"}, {"hard": "0"}, {"lower": "most"}, {"triplets": "-1"}]
)
def test_choices_that_make_no_sense_are_refused(wrong: dict) -> None:
    with pytest.raises(CairnError):
        similarity_options({**wrong, "as_published": True}, neighbours=2, seed=0)


def test_small_objects_hold_out_nothing_and_others_four_as_published() -> None:
    objects = tuple(
        ObjectLabels(str(many), frozenset(range(100 * many, 100 * many + many))) for many in (3, 4, 5, 6, 20)
    )
    numbers = np.concatenate([sorted(one.positives) for one in objects] + [np.arange(5000, 5100)])
    relevance = Labels(objects).relevance(numbers, np.random.default_rng(0))
    training, held = hold_out(relevance, np.random.default_rng(0), each=4, thirds=False)
    # Of five photos two are left, so that one is to be found.
    assert np.bincount(held.objects, minlength=5).tolist() == [0, 0, 3, 4, 4]
    assert np.bincount(training.objects, minlength=5).tolist() == [3, 4, 2, 2, 16]


def test_photos_that_are_left_out_neither_ask_nor_are_searched() -> None:
    labels = Labels((ObjectLabels("a", frozenset(range(5))), ObjectLabels("b", frozenset(range(5, 8)))))
    relevance = labels.relevance(np.arange(20), np.random.default_rng(0))
    left = relevance.without(np.array([1, 6, 19]))
    assert left.queries.tolist() == [0, 2, 3, 4, 5, 7] and 6 not in left.database and len(left.database) == 17
    assert [found.tolist() for found in left.positives[:2]] == [[2, 3, 4], [0, 3, 4]]


def test_all_triplets_are_taken_where_nothing_bounds_them(tmp_path: Path) -> None:
    images, labels = photos(5)
    index = index_of(tmp_path / "s", images, WORDS)
    relevance = labels.relevance(index.image_numbers, np.random.default_rng(0))
    vectors = unit_vectors(index, relevance.database)
    every = collect_triplets(vectors, relevance, TripletOptions(None, None, None, 0))
    few = collect_triplets(vectors, relevance, TripletOptions(None, None, 1, 0))
    assert 0 < len(few) < len(every) == len(set(zip(every.query, every.positive, every.negative, strict=True)))
    assert len(collect_triplets(vectors, relevance, TripletOptions(16, None, None, 0))) == 8
