"""A photo is found first by itself, and verified, whatever number of features and words it has."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from index.inverted import InvertedIndex
from index.segments.writing import write_segment
from retrieval.collection.options import CollectionOptions
from retrieval.features.encoding import encode_frames
from retrieval.matching.verification import VerificationOptions
from retrieval.matching.word_matches import QueryWords
from retrieval.regions.geometry import Frames
from retrieval.search.options import SearchOptions
from retrieval.search.searcher import RankedAnswer, Searcher
from retrieval.search.views import View

LIMITS = VerificationOptions()
WORDS = 200_000


def frames_of(generator: np.random.Generator, features: int) -> Frames:
    """Features anywhere, with radii from 0.5% to 5% of the longer side."""
    linear = np.zeros((features, 2, 2), np.float32)
    scale, stretch = generator.uniform(0.005, 0.05, features), generator.uniform(0.5, 2, features)
    linear[:, 0, 0], linear[:, 1, 1] = scale * stretch, scale / stretch
    linear[:, 1, 0] = scale * generator.uniform(-0.5, 0.5, features)
    return Frames(generator.uniform(0, 1, (features, 2)).astype(np.float32), linear)


def searched(folder: Path, photos: list[tuple[np.ndarray, Frames]], number: int) -> RankedAnswer:
    """Search a collection of photos, given by words and frames, for one of them, whose frames are not rounded."""
    segment = write_segment(
        folder,
        image_numbers=np.arange(1, len(photos) + 1, dtype=np.uint32),
        words=[words for words, _ in photos],
        columns={"geometry": [encode_frames(frames) for _, frames in photos]},
        vocabulary_fingerprint="v",
        descriptor_fingerprint="d",
    )
    index = InvertedIndex([segment], WORDS)
    names = {one: f"{one:03}.jpg" for one in range(1, len(photos) + 1)}
    catalogue = SimpleNamespace(read=lambda _, numbers: {one: names[one] for one in numbers})
    collection: Any = SimpleNamespace(
        scored_index=lambda *_, **__: index, catalogue=catalogue, options=CollectionOptions(signature="none")
    )
    words, frames = photos[number - 1]
    view = View(0.0, frames, np.zeros((len(words), 0), np.float16), words=words, terms=words, weights=None)
    return Searcher(collection, SearchOptions(engine="tf-idf-sp", turns=1)).search([view])


@given(
    seed=st.integers(0, 2**32 - 1),
    features=st.one_of(
        st.integers(1, 40),
        st.sampled_from([LIMITS.max_matches + step for step in (-1, 0, 1)]),
        st.sampled_from([3_001, 8_000, LIMITS.max_counted + 1]),
    ),
    words=st.sampled_from([1, 2, 40, 3_000, WORDS]),
)
def test_a_photo_is_found_first_by_itself(
    tmp_path_factory: pytest.TempPathFactory, seed: int, features: int, words: int
) -> None:
    generator = np.random.default_rng(seed)
    own = generator.integers(0, words, features).astype(np.int32), frames_of(generator, features)
    shuffled = own[0], frames_of(generator, features)  # the same words elsewhere
    others = [(generator.integers(0, WORDS, 300).astype(np.int32), frames_of(generator, 300)) for _ in range(3)]
    answer = searched(tmp_path_factory.mktemp("photos") / "s", [*others, shuffled, own], 5)
    first = answer.hits[0]
    assert first.number == 5
    assert first.verification.inliers == features
    np.testing.assert_allclose(first.verification.transform, np.eye(2, 3), atol=1e-3)


@pytest.mark.parametrize("features", [LIMITS.max_matches - 1, LIMITS.max_matches, LIMITS.max_matches + 1, 6_000])
@pytest.mark.parametrize("words", [50, 2_000, WORDS])
def test_a_copy_of_which_a_tenth_is_lost_is_verified_by_nearly_all_of_the_rest(
    tmp_path: Path, features: int, words: int
) -> None:
    # As a conversion makes it: most features are there again, some are not, and some are new.
    generator = np.random.default_rng(features)
    own = generator.integers(0, words, features).astype(np.int32), frames_of(generator, features)
    kept = np.sort(generator.permutation(features)[: features * 9 // 10])
    copy = own[0][kept], own[1].at(kept)
    other = generator.integers(0, words, features).astype(np.int32), frames_of(generator, features)
    answer = searched(tmp_path / "s", [other, copy, own], 3)
    assert [hit.number for hit in answer.hits[:2]] == [3, 2]
    copied = answer.hits[1].verification
    # Of few words there are too many pairs to look at all of them; those of features of the same rank are looked at.
    assert copied.inliers > (0.95 * len(kept) if features * features / words < LIMITS.max_counted else 50)


@pytest.mark.parametrize("features", [1, 2, 1_499, 1_500, 1_501, 1_502, 10_000])
def test_words_that_two_photos_share_once_are_paired_up_to_the_limit(features: int) -> None:
    words = np.arange(features)
    found = QueryWords(words).match(words, 1_500)
    assert len(found) == min(features, 1_500)
    assert (found[:, 0] == found[:, 1]).all()


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 8), max_size=60), st.lists(st.integers(0, 8), max_size=60), st.integers(0, 80)
)  # fmt: skip
def test_as_many_pairs_are_given_as_there_is_room_for(query: list[int], image: list[int], most: int) -> None:
    words, others = np.array(query, np.int64), np.sort(np.array(image, np.int64))
    every = QueryWords(words).match(others, 10_000)
    found = QueryWords(words).match(others, most)
    assert len(found) == min(len(every), most)
    assert {tuple(pair) for pair in found} <= {tuple(pair) for pair in every}
    assert len(np.unique(found, axis=0)) == len(found)
