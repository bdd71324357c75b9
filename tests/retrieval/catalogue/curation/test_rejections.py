"""Pairs that are no match: out of groups, answers, what photos borrow and what is learnt from, until taken back."""

import shutil
from pathlib import Path

import pytest

import cairn as library
from index.arrays import hash_file
from learning.labels.verified import verified_relevance
from learning.mining.photo_source import PhotoSource
from retrieval.catalogue.browsing import numbers_of
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.curation.hidden import hidden_photos, hide, show
from retrieval.catalogue.curation.rejections import reject, rejected_for, rejected_pairs, take_back
from retrieval.catalogue.photos import rows_of
from retrieval.groups.groups import GroupOptions, group_photos, read_groups
from retrieval.groups.links import link_photos
from retrieval.search.answers import LeftOut, QueryImage


@pytest.fixture
def copy(linked: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(linked, tmp_path / "copy.cairn"))


def test_what_is_no_match_is_left_out_everywhere_until_it_is_taken_back(copy: Path) -> None:
    with library.open(copy) as collection:
        opened = collection.opened
        numbers = {photo.name: photo.number for photo in collection}
        one, other = numbers["coffee_0.png"], numbers["coffee_1.png"]
        pair = (min(one, other), max(one, other))
        small, chelsea = numbers["chelsea_small.jpg"], numbers["chelsea_0.png"]
        before = collection.group(augment=True).groups
        answer = collection.search("coffee_0.png", turns=1)
        assert "rejected" not in answer.to_dict() and other in [found.number for found in answer.found]

        assert opened.catalogue.write(reject, one, [other, one, 999, other]) == [other]
        assert opened.catalogue.write(reject, other, [one]) == []  # the same pair
        assert opened.catalogue.write(reject, small, [chelsea]) == [chelsea]
        assert opened.catalogue.read(rejected_pairs) == {pair, (min(small, chelsea), max(small, chelsea))}
        assert opened.catalogue.read(rejected_for, other) == [one]

        stale = read_groups(opened)
        assert stale.out_of_date and small not in {copy for group in stale.groups for copy in group.duplicates}
        found = group_photos(opened)
        assert pair not in link_photos(opened, keep=True)
        assert not any({one, other} & set(group.photos) for group in found.groups)
        assert small not in {copy for group in found.groups for copy in group.duplicates}
        lent = opened.augmentation
        assert lent is not None and not lent.sources_of(opened.index.image_numbers).get(one)
        assert not read_groups(opened).out_of_date

        answers = [collection.search(name, turns=1) for name in ("coffee_0.png", "coffee_1.png")]
        for answer, left_out in zip(answers, (other, one), strict=True):
            assert answer.rejected == (left_out,) and left_out not in [found.number for found in answer]
            assert answer.to_dict()["rejected"] == [left_out] and answer.passing is None
        assert pair not in {
            tuple(sorted((query, found)))
            for query, positives in zip(*_positives(opened), strict=True)
            for found in positives
        }
        source = PhotoSource.open(copy)
        _, proposed = source.propose("random", 1000, 0)
        assert source.numbers is not None and len(proposed) == 45 - 2
        assert pair not in {tuple(sorted(row)) for row in source.numbers[proposed].tolist()}

        opened.catalogue.write(take_back, other, [one])
        opened.catalogue.write(take_back, small, [chelsea])
        assert collection.group().groups == before
        assert "rejected" not in collection.search("coffee_0.png", turns=1).to_dict()


def _positives(opened: object) -> tuple[list[int], list[list[int]]]:
    relevance = verified_relevance(opened)  # type: ignore[arg-type]
    return relevance.queries.tolist(), [one.tolist() for one in relevance.positives]


def test_a_photo_from_elsewhere_is_known_by_its_content(copy: Path, linked: Path, tmp_path: Path) -> None:
    upload = tmp_path / "mine.png"
    upload.write_bytes((linked.parent / "photos" / "coffee_0.png").read_bytes() + b"\0")  # nobody has this file
    sha256 = hash_file(upload)
    with library.open(copy) as collection:
        other = collection.photo("coffee_1.png").number
        assert other in [found.number for found in collection.search(upload, turns=1).found]
        assert collection.opened.catalogue.write(reject, sha256, [other, 999]) == [other]
        answer = collection.search(upload, turns=1)
        assert answer.rejected == (other,) and other not in [found.number for found in answer]
        assert other in [found.number for found in collection.search("coffee_0.png", turns=1).found]
        collection.opened.catalogue.write(take_back, sha256, [other])
        assert other in [found.number for found in collection.search(upload, turns=1).found]


def test_hidden_photos_are_left_out_of_lists_answers_and_groups(copy: Path) -> None:
    with library.open(copy) as collection:
        catalogue = collection.opened.catalogue
        group_photos(collection.opened, GroupOptions())
        hidden = collection.photo("astronaut_copy.png").number
        assert catalogue.write(hide, [hidden, 999], "duplicate") == [hidden] and catalogue.write(hide, [hidden]) == []
        assert catalogue.read(hidden_photos) == {hidden}
        assert len(collection) == 10 and len(collection.photos()) == 9
        assert hidden not in [photo.number for photo in collection.photos()]
        assert [photo.number for photo in collection.photos({"hidden": True})] == [hidden]
        assert len(collection.photos({"name": "astronaut"})) == 3
        answer = collection.search("astronaut_0.png", turns=1)
        assert hidden not in [found.number for found in answer] and (answer.filter, answer.passing) == (None, None)
        assert [one.number for one in collection.search("astronaut_0.png", turns=1, where={"hidden": True})] == [hidden]
        for groups in (read_groups(collection.opened), group_photos(collection.opened)):
            assert not groups.out_of_date and hidden not in {one for group in groups.groups for one in group.photos}
        assert hidden in {one for group in read_groups(collection.opened, hidden=True).groups for one in group.photos}
        # What is hidden and what is no match are left out together.
        query, other = (collection.photo(f"astronaut_{number}.png").number for number in (0, 1))
        assert catalogue.write(reject, query, [other]) == [other]
        found = {one.number for one in collection.search("astronaut_0.png", turns=1)}
        assert found and not found & {hidden, other}
        catalogue.write(take_back, query, [other])
        catalogue.write(show, [hidden])
        assert {hidden, other} < {one.number for one in collection.search("astronaut_0.png", turns=1)}
        assert len(collection.photos()) == 10 and not catalogue.read(hidden_photos)


def test_what_is_left_out_is_read_once_until_something_changes(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what is read in addition to the revision: nothing while nobody decided anything of photos."""
    with Catalogue.open(copy) as catalogue:
        one, other = catalogue.read(rows_of, catalogue.read(numbers_of)[:2])
        requested = [QueryImage("one", Path(one.path), row=one, content=one.sha256)]
        left_out = LeftOut(catalogue)
        transactions = []
        reading = Catalogue.reading
        monkeypatch.setattr(Catalogue, "reading", lambda *all: transactions.append(1) or reading(*all))
        for expected in (1, 0, 0):
            hidden, rejected = left_out.of(requested)
            assert (hidden.tolist(), rejected, len(transactions)) == ([], [], expected)
            transactions.clear()
        with Catalogue.open(copy) as beside:  # another process, such as the server's
            beside.write(hide, [other.number])
            beside.write(reject, one.sha256, [other.number])
        for expected in (2, 1):
            hidden, rejected = left_out.of(requested)
            assert (hidden.tolist(), rejected, len(transactions)) == ([other.number], [other.number], expected)
            transactions.clear()
