"""Matches by words and signatures, and the geometry of two views."""

import numpy as np

from retrieval.matching.two_views import FEWEST, match_signed, two_views


def test_a_word_tells_two_features_where_each_photo_has_one_of_it() -> None:
    words = np.array([3, 7, 7, 9]), np.array([9, 7, 3, 11])
    assert match_signed(words, None).tolist() == [[0, 2], [3, 0]]
    assert match_signed((words[0], np.zeros(0, np.int32)), None).shape == (0, 2)


def test_of_one_word_the_nearest_signatures_match() -> None:
    words = np.array([7, 7, 7]), np.array([7, 7])
    first = np.array([[0b0000_0000], [0b1111_1111], [0b1111_1100]], np.uint8)
    second = np.array([[0b1111_1110], [0b0000_0001]], np.uint8)
    # Two of the first are a bit from the same one of the second: it takes the first of them. The third is left.
    assert match_signed(words, (first, second)).tolist() == [[0, 1], [1, 0]]
    one = words[0][:1], words[1][:1]
    assert match_signed(one, (first[:1], second[:1])).tolist() == []  # 7 of 8 bits differ


def test_too_few_matches_fix_no_geometry() -> None:
    places = np.random.default_rng(1).uniform(0, 500, (40, 2)).astype(np.float32)
    matches = np.repeat(np.arange(FEWEST - 1, dtype=np.int32)[:, None], 2, axis=1)
    assert two_views(matches, places, places + 5, 500.0) is None


def test_what_lies_in_a_plane_has_its_homography() -> None:
    rng = np.random.default_rng(2)
    plane = np.array([[1.1, 0.05, 12], [-0.04, 0.95, 8], [1e-4, -5e-5, 1]])
    first = rng.uniform(0, 600, (80, 2)).astype(np.float32)
    mapped = np.column_stack([first, np.ones(80)]) @ plane.T
    second = (mapped[:, :2] / mapped[:, 2:]).astype(np.float32)
    second[70:] += rng.uniform(60, 200, (10, 2)).astype(np.float32)
    matches = np.repeat(np.arange(80, dtype=np.int32)[:, None], 2, axis=1)
    found = two_views(matches, first, second, 600.0)
    assert found is not None and found.homography is not None
    assert set(range(70)) <= set(found.inliers[:, 0].tolist())
    assert np.abs(found.homography / found.homography[2, 2] - plane).max() < 1e-2
