"""What killed runs leave is removed, and nothing that could be anybody's photos."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from index.errors import CairnError
from retrieval.catalogue.settings import reserve_numbers
from retrieval.collection.collection import Collection
from retrieval.collection.layout import SEAL, SEGMENTS
from retrieval.collection.locking import CollectionLocked
from retrieval.collection.options import CollectionOptions
from retrieval.collection.stale_files import remove_leftovers
from retrieval.indexing.adding import index_photos
from retrieval.indexing.compaction import compact
from retrieval.integrity.check import check_collection
from tests.conftest import Indexed
from tests.support.hostile import photo

Index = Callable[[str], int]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "c.cairn"


@pytest.fixture
def index(folder: Path, tmp_path: Path) -> Index:
    """Adds a photo in a segment of its own to a collection whose catalogue is elsewhere."""

    def add(name: str) -> int:
        photos = tmp_path / name
        photos.mkdir()
        photo(name).save(photos / f"{name}.png")
        with Collection.create(
            folder, CollectionOptions(words=40, signature="none"), catalogue=address_of(folder)
        ) as collection:
            return index_photos(collection, [photos], workers=1).added

    return add


def address_of(folder: Path) -> str:
    return f"sqlite:///{folder.parent / 'elsewhere.sqlite'}"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / SEGMENTS).iterdir())


def test_a_killed_runs_segments_are_removed(folder: Path, index: Index) -> None:
    index("coffee")
    with Collection.open(folder, catalogue=address_of(folder)) as collection:
        assert collection.catalogue.write(reserve_numbers, 1) == 1
        shutil.copytree(folder / SEGMENTS / "000001", folder / SEGMENTS / "000007")  # as where it was replaced
        (folder / SEGMENTS / "000008").mkdir()  # half removed
        (folder / SEGMENTS / "000009.1234.writing").mkdir()
        remove_leftovers(collection)
    assert names(folder) == ["000001"]


def test_an_older_catalogue_removes_nothing(folder: Path, index: Index, tmp_path: Path) -> None:
    index("coffee")
    file = tmp_path / "elsewhere.sqlite"
    older = shutil.copyfile(file, tmp_path / "older.sqlite")
    index("chelsea")
    for path in tmp_path.glob("elsewhere.sqlite*"):
        path.unlink()
    shutil.copyfile(older, file)
    (folder / SEAL).unlink()
    with pytest.raises(CairnError, match=r"000002 holds photos .* older copy"):
        index("rocket")
    assert names(folder) == ["000001", "000002"]
    report = check_collection(folder, catalogue=address_of(folder))
    assert any("000002 is not one of the collection's" in note for note in report.notes)


def test_two_copies_with_one_catalogue_remove_nothing_of_each_other(folder: Path, index: Index) -> None:
    index("coffee")
    index("chelsea")
    again = Path(shutil.copytree(folder, folder.with_name("again.cairn")))
    with Collection.open(again, catalogue=address_of(folder)) as collection:
        compact(collection)
    assert names(again) == ["000003"]
    with pytest.raises(CairnError, match="other segments than its catalogue names"):
        index("rocket")
    assert names(folder) == ["000001", "000002"]


def test_where_a_segment_is_missing_the_others_stay(folder: Path, index: Index) -> None:
    index("coffee")
    index("chelsea")
    (folder / SEGMENTS / "000002").rename(folder / SEGMENTS / "000005")
    with Collection.open(folder, catalogue=address_of(folder)) as collection:
        remove_leftovers(collection)
    assert names(folder) == ["000001", "000005"]


def test_compact_gives_back_the_room_of_stopped_runs(indexed: Indexed, folder: Path) -> None:
    shutil.copytree(indexed.folder, folder)
    for name in ("retrain", "staging"):
        (folder / name / "features").mkdir(parents=True)
        (folder / name / "features" / "1.npy").write_bytes(b"large")
    report = check_collection(folder)
    assert report.ok
    assert [("compact removes it" in note, "again goes on" in note) for note in report.notes[-2:]] == [(True, True)] * 2
    with Collection.open(folder) as collection:
        with collection.locked(), pytest.raises(CollectionLocked):
            compact(collection)
        assert (folder / "retrain").exists()
        compact(collection)
    assert not (folder / "retrain").exists() and not (folder / "staging").exists()
