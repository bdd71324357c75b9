"""Shards on a real Dask cluster of two workers on this machine."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from index.cluster.connection import Cluster
from retrieval.catalogue.photos import all_indexed
from retrieval.indexing.removal import remove_photos
from retrieval.library.cluster import ClusterWork
from retrieval.search.options import SearchOptions
from retrieval.search.searcher import Searcher
from retrieval.shards.cluster import ClusterHolders, usual_shards
from retrieval.shards.engine import sharded_searcher
from retrieval.shards.epoch import open_epoch
from retrieval.shards.shards import Shards, ShardTimeouts
from retrieval.web.jobs import SearchJobs, ServedCollection
from retrieval.web.pool.job_process import Refused
from retrieval.web.search_models import QueryPhoto, SearchRequest
from tests.conftest import Indexed, Ran
from tests.support.patience import patience
from tests.support.sharded import ALBUMS, SharedAlbum, make_album, opened_album, query_at_turns

pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster.connect("local:2", patience=5) as connected:
        yield connected


@pytest.fixture(scope="module")
def albums(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[int], SharedAlbum]]:
    """The albums, each made when it is first asked for."""
    with ExitStack() as stack:
        yield cache(lambda one: stack.enter_context(opened_album(tmp_path_factory.mktemp("shared") / "album", one)))


@pytest.fixture(params=ALBUMS)
def one_album(request: pytest.FixtureRequest, albums: Callable[[int], SharedAlbum]) -> SharedAlbum:
    """One of the albums. With `shared_album`, pytest would run some tests of this module apart from the others, and
    start the cluster twice."""
    return albums(request.param)


def address_of(cluster: Cluster) -> str:
    return str(cluster.client.scheduler_info()["address"])


def numbers_of(searcher: Searcher, views: object) -> list[tuple[int, float, int]]:
    hits = searcher.search(views, top=50).hits  # type: ignore[arg-type]
    return [(hit.number, hit.score, hit.verification.inliers) for hit in hits if hit.score > 0]


@pytest.mark.slow
def test_workers_answer_as_one_machine_and_one_may_die(one_album: SharedAlbum, cluster: Cluster) -> None:
    collection, options = one_album.collection, SearchOptions(engine="signatures-sp")
    views = query_at_turns(collection, 3, 4).views
    expected = numbers_of(Searcher(collection, options), views)
    shards = Shards(open_epoch(collection, usual_shards(cluster)), ClusterHolders(cluster), ShardTimeouts(look=0.0))
    searcher = sharded_searcher(collection, options, shards)
    assert numbers_of(searcher, views) == expected
    assert len(shards.placed.keys) == 2 and len(shards.epoch.shards) == 4
    victim = next(iter(shards.placed.keys))
    os.kill(cluster.client.run(os.getpid)[victim], signal.SIGKILL)
    assert numbers_of(searcher, views) == expected
    assert victim not in shards.placed.keys and searcher.search(views).missing == ()
    end = time.monotonic() + patience(60)  # the nanny starts another, which takes shards
    while len(shards.placed.keys) < 2 and time.monotonic() < end:
        time.sleep(0.2)
        assert numbers_of(searcher, views) == expected
    assert len(shards.placed.keys) == 2


def request(number: int) -> dict[str, object]:
    return SearchRequest(queries=[QueryPhoto(photo=number)], turns=1).model_dump(mode="json")


@pytest.mark.slow
def test_the_server_answers_from_shards_and_follows_changes(cluster: Cluster, tmp_path: Path) -> None:
    from tests.support.written_photos import extraction_from_files

    with extraction_from_files():
        album = make_album(tmp_path / "album", 5)
        here = SearchJobs(ServedCollection(album.place))
        there = SearchJobs(ServedCollection(album.place, cluster=address_of(cluster), shards=3))
        with album.open() as collection:
            number, name = (
                collection.catalogue.read(all_indexed)[0].number,
                str(collection.catalogue.read(all_indexed)[3].name),
            )
        for change in (False, True):
            if change:
                with album.open() as collection:
                    remove_photos(collection, [name])
            answers = []
            for jobs in (here, there):
                if jobs.is_outdated():
                    assert change
                    jobs.renew()
                assert jobs.do("ready", {}) == ({}, b"")
                answer, _ = jobs.do("search", request(number))
                del answer["seconds"]
                answers.append(answer)
            assert answers[0] == answers[1] and answers[0]["results"] and answers[0]["missing_shards"] == []
            assert (name in {one["name"] for one in answers[0]["results"]}) != change
        explained = {"engine": "best", "photo": number, "turn": None, "every_turn": True, "expand": "none"}
        matches = [jobs.do("match", request(number) | explained)[0] for jobs in (here, there)]
        assert matches[0] == matches[1] and matches[0]["matches"]


def test_a_server_without_its_cluster_says_so(one_album: SharedAlbum, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("index.cluster.connection.HELLO", 0.5)
    jobs = SearchJobs(ServedCollection(one_album.album.place, cluster="tcp://127.0.0.1:9", shards=2))
    with pytest.raises(Refused, match="No Dask scheduler answers") as refused:
        jobs.do("search", request(one_album.collection.catalogue.read(all_indexed)[0].number))
    assert refused.value.kind == "cluster"


def test_searchers_are_made_of_a_collection(one_album: SharedAlbum, cluster: Cluster) -> None:
    collection, options = one_album.collection, SearchOptions(engine="tf-idf")
    views = query_at_turns(collection, 8, 8).views
    with ClusterWork(address_of(cluster)) as work:
        work.renew(collection)
        assert numbers_of(work.searcher(collection, options), views) == numbers_of(Searcher(collection, options), views)


def test_a_query_on_a_cluster(indexed: Indexed, cairn: Callable[..., Ran], cluster: Cluster) -> None:
    command = ("query", indexed.folder, "coffee_001.jpg", "page_001.jpg", "--all", "--turns", 1, "--top", 4, "--json")
    alone, shared = cairn(*command).json, cairn(*command, "--cluster", address_of(cluster), "--shards", 2).json
    del alone["seconds"], shared["seconds"]
    assert shared == alone and shared["missing_shards"] == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--cluster", "nonsense"), "'nonsense' is no address of a cluster"),
        (("--cluster", "tcp://127.0.0.1:9"), "No Dask scheduler answers at tcp://127.0.0.1:9"),
        (("--shards", 3), "name some with --cluster"),
    ],
)
@pytest.mark.parametrize("command", [("query", "coffee_001.jpg"), ("serve",)])
def test_a_wrong_cluster_is_one_sentence(
    indexed: Indexed,
    cairn: Callable[..., Ran],
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    options: tuple[object, ...],
    sentence: str,
) -> None:
    monkeypatch.setattr("index.cluster.connection.HELLO", 0.5)
    name, *photos = command
    assert sentence in cairn(name, indexed.folder, *photos, *options).refused()
