"""Retraining: a new vocabulary made from what is there, which takes over at once or not at all."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrieval.collection.sealing
import retrieval.indexing.retraining
from index.errors import CairnError
from index.vocabulary import Vocabulary
from retrieval.catalogue.changes import quantisation_errors
from retrieval.catalogue.failures import failures_in
from retrieval.catalogue.metadata_store import import_values, metadata_of
from retrieval.catalogue.photos import all_indexed
from retrieval.catalogue.segment_rows import segments_in, tombstones_in
from retrieval.collection.collection import Collection, CollectionChanged
from retrieval.collection.options import CollectionOptions
from retrieval.descriptors.registry import model_file
from retrieval.indexing.adding import index_photos
from retrieval.indexing.removal import remove_photos
from retrieval.indexing.retrain_options import RetrainOptions
from retrieval.indexing.retraining import Retrained, retrain
from retrieval.integrity.check import check_collection
from retrieval.integrity.repair import repair_collection
from retrieval.library.searches import Searches
from retrieval.search.options import SearchOptions
from retrieval.search.searcher import Searcher
from retrieval.web.reasons import in_language
from tests.conftest import Ran
from tests.support.searching import answer_to
from tests.support.segments_of_format_1 import bring_back_to_format_1
from tests.support.written_photos import Album, features_of, query_of, rankings

PHOTOS = {f"p{i:02}": i for i in (0, 1, 2, 3, 4, 5, 6, 10)}
OPTIONS = RetrainOptions(words=25)


@pytest.fixture
def album(album_in_one_place: Album) -> Album:
    return album_in_one_place


@pytest.fixture
def filled(album: Album) -> Album:
    """Eight photos in three segments, one without features."""
    album.once("filled", _fill)
    return album


def _fill(album: Album) -> None:
    album.put(**PHOTOS)
    assert album.index().added == len(PHOTOS)


def run(album: Album, options: RetrainOptions = OPTIONS, **more: Any) -> Retrained:
    with album.open() as collection:
        return retrain(collection, options, **more)


def check_words(album: Album, photos: dict[str, int]) -> Vocabulary:
    """Compare all words with those that the vocabulary gives to the photos' features; give the vocabulary."""
    with album.open() as collection:
        vocabulary = collection.vocabulary
        rows = collection.catalogue.read(all_indexed)
        assert {str(row.name): row.features for row in rows} == {
            f"{name}.jpg": len(features_of(number)) for name, number in photos.items()
        }
        for row in rows:
            descriptors = features_of(photos[str(row.name).removesuffix(".jpg")]).descriptors.astype(np.float32)
            words = vocabulary.assign(descriptors)
            assert collection.index.images.features(row.number).words.tolist() == sorted(words.tolist())
            assert row.quantisation_error == pytest.approx(vocabulary.error_of(descriptors, words))
        assert len(collection.index.image_numbers) == len(photos)
    return vocabulary


def test_it_gives_what_a_fresh_index_of_the_same_photos_gives(filled: Album) -> None:
    options = CollectionOptions(words=25, seed=3, batch=100, signature="none")
    fresh = Album(filled.folder, options)
    with fresh.open() as opened:  # the same folder of photos, in another collection
        assert opened.folder == filled.place
    with filled.open() as collection, type(collection).create(filled.folder / "fresh.cairn", options) as other:
        before = collection.vocabulary.fingerprint
        index_photos(other, [filled.photos])
        report = retrain(collection, RetrainOptions(words=25, seed=3))
        assert collection.vocabulary.fingerprint == other.vocabulary.fingerprint != before
        assert report.words == {"before": 40, "after": 25}
        assert report.images == 8
        assert report.quantisation_error["after"] > report.quantisation_error["before"] > 0
        for engine in ("tf-idf", "tf-idf-sp"):
            wanted = SearchOptions(engine=engine)
            assert rankings(collection, (0, 1, 2, 29), wanted) == rankings(other, (0, 1, 2, 29), wanted)
        assert collection.catalogue.read(quantisation_errors, 0) == other.catalogue.read(quantisation_errors, 0)
    check_words(filled, PHOTOS)
    names = {path.name for path in filled.place.iterdir()}
    assert "vocabulary-000002" in names and "vocabulary" not in names and "retrain" not in names
    with filled.open() as collection:
        folders = {path.name for path in (filled.place / "segments").iterdir()}
        assert folders == {row.folder for row in collection.catalogue.read(segments_in)}


@pytest.mark.parametrize(
    ("before", "asked", "after"),
    [("faiss", "", "ivf"), ("flann", "", "flann"), ("ivf", "faiss", "faiss"), ("faiss", "faiss", "faiss")],
)
def test_the_search_of_earlier_versions_gives_way_to_that_of_today(
    album: Album, before: str, asked: str, after: str
) -> None:
    album.put(a=0, b=1, c=2)
    with Collection.create(
        album.folder / "older.cairn", CollectionOptions(words=30, search=before, signature="none")
    ) as collection:
        index_photos(collection, [album.photos])
        assert collection.vocabulary.backend == before
        retrain(collection, RetrainOptions(words=20, search=asked))
        assert collection.vocabulary.backend == after


def test_two_photos_of_one_content_count_once(album: Album) -> None:
    """As in a fresh index: the features of a content are staged once."""
    album.put(a=0, b=1, c=0, d=2)
    album.index()
    options = CollectionOptions(words=20, signature="none")
    with album.open() as collection, type(collection).create(album.folder / "fresh.cairn", options) as other:
        index_photos(other, [album.photos])
        retrain(collection, RetrainOptions(words=20))
        assert collection.vocabulary.fingerprint == other.vocabulary.fingerprint


def test_photos_that_were_removed_have_no_say_and_leave(filled: Album) -> None:
    with filled.open() as collection:
        remove_photos(collection, ["p01.jpg", "p04.jpg"])
    run(filled)
    check_words(filled, {name: number for name, number in PHOTOS.items() if name not in ("p01", "p04")})
    with filled.open() as collection:
        assert collection.catalogue.read(tombstones_in) == frozenset()


@pytest.mark.parametrize("keep", [True, False])
def test_segments_of_the_first_format_are_brought_up_to_date(album: Album, keep: bool) -> None:
    album = replace(album, options=replace(album.options, keep_descriptors=keep))
    album.put(a=0, b=1, c=2, d=3)
    album.index()
    with album.open() as collection:
        bring_back_to_format_1(collection)
        assert {segment.format for segment in collection.segments} == {1}
        retrain(collection, RetrainOptions(words=40))
        assert {segment.format for segment in collection.segments} == {2}
        assert {next(iter(segment.columns)) for segment in collection.segments} == {"geometry"}
    found = album.answers(0, 1)
    assert [row[0][0] for row in found] == ["a.jpg", "b.jpg"]


def test_a_collection_that_keeps_descriptors_needs_no_photos(album: Album) -> None:
    album.options = CollectionOptions(batch=3, keep_descriptors=True, signature="none")
    album.put(**PHOTOS)
    album.index()
    for path in album.photos.iterdir():
        path.unlink()
    report = run(album)
    assert report.dropped == []
    check_words(album, PHOTOS)
    with album.open() as collection:
        row = collection.catalogue.read(all_indexed)[2]
        kept = collection.index.images.features(row.number).columns["descriptor"]
        assert sorted(map(bytes, kept)) == sorted(map(bytes, features_of(2).descriptors))


def test_photos_that_cannot_be_read_are_refused_or_left_out(filled: Album) -> None:
    (filled.photos / "p01.jpg").unlink()
    filled.put(p02=7)  # changed since it was indexed
    before = filled.answers()
    with pytest.raises(
        CairnError, match=r"1 photos cannot be read again, such as 'p01.jpg' \(.*no longer there\)"
    ) as no:
        run(filled)
    assert f"({filled.photos / 'p01.jpg'} ist nicht mehr da), und die Sammlung" in in_language(no.value.message, "de")
    filled.put(p01=1)
    with pytest.raises(CairnError, match=r"'p02.jpg' .*the file has changed since it was indexed"):
        run(filled)
    assert filled.answers() == before
    (filled.photos / "p01.jpg").unlink()
    report = run(filled, RetrainOptions(words=25, drop_missing=True))
    assert sorted(entry["name"] for entry in report.dropped) == ["p01.jpg", "p02.jpg"]
    check_words(filled, {name: number for name, number in PHOTOS.items() if name not in ("p01", "p02")})
    with filled.open() as collection:
        assert len(collection.catalogue.read(failures_in)) == 2
    # The next run finds the one that has changed.
    assert filled.index().added == 1


def test_a_run_that_was_stopped_is_picked_up(filled: Album, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither the vocabulary nor the segments that were finished are made again, and nothing had changed meanwhile."""
    before = filled.answers()
    reference = filled.fresh(**PHOTOS)
    run(reference)
    expected = check_words(reference, PHOTOS).fingerprint

    def stop(step: str, done: int, _of: int) -> None:
        if (step, done) == ("index", 5):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(filled, progress=stop)
    assert filled.answers() == before
    written: list[str] = []
    write = retrieval.indexing.retraining.write_photos
    monkeypatch.setattr(Vocabulary, "train", None)
    monkeypatch.setattr(
        retrieval.indexing.retraining,
        "write_photos",
        lambda *what, **more: written.append(more["folder"].name) or write(*what, **more),
    )
    run(filled)
    assert len(written) == 2  # of three
    assert check_words(filled, PHOTOS).fingerprint == expected


def test_what_was_added_since_a_run_was_stopped_goes_in(filled: Album) -> None:
    def stop(step: str, done: int, _of: int) -> None:
        if (step, done) == ("index", 7):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(filled, progress=stop)
    filled.put(new=8)
    assert filled.index().added == 1
    with filled.open() as collection:
        remove_photos(collection, ["p00.jpg"])
    run(filled)
    check_words(filled, {name: number for name, number in PHOTOS.items() if name != "p00"} | {"new": 8})


def test_it_begins_anew_where_the_last_one_has_taken_over(filled: Album, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is killed before it has cleared up leaves a vocabulary that nobody may take for a new one."""
    remove = retrieval.indexing.retraining.shutil.rmtree
    with monkeypatch.context() as patch:
        patch.setattr(
            retrieval.indexing.retraining.shutil,
            "rmtree",
            lambda path, **more: None if path.name == "retrain" else remove(path, **more),
        )
        run(filled)
    assert (filled.place / "retrain").is_dir()
    first = check_words(filled, PHOTOS)
    filled.put(new=8, more=9)
    filled.index()
    run(filled)
    second = check_words(filled, PHOTOS | {"new": 8, "more": 9})
    assert second.fingerprint != first.fingerprint
    assert second.trained_on.startswith("9 photos")
    assert not (filled.place / "retrain").exists()


def test_searches_go_on_with_the_old_vocabulary(filled: Album) -> None:
    with filled.open() as reader, filled.open() as late:
        searcher = Searcher(reader, SearchOptions())
        before = answer_to(query_of(reader, 0), searcher).hits
        _ = late.vocabulary
        run(filled)
        assert [(hit.number, hit.score) for hit in answer_to(query_of(reader, 0), searcher).hits] == [
            (hit.number, hit.score) for hit in before
        ]
        # Who has looked at the old words only must not score the new ones by them.
        with pytest.raises(CollectionChanged, match="open it again"):
            _ = late.index
        reader.forget()
        assert reader.vocabulary.words == 25
        assert rankings(reader, (0, 1), SearchOptions()) == filled.answers(0, 1)


def test_what_is_removed_meanwhile_stays_removed(filled: Album) -> None:
    def remove(step: str, done: int, _of: int) -> None:
        if (step, done) == ("index", 6):
            with filled.open() as other:
                remove_photos(other, ["p00.jpg", "p10.jpg"])

    run(filled, progress=remove)
    check_words(filled, {name: number for name, number in PHOTOS.items() if name not in ("p00", "p10")})


def test_a_collection_without_features_says_so(album: Album) -> None:
    album.put(empty=10)
    album.index()
    with pytest.raises(CairnError, match="No photo of the collection has any features"):
        run(album)


def test_the_command_tells_what_it_did(filled: Album, cairn: Callable[..., Ran]) -> None:
    report = cairn("retrain", filled.place, "--words", 30, "--workers", 1, "--json").json
    assert report["words"] == {"before": 40, "after": 30}
    assert (report["images"], report["dropped"]) == (8, [])
    assert report["quantisation_error"]["before"] < report["quantisation_error"]["after"]
    ran = cairn("retrain", filled.place, "--words", 20, "--workers", 1)
    assert ran.code == 0 and "20 words instead of 30" in ran.out
    assert (filled.place / "vocabulary-000003").is_dir() and not (filled.place / "vocabulary-000002").exists()
    (filled.photos / "p01.jpg").unlink()
    assert "--drop-missing" in cairn("retrain", filled.place, "--workers", 1).refused()
    ran = cairn("retrain", filled.place, "--words", 20, "--workers", 1, "--drop-missing")
    assert ran.code == 0 and "dropped: p01.jpg: " in ran.out
    assert cairn("info", filled.place, "--json").json["images"] == 7


def test_photos_that_may_not_be_read_are_not_left_out(filled: Album, monkeypatch: pytest.MonkeyPatch) -> None:
    before = filled.answers()
    for refused in ("stat", "open"):
        plain = getattr(Path, refused)

        def refuse(path: Path, *arguments: Any, plain: Any = plain, **options: Any) -> Any:
            if path.name == "p01.jpg":
                raise PermissionError(13, "Permission denied", str(path))
            return plain(path, *arguments, **options)

        with monkeypatch.context() as patch:
            patch.setattr(Path, refused, refuse)
            with pytest.raises(CairnError, match=r"p01.jpg cannot be read \(Permission denied\): make"):
                run(filled, RetrainOptions(words=25, drop_missing=True))
    assert filled.answers() == before


def test_a_collection_may_have_a_name_that_is_no_text(album: Album) -> None:
    folder = album.place.with_name(os.fsdecode(b"caf\xe9.cairn"))
    album.put(**PHOTOS)
    with Collection.create(folder, CollectionOptions(words=20, signature="none")) as collection:
        assert index_photos(collection, [album.photos]).added == len(PHOTOS)
        assert collection.vocabulary.trained_on.endswith(r"of caf\xe9.cairn")
        retrain(collection, OPTIONS)
        assert collection.vocabulary.trained_on.endswith(r"of caf\xe9.cairn")


def signatures_in(album: Album) -> str:
    """Name of the kind of signature that a collection has, whose features all have those of their descriptors."""
    with album.open() as collection:
        kind, source = collection.signature, collection.signatures
        for row in collection.catalogue.read(all_indexed):
            number = PHOTOS[str(row.name).removesuffix(".jpg")]
            if source is None:
                with pytest.raises(CairnError, match=r"has no signatures: run Collection.retrain.signature=…."):
                    collection.index.images.signatures(row.number)
                continue
            # Descriptors that are kept are in the order of the words before.
            rows = collection.index.images.features(row.number).columns.get(
                "descriptor", features_of(number).descriptors
            )
            words = collection.vocabulary.assign(rows.astype(np.float32))
            expected = source.encode(rows, words)[np.argsort(words, kind="stable")]
            np.testing.assert_array_equal(collection.index.images.signatures(row.number), expected)
            assert collection.index.images.features(row.number).columns.keys() <= {"geometry", "descriptor"}
        assert {segment.signatures is not None for segment in collection.segments} == {kind is not None}
        return str(kind)


@pytest.mark.parametrize("keep", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_signatures_are_given_changed_and_taken(album: Album, keep: bool) -> None:
    album = replace(album, options=replace(album.options, keep_descriptors=keep))
    album.put(**PHOTOS)
    album.index()
    assert signatures_in(album) == "None"
    for asked, there in [
        ("64", "hamming-64"),
        ("", "hamming-64"),
        ("frame-32", "frame-32"),
        ("hamming-128", "hamming-128"),
        ("none", "None"),
        ("", "None"),
    ]:
        run(album, replace(OPTIONS, signature=asked))
        assert signatures_in(album) == there
        check_words(album, PHOTOS)
    run(album, replace(OPTIONS, signature="32"))
    # Photos that are added have them too.
    (album.photos / "p00.jpg").unlink()
    album.put(p00=0)
    album.index()
    assert signatures_in(album) == "hamming-32"
    with album.open() as collection:
        found = rankings(collection, (1, 2), SearchOptions(engine="signatures-sp", turns=1))
    assert [answer[0][0] for answer in found] == ["p01.jpg", "p02.jpg"]


@pytest.mark.slow
@pytest.mark.parametrize("place", ["_rewrite", "_switch_over", "publish_folder"])
def test_a_run_that_gives_signatures_and_is_stopped_is_picked_up(
    filled: Album, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Until it has taken over, nothing has signatures; a run that gives others begins again."""
    options = replace(OPTIONS, signature="64")
    before = filled.answers()
    where = retrieval.indexing.retraining if place == "publish_folder" else retrieval.indexing.retraining._Retraining
    original, calls = getattr(where, place), []

    def stopped(*arguments: Any, **more: Any) -> Any:
        calls.append(place)
        if len(calls) == (1 if place == "_switch_over" else 2):
            raise KeyboardInterrupt
        return original(*arguments, **more)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(where, place, stopped)
        run(filled, options)
    assert signatures_in(filled) == "None" and filled.answers() == before
    run(filled, replace(options, signature="frame-32") if place == "_switch_over" else options)
    assert signatures_in(filled) == ("frame-32" if place == "_switch_over" else "hamming-64")
    check_words(filled, PHOTOS)


# Another descriptor


def descriptor_in_use(album: Album) -> str:
    with album.open() as collection:
        return collection.descriptor.name


@pytest.mark.slow
def test_another_descriptor_takes_over_with_its_words_and_photos_keep_all_that_is_known_of_them(filled: Album) -> None:
    with filled.open() as collection:
        collection.catalogue.write(import_values, {1: {"place": ["Ghent"]}})
        known = collection.catalogue.read(metadata_of, [1])
        before, old = collection.features_fingerprint, filled.held()
        report = retrain(collection, RetrainOptions(words=25, descriptor="sift"))
        assert report.images == 8
        # The same object goes on with the new one.
        assert collection.descriptor.name == "sift"
        assert collection.features_fingerprint == collection.extractor.fingerprint != before
        assert collection.vocabulary.descriptor == collection.features_fingerprint
        assert {segment.descriptor_fingerprint for segment in collection.segments} == {collection.features_fingerprint}
        assert collection.catalogue.read(metadata_of, [1]) == known
    assert filled.held() == old
    check_words(filled, PHOTOS)
    assert check_collection(filled.place).ok
    # What is added is described like the rest, and a new vocabulary alone keeps the descriptor.
    filled.put(new=8)
    assert filled.index().added == 1
    run(filled)
    assert descriptor_in_use(filled) == "sift"
    check_words(filled, PHOTOS | {"new": 8})
    # The way back.
    run(filled, RetrainOptions(words=25, descriptor="rootsift"))
    assert descriptor_in_use(filled) == "rootsift"
    with filled.open() as collection:
        assert collection.features_fingerprint == before
    assert check_collection(filled.place).ok


@pytest.mark.slow
def test_a_learnt_descriptor_lies_beside_the_words_and_is_restored(filled: Album, tmp_path: Path) -> None:
    learnt = model_file("cairn")
    assert learnt is not None
    given = tmp_path / "given.npz"
    given.write_bytes(learnt.read_bytes())
    run(filled, RetrainOptions(words=25, descriptor=str(given)))
    given.unlink()
    own = filled.place / "vocabulary-000002" / "descriptor.npz"
    assert own.read_bytes() == learnt.read_bytes()
    found = filled.answers()
    own.write_bytes(b"damaged")
    report = check_collection(filled.place)
    assert [one.file for one in report.damaged] == ["vocabulary-000002/descriptor.npz"]
    repair_collection(filled.place)
    assert check_collection(filled.place).ok and own.read_bytes() == learnt.read_bytes()
    # A catalogue that is lost takes the descriptor with the vocabulary.
    (filled.place / "catalogue.snapshot").unlink()
    for path in filled.place.glob("catalogue.sqlite*"):
        path.unlink()
    repair_collection(filled.place)
    assert check_collection(filled.place).ok
    assert filled.answers() == found


def test_kept_descriptors_do_not_stand_for_others(album: Album) -> None:
    album.options = CollectionOptions(batch=3, keep_descriptors=True, signature="none")
    album.put(**PHOTOS)
    album.index()
    (album.photos / "p01.jpg").unlink()
    with pytest.raises(CairnError, match=r"1 photos cannot be read again, such as 'p01.jpg' .* another descriptor"):
        run(album, RetrainOptions(words=25, descriptor="sift"))
    assert descriptor_in_use(album) == "rootsift"
    album.put(p01=1)
    run(album, RetrainOptions(words=25, descriptor="sift"))
    check_words(album, PHOTOS)
    with album.open() as collection:
        assert all("descriptor" in segment.columns for segment in collection.segments)


def test_who_searches_takes_the_new_descriptor_with_the_new_words(filled: Album) -> None:
    with filled.open() as reader:
        searches = Searches(reader)
        searches.renew()
        old = reader.vocabulary.fingerprint
        run(filled, RetrainOptions(words=25, descriptor="sift"))
        assert (reader.descriptor.name, reader.vocabulary.fingerprint) == ("rootsift", old)
        assert searches.is_outdated()
        searches.renew()
        assert reader.extractor.descriptor.name == "sift"
        assert reader.vocabulary.descriptor == reader.extractor.fingerprint
        assert rankings(reader, (0, 1), SearchOptions()) == filled.answers(0, 1)


def test_a_descriptor_that_there_is_not_changes_nothing(filled: Album, tmp_path: Path) -> None:
    before = filled.answers()
    for name in ("nothing", str(tmp_path / "none.npz"), "foreign-8"):
        with pytest.raises(CairnError):
            run(filled, RetrainOptions(descriptor=name))
    assert filled.answers() == before


@pytest.mark.parametrize(
    "call",
    [
        pytest.param("publish_folder", marks=pytest.mark.slow),
        pytest.param("segment_row", marks=pytest.mark.slow),
        "replace",
        "seal",
    ],
)
def test_a_switch_that_is_stopped_leaves_the_old_index_or_the_new_one(
    filled: Album, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Stopped after the vocabulary is in place, between segments, before the transaction, and just after it."""
    options = RetrainOptions(words=25, descriptor="sift")
    before = filled.answers()

    def stop(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if call == "replace":
            patch.setattr(retrieval.indexing.retraining, "replace_segments", stop)
        elif call == "publish_folder":
            plain = retrieval.indexing.retraining.publish_folder
            patch.setattr(
                retrieval.indexing.retraining,
                call,
                lambda temporary, final: (plain(temporary, final), stop()),
            )
        else:
            place = retrieval.collection.sealing if call == "seal" else retrieval.indexing.retraining
            patch.setattr(place, call, stop)
        with pytest.raises(KeyboardInterrupt):
            run(filled, options)
    switched = call == "seal"
    assert descriptor_in_use(filled) == ("sift" if switched else "rootsift")
    if not switched:
        assert filled.answers() == before
    run(filled, options)
    assert descriptor_in_use(filled) == "sift"
    check_words(filled, PHOTOS)
    assert check_collection(filled.place).ok
    kept = {path.name for path in filled.place.iterdir() if path.name.startswith(("vocabulary", "retrain"))}
    assert len(kept) == 1
