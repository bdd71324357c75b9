"""What workers do with a collection that stays open: what has changed of it is opened, and nothing else."""

import re
import shutil
from pathlib import Path
from typing import Any

import psutil
import pytest
from PIL import Image

from index.errors import CairnError
from retrieval.catalogue.metadata_store import import_values
from retrieval.catalogue.settings import keep_setting
from retrieval.collection.collection import Collection
from retrieval.groups.groups import GroupOptions, group_photos
from retrieval.indexing.adding import index_photos
from retrieval.library import searches
from retrieval.web.jobs import SearchJobs, ServedCollection
from retrieval.web.pool import worker_source
from retrieval.web.search_models import QueryPhoto, SearchAnswer, SearchRequest
from tests.conftest import Indexed
from tests.support.live import until


@pytest.fixture
def folder(indexed: Indexed, tmp_path: Path) -> Path:
    return Path(shutil.copytree(indexed.folder, tmp_path / "copy.cairn"))


def _request(photo: int, **options: Any) -> dict[str, Any]:
    return SearchRequest(queries=[QueryPhoto(photo=photo)], **options).model_dump(mode="json")


def _best(of: SearchJobs, photo: int) -> list[str]:
    return [result["name"] for result in of.do("search", _request(photo, turns=1))[0]["results"]]


def test_what_was_added_is_opened_and_nothing_else(folder: Path, indexed: Indexed, tmp_path: Path) -> None:
    searching = SearchJobs(ServedCollection(folder))
    opened = searching._opened().collection
    before, index = opened.segments, opened.index
    names = _best(searching, 0)
    assert not searching.is_outdated()
    # What a search reads from the catalogue each time makes nothing outdated.
    with Collection.open(folder) as collection:
        collection.catalogue.write(keep_setting, "some", "value")
    assert not searching.is_outdated() and searching._opened().collection.index is index
    (tmp_path / "more").mkdir()
    with Image.open(indexed.photos / names[0]) as photo:
        photo.rotate(3).save(tmp_path / "more" / "new.png")
    with Collection.open(folder) as collection:
        index_photos(collection, [tmp_path / "more"])
    assert searching.is_outdated()
    assert "new.png" not in _best(searching, 0)  # until it is told to
    queries = dict(searching._opened()._queries)
    searching.renew()
    after = searching._opened().collection.segments
    assert not searching.is_outdated() and len(after) > len(before)
    assert all(one is other for one, other in zip(before, after, strict=False))
    assert dict(searching._opened()._queries) == queries  # its words are the same
    assert "new.png" in _best(searching, 0)
    # The process that workers are forked from keeps no connection.
    searching.let_go()
    assert searching._opened().collection.catalogue._database._engine.pool.checkedin() == 0  # type: ignore[attr-defined]
    searching.let_go()


@pytest.mark.skipif(not worker_source.can_fork(), reason="workers cannot be forked here")
@pytest.mark.parametrize("cluster", [None, "tcp://localhost:1"])
def test_the_process_that_workers_are_forked_from_has_no_threads(folder: Path, cluster: str | None) -> None:
    server = worker_source.ForkServer(
        worker_source.Start(SearchJobs, (ServedCollection(folder, cluster=cluster),), 0, 0)
    )
    server.open()

    def is_alone() -> bool:
        return psutil.Process(server._process.pid).num_threads() == 1

    for text in ("first", "second"):
        until(is_alone)  # a library may have a thread for a moment, as it is loaded
        worker = server.hire()
        with Collection.open(folder) as collection:
            collection.catalogue.write(import_values, {1: {"place": [text]}})
        server.look()
        worker.end()
    until(is_alone)
    server.end()


def test_what_is_missing_of_an_upload_is_told(folder: Path, indexed: Indexed, tmp_path: Path) -> None:
    searching = SearchJobs(ServedCollection(folder))
    whole, cut, of_a_photo = tmp_path / "whole.jpg", tmp_path / "cut.jpg", _request(0, turns=1)
    with Image.open(indexed.photos / "coffee_001.jpg") as photo:
        photo.save(whole, quality=80)
    content = whole.read_bytes()
    cut.write_bytes(content[: len(content) * 95 // 100])

    def told(*files: Path) -> list[Any]:
        asked = SearchRequest(queries=[QueryPhoto(upload=place) for place in range(len(files))], turns=1)
        request = asked.model_dump(mode="json")
        for one, file in zip(request["queries"], files, strict=True):
            one |= {"path": str(file), "name": f"my {file.name}"}
        answer = SearchAnswer.model_validate(searching.do("search", request)[0])
        assert answer.results[0].name == "coffee_001.jpg"
        return [(one.name, one.reason) for one in answer.remarks]

    (first,) = told(whole, cut)
    assert first[0] == "my cut.jpg" and re.fullmatch(r"the lowest \d+% are missing", first[1])
    assert (
        told(cut) == [first] and "remarks" not in searching.do("search", of_a_photo)[0]
    )  # from the queries that are kept
    searching.let_go()


def test_a_searcher_is_kept_while_the_collection_is_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    class Counted(searches.Searcher):
        def __init__(self, *arguments: Any) -> None:
            made.append(1)
            super().__init__(*arguments)

    monkeypatch.setattr(searches, "Searcher", Counted)
    searching = SearchJobs(ServedCollection(folder))
    for photo in (0, 1, 2):
        searching.do("search", _request(photo))  # with the options that most have, ready when it is opened
    assert len(made) == 1
    for photo in (0, 1):
        searching.do("search", _request(photo, turns=1, engine="tf-idf"))
    assert len(made) == 2
    searching.renew()
    assert len(made) == 3
    searching.let_go()


def test_a_collection_that_cannot_be_opened_is_told_by_each_job_until_it_can(folder: Path) -> None:
    aside = folder.with_name("aside")
    folder.rename(aside)
    searching = SearchJobs(ServedCollection(folder))
    for _ in range(2):
        assert searching.is_outdated()
        with pytest.raises(CairnError, match="no collection"):
            searching.do("ready", {})
    aside.rename(folder)
    assert searching.do("ready", {}) == ({}, b"")
    assert not searching.is_outdated()
    searching.let_go()


@pytest.mark.slow
def test_what_photos_borrow_is_opened_when_it_has_changed(linked: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(linked, tmp_path / "linked.cairn"))
    searching = SearchJobs(ServedCollection(folder))
    for augment, request, expected in ((True, {}, True), (True, {"augmented": False}, False), (False, {}, False)):
        with Collection.open(folder) as collection:
            group_photos(collection, GroupOptions(augment=augment))
        if searching.is_outdated():
            searching.renew()
        assert searching.do("search", _request(0, turns=1, **request))[0]["augmented"] is expected
    assert not searching.is_outdated()
    searching.let_go()
