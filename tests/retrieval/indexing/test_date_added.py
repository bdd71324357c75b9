"""When a photo was added: set once, and kept whatever becomes of its segment."""

import datetime
import json
from collections.abc import Callable

import pytest

from index.errors import CairnError
from retrieval.catalogue.photos import all_indexed
from retrieval.catalogue.schema import FILE
from retrieval.collection.segment_notes import read_notes, write_notes
from retrieval.indexing.compaction import compact
from retrieval.indexing.retraining import retrain
from retrieval.integrity.repair import repair_collection
from tests.conftest import Ran
from tests.support.written_photos import Album, album  # noqa: F401

LONG_AGO = "2020-01-02T03:04:05+00:00"


def dates(one: Album) -> dict[str, str | None]:
    with one.open() as collection:
        return {str(row.name): row.date_added for row in collection.catalogue.read(all_indexed)}


@pytest.fixture
def aged(album: Album, monkeypatch: pytest.MonkeyPatch) -> Album:  # noqa: F811
    """Three photos that were added long ago."""

    class Then(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:
            return datetime.datetime.fromisoformat(LONG_AGO)

    album.put(a=0, b=1, c=2)
    with monkeypatch.context() as patch:
        patch.setattr(datetime, "datetime", Then)
        album.index()
    assert dates(album) == dict.fromkeys(("a.jpg", "b.jpg", "c.jpg"), LONG_AGO)
    return album


def test_a_photo_is_added_once(aged: Album) -> None:
    began = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    aged.put(b=7, d=8)  # b has changed
    assert aged.index().added == 2
    found = dates(aged)
    assert (found["a.jpg"], found["b.jpg"], found["c.jpg"]) == (LONG_AGO, LONG_AGO, LONG_AGO)
    new = datetime.datetime.fromisoformat(str(found["d.jpg"]))
    assert new.utcoffset() == datetime.timedelta(0) and began <= new <= datetime.datetime.now(datetime.UTC)


def test_it_outlives_its_segment_and_its_catalogue(aged: Album, cairn: Callable[..., Ran]) -> None:
    aged.put(d=8)
    aged.index()
    before = dates(aged)
    for change in (compact, retrain):
        with aged.open() as collection:
            change(collection)
        assert dates(aged) == before
    (aged.place / FILE).unlink()
    repair_collection(aged.place)
    assert dates(aged) == before
    reported = cairn("info", aged.place, "--json").json["date_added"]
    assert (reported["first"], reported["last"]) == (LONG_AGO, before["d.jpg"])
    assert cairn("metadata", aged.place, "--photo", "a.jpg", "--json").json["date_added"] == LONG_AGO


def test_notes_of_earlier_versions_are_read(aged: Album) -> None:
    with aged.open() as collection:
        rows = collection.catalogue.read(all_indexed)
    old = json.dumps([one[:-1] for one in json.loads(write_notes(rows))]).encode()
    assert [(row.number, row.path, row.date_added) for row in read_notes(old)] == [
        (row.number, row.path, None) for row in rows
    ]
    with pytest.raises(CairnError, match="notes of a segment are damaged"):
        read_notes(json.dumps([one[:-2] for one in json.loads(old)]).encode())
