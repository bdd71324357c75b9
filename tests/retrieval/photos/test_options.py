"""How large photos are read: as ever, unless they are more than twice as long as high."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import CairnError
from retrieval.photos.decoder import working_size
from retrieval.photos.decoding import read_photo
from retrieval.photos.options import PANORAMA, ImageOptions, new_collection

sides = st.integers(1, 30_000)


@given(size=st.tuples(sides, sides), side=st.integers(0, 3_000))
def test_the_size_of_what_is_at_most_twice_as_long_as_high_is_that_of_earlier_versions(
    size: tuple[int, int], side: int
) -> None:
    longer, shorter = max(size), min(size)
    if longer > 2 * shorter:
        size = (longer, -(-longer // 2))
    expected = size if side == 0 or longer <= side else tuple(max(1, round(one * side / longer)) for one in size)
    assert working_size(size, new_collection(side)) == working_size(size, ImageOptions(max_side=side)) == expected
    assert new_collection(side).elongation(*size) == 1


@given(shorter=st.integers(1, 4_000), ratio=st.floats(2.01, 200), side=st.integers(8, 2_000), upright=st.booleans())
def test_a_panorama_keeps_the_shorter_side_of_a_photo_of_two_to_one_up_to_a_limit(
    shorter: int, ratio: float, side: int, upright: bool
) -> None:
    size = (round(shorter * ratio) + 1, shorter)
    size = size[::-1] if upright else size
    options = new_collection(side)
    working, before = working_size(size, options), working_size(size, ImageOptions(max_side=side))
    assert max(before) <= max(working) <= max(max(size) if max(size) <= side else 0, PANORAMA * side)
    assert min(working) <= max(side // 2 + 1, min(before)) and all(
        one <= own for one, own in zip(working, size, strict=True)
    )
    assert working[0] * working[1] <= PANORAMA // 2 * side * side + PANORAMA * side
    if max(size) > side and max(size) / min(size) <= 2 * PANORAMA and min(size) >= side / 2:
        assert abs(min(working) - side / 2) <= 1
    assert options.elongation(*size) == max(size) / (2 * min(size)) > 1
    assert ImageOptions(max_side=side).elongation(*size) == 1


@pytest.mark.parametrize(
    ("size", "working"),
    [
        ((4000, 3000), (1024, 768)),
        ((1080, 1920), (576, 1024)),
        ((4000, 2000), (1024, 512)),
        ((20_000, 1_500), (6827, 512)),
        ((1_500, 20_000), (512, 6827)),
        ((40_000, 1_500), (8192, 307)),
        ((3_000, 300), (3_000, 300)),
        ((900, 90), (900, 90)),
    ],
)
def test_sizes_at_1024_pixels(size: tuple[int, int], working: tuple[int, int]) -> None:
    assert working_size(size, new_collection()) == working


def test_the_name_tells_ways_of_reading_apart_and_is_as_it_was_where_they_are() -> None:
    assert ImageOptions(max_side=640).name == "640"
    assert new_collection(640).name == "640x8"


def test_a_limit_below_the_longest_side_is_refused() -> None:
    with pytest.raises(CairnError, match="panorama"):
        ImageOptions(panorama=0)


@pytest.mark.skipif("CAIRN_DATASETS" not in os.environ, reason="needs CAIRN_DATASETS")
def test_real_photos_are_read_to_the_bit_as_they_were() -> None:
    photos = sorted(Path(os.environ["CAIRN_DATASETS"], "distractors").glob("*.jpg"))[::14]
    assert len(photos) > 40
    for path in photos:
        now, before = read_photo(path, new_collection()), read_photo(path, ImageOptions())
        if max(now.width, now.height) <= 2 * min(now.width, now.height):
            np.testing.assert_array_equal(now.grey, before.grey)
