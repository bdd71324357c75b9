"""The first photos of a new collection can be searched early, and in the end all is as if they had not been."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import retrieval.indexing.adding as adding
import retrieval.indexing.retraining as retraining
from index.errors import CairnError
from retrieval.catalogue.metadata_store import import_values, metadata_of
from retrieval.catalogue.photos import all_indexed, count_indexed
from retrieval.collection.collection import Collection
from retrieval.collection.drift import measure_drift
from retrieval.collection.layout import EARLY
from retrieval.collection.options import CollectionOptions
from retrieval.indexing.add_options import AddOptions
from retrieval.indexing.adding import index_photos
from retrieval.indexing.compaction import compact
from retrieval.integrity.check import check_collection
from retrieval.search.options import SearchOptions
from tests.support.hostile import photo
from tests.support.written_photos import Album, rankings

PHOTOS = {f"p{i:02}": i for i in range(14)}  # p10 has no features
FIRST = 4
OPTIONS = CollectionOptions(words=20, iterations=4, batch=5)


class _Stopped(Exception):
    pass


@pytest.fixture
def photos(album: Album, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    album.put(**PHOTOS)
    monkeypatch.setattr(adding, "FIRST", FIRST)
    monkeypatch.setattr(adding, "FEWEST", 8)
    return [album.photos]


def index(
    folder: Path, photos: list[Path], options: CollectionOptions = OPTIONS, *, early: bool = False, **more: Any
) -> int:
    with Collection.create(folder, options) as collection:
        return index_photos(collection, photos, AddOptions(early=early), **more).added


def state(folder: Path) -> dict[str, Any]:
    """What a collection contains, in whichever segments."""
    with Collection.open(folder) as collection:
        rows = collection.catalogue.read(all_indexed)
        words = {row.number: collection.index.images.features(row.number).words.tolist() for row in rows}
        numbers = [row.number for row in rows if row.features]
        return {
            "photos": [(row.number, row.name, row.features, row.quantisation_error) for row in rows],
            "words": words,
            "vocabulary": collection.vocabulary.fingerprint,
            "trained": measure_drift(collection).trained,
            "answers": rankings(collection, numbers[:5], SearchOptions()),
            "staged": (folder / "staging").exists(),
            "damage": check_collection(folder).damaged,
        }


def stopping_at(moment: int) -> Callable[[str, int, int], None]:
    """Progress that stops the run at its call of this number, counted from 1."""
    left = [moment]

    def tell(_step: str, _done: int, _of: int) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise _Stopped

    return tell


@pytest.mark.parametrize("sample", [0, 6])
def test_the_result_is_the_same(photos: list[Path], tmp_path: Path, sample: int) -> None:
    options = CollectionOptions(words=20, iterations=4, batch=5, sample=sample)
    seen: list[tuple[int, bool, int]] = []

    def look(step: str, done: int, _of: int) -> None:
        if step == "extract" and done > FIRST:
            with Collection.open(tmp_path / "early.cairn") as collection:
                found = rankings(collection, [0], SearchOptions())[0]
                seen.append((collection.catalogue.read(count_indexed), collection.has_early_words, len(found)))

    assert index(tmp_path / "early.cairn", photos, options, early=True, progress=look) == len(PHOTOS)
    count, is_early, found = seen[0]
    assert (count, is_early) == (FIRST, True) and found >= 1
    assert index(tmp_path / "plain.cairn", photos, options) == len(PHOTOS)
    assert state(tmp_path / "early.cairn") == state(tmp_path / "plain.cairn")
    assert not (tmp_path / "early.cairn" / EARLY).exists()


def test_few_photos_are_not_added_twice(photos: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adding, "FEWEST", len(PHOTOS) + 1)
    monkeypatch.setattr(adding, "make_early_vocabulary", None)
    assert index(tmp_path / "c.cairn", photos, early=True) == len(PHOTOS)


def test_first_photos_without_features_are_no_obstacle(album: Album, photos: list[Path], tmp_path: Path) -> None:
    album.put(a0=10, a1=21, a2=32, a3=43)
    assert index(tmp_path / "c.cairn", photos, early=True) == len(PHOTOS) + 4
    assert not state(tmp_path / "c.cairn")["damage"]


def test_a_run_that_was_stopped_anywhere_is_resumed(photos: list[Path], tmp_path: Path) -> None:
    index(tmp_path / "plain.cairn", photos)
    whole, early = state(tmp_path / "plain.cairn"), 0
    for moment in range(1, 200, 4):
        folder = tmp_path / f"{moment}.cairn"
        try:
            index(folder, photos, early=True, progress=stopping_at(moment))
        except _Stopped:
            with Collection.open(folder) as collection:
                early += collection.has_early_words
            index(folder, photos)  # as a command without the option may resume it
            assert state(folder) == whole, moment
        else:
            break
    assert early > 1


@pytest.mark.parametrize("place", ["replace_segments", "publish_folder", "write_photos"])
def test_decisions_outlast_a_run_that_failed_as_words_were_replaced(
    photos: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    folder = tmp_path / "c.cairn"

    def fail(*_: Any, **__: Any) -> None:
        raise _Stopped

    with monkeypatch.context() as patch, pytest.raises(_Stopped):
        patch.setattr(retraining, place, fail)
        index(folder, photos, early=True)
    with Collection.open(folder) as collection:
        assert collection.has_early_words and collection.catalogue.read(count_indexed) == FIRST
        collection.catalogue.write(import_values, {2: {"title": ["Kept"]}})
    assert not check_collection(folder).damaged
    assert index(folder, photos, early=True) == len(PHOTOS) - FIRST
    with Collection.open(folder) as collection:
        assert collection.catalogue.read(metadata_of, [2])[2].title == "Kept"
    index(tmp_path / "plain.cairn", photos)
    assert state(folder) == state(tmp_path / "plain.cairn")


def test_a_run_that_runs_out_of_time_counts_the_first_photos(photos: list[Path], tmp_path: Path) -> None:
    with Collection.create(tmp_path / "c.cairn", OPTIONS) as collection:
        report = index_photos(collection, photos, AddOptions(early=True, time_limit=1e-9))
        assert (report.added, report.left) == (FIRST, len(PHOTOS) - FIRST)
        while report.left:
            before = report.left
            report = index_photos(collection, photos, AddOptions(early=True, time_limit=1e-9))
            assert report.left == before - report.added == len(PHOTOS) - collection.catalogue.read(count_indexed)
    index(tmp_path / "plain.cairn", photos)
    assert state(tmp_path / "c.cairn") == state(tmp_path / "plain.cairn")


def test_the_files_of_the_first_photos_need_not_be_there_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their features are staged: nothing is lost if the drive is away as the run is resumed with other photos."""
    monkeypatch.setattr(adding, "FIRST", 2)
    monkeypatch.setattr(adding, "FEWEST", 3)
    first, others = tmp_path / "first", tmp_path / "others"
    for folder, names in ((first, ("coffee", "rocket", "chelsea")), (others, ("astronaut",))):
        folder.mkdir()
        for name in names:
            photo(name, (160, 120)).save(folder / f"{name}.png")

    def fail(*_: Any, **__: Any) -> None:
        raise _Stopped

    options = CollectionOptions(words=30, iterations=2)
    with monkeypatch.context() as patch, pytest.raises(_Stopped):
        patch.setattr(retraining, "replace_segments", fail)
        index(tmp_path / "c.cairn", [first], options, early=True)
    first.rename(tmp_path / "away")
    assert index(tmp_path / "c.cairn", [others], options) == 1
    with Collection.open(tmp_path / "c.cairn") as collection:
        assert not collection.has_early_words
        assert [row.name for row in collection.catalogue.read(all_indexed)] == [
            *("chelsea.png", "coffee.png", "astronaut.png"),
        ]
        assert collection.vocabulary.trained_on.startswith("3 photos")
    assert not check_collection(tmp_path / "c.cairn").damaged


def test_an_early_vocabulary_is_not_taken_for_a_final_one(
    photos: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise _Stopped

    with monkeypatch.context() as patch, pytest.raises(_Stopped):
        patch.setattr(retraining, "replace_segments", fail)
        index(tmp_path / "c.cairn", photos, CollectionOptions(), early=True)
    with Collection.open(tmp_path / "c.cairn") as collection:
        drift = measure_drift(collection)
        assert drift.fit == "unknown" and "first photos" in drift.advice
        compact(collection)
        assert (collection.folder / "staging").is_dir()  # their files may be gone by the next run
    with (
        Collection.create(tmp_path / "other.cairn", CollectionOptions()) as other,
        pytest.raises(CairnError, match="first photos"),
    ):
        index_photos(other, photos, AddOptions(vocabulary=tmp_path / "c.cairn"))
    shutil.rmtree(tmp_path / "c.cairn" / "staging")
    (photos[0] / "p02.jpg").write_bytes(b"photo 7\n")
    with pytest.raises(CairnError, match=r"p02\.jpg.* was added with provisional words"):
        index(tmp_path / "c.cairn", photos)


def test_what_a_kill_after_the_switch_left_is_removed(photos: list[Path], tmp_path: Path) -> None:
    index(tmp_path / "c.cairn", photos, early=True)
    (tmp_path / "c.cairn" / "retrain").mkdir()
    (tmp_path / "c.cairn" / "retrain" / "plan.json").write_text(f'{{"before": "{EARLY}"}}')
    index(tmp_path / "c.cairn", photos)
    assert not (tmp_path / "c.cairn" / "retrain").exists()
