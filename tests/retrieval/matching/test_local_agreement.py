"""Agreement piece by piece: a bumpy thing seen from two sides is recognised, and chance never passes for one."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from retrieval.matching.local_agreement import LocalOptions, Pieces, find_pieces, largest_map
from retrieval.matching.local_kernels import link_neighbours
from retrieval.matching.verification import NOTHING, VerificationOptions, verify_pieces
from retrieval.regions.geometry import Frames

OPTIONS = LocalOptions()
LENIENT = VerificationOptions()


def random_frames(generator: np.random.Generator, number: int) -> Frames:
    linear = np.zeros((number, 2, 2))
    size = 0.01 * np.exp(generator.normal(0, 0.7, number))
    stretch = np.exp(generator.normal(0, 0.3, number))
    linear[:, 0, 0], linear[:, 1, 1], linear[:, 1, 0] = size * stretch, size / stretch, size * generator.normal(0, 0.3)
    return Frames(generator.uniform(0, 1, (number, 2)).astype(np.float32), linear.astype(np.float32))


def seen_from_the_side(query: Frames, generator: np.random.Generator) -> Frames:
    """What another camera sees of a bumpy surface: F = [[0, 0, 0], [0, 0, -1], [0, 1, 0]], rows stay rows."""
    x, y = query.centres.astype(np.float64).T
    bump, along, down = 0.09 * np.sin(7 * x) * np.cos(6 * y), 0.63 * np.cos(7 * x), -0.54 * np.sin(6 * y)
    jacobian = np.zeros((len(x), 2, 2))
    jacobian[:, 0, 0], jacobian[:, 0, 1], jacobian[:, 1, 1] = 1 + along * np.cos(6 * y), down * np.sin(7 * x), 1
    centres = np.stack([x + bump, y], axis=1) + generator.normal(0, 0.002, (len(x), 2))
    linear = jacobian @ query.linear * np.exp(generator.normal(0, 0.08, (len(x), 1, 1)))
    return Frames(centres.astype(np.float32), linear.astype(np.float32))


def photo(generator: np.random.Generator, same: int, others: int) -> tuple[Frames, Frames, NDArray[np.bool_]]:
    """Matched features of a query and of a photo, and which of the matches are right."""
    query = random_frames(generator, same + others)
    right, wrong = seen_from_the_side(query.at(np.arange(same)), generator), random_frames(generator, others)
    image = Frames(np.concatenate([right.centres, wrong.centres]), np.concatenate([right.linear, wrong.linear]))
    order = generator.permutation(same + others)
    return query.at(order), image.at(order), order < same


def pieces_of(photos: list[tuple[Frames, Frames]], options: LocalOptions = OPTIONS) -> list[Pieces | None]:
    query, image = (
        Frames(np.concatenate([one.centres for one in side]), np.concatenate([one.linear for one in side]))
        for side in zip(*photos, strict=True)
    )
    starts = np.cumsum([0, *(len(one.centres) for one, _ in photos)])
    ambiguity, wanted = np.ones(starts[-1], np.int64), np.ones(len(photos), np.bool_)
    return find_pieces(query, image, starts, ambiguity, wanted, options)


def pairs_of(number: int) -> NDArray[np.int32]:
    return np.repeat(np.arange(number, dtype=np.int32)[:, None], 2, axis=1)


def test_a_thing_with_depth_is_found_among_wrong_matches_and_its_matches_are_right() -> None:
    generator = np.random.default_rng(0)
    photos = [photo(generator, 60, 140) for _ in range(20)]
    for (query, image, right), pieces in zip(photos, pieces_of([one[:2] for one in photos]), strict=True):
        assert pieces is not None
        assert pieces.false_alarms < 1e-12
        assert right[pieces.rows].mean() > 0.85
        found = verify_pieces(query, image, pairs_of(len(right)), pieces, LENIENT)
        assert found.log_odds >= OPTIONS.unsure and max(found.strength) > 0.4 * 60
        rows = (found.matches if found.inliers else pairs_of(len(right))[pieces.rows])[:, 0]
        off = np.abs(query.centres[rows, 1] - image.centres[rows, 1])  # distance from the epipolar line
        assert np.median(off) < 0.01


def test_one_map_does_not_explain_that_thing() -> None:
    generator = np.random.default_rng(1)
    query = random_frames(generator, 400)
    image = seen_from_the_side(query, generator)
    homogeneous = np.column_stack([query.centres, np.ones(400)])
    fitted = np.linalg.lstsq(homogeneous, image.centres, rcond=None)[0]
    assert (np.linalg.norm(homogeneous @ fitted - image.centres, axis=1) > 0.025).mean() > 0.5


def test_of_a_thousand_random_pairs_none_is_verified_and_few_come_forward() -> None:
    generator = np.random.default_rng(2)
    photos = [photo(generator, 0, 200)[:2] for _ in range(1000)]
    unsure = 0
    for (query, image), pieces in zip(photos, pieces_of(photos), strict=True):
        found = verify_pieces(query, image, pairs_of(200), pieces, LENIENT) if pieces is not None else NOTHING
        assert not found.inliers
        unsure += found.unsure > 0
    assert unsure <= 10


def test_what_crowds_is_reckoned_with() -> None:
    """Features of one size in one small patch of both photos agree often: no more than by chance."""
    generator = np.random.default_rng(3)
    photos = []
    for _ in range(300):
        sides = []
        for _ in range(2):
            frames = random_frames(generator, 150)
            centres = 0.4 + 0.1 * frames.centres
            sides.append(Frames(centres, np.tile(np.float32(0.01) * np.eye(2, dtype=np.float32), (150, 1, 1))))
        photos.append((sides[0], sides[1]))
    for (query, image), pieces in zip(photos, pieces_of(photos), strict=True):
        assert pieces is None or not verify_pieces(query, image, pairs_of(150), pieces, LENIENT).inliers


def test_what_is_said_of_a_photo_is_the_same_each_time_and_whatever_the_others_are() -> None:
    generator = np.random.default_rng(4)
    photos = [photo(generator, same, 120)[:2] for same in (0, 20, 40, 60)]
    together = pieces_of(photos)
    for one, pieces in zip(photos, together, strict=True):
        (alone,) = pieces_of([one])
        assert (alone is None) == (pieces is None)
        if alone is not None and pieces is not None:
            assert np.array_equal(alone.rows, pieces.rows)
            assert (alone.largest, alone.false_alarms) == (pieces.largest, pieces.false_alarms)


def plain_pieces(query: Frames, image: Frames, options: LocalOptions) -> NDArray[np.int64]:
    """The piece of each match, as NumPy says it."""
    linear = image.linear.astype(np.float64) @ np.linalg.inv(query.linear.astype(np.float64))
    areas = np.abs(np.linalg.det(linear))
    here, there = (side.centres[None] - side.centres[:, None] for side in (query, image))
    apart, apart_there = np.linalg.norm(here, axis=2), np.linalg.norm(there, axis=2)
    reported = np.einsum("iab,ijb->ija", linear, here)
    error = np.linalg.norm(reported - there, axis=2)
    agrees = error <= np.maximum(options.error * np.linalg.norm(reported, axis=2), options.least_error)
    agrees &= (apart >= options.near) & (apart <= options.reach) & (apart_there >= options.near)
    agrees &= np.abs(np.log(areas[:, None] / areas[None])) <= 2 * options.log_scale
    linked = coo_array(agrees & agrees.T)
    labels = connected_components(linked, directed=False)[1]
    first: NDArray[np.int64] = np.array([np.flatnonzero(labels == label)[0] for label in labels])
    return first


@pytest.mark.parametrize("same", [0, 30, 60])
def test_the_compiled_loop_finds_the_pieces_that_numpy_does(same: int) -> None:
    query, image, _ = photo(np.random.default_rng(5), same, 90)
    options = replace(OPTIONS, cell=1e-4)
    number = len(query.centres)
    ambiguity, starts = np.ones(number, np.int64), np.array([0, number])
    requested = options.limits, options.matches, options.ambiguity, 0, 0
    rows, pieces, links = link_neighbours(
        *query.plain, *image.plain, ambiguity, starts, np.ones(1, np.bool_), *requested
    )
    assert np.array_equal(rows[0, :number], np.arange(number)) and (rows[0, number:] == -1).all()
    expected = plain_pieces(query, image, options)
    if links[0, 0]:
        assert np.array_equal(pieces[0, :number], expected)
    assert links[0, 0] == number - len(np.unique(expected))


def test_the_least_ambiguous_matches_take_part_one_of_those_that_join_the_same_places() -> None:
    query, image, _ = photo(np.random.default_rng(6), 60, 0)
    twice = [Frames(np.tile(side.centres, (2, 1)), np.tile(side.linear, (2, 1, 1))) for side in (query, image)]
    ambiguity = np.repeat([2, 1], 60)
    options = replace(OPTIONS, cell=1e-4)
    requested = options.limits, options.matches, options.ambiguity, options.links, options.shifts
    sides = (*twice[0].plain, *twice[1].plain)
    rows, _, _ = link_neighbours(*sides, ambiguity, np.array([0, 120]), np.ones(1, np.bool_), *requested)
    assert rows[0][rows[0] >= 0].tolist() == list(range(60, 120))
    rows, _, _ = link_neighbours(*sides, 10 * ambiguity, np.array([0, 120]), np.ones(1, np.bool_), *requested)
    assert (rows == -1).all()


def test_a_feature_takes_part_in_one_match_and_a_line_of_text_is_nothing() -> None:
    generator = np.random.default_rng(7)
    query, image, _ = photo(generator, 60, 60)
    (pieces,) = pieces_of([(query, image)])
    assert pieces is not None and largest_map(query, image, pieces) is not None
    pairs = pairs_of(120)
    pairs[pieces.rows[:4], 0] = pairs[pieces.rows[0], 0]
    sure = replace(LENIENT, local=replace(OPTIONS, sure=0.0))
    found = verify_pieces(query, image, pairs, pieces, sure)
    assert found.inliers == len(pieces.rows) - 3 and found.transform is not None
    assert len(np.unique(found.matches[:, 0])) == found.inliers
    flat = [Frames(side.centres * np.float32([1, 0.02]), side.linear) for side in (query, image)]
    assert verify_pieces(flat[0], flat[1], pairs_of(120), pieces, sure) is NOTHING
