"""The first look at many photos: what shows the same passes, by maps that are right; most of what does not is left."""

from dataclasses import replace

import numpy as np
import pytest

from retrieval.matching.maps import Maps, single_match_maps
from retrieval.matching.shortlist import shortlist
from retrieval.matching.verification import VerificationOptions
from retrieval.regions.geometry import Frames

OPTIONS = VerificationOptions()
MATRIX = np.array([[0.8, 0.0, 0.1], [0.15, 0.9, 0.05]])


def random_frames(generator: np.random.Generator, number: int) -> Frames:
    linear = np.zeros((number, 2, 2))
    size = 0.01 * np.exp(generator.normal(0, 0.7, number))
    stretch = np.exp(generator.normal(0, 0.3, number))
    linear[:, 0, 0], linear[:, 1, 1], linear[:, 1, 0] = size * stretch, size / stretch, size * generator.normal(0, 0.3)
    return Frames(generator.uniform(0, 1, (number, 2)).astype(np.float32), linear.astype(np.float32))


def mapped(query: Frames, generator: np.random.Generator, noise: float = 0.002) -> Frames:
    centres = query.centres @ MATRIX[:, :2].T + MATRIX[:, 2] + generator.normal(0, noise, query.centres.shape)
    linear = MATRIX[:, :2] @ query.linear * np.exp(generator.normal(0, 0.08, (len(centres), 1, 1)))
    return Frames(centres.astype(np.float32), linear.astype(np.float32))


def photo(generator: np.random.Generator, same: int, others: int) -> tuple[Frames, Frames]:
    """Matched features of a query and of a photo, of which the first lie where a map takes them."""
    query = random_frames(generator, same + others)
    right, wrong = mapped(query.at(np.arange(same)), generator), random_frames(generator, others)
    image = Frames(np.concatenate([right.centres, wrong.centres]), np.concatenate([right.linear, wrong.linear]))
    order = generator.permutation(same + others)
    return query.at(order), image.at(order)


def look(photos: list[tuple[Frames, Frames]], options: VerificationOptions = OPTIONS) -> list[Maps | None]:
    query, image = (
        Frames(np.concatenate([one.centres for one in side]), np.concatenate([one.linear for one in side]))
        for side in zip(*photos, strict=True)
    )
    starts = np.cumsum([0, *(len(one.centres) for one, _ in photos)])
    return shortlist(query, image, starts, np.ones(starts[-1], np.int64), options.looks)


def test_photos_that_follow_a_map_pass_with_it_and_few_others_do() -> None:
    generator = np.random.default_rng(0)
    photos = [photo(generator, 60, 400) for _ in range(40)] + [photo(generator, 0, 400) for _ in range(200)]
    found = look(photos)
    assert all(maps is not None for maps in found[:40])
    assert sum(maps is not None for maps in found[40:]) <= 10
    corners = np.array([[0, 0, 1], [1, 0, 1], [0, 1, 1], [1, 1, 1]])
    for maps in found[:40]:
        assert maps is not None and len(maps) <= OPTIONS.shortlist.kept
        assert np.abs(corners @ (maps.transforms[0] - MATRIX).T).max() < 0.1


def test_what_is_said_of_a_photo_does_not_depend_on_the_others() -> None:
    generator = np.random.default_rng(1)
    photos = [photo(generator, same, others) for same, others in ((90, 700), (0, 90), (30, 10), (0, 0), (30, 150))]
    together = look(photos)
    for one, maps in zip(photos, together, strict=True):
        (alone,) = look([one])
        assert (alone is None) == (maps is None)
        if maps is not None and alone is not None:
            np.testing.assert_array_equal(alone.transforms, maps.transforms)
    assert [maps is None for maps in together] == [False, True, False, True, False]


def test_nothing_to_look_at_is_nothing_found() -> None:
    none = Frames(np.zeros((0, 2), np.float32), np.zeros((0, 2, 2), np.float32))
    assert look([(none, none)] * 3) == [None, None, None]
    zero = np.zeros(0, np.int64)
    assert shortlist(none, none, np.zeros(1, np.int64), zero, OPTIONS.looks) == []


@pytest.mark.parametrize("ruined", ["query", "image", "both"])
def test_degenerate_regions_neither_fail_nor_warn(ruined: str) -> None:
    generator = np.random.default_rng(0)
    query, image = photo(generator, 30, 60)
    if ruined != "image":
        query.linear[:10], query.linear[10:20] = 0, query.linear[10:20] * 1e-6
    if ruined != "query":
        image.linear[5:15], image.linear[20:25, 0] = 0, image.linear[20:25, 1]
    with np.errstate(all="raise", under="ignore"):
        (maps,) = look([(query, image)], replace(OPTIONS, shortlist=replace(OPTIONS.shortlist, maps=90)))
    assert maps is None or np.isfinite(maps.transforms).all()


# Maps


@pytest.mark.parametrize("freedom", [3, 4, 5])
def test_the_map_of_a_match_takes_its_region_to_the_others(freedom: int) -> None:
    generator = np.random.default_rng(2)
    query = random_frames(generator, 50)
    turned = np.array([[0.6, -0.8], [0.8, 0.6]], np.float32)
    image = Frames(
        generator.uniform(0, 1, (50, 2)).astype(np.float32), (1.5 * turned @ query.linear).astype(np.float32)
    )
    maps = single_match_maps(query, image, freedom)
    linear = maps.transforms[:, :, :2]
    at = np.einsum("nij,nj->ni", linear, query.centres) + maps.transforms[:, :, 2]
    np.testing.assert_allclose(at, image.centres, atol=1e-5)
    np.testing.assert_allclose(maps.rows[:, 6], np.log(1.5), atol=1e-4)
    expected = 1.5 * (turned if freedom > 3 else np.eye(2))
    np.testing.assert_allclose(linear, np.broadcast_to(expected, (50, 2, 2)), atol=1e-3)
