"""Close-ups: choice of features, labels, and positions."""

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from learning.mining.image_pairs import measurement_regions
from learning.mining.matches import MinedMatches
from learning.reports.closeup import KINDS, Closeup, ellipse_points, find_closeups, project_matches
from learning.reports.closeup_drawing import COLOURS, closeup_figure
from retrieval.photos.options import ImageOptions
from retrieval.regions.overlap import overlap_sets
from tests.learning.mining.test_matches import write

WIDTH, HEIGHT, SCALE = 240, 200, 3.0
NAMES = ["one", "two", "three", "four"]
AFFINE = np.array([[0.9, 0.15, 10], [-0.1, 0.85, 20], [0, 0, 1]])
TILTED = np.array([[0.95, 0.1, 5], [-0.08, 0.9, 18], [2e-4, 1e-4, 1]])
PAIRS = {(0, 1): AFFINE, (2, 3): TILTED, (1, 2): TILTED}
ImageOf = dict[str, Path]


def _ellipses(rng: np.random.Generator, count: int) -> np.ndarray:
    """Detected regions whose measurement regions mostly lie in the photo."""
    shapes = rng.normal(size=(count, 2, 2)) * 2 + 5 * np.eye(2)
    inverse = np.linalg.inv(shapes @ shapes.transpose(0, 2, 1))
    centres = rng.uniform((30, 30), (WIDTH - 30, HEIGHT - 30), (count, 2))
    return np.column_stack([centres, inverse[:, 0, 0], inverse[:, 0, 1], inverse[:, 1, 1]]).astype(np.float32)


@pytest.fixture(scope="module")
def mined(tmp_path_factory: pytest.TempPathFactory) -> MinedMatches:
    """Three image pairs of four photos, with random regions; which of them match is for geometry to tell."""
    rng = np.random.default_rng(3)
    each = 150
    ellipses = np.concatenate([_ellipses(rng, each) for _ in NAMES])
    photos = np.repeat(np.arange(len(NAMES), dtype=np.int32), each)
    lists: dict[str, list[np.ndarray]] = {"positives": [], "ambiguous": []}
    reference, pair_of = [], []
    for pair, ((first, second), homography) in enumerate(PAIRS.items()):
        one, two = (measurement_regions(ellipses[photos == place], SCALE) for place in (first, second))
        sets = overlap_sets(one, two, homography, (HEIGHT, WIDTH))
        for x in np.unique(sets.positives[:, 0]).tolist():
            reference.append(first * each + x)
            pair_of.append(pair)
            for name, rows in (("positives", sets.positives), ("ambiguous", sets.ambiguous)):
                lists[name].append(second * each + rows[rows[:, 0] == x, 1])
    arrays = {
        "names": np.array(NAMES),
        "pairs": np.array(list(PAIRS), np.int32),
        "homographies": np.array(list(PAIRS.values())),
        "inliers": np.array([51, 52, 53], np.int32),
        "patches": rng.integers(0, 256, (len(photos), 31, 31), np.uint8),
        "photos": photos,
        "ellipses": ellipses,
        "reference": np.array(reference, np.int32),
        "pair": np.array(pair_of, np.int32),
        "target_starts": np.arange(len(PAIRS) + 1) * each,
        "targets": np.concatenate([np.flatnonzero(photos == second) for _, second in PAIRS]).astype(np.int32),
    }
    for name, rows in lists.items():
        arrays[f"{name.replace('positives', 'positive')}_starts"] = np.cumsum([0, *map(len, rows)])
        arrays[name] = np.concatenate(rows).astype(np.int32)
    return MinedMatches.open(write(tmp_path_factory.mktemp("mined") / "m.npz", arrays))


@pytest.fixture
def photos(tmp_path: Path) -> ImageOf:
    """Photos whose red encodes x and green y."""
    x, y = np.meshgrid(np.arange(WIDTH), np.arange(HEIGHT))
    pixels = np.stack([np.zeros_like(x), y, x], -1).astype(np.uint8)
    for name in NAMES:
        cv2.imwrite(str(tmp_path / f"{name}.png"), pixels)
    return {name: tmp_path / f"{name}.png" for name in NAMES}


@pytest.fixture
def found(mined: MinedMatches, photos: ImageOf) -> list[Closeup]:
    return find_closeups(mined, photos, SCALE, ImageOptions())


def _value(region: np.ndarray, points: np.ndarray) -> np.ndarray:
    """The ellipse's quadratic form: below 1 inside, 1 on the boundary."""
    dx, dy = (points - region[:2]).T
    return region[2] * dx**2 + 2 * region[3] * dx * dy + region[4] * dy**2


def _apply(homography: np.ndarray, points: np.ndarray) -> np.ndarray:
    mapped = np.column_stack([points, np.ones(len(points))]) @ homography.T
    return mapped[:, :2] / mapped[:, 2:]


def _homography(closeup: Closeup) -> np.ndarray:
    return PAIRS[NAMES.index(closeup.reference), NAMES.index(closeup.target)]


def _raster() -> np.ndarray:
    """Points of a fine grid over the reference photo, and beyond."""
    x, y = np.meshgrid(np.arange(-60, WIDTH + 60, 0.4), np.arange(-60, HEIGHT + 60, 0.4))
    return np.column_stack([x.ravel(), y.ravel()])


def test_ratios_are_those_of_rasterised_areas(found: list[Closeup]) -> None:
    points = _raster()
    for closeup in found:
        inside = _value(closeup.region, points) < 1
        for match in closeup.matches:
            # The map's affine approximation at the centre, by differences instead of by the Jacobian.
            homography, centre = _homography(closeup), match.projected[:2]
            at, step = _apply(homography, centre[None])[0], 1e-4
            ahead = _apply(homography, centre + step * np.eye(2))
            there = at + (points - centre) @ ((ahead - at) / step)
            other = _value(match.region, there) < 1
            ratio = (inside & other).sum() / (inside | other).sum()
            assert match.overlap == pytest.approx(ratio, abs=0.012)


def test_projections_are_regions_mapped_point_by_point(found: list[Closeup]) -> None:
    for closeup in found:
        inverse = np.linalg.inv(_homography(closeup))
        for match in closeup.matches:
            small = match.region * (1, 1, 1e4, 1e4, 1e4)  # so small that the affine approximation is all there is to it
            mapped = _apply(inverse, ellipse_points(small))
            np.testing.assert_allclose(_value(match.projected, mapped), 1e-4, rtol=1e-2)


@given(
    st.lists(st.floats(-0.4, 0.4), min_size=4, max_size=4),
    st.lists(st.floats(-50, 50), min_size=4, max_size=4),
    st.integers(0, 1000),
)
def test_affine_maps_project_exactly(linear: list[float], shifts: list[float], seed: int) -> None:
    homography = np.eye(3)
    homography[:2, :2] += np.array(linear).reshape(2, 2)
    homography[:2, 2] = shifts[:2]
    region = _ellipses(np.random.default_rng(seed), 1)[0].astype(np.float64)
    (match,) = project_matches(region, region[None] + [[*shifts[2:], 0, 0, 0]], ["negative"], homography)
    boundary = _apply(np.linalg.inv(homography), ellipse_points(match.region))
    np.testing.assert_allclose(_value(match.projected, boundary), 1, rtol=1e-6)


def test_all_kinds_are_shown_as_they_were_mined(mined: MinedMatches, found: list[Closeup]) -> None:
    assert len(found) == len(PAIRS)
    regions = measurement_regions(mined.ellipses, SCALE)
    for closeup in found:
        assert {match.kind for match in closeup.matches} == set(KINDS)
        first, second = (NAMES.index(name) for name in (closeup.reference, closeup.target))
        (row,) = np.flatnonzero((regions == closeup.region).all(axis=1))
        assert mined.photos[row] == first
        (x,) = np.flatnonzero((mined.reference == row) & (mined.pair == list(PAIRS).index((first, second))))
        sets = {
            "positive": mined.positives(x),
            "ambiguous": mined.ambiguous(x),
            "negative": mined.negatives(x),
        }
        assert closeup.counts == {kind: len(members) for kind, members in sets.items()}
        for match in closeup.matches:
            (target,) = np.flatnonzero((regions == match.region).all(axis=1))
            assert target in sets[match.kind]
        assert len({tuple(match.region) for match in closeup.matches}) == len(closeup.matches)


def test_other_photos_come_first_and_the_same_seed_gives_the_same(mined: MinedMatches, photos: ImageOf) -> None:
    def chosen(number: int, seed: int) -> list[tuple[Any, ...]]:
        closeups = find_closeups(mined, photos, SCALE, ImageOptions(), number, seed)
        return [(each.reference, each.target, each.region.tobytes()) for each in closeups]

    # One and two with three and four, or two and three alone: by which of them is drawn first.
    firsts = [chosen(2, seed) for seed in range(8)]
    assert firsts == [chosen(2, seed) for seed in range(8)]
    orders = Counter(tuple(pair[:2] for pair in pairs) for pairs in firsts)
    assert len(orders) > 1
    for pairs in orders:
        assert {"one", "two", "three", "four"} == {name for pair in pairs for name in pair} or (
            pairs[0] == ("two", "three")
        )
    assert [each[2] for each in chosen(1, 5)] == [each[2] for each in chosen(3, 5)][:1]


def test_photos_that_are_not_at_hand_are_left_out(mined: MinedMatches, photos: ImageOf, tmp_path: Path) -> None:
    def pairs(given: Any) -> set[tuple[str, str]]:
        return {(each.reference, each.target) for each in find_closeups(mined, given, SCALE, ImageOptions())}

    everything = {("one", "two"), ("three", "four"), ("two", "three")}
    paths = list(photos.values())
    assert pairs(photos) == pairs(paths) == pairs(paths + paths[:1]) == everything
    assert pairs([]) == pairs(paths[:1]) == set()
    # Another file of the same stem: it is unknown which of them was mined.
    (tmp_path / "other").mkdir()
    shutil.copy(photos["one"], tmp_path / "other")
    assert pairs([*paths, tmp_path / "other" / "one.png"]) == everything - {("one", "two")}
    photos["one"].unlink()
    assert pairs(photos) == everything - {("one", "two")}
    photos["four"].write_bytes(b"no photo")
    assert pairs(photos) == {("two", "three")}
    cv2.imwrite(str(photos["two"]), np.zeros((HEIGHT // 2, WIDTH // 2, 3), np.uint8))  # another one by now
    assert pairs(photos) == set()


@pytest.mark.filterwarnings("error")
def test_photos_that_hold_no_match_as_a_whole_give_no_closeup(mined: MinedMatches, photos: ImageOf) -> None:
    assert find_closeups(mined, photos, 30 * SCALE, ImageOptions()) == []
    # A map whose horizon crosses the second photos, and regions that come as near to it as numbers allow.
    horizon = np.array([[1, 0, 0], [0, 1, 0], [1 / 120, 0, 1]])
    maps, ellipses = mined.homographies, mined.ellipses
    try:
        mined.homographies = np.repeat(horizon[None], len(maps), axis=0)
        mined.ellipses = ellipses.copy()
        mined.ellipses[1::7, 0] = np.nextafter(np.float32(120), np.float32(0))
        find_closeups(mined, photos, SCALE, ImageOptions())
    finally:
        mined.homographies, mined.ellipses = maps, ellipses


def test_two_mined_photos_of_one_name_are_left_out(mined: MinedMatches, photos: ImageOf) -> None:
    names = mined.names
    try:
        mined.names = np.array(["one", "two", "three", "two"])
        assert find_closeups(mined, photos, SCALE, ImageOptions()) == []
    finally:
        mined.names = names


@pytest.mark.parametrize("side", [0, 120, 90])
def test_crops_lie_where_they_say(mined: MinedMatches, photos: ImageOf, side: int) -> None:
    for closeup in find_closeups(mined, photos, SCALE, ImageOptions(max_side=side)):
        projected = [match.projected for match in closeup.matches]
        shown = (
            (closeup.reference_crop, [closeup.region, *projected]),
            (closeup.target_crop, [match.region for match in closeup.matches]),
        )
        for crop, regions in shown:
            left, right, bottom, top = crop.extent
            rows, columns = crop.pixels.shape[:2]
            x = left + (np.arange(columns) + 0.5) * (right - left) / columns
            y = top + (np.arange(rows) + 0.5) * (bottom - top) / rows
            np.testing.assert_allclose(crop.pixels[:, 1:-1, 0], np.tile(x[1:-1], (rows, 1)), atol=1)
            np.testing.assert_allclose(crop.pixels[1:-1, :, 1], np.tile(y[1:-1, None], (1, columns)), atol=1)
            # The square holds all that is drawn, and the pixels fill what the photo has of it.
            x0, x1, y1, y0 = crop.window
            assert x1 - x0 == pytest.approx(y1 - y0)
            for region in regions:
                points = ellipse_points(region)
                assert (points >= (x0, y0)).all()
                assert (points <= (x1, y1)).all()
            assert left <= max(x0, -0.5) + 1e-6
            assert top <= max(y0, -0.5) + 1e-6
            assert right >= min(x1, WIDTH - 0.5) - 1e-6
            assert bottom >= min(y1, HEIGHT - 0.5) - 1e-6


@pytest.mark.slow
def test_a_closeup_is_drawn_in_the_colours_of_its_kinds(found: list[Closeup]) -> None:
    pytest.importorskip("matplotlib")
    for closeup in found:
        figure = closeup_figure(closeup)
        left, right = figure.axes
        figure.draw_without_rendering()
        ratios = Counter((COLOURS[match.kind], f"{match.overlap:.2f}") for match in closeup.matches)
        for axes, crop in ((left, closeup.reference_crop), (right, closeup.target_crop)):
            assert Counter((text.get_bbox_patch().get_facecolor()[:3], text.get_text()) for text in axes.texts) == {
                (tuple(int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)), ratio): count
                for (colour, ratio), count in ratios.items()
            }
            assert (*axes.get_xlim(), *axes.get_ylim()) == crop.window
            for text in axes.texts:
                x, y = text.get_position()
                assert crop.window[0] < x < crop.window[1]
                assert crop.window[3] < y < crop.window[2]
        drawn = {axes: [line for line in axes.lines if line.get_color() != "white"] for axes in (left, right)}
        feature, *projected = drawn[left]
        assert (feature.get_color(), feature.get_linestyle()) == (COLOURS["feature"], "-")
        for line, match in zip(projected, closeup.matches, strict=True):
            assert (line.get_color(), line.get_linestyle()) == (COLOURS[match.kind], "--")
            np.testing.assert_allclose(_value(match.projected, np.asarray(line.get_xydata())), 1)
        for line, match in zip(drawn[right], closeup.matches, strict=True):
            assert (line.get_color(), line.get_linestyle()) == (COLOURS[match.kind], "-")
            np.testing.assert_allclose(_value(match.region, np.asarray(line.get_xydata())), 1)
