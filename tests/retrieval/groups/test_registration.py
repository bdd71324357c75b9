"""Tests of retrieval.groups.registration: copies, parts and rims are distinguished from photos taken a moment later."""

from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from skimage import data

from retrieval.catalogue.schema import ImageRow
from retrieval.groups.links import Link
from retrieval.groups.looks import find_copies, look
from retrieval.groups.registration import DuplicateOptions, Registered, register, register_photos, shown_shares

Picture = NDArray[np.uint8]
OPTIONS = DuplicateOptions()
PICTURES = ("astronaut", "chelsea", "coffee")


def moved(x: float, y: float, scale: float = 1.0) -> NDArray[np.float64]:
    return np.array([[scale, 0, x], [0, scale, y], [0, 0, 1.0]])


def version(picture: Picture, name: str) -> tuple[Picture, NDArray[np.float64]]:
    """A version of a picture, and the map (3, 3) of pixels from the picture to it."""
    height, width = picture.shape[:2]
    if name == "compressed":
        return np.asarray(cv2.imdecode(cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, 25])[1], 1)), moved(
            0, 0
        )
    if name == "small":
        return cv2.resize(picture, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA), moved(0, 0, 0.5)
    if name == "grey":
        return cv2.cvtColor(cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY), cv2.COLOR_GRAY2BGR), moved(0, 0)
    if name == "lighter":
        return (255 * (picture / 255.0) ** 0.7).astype(np.uint8), moved(0, 0)
    if name == "cropped to 80%":
        x, y = width // 10, height // 10
        return picture[y : y + height * 4 // 5, x : x + width * 4 // 5], moved(-x, -y)
    if name == "cropped to half":
        x, y = width // 5, height // 5
        return picture[y : y + height // 2, x : x + width // 2], moved(-x, -y)
    if name == "framed":
        rim = width // 12
        sides = (rim, rim, rim, rim)
        return cv2.copyMakeBorder(picture, *sides, cv2.BORDER_CONSTANT, value=(240, 235, 230)), moved(rim, rim)
    if name == "screenshot":
        screen = np.full((2 * width, width, 3), 20, np.uint8)
        top = (len(screen) - height) // 2
        screen[top : top + height] = picture
        cv2.putText(screen, "12:34", (10, 30), cv2.FONT_HERSHEY_SIMPLEX, 0.8, (255, 255, 255), 2)
        return screen, moved(0, top)
    raise KeyError(name)


def row(number: int, path: Path, picture: Picture) -> ImageRow:
    height, width = picture.shape[:2]
    return ImageRow(number=number, path=str(path), name=path.name, width=width, height=height, features=100)


def related(tmp_path: Path, one: Picture, other: Picture, pixels: NDArray[np.float64]) -> Registered | None:
    """What two pictures are of each other, whose map is known a little wrong."""
    rows = {}
    for number, picture in enumerate((one, other)):
        path = tmp_path / f"{number}.png"
        cv2.imwrite(str(path), picture)
        rows[number] = row(number, path, picture)
    sides = [max(picture.shape) for picture in (one, other)]
    units = np.diag([1 / sides[1], 1 / sides[1], 1]) @ pixels @ np.diag([sides[0], sides[0], 1])
    units[:2, 2] += 0.003
    link = Link(0, 1, 60, tuple(units[:2].ravel().tolist()))
    return register_photos([link], rows, tmp_path / "cache", OPTIONS).get((0, 1))


@pytest.mark.parametrize("picture", PICTURES)
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *((name, Registered("copy", None)) for name in ("compressed", "small", "grey", "lighter")),
        *((name, Registered("part", 1)) for name in ("cropped to 80%", "cropped to half")),
        *((name, Registered("framed", 1)) for name in ("framed", "screenshot")),
    ],
)
def test_versions_of_a_picture_are_known_for_what_they_are(
    tmp_path: Path, picture: str, name: str, expected: Registered
) -> None:
    original = cv2.cvtColor(getattr(data, picture)(), cv2.COLOR_RGB2BGR)
    found = related(tmp_path, original, *version(original, name))
    assert found == expected


def test_no_photo_shows_more_of_another_than_there_is() -> None:
    """A photo on a screen of the same width: three of its sides nearly lie on those of the screen."""
    map_ = (0.5714181654, -2.2e-5, 5e-5, 2.15e-5, 0.571392, 0.285922)
    photo = row(0, Path("photo.png"), np.empty((384, 512, 3), np.uint8))
    screen = row(1, Path("screen.png"), np.empty((896, 512, 3), np.uint8))
    rng = np.random.default_rng(0)
    for _ in range(2000):
        near = tuple((np.array(map_) + rng.normal(0, 3e-5, 6)).tolist())
        assert shown_shares(Link(0, 1, 60, near), photo, screen, OPTIONS) == pytest.approx((1.0, 0.4286), abs=0.01)


def test_what_is_around_a_small_picture_in_a_large_one_is_seen_there(tmp_path: Path) -> None:
    """A screen has more pixels than a photo that was sent: the photo is no part of it."""
    picture = cv2.cvtColor(data.coffee(), cv2.COLOR_RGB2BGR)
    small = cv2.resize(picture, None, fx=0.25, fy=0.25, interpolation=cv2.INTER_AREA)
    screen, map_ = version(picture, "screenshot")
    assert related(tmp_path, small, screen, map_ @ moved(0, 0, 4)) == Registered("framed", 1)


def test_what_surrounds_a_part_may_be_smooth_but_a_rim_is_of_one_colour(tmp_path: Path) -> None:
    """A sky, say, which is darker above than below."""
    picture = cv2.cvtColor(data.coffee(), cv2.COLOR_RGB2BGR)
    height, width = picture.shape[:2]
    sky = np.linspace(60, 220, 2 * height)[:, None, None].repeat(2 * width, 1).repeat(3, 2).astype(np.uint8)
    sky[height // 2 : height // 2 + height, width // 2 : width // 2 + width] = picture
    assert related(tmp_path, picture, sky, moved(width // 2, height // 2)) == Registered("part", 0)


@pytest.mark.parametrize("picture", PICTURES)
@pytest.mark.parametrize("depth", [8.0, 12.0])
def test_photos_taken_a_step_aside_are_other_pictures(tmp_path: Path, picture: str, depth: float) -> None:
    """What is near moves more than what is far, by some pixels."""
    original = cv2.cvtColor(getattr(data, picture)(), cv2.COLOR_RGB2BGR)
    height, width = original.shape[:2]
    down, across = np.mgrid[:height, :width].astype(np.float32)
    shift = depth * np.sin(across / width * 9) * np.sin(down / height * 7)
    aside = cv2.remap(original, across + shift.astype(np.float32), down, cv2.INTER_LINEAR)
    assert related(tmp_path, original, aside, np.eye(3)) is None


def test_different_pictures_are_not_registered(tmp_path: Path) -> None:
    one, other = (cv2.resize(getattr(data, name)(), (400, 300)) for name in ("coffee", "chelsea"))
    assert related(tmp_path, one, other, np.eye(3)) is None
    blank = np.full((300, 400), 128, np.float32)
    assert register(blank, blank, np.eye(2, 3)) is None


@pytest.mark.parametrize(("added", "same"), [(1.0, True), (2.0, False)])
def test_what_compression_adds_to_faint_textures_makes_no_other_picture(added: float, same: bool) -> None:
    generator = np.random.default_rng(8)
    sand = 128 + 6 * cv2.GaussianBlur(generator.normal(0, 1, (320, 480)), (0, 0), 1.5) * 5.3  # of 6 grey levels
    one, other = (
        (sand + added * 2.5 * cv2.GaussianBlur(generator.normal(0, 1, sand.shape), (0, 0), 0.8)).astype(np.float32)
        for _ in range(2)
    )
    registered = register(one, other, np.eye(2, 3))
    assert registered is not None
    assert bool(np.median(registered[0]) >= OPTIONS.median) is same


def test_a_negative_is_known_by_its_look() -> None:
    looks = {}
    for number, name in enumerate(PICTURES):
        grey = cv2.cvtColor(getattr(data, name)(), cv2.COLOR_RGB2GRAY)
        for place, picture in ((number, grey), (10 + number, 255 - grey)):
            found = look(picture)
            assert found is not None
            looks[place] = found
    assert [(copy.pair, copy.kind) for copy in find_copies(looks)] == [
        ((number, 10 + number), "negative") for number in range(len(PICTURES))
    ]
