"""Augmentation of a collection: made, kept up, left out and mended."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from index.arrays import hash_file, load_json, save_json
from index.errors import CairnError
from index.hamming.voting import BORROWED, match
from index.segments.segment import Segment
from retrieval.catalogue.browsing import numbers_of
from retrieval.catalogue.photos import all_indexed, rows_of
from retrieval.collection import augmentation as store
from retrieval.collection.augmentation import MANIFEST, Augmentation, Loan, is_augmented, open_augmentation
from retrieval.collection.collection import Collection
from retrieval.collection.layout import AUGMENTATION
from retrieval.collection.locking import lock_links
from retrieval.collection.summary import describe_augmentation, describe_collection
from retrieval.features.encoding import decode_centres
from retrieval.groups import augmentation as groups
from retrieval.groups.augmentation import augment_photos
from retrieval.groups.borrowing import BorrowOptions
from retrieval.groups.groups import GroupOptions, group_photos
from retrieval.groups.links import Link, link_photos
from retrieval.indexing.adding import index_photos
from retrieval.indexing.compaction import compact
from retrieval.indexing.removal import remove_photos
from retrieval.indexing.retrain_options import RetrainOptions
from retrieval.indexing.retraining import retrain
from retrieval.integrity.check import check_collection
from retrieval.integrity.repair import repair_collection
from retrieval.search.options import SearchOptions
from retrieval.search.searcher import Searcher
from retrieval.search.views import indexed_view
from tests.support.paths import ROOT
from tests.support.picture_views import write_views

ALL = BorrowOptions(share=10.0)


@pytest.fixture
def copy(linked: Path, tmp_path: Path) -> Iterator[Collection]:
    """A copy of the collection, in which photos may borrow."""
    shutil.copytree(linked, tmp_path / "copy.cairn")
    with Collection.open(tmp_path / "copy.cairn") as collection:
        yield collection


def grouped(collection: Collection, *, augment: bool | None = None) -> int | None:
    """Photos that have borrowed again in a run of `cairn group`."""
    return group_photos(collection, GroupOptions(augment=augment)).augmented


@pytest.fixture(scope="module")
def grouped_once(linked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the collection, whose photos borrow; nobody may change it."""
    folder = Path(shutil.copytree(linked, tmp_path_factory.mktemp("grouped") / "grouped.cairn"))
    with Collection.open(folder) as collection:
        grouped(collection, augment=True)
    return folder


@pytest.fixture
def augmented(grouped_once: Path, tmp_path: Path) -> Iterator[Collection]:
    """A copy of the collection whose photos borrow."""
    shutil.copytree(grouped_once, tmp_path / "copy.cairn")
    with Collection.open(tmp_path / "copy.cairn") as collection:
        yield collection


def every_loan(collection: Collection, augmentation: Augmentation) -> list[Loan]:
    counting = augmentation.borrowed(collection.index.image_numbers).counting
    return [loan for which, counts in enumerate(counting) for loan in augmentation.loans(which, counts)]


def loans(collection: Collection) -> dict[int, tuple[tuple[int, ...], bytes, bytes]]:
    """What every photo borrows, as far as it counts."""
    augmentation = collection.augmentation
    if augmentation is None:
        return {}
    found = every_loan(collection, augmentation)
    return {
        one.photo: (one.sources, one.words.tobytes(), b"" if one.signatures is None else one.signatures.tobytes())
        for one in found
    }


def linked_numbers(collection: Collection) -> set[int]:
    return {row.number for row in collection.catalogue.read(all_indexed) if not (row.name or "").startswith("rocket")}


def test_linked_photos_borrow_and_others_do_not(copy: Collection) -> None:
    assert copy.augmentation is None and grouped(copy) is None
    numbers = linked_numbers(copy)
    assert grouped(copy, augment=True) == len(numbers)
    assert set(loans(copy)) == numbers
    assert grouped(copy) == 0  # nothing has changed
    plain, augmented = copy.index, copy.scored_index(augmented=True)
    assert augmented.lent and not plain.lent
    np.testing.assert_array_equal(augmented.document_frequency, plain.document_frequency)
    copy.forget()
    assert copy.content.has_right_statistics() is True
    facts = describe_collection(copy)["augmentation"]
    assert facts["photos"] <= len(numbers) and facts["bytes"] > 0 and not facts["damaged"]
    assert "photos borrow" in describe_augmentation(facts)
    assert check_collection(copy.folder).ok
    assert grouped(copy, augment=False) is None
    assert copy.augmentation is None and not (copy.folder / AUGMENTATION).exists()
    assert describe_collection(copy)["augmentation"] is None
    assert grouped(copy) is None  # it stays off


def test_what_is_borrowed_maps_into_the_photo(copy: Collection) -> None:
    """Each borrowed word is found in a source, at a place that the link maps strictly into the photo."""
    links = link_photos(copy, min_inliers=10)
    augment_photos(copy, links, ALL)
    kept = copy.augmentation
    assert kept is not None
    for loan in every_loan(copy, kept):
        row = copy.catalogue.read(rows_of, [loan.photo])[0]
        width, height = row.width or 1, row.height or 1
        left = loan.words.tolist()
        for source in loan.sources:
            link = links[min(source, loan.photo), max(source, loan.photo)]
            transform = np.vstack([np.reshape(link.transform, (2, 3)), [0, 0, 1]])
            if link.query != source:
                transform = np.linalg.inv(transform)
            image = copy.index.images.features(source)
            centres = decode_centres(image.columns, np.arange(len(image.words)))
            mapped = centres @ transform[:2, :2].T + transform[:2, 2]
            inside = ((mapped > 0) & (mapped < np.array([width, height]) / max(width, height))).all(axis=1)
            for word in image.words[inside].tolist():
                if word in left:
                    left.remove(word)
        assert not left
        own = copy.index.images.features(loan.photo)
        assert len(loan.words) <= ALL.share * len(own.words)


def test_a_search_may_go_without(copy: Collection) -> None:
    options = [SearchOptions(engine="tf-idf", augmented=augmented) for augmented in (True, False)]
    before = Searcher(copy, options[0]).index.score(np.arange(20)).scores
    augment_photos(copy, link_photos(copy, min_inliers=10), ALL)
    with_loans, without = (Searcher(copy, one).index for one in options)
    np.testing.assert_array_equal(without.score(np.arange(20)).scores, before)
    numbers = np.searchsorted(with_loans.image_numbers, sorted(linked_numbers(copy)))
    assert (with_loans.scored_norms[numbers] > without.norms[numbers]).any()


@pytest.mark.slow
def test_only_what_is_new_is_done_and_it_is_the_same_as_at_once(augmented: Collection, tmp_path: Path) -> None:
    before = loans(augmented)
    more = tmp_path / "more"
    more.mkdir()
    write_views(more, {"coffee": 4})
    for name in ("coffee_0.png", "coffee_1.png", "coffee_2.png"):
        (more / name).unlink()
    index_photos(augmented, [more])
    augmented.forget()
    assert loans(augmented) == before
    new = max(augmented.catalogue.read(numbers_of).tolist())
    coffee = {row.number for row in augmented.catalogue.read(all_indexed) if (row.name or "").startswith("coffee")}
    assert grouped(augmented) == len(coffee) > 1
    after = loans(augmented)
    assert {number for number in after if before.get(number) != after[number]} == coffee and new in coffee
    shutil.copytree(augmented.folder, tmp_path / "anew.cairn")
    with Collection.open(tmp_path / "anew.cairn") as anew:
        assert grouped(anew, augment=False) is None
        grouped(anew, augment=True)
        assert loans(anew) == after


def test_a_photo_that_borrowed_from_a_removed_one_borrows_nothing(augmented: Collection) -> None:
    rows = {row.name: row.number for row in augmented.catalogue.read(all_indexed)}
    remove_photos(augmented, [next(name for name in rows if name and name.endswith("coffee_0.png"))])
    left = rows[next(name for name in rows if name and name.endswith("coffee_1.png"))]
    assert left not in loans(augmented) and len(loans(augmented)) == len(linked_numbers(augmented)) - 1
    augmented.forget()
    assert augmented.content.has_right_statistics() is True
    grouped(augmented)
    assert left not in loans(augmented) or loans(augmented)[left][0] == ()


@pytest.mark.parametrize("damaged", [False, True])
def test_compaction_takes_what_was_removed_off_the_disk(augmented: Collection, damaged: bool) -> None:
    before = loans(augmented)
    row = next(row for row in augmented.catalogue.read(all_indexed) if (row.name or "").endswith("coffee_0.png"))
    remove_photos(augmented, [row.name or ""])
    if damaged:
        segment = next((augmented.folder / AUGMENTATION).glob("0*"))
        (segment / "word_lists.npy").write_bytes(b"nothing")
    compact(augmented)
    after = loans(augmented)
    kept = augmented.augmentation
    if damaged:
        assert kept is None and is_augmented(augmented.folder)
    else:
        assert kept is not None and all(row.number not in some["source"] for some in kept.sources)
        assert after == {number: loan for number, loan in before.items() if row.number not in (number, *loan[0])}
    assert check_collection(augmented.folder).ok


@pytest.mark.slow
def test_a_new_vocabulary_forgets_it_until_the_next_groups(augmented: Collection) -> None:
    report = retrain(augmented, RetrainOptions(words=60, signature="frame-32"))
    assert report.augmentation_emptied and loans(augmented) == {}
    assert "run cairn group" in describe_augmentation(describe_collection(augmented)["augmentation"])
    assert check_collection(augmented.folder).ok
    assert grouped(augmented)
    assert set(loans(augmented)) == linked_numbers(augmented)


@pytest.mark.slow
def test_a_new_vocabulary_takes_no_segment_from_who_lets_photos_borrow(
    copy: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the writing of a segment and its naming."""
    pytest.importorskip("fcntl")
    grouped(copy, augment=True)
    links = link_photos(copy, min_inliers=10)

    def disturbed(folder: Path, basis: store.Basis, some: list[Loan]) -> Segment:
        segment = store.write_loans(folder, basis, some)
        with Collection.open(folder) as other:
            assert retrain(other, RetrainOptions(words=60)).augmentation_emptied
        return segment

    with monkeypatch.context() as patch:
        patch.setattr(groups, "write_loans", disturbed)
        augment_photos(copy, links, ALL)
    copy.forget()
    assert loans(copy) == {} and check_collection(copy.folder).ok
    assert grouped(copy) and set(loans(copy)) == linked_numbers(copy)


def test_a_repair_leaves_what_photos_borrow_to_who_lets_them_borrow(copy: Collection) -> None:
    pytest.importorskip("fcntl")
    grouped(copy, augment=True)
    segment = copy.folder / AUGMENTATION / "000001"
    (segment / "notes.npy").write_bytes(b"nothing")
    with lock_links(copy.folder):
        report = repair_collection(copy.folder)
    assert not report.ok and segment.is_dir() and any("looking for links" in note for note in report.notes)
    assert repair_collection(copy.folder).ok and not segment.exists()


@pytest.mark.slow
@pytest.mark.parametrize("file", [MANIFEST, "000001/meta.json", "000001/posting_lists.npy", "000001/notes.npy", "gone"])
def test_damage_stops_no_search_and_is_mended(augmented: Collection, file: str) -> None:
    before = loans(augmented)
    parent = augmented.folder / AUGMENTATION
    if file == "gone":
        shutil.rmtree(parent / "000001")
    else:
        contents = bytearray((parent / file).read_bytes())
        contents[len(contents) // 2] ^= 0xFF
        (parent / file).write_bytes(contents)
    with Collection.open(augmented.folder) as collection:
        searcher = Searcher(collection, SearchOptions(engine="tf-idf"))
        assert len(searcher.index.score(np.arange(20)).scores) == len(collection.catalogue.read(numbers_of))
        describe_collection(collection)
    found = check_collection(augmented.folder)
    assert found.damaged and all(one.file.startswith(f"{AUGMENTATION}/") for one in found.damaged)
    report = repair_collection(augmented.folder)
    assert report.ok and [one["file"] for one in report.repaired] == [AUGMENTATION]
    with Collection.open(augmented.folder) as collection:
        assert loans(collection) == {}
        grouped(collection)
        assert loans(collection) == before


@pytest.mark.slow
@pytest.mark.parametrize("part", ["manifest", "segment"])
def test_what_a_later_version_wrote_is_no_damage(augmented: Collection, part: str) -> None:
    before = loans(augmented)
    path = augmented.folder / AUGMENTATION / MANIFEST
    kept = load_json(path)
    del kept["sha256"]
    if part == "manifest":
        kept |= {"format": 2, "more": ["of", "it"]}
        (path.parent / "000001").rename(path.parent / "one")
    else:
        meta = path.parent / "000001" / "meta.json"
        save_json(meta, load_json(meta) | {"format": 3})
        kept["segments"]["000001"] = hash_file(meta)
    save_json(path, {**kept, "sha256": store._checksum(kept)})
    contents = path.read_bytes()
    found = check_collection(augmented.folder)
    assert found.ok and not any(AUGMENTATION in note for note in found.notes)
    report = repair_collection(augmented.folder)
    assert report.ok and not report.repaired and path.read_bytes() == contents
    with Collection.open(augmented.folder) as collection:
        assert collection.augmentation is None
        assert "later version" in describe_augmentation(describe_collection(collection)["augmentation"])
        grouped(collection)
        assert loans(collection) == before
    # What only claims to be one is damaged.
    path.write_bytes(contents.replace(b'"format": 2', b'"format": 3').replace(b'"format": 1', b'"format": 2'))
    assert not check_collection(augmented.folder).ok


KILLED = """
import os, sys
from pathlib import Path
import retrieval.collection.augmentation as store
import retrieval.groups.augmentation as groups
from retrieval.collection.collection import Collection
from retrieval.groups.groups import GroupOptions, group_photos

name, before = sys.argv[2], sys.argv[3] == "before"
module = groups if hasattr(groups, name) else store
do = getattr(module, name)

def kill(*given, **named):
    if not before:
        do(*given, **named)
    os._exit(9)

setattr(module, name, kill)
group_photos(Collection.open(Path(sys.argv[1])), GroupOptions(augment=True))
"""


@pytest.mark.parametrize(
    ("step", "when"),
    [
        ("write_manifest", "after"),
        *(
            pytest.param(*one, marks=pytest.mark.slow)
            for one in (("write_loans", "before"), ("write_manifest", "before"), ("_tell", "before"))
        ),
    ],
)
def test_a_run_that_is_killed_leaves_a_sound_collection_and_is_made_good(
    copy: Collection, tmp_path: Path, step: str, when: str
) -> None:
    shutil.copytree(copy.folder, tmp_path / "undisturbed.cairn")
    with Collection.open(tmp_path / "undisturbed.cairn") as undisturbed:
        grouped(undisturbed, augment=True)
        expected = loans(undisturbed)
    ran = subprocess.run(
        [sys.executable, "-c", KILLED, copy.folder, step, when], cwd=ROOT, capture_output=True, text=True
    )
    assert ran.returncode == 9, ran.stderr
    assert check_collection(copy.folder).ok
    copy.forget()
    assert loans(copy) in ({}, expected)
    grouped(copy, augment=True)
    assert loans(copy) == expected
    assert check_collection(copy.folder).ok
    assert not check_collection(copy.folder).notes


def test_small_segments_are_merged(copy: Collection) -> None:
    links = link_photos(copy, min_inliers=10)
    pairs = sorted(links)
    some: dict[tuple[int, int], Link] = {}
    for pair in pairs:
        some[pair] = links[pair]
        augment_photos(copy, some, ALL)
    parts = loans(copy)
    assert len([path for path in (copy.folder / AUGMENTATION).iterdir() if path.is_dir()]) == 1
    shutil.rmtree(copy.folder / AUGMENTATION)
    copy.forget()
    augment_photos(copy, links, ALL)
    assert loans(copy) == parts


@pytest.mark.slow
@pytest.mark.parametrize("signature", ["none", "frame-32"])
def test_a_photo_that_has_lost_its_links_borrows_nothing(copy: Collection, signature: str) -> None:
    if signature != "none":
        retrain(copy, RetrainOptions(words=60, signature=signature))
    links = link_photos(copy, min_inliers=10)
    augment_photos(copy, links, ALL)
    coffee = {row.number for row in copy.catalogue.read(all_indexed) if (row.name or "").startswith("coffee")}
    others = {pair: link for pair, link in links.items() if not coffee & set(pair)}
    assert augment_photos(copy, others, ALL) == len(coffee)
    found = loans(copy)
    assert all(found[number] == ((), b"", b"") for number in coffee)
    assert check_collection(copy.folder).ok
    assert augment_photos(copy, others, ALL) == 0


def borrowed_matches(collection: Collection, number: int) -> np.ndarray:
    """What a photo matches, by word and signature, of what others borrow: photo, feature and rank, in order."""
    index = Searcher(collection, SearchOptions(engine="signatures", turns=1)).index
    signed = indexed_view(index.images.features(number), index.images.signatures(number)).signed
    assert signed is not None
    found = match(index, signed, 22)
    found = found.at(np.lexsort(found.features[::-1]))
    rows = np.column_stack([found.photos, found.query, found.ranks])
    return np.asarray(rows[found.ranks >= BORROWED])


def test_photos_that_have_lost_their_links_do_not_keep_others_from_borrowing(
    copy: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may have a segment of their own, in which there is no feature, and so no signature."""
    retrain(copy, RetrainOptions(words=60, signature="hamming-64"))
    links = link_photos(copy, min_inliers=10)
    augment_photos(copy, links, ALL)
    coffee = {row.number for row in copy.catalogue.read(all_indexed) if (row.name or "").startswith("coffee")}
    others = {pair: link for pair, link in links.items() if not coffee & set(pair)}
    with monkeypatch.context() as patch:
        patch.setattr(groups, "merge_loans", lambda *given, **named: None)
        augment_photos(copy, others, ALL)
    kept = copy.augmentation
    assert kept is not None and [one.features > 0 for one in kept.segments] == [True, False]
    requested = min(linked_numbers(copy) - coffee)
    apart = borrowed_matches(copy, requested)
    augment_photos(copy, others, ALL)  # merges
    copy.forget()
    kept = copy.augmentation
    assert kept is not None and len(kept.segments) == 1
    np.testing.assert_array_equal(borrowed_matches(copy, requested), apart)
    assert len(apart)


def test_what_is_replaced_while_it_is_read_is_read_again(copy: Collection, monkeypatch: pytest.MonkeyPatch) -> None:
    links = link_photos(copy, min_inliers=10)
    augment_photos(copy, links, ALL)
    first = copy.augmentation
    assert first is not None
    calls: list[Path] = []

    def replaced(folder: Path, name: str, digest: str) -> Segment:
        calls.append(folder)
        if len(calls) == 1:
            augment_photos(copy, links, BorrowOptions(share=0.1))
        return read(folder, name, digest)

    read = store._open_segment
    monkeypatch.setattr(store, "_open_segment", replaced)
    found = open_augmentation(copy.folder, copy.basis)
    assert found is not None and found.key != first.key


def test_other_words_are_never_mixed(copy: Collection) -> None:
    augment_photos(copy, link_photos(copy, min_inliers=10), ALL)
    basis = copy.basis
    other = store.Basis(basis.vocabulary, basis.descriptor, "hamming-128")
    assert open_augmentation(copy.folder, other) is None
    with pytest.raises(CairnError, match=r"Collection\.group"):
        (copy.folder / AUGMENTATION / MANIFEST).write_text('{"format": 1}')
        open_augmentation(copy.folder, basis)
