"""Copies in an archive that the test makes: originals, and of each the versions that people have of a photo."""

import os
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from retrieval.catalogue.photos import all_indexed
from retrieval.collection.collection import Collection
from retrieval.collection.options import CollectionOptions
from retrieval.commands.options import cores
from retrieval.groups.groups import group_photos
from retrieval.indexing.adding import index_photos

DATASETS = Path(os.environ.get("CAIRN_DATASETS") or "nowhere")
SIDE = 512

Picture = NDArray[np.uint8]


def framed(picture: Picture) -> Picture:
    rim = picture.shape[1] // 12
    return np.asarray(cv2.copyMakeBorder(picture, *[rim] * 4, cv2.BORDER_CONSTANT, value=(235, 238, 240)), np.uint8)


def screenshot(picture: Picture) -> Picture:
    """The picture on the screen of a phone, between bars with the time and a line of text."""
    height, width = picture.shape[:2]
    screen = np.full((height + width, width, 3), 18, np.uint8)
    screen[width // 2 : width // 2 + height] = picture
    cv2.putText(screen, "12:34", (12, 34), cv2.FONT_HERSHEY_SIMPLEX, 0.8, (255, 255, 255), 2)
    cv2.putText(screen, "Reply", (12, len(screen) - 24), cv2.FONT_HERSHEY_SIMPLEX, 0.7, (200, 200, 200), 1)
    return screen


def captioned(picture: Picture) -> Picture:
    written = picture.copy()
    place = (picture.shape[1] // 20, picture.shape[0] * 19 // 20)
    cv2.putText(written, "Holiday 1998", place, cv2.FONT_HERSHEY_SIMPLEX, 1, (60, 220, 250), 2)
    return written


def cropped(part: float) -> Callable[[Picture], Picture]:
    def crop(picture: Picture) -> Picture:
        height, width = picture.shape[:2]
        top, left = int(height * (1 - part) * 0.4), int(width * (1 - part) * 0.6)
        return picture[top : top + int(height * part), left : left + int(width * part)]

    return crop


def scaled(factor: float, how: int) -> Callable[[Picture], Picture]:
    return lambda picture: np.asarray(cv2.resize(picture, None, fx=factor, fy=factor, interpolation=how), np.uint8)


# By name: what each is of its original, and how it is made.
VERSIONS: dict[str, tuple[str, Callable[[Picture], Picture]]] = {
    "same": ("copy", lambda picture: picture),  # its file is copied
    "saved again": ("copy", lambda picture: picture),
    "smaller": ("copy", scaled(0.5, cv2.INTER_AREA)),
    "larger": ("copy", scaled(1.5, cv2.INTER_CUBIC)),
    "grey": ("grey", lambda picture: np.dstack([cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY)] * 3)),
    "toned": ("copy", lambda picture: (255 * (picture / 255.0) ** [0.75, 0.7, 0.65]).astype(np.uint8)),
    "captioned": ("copy", captioned),
    "cut to 80%": ("part", cropped(0.8)),
    "cut to 50%": ("part", cropped(0.5)),
    "framed": ("framed", framed),
    "screenshot": ("framed", screenshot),
    "turned": ("turned", lambda picture: np.ascontiguousarray(np.rot90(picture))),
    "mirrored": ("turned", lambda picture: np.ascontiguousarray(picture[:, ::-1])),
    "negative": ("negative", lambda picture: 255 - picture),
}
QUALITIES = {"saved again": 60, "smaller": 85}


def drawn(number: int) -> Picture:
    """A picture of many shapes before hills and clouds, which no two numbers have in common."""
    rng = np.random.default_rng(number)
    height, width = SIDE * 3 // 4, SIDE
    picture = np.zeros((height, width, 3), np.float32)
    for cells in (3, 7, 15, 40, 120):
        noise = rng.normal(size=(cells * 3 // 4 + 1, cells, 3)).astype(np.float32)
        picture += cv2.resize(noise, (width, height), interpolation=cv2.INTER_CUBIC) * (24 / np.sqrt(cells / 3))
    picture = np.clip(picture + rng.uniform(90, 160, 3).astype(np.float32), 0, 255).astype(np.uint8)
    for _ in range(60):
        corners = rng.uniform((0, 0), (width, height)) + rng.normal(0, rng.uniform(10, 60), (rng.integers(3, 7), 2))
        hull = cv2.convexHull(corners.astype(np.int32))
        cv2.fillConvexPoly(picture, hull, rng.uniform(0, 255, 3).tolist(), lineType=cv2.LINE_AA)
    return picture


def real(number: int) -> Picture:
    """An everyday photo of the datasets; no two show the same."""
    if not (DATASETS / "distractors").is_dir():
        pytest.skip("CAIRN_DATASETS names no folder of real photos")
    path = sorted((DATASETS / "distractors").glob("*.jpg"))[number * 10]
    picture = cv2.imread(str(path))
    assert picture is not None
    factor = SIDE / max(picture.shape)
    return np.asarray(cv2.resize(picture, None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA), np.uint8)


def make_archive(folder: Path, originals: int, original: Callable[[int], Picture]) -> None:
    for number in range(originals):
        home = folder / f"{number:02d}"
        home.mkdir(parents=True)
        picture = original(number)
        cv2.imwrite(str(home / "original.jpg"), picture, [cv2.IMWRITE_JPEG_QUALITY, 92])
        for name, (_, make) in VERSIONS.items():
            cv2.imwrite(str(home / f"{name}.jpg"), make(picture), [cv2.IMWRITE_JPEG_QUALITY, QUALITIES.get(name, 90)])
        (home / "same.jpg").write_bytes((home / "original.jpg").read_bytes())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("originals", "original"),
    [(12, drawn), pytest.param(60, real, marks=pytest.mark.photos)],
)
def test_versions_of_a_photo_are_listed_under_their_kinds_and_no_others(
    tmp_path: Path, originals: int, original: Callable[[int], Picture]
) -> None:
    make_archive(tmp_path / "photos", originals, original)
    with Collection.create(tmp_path / "archive.cairn", CollectionOptions()) as archive:
        index_photos(archive, [tmp_path / "photos"], workers=cores())
        found = group_photos(archive, workers=cores())
        names = {row.number: row.name.removesuffix(".jpg").split("/") for row in archive.catalogue.read(all_indexed)}
    assert len(names) == originals * (1 + len(VERSIONS))
    repeats = {copy: first for one in found.groups for copy, first in one.duplicates.items()}
    kinds = {copy: kind for one in found.groups for copy, kind in one.kinds.items()}
    assert [pair for pair in repeats.items() if names[pair[0]][0] != names[pair[1]][0]] == []
    assert [one.similar for one in found.groups if one.similar] == []

    expected = {name: kind for name, (kind, _) in VERSIONS.items()} | {"original": "copy"}
    assert [(names[copy], kind) for copy, kind in kinds.items() if kind != expected[names[copy][1]]] == []
    assert {expected[names[first][1]] for first in repeats.values()} == {"copy"}
    unlisted = [names[number] for number in names.keys() - repeats.keys() - set(repeats.values())]
    assert len(set(repeats.values())) == originals and unlisted == []
