"""Collections whose work is done by the workers of a cluster, in Python: the same as on one machine."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import cairn as library
from index.cluster.connection import Cluster
from index.errors import CairnError
from tests.conftest import Indexed

pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with Cluster.connect("local:2") as connected:
        yield str(connected.client.scheduler_info()["address"])


def test_a_collection_is_searched_by_a_cluster(indexed: Indexed, address: str) -> None:
    found = []
    for where in ({}, {"cluster": address, "shards": 2}):
        with library.open(indexed.folder, **where) as collection:  # type: ignore[arg-type]
            found.append(collection.search("coffee_001.jpg", top=4).to_dict())
            assert found[-1].pop("seconds")
    assert found[0] == found[1] and found[0]["results"]


@pytest.mark.slow
def test_photos_are_added_and_grouped_by_a_cluster(indexed: Indexed, address: str, tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    for photo in sorted(indexed.photos.glob("c*_00[1-3].jpg")):
        shutil.copy(photo, photos)
    tables = []
    for name, where in (("here", {}), ("there", {"cluster": address})):
        folder = tmp_path / name
        library.create(folder, words=50).close()
        with library.open(folder, **where) as collection:
            added = collection.add(photos, workers=1)
            assert added.added == len(collection) and not added.failed
            tables.append(collection.group(8, workers=1).save_table(tmp_path / f"{name}.csv").read_text())
    assert tables[0] == tables[1] and len(tables[0].splitlines()) > 1


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        ({"cluster": "nonsense"}, "'nonsense' is no address of a cluster"),
        ({"shards": 2}, "shards says how a collection is shared among workers: name some with cluster"),
        ({"storage": "s3://bucket"}, "storage says where the workers of a cluster find files: name one with cluster"),
        ({"cluster": "local:1", "shards": -1}, "shards is 0 at least, and not -1"),
        ({"cluster": "local:1", "shards": "two"}, "shards is a whole number, and not 'two'"),
    ],
)
def test_a_wrong_cluster_is_one_sentence(indexed: Indexed, where: dict[str, object], sentence: str) -> None:
    with pytest.raises(CairnError, match=sentence):
        library.open(indexed.folder, **where)  # type: ignore[arg-type]
