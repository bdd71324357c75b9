"""Views of photos: consistent with their homographies, reproducible, and usable for learning like other photos."""

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from skimage import data

from index.errors import CairnError
from learning.mining.matches import MinedMatches
from learning.mining.mining import MiningOptions, TooLittle, mine_matches
from learning.mining.photo_source import PhotoSource
from learning.mining.views import ViewOptions, draw_warp, render, write_view
from retrieval.photos.decoding import read_photo
from retrieval.photos.options import ImageOptions
from tests.conftest import Indexed, Ran

PLAIN = ViewOptions(gamma=0.0, blur=0.0, noise=0.0, quality=(95, 95))
NAMES = ("astronaut", "camera", "chelsea", "coffee")


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Photos of different objects."""
    folder = tmp_path_factory.mktemp("views") / "photos"
    folder.mkdir()
    for name in NAMES:
        image = getattr(data, name)()
        cv2.imwrite(str(folder / f"{name}.png"), image[..., ::-1] if image.ndim == 3 else image)
    return folder


# Rendered views


@given(st.integers(0, 10_000))
def test_a_warp_is_one_that_a_camera_can_see(seed: int) -> None:
    warp = draw_warp((480, 640), np.random.default_rng(seed), ViewOptions())
    corners = np.array([[0, 0, 1], [639, 0, 1], [639, 479, 1], [0, 479, 1]], np.float64) @ warp.T
    assert (corners[:, 2] > 0.3).all() and np.linalg.det(warp) > 0
    middle = warp @ [319.5, 239.5, 1]
    np.testing.assert_allclose(middle[:2] / middle[2], [319.5, 239.5], atol=1e-6)


@pytest.mark.parametrize("most", [1024, 300], ids=["as it is", "reduced"])
def test_the_view_shows_at_each_place_what_its_homography_says(photos: Path, tmp_path: Path, most: int) -> None:
    path, image = photos / "coffee.png", ImageOptions(max_side=most)
    view = write_view(path, image, tmp_path / "v.jpg", PLAIN, (3,))
    seen, photo = read_photo(view.path).grey, read_photo(path).grey
    assert max(seen.shape) == min(most, 600)
    # Of the upright original, brought to the view by the homography alone.
    height, width = seen.shape
    smooth = cv2.GaussianBlur(photo, (0, 0), 600 / most / 2)
    expected = cv2.warpPerspective(smooth, view.homography, (width, height), borderValue=-1000)
    inside = cv2.erode((expected > -1).astype(np.uint8), np.ones((15, 15))).astype(bool)
    assert inside.mean() > 0.5
    assert np.corrcoef(expected[inside], seen[inside])[0, 1] > 0.99
    shifted = np.roll(expected, 4, axis=1)
    assert np.corrcoef(shifted[inside], seen[inside])[0, 1] < 0.97  # a few pixels would show


def test_the_same_seed_gives_the_same_view_and_another_one_another(photos: Path, tmp_path: Path) -> None:
    path = photos / "camera.png"
    files = [
        write_view(path, ImageOptions(), tmp_path / f"{number}.jpg", ViewOptions(), seed).path.read_bytes()
        for number, seed in enumerate([(0, 7), (0, 7), (1, 7), (0, 8)])
    ]
    assert files[0] == files[1] and len(set(files)) == 3


def test_noise_blur_and_light_stay_within_what_pixels_hold() -> None:
    grey = np.random.default_rng(0).uniform(0, 255, (60, 80)).astype(np.float32)
    wild = ViewOptions(gamma=3.0, blur=9.0, noise=300.0)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        seen = render(grey, draw_warp(grey.shape, rng, wild), rng, wild)
        assert seen.shape == grey.shape and seen.dtype == np.uint8


# Matches mined from them


@pytest.fixture(scope="module")
def mined(photos: Path) -> MinedMatches:
    out = photos.parent / "matches.npz"
    mine_matches(PhotoSource.open(photos), out, MiningOptions(geometry="views"))
    return MinedMatches.open(out)


def test_photos_that_show_nothing_in_common_have_matches_in_their_views(mined: MinedMatches) -> None:
    assert len(mined.pairs) == len(NAMES) and len(mined.names) == 2 * len(NAMES)
    assert not mined.inliers.any()
    for first, second in mined.pairs.tolist():
        assert str(mined.names[second]).startswith(f"{mined.names[first]}-view-")
    assert all(len(mined.of_pair(pair)) > 100 for pair in range(len(mined.pairs)))
    # Most positives look like their features: their patches correlate.
    features = np.arange(0, mined.features, 7)
    pairs = [(mined.reference[x], mined.positives(int(x))[0]) for x in features]
    one, other = (np.asarray(mined.patches)[list(side)].reshape(len(pairs), -1) for side in zip(*pairs, strict=True))
    alike = [np.corrcoef(a, b)[0, 1] for a, b in zip(one.astype(float), other.astype(float), strict=True)]
    assert np.median(alike) > 0.6


@pytest.mark.slow
def test_views_do_not_depend_on_the_processes_and_a_kept_folder_is_gone_on_from(
    mined: MinedMatches, photos: Path, tmp_path: Path
) -> None:
    for workers in (2, 1):  # the second finds all of it
        mine_matches(
            PhotoSource.open(photos),
            tmp_path / "m.npz",
            MiningOptions(geometry="views"),
            work=tmp_path / "work",
            workers=workers,
        )
        assert (tmp_path / "m.npz").read_bytes() == mined.path.read_bytes()


def test_of_a_photo_that_is_there_twice_there_is_one_view(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    for name, of in (("a", "coffee"), ("b", "coffee"), ("c", "camera")):
        (tmp_path / "photos" / f"{name}.png").write_bytes((photos / f"{of}.png").read_bytes())
    mine_matches(PhotoSource.open(tmp_path / "photos"), tmp_path / "m.npz", MiningOptions(geometry="views"))
    names = MinedMatches.open(tmp_path / "m.npz").names.tolist()
    assert [name.partition("-view-")[0] for name in names] == ["a", "c", "a", "c"]


def test_both_geometries_go_into_one_file(photos: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / "photos").mkdir(exist_ok=True)
        (tmp_path / "photos" / f"{name}.png").write_bytes((photos / "coffee.png").read_bytes() + name.encode())
    options = MiningOptions(geometry="both", propose="random")
    report = mine_matches(PhotoSource.open(tmp_path / "photos"), tmp_path / "m.npz", options)
    found = MinedMatches.open(tmp_path / "m.npz")
    assert (report.tried, report.kept) == (3, 3)
    assert sorted(found.inliers > 0) == [False, False, True]


def test_what_cannot_be_learnt_from_is_refused(tmp_path: Path) -> None:
    blank = tmp_path / "blank"
    blank.mkdir()
    out = tmp_path / "m.npz"
    with pytest.raises(CairnError, match="has no photos"):
        mine_matches(PhotoSource.open(blank), out, MiningOptions(geometry="views"))
    cv2.imwrite(str(blank / "grey.png"), np.full((200, 200), 128, np.uint8))
    with pytest.raises(TooLittle, match="found again in its view: add photos with more to see"):
        mine_matches(PhotoSource.open(blank), out, MiningOptions(geometry="views"))
    (blank / "grey.png").write_bytes(b"no photo")
    with pytest.raises(CairnError, match="no photo that can be read"):
        mine_matches(PhotoSource.open(blank), out, MiningOptions(geometry="views"))
    with pytest.raises(CairnError, match=r"grey\.png can no longer be read"):
        write_view(blank / "grey.png", ImageOptions(), out, ViewOptions(), (0,))
    with pytest.raises(CairnError, match="no geometry"):
        MiningOptions(geometry="epipolar")
    with pytest.raises(CairnError, match="number of views"):
        MiningOptions(geometry="views", views=-1)
    assert not out.exists() and not out.with_name("m.npz.mining").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--views", 3), "--views goes with --geometry views or both"),
        (("--geometry", "views", "--pairs", 3), "--pairs and --propose are of photos that show the same"),
        (("--geometry", "views", "--propose", "random"), "--pairs and --propose are of photos that show the same"),
        (("--geometry", "lens"), "There is no geometry 'lens'"),
    ],
)
def test_requests_that_contradict_themselves_are_refused(
    photos: Path, cairn: Callable[..., Ran], tmp_path: Path, arguments: tuple[object, ...], sentence: str
) -> None:
    assert sentence in cairn("mine", photos, "--out", tmp_path / "m.npz", *arguments).refused()
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_command_tells_of_views_in_words_and_as_the_contract_has_it(
    photos: Path, cairn: Callable[..., Ran], tmp_path: Path
) -> None:
    command = ("mine", photos, "--out", tmp_path / "m.npz", "--geometry", "views", "--views", 2, "--workers", 1)
    reported = cairn(*command, "--json").json
    assert (reported["proposals"], reported["image_pairs_tried"], reported["image_pairs_kept"], reported["photos"]) == (
        "views",
        2,
        2,
        4,
    )
    assert "2 of 2 image pairs of photos and their views have matches" in cairn(*command).out


# Choice of photos


def test_photos_are_drawn_at_random_from_a_folder_and_together_from_a_collection(
    photos: Path, indexed: Indexed
) -> None:
    source = PhotoSource.open(photos)
    assert source.choose(0, 0).tolist() == [0, 1, 2, 3] and len(source.choose(2, 0)) == 2
    assert len({tuple(source.choose(2, seed)) for seed in range(8)}) > 1
    collection = PhotoSource.open(indexed.folder)
    stems = [path.stem.rpartition("_")[0] for path in collection.paths]
    chosen = collection.choose(6, 0)
    assert len(chosen) == 6 and (np.diff(chosen) > 0).all()
    of = [stems[at] for at in chosen.tolist()]
    # Drawn evenly, six photos would be of nearly as many objects.
    assert len(set(of)) <= 4
    assert collection.choose(10**6, 0).tolist() == list(range(len(stems)))
