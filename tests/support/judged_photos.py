"""Small photos, some of the same picture, for tests of the judge."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from retrieval.collection.collection import Collection
from retrieval.collection.options import CollectionOptions
from retrieval.indexing.adding import index_photos
from tests.support.made_once import made_once
from tests.support.picture_views import write_views

PICTURES = {"astronaut": 3, "chelsea": 3, "coffee": 3, "rocket": 3}
MANY = dict.fromkeys((*PICTURES, "camera", "coins", "immunohistochemistry", "hubble_deep_field"), 2)
APART = dict.fromkeys(PICTURES, 1)


@contextmanager
def judged_collection(factory: pytest.TempPathFactory) -> Iterator[Collection]:
    """A collection of `PICTURES`, made once in a run: a copy of its own, open."""
    made = made_once(factory, "judged", _make_judged)
    folder = Path(shutil.copytree(made, factory.mktemp("judged") / made.name))
    with Collection.open(folder) as collection:
        yield collection


def _make_judged(folder: Path) -> Path:
    with collection_of(folder, PICTURES, words=200) as collection:
        return collection.folder


@contextmanager
def collection_of(folder: Path, pictures: Mapping[str, int], **options: object) -> Iterator[Collection]:
    """An open collection of views of pictures, written next to it."""
    (folder / "photos").mkdir(parents=True)
    write_views(folder / "photos", pictures)
    with Collection.create(folder / "photos.cairn", CollectionOptions(**options)) as collection:  # type: ignore[arg-type]
        index_photos(collection, [folder / "photos"])
    with Collection.open(folder / "photos.cairn") as collection:
        yield collection
