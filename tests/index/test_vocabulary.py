import json

import faiss
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from index.clustering.sources import ArraySource
from index.errors import CairnError
from index.flann_search import FlannOptions
from index.scanning.ivf_search import IvfOptions
from index.vocabulary import Vocabulary, VocabularyFacts, VocabularyOptions, default_words

OPTIONS = VocabularyOptions(words=300, iterations=4, seed=1, search=IvfOptions(exact_below=0))


def descriptors(count, seed=0):
    """Non-negative vectors of length 1, like rootSIFT's, in 200 clusters."""
    rng = np.random.default_rng(seed)
    means = np.random.default_rng(99).exponential(size=(200, 32))
    points = means[rng.integers(200, size=count)] * rng.exponential(size=(count, 32), scale=0.3) ** 0.5
    return np.sqrt(points / points.sum(axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def vocabulary():
    return Vocabulary.train(ArraySource(descriptors(6000)), OPTIONS, descriptor="f1", trained_on="a test")


@pytest.fixture
def folder(vocabulary, tmp_path):
    vocabulary.save(tmp_path / "vocabulary")
    return tmp_path / "vocabulary"


def squared(points, centres):
    return ((points[:, None].astype(np.float64) - centres[None]) ** 2).sum(axis=2)


def test_descriptors_get_their_nearest_word(vocabulary):
    queries = descriptors(500, seed=1)
    exact = squared(queries, vocabulary.centres)
    words = vocabulary.assign(queries)
    assert (words.dtype, words.shape) == (np.int32, (500,))
    assert np.mean(words == exact.argmin(axis=1)) > 0.98
    assert (vocabulary.words, vocabulary.dim, vocabulary.backend) == (300, 32, "ivf")
    assert vocabulary.assign(queries[:0]).shape == (0,)
    with pytest.raises(ValueError, match="32"):
        vocabulary.assign(queries[:, 1:])


@pytest.mark.slow
def test_recall_and_error_are_those_of_the_training_descriptors(vocabulary):
    points = descriptors(6000)
    exact = squared(points, vocabulary.centres)
    words = vocabulary.assign(points)
    # Both are measured on 5,000 of these 6,000.
    assert vocabulary.recall_at_1 == pytest.approx(np.mean(words == exact.argmin(axis=1)), abs=0.01)
    assert vocabulary.quantisation_error == pytest.approx(exact[np.arange(6000), words].mean(), rel=0.02)
    assert vocabulary.sigma**2 == pytest.approx(vocabulary.quantisation_error / 6)


def test_a_poor_search_is_owned_up_to():
    options = VocabularyOptions(words=300, iterations=2, backend="flann", search=FlannOptions(trees=1, checks=1))
    points = descriptors(3000)
    vocabulary = Vocabulary.train(ArraySource(points), options)
    exact = squared(points, vocabulary.centres).argmin(axis=1)
    assert vocabulary.recall_at_1 == pytest.approx(np.mean(vocabulary.assign(points) == exact), abs=0.005)
    assert vocabulary.recall_at_1 < 0.9


@pytest.mark.parametrize("sigma", [None, 0.05, 0.5])
def test_soft_weights_are_gaussian_and_add_up_to_one(vocabulary, sigma):
    queries = descriptors(300, seed=1)
    words, weights = vocabulary.assign_soft(queries, 3, sigma)
    assert (words.dtype, weights.dtype, words.shape, weights.shape) == (np.int32, np.float32, (300, 3), (300, 3))
    exact = squared(queries, vocabulary.centres)
    chosen = np.take_along_axis(exact, words, axis=1)
    expected = np.exp(-chosen / (2 * (vocabulary.sigma if sigma is None else sigma) ** 2))
    np.testing.assert_allclose(weights, expected / expected.sum(axis=1, keepdims=True), atol=1e-4)
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-6)
    assert np.mean(words == np.argsort(exact, axis=1)[:, :3]) > 0.95
    np.testing.assert_array_equal(words[:, 0], vocabulary.assign(queries))


def test_soft_assignment_at_its_limits(vocabulary):
    queries = descriptors(5, seed=1)
    weights = vocabulary.assign_soft(queries, 1)[1]
    np.testing.assert_array_equal(weights, np.ones((5, 1)))
    # So small a sigma that every exp(-d²/2σ²) underflows: all weight on the nearest, and no NaN.
    np.testing.assert_array_equal(vocabulary.assign_soft(queries, 3, 1e-12)[1], [[1, 0, 0]] * 5)
    assert vocabulary.assign_soft(queries, 1000)[0].shape == (5, 300)
    assert vocabulary.assign_soft(queries[:0])[1].shape == (0, 3)
    for sigma in (0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="sigma"):
            vocabulary.assign_soft(queries, 3, sigma)


def test_two_photos_are_enough():
    points = descriptors(40)
    vocabulary = Vocabulary.train(ArraySource(points), VocabularyOptions(words=20_000))
    assert (vocabulary.words, vocabulary.recall_at_1, vocabulary.quantisation_error) == (40, 1.0, 0.0)
    assert vocabulary.training["words"] == 20_000
    np.testing.assert_array_equal(vocabulary.centres[vocabulary.assign(points)], points)
    np.testing.assert_array_equal(vocabulary.assign_soft(points)[1], [[1, 0, 0]] * 40)
    with pytest.raises(CairnError, match="no descriptors"):
        Vocabulary.train(ArraySource(points[:0]), VocabularyOptions())


def test_the_default_size_follows_the_collection():
    sizes = [default_words(count) for count in (0, 29, 30, 3000, 600_000, 10**9)]
    assert sizes == [1, 1, 1, 100, 20_000, 500_000]
    points = descriptors(3000)
    assert Vocabulary.train(ArraySource(points), VocabularyOptions(iterations=1)).words == 100


def test_the_seed_decides_and_not_the_threads(vocabulary):
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(before + 1)
    again = Vocabulary.train(ArraySource(descriptors(6000)), OPTIONS, descriptor="f1", trained_on="elsewhere")
    assert faiss.omp_get_max_threads() == before + 1
    faiss.omp_set_num_threads(before)
    assert again.fingerprint == vocabulary.fingerprint
    assert (again.recall_at_1, again.training) == (vocabulary.recall_at_1, vocabulary.training)
    other = Vocabulary.train(ArraySource(descriptors(6000)), OPTIONS, descriptor="f2")
    assert other.fingerprint != vocabulary.fingerprint


def test_saved_and_loaded_it_is_the_same(vocabulary, folder):
    loaded = Vocabulary.load(folder)
    queries = descriptors(500, seed=1)
    np.testing.assert_array_equal(loaded.assign(queries), vocabulary.assign(queries))
    for before, after in zip(vocabulary.assign_soft(queries), loaded.assign_soft(queries), strict=True):
        np.testing.assert_array_equal(before, after)
    assert loaded.describe() == vocabulary.describe()
    assert VocabularyFacts.read(folder) == loaded.facts == vocabulary.facts
    assert (loaded.facts.words, loaded.facts.dim) == (300, 32)
    meta = json.loads((folder / "meta.json").read_text())
    assert (meta["descriptor"], meta["trained_on"], meta["search"]["backend"]) == ("f1", "a test", "ivf")
    assert meta["search"]["options"]["probes"] == 44
    assert [file.name for file in folder.parent.iterdir()] == ["vocabulary"]


def test_what_is_saved_is_not_overwritten_nor_left_half_done(vocabulary, folder, monkeypatch):
    with pytest.raises(CairnError, match="already exists"):
        vocabulary.save(folder)

    def full_disk(path, obj):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("index.vocabulary.save_json", full_disk)
    with pytest.raises(OSError, match="No space"):
        vocabulary.save(folder.parent / "other")
    assert [file.name for file in folder.parent.iterdir()] == ["vocabulary"]


def flip_last_byte(file):
    contents = bytearray(file.read_bytes())
    contents[-1] ^= 1
    file.write_bytes(contents)


def edit_meta(**changes):
    def edit(file):
        file.write_text(json.dumps(json.loads(file.read_text()) | changes))

    return edit


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("centres.npy", flip_last_byte),
        ("centres.npy", lambda file: file.write_bytes(file.read_bytes()[:-100])),
        ("centres.npy", lambda file: np.save(file, np.zeros(3))),
        ("centres.npy", lambda file: np.save(file, np.array([{}], dtype=object), allow_pickle=True)),
        ("centres.npy", lambda file: file.unlink()),
        ("search.npz", flip_last_byte),
        ("search.npz", lambda file: file.unlink()),
        ("search.json", lambda file: file.write_text("[]")),
        ("search.json", lambda file: file.unlink()),
        ("meta.json", lambda file: file.write_text("{}")),
        ("meta.json", lambda file: file.write_text("[]")),
        ("meta.json", lambda file: file.write_text(file.read_text()[:40])),
        ("meta.json", edit_meta(descriptor="f2")),
        ("meta.json", edit_meta(search={"backend": "annoy"})),
        ("meta.json", edit_meta(format=2)),
        ("meta.json", edit_meta(words=301)),
        ("meta.json", edit_meta(words="300")),
        ("meta.json", edit_meta(quantisation_error=float("nan"))),
        ("meta.json", lambda file: file.unlink()),
    ],
)
def test_a_damaged_vocabulary_is_refused_with_a_sentence(folder, name, damage):
    damage(folder / name)
    with pytest.raises(CairnError) as caught:
        Vocabulary.load(folder)
    assert str(caught.value).endswith(".")


def test_files_that_are_known_are_not_looked_through(vocabulary, folder):
    loaded = Vocabulary.load(folder, known=True)
    assert loaded.describe() == vocabulary.describe()
    queries = descriptors(500, seed=1)
    np.testing.assert_array_equal(loaded.assign(queries), vocabulary.assign(queries))
    assert not loaded.centres.flags.writeable
    flip_last_byte(folder / "centres.npy")
    assert Vocabulary.load(folder, known=True).fingerprint == vocabulary.fingerprint
    # Mismatches are refused all the same.
    (folder / "centres.npy").write_bytes((folder / "centres.npy").read_bytes()[:-100])
    with pytest.raises(CairnError):
        Vocabulary.load(folder, known=True)


def test_the_words_beside_a_word_are_its_nearest(vocabulary, folder):
    assert vocabulary.backend == "ivf"
    apart = squared(vocabulary.centres, vocabulary.centres)
    np.fill_diagonal(apart, np.inf)
    nearest = np.argsort(apart, axis=1)[:, :2]
    loaded = Vocabulary.load(folder)
    for one in (vocabulary, loaded, Vocabulary.load(folder, known=True)):
        beside = one.words_beside(np.arange(one.words))
        assert (beside.dtype, beside.shape) == (np.int32, (300, 2))
        assert np.mean(beside == nearest) > 0.9  # the search is approximate
        assert (beside != np.arange(300)[:, None]).all()
        np.testing.assert_array_equal(one.words_beside(np.array([7, 3, 7])), beside[[7, 3, 7]])
    np.testing.assert_array_equal(np.load(folder / "beside.npy"), beside)


@given(st.integers(1, 40), st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_of_few_words_the_nearest_are_exact(words, seed):
    points = np.random.default_rng(seed).normal(size=(words, 5)).astype(np.float32)
    one = Vocabulary.train(ArraySource(points), VocabularyOptions(words=words, iterations=1))
    apart = squared(one.centres, one.centres)
    np.fill_diagonal(apart, np.inf)
    np.testing.assert_array_equal(
        one.words_beside(np.arange(one.words)), np.argsort(apart, axis=1, kind="stable")[:, : min(2, one.words - 1)]
    )


@pytest.mark.parametrize(
    "damage",
    [
        flip_last_byte,
        lambda file: file.write_bytes(file.read_bytes()[:-100]),
        lambda file: np.save(file, np.zeros((300, 2))),
        lambda file: np.save(file, np.full((300, 2), 300, np.int32)),
        lambda file: np.save(file, np.full((300, 2), -1, np.int32)),
        lambda file: file.unlink(),  # of an earlier version
    ],
)
def test_words_beside_that_are_damaged_or_missing_are_found_again(vocabulary, folder, damage):
    damage(folder / "beside.npy")
    loaded = Vocabulary.load(folder)
    words = np.arange(vocabulary.words)
    np.testing.assert_array_equal(loaded.words_beside(words), vocabulary.words_beside(words))
    # After an upgrade they are complete.
    loaded.save(folder.parent / "other")
    for name in ("beside.npy", "centres.npy"):
        assert (folder.parent / "other" / name).stat().st_size > 128
    np.testing.assert_array_equal(np.load(folder.parent / "other/beside.npy"), vocabulary.words_beside(words))


def test_no_vocabulary_at_all(tmp_path):
    with pytest.raises(CairnError, match="no vocabulary"):
        Vocabulary.load(tmp_path / "nowhere")
