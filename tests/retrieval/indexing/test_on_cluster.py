"""Indexing on a cluster: the same collection as on one machine, wherever its files are and whatever dies meanwhile."""

import dataclasses
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from eval.demo.synthetic import DemoCollection
from index.arrays import hash_file
from index.cluster.connection import Cluster
from index.cluster.storage import open_storage
from index.errors import CairnError
from retrieval.collection.collection import Collection
from retrieval.collection.layout import DESCRIPTOR, OPTIONS, STAGING, STORAGE_KEY, VOCABULARY
from retrieval.indexing.adding import index_photos
from retrieval.indexing.on_cluster import ClusterPreparer
from retrieval.indexing.report import IndexReport
from retrieval.integrity.check import check_collection
from tests.conftest import Ran
from tests.retrieval.indexing.test_adding import SMALL, contents, index
from tests.support.clusters import Machines, PickledTasks
from tests.support.paths import ROOT
from tests.support.patience import patience


@pytest.fixture(scope="module")
def photos(demo: DemoCollection, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten of the demo's photos, one of them twice, and one damaged file."""
    folder = tmp_path_factory.mktemp("photos")
    for path in sorted(demo.images.iterdir())[:10]:
        shutil.copy(path, folder)
    shutil.copy(sorted(demo.images.iterdir())[3], folder / "a-copy.png")
    (folder / "b-damaged.jpg").write_bytes(b"no photo")
    return folder


@pytest.fixture(scope="module")
def whole(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What one machine makes of them."""
    folder = tmp_path_factory.mktemp("whole") / "c.cairn"
    assert index(folder, photos).added == 11
    return contents(folder)


def index_there(folder: Path, photos: Path, place: Path | str, cluster: Any = None, **more: Any) -> IndexReport:
    with Collection.create(folder, SMALL) as collection:
        preparer = ClusterPreparer(collection, cluster or PickledTasks(), open_storage(str(place)))  # type: ignore[arg-type]
        return index_photos(collection, [photos], preparer=preparer, **more)


@pytest.fixture(
    params=[
        pytest.param("own folder", marks=pytest.mark.slow),
        "other folder",
        pytest.param("object store", marks=pytest.mark.slow),
    ]
)
def place_of(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], str]:
    monkeypatch.setenv("CAIRN_CACHE", str(tmp_path / "cache"))
    places = {"other folder": str(tmp_path / "there"), "object store": f"memory://{tmp_path.name}"}
    return lambda folder: places.get(request.param, str(folder))


def test_it_is_the_same_as_on_one_machine(
    photos: Path, whole: dict[str, Any], place_of: Callable[[Path], str], tmp_path: Path
) -> None:
    folder = tmp_path / "c.cairn"
    report = index_there(folder, photos, place_of(folder))
    assert (report.added, len(report.failed)) == (11, 1)
    assert contents(folder) == whole
    assert not (folder / STAGING).exists()
    assert not check_collection(folder).damaged
    there = open_storage(place_of(folder))
    assert there.names(STAGING) == []
    # All that other machines need to search it.
    assert there.names("segments") == sorted(path.name for path in (folder / "segments").iterdir())
    for name in there.names("segments"):
        for path in (folder / "segments" / name).iterdir():
            assert hash_file(there.fetch(f"segments/{name}") / path.name) == hash_file(path)
    for path in (folder / VOCABULARY).iterdir():
        assert hash_file(there.fetch(VOCABULARY) / path.name) == hash_file(path)


def test_words_of_few_features_have_the_same_signatures_everywhere(photos: Path, tmp_path: Path) -> None:
    """With three features to a word many are their word's centre: by one process, by several, and by a cluster's."""
    with Collection.create(tmp_path / "count.cairn", SMALL) as collection:
        index_photos(collection, [photos])
        features = sum(segment.features for segment in collection.index.segments)
    options = dataclasses.replace(SMALL, words=features // 3, signature="hamming-64", keep_descriptors=True)
    found = []
    for name in ("one", "several", "cluster"):
        folder = tmp_path / f"{name}.cairn"
        with Collection.create(folder, options) as collection:
            preparer = None
            if name == "cluster":
                preparer = ClusterPreparer(collection, PickledTasks(), open_storage(str(folder)))  # type: ignore[arg-type]
            index_photos(collection, [photos], workers=1 if name == "one" else 2, preparer=preparer)
        with Collection.open(folder) as collection:
            images = collection.index.images
            signatures = [images.signatures(number) for number in collection.index.image_numbers.tolist()]
        alone = sum(int((~some.any(axis=1)).sum()) for some in signatures if some is not None)
        assert alone > 0.02 * features
        found.append((contents(folder), [None if some is None else some.tobytes() for some in signatures]))
    assert found[0] == found[1] == found[2]


@pytest.mark.slow
def test_a_run_goes_on_where_another_was_stopped(
    photos: Path, whole: dict[str, Any], place_of: Callable[[Path], str], tmp_path: Path
) -> None:
    folder = tmp_path / "c.cairn"
    extracted: list[object] = []

    class StopsAfter(PickledTasks):
        def __init__(self, tasks: int) -> None:
            self.left = tasks

        def run(self, tasks: Iterable[Callable[[], Any]], **options: Any) -> Iterator[Any]:
            for one in super().run(tasks, **options):
                if self.left == 0:
                    raise KeyboardInterrupt
                self.left -= 1
                extracted.append(one)
                yield one

    for tasks in (3, 9, 14, 24, 2):
        with pytest.raises(KeyboardInterrupt):
            index_there(folder, photos, place_of(folder), StopsAfter(tasks))
    index_there(folder, photos, place_of(folder))
    assert contents(folder) == whole
    assert open_storage(place_of(folder)).names(STAGING) == []


def test_a_learnt_descriptor_and_what_comes_later_reach_the_workers(photos: Path, tmp_path: Path) -> None:
    few, place = tmp_path / "few", tmp_path / "there"
    few.mkdir()
    for path in sorted(photos.glob("c*.jpg"))[:3]:
        shutil.copy(path, few)
    options = dataclasses.replace(SMALL, descriptor="cairn", words=20)
    found = []
    for there in (None, place):
        folder = tmp_path / f"{there is None}.cairn"
        with Collection.create(folder, options) as collection:
            preparer = ClusterPreparer(collection, PickledTasks(), open_storage(str(there))) if there else None  # type: ignore[arg-type]
            index_photos(collection, [few], preparer=preparer)
        # The vocabulary is there: a photo is extracted and given its words in one go.
        with Collection.open(folder) as collection:
            preparer = ClusterPreparer(collection, PickledTasks(), open_storage(str(there))) if there else None  # type: ignore[arg-type]
            index_photos(collection, [photos / "a-copy.png"], preparer=preparer)
        found.append(contents(folder))
    assert found[0] == found[1]
    assert len(found[0]["images"]) == 4
    assert {OPTIONS, DESCRIPTOR, VOCABULARY, "segments"} <= set(open_storage(str(place)).names(""))


def test_a_photo_that_workers_do_not_see_stops_the_run(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from retrieval.photos.decoding import Photo

    def unseen(path: Path, *_: object) -> Photo:
        raise CairnError("there is no such file")

    monkeypatch.setattr("retrieval.features.extraction.read_photo", unseen)
    exists = Path.exists
    monkeypatch.setattr(Path, "exists", lambda path: path.suffix != ".jpg" and exists(path))
    with pytest.raises(CairnError, match="photos must be at the same path on all machines"):
        index_there(tmp_path / "c.cairn", photos, tmp_path / "c.cairn")


def test_a_folder_that_workers_do_not_see_stops_the_run(photos: Path, tmp_path: Path) -> None:
    class Elsewhere(PickledTasks):
        def run(self, tasks: Iterable[Callable[[], Any]], **options: Any) -> Iterator[Any]:
            shutil.rmtree(tmp_path / "there", ignore_errors=True)
            return super().run(tasks, **options)

    with Collection.create(tmp_path / "c.cairn", SMALL) as collection:
        preparer = ClusterPreparer(collection, Elsewhere(), open_storage(str(tmp_path / "there")))  # type: ignore[arg-type]
        with pytest.raises(CairnError, match="the collection's folder must be at this path"):
            index_photos(collection, [photos], preparer=preparer)


@pytest.mark.slow
def test_workers_that_are_killed_lose_and_double_nothing(photos: Path, whole: dict[str, Any], tmp_path: Path) -> None:
    folder, ended = tmp_path / "c.cairn", threading.Event()
    killed = []
    with Cluster.connect("local:2") as cluster:

        def kill() -> None:
            while not ended.wait(1.5):
                if pids := cluster.client.run(os.getpid):
                    killed.append(min(pids.values()))
                    os.kill(killed[-1], signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            index_there(folder, photos, folder, cluster)
        finally:
            ended.set()
            killer.join()
    assert contents(folder) == whole
    assert not check_collection(folder).damaged


# The command line


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--cluster", "nonsense"], "is no address of a cluster"),
        (["--storage", "s3://bucket/x"], "name one with --cluster"),
        (["--cluster", "local:1", "--storage", "nosuch://x"], "no place for files"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_made(
    cairn: Callable[..., Ran], photos: Path, tmp_path: Path, arguments: list[str], said: str
) -> None:
    ran = cairn("index", tmp_path / "c.cairn", photos, *arguments)
    assert ran.code == 2
    assert said in ran.err
    assert ran.err.count("\n") == 1
    assert not (tmp_path / "c.cairn").exists()


@pytest.mark.slow
def test_the_storage_is_remembered(cairn: Callable[..., Ran], photos: Path, tmp_path: Path) -> None:
    folder, there = tmp_path / "c.cairn", tmp_path / "there"
    first, second = photos / "a-copy.png", photos / "cat_001.jpg"
    small = ("--words", "20", "--max-side", "200", "--cluster", "local:1", "--json")
    assert cairn("index", folder, first, *small, "--storage", there).json["added"] == 1
    assert cairn("index", folder, second, *small).json["added"] == 1
    with Collection.open(folder) as collection:
        assert collection.catalogue.setting(STORAGE_KEY) == str(there)
    (tmp_path / "file").touch()
    wrong = cairn("index", folder, second, *small, "--storage", tmp_path / "file" / "below")
    assert wrong.code == 2
    with Collection.open(folder) as collection:
        assert collection.catalogue.setting(STORAGE_KEY) == str(there)
        assert len(collection.segments) == len(open_storage(str(there)).names("segments")) == 2


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="no process groups")
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_who_stops_a_run_reads_one_sentence(photos: Path, tmp_path: Path, sent: signal.Signals, code: int) -> None:
    folder = tmp_path / "c.cairn"
    process = subprocess.Popen(
        [
            *(sys.executable, "-c", "import cairn, signal; signal.signal(2, signal.default_int_handler); cairn.main()"),
            *("index", str(folder), str(photos), "--cluster", "local:2", "--quiet"),
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + patience(60)
    while not list(folder.glob(f"{STAGING}/*/*.npy")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(process.pid, sent)  # as Ctrl-C does: the workers get it, too
    out, error = process.communicate(timeout=60)
    assert (process.returncode, out) == (code, "")
    assert error.startswith("cairn: ") and error.endswith("run the same command again to go on.\n")
    assert error.count("\n") == 1


@pytest.mark.slow
def test_a_scheduler_that_is_killed_leaves_a_run_that_goes_on(
    photos: Path, whole: dict[str, Any], tmp_path: Path
) -> None:
    machines, folder = Machines(tmp_path), tmp_path / "c.cairn"
    try:
        scheduler = machines.scheduler()
        workers = [machines.worker(), machines.worker()]
        with Cluster.connect(machines.address, patience=60) as cluster:

            def kill_all() -> None:
                scheduler.kill()
                for worker in workers:
                    worker.kill()
                machines.scheduler()
                machines.worker()

            timer = threading.Timer(1.0, kill_all)
            timer.start()
            index_there(folder, photos, folder, cluster)
            timer.join()
        assert contents(folder) == whole
    finally:
        machines.end()
