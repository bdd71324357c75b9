from pathlib import Path

import numpy as np
import pytest
import skimage.data
from numpy.typing import NDArray
from PIL import Image

import index.vocabulary
from index.clustering.sources import ArraySource
from index.errors import CairnError
from retrieval.collection.collection import Collection
from retrieval.collection.options import CollectionOptions
from retrieval.indexing.add_options import AddOptions
from retrieval.indexing.adding import index_photos
from retrieval.library.parts.features import describe, detect, features_fingerprint
from retrieval.library.parts.scoring import Index
from retrieval.library.parts.vocabulary import Vocabulary


@pytest.fixture(scope="module")
def rows() -> NDArray[np.float32]:
    rng = np.random.default_rng(0)
    return (rng.normal(size=(8, 6)).repeat(40, axis=0) * 5 + rng.normal(size=(320, 6))).astype(np.float32)


def test_words_are_those_that_indexing_would_make(rows: NDArray[np.float32]) -> None:
    reported: list[tuple[str, int, int]] = []
    made = Vocabulary.train(rows.tolist(), 8, seed=3, passes=4, progress=lambda *step: reported.append(step))
    options = index.vocabulary.VocabularyOptions(words=8, seed=3, iterations=4)
    own = index.vocabulary.Vocabulary.train(ArraySource(rows), options)
    assert made.fingerprint == own.fingerprint and made.quantisation_error == own.quantisation_error
    assert np.array_equal(made.centres, own.centres)
    assert np.array_equal(made.assign(rows), own.assign(rows)) and made.assign(rows).dtype == np.int32
    assert np.array_equal(made.assign(rows.astype(np.float64)), made.assign(rows))
    for mine, others in zip(made.assign_soft(rows, 2), own.assign_soft(rows, 2), strict=True):
        assert np.array_equal(mine, others)
    step, done, of = reported[-1]
    assert step == "vocabulary" and done == of > 0
    assert (made.words, len(made), made.dim) == (8, 8, 6)
    nearest = np.square(rows[:, None] - made.centres).sum(axis=2).argmin(axis=1)
    assert np.array_equal(made.assign(rows), nearest)


def test_it_is_kept_in_a_folder_that_a_collection_takes(rows: NDArray[np.float32], tmp_path: Path) -> None:
    long = np.pad(rows, ((0, 0), (0, 122)))
    made = Vocabulary.train(long, 4, features=features_fingerprint("rootsift"), trained_on="noise")
    with Collection.create(tmp_path / "one.cairn", CollectionOptions(signature="none")) as collection:
        made.save(collection.vocabulary_folder)
        collection.check_descriptor(collection.vocabulary)
        assert collection.vocabulary.trained_on == "noise"
        assert np.array_equal(collection.vocabulary.assign(long), made.assign(long))
    for folder in (tmp_path / "one.cairn", str(tmp_path / "one.cairn" / "vocabulary")):
        assert Vocabulary.load(folder).fingerprint == made.fingerprint


def test_words_and_scores_are_those_of_a_collection(tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    images = [skimage.data.coins()[place : place + 100, :120] for place in (0, 30, 150)]
    described = [describe(image, detect(image)) for image in images]
    for place, image in enumerate(images):
        Image.fromarray(image).save(photos / f"{place}.png")
    made = Vocabulary.train(np.concatenate(described), 40, features=features_fingerprint())
    made.save(tmp_path / "words")
    with Collection.create(tmp_path / "one.cairn", CollectionOptions(signature="none")) as collection:
        report = index_photos(collection, [photos], AddOptions(vocabulary=tmp_path / "words"), workers=1)
        assert report.added == 3
        index = Index(made.words)
        words = [made.assign(rows) for rows in described]
        for own in words:
            index.add(own)
        for number, own in zip(collection.index.image_numbers.tolist(), words, strict=True):
            assert np.array_equal(collection.index.images.features(number).words, np.sort(own))
        for own in words:
            assert np.array_equal(index.score(own), collection.index.score(own).scores)


def test_it_is_not_taken_for_features_of_another_kind(rows: NDArray[np.float32], tmp_path: Path) -> None:
    made = Vocabulary.train(rows, 4)
    made.save(tmp_path / "words")
    with (
        Collection.create(tmp_path / "one.cairn", CollectionOptions(signature="none")) as collection,
        pytest.raises(CairnError, match="another descriptor"),
    ):
        collection.check_descriptor(index.vocabulary.Vocabulary.load(tmp_path / "words"))


def test_no_descriptor_has_no_word(rows: NDArray[np.float32]) -> None:
    made = Vocabulary.train(rows, 4)
    assert made.assign([]).shape == (0,) and made.assign(np.zeros((0, 6))).dtype == np.int32
    assert made.assign_soft(np.zeros((0, 6)))[1].shape == (0, 3)


def test_what_is_wrong_is_refused(rows: NDArray[np.float32], tmp_path: Path) -> None:
    made = Vocabulary.train(rows, 4)
    made.save(tmp_path / "kept")
    for wrong in (
        lambda: Vocabulary.train([]),
        lambda: Vocabulary.train(np.zeros((0, 6))),
        lambda: Vocabulary.train(np.zeros((5, 0))),
        lambda: Vocabulary.train(rows[0]),
        lambda: Vocabulary.train(np.full((5, 2), np.nan)),
        lambda: Vocabulary.train(np.full((5, 2), 1e9)),
        lambda: Vocabulary.train(np.full((5, 2), 1e300)),
        lambda: Vocabulary.train(rows, 0),
        lambda: Vocabulary.train(rows, 4, passes=0),
        lambda: Vocabulary.train(rows, 4, seed=-1),
        lambda: Vocabulary.train(rows, 4, search="magic"),
        lambda: made.assign(rows[:, :5]),
        lambda: made.assign(np.full((1, 6), np.inf)),
        lambda: made.assign([["a"] * 6]),
        lambda: made.assign_soft(rows, 0),
        lambda: made.save(tmp_path / "kept"),
        lambda: made.save(tmp_path / "not" / "there"),
        lambda: Vocabulary.load(tmp_path / "nothing"),
        lambda: Vocabulary.load(tmp_path),
    ):
        with pytest.raises(CairnError):
            wrong()
