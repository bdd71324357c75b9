"""Matching of descriptors, compared with a plain computation of all distances."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.matching import nearest
from retrieval.matching.nearest import match_descriptors, prepare_query


def plainly(query: np.ndarray, image: np.ndarray, ratio: float) -> set[tuple[int, int]]:
    """Mutual nearest neighbours that pass the ratio test, one feature after the other."""
    matches = set()
    for i, row in enumerate(query):
        distances = [float(np.sqrt(((row - other) ** 2).sum())) for other in image]
        first, second = sorted(range(len(image)), key=distances.__getitem__)[:2]
        back = [float(((image[first] - other) ** 2).sum()) for other in query]
        if back[i] == min(back) and distances[first] < ratio * distances[second]:
            matches.add((i, first))
    return matches


@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.tuples(st.integers(1, 25), st.integers(2, 25)),
    ratio=st.sampled_from([0.6, 0.8, 0.9, 1.0]),
)
def test_it_is_what_a_plain_computation_gives(seed: int, sizes: tuple[int, int], ratio: float) -> None:
    generator = np.random.default_rng(seed)
    # Whole numbers: every distance is exact in float32, and so are the ties.
    query, image = (generator.integers(0, 6, (size, 8)).astype(np.float32) for size in sizes)
    found = match_descriptors(query, image, ratio)
    assert found.dtype == np.int32 and found.shape[1:] == (2,)
    # Between the two ends of a tie the computation is free; such features are left out.
    squared = ((query[:, None] - image[None]) ** 2).sum(axis=2)
    tied = {i for i in range(len(query)) if (squared[i] == squared[i].min()).sum() > 1}
    tied |= {i for i in range(len(query)) if (squared[:, squared[i].argmin()] == squared[i].min()).sum() > 1}
    expected = {pair for pair in plainly(query, image, ratio) if pair[0] not in tied}
    assert {pair for pair in map(tuple, found.tolist()) if pair[0] not in tied} == expected
    for side in (0, 1):
        assert len(np.unique(found[:, side])) == len(found)


def test_a_photo_matches_itself_but_for_what_it_shows_twice() -> None:
    generator = np.random.default_rng(0)
    rows = generator.random((30, 16)).astype(np.float16)
    rows[7] = rows[3]
    found = match_descriptors(rows, rows)
    assert found.tolist() == [[i, i] for i in range(30) if i not in (3, 7)]


@pytest.mark.parametrize("sizes", [(0, 0), (0, 5), (5, 0), (5, 1)])
def test_too_few_features_match_nothing(sizes: tuple[int, int]) -> None:
    query, image = (np.ones((size, 4), np.float16) for size in sizes)
    assert match_descriptors(query, image).shape == (0, 2)


@pytest.mark.parametrize(("rows", "cells"), [(1, 1), (3, 1), (1, 200), (128, 1 << 19)])
def test_a_prepared_query_matches_the_same_however_many_features_at_a_time(
    monkeypatch: pytest.MonkeyPatch, rows: int, cells: int
) -> None:
    generator = np.random.default_rng(1)
    query = generator.integers(0, 6, (50, 8)).astype(np.float16)  # whole numbers: exact in any order
    prepared = prepare_query(query)
    photos = [generator.integers(0, 6, (size, 8)).astype(np.float16) for size in (0, 1, 2, 40, 90)]
    expected = [match_descriptors(query, photo).tolist() for photo in photos]
    monkeypatch.setattr(nearest, "ROWS", rows)
    monkeypatch.setattr(nearest, "CELLS", cells)
    assert [match_descriptors(prepared, photo).tolist() for photo in photos] == expected
    assert any(expected)
