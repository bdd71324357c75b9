"""Indexing: the same result whatever the number of workers and however often it was stopped."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from PIL import Image

from eval.demo.synthetic import DemoCollection
from index.arrays import hash_file
from index.errors import CairnError
from index.progress import Progress, silent
from index.vocabulary import CENTRES_FILE
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.failures import failures_in
from retrieval.catalogue.photos import all_indexed, names_in_order
from retrieval.catalogue.segment_rows import orphans_in
from retrieval.collection.collection import Collection
from retrieval.collection.layout import VOCABULARY
from retrieval.collection.options import CollectionOptions
from retrieval.indexing.add_options import AddOptions
from retrieval.indexing.adding import index_photos
from retrieval.indexing.report import IndexReport
from retrieval.integrity.check import check_collection
from retrieval.photos import apart
from retrieval.photos.apart import TOO_LONG, is_apart
from retrieval.photos.decoding import read_photo
from retrieval.photos.options import ImageOptions
from retrieval.search.options import SearchOptions
from retrieval.search.searcher import Searcher
from tests.conftest import Indexed, Ran
from tests.support.heavy_photos import slow
from tests.support.hostile import photo
from tests.support.paths import ROOT
from tests.support.patience import patience
from tests.support.processes import clean_forks
from tests.support.searching import answer_to, read_query

# Several batches, so that a run can be stopped between them.
SMALL = CollectionOptions(words=100, iterations=4, batch=4, image=ImageOptions(max_side=200), signature="none")


def index(
    folder: Path,
    photos: Path,
    options: CollectionOptions = SMALL,
    *,
    workers: int = 1,
    progress: Progress = silent,
    **how: Any,
) -> IndexReport:
    with Collection.create(folder, options) as collection:
        return index_photos(collection, [photos], AddOptions(**how), workers=workers, progress=progress)


def contents(folder: Path) -> dict[str, Any]:
    """All that a search can see of a collection, by the names of the photos."""
    with Collection.open(folder) as collection:
        images = {}
        for row in collection.catalogue.read(all_indexed):
            features = collection.index.images.features(row.number)
            columns = {name: column.tobytes() for name, column in features.columns.items()}
            images[row.name] = (row.path, row.sha256, row.width, row.height, features.words.tobytes(), columns)
        failures = sorted((failure.path, failure.reason) for failure in collection.catalogue.read(failures_in))
        return {"images": images, "vocabulary": collection.vocabulary.fingerprint, "failures": failures}


def ranking(folder: Path, query: Path, **options: Any) -> list[tuple[str, float, int]]:
    with Collection.open(folder) as collection:
        hits = answer_to(read_query(collection, query), Searcher(collection, SearchOptions(**options))).hits
        names = collection.catalogue.read(names_in_order, [hit.number for hit in hits])
        return [(name, hit.score, hit.verification.inliers) for name, hit in zip(names, hits, strict=True)]


@pytest.fixture(scope="module")
def photos(demo: DemoCollection, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten of the demo's photos and one damaged file."""
    folder = tmp_path_factory.mktemp("photos")
    for path in sorted(demo.images.iterdir())[:10]:
        shutil.copy(path, folder)
    (folder / "b-damaged.jpg").write_bytes(b"no photo")
    return folder


@pytest.fixture(scope="module")
def whole(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The collection that an undisturbed run makes of them."""
    folder = tmp_path_factory.mktemp("whole") / "c.cairn"
    report = index(folder, photos)
    assert (report.added, len(report.failed)) == (10, 1)
    return folder


# The same result


def test_workers_change_nothing_and_the_seed_decides(photos: Path, whole: Path, tmp_path: Path) -> None:
    assert index(tmp_path / "two" / "c.cairn", photos, workers=2).added == 10
    assert contents(tmp_path / "two" / "c.cairn") == contents(whole)
    arrays = sorted((whole / "segments").rglob("*.npy"))
    assert len(arrays) > 20
    for path in arrays:
        other = tmp_path / "two" / "c.cairn" / path.relative_to(whole)
        found, expected = (re.sub(rb"\d{4}-\d\d-\d\dT[\d:+]+", b"", one.read_bytes()) for one in (other, path))
        assert found == expected, path  # but for when photos were added
    query = photos / "coffee_001.jpg"
    assert ranking(tmp_path / "two" / "c.cairn", query) == ranking(whole, query)

    index(
        tmp_path / "seed" / "c.cairn",
        photos,
        CollectionOptions(words=100, iterations=4, seed=1, image=SMALL.image, signature="none"),
    )
    assert contents(tmp_path / "seed" / "c.cairn")["vocabulary"] != contents(whole)["vocabulary"]


def test_what_is_added_later_is_found_like_what_was_there(photos: Path, whole: Path, tmp_path: Path) -> None:
    """With one vocabulary, how photos are divided into runs and batches makes no difference to any score."""
    early = sorted(photos.iterdir())[:6]
    with Collection.create(
        tmp_path / "c.cairn", CollectionOptions(batch=3, image=SMALL.image, signature="none")
    ) as collection:
        first = index_photos(collection, early, AddOptions(vocabulary=whole))
        assert len(collection.index.image_numbers) == first.added == 5  # one is damaged
        second = index_photos(collection, [photos])
        assert (second.added, second.unchanged) == (5, 5)
        assert len(collection.index.image_numbers) == 10  # the collection that is open sees what was added
    query = photos / "coffee_001.jpg"
    assert ranking(tmp_path / "c.cairn", query) == ranking(whole, query)


# Photos that decode for long, or crash what decodes them


@pytest.fixture
def with_a_slow_one(photos: Path, tmp_path: Path) -> Path:
    folder = Path(shutil.copytree(photos, tmp_path / "photos"))
    (folder / "a-slow.jpg").write_bytes(slow())
    return folder


def _reasons(report: IndexReport) -> dict[str, str]:
    return {Path(one["path"]).name: one["reason"] for one in report.failed}


@pytest.mark.skipif(not is_apart(), reason="the time of a photo is bounded on Linux alone")
def test_a_photo_that_takes_too_long_is_listed_and_the_run_goes_on(
    with_a_slow_one: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(apart, "LEAST_SECONDS", 1)
        patched.setattr(apart, "PIXELS_A_SECOND", 1_000_000_000)
        report = index(tmp_path / "c.cairn", with_a_slow_one)
    assert (report.added, _reasons(report)["a-slow.jpg"]) == (10, TOO_LONG)
    with Collection.open(tmp_path / "c.cairn") as collection:
        assert {Path(one.path).name: one.reason for one in collection.catalogue.read(failures_in)}[
            "a-slow.jpg"
        ] == TOO_LONG
        assert index_photos(collection, [with_a_slow_one]).added == 1  # with the time that it needs


@pytest.mark.skipif(not is_apart(), reason="photos are decoded by the processes of the run themselves")
def test_a_photo_that_crashes_its_decoder_is_listed_and_the_run_goes_on(with_a_slow_one: Path, tmp_path: Path) -> None:
    ended = threading.Event()

    def crash() -> None:
        """Stand for a defect of a decoder: the only photo that takes long."""
        while not ended.wait(0.02):
            for process in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    if "serve_forks" in str(process.parent().cmdline()) and process.cpu_times().user > 0.7:
                        process.send_signal(signal.SIGSEGV)

    crashing = threading.Thread(target=crash)
    crashing.start()
    try:
        report = index(tmp_path / "c.cairn", with_a_slow_one, workers=2)
    finally:
        ended.set()
        crashing.join()
    assert (report.added, _reasons(report)["a-slow.jpg"]) == (10, "its decoder crashed")


# Interruption


class _Killer:
    """Kills its process at one moment of a run."""

    def __init__(self, moment: str) -> None:
        self.step, _, self.done = moment.partition(" ")
        if self.step == "commit":
            import retrieval.indexing.adding

            retrieval.indexing.adding.commit_segment = self.now
        elif self.step == "segment":
            import index.segments.writing

            index.segments.writing.publish_folder = self.now
        elif self.step == "save":
            import index.vocabulary

            index.vocabulary.publish_folder = self.now
        elif self.step == "options":
            import retrieval.collection.collection

            retrieval.collection.collection.write_options = self.now

    def __call__(self, step: str, done: int, _of: int) -> None:
        if step == self.step and done >= int(self.done):
            self.now()

    @staticmethod
    def now(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


def _index_until(moment: str, folder: Path, photos: Path) -> None:
    killer = _Killer(moment)
    index(folder, photos, progress=killer)


# Progress of "index" counts photos, four to a batch: 6 is inside the second batch, 4 at the end of the first.
MOMENTS = ("options", "extract 3", "vocabulary 1", "save", "segment", "commit", "index 6", "index 6")
ALONE = [("options",), ("extract 3",), ("vocabulary 1",), ("save",), ("segment",), ("commit",) * 2, ("index 6",) * 2]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL") or not hasattr(os, "fork"), reason="needs processes to kill")
@pytest.mark.parametrize(
    "moments",
    [
        pytest.param(MOMENTS, id="all of them"),
        *(pytest.param(moments, id=moments[0], marks=pytest.mark.slow) for moments in ALONE),
    ],
)
def test_a_killed_run_is_picked_up_where_it_stopped(
    photos: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moments: tuple[str, ...]
) -> None:
    read: set[str] = set()
    monkeypatch.setattr(
        "retrieval.features.extraction.read_photo", lambda path, how: read.add(path.name) or read_photo(path, how)
    )
    context = clean_forks(__name__)
    folder = tmp_path / "c.cairn"
    for moment in moments:
        process = context.Process(target=_index_until, args=(moment, folder, photos))
        process.start()
        process.join(patience(120))
        assert process.exitcode == -signal.SIGKILL, moment
    report = index(folder, photos)
    assert report.added + report.unchanged == 10
    if moments[-1] not in MOMENTS[:2]:  # no photo is looked at twice
        assert read == {"b-damaged.jpg"}
    assert contents(folder) == contents(whole)
    assert ranking(folder, photos / "coffee_001.jpg") == ranking(whole, photos / "coffee_001.jpg")
    assert not (folder / "staging").exists()
    again = index(folder, photos)
    assert (again.added, again.unchanged) == (0, 10)
    if moments[-1] == "index 6":  # each killed run committed a batch of three photos and the damaged file
        assert report.unchanged == 6
    # A segment that was never committed is cleared away by the next run.
    with Catalogue.open(folder) as catalogue:
        assert catalogue.read(orphans_in, folder / "segments") == []


@pytest.mark.slow
def test_the_command_survives_kill_9_at_any_time(photos: Path, whole: Path, tmp_path: Path) -> None:
    """A real run with two workers, killed after longer and longer, until it is through."""
    command = [sys.executable, "-m", "cairn", "index", str(tmp_path / "c.cairn"), str(photos), "--workers", "2"]
    reference = [*command[:4], str(tmp_path / "whole" / "c.cairn"), *command[5:]]
    (tmp_path / "whole").mkdir()
    subprocess.run(reference, cwd=ROOT, check=True, capture_output=True)
    delay, code = 0.3, -9
    while code == -signal.SIGKILL:
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            process.wait(delay)
        except subprocess.TimeoutExpired:
            process.kill()
        code = process.wait()
        delay += 0.4
        time.sleep(0.1)
    assert code == 0
    assert contents(tmp_path / "c.cairn") == contents(tmp_path / "whole" / "c.cairn")


def test_two_runs_at_once_do_not_disturb_each_other(photos: Path, whole: Path, tmp_path: Path) -> None:
    refused = []

    def start_another(step: str, done: int, _of: int) -> None:
        if (step, done) in (("extract", 2), ("index", 6)):
            for options in (SMALL, CollectionOptions(descriptor="sift", signature="none")):
                with pytest.raises(CairnError, match="Another cairn command"):
                    index(tmp_path / "c.cairn", photos, options)
                refused.append(step)

    index(tmp_path / "c.cairn", photos, progress=start_another)
    assert refused == ["extract", "extract", "index", "index"]
    assert contents(tmp_path / "c.cairn") == contents(whole)
    assert index(tmp_path / "c.cairn", photos).unchanged == 10


@pytest.mark.slow
@pytest.mark.parametrize("limit", [150, 1e-3])
def test_a_run_whose_time_is_up_is_picked_up_and_looks_at_no_photo_twice(
    photos: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: float
) -> None:
    """However short the limit is, and however long it takes to find what is new: every run does some."""
    now = 0.0
    read: list[str] = []

    def read_slowly(path: Path, how: Any) -> Any:
        nonlocal now
        now += 60
        read.append(path.name)
        return read_photo(path, how)

    def hash_slowly(path: Path) -> str:
        nonlocal now
        now += 100
        return hash_file(path)

    monkeypatch.setattr("retrieval.features.extraction.read_photo", read_slowly)
    monkeypatch.setattr("retrieval.indexing.discovery.hash_file", hash_slowly)
    monkeypatch.setattr("retrieval.indexing.adding.time.monotonic", lambda: now)
    folder = tmp_path / "c.cairn"
    runs = []
    while not runs or runs[-1].left:
        runs.append(index(folder, photos, time_limit=limit))
        assert len(runs) < 15
        assert check_collection(folder).ok
    sound = [name for name in read if "damaged" not in name]
    assert len(runs) > 2 and len(sound) == len(set(sound)) == 10
    lefts = [run.left for run in runs]
    assert lefts == sorted(lefts, reverse=True) and lefts[0] == 11
    assert sum(run.added for run in runs) == 10
    assert contents(folder) == contents(whole)
    assert not (folder / "staging").exists()


@pytest.mark.parametrize("limit", ["0", "-1", "nan"])
def test_a_time_limit_that_leaves_no_time_is_refused(
    photos: Path, tmp_path: Path, cairn: Callable[..., Ran], limit: str
) -> None:
    ran = cairn("index", tmp_path / "c.cairn", photos, "--time-limit", limit)
    assert (ran.code, ran.err) == (2, f"cairn: --time-limit must be more than 0 minutes, not {limit}.\n")
    assert not (tmp_path / "c.cairn").exists()
    with pytest.raises(CairnError, match="must be more than 0"):
        index(tmp_path / "c.cairn", photos, time_limit=float(limit))


def test_a_run_that_fails_is_picked_up(photos: Path, whole: Path, tmp_path: Path) -> None:
    """An error halfway, such as a full disk: what is committed stays, the rest follows."""

    def fail(step: str, done: int, _of: int) -> None:
        if step == "index" and done == 6:
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        index(tmp_path / "c.cairn", photos, progress=fail)
    assert index(tmp_path / "c.cairn", photos).unchanged == 3
    assert contents(tmp_path / "c.cairn") == contents(whole)


# Changes


def test_a_touched_photo_is_unchanged_and_a_changed_one_is_indexed_again(tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    options = CollectionOptions(words=40, image=ImageOptions(max_side=160), signature="none")
    for name in ("coffee", "chelsea", "rocket"):
        photo(name).save(folder / f"{name}.png")
    assert index(tmp_path / "c", folder, options).added == 3
    os.utime(folder / "coffee.png", ns=(1, 1))
    photo("astronaut").save(folder / "chelsea.png")
    report = index(tmp_path / "c", folder, options)
    assert (report.added, report.unchanged) == (1, 2)
    assert ranking(tmp_path / "c", folder / "chelsea.png")[0][:2] == ("chelsea.png", pytest.approx(1))
    assert len(ranking(tmp_path / "c", folder / "chelsea.png")) == 3

    # A photo that can no longer be read stays as it was, and is listed.
    (folder / "rocket.png").write_bytes(b"")
    report = index(tmp_path / "c", folder, options)
    assert (report.added, report.unchanged) == (0, 2)
    assert [Path(entry["path"]).name for entry in report.failed] == ["rocket.png"]
    photo("rocket").save(tmp_path / "rocket.png")
    assert ranking(tmp_path / "c", tmp_path / "rocket.png")[0][0] == "rocket.png"
    photo("rocket").save(folder / "rocket.png")
    assert index(tmp_path / "c", folder, options).failed == []
    assert len(ranking(tmp_path / "c", tmp_path / "rocket.png")) == 3


def test_two_copies_of_a_photo_are_two_photos(tmp_path: Path) -> None:
    """Their content has one place among the extracted features, in one batch and over two."""
    folder = tmp_path / "photos"
    folder.mkdir()
    for name in ("a", "b", "c"):
        photo("coffee").save(folder / f"{name}.png")
    photo("chelsea").save(folder / "d.png")
    for batch in (1, 3):
        options = CollectionOptions(words=40, batch=batch, image=ImageOptions(max_side=160), signature="none")
        assert index(tmp_path / str(batch), folder, options).added == 4
        found = ranking(tmp_path / str(batch), folder / "a.png")
        assert [name for name, _, _ in found] == ["a.png", "b.png", "c.png", "d.png"]
        assert len({score for _, score, _ in found[:3]}) == 1


def test_photos_without_features_are_indexed_beside_others(tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    photo("coffee").save(folder / "a.png")
    Image.new("L", (320, 240), 127).save(folder / "grey.png")
    Image.new("L", (1, 1), 127).save(folder / "one.png")
    options = CollectionOptions(words=40, keep_descriptors=True, image=ImageOptions(max_side=160), signature="none")
    assert index(tmp_path / "c", folder, options).added == 3
    for engine in ("tf-idf", "tf-idf-sp", "raw"):
        found = ranking(tmp_path / "c", folder / "a.png", engine=engine)
        assert {name for name, _, _ in found} == {"a.png", "grey.png", "one.png"}
        assert found[0][0] == "a.png"


# Vocabularies


def test_a_vocabulary_is_taken_from_another_collection(
    photos: Path, whole: Path, indexed: Indexed, tmp_path: Path, demo: DemoCollection
) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    shutil.copy(indexed.photos / "page_003.jpg", folder)
    with Collection.open(whole) as collection:
        origin = collection.vocabulary
    for number, source in enumerate((whole, whole / "vocabulary")):
        target = tmp_path / f"{number}.cairn"
        index(target, folder, vocabulary=source)
        with Collection.open(target) as collection:
            assert collection.vocabulary.fingerprint == origin.fingerprint
            assert collection.vocabulary.trained_on == "10 photos of c.cairn"
            assert collection.vocabulary.words == origin.words
    assert index(target, folder, vocabulary=whole).unchanged == 1  # the same once more does no harm

    with pytest.raises(CairnError, match="another vocabulary"):
        index(target, folder, vocabulary=indexed.folder)
    sift = CollectionOptions(descriptor="sift", image=SMALL.image, signature="none")
    with pytest.raises(CairnError, match="another descriptor"):
        index(tmp_path / "sift.cairn", folder, sift, vocabulary=whole)
    with pytest.raises(CairnError):
        index(tmp_path / "none.cairn", folder, vocabulary=tmp_path / "nowhere")


def test_segments_of_another_vocabulary_are_refused(whole: Path, indexed: Indexed, tmp_path: Path) -> None:
    folder = tmp_path / "mixed.cairn"
    shutil.copytree(whole, folder)
    shutil.rmtree(folder / "vocabulary")
    shutil.copytree(indexed.folder / "vocabulary", folder / "vocabulary")
    with Collection.open(folder) as collection, pytest.raises(CairnError, match="another vocabulary"):
        _ = collection.index


def test_progress_is_told_to_the_end(photos: Path, tmp_path: Path) -> None:
    reported: dict[str, list[tuple[int, int]]] = {}

    def tell(step: str, done: int, of: int) -> None:
        reported.setdefault(step, []).append((done, of))

    report = index(tmp_path / "c.cairn", photos, progress=tell)
    assert list(reported) == ["look", "extract", "vocabulary", "index"]
    for step, steps in reported.items():
        done = [count for count, _ in steps]
        assert done == sorted(done), step
        assert steps[-1][0] == steps[-1][1], step
        assert len({of for _, of in steps}) == 1, step
    assert reported["index"][-1] == reported["extract"][-1] == (11, 11)
    assert sum(report.seconds.values()) - report.seconds["total"] <= report.seconds["total"] + 1e-6
    assert all(value >= 0 for value in report.seconds.values())


@pytest.mark.slow
def test_batches_change_nothing_and_a_sample_makes_the_vocabulary(photos: Path, whole: Path, tmp_path: Path) -> None:
    options = CollectionOptions(words=100, iterations=4, batch=1, image=SMALL.image, signature="none")
    index(tmp_path / "one" / "c.cairn", photos, options)
    query = photos / "coffee_001.jpg"
    assert ranking(tmp_path / "one" / "c.cairn", query) == ranking(whole, query)

    sampled = CollectionOptions(words=50, sample=3, image=SMALL.image, signature="none")
    assert index(tmp_path / "s.cairn", photos, sampled).added == 10
    with Collection.open(tmp_path / "s.cairn") as collection:
        count = int(collection.vocabulary.trained_on.split()[0])
        assert 1 <= count <= 3


def test_a_collection_whose_vocabulary_is_lost_gets_no_other_one(photos: Path, whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path / "c.cairn")
    shutil.rmtree(tmp_path / "c.cairn" / "vocabulary")
    with pytest.raises(CairnError, match="cairn repair"):
        index(tmp_path / "c.cairn", photos)


def test_no_photo_gets_words_of_a_damaged_vocabulary(photos: Path, whole: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(whole, tmp_path / "demo.cairn"))
    file = folder / VOCABULARY / CENTRES_FILE
    state, contents = file.stat(), file.read_bytes()
    file.write_bytes(contents[:-1] + bytes([contents[-1] ^ 1]))
    # As a disk that forgets leaves it: nothing is to be seen from outside.
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    more = tmp_path / "more"
    more.mkdir()
    photo("coffee").save(more / "new.png")
    with pytest.raises(CairnError, match="other points"):
        index(folder, more)
    assert [one.file for one in check_collection(folder).damaged] == [f"{VOCABULARY}/{CENTRES_FILE}"]


# Drives that go, and photos that come back


def test_a_photo_whose_file_goes_before_its_metadata_is_read_waits_for_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from retrieval.indexing import preparing

    folder = tmp_path / "photos"
    folder.mkdir()
    for name in ("coffee", "rocket"):
        exif = Image.Exif()
        exif[0x0132] = "2001:02:03 04:05:06"
        photo(name).save(folder / f"{name}.jpg", exif=exif)
    options = CollectionOptions(words=40, image=ImageOptions(max_side=160), signature="none")
    stage_all = preparing.stage_all

    def stage_and_lose(*arguments: Any) -> Any:
        yield from stage_all(*arguments)
        shutil.rmtree(folder, ignore_errors=True)

    kept = tmp_path / "kept"
    shutil.copytree(folder, kept)
    with monkeypatch.context() as patch:
        # The drive goes when the vocabulary's sample has been extracted.
        patch.setattr(preparing, "stage_all", stage_and_lose)
        report = index(tmp_path / "c", folder, options)
    assert report.added == 0
    assert [entry["reason"] for entry in report.failed] == ["the file cannot be read (No such file or directory)"] * 2
    shutil.copytree(kept, folder)
    assert index(tmp_path / "c", folder, options).added == 2
    with Collection.open(tmp_path / "c") as collection:
        assert {row.taken for row in collection.catalogue.read(all_indexed)} == {"2001-02-03T04:05:06"}
