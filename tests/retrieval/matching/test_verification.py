"""Verification finds the map there is, and none where there is none."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from index.errors import CairnError
from retrieval.matching.verification import NOTHING, VerificationOptions, verify
from retrieval.matching.word_matches import QueryWords
from retrieval.regions.geometry import Frames, fit_affine, rotations

OPTIONS = VerificationOptions()


def random_frames(generator, number, centres=None):
    """Frames of upright regions in a photo of side 1: radii 0.5% to 5%, axes at most 1:4."""
    linear = np.zeros((number, 2, 2))
    size = np.exp(generator.uniform(np.log(0.005), np.log(0.05), number))
    stretch = np.exp(generator.uniform(-0.7, 0.7, number))
    linear[:, 0, 0], linear[:, 1, 1] = size * stretch, size / stretch
    linear[:, 1, 0] = generator.uniform(-0.5, 0.5, number) * size
    if centres is None:
        centres = generator.uniform(0, 1, (number, 2))
    return Frames(np.asarray(centres, np.float32), linear.astype(np.float32))


def scene(generator, matrix, inliers, outliers, noise=0.002, perspective=(0.0, 0.0), spread=1.0):
    """Matches of which the first follow a map, a homography where `perspective` is not 0; and which those are.

    Every feature takes part in one match; frames follow the map's local linear part, with errors as detectors make
    them: 15% in each entry.
    """
    number = inliers + outliers
    query = random_frames(generator, number, 0.5 + spread * generator.uniform(-0.5, 0.5, (number, 2)))
    image = random_frames(generator, number)
    centres, linear = image.centres.copy(), image.linear.copy()
    source = query.centres[:inliers].astype(np.float64)
    weight = 1 + (source - 0.5) @ np.array(perspective)
    mapped = source @ matrix[:, :2].T + matrix[:, 2]
    centres[:inliers] = mapped / weight[:, None] + generator.normal(0, noise, (inliers, 2))
    local = (matrix[:, :2] - mapped[:, :, None] / weight[:, None, None] * np.array(perspective)) / weight[:, None, None]
    errors = np.eye(2) + generator.normal(0, 0.15, (inliers, 2, 2)) * np.tri(2)
    linear[:inliers] = local @ query.linear[:inliers] @ errors
    order = generator.permutation(number)
    pairs = np.stack([order, generator.permutation(number)], axis=1).astype(np.int32)
    return query.at(order), Frames(centres, linear).at(order), pairs, order < inliers


def similarity(scale=1.0, angle=0.0, shift=(0.0, 0.0)):
    """A similarity around the middle of the photo."""
    linear = scale * rotations(np.array([angle]))[0]
    return np.column_stack([linear, 0.5 + np.array(shift) - linear @ [0.5, 0.5]])


MAPS = {
    "identity": similarity(),
    "shift": similarity(1, 0, (0.2, -0.3)),
    "zoom": similarity(2.5, 0, (0.1, 0)),
    "reduction": similarity(0.4),
    "shear": np.array([[1.2, 0.0, -0.1], [0.35, 0.8, -0.05]]),
    "small turn": similarity(0.9, np.radians(8), (0.05, 0.02)),
}


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize(("inliers", "outliers"), [(60, 140), (60, 540), (200, 0), (15, 15)])
def test_the_map_is_found_among_outliers(name, inliers, outliers):
    generator = np.random.default_rng(7)
    query, image, pairs, truth = scene(generator, MAPS[name], inliers, outliers)
    found = verify(query, image, pairs, OPTIONS)
    corners = np.array([[0, 0], [1, 0], [0, 1], [1, 1], [0.5, 0.5]])
    mapped = corners @ found.transform[:, :2].T + found.transform[:, 2]
    expected = corners @ MAPS[name][:, :2].T + MAPS[name][:, 2]
    scale = np.sqrt(np.linalg.det(MAPS[name][:, :2]))
    assert np.linalg.norm(mapped - expected, axis=1).max() < 0.03 * max(scale, 1)
    given = {tuple(pair) for pair in pairs[truth]}
    matched = {tuple(pair) for pair in found.matches}
    assert len(given & matched) >= 0.9 * inliers
    # Chance gives a wrong match for a part of the photo of about the threshold's circle.
    assert len(matched - given) <= 0.01 * outliers + 1
    assert found.inliers == len(found.matches) and found.matches.dtype == np.int32


@pytest.mark.parametrize("perspective", [0.0, 0.1])
def test_inliers_do_not_hang_on_the_last_digits_of_places(perspective):
    """Places that differ by a ten-thousandth of a photo's side give as many inliers, within 5% and one."""
    for seed in range(100):
        generator = np.random.default_rng(seed)
        inliers, outliers = generator.integers(20, 200), generator.integers(0, 300)
        matrix = similarity(generator.uniform(0.6, 1.6), generator.uniform(-0.1, 0.1), generator.uniform(-0.1, 0.1, 2))
        slant = perspective * generator.uniform(-1, 1, 2)
        query, image, pairs, _ = scene(generator, matrix, inliers, outliers, generator.uniform(0.002, 0.008), slant)
        found = verify(query, image, pairs, OPTIONS).inliers
        for _ in range(2):
            moved = (
                Frames(
                    (side.centres + generator.uniform(-1e-4, 1e-4, side.centres.shape)).astype(np.float32), side.linear
                )
                for side in (query, image)
            )
            again = verify(*moved, pairs, OPTIONS).inliers
            assert again == pytest.approx(found, rel=0.05, abs=1), seed


def test_a_view_in_perspective_is_verified():
    generator = np.random.default_rng(3)
    for seed in range(10):
        turned = similarity(1.1, 0, tuple(generator.uniform(-0.1, 0.1, 2)))
        query, image, pairs, truth = scene(np.random.default_rng(seed), turned, 80, 190, 0.002, (0.15, -0.1))
        found = verify(query, image, pairs, OPTIONS)
        given, matched = ({tuple(pair) for pair in some} for some in (pairs[truth], found.matches))
        assert len(given & matched) > 40 and len(matched - given) < 6


@pytest.mark.parametrize("freedom", [3, 4, 5])
@pytest.mark.parametrize("kind", ["shift and zoom", "turn", "shear"])
def test_degrees_of_freedom(freedom, kind):
    generator = np.random.default_rng(11)
    options = VerificationOptions(freedom=freedom)
    matrix = {
        "shift and zoom": similarity(1.4, 0, (0.05, 0.1)),
        "turn": similarity(1, np.radians(70)),
        "shear": np.array([[1.5, 0, 0], [0.5, 0.6, 0]]),
    }[kind]
    query, image, pairs, truth = scene(generator, matrix, 60, 140)
    if kind == "turn":
        # Turned frames as patches of dominant orientation give them: turned with the photo, up to an error.
        errors = rotations(generator.normal(0, 0.05, len(pairs)))
        frames = matrix[:, :2] @ query.linear @ errors
        image = Frames(image.centres, np.where(truth[:, None, None], frames, image.linear).astype(np.float32))
    found = verify(query, image, pairs, options)
    given, matched = ({tuple(pair) for pair in some} for some in (pairs[truth], found.matches))
    # What a single match cannot express by its freedom is not found by it: three hold no turn.
    if (freedom, kind) == (3, "turn"):
        assert len(matched) < 30
    elif freedom == 5 or kind != "shear":
        assert len(given & matched) > 50


def test_other_degrees_of_freedom_are_refused():
    with pytest.raises(CairnError, match="3, 4 or 5"):
        VerificationOptions(freedom=6)


def tangled(generator, number, features, inliers, noise=0.004):
    """Many-to-many matches, as words give them: a feature is in several, some of them along one map."""
    query, image = random_frames(generator, features), random_frames(generator, features)
    centres, linear = image.centres.copy(), image.linear.copy()
    centres[:inliers] = query.centres[:inliers] * 0.8 + 0.1 + generator.normal(0, noise, (inliers, 2))
    linear[:inliers] = 0.8 * query.linear[:inliers]
    pairs = np.concatenate(
        [np.stack([np.arange(inliers)] * 2, axis=1), generator.integers(0, features, (number, 2))]
    ).astype(np.int32)
    pairs = np.unique(pairs, axis=0)
    return query.at(pairs[:, 0]), Frames(centres, linear).at(pairs[:, 1]), pairs


@given(
    seed=st.integers(0, 2**32 - 1), number=st.integers(0, 400), features=st.integers(4, 60), inliers=st.integers(0, 40)
)
def test_each_feature_is_in_one_match_at_most_and_matches_are_of_the_pairs(seed, number, features, inliers):
    query, image, pairs = tangled(np.random.default_rng(seed), number, features, min(inliers, features))
    found = verify(query, image, pairs, OPTIONS)
    for side in (0, 1):
        assert len(np.unique(found.matches[:, side])) == len(found.matches)
    assert {tuple(match) for match in found.matches} <= {tuple(pair) for pair in pairs}
    assert (found.transform is None) == (found.inliers == 0)
    assert found.inliers == 0 or found.inliers >= OPTIONS.min_inliers


def test_a_burst_of_matches_of_one_feature_does_not_outvote_the_map():
    # One feature of the query matches 300 of the photo that lie together, as on a fence or in foliage.
    generator = np.random.default_rng(2)
    query, image, pairs, _ = scene(generator, similarity(0.9), 25, 0)
    burst = random_frames(generator, 300, np.array([0.8, 0.2]) + generator.normal(0, 0.004, (300, 2)))
    same = Frames(np.repeat(query.centres[:1], 300, axis=0), np.repeat(burst.linear[:1], 300, axis=0))
    query, image = (
        Frames(np.concatenate([a.centres, b.centres]), np.concatenate([a.linear, b.linear]))
        for a, b in ((query, same), (image, burst))
    )
    pairs = np.concatenate([pairs, np.column_stack([np.full(300, 1000), 1000 + np.arange(300)])]).astype(np.int32)
    found = verify(query, image, pairs, OPTIONS)
    assert found.inliers >= 23
    assert (found.matches[:, 0] == 1000).sum() <= 1


def test_a_map_is_found_where_each_feature_has_many_other_matches():
    # As a small vocabulary gives them: each feature of the 40 that follow the map is in about eight matches.
    for seed in range(10):
        query, image, pairs = tangled(np.random.default_rng(seed), 1000, 130, 40)
        found = verify(query, image, pairs, OPTIONS)
        assert (found.matches[:, 0] == found.matches[:, 1]).sum() >= 30


def test_the_inliers_are_within_the_thresholds():
    options = VerificationOptions(threshold=0.02)
    query, image, pairs, _ = scene(np.random.default_rng(1), MAPS["zoom"], 60, 300, noise=0.008)
    found = verify(query, image, pairs, options)
    row_of = {tuple(pair): row for row, pair in enumerate(pairs)}
    rows = [row_of[tuple(match)] for match in found.matches]
    residual = query.centres[rows] @ found.transform[:, :2].T + found.transform[:, 2] - image.centres[rows]
    back = residual @ np.linalg.inv(found.transform[:, :2]).T
    errors = (residual**2).sum(axis=1) + (back**2).sum(axis=1)
    assert (errors < 0.02**2 * 1.001).all()
    scale = np.sqrt(np.linalg.det(image.linear[rows]) / np.linalg.det(query.linear[rows]))
    own = np.sqrt(np.linalg.det(found.transform[:, :2]))
    assert (np.abs(np.log(scale / own)) < np.log(options.scale_ratio) * 1.001).all()


def test_matches_of_another_scale_are_left_out():
    # Every match is where the map takes it, but half of them say that the photo is three times as large there.
    query, image, pairs, _ = scene(np.random.default_rng(1), similarity(), 60, 0)
    enlarged = np.arange(60) % 2 == 1
    image.linear[enlarged] *= 3
    found = verify(query, image, pairs, OPTIONS)
    matched = np.isin(pairs[:, 0], found.matches[:, 0])
    assert not (matched & enlarged).any() and matched.sum() >= 27


@pytest.mark.parametrize("name", MAPS)
def test_query_and_photo_swapped_give_the_inverse_map(name):
    query, image, pairs, _ = scene(np.random.default_rng(5), MAPS[name], 80, 150, noise=0.001)
    there = verify(query, image, pairs, OPTIONS)
    back = verify(image, query, pairs[:, ::-1], OPTIONS)
    first, second = ({tuple(match) for match in matches} for matches in (there.matches, back.matches[:, ::-1]))
    assert len(first ^ second) <= 4
    whole = np.vstack([there.transform, [0, 0, 1]]) @ np.vstack([back.transform, [0, 0, 1]])
    np.testing.assert_allclose(whole, np.eye(3), atol=0.01)


def test_order_and_repetition_make_no_difference():
    query, image, pairs, _ = scene(np.random.default_rng(6), MAPS["shear"], 50, 150)
    first = verify(query, image, pairs, OPTIONS)
    again = verify(query, image, pairs, OPTIONS)
    np.testing.assert_array_equal(first.matches, again.matches)
    np.testing.assert_array_equal(first.transform, again.transform)
    order = np.random.default_rng(0).permutation(len(pairs))
    other = verify(query.at(order), image.at(order), pairs[order], OPTIONS)
    assert len({tuple(m) for m in first.matches} ^ {tuple(m) for m in other.matches}) <= 2
    np.testing.assert_allclose(first.transform, other.transform, atol=5e-3)


def test_chance_matches_are_rejected():
    generator = np.random.default_rng(0)
    accepted = 0
    for _ in range(300):
        features = int(generator.integers(10, 600))
        number = int(generator.integers(4, 1500))
        query, image, pairs = tangled(generator, number, features, 0)
        accepted += verify(query, image, pairs, OPTIONS).inliers > 0
    assert accepted <= 6


def test_chance_matches_in_clusters_are_mostly_rejected():
    # Features of photos crowd: here in three spots of a tenth of the side.
    generator = np.random.default_rng(0)
    accepted = 0
    for _ in range(100):
        spots = generator.uniform(0.1, 0.9, (2, 3, 2))
        centres = [side[generator.integers(0, 3, 300)] + generator.normal(0, 0.1, (300, 2)) for side in spots]
        query, image = (random_frames(generator, 300, np.clip(some, 0, 1)) for some in centres)
        pairs = np.unique(generator.integers(0, 300, (300, 2)), axis=0).astype(np.int32)
        accepted += verify(query.at(pairs[:, 0]), image.at(pairs[:, 1]), pairs, OPTIONS).inliers > 0
    assert accepted <= 10


DEGENERATE = {
    "a line": lambda t: np.stack([t, 0.3 + 0.2 * t], axis=1),
    "a vertical line": lambda t: np.stack([0 * t + 0.5, t], axis=1),
    "one point": lambda t: np.full((len(t), 2), 0.25),
    "two points": lambda t: np.where(t[:, None] > 0.5, [0.1, 0.2], [0.8, 0.7]),
    "nearly one point": lambda t: 0.25 + 1e-7 * np.stack([t, t**2], axis=1),
    "the origin": lambda t: np.zeros((len(t), 2)),
}


@pytest.mark.parametrize("query_place", DEGENERATE)
@pytest.mark.parametrize("image_place", [*DEGENERATE, "anywhere"])
@pytest.mark.parametrize("number", [1, 4, 30])
def test_degenerate_places_neither_fail_nor_warn(query_place, image_place, number):
    generator = np.random.default_rng(0)
    along = generator.uniform(0, 1, number)
    query = random_frames(generator, number, DEGENERATE[query_place](along))
    places = generator.uniform(0, 1, (number, 2)) if image_place == "anywhere" else DEGENERATE[image_place](along)
    image = Frames(places.astype(np.float32), query.linear)
    pairs = np.stack([np.arange(number)] * 2, axis=1).astype(np.int32)
    for freedom in (3, 4, 5):
        with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
            warnings.simplefilter("error")
            found = verify(query, image, pairs, VerificationOptions(freedom=freedom))
        assert found.inliers <= number
        assert found.transform is None or np.isfinite(found.transform).all()


@pytest.mark.parametrize("freedom", [3, 4, 5])
def test_degenerate_frames_neither_fail_nor_warn(freedom):
    generator = np.random.default_rng(0)
    query, image = random_frames(generator, 40), random_frames(generator, 40)
    query.linear[:5], image.linear[5:10] = 0, 0
    query.linear[10:15] *= 1e-6
    image.linear[15:20, 0] = image.linear[15:20, 1]
    pairs = np.stack([np.arange(40)] * 2, axis=1).astype(np.int32)
    with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
        warnings.simplefilter("error")
        found = verify(query, image, pairs, VerificationOptions(freedom=freedom))
    assert found.transform is None  # forty random frames agree on nothing, those that are none least


def test_no_matches_verify_nothing():
    empty = Frames(np.zeros((0, 2), np.float32), np.zeros((0, 2, 2), np.float32))
    assert verify(empty, empty, np.zeros((0, 2), np.int32), OPTIONS) is NOTHING
    assert NOTHING.inliers == 0 and NOTHING.transform is None


@settings(deadline=None)
@given(st.lists(st.integers(0, 12), max_size=40), st.lists(st.integers(0, 12), max_size=40))
def test_words_pair_all_features_that_share_them(query_words, image_words):
    query, image = np.array(query_words, np.int64), np.sort(np.array(image_words, np.int64))
    found = QueryWords(query).match(image, 10_000)
    expected = {(i, j) for i, one in enumerate(query) for j, other in enumerate(image) if one == other}
    assert found.dtype == np.int32 and found.shape == (len(expected), 2)
    assert {tuple(pair) for pair in found} == expected


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 12), max_size=40),
    st.lists(st.lists(st.integers(0, 15), max_size=40), min_size=1, max_size=6),
    st.integers(1, 200),
)
def test_words_pair_the_features_of_many_photos_as_those_of_each_alone(query_words, photos, most):
    query, images = QueryWords(np.array(query_words, np.int64)), [np.sort(np.array(one, np.int64)) for one in photos]
    offsets = np.cumsum([0, *map(len, images)])
    pairs, starts, ambiguity, totals = query.match_many(np.concatenate(images), offsets, most)
    assert pairs.dtype == np.int32 and len(pairs) == len(ambiguity) == starts[-1]
    for place, image in enumerate(images):
        some = slice(starts[place], starts[place + 1])
        found, every = pairs[some], query.match(image, 10_000)
        assert totals[place] == len(every)
        if totals[place] <= most:
            np.testing.assert_array_equal(found, every)
            of_word = [np.count_nonzero(image[every[:, 1]] == word) for word in image[every[:, 1]]]
            np.testing.assert_array_equal(ambiguity[some], of_word)
        else:
            assert {tuple(pair) for pair in found} <= {tuple(pair) for pair in every}
            assert 0 < len(found) == len({tuple(pair) for pair in found})
        (alone, *_) = query.match_many(image, np.array([0, len(image)]), most)
        np.testing.assert_array_equal(alone, found)


def test_the_least_ambiguous_matches_of_each_photo_are_kept_whatever_the_others_have():
    # Half of the words are in the query once, half three times.
    generator = np.random.default_rng(0)
    query = QueryWords(np.concatenate([np.arange(2000), np.repeat(np.arange(1000, 2000), 2)]))
    images = [np.sort(generator.choice(2000, number, replace=False)) for number in (1500, 80, 900)]
    offsets = np.cumsum([0, *map(len, images)])
    pairs, starts, ambiguity, _ = query.match_many(np.concatenate(images), offsets, 300)
    assert 250 <= starts[1] <= 300 * 1.25 and (ambiguity[: starts[1]] == 1).all()
    assert starts[2] - starts[1] == len(query.match(images[1], 10_000))
    assert 250 <= starts[3] - starts[2] <= 300 * 1.25 and (ambiguity[starts[2] :] == 1).all()
    for place, image in enumerate(images):
        features = pairs[starts[place] : starts[place + 1], 1]
        assert (np.diff(features) >= 0).all() and features[0] >= 0 and features[-1] < len(image)


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 8), min_size=1, max_size=60),
    st.lists(st.integers(0, 8), min_size=1, max_size=60),
    st.integers(0, 80),
)
def test_the_most_ambiguous_words_are_left_out_first(query_words, image_words, most):
    query, image = np.array(query_words), np.sort(np.array(image_words))
    found = QueryWords(query).match(image, most)
    everything = QueryWords(query).match(image, 10_000)
    assert len(found) <= max(most, 0) or len(everything) <= most
    assert len(np.unique(found, axis=0)) == len(found)
    assert (query[found[:, 0]] == image[found[:, 1]]).all()
    ambiguity = {word: (query == word).sum() * (image == word).sum() for word in np.unique(query)}
    kept = {word for word in query[found[:, 0]]}
    left = {word for word in query[everything[:, 0]]} - kept
    assert not kept or not left or max(ambiguity[w] for w in kept) <= min(ambiguity[w] for w in left)


@settings(deadline=None)
@given(seed=st.integers(0, 2**32 - 1), number=st.integers(3, 40))
def test_a_fitted_map_is_the_least_squares_one(seed, number):
    generator = np.random.default_rng(seed)
    source = generator.uniform(0, 1, (number, 2))
    target = generator.uniform(0, 1, (number, 2))
    found = fit_affine(source.astype(np.float32), target.astype(np.float32))
    values = np.linalg.svd(source - source.mean(axis=0), compute_uv=False)
    if found is None:
        assert values[1] < 0.015 * values[0]
        return
    if values[1] > 0.03 * values[0]:
        expected = np.linalg.lstsq(np.column_stack([source, np.ones(number)]), target, rcond=None)[0].T
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    "place", ["a line", "a vertical line", "one point", "nearly one point", "two points", "the origin"]
)
def test_points_that_do_not_fix_a_map_give_none(place):
    points = DEGENERATE[place](np.linspace(0, 1, 12))
    if place == "nearly one point":
        points = points.astype(np.float32)  # which rounds it to a few points on a line
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        assert fit_affine(points, np.random.default_rng(0).uniform(0, 1, (12, 2))) is None
    assert fit_affine(points[:2], points[:2]) is None
