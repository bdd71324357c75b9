"""What speaks for a match is weighed: text and texture do not verify, and what is measured is measured right."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import Delaunay

from retrieval.matching.evidence import (
    EvidenceOptions,
    chance_rates,
    close_places,
    count_places,
    false_alarms,
    hollowness,
    is_strip,
    probability,
    weigh,
)
from retrieval.matching.verification import VerificationOptions, crowding, narrow_alarms, verify
from retrieval.regions.geometry import Frames

OPTIONS = EvidenceOptions()
VERIFY = VerificationOptions()
SHIFT = np.array([0.05, 0.3])


def frames(generator: np.random.Generator, centres: np.ndarray) -> Frames:
    """Upright frames at some places, radii from 0.5% to 3% of the longer side."""
    linear = np.zeros((len(centres), 2, 2))
    linear[:, 0, 0] = linear[:, 1, 1] = np.exp(generator.uniform(np.log(0.005), np.log(0.03), len(centres)))
    linear[:, 1, 0] = generator.uniform(-0.3, 0.3, len(centres)) * linear[:, 0, 0]
    return Frames(np.asarray(centres, np.float32), linear.astype(np.float32))


def matched(
    generator: np.random.Generator, source: np.ndarray, target: np.ndarray, chance: int, noise: float = 0.001
) -> tuple[Frames, Frames, np.ndarray]:
    """One-to-one matches of features at given places, which look alike, and `chance` others anywhere."""
    number = len(source)
    query = frames(generator, np.concatenate([source, generator.uniform(0, 1, (chance, 2))]))
    image = frames(generator, np.concatenate([target, generator.uniform(0, 1, (chance, 2))]))
    image.linear[:number] = query.linear[:number]
    image.centres[:number] += generator.normal(0, noise, (number, 2)).astype(np.float32)
    pairs = np.stack([np.arange(number + chance)] * 2, axis=1).astype(np.int32)
    return query, image, pairs


def places(generator: np.random.Generator, number: int, width: float, height: float) -> np.ndarray:
    return np.array([0.2, 0.4]) + generator.uniform(0, 1, (number, 2)) * [width, height]


@pytest.mark.parametrize("letters", [15, 40, 120])
@pytest.mark.parametrize("height", [0.02, 0.05])
def test_a_caption_that_two_photos_have_in_common_verifies_nothing(letters: int, height: float) -> None:
    generator = np.random.default_rng(letters)
    caption = places(generator, letters, 0.5, height)
    query, image, pairs = matched(generator, caption, caption + SHIFT, 200)
    found = verify(query, image, pairs, VERIFY)
    assert found.inliers == 0 and found.unsure >= 0.9 * letters  # it comes before what has only words in common
    # The same number of matches of something that is as high as it is wide does.
    thing = places(generator, letters, 0.25, 0.25)
    query, image, pairs = matched(generator, thing, thing + SHIFT, 200)
    assert verify(query, image, pairs, VERIFY).inliers >= 0.9 * letters


@pytest.mark.parametrize(("letters", "others"), [(40, 60), (60, 12)])
def test_a_caption_on_two_photos_of_the_same_thing_hides_nothing(letters: int, others: int) -> None:
    generator = np.random.default_rng(0)
    both = np.concatenate([places(generator, letters, 0.5, 0.04), places(generator, others, 0.5, 0.5)])
    query, image, pairs = matched(generator, both, both + SHIFT / 5, 200)
    assert verify(query, image, pairs, VERIFY).inliers >= 0.9 * len(both)


@pytest.mark.parametrize(("spread", "number"), [(0.05, 200), (0.05, 300), (0.05, 600), (0.03, 200)])
def test_a_patch_of_texture_is_no_landmark(spread: float, number: int) -> None:
    # Foliage in one spot of both photos: whatever is matched with whatever, many matches agree with some map.
    accepted = 0
    for seed in range(30):
        generator = np.random.default_rng(seed)
        spots = generator.uniform(0.2, 0.8, (2, 1, 2)) + generator.normal(0, spread, (2, 300, 2))
        query, image = (frames(generator, np.clip(spot, 0, 1)) for spot in spots)
        pairs = np.unique(generator.integers(0, 300, (number, 2)), axis=0).astype(np.int32)
        found = verify(query.at(pairs[:, 0]), image.at(pairs[:, 1]), pairs, VERIFY, rarity=-0.3)  # texture is common
        accepted += found.inliers > 0
    assert accepted <= 2


def test_common_words_ask_for_more_than_rare_ones() -> None:
    generator = np.random.default_rng(3)
    thing = places(generator, 12, 0.3, 0.3)
    query, image, pairs = matched(generator, thing, thing, 1200, noise=0.008)
    rare, common = (verify(query, image, pairs, VERIFY, rarity=rarity) for rarity in (0.7, -1.4))
    assert rare.inliers >= 7 and rare.log_odds > VERIFY.evidence.sure
    # What is verified has the matches of a map that is fitted more closely.
    assert common.inliers == 0 and rare.inliers - 2 <= common.unsure <= rare.inliers and common.strength < (1, 0)
    assert common.log_odds < rare.log_odds and common.log_odds < VERIFY.evidence.sure


@settings(deadline=None)
@given(
    st.floats(1e-300, 1e3),
    st.floats(1e-300, 1e3),
    st.floats(-3, 3),
    st.floats(0.1, 1),
    st.floats(0.1, 1),
    st.floats(0, 1),
)
def test_more_evidence_never_weighs_less(
    wide: float, narrow: float, rarity: float, less: float, closer: float, rarer: float
) -> None:
    base = weigh(wide, narrow, rarity, OPTIONS)
    assert weigh(wide * less, narrow, rarity, OPTIONS) >= base
    assert weigh(wide, narrow * closer, rarity, OPTIONS) >= base
    assert weigh(wide, narrow, rarity + rarer, OPTIONS) >= base


def test_odds_are_probabilities() -> None:
    np.testing.assert_allclose([probability(value) for value in (0.0, np.log(3), -np.log(3))], [0.5, 0.75, 0.25])
    assert probability(1e6) == 1 and probability(-1e6) < 1e-300


def test_false_alarms_are_a_poisson_tail() -> None:
    # Golden: 50 maps; at least 4 matches beyond the map's own where 0.8 are expected (a Poisson table: 0.0090798).
    assert false_alarms(5, 50, 0.8) == pytest.approx(50 * 0.0090798, rel=1e-4)


def test_places_that_lie_on_each_other_count_once() -> None:
    points = np.array([[0.5001, 0.5001], [0.5002, 0.5003], [0.7, 0.2], [0.7, 0.7]])
    assert count_places(points, 0.025) == 3


def test_the_rates_of_chance_are_those_of_all_pairs_counted() -> None:
    generator = np.random.default_rng(1)
    query, image = (frames(generator, generator.uniform(0.4, 0.6, (80, 2))) for _ in range(2))
    transform = np.array([[1.1, 0.1, -0.1], [-0.05, 0.9, 0.06]])
    linear = transform[:, :2]
    wide = narrow = 0
    for q, frame in zip(query.centres.astype(float), query.linear.astype(float), strict=True):
        for d, other in zip(image.centres.astype(float), image.linear.astype(float), strict=True):
            forth = linear @ q + transform[:, 2] - d
            back = np.linalg.inv(linear) @ forth
            scale = 0.5 * np.log(abs(np.linalg.det(other)) / abs(np.linalg.det(linear @ frame)))
            shape = np.linalg.inv(other) @ linear @ frame
            shape /= np.sqrt(abs(np.linalg.det(shape)))
            error = np.sqrt(forth @ forth + back @ back)
            wide += error < 0.025 and abs(scale) < np.log(2)
            near = error < OPTIONS.error * 0.025 and abs(scale) < OPTIONS.log_scale
            narrow += near and np.linalg.norm(shape - np.eye(2)) < OPTIONS.shape
    assert 5 < narrow < wide
    found = chance_rates(query, image, transform, VERIFY.limits, OPTIONS)
    assert found == pytest.approx((wide / 6400 / OPTIONS.crowded, narrow / 6400))


@pytest.mark.parametrize(("side", "times"), [(1.0, 1.0), (0.2, 25 / OPTIONS.crowded)])
def test_where_features_crowd_they_agree_more_by_chance(side: float, times: float) -> None:
    generator = np.random.default_rng(3)
    query, image = (frames(generator, generator.uniform(0, side, (400, 2))) for _ in range(2))
    wide = chance_rates(query, image, np.eye(2, 3), (0.025**2, 100.0), OPTIONS).wide
    assert wide == pytest.approx(np.pi * 0.025**2 / 2 * times, rel=0.2)


@pytest.mark.parametrize("seed", range(5))
def test_chance_matches_of_two_drawings_on_pages_of_text_verify_nothing(seed: int) -> None:
    generator = np.random.default_rng(seed)
    query, image = (frames(generator, places(generator, 400, 0.2, 0.15)) for _ in range(2))
    pairs = np.arange(400)[:, None].repeat(2, axis=1).astype(np.int32)
    assert verify(query, image, pairs, VERIFY).strength == (0, 0)


def test_matches_that_are_near_but_of_another_scale_or_shape_are_not_close() -> None:
    generator = np.random.default_rng(0)
    query = frames(generator, generator.uniform(0, 1, (60, 2)))
    image = Frames(query.centres.copy(), query.linear.copy())
    image.linear[:20] *= 2
    image.linear[20:30] = image.linear[20:30] @ np.diag([3.0, 1 / 3.0]).astype(np.float32)
    image.centres[30:40] += 0.02
    identity = np.eye(2, 3)
    found = close_places(query, image, identity, 0.025, OPTIONS)
    assert found == count_places(query.centres[40:], 0.025)


def test_the_evidence_of_a_match_grows_with_its_accuracy() -> None:
    generator = np.random.default_rng(5)
    thing = places(generator, 25, 0.4, 0.4)
    by_threshold = VerificationOptions(evidence=EvidenceOptions(wide=1.0, narrow=0.0, rarity=0.0, constant=0.0))
    alarms = []
    for noise in (0.0005, 0.006):
        query, image, pairs = matched(np.random.default_rng(5), thing, thing, 300, noise)
        chosen = np.arange(25)
        rates = crowding(query, image, pairs, np.eye(2, 3), VERIFY)
        agreed = query.at(chosen), image.at(chosen), np.eye(2, 3)
        alarms.append(narrow_alarms(*agreed, len(pairs), len(pairs) * rates.narrow, VERIFY))
        assert verify(query, image, pairs, by_threshold).log_odds > 10**0.5  # digits of its false alarms, rooted
    assert alarms[0] < 1e-5 * alarms[1]


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 60))
def test_strips_are_told_whatever_the_order_of_the_matches(seed: int, number: int) -> None:
    generator = np.random.default_rng(seed)
    strip = generator.uniform(0, 1, (number, 2)) * [0.6, 0.02]
    order = generator.permutation(number)
    found = is_strip(strip, strip + 0.1, OPTIONS)
    assert found is is_strip(strip[order], strip[order] + 0.1, OPTIONS)
    assert found  # all within one low strip
    assert not is_strip(strip[:, ::-1] * [1, 1.0], strip[:, ::-1], OPTIONS) or np.ptp(strip[:, 0]) <= 0.1


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 60), st.sampled_from([0.05, 1.0, 40.0, 1e5]))
def test_places_are_counted_wherever_they_lie(seed: int, number: int, spread: float) -> None:
    points = (np.random.default_rng(seed).normal(0, spread, (number, 2))).astype(np.float32)
    points[number // 2 :] = points[: number - number // 2]  # some of them twice
    cells = {tuple(cell) for cell in np.floor(points * np.float32(2 / 0.025)).astype(int).tolist()}
    assert count_places(points, 0.025) == len(cells)


def held(points: np.ndarray, height: float) -> np.ndarray:
    """Which points lie in the highest of the strips of a height that hold the most."""
    y = np.sort(points[:, 1])
    counts = np.searchsorted(y, y + np.float32(height), side="right") - np.arange(len(y))
    top = y[counts.argmax()]
    return (points[:, 1] >= top) & (points[:, 1] <= top + np.float32(height))


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 80), st.sampled_from([0.03, 0.07, 0.12, 0.4]), st.floats(0, 0.4))
def test_strips_are_those_of_the_most_matches(seed: int, number: int, height: float, beside: float) -> None:
    generator = np.random.default_rng(seed)
    low = generator.uniform(0, 1, number) >= beside
    sides = []
    for _ in range(2):
        y = np.where(low, generator.uniform(0.3, 0.3 + height, number), generator.uniform(0, 1, number))
        sides.append(np.stack([generator.uniform(0, 1, number), y], axis=1).astype(np.float32))
    expected = False
    for most, part, aspect in OPTIONS.strips:
        here = held(sides[0], most)
        if here.sum() < part * number:
            continue
        inside = here.copy()
        inside[here] = held(sides[1][here], most)
        if inside.sum() < part * number or number - inside.sum() >= OPTIONS.outside:
            continue
        expected |= all(np.ptp(side[inside, 0]) >= aspect * np.ptp(side[inside, 1]) for side in sides)
    assert is_strip(*sides, OPTIONS) == expected


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(12, 60))
def test_hollowness_is_the_share_of_features_in_empty_ninths_of_the_hull(seed: int, number: int) -> None:
    generator = np.random.default_rng(seed)
    sides, expected = [], []
    for _ in range(2):
        features = generator.uniform(0, 1, (900, 2)).astype(np.float32)
        inliers = features[:number]
        among = Delaunay(inliers).find_simplex(features) >= 0
        among[:number] = True
        inside = features[among]
        low, high = inliers.min(axis=0), inliers.max(axis=0)
        edges = [np.linspace(low[axis], high[axis] + 1e-6, 4) for axis in (0, 1)]
        share, held = (np.histogram2d(*some.T, bins=edges)[0] for some in (inside, inliers))
        share /= share.sum()
        expected.append(share[held == 0].sum() - (share * (1 - share) ** number).sum())
        sides.append((inliers, features))
    (source, query), (target, image) = sides
    assert hollowness(source, target, query, image) == pytest.approx(min(expected), abs=0.02)  # some lie near an edge


def test_a_frame_around_two_different_pictures_is_not_certain() -> None:
    generator = np.random.default_rng(3)
    along, side = generator.uniform(0.1, 0.9, 24), np.arange(24) % 4
    rim = np.stack([np.choose(side, [along, along, 0.1, 0.9]), np.choose(side, [0.1, 0.9, along, along])], axis=1)
    middle = generator.uniform(0.3, 0.7, (24, 2))
    for agreeing, certain in ((rim, False), (np.concatenate([rim[::2], middle[::2]]), True)):
        query, image, pairs = matched(generator, agreeing, agreeing + 0.02, 300, 0.006)
        for some in (query, image):  # the two pictures
            some.centres[24:] = generator.uniform(0.3, 0.7, (300, 2))
        found = verify(query, image, pairs, VERIFY)
        assert found.inliers >= 20
        assert (found.log_odds > OPTIONS.sure) == certain
