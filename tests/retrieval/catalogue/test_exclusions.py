"""Photos that were removed for good: they stay out, whatever becomes of their files, until they are asked for again."""

import errno
import os
import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from index.errors import CairnError
from retrieval.catalogue.exclusions import exclusions_in
from retrieval.catalogue.failures import failures_in
from retrieval.catalogue.segment_rows import tombstones_in
from retrieval.features.staging import Staged, Staging
from retrieval.indexing import adding as indexing
from retrieval.indexing.add_options import AddOptions
from retrieval.indexing.adding import index_photos
from retrieval.indexing.compaction import compact
from retrieval.indexing.removal import remove_photos
from retrieval.indexing.report import IndexReport
from retrieval.indexing.retrain_options import RetrainOptions
from retrieval.indexing.retraining import retrain
from retrieval.integrity.check import check_collection
from retrieval.integrity.repair import repair_collection
from tests.conftest import Ran
from tests.support.written_photos import Album


@pytest.fixture(params=["sqlite", "postgresql"])
def filled(request: pytest.FixtureRequest, album: Album) -> Album:
    """Four photos, of which two are removed for good."""
    if request.param == "postgresql":
        album.catalogue = request.getfixturevalue("postgresql")()
    return fill(album)


@pytest.fixture
def local(album: Album) -> Album:
    """The same, over SQLite alone."""
    return fill(album)


def fill(album: Album) -> Album:
    album.put(top=0, a__one=3, a__two=6, b=9)
    album.index()
    remove(album, "a/one.jpg", "top.jpg")
    return album


def remove(album: Album, *names: str) -> None:
    with album.open() as collection:
        remove_photos(collection, names, for_good=True)


def again(album: Album, *paths: Path) -> IndexReport:
    with album.open() as collection:
        return index_photos(collection, paths, AddOptions(again=True))


def listed(album: Album) -> dict[str, str]:
    with album.open() as collection:
        return {one.name: one.path for one in collection.catalogue.read(exclusions_in)}


def test_they_stay_out_where_they_are_moved_renamed_copied_or_edited(filled: Album) -> None:
    photos = filled.photos
    report = filled.index()
    assert (report.added, sorted(report.kept_out)) == (0, [str(photos / "a/one.jpg"), str(photos / "top.jpg")])
    (photos / "a/one.jpg").rename(photos / "renamed.jpg")
    shutil.copy(photos / "top.jpg", photos / "copy.jpg")
    filled.put(top=20)  # another content at the path
    report = filled.index()
    assert report.added == 0
    assert sorted(report.kept_out) == [str(photos / name) for name in ("copy.jpg", "renamed.jpg", "top.jpg")]
    assert filled.held().keys() == {"a/two.jpg", "b.jpg"}
    assert listed(filled)["a/one.jpg"] == str(photos / "renamed.jpg")
    filled.put(a__one=12)  # the old place is free
    assert filled.index().added == 1


def test_a_file_that_is_known_to_be_kept_out_is_not_read_again(filled: Album, monkeypatch: pytest.MonkeyPatch) -> None:
    (filled.photos / "a/one.jpg").rename(filled.photos / "renamed.jpg")
    filled.index()
    opened: list[Path] = []
    real = Path.open
    monkeypatch.setattr(Path, "open", lambda path, *rest, **how: opened.append(path) or real(path, *rest, **how))
    assert len(filled.index().kept_out) == 2
    assert not [path for path in opened if path.suffix == ".jpg"]


def test_they_stay_out_after_compact_and_retrain(filled: Album) -> None:
    with filled.open() as collection:
        compact(collection)
        assert not collection.catalogue.read(tombstones_in)
        retrain(collection, RetrainOptions())
        assert not check_collection(filled.place, catalogue=filled.catalogue).damaged
    assert (filled.index().added, len(listed(filled))) == (0, 2)


def test_those_that_are_asked_for_come_back(filled: Album) -> None:
    photos = filled.photos
    report = again(filled, photos / "a")
    assert (report.added, report.kept_out, listed(filled).keys()) == (1, [], {"top.jpg"})
    assert "a/one.jpg" in filled.held()  # its old name, where it is where it was
    assert filled.index().added == 0
    (photos / "top.jpg").rename(photos / "a/moved.jpg")
    assert again(filled, photos).added == 1
    assert listed(filled) == {} and "a/moved.jpg" in filled.held()


@pytest.mark.parametrize("left", [0, 1, 3, 4])
@pytest.mark.slow
def test_an_interrupted_run_that_takes_them_in_is_finished_by_the_same_command(
    filled: Album, monkeypatch: pytest.MonkeyPatch, left: int
) -> None:
    filled.put(c=14, d=15, e=16, f=14)  # one twice
    filled.index()
    names = ["a/one.jpg", "c.jpg", "d.jpg", "e.jpg", "f.jpg", "top.jpg"]
    remove(filled, *names[1:-1])
    paths = [filled.photos / name for name in names]
    real, done = Staging.stage, count()

    def interrupted(self: Staging, path: Path, key: str) -> Staged:
        if next(done) == left:
            raise KeyboardInterrupt
        return real(self, path, key)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Staging, "stage", interrupted)
        again(filled, *paths)
    assert filled.held().keys() | listed(filled).keys() == {*names, "a/two.jpg", "b.jpg"}
    # The same command, which looks for what is on the list.
    assert again(filled, *(Path(path) for path in listed(filled).values())).failed == []
    assert (filled.held().keys(), listed(filled)) == ({*names, "a/two.jpg", "b.jpg"}, {})


def test_one_that_fails_when_it_is_asked_for_leaves_the_list_with_its_failure(filled: Album) -> None:
    (filled.photos / "top.jpg").write_bytes(b"damaged")
    report = again(filled, filled.photos / "top.jpg")
    assert ([entry["path"] for entry in report.failed], listed(filled).keys()) == (
        [str(filled.photos / "top.jpg")],
        {"a/one.jpg"},
    )
    assert filled.index().kept_out == [str(filled.photos / "a/one.jpg")]


@pytest.mark.slow
def test_what_an_interrupted_run_took_in_leaves_the_list_though_a_copy_of_it_has_gone(
    filled: Album, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.put(c=14, d=15, e=16, f=14)
    filled.index()
    remove(filled, "c.jpg", "d.jpg", "e.jpg", "f.jpg")
    paths = [filled.photos / name for name in ("c.jpg", "d.jpg", "e.jpg", "f.jpg")]
    with monkeypatch.context() as patch:
        patch.setattr(indexing, "_add_segment", interrupted_at_second(indexing._add_segment))
        with pytest.raises(KeyboardInterrupt):
            again(filled, *paths)
    assert "c.jpg" in filled.held() and {"c.jpg", "f.jpg"} <= listed(filled).keys()
    (filled.photos / "f.jpg").unlink()
    assert again(filled, *paths[:3]).unchanged == 3
    assert listed(filled).keys() == {"a/one.jpg", "top.jpg", "f.jpg"}


def interrupted_at_second(real: Callable[..., None]) -> Callable[..., None]:
    calls = count()

    def call(*given: Any) -> None:
        if next(calls):
            raise KeyboardInterrupt
        real(*given)

    return call


@pytest.mark.slow
def test_a_copy_that_stays_is_not_mistaken_for_one_that_was_removed(filled: Album) -> None:
    filled.put(c=14, d=14)
    assert filled.index().added == 2
    remove(filled, "c.jpg")
    (filled.photos / "d.jpg").rename(filled.photos / "e.jpg")
    report = filled.index()
    assert (report.moved, report.added) == (["e.jpg"], 0)
    (filled.photos / "e.jpg").rename(filled.photos / "c.jpg")  # where the other one was
    assert filled.index().moved == ["c.jpg"]
    filled.put(c=15)
    assert (filled.index().added, filled.held().keys()) == (1, {"a/two.jpg", "b.jpg", "c.jpg"})


def test_a_photo_that_came_to_the_path_of_a_removed_one_is_told_when_it_cannot_be_read(
    local: Album, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved, place = local.photos / "b.jpg", local.photos / "top.jpg"
    moved.rename(place)
    assert local.index().moved == ["top.jpg"]
    os.utime(place, ns=(1, 1))  # so that it is read
    real = Path.open

    def broken(path: Path, *rest: Any, **how: Any) -> Any:
        if path == place:
            raise OSError(errno.EIO, "Input/output error")
        return real(path, *rest, **how)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", broken)
        for _ in range(2):
            report = local.index()
            assert report.kept_out == [str(local.photos / "a/one.jpg")]
            assert [entry["path"] for entry in report.failed] == [str(place)]
            with local.open() as collection:
                assert [failure.path for failure in collection.catalogue.read(failures_in)] == [str(place)]
    assert local.index().failed == [] and "top.jpg" in local.held()


def test_a_dry_run_lists_nothing_and_plain_removal_does_not_last(local: Album) -> None:
    with local.open() as collection:
        remove_photos(collection, ["b.jpg"], for_good=True, dry_run=True)
        assert len(collection.catalogue.read(exclusions_in)) == 2
        remove_photos(collection, ["b.jpg"])
        with pytest.raises(CairnError, match="no photo"):
            remove_photos(collection, ["b.jpg"], for_good=True)
    assert local.index().added == 1


@pytest.mark.parametrize("tombstones", [True, False])
def test_they_stay_out_of_a_catalogue_that_is_made_anew(local: Album, tombstones: bool) -> None:
    if not tombstones:
        with local.open() as collection:
            compact(collection)
    before = listed(local)
    file = local.place / "catalogue.sqlite"
    file.write_bytes(b"\0" * 4096 + file.read_bytes()[4096:])
    report = repair_collection(local.place)
    assert report.ok and not report.lapses
    assert listed(local) == before
    assert (local.index().added, local.held().keys()) == (0, {"a/two.jpg", "b.jpg"})


def test_what_is_left_out_is_told_with_the_reason(local: Album, cairn: Callable[..., Ran]) -> None:
    photos, place = local.photos, local.place
    shutil.copy(photos / "top.jpg", photos / "copy.jpg")
    local.put(a__one=12)  # another content at the path
    reported = {
        "a/one.jpg": "at the path of a/one.jpg, which was removed for good",
        "copy.jpg": "the same content as top.jpg, which was removed for good",
        "top.jpg": "removed for good as top.jpg",
    }
    run = cairn("index", place, photos, "--json").json
    assert {entry["path"]: entry["reason"] for entry in run["kept_out_reasons"]} == {
        str(photos / name): reason for name, reason in reported.items()
    }
    assert [entry["path"] for entry in run["kept_out_reasons"]] == run["kept_out"]
    said = cairn("index", place, photos).out
    assert all(f"left out: {photos / name}: {reason}\n" in said for name, reason in reported.items())
    assert "Left out as removed for good: 3; cairn index --again adds them." in said
    for number in range(9):
        shutil.copy(photos / "top.jpg", photos / f"copy-{number}.jpg")
    said = cairn("index", place, photos).out
    assert said.count("left out: ") == 5
    assert "Left out as removed for good: 12; --json lists all" in said


def test_the_commands_tell_of_them(local: Album, cairn: Callable[..., Ran]) -> None:
    photos, place = local.photos, local.place
    assert cairn("remove", place, "b.jpg", "--for-good").out.endswith(": 1 removed for good, 1 photos left.\n")
    facts = cairn("info", place, "--json").json
    names = ["top.jpg", "a/one.jpg", "b.jpg"]
    assert sorted(one["name"] for one in facts["removed_for_good"]) == sorted(names)
    assert all(Path(one["path"]).is_file() and len(one["sha256"]) == 64 for one in facts["removed_for_good"])
    said = cairn("info", place).out
    assert f"removed for good: b.jpg: {photos / 'b.jpg'}" in said and "cairn index --again" in said
    run = cairn("index", place, photos, "--json").json
    assert (run["added"], len(run["kept_out"])) == (0, 3)
    assert "Left out as removed for good: 3; " in cairn("index", place, photos).out
    assert "--again cannot be used with --watch" in cairn("index", place, photos, "--again", "--watch").refused()
    assert cairn("index", place, photos / "a", "--again", "--json").json["added"] == 1
    assert cairn("index", place, "--again", "--json").json["added"] == 2  # all the others
    assert local.held().keys() == {*names, "a/two.jpg"}
    assert "No photo was removed for good" in cairn("index", place, "--again").refused()
    assert "Say what to index" in cairn("index", place).refused()
    assert "removed for good" not in cairn("info", place).out
    remove(local, "b.jpg")
    (photos / "b.jpg").rename(photos / "c.jpg")
    assert "name the folder where they are now" in cairn("index", place, "--again").refused()
