"""Titles, dates and tags that are edited by hand, and undone."""

import pytest

from index.errors import CairnError
from retrieval.catalogue.browsing import numbers_of
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.filters import PhotoFilter
from retrieval.catalogue.metadata_store import import_values, imported_values, metadata_of, store_metadata
from retrieval.curation.editing import Edit, TagOfPhotos, edit_photos, restore_photos, summarise
from retrieval.metadata.fields import Metadata


def test_an_edit_counts_as_an_import_and_is_undone(catalogue: Catalogue) -> None:
    catalogue.write(store_metadata, [(1, Metadata(title="In the file", taken="1931-05", tags=("Rome", "well")))])
    catalogue.write(import_values, {2: {"title": ["Typed"], "tag": ["river"], "archive": ["7"]}})
    before = catalogue.read(metadata_of, [1, 2, 3])
    edit = Edit("  <i>Bridge</i>\n", "Over the  Main.\n", "17.5.1923", ("new", "NEW", "WELL"), ("rome", "RIVER"))
    edited = catalogue.write(edit_photos, [1, 2, 99, 2], edit)
    assert edited.kept == 1 and set(edited.before) == {1, 2}
    now = catalogue.read(metadata_of, [1, 2, 3])
    assert {(one.title, one.taken) for number, one in now.items() if number < 3} == {("<i>Bridge</i>", "1923-05-17")}
    assert now[1].caption == now[2].caption == "Over the Main."
    assert now[1].tags == ("new", "Rome", "well") and now[2].tags == ("new", "WELL")
    assert now[2].others == {"archive": ("7",)} and now[3] == before[3]
    wanted = PhotoFilter(tags=("NEW",), title="bridge", taken_from="1923-05")
    assert catalogue.read(numbers_of, wanted=wanted).tolist() == [1, 2]
    assert catalogue.read(imported_values)[1]["title"] == ["<i>Bridge</i>"]  # as an export tells it

    assert catalogue.write(edit_photos, [1, 2], edit).before == {}  # as it is already
    assert catalogue.write(restore_photos, edited.before) == 2
    assert catalogue.read(metadata_of, [1, 2, 3]) == before
    gone = catalogue.write(edit_photos, [1, 2], Edit(title=""))
    assert (
        catalogue.read(metadata_of, [1])[1].title == "In the file" and catalogue.read(metadata_of, [2])[2].title is None
    )
    assert set(gone.before) == {2} and gone.before[2] == {"title": ("Typed",)}
    catalogue.close()


def test_what_is_no_date_changes_nothing(catalogue: Catalogue) -> None:
    revision = catalogue.revision()
    with pytest.raises(CairnError, match="'yesterday' is not a date: write it as 1923"):
        catalogue.write(edit_photos, [1], Edit("Title", taken="yesterday"))
    for wrong in ({"taken": ["2023-02-31"]}, {"camera": ["x"]}):
        with pytest.raises(CairnError):
            catalogue.write(restore_photos, {1: wrong})
    assert catalogue.revision() == revision
    catalogue.close()


def test_a_summary_says_what_can_be_removed(catalogue: Catalogue) -> None:
    catalogue.write(store_metadata, [(1, Metadata(title="A", tags=("Rome", "well")))])
    catalogue.write(import_values, {1: {"tag": ["rome"]}, 2: {"tag": ["river", "ROME"]}, 3: {"taken": ["1923"]}})
    found = catalogue.read(summarise, [1, 2, 3, 99])
    assert found.tags == [TagOfPhotos("rome", 2, 2), TagOfPhotos("river", 1, 1), TagOfPhotos("well", 1, 0)]
    assert (found.titles, found.captions) == (["A", ""], [""]) and found.dates == ["", "1923"]
    catalogue.close()
