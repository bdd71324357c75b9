"""Albums: whatever is done to them, no photo is lost and none is in an album twice."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from index.errors import CairnError
from retrieval.catalogue.browsing import numbers_of
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.changes import make_tombstones
from retrieval.catalogue.curation.albums import numbers_in_album, page_of_album
from retrieval.catalogue.filters import PhotoFilter
from retrieval.catalogue.metadata_store import import_values
from retrieval.catalogue.schema import HiddenRow
from retrieval.curation.albums import (
    AlbumNotFound,
    add_to_album,
    albums_of_photo,
    change_album,
    delete_album,
    list_albums,
    make_album,
    merge_albums,
    move_in_album,
    read_album,
    remove_from_album,
    split_album,
)
from tests.retrieval.curation.conftest import PHOTOS, with_photos


def photos_of_album(catalogue: Catalogue, album: int) -> list[int]:
    """Numbers of the photos of an album, in its order."""
    with catalogue.reading() as session:
        return numbers_in_album(session, album)


def test_what_is_done_to_albums(catalogue: Catalogue) -> None:
    one = catalogue.write(make_album, "  <b>Bridges</b>\n ", [3, 1, 99, 3, 2], cover=1)
    assert (one.name, one.photos, one.cover) == ("<b>Bridges</b>", 3, 1)
    other = catalogue.write(make_album, "Arches", [5])
    assert (other.cover, other.photos) == (5, 1)
    empty = catalogue.write(make_album, "x" * 300)
    assert (len(empty.name), empty.cover, empty.photos) == (200, None, 0)
    assert [album.album for album in catalogue.read(list_albums)] == [empty.album, other.album, one.album]
    for name in ("ARCHES", " "):
        with pytest.raises(CairnError, match=r"called 'ARCHES' already|needs a name"):
            catalogue.write(make_album, name)
        with pytest.raises(CairnError):
            catalogue.write(change_album, one.album, name=name)
    assert catalogue.write(change_album, other.album, name="arches").name == "arches"  # its own name
    assert catalogue.write(add_to_album, one.album, [2, 4, 6, 4]) == [4, 6]
    assert photos_of_album(catalogue, one.album) == [3, 1, 2, 4, 6]
    catalogue.write(move_in_album, one.album, [6, 3], before=2)
    assert photos_of_album(catalogue, one.album) == [1, 3, 6, 2, 4]
    assert catalogue.write(remove_from_album, one.album, [6, 7, 1]) == [1, 6]
    assert catalogue.read(read_album, one.album).cover == 3  # the one that was chosen is not in it
    with pytest.raises(CairnError, match="not in the album"):
        catalogue.write(change_album, one.album, cover=7)
    catalogue.write(import_values, {4: {"taken": ["1923"]}, 2: {"taken": ["1930"]}})
    catalogue.write(change_album, one.album, order="taken")
    assert photos_of_album(catalogue, one.album) == [4, 2, 3]
    made = catalogue.write(split_album, one.album, [3, 4], "Split")
    assert photos_of_album(catalogue, made.album) == [4, 3] and photos_of_album(catalogue, one.album) == [2]
    with pytest.raises(CairnError, match="None of these"):
        catalogue.write(split_album, one.album, [7], "Nothing")
    assert not [album for album in catalogue.read(list_albums) if album.name == "Nothing"]
    catalogue.write(add_to_album, other.album, [3])
    merged = catalogue.write(merge_albums, one.album, [made.album, one.album, other.album])
    assert photos_of_album(catalogue, merged.album) == [2, 4, 3, 5]
    assert [album.album for album in catalogue.read(albums_of_photo, 5)] == [one.album]
    for gone in (made.album, other.album):
        with pytest.raises(AlbumNotFound):
            catalogue.read(read_album, gone)
    assert catalogue.page(0, 9, wanted=PhotoFilter(album=one.album))[0] == 4
    assert catalogue.read(numbers_of, wanted=PhotoFilter(album=one.album, taken_to="1929")).tolist() == [4]
    with catalogue.writing() as session:
        session.add(HiddenRow(number=2))
    catalogue.write(make_tombstones, [4])
    with catalogue.reading() as session:
        total, rows = page_of_album(session, one.album, 1, 5)
    assert (total, [row.number for row in rows]) == (2, [5]) == (catalogue.read(read_album, one.album).photos, [5])
    before, numbers = catalogue.write(delete_album, one.album)
    assert numbers == [2, 3, 5] and before.photos == 2
    assert catalogue.write(make_album, "Again").album > empty.album > one.album  # an id is never given twice
    catalogue.close()


class AlbumMachine(RuleBasedStateMachine):
    """Splits and merges compared with a model of lists."""

    some = st.lists(st.integers(0, PHOTOS - 1), max_size=4)

    def __init__(self) -> None:
        super().__init__()
        self.catalogue = with_photos("sqlite://")
        self.model: dict[int, list[int]] = {}
        self.made = 0

    def pick(self, place: int) -> int:
        return sorted(self.model)[place % len(self.model)]

    def name(self) -> str:
        self.made += 1
        return f"album {self.made}"

    @rule(photos=some)
    def make(self, photos: list[int]) -> None:
        if len(self.model) < 4:
            self.model[self.catalogue.write(make_album, self.name(), photos).album] = list(dict.fromkeys(photos))

    @rule(place=st.integers(0, 3), photos=some, before=st.integers(0, PHOTOS - 1))
    def move(self, place: int, photos: list[int], before: int) -> None:
        if self.model:
            album = self.pick(place)
            there = self.model[album]
            moved = [one for one in there if one in photos and one != before]
            left = [one for one in there if one not in moved]
            at = left.index(before) if before in left else len(left)
            self.model[album] = [*left[:at], *moved, *left[at:]]
            self.catalogue.write(move_in_album, album, photos, before)

    @rule(place=st.integers(0, 3), photos=some)
    def split(self, place: int, photos: list[int]) -> None:
        if self.model:
            album = self.pick(place)
            taken = [one for one in self.model[album] if one in photos]
            if not taken:
                with pytest.raises(CairnError):
                    self.catalogue.write(split_album, album, photos, self.name())
                return
            made = self.catalogue.write(split_album, album, photos, self.name())
            self.model[album] = [one for one in self.model[album] if one not in taken]
            self.model[made.album] = taken

    @rule(place=st.integers(0, 3), others=st.lists(st.integers(0, 3), min_size=1, max_size=2))
    def merge(self, place: int, others: list[int]) -> None:
        if self.model:
            album = self.pick(place)
            merged = list(dict.fromkeys(self.pick(other) for other in others))
            self.catalogue.write(merge_albums, album, merged)
            for other in merged:
                if other != album:
                    self.model[album] += [one for one in self.model.pop(other) if one not in self.model[album]]

    @invariant()
    def same(self) -> None:
        assert {one.album: one.photos for one in self.catalogue.read(list_albums)} == {
            album: len(photos) for album, photos in self.model.items()
        }
        for album, photos in self.model.items():
            assert photos_of_album(self.catalogue, album) == photos

    def teardown(self) -> None:
        self.catalogue.close()


TestAlbumMachine = AlbumMachine.TestCase
TestAlbumMachine.settings = settings(max_examples=8, stateful_step_count=12, deadline=None)


def test_no_two_albums_are_called_the_same_by_two_at_once(catalogue: Catalogue) -> None:
    catalogue.write(make_album, "a")
    with pytest.raises(CairnError), catalogue.writing() as session:  # the database itself says so
        session.execute(sa.text("INSERT INTO albums (name, created) VALUES ('a', '')"))
    catalogue.close()


def test_of_two_at_once_that_make_albums_of_one_name_one_does(catalogue: Catalogue) -> None:
    """Names that differ in capitals alone are the same, which no constraint of the database tells."""

    def make(name: str) -> bool:
        try:
            catalogue.write(make_album, name)
        except CairnError as error:
            assert "already" in str(error)
            return False
        return True

    with ThreadPoolExecutor(6) as several:
        made = list(several.map(make, ["arches", "Arches", "ARCHES"] * 4))
    assert made.count(True) == 1
    assert len(catalogue.read(list_albums)) == 1
    catalogue.close()
