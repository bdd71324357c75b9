"""A panorama fourteen times as long as high, of photographs side by side, and pieces of it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import cairn
from eval.demo.synthetic import photograph
from index.segments.description import ELONGATIONS
from retrieval.catalogue.photos import all_indexed, numbers_of_names
from retrieval.collection.collection import Collection
from retrieval.collection.options import CollectionOptions
from retrieval.indexing.adding import index_photos
from retrieval.indexing.compaction import compact
from retrieval.indexing.retrain_options import RetrainOptions
from retrieval.indexing.retraining import retrain
from retrieval.photos.options import ImageOptions, new_collection
from retrieval.search.engines.contract import load_engine
from retrieval.search.engines.registry import ENGINES, VerifiedPhotos
from retrieval.search.options import SearchOptions
from tests.support.searching import read_query

FILES = (
    *("astronaut.png", "camera.png", "chelsea.png", "coffee.png", "coins.png"),
    *("gravel.png", "motorcycle_left.png", "page.png", "rocket.jpg", "ihc.png"),
)
HIGH, WIDE, SIDE = 500, 700, 500
LENGTH = WIDE * len(FILES)
PIECE = 440
ELONGATION = LENGTH / (2 * HIGH)
OPTIONS = CollectionOptions(
    words=1500, iterations=2, batch=4, image=new_collection(SIDE), keep_descriptors=True, signature="none"
)
MIDDLES = [WIDE * place + WIDE // 2 for place in range(len(FILES))]


def picture(file: str) -> Image.Image:
    return Image.fromarray(photograph(file).astype(np.uint8)).convert("RGB")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The panorama alone in a folder; photographs, pieces of it, and two others of the same view."""
    folder = tmp_path_factory.mktemp("panoramas")
    for name in ("long", "photographs", "pieces", "shifted"):
        (folder / name).mkdir()
    parts = []
    for file in FILES:
        image = picture(file)
        image.save(folder / "photographs" / f"{Path(file).stem}.png", compress_level=1)
        parts.append(np.asarray(image.resize((WIDE, HIGH), Image.Resampling.LANCZOS)))
    panorama = Image.fromarray(np.concatenate(parts, axis=1))
    panorama.save(folder / "long" / "panorama.jpg", quality=92)
    panorama.crop((WIDE, 0, LENGTH, HIGH)).save(folder / "shifted" / "later.jpg", quality=80)
    for place, middle in enumerate(MIDDLES):
        piece = panorama.crop((middle - HIGH // 2, 0, middle + HIGH // 2, HIGH)).resize((PIECE, PIECE))
        piece.save(folder / "pieces" / f"{place}.jpg", quality=85)
    return folder


def indexed(place: Path, photos: list[Path], options: CollectionOptions = OPTIONS) -> Path:
    with Collection.create(place, options) as collection:
        index_photos(collection, photos, workers=1)
    return place


@pytest.fixture(scope="module")
def made(folder: Path) -> Path:
    """The panorama among photographs that are not in it, in another segment than the second half of them."""
    other = folder / "others"
    other.mkdir()
    for name in ("retina.jpg", "moon.png", "brick.png", "grass.png", "hubble_deep_field.jpg", "clock_motion.png"):
        picture(name).save(other / f"{Path(name).stem}.png", compress_level=1)
    return indexed(folder / "made.cairn", [folder / "long", other])


@pytest.fixture(scope="module")
def searched(made: Path) -> Iterator[cairn.Collection]:
    with cairn.open(made) as collection:
        yield collection


@pytest.mark.parametrize("place", range(len(FILES)))
def test_a_piece_is_found_where_it_lies(searched: cairn.Collection, folder: Path, place: int) -> None:
    best = searched.search(folder / "pieces" / f"{place}.jpg")[0]
    assert best.name == "panorama.jpg" and best.found and best.homography is not None
    edge = PIECE - 0.5
    corners = np.array([[-0.5, -0.5, 1], [edge, -0.5, 1], [edge, edge, 1], [-0.5, edge, 1]]) @ best.homography.T
    left, right = MIDDLES[place] - HIGH // 2 - 0.5, MIDDLES[place] + HIGH // 2 - 0.5
    expected = [[left, -0.5], [right, -0.5], [right, HIGH - 0.5], [left, HIGH - 0.5]]
    assert np.abs(corners[:, :2] / corners[:, 2:] - expected).max() < 12


@pytest.mark.slow
def test_read_as_any_other_photo_it_is_hardly_found(folder: Path, made: Path, tmp_path: Path) -> None:
    """What the test above would not notice if panoramas were read in narrow strips, as in earlier versions."""
    plain = replace(OPTIONS, image=ImageOptions(max_side=SIDE))
    place = indexed(tmp_path / "plain.cairn", [folder / "long", folder / "others"], plain)
    with cairn.open(place) as collection:
        answers = [collection.search(folder / "pieces" / f"{piece}.jpg") for piece in range(len(FILES))]
    assert sum(bool(one) and one[0].name == "panorama.jpg" and one[0].found for one in answers) < len(FILES) / 2


@pytest.mark.slow
def test_photographs_and_other_panoramas_are_found_by_it(folder: Path, tmp_path: Path) -> None:
    place = indexed(tmp_path / "reverse.cairn", [folder / "photographs", folder / "shifted"])
    with cairn.open(place) as collection:
        found = {one.name: one for one in collection.search(folder / "long" / "panorama.jpg", top=30) if one.found}
    assert len(found) >= len(FILES)  # one photograph may be missed
    matrix = found["later.jpg"].homography
    assert matrix is not None
    np.testing.assert_allclose(matrix / matrix[2, 2], [[1, 0, -WIDE], [0, 1, 0], [0, 0, 1]], atol=4)


def test_every_engine_that_verifies_finds_a_piece(made: Path, folder: Path) -> None:
    with Collection.open(made) as collection:
        number = collection.catalogue.read(numbers_of_names, ["panorama.jpg"])["panorama.jpg"]
        view = read_query(collection, folder / "pieces" / "0.jpg", signed=3).views[0]
        for name, entry in ENGINES.items():
            if entry.verified is VerifiedPhotos.NONE or entry.signed:
                continue
            seen = load_engine(name)(collection, SearchOptions(engine=name)).verify(view, number)
            assert seen.transform is not None, name
            middle = seen.transform @ [0.5, 0.5, 1]
            np.testing.assert_allclose(middle * LENGTH, [MIDDLES[0], HIGH / 2], atol=25)


def elongations(collection: Collection) -> dict[str | None, float]:
    rows = collection.catalogue.read(all_indexed)
    return {row.name: collection.index.images.features(row.number).elongation for row in rows}


@pytest.mark.slow
def test_elongations_stay_with_their_photos(made: Path, folder: Path, tmp_path: Path) -> None:
    """Whatever is done to segments; those of other photos alone have no file for them."""
    place = indexed(tmp_path / "c.cairn", [folder / "long", folder / "others"])
    with Collection.open(place) as collection:
        expected = dict.fromkeys(elongations(collection), 1.0) | {"panorama.jpg": ELONGATION}
        assert elongations(collection) == expected
        assert sorted((one.folder / f"{ELONGATIONS}.npy").exists() for one in collection.segments) == [False, True]
        assert compact(collection).segments == {"before": 2, "after": 1}
        assert elongations(collection) == expected
    with Collection.open(place) as collection:
        retrain(collection, RetrainOptions(words=200))
    with Collection.open(place) as collection:
        assert elongations(collection) == expected
        assert read_query(collection, folder / "long" / "panorama.jpg").views[0].elongation == ELONGATION
        assert read_query(collection, folder / "pieces" / "0.jpg").views[0].elongation == 1
