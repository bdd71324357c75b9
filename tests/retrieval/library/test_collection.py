"""The Python interface of a collection: photos of every kind in, small objects out, as the command line has them."""

import copy
import dataclasses
import gc
import json
import pickle
import shutil
import tempfile
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import cairn as library
from retrieval.library import photos
from tests.conftest import Indexed


@pytest.fixture
def copied(indexed: Indexed, tmp_path: Path) -> Path:
    return Path(shutil.copytree(indexed.folder, tmp_path / "copy.cairn"))


def _plain(answer: Any) -> list[dict[str, Any]]:
    return [one.to_dict() for one in answer]


def test_a_photo_is_found_the_same_however_it_is_given(indexed: Indexed) -> None:
    name = "cat_001.jpg"
    path = indexed.photos / name
    with library.open(indexed.folder) as collection:
        photo = collection.photo(name)
        expected = _plain(collection.search(name, top=5))
        given = [path, str(path), path.read_bytes(), photo, photo.number, collection.search(name)[0]]
        for one in given:
            assert _plain(collection.search(one, top=5)) == expected, type(one)
        # The pixels of a JPEG file are another file's: what is extracted from them finds the same photos.
        pixels = np.asarray(Image.open(path))
        for image in (
            Image.open(path),
            pixels,
            pixels / 255,
            np.dstack([pixels, np.full(pixels.shape[:2], 255, np.uint8)]),
        ):
            answer = collection.search(image, top=5)
            assert answer.query == "image"
            assert [one.name for one in answer.found] == [one["name"] for one in expected if one["found"]]


@pytest.mark.slow
def test_images_in_memory_leave_no_files(indexed: Indexed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with library.open(indexed.folder) as collection:
        answer = collection.search((indexed.photos / "cat_001.jpg").read_bytes(), turns=1)
        assert len(list(tmp_path.iterdir())) == 1  # which a picture of the answer needs
        answer.save_picture(indexed.folder.parent / "picture.jpg")
        del answer
        gc.collect()
        assert not list(tmp_path.iterdir())
        with pytest.raises(library.PhotoUnusable, match=r"^The query 'image' cannot be used: it is not a photo"):
            collection.search(b"no photo")
        gc.collect()
        assert not list(tmp_path.iterdir())


def test_an_answer_is_what_the_command_prints(indexed: Indexed, cairn: Any) -> None:
    box = tuple(round(value) for value in indexed.boxes["cat_001"])
    printed = cairn("query", indexed.folder, "cat_001.jpg", "--box", *box, "--top", 4, "--json").json
    with library.open(indexed.folder) as collection:
        answer = collection.search("cat_001.jpg", box, top=4)
        reported = answer.to_dict()
        assert {**reported, "seconds": 0} == {**printed, "seconds": 0}
        assert {**collection.info().to_dict()} == cairn("info", indexed.folder, "--json").json
        assert pd.DataFrame(collection.search("page_001.jpg", where={"name": "no such"})).empty
        checked = cairn("check", indexed.folder, "--json").json
        assert {"collection": str(indexed.folder), **collection.check().to_dict(), "seconds": 0} == {
            **checked,
            "seconds": 0,
        }
    assert answer.box == pytest.approx(box) and answer.query == "cat_001.jpg"
    assert answer.found == answer[: len(answer.found)] and answer[0].name == "cat_001.jpg"
    table = pd.DataFrame(answer)
    assert table["name"].tolist() == [one.name for one in answer] and len(table) == 4
    with pytest.raises(library.CairnError, match="was closed: open it again"):
        collection.search("cat_001.jpg")
    collection.close()
    assert repr(collection) == f"<Collection {str(indexed.folder)!r}>"


def test_results_are_values(indexed: Indexed, tmp_path: Path) -> None:
    """They can be pickled, copied, compared, kept in sets, and listed field by field."""
    with library.open(indexed.folder) as collection:
        answer, match = collection.search("cat_001.jpg", top=3), collection.match("cat_001.jpg", "cat_002.jpg")
        photo = collection.photo("cat_001.jpg")
        for one in (answer, match):
            again = pickle.loads(pickle.dumps(one))
            assert again.to_dict() == copy.deepcopy(one).to_dict() == one.to_dict()
            assert len(dataclasses.asdict(one)) == len(dataclasses.fields(one))
            with pytest.raises(library.CairnError, match="search again"):
                again.save_picture(tmp_path / "picture.jpg")
        for one in (answer[0], photo):
            assert pickle.loads(pickle.dumps(one)) == one and len({one, copy.deepcopy(one)}) == 1
        assert pickle.loads(pickle.dumps(photo)).thumbnail() == photo.thumbnail()
        assert json.loads(json.dumps([photo.to_dict(), *answer.to_dict()["results"]]))
        assert not any(name.startswith("_") for name in pd.DataFrame(collection.photos()))
        for one in (collection, collection.photos()):
            with pytest.raises(TypeError, match="cannot be pickled"):
                pickle.dumps(one)


def test_photos_are_meant_in_many_ways(indexed: Indexed, tmp_path: Path) -> None:
    with library.open(indexed.folder) as collection:
        result = collection.search("cat_002.jpg", turns=1)[0]
        content = (indexed.photos / "cat_002.jpg").read_bytes()
        for one in (np.int64(result.number), result, bytearray(content), memoryview(content)):
            assert collection.search(one, turns=1)[0] == result
        names = ["cat_002.jpg", "coins_001.jpg"]
        assert collection.search((name for name in names), turns=1).query == names
        assert (
            result in collection and Path("cat_002.jpg") in collection and Path("folder/cat_002.jpg") not in collection
        )
        assert collection.remove([result, Path("coins_001.jpg")], dry_run=True).names == names
        # A result of another collection, where its number is another photo's.
        other = dataclasses.replace(result, name="dog.jpg", path="/other/dog.jpg")
        for call in (collection.search, collection.photo, lambda one: collection.match("cat_001.jpg", one)):
            with pytest.raises(library.PhotoNotFound, match=r"'dog.jpg', number \d+, is no photo of"):
                call(other)
        group = library.Group(result.number, (collection.photo(result),), 1, {})  # whose number is no photo's
        with pytest.raises(library.CairnError, match="not by an object of type Group"):
            collection.photo(group)  # type: ignore[arg-type]


@pytest.mark.slow
def test_photos_may_be_removed_while_they_are_listed(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(photos, "_PAGE", 3)
    with library.open(copied) as collection:
        names = [one.name for one in collection]
        listed = []
        for photo in collection:
            listed.append(photo.name)
            collection.remove(photo)
        assert listed == names and not len(collection)


def test_several_photos_and_filters(indexed: Indexed) -> None:
    with library.open(indexed.folder) as collection:
        both = collection.search(["cat_001.jpg", "coins_001.jpg"], top=30)
        assert both.query == ["cat_001.jpg", "coins_001.jpg"] and both.box is None
        assert {one.query_index for one in both.found} == {0, 1}
        assert {one.name for one in collection.search("cat_001.jpg", where={"name": "cat"})} <= {
            f"cat_{view:03}.jpg" for view in range(9)
        }
        assert library.Filter(tags="a", where={"b": 1}, near=(1, 2, 3)) == library.Filter(  # type: ignore[arg-type]
            tags=("a",), where=(("b", "1"),), near=library.Near(1, 2, 3)
        )
        assert len(collection.photos({"name": None})) == len(collection)
        wanted = library.Filter(name="coins")
        assert collection.search("cat_001.jpg", where=wanted).passing == len(collection.photos(wanted)) == 3
        many = list(collection.search_many(["cat_001.jpg", "coins_001.jpg"], [None, (0, 0, 200, 200)], turns=1))
        assert [one.box for one in many] == [None, (0, 0, 200, 200)]


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda c: c.search("nothing.jpg"), "PhotoNotFound", "There is no photo 'nothing.jpg'"),
        (lambda c: c.search(999), "PhotoNotFound", "There is no photo 999 in"),
        (lambda c: c.search(None), "CairnError", "not an object of type NoneType"),
        (lambda c: c.search([]), "CairnError", "A query needs at least one photo"),
        (lambda c: c.search(np.zeros((4, 4), np.int64)), "CairnError", "not int64"),
        (lambda c: c.search(np.zeros(4, np.uint8)), "CairnError", "not \\(4,\\)"),
        (lambda c: c.search(np.full((4, 4), 3.0)), "CairnError", "divide it by its largest value"),
        (lambda c: c.search("cat_001.jpg", (1, 2, 3)), "CairnError", "A box is four numbers"),
        (lambda c: c.search("cat_001.jpg", (1e5, 1e5, 2e5, 2e5)), "CairnError", "lies outside the photo"),
        (lambda c: c.search(["cat_001.jpg"] * 2, (1, 2, 3, 4)), "CairnError", "A box can only be used with one photo"),
        (lambda c: c.search("cat_001.jpg", top=0), "CairnError", "top must be at least 1"),
        (lambda c: c.search("cat_001.jpg", engine="no"), "CairnError", "no engine 'no'"),
        (lambda c: c.search("cat_001.jpg", where={"colour": "red"}), "CairnError", "A filter has no field 'colour'"),
        (lambda c: c.search("cat_001.jpg", where=["red"]), "CairnError", "A filter is a cairn.Filter"),
        (lambda c: list(c.search_many(["cat_001.jpg"], [])), "CairnError", "as many boxes as photos"),
        (lambda c: c.match("cat_001.jpg", "nothing.jpg"), "PhotoNotFound", "There is no photo"),
        (lambda c: c.photo("nothing.jpg"), "PhotoNotFound", "There is no photo"),
        (lambda c: c.groups(), "NotGrouped", "Groups have not been looked for yet"),
        (lambda c: c.remove(), "CairnError", "Say which photos to remove"),
        (lambda c: c.remove(["cat_001.jpg", "nothing.jpg"]), "PhotoNotFound", "There is no photo 'nothing.jpg' in"),
        (lambda c: c.remove(3), "CairnError", "Photos are removed by their names, not by 3"),
        (lambda c: c.add([3]), "CairnError", "Photos are added by paths of files"),
        (lambda c: c.photo(True), "CairnError", "not by an object of type bool"),
        (lambda c: c.photo(10**30), "PhotoNotFound", "There is no photo 10+ in"),
        (lambda c: c.search("cat_001.jpg", top=2.5), "CairnError", "top is a whole number, and not 2.5"),
        (lambda c: c.search("cat_001.jpg", where={"near": (1, 2)}), "CairnError", "'near' of a filter is latitude"),
        (lambda c: list(c.search_many("cat_001.jpg")), "CairnError", "Give a list of photos"),
        (lambda c: c.retrain(kmeans_passes=0), "CairnError", "kmeans_passes is 1 at least"),
        (lambda c: library.create(c.folder / "new", words=-1), "CairnError", "words is 0 at least, and not -1"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(indexed: Indexed, call: Any, error: str, sentence: str) -> None:
    with library.open(indexed.folder) as collection, pytest.raises(library.CairnError, match=sentence) as raised:
        call(collection)
    assert type(raised.value) is getattr(library, error)


def test_collections_are_made_once(indexed: Indexed, tmp_path: Path) -> None:
    with pytest.raises(library.CollectionNotFound):
        library.open(tmp_path / "none.cairn")
    with pytest.raises(library.CollectionExists, match="exist_ok=True"):
        library.create(indexed.folder)
    with library.create(indexed.folder, exist_ok=True) as collection:
        assert len(collection) == len(list(collection)) > 10
    with library.create(tmp_path / "new.cairn", words=50, max_side=200) as made:
        reported: list[str] = []
        added = made.add(indexed.photos, workers=1, progress=lambda step, done, of: reported.append(step))
        assert added.added == len(made) and not added.failed and added.words == 50 == made.info().words
        assert {"look", "extract", "index"} <= set(reported)
        assert made.add([indexed.photos], workers=1).unchanged == len(made)


def test_a_collection_is_where_it_was_opened(
    indexed: Indexed, copied: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs change their working folder, and lose the drive of a collection."""
    monkeypatch.chdir(copied.parent)
    opened, made = library.open(copied.name), library.create("new.cairn", words=20, max_side=100)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert opened.folder == copied and opened.search("cat_001.jpg", turns=1).found and opened.check().ok
    assert made.add([indexed.photos / "cat_001.jpg"], workers=1).added == 1 and made.folder.parent == copied.parent
    assert opened.photo("cat_001.jpg").thumbnail() and not list(Path.cwd().iterdir())
    shutil.rmtree(copied)
    for call in (lambda: opened.add(indexed.photos), lambda: opened.remove("cat_001.jpg"), opened.compact):
        with pytest.raises(library.CairnError):
            call()
    assert not copied.exists()


def test_photos_are_a_sequence(indexed: Indexed) -> None:
    with library.open(indexed.folder) as collection:
        photos = collection.photos()
        names = [one.name for one in photos]
        assert names == sorted(names) and len(names) == len(photos) == len(collection)
        assert [one.name for one in photos[2:8:3]] == names[2:8:3]
        assert photos[-1].name == names[-1] and photos[5:5] == [] and photos[::-1][0].name == names[-1]
        with pytest.raises(IndexError):
            photos[len(names)]
        assert names[0] in collection and "nothing.jpg" not in collection and photos[0] in collection
        first = photos[0]
        assert (first.width, first.height) == Image.open(first.path).size
        assert first.thumbnail(128)[:2] == b"\xff\xd8"
        assert list(pd.DataFrame(photos)["name"]) == names
        assert set(first.to_dict()) >= {"number", "name", "path", "tags", "others", "date_added"}


def test_a_match_has_places_in_both_photos(indexed: Indexed) -> None:
    query, view = "cat_001", "cat_002"
    with library.open(indexed.folder) as collection:
        match = collection.match(f"{query}.jpg", f"{view}.jpg", indexed.boxes[query])
        assert match.found and match.inliers >= len(match.query_ellipses) == len(match.photo_ellipses) > 10
        centres = np.column_stack([match.query_ellipses[:, :2], np.ones(len(match.query_ellipses))])
        there = centres @ indexed.homography(query, view).T
        away = np.linalg.norm(there[:, :2] / there[:, 2:] - match.photo_ellipses[:, :2], axis=1)
        assert np.median(away) < 3  # pixels
        reported = match.to_dict()
        assert len(reported["matches"]) == len(match.query_ellipses) and reported["query"]["name"] == f"{query}.jpg"
        assert not collection.match("cat_001.jpg", "page_001.jpg").found


def test_what_others_change_is_seen_by_the_next_call(copied: Path, indexed: Indexed, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    with Image.open(indexed.photos / "cat_001.jpg") as photo:
        photo.rotate(4).save(tmp_path / "more" / "new.png")
    with library.open(copied) as here, library.open(copied) as there:
        before = [one.name for one in here.search("cat_001.jpg").found]
        assert there.add(tmp_path / "more", workers=1).added == 1
        assert {one.name for one in here.search("cat_001.jpg").found} == {*before, "new.png"}
        assert there.remove("new.png", dry_run=True).to_dict()["would_remove"] == ["new.png"]
        assert there.remove(there.photo("new.png")).names == ["new.png"]
        assert [one.name for one in here.search("cat_001.jpg").found] == before
        assert there.compact().removed == 1
        assert [one.name for one in here.search("cat_001.jpg").found] == before


def test_threads_may_share_a_collection(indexed: Indexed) -> None:
    names = ["cat_001.jpg", "coins_001.jpg", "coffee_001.jpg", "page_001.jpg"]
    with library.open(indexed.folder) as collection:
        expected = {name: _plain(collection.search(name, turns=1)) for name in names}
        found: dict[str, list[dict[str, Any]]] = {}
        threads = [
            threading.Thread(target=lambda name=name: found.update({name: _plain(collection.search(name, turns=1))}))
            for name in names
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == expected


@pytest.mark.slow
def test_groups_have_their_photos(linked: Path, tmp_path: Path, cairn: Any) -> None:
    folder = Path(shutil.copytree(linked, tmp_path / "linked.cairn"))
    printed = cairn("group", folder, "--json").json
    with library.open(folder) as collection:
        groups = collection.groups()
        assert printed | groups.to_dict() == printed | {"augmented": None}
        assert groups and all(len(group) > 1 and group.cover in group for group in groups)
        names = {one.name for group in groups for one in group}
        assert len(names) == groups.to_dict()["grouped"]
        assert all(one in names for group in groups for pair in group.duplicates.items() for one in pair)
        table = groups.save_table(tmp_path / "groups.csv").read_text()
        head, *lines = table.splitlines()
        assert head == "group,name,path,duplicate_of,kind,similar_to" and len(lines) == len(names)
        kinds = Counter(kind for group in groups for kind in group.kinds.values())
        assert printed["kinds"] == kinds and all(group.kinds.keys() == group.duplicates.keys() for group in groups)


def test_tables_are_imported_and_damage_is_mended(copied: Path, tmp_path: Path) -> None:
    table = tmp_path / "tafel.csv"
    table.write_text("Datei;Titel;Schlagwörter;Archiv\ncat_001.jpg;Katze;Tier|Haus;Berlin\nnobody.jpg;-;-;-\n", "utf-8")
    with library.open(copied) as collection:
        done = collection.import_metadata(table)
        assert (done.rows, done.matched, len(done.unmatched)) == (2, 1, 1)
        photo = collection.photo("cat_001.jpg")
        assert (photo.title, photo.tags) == ("Katze", ("Tier", "Haus")) and photo.others == {"Archiv": ("Berlin",)}
        assert [one.name for one in collection.photos({"where": {"archiv": "Berlin"}})] == ["cat_001.jpg"]
        assert [one.name for one in collection.photos({"tags": "tier"})] == ["cat_001.jpg"]
        assert collection.refresh_metadata().read == len(collection)
        assert collection.photo("cat_001.jpg").title == "Katze"
    postings = next(copied.glob("segments/*/*"))
    postings.write_bytes(postings.read_bytes()[:-1] + b"?")
    damaged = library.check(copied)
    assert not damaged.ok and damaged.damaged[0].file.endswith(postings.name)
    assert library.repair(copied, workers=1).ok and library.check(copied).ok
