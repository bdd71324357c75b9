"""The picture of a query and its matches: what is drawn, and where."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image

from index.errors import CairnError
from retrieval.catalogue.photos import rows_of
from retrieval.catalogue.schema import ImageRow
from retrieval.collection.collection import Collection
from retrieval.search.options import SearchOptions
from retrieval.search.picture import _BOX, PictureOptions, check_picture, draw_matches
from retrieval.search.query import Query
from retrieval.search.ranking import Hit
from retrieval.search.searcher import Searcher
from tests.conftest import Indexed
from tests.support.searching import answer_to, read_query

OPTIONS = PictureOptions(tile=320, columns=1, pairs=2)
# Of a view of 640 x 480 pixels.
WIDTH, HEIGHT = 320, 240


@pytest.fixture(scope="module")
def collection(indexed: Indexed) -> Iterator[Collection]:
    with Collection.open(indexed.folder) as opened:
        yield opened


@pytest.fixture(scope="module")
def query(indexed: Indexed, collection: Collection) -> Query:
    return read_query(collection, indexed.photos / "coffee_001.jpg", indexed.boxes["coffee_001"])


@pytest.fixture(scope="module")
def found(collection: Collection, query: Query) -> list[tuple[Query, Hit, ImageRow]]:
    hits = answer_to(query, Searcher(collection, SearchOptions(engine="tf-idf-sp", turns=1))).hits
    rows = collection.catalogue.read(rows_of, [hit.number for hit in hits])
    return [(query, hit, row) for hit, row in zip(hits, rows, strict=True)]


def drawn(path: Path, *arguments: Any, options: PictureOptions = OPTIONS) -> np.ndarray:
    draw_matches(path, *arguments, options)
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB")).astype(int)


def tile(picture: np.ndarray, place: int, options: PictureOptions = OPTIONS) -> tuple[np.ndarray, np.ndarray]:
    """The two photos of a pair; the pictures have one column, and all photos are alike in size."""
    gap = 2 * options.gap
    top = gap + place * (options.caption + HEIGHT + gap) + options.caption
    rows = picture[top : top + HEIGHT]
    right = gap + WIDTH + options.gap
    return rows[:, gap : gap + WIDTH], rows[:, right : right + WIDTH]


def red(photo: np.ndarray) -> np.ndarray:
    """Where the colour of the box is."""
    return (abs(photo - np.array(_BOX)) < 40).all(axis=2)


def thick(mask: np.ndarray) -> np.ndarray:
    return cv2.dilate(mask.astype(np.uint8), np.ones((5, 5), np.uint8)) > 0


def test_the_box_is_drawn_where_it_is_and_where_it_is_found(
    indexed: Indexed, collection: Collection, query: Query, found: list, tmp_path: Path
) -> None:
    no_lines = replace(OPTIONS, lines=0)
    picture = drawn(tmp_path / "out.png", collection.index, found, query, options=no_lines)
    bare = replace(query, box=None)
    without = [(bare, hit, row) for _, hit, row in found]
    plain = drawn(tmp_path / "plain.png", collection.index, without, bare, options=no_lines)
    assert picture.shape == (2 * (240 + 26 + 28) + 28, 28 + 320 + 14 + 320 + 28, 3)
    x0, y0, x1, y1 = query.box
    outline = np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]])
    for place in range(2):
        left, right = tile(np.where(picture == plain, 0, picture), place)
        view = Path(found[place][2].path).stem
        truth = cv2.perspectiveTransform(outline[None].astype(np.float64), indexed.homography("coffee_001", view))[0]
        for photo, corners in ((left, outline), (right, truth)):
            expected = np.zeros((HEIGHT, WIDTH), np.uint8)
            cv2.polylines(expected, [np.rint((corners + 0.5) / 2 - 0.5).astype(np.int32)], True, 1, 2)
            assert red(photo)[expected > 0].mean() > 0.6, view
            assert thick(expected)[red(photo)].mean() > 0.9, view


def test_a_box_is_drawn_within_its_photo_and_not_where_the_map_is_wild(
    collection: Collection, query: Query, found: list, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drawn_over(matrix: np.ndarray) -> np.ndarray:
        monkeypatch.setattr("retrieval.search.picture.homography", lambda *_: matrix)
        picture = drawn(tmp_path / "out.png", collection.index, found[:1], query, options=replace(OPTIONS, lines=0))
        return tile(picture, 0)[1]

    x0, y0, x1, _ = query.box
    needle, above = np.diag([0.02, 1, 1]), np.array([[1, 0, 60 - x0], [0, 1, -y0 - 40], [0, 0, 1]])
    with monkeypatch.context() as patch:
        patch.setattr("retrieval.search.picture.homography", lambda *_: None)
        bare = tile(
            drawn(tmp_path / "bare.png", collection.index, found[:1], query, options=replace(OPTIONS, lines=0)), 0
        )[1]
    assert (drawn_over(needle) == bare).all()
    clipped = drawn_over(above)
    # The upper side lies outside the photo: what is drawn instead runs along the photo's edge.
    across = slice(34, int((60 + x1 - x0) / 2) - 4)
    assert red(np.where(clipped == bare, 0, clipped))[:2, across].any(axis=0).all()


def test_matches_are_drawn_over_the_photos_they_are_of(
    collection: Collection, query: Query, found: list, tmp_path: Path
) -> None:
    picture = drawn(tmp_path / "out.png", collection.index, found, query)
    nothing = [(query, Hit(hit.number, hit.score, hit.view), row) for _, hit, row in found]
    plain = drawn(tmp_path / "plain.png", collection.index, nothing, query)
    assert picture.shape == plain.shape
    for place in range(2):
        left, right = tile(picture, place)
        bare_left, bare_right = tile(plain, place)
        changed = (abs(left - bare_left) > 60).any(axis=2)
        assert changed.any() and (abs(right - bare_right) > 60).any()
        # On the query's side every line begins inside the box, and only outlines of regions reach a little beyond it.
        x0 = int(query.box[0] / 2) - 24
        assert not changed[:, :x0].any()
        # The photo itself is the right one: what is not drawn over is as it is on disk.
        with Image.open(found[place][2].path) as photo:
            small = np.asarray(photo.resize((WIDTH, HEIGHT), Image.Resampling.BOX)).astype(int)
        assert abs(small - bare_right).mean() < 6


def test_each_match_stands_beside_its_own_query(
    indexed: Indexed, collection: Collection, query: Query, found: list, tmp_path: Path
) -> None:
    other = read_query(collection, indexed.photos / "page_001.jpg")
    hit = answer_to(other, Searcher(collection, SearchOptions(engine="tf-idf-sp", turns=1))).hits[0]
    (row,) = collection.catalogue.read(rows_of, [hit.number])
    picture = drawn(tmp_path / "out.png", collection.index, [found[0], (other, hit, row)], query)
    with Image.open(indexed.photos / "page_001.jpg") as photo:
        small = np.asarray(photo.resize((WIDTH, HEIGHT), Image.Resampling.BOX)).astype(int)
    assert np.median(abs(small - tile(picture, 1)[0])) < 6


def test_only_so_many_pairs_are_drawn_and_none_is_read_for_nothing(
    collection: Collection, query: Query, found: list, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []
    from retrieval.search import picture as module

    real = module.read_colour
    monkeypatch.setattr(module, "read_colour", lambda path, options: read.append(path) or real(path, options))
    drawn(tmp_path / "out.jpg", collection.index, found, query)
    assert {Path(path).name for path in read} == {Path(row.path).name for _, _, row in found[:2]} | {"coffee_001.jpg"}


def test_a_photo_that_has_gone_keeps_its_place(
    collection: Collection, query: Query, found: list, tmp_path: Path
) -> None:
    asked, hit, row = found[1]
    (copy,) = collection.catalogue.read(rows_of, [row.number])
    copy.path, copy.name = str(tmp_path / "gone.jpg"), "a name\nof 2 lines, 石 % <b>.jpg"
    picture = drawn(tmp_path / "out.png", collection.index, [(asked, hit, copy)], query)
    right = tile(picture, 0)[1]
    assert (np.median(right.reshape(-1, 3), axis=0) == 220).all()


def test_no_match_shows_the_query_alone(collection: Collection, query: Query, tmp_path: Path) -> None:
    picture = drawn(tmp_path / "out.png", collection.index, [], query)
    assert picture.shape == (240 + 26 + 56, 320 + 56, 3)
    assert red(picture).any()


@pytest.mark.parametrize("name", ["out.gif", "out", "out.jpg.txt", "missing/out.jpg"])
def test_a_name_that_cannot_be_written_is_refused_beforehand(tmp_path: Path, name: str) -> None:
    with pytest.raises(CairnError):
        check_picture(tmp_path / name)


def test_a_picture_that_cannot_be_written_is_refused(collection: Collection, query: Query, tmp_path: Path) -> None:
    (tmp_path / "folder.jpg").mkdir()
    with pytest.raises(CairnError, match="cannot be written"):
        draw_matches(tmp_path / "folder.jpg", collection.index, [], query)
    shutil.rmtree(tmp_path / "folder.jpg")
    for suffix in ("jpg", "JPEG", "PNG"):
        path = tmp_path / f"out.{suffix}"
        check_picture(path)
        draw_matches(path, collection.index, [], query)
        with Image.open(path) as picture:
            assert picture.format == {"jpg": "JPEG", "JPEG": "JPEG", "PNG": "PNG"}[suffix]
