"""Small photos, some of the same picture, for tests of the judge."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from retrieval.collection.collection import Collection
from retrieval.collection.options import CollectionOptions
from retrieval.indexing.adding import index_photos
from tests.support.picture_views import write_views

PICTURES = {"astronaut": 3, "chelsea": 3, "coffee": 3, "rocket": 3}
MANY = dict.fromkeys((*PICTURES, "camera", "coins", "immunohistochemistry", "hubble_deep_field"), 2)
APART = dict.fromkeys(PICTURES, 1)


@contextmanager
def collection_of(folder: Path, pictures: Mapping[str, int], **options: object) -> Iterator[Collection]:
    """An open collection of views of pictures, written next to it."""
    (folder / "photos").mkdir(parents=True)
    write_views(folder / "photos", pictures)
    with Collection.create(folder / "photos.cairn", CollectionOptions(**options)) as collection:  # type: ignore[arg-type]
        index_photos(collection, [folder / "photos"])
    with Collection.open(folder / "photos.cairn") as collection:
        yield collection
