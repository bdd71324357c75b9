import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from index.errors import CairnError
from index.hamming import aggregation
from index.hamming.aggregation import AggregationOptions, aggregate, aggregate_query, score_aggregated
from index.hamming.voting import SignedFeatures
from index.inverted import InvertedIndex
from index.segments.segment import Segment
from index.segments.writing import write_segment

WORDS = 9
PHOTOS = 12
Photo = tuple[NDArray[np.int64], NDArray[np.uint8]]  # words, and signatures (n, B)


def make_photos(seed: int, length: int = 4) -> list[Photo]:
    """Photos of few words, so that most have several features of one; with near signatures; one without features."""
    rng = np.random.default_rng(seed)
    base = rng.integers(0, 256, (WORDS, length), np.uint8)
    photos = []
    for number in range(PHOTOS):
        words = rng.integers(0, WORDS, 0 if number == 3 else rng.integers(1, 40))
        flips = np.packbits(rng.random((len(words), length * 8)) < 0.25, axis=1)
        photos.append((words, base[words] ^ flips))
    return photos


def write(folder: Path, photos: Sequence[Photo], numbers: Sequence[int]) -> Segment:
    return write_segment(
        folder,
        image_numbers=np.array(numbers),
        words=[photos[number][0] for number in numbers],
        columns={"signature": [photos[number][1] for number in numbers]},
        vocabulary_fingerprint="v",
        descriptor_fingerprint="d",
    )


def make_index(
    folder: Path, photos: Sequence[Photo], parts: Sequence[Sequence[int]], removed: Sequence[int] = ()
) -> InvertedIndex:
    folder.mkdir()
    segments = [write(folder / f"{place}", photos, numbers) for place, numbers in enumerate(parts)]
    return InvertedIndex(segments, WORDS, removed)


def signed(photo: Photo) -> SignedFeatures:
    """The features of a photo, in the order in which they are indexed."""
    order = np.argsort(photo[0], kind="stable")
    return SignedFeatures(photo[0][order, None], photo[1][order, None])


def plain_aggregates(words: Any, signatures: Any) -> dict[int, list[int]]:
    """Signs, 1 or -1, by word: those of the sum of ±1, or of the first feature where that is 0."""
    found: dict[int, list[int]] = {}
    for word in {int(word) for word in words}:
        rows = [
            [1 if byte >> bit & 1 else -1 for byte in row.tolist() for bit in range(8)]
            for row, of in zip(signatures, words, strict=True)
            if of == word
        ]
        sums = [sum(column) for column in zip(*rows, strict=True)]
        found[word] = [
            first if total == 0 else (1 if total > 0 else -1) for first, total in zip(rows[0], sums, strict=True)
        ]
    return found


def plain_scores(query: Photo, photos: Sequence[Photo], alpha: float, tau: float) -> list[float]:
    """K(X, Y) = γ(X) γ(Y) Σ_c w_c σ(<X_c, Y_c> / B), with γ(X) = (Σ_c w_c σ(<X_c, X_c> / B))^(-1/2)."""

    def kernel(first: dict[int, list[int]], second: dict[int, list[int]]) -> float:
        total = 0.0
        for word in sorted(first.keys() & second.keys()):
            u = sum(a * b for a, b in zip(first[word], second[word], strict=True)) / len(first[word])
            total += weights[word] * (math.copysign(abs(u) ** alpha, u) if u > tau else 0.0)
        return total

    every = [plain_aggregates(*photo) for photo in photos]
    frequency = {word: sum(word in one for one in every) for word in range(WORDS)}
    weights = {word: math.log(len(every) / n) ** 2 if n else 0.0 for word, n in frequency.items()}
    requested = plain_aggregates(*query)
    own = kernel(requested, requested)
    scores = []
    for one in every:
        there = kernel(one, one)
        scores.append(kernel(requested, one) / math.sqrt(own * there) if own * there > 0 else 0.0)
    return scores


@pytest.mark.parametrize(("alpha", "tau"), [(3.0, 0.0), (1.0, 0.25), (2.5, 0.5)])
@pytest.mark.parametrize("length", [4, 8, 16])
def test_scores_are_those_of_the_papers_in_a_plain_loop(tmp_path: Path, length: int, alpha: float, tau: float) -> None:
    photos = make_photos(0, length)
    index = make_index(tmp_path / "one", photos, [range(PHOTOS)])
    found = score_aggregated(
        index,
        [aggregate_query(signed(photo), 1) for photo in photos],
        8 * length,
        AggregationOptions(alpha=alpha, threshold=tau),
    )
    expected = [plain_scores(photo, photos, alpha, tau) for photo in photos]
    assert found.dtype == np.float32 and np.count_nonzero(found) > 2 * PHOTOS
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_a_photo_is_most_like_itself(tmp_path: Path, seed: int) -> None:
    photos = make_photos(seed)
    index = make_index(tmp_path / "one", photos, [range(PHOTOS)])
    for number, scores in enumerate(
        score_aggregated(index, [aggregate_query(signed(photo), 1) for photo in photos], 32, AggregationOptions())
    ):
        if len(photos[number][0]):
            assert scores[number] == 1 and (np.delete(scores, number) < 1).all()
        else:
            assert not scores.any()


@pytest.mark.parametrize("at_once", [1, 7, 1 << 18])
def test_scores_do_not_depend_on_segments_on_removed_photos_or_on_other_queries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    photos = make_photos(1)
    queries = [aggregate_query(signed(photo), 1) for photo in photos]
    kept = [0, 1, 2, 3, 6, 7, 9, 11]
    one = make_index(tmp_path / "one", photos, [kept])
    expected = score_aggregated(one, queries, 32, AggregationOptions())
    monkeypatch.setattr(aggregation, "_ENTRIES", at_once)
    several = make_index(tmp_path / "several", photos, [[4, 6, 11], [0, 3, 9], [1, 2, 5, 7, 8, 10]], [4, 5, 8, 10])
    np.testing.assert_array_equal(score_aggregated(several, queries, 32, AggregationOptions()), expected)
    np.testing.assert_array_equal(score_aggregated(several, queries[5:6], 32, AggregationOptions()), expected[5:6])
    assert score_aggregated(several, [], 32, AggregationOptions()).shape == (0, len(kept))


def test_the_majority_of_bits_is_taken_and_the_first_decides_a_draw() -> None:
    signatures = np.array([[0b0011], [0b0101], [0b0110], [0b1001], [0b1111], [0b0000], [0b0101], [0b0111]], np.uint8)
    found = aggregate(signatures, np.array([0, 3, 4]))
    np.testing.assert_array_equal(found, [[0b0111], [0b1001], [0b0111 & 0b1111]])
    np.testing.assert_array_equal(aggregate(signatures[:2], np.array([0])), signatures[:1])


def test_a_query_is_aggregated_by_several_words_a_feature() -> None:
    rng = np.random.default_rng(5)
    words = np.array([[2, 5, 7], [5, 2, -1], [7, 5, 2], [5, 7, 2], [8, -1, -1]])
    signatures = rng.integers(0, 256, (5, 3, 8), np.uint8)
    for nearest in (1, 2, 3):
        # By rank, then by feature, without features of no word.
        listed = [
            (int(words[feature, rank]), signatures[feature, rank])
            for rank in range(nearest)
            for feature in range(5)
            if words[feature, rank] >= 0
        ]
        expected = plain_aggregates([word for word, _ in listed], [row for _, row in listed])
        found = aggregate_query(SignedFeatures(words, signatures), nearest)
        assert found.words.tolist() == sorted(expected)
        bits = np.unpackbits(found.signatures, axis=1, bitorder="little")
        np.testing.assert_array_equal(2 * bits.astype(int) - 1, [expected[word] for word in sorted(expected)])


def test_signatures_of_another_length_are_refused(tmp_path: Path) -> None:
    photos = make_photos(2)
    index = make_index(tmp_path / "one", photos, [range(PHOTOS)])
    with pytest.raises(CairnError, match=r"another length: run Collection\.retrain"):
        score_aggregated(index, [], 64, AggregationOptions())
