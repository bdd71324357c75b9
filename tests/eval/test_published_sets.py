"""Published sets, tiny and in their true layouts, measured by one command each; stopped runs resume."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eval.benchmark import run_benchmark
from eval.retrieval.kept import Answers
from eval.retrieval.options import BenchmarkSetup
from eval.retrieval.vocabulary import VocabularySource
from eval.sets.layouts import CORRUPT_PARIS, locate
from index.errors import CairnError
from learning.measures.precision import average_precision
from retrieval.catalogue.photos import counts_of_photos
from retrieval.collection.collection import Collection
from retrieval.collection.layout import STAGING
from retrieval.collection.options import CollectionOptions
from retrieval.features.options import FeatureOptions
from retrieval.indexing.adding import index_photos, make_vocabulary
from retrieval.regions.options import RegionOptions
from retrieval.search.options import SearchOptions
from tests.conftest import Ran, changed
from tests.support.fake_sets import OXFORD, FakeSets, texture, write_photo, write_sets
from tests.support.paths import ROOT

Cairn = Callable[..., Ran]
QUICK = ("--words", 100, "--workers", 1, "--turns", 1, "--signature", "none", "--max-features", 80, "--json")
OPTIONS = CollectionOptions(words=100, features=FeatureOptions(RegionOptions(max_features=80)), signature="none")
SEARCH = SearchOptions(engine="tf-idf-sp", turns=1)


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> FakeSets:
    return write_sets(tmp_path_factory.mktemp("sets"))


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Work folder shared by tests of one set."""
    return tmp_path_factory.mktemp("work")


def test_distractors_are_searched_and_are_neither_right_nor_in_the_vocabulary(
    sets: FakeSets, cairn: Cairn, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some share a stem, and one has the stem of a positive."""
    command = ("evaluate", "oxford105k", "--root", sets.root, "--work", work, *QUICK)
    report = cairn(*command).json
    assert report["mAP"] == 1 and [query["name"] for query in report["queries"]] == [
        f"{name}_{number}" for name in OXFORD for number in (1, 2)
    ]
    assert (report["images"], report["distractors"]) == (17, 4)
    assert (report["missing"], report["failed"], report["share"]) == ([], [], 1)
    # All of Oxford5K except the one without features, and nothing else.
    assert report["vocabulary"]["trained_on"] == "12 photos of oxford105k.cairn"
    assert (report["vocabulary"]["origin"], report["vocabulary"]["from"]) == ("own", [str(sets.oxford_images)])
    assert report["work"]["done_before"] == 0 and report["work"]["searches"] == 4
    folder = Path(report["work"]["folder"])
    assert folder.parent == work and json.loads((folder / "about.json").read_text())["settings"]["distractors"] == 4

    # A finished run is printed as it is; another engine takes the same collection.
    monkeypatch.setattr("retrieval.indexing.adding.index_photos", lambda *_, **__: pytest.fail("photos were indexed"))
    other = cairn(*command, "--engine", "tf-idf").json
    assert other["work"] == {**report["work"], "bytes": other["work"]["bytes"]}
    monkeypatch.setattr("eval.retrieval.asking.search_photo", lambda *_, **__: pytest.fail("a query was asked"))
    again = cairn(*command).json
    assert (again["queries"], again["vocabulary"]) == (report["queries"], report["vocabulary"])
    assert again["work"]["done_before"] == 4
    text = cairn(*(one for one in command if one != "--json")).out
    assert "nothing was searched for again" in text and str(folder) in text and "4 of the 17 photos" in text


def test_rankings_name_distractors_by_their_paths(sets: FakeSets, cairn: Cairn, work: Path) -> None:
    cairn("evaluate", "oxford105k", "--root", sets.root, "--work", work, *QUICK)  # at once, where that was run before
    gt = sets.root / "oxford5k" / "gt_files_170407"
    oxford, flickr = locate("oxford5k", sets.root), locate("flickr100k", sets.root)
    report = run_benchmark(
        oxford.images,
        gt,
        options=OPTIONS,
        search=SEARCH,
        setup=BenchmarkSetup(distractors=flickr.images, work=work, name="oxford105k"),
    )
    assert report.work is not None and report.work["done_before"] == 4  # as by the command
    for score in report.scores:
        assert len(score.ranking) == len(set(score.ranking)) == 17
        assert score.ranking.count("all_souls_000002") == 1
        assert str(sets.flickr / "2" / "all_souls_000002.jpg") in score.ranking
        stems = [score.name[:-2] + f"_00000{number}" for number in range(1, 5)]
        assert score.ap == average_precision(score.ranking, stems[:3], stems[3:])


@pytest.mark.slow
def test_a_vocabulary_of_other_photos_is_made_once_and_taken(
    sets: FakeSets, cairn: Cairn, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paris = sets.root / "paris6k" / "paris"
    command = ("evaluate", "oxford5k", "--root", sets.root, "--work", work, *QUICK, "--engine", "tf-idf")
    own = ("--vocabulary-images", paris / "defense", "--vocabulary-images", paris / "eiffel")
    report = cairn(*command, *own).json
    assert report["vocabulary"]["origin"] == "independent"
    assert report["vocabulary"]["trained_on"] == "8 photos of defense.cairn"
    assert report["vocabulary"]["from"] == [str(paris / "defense"), str(paris / "eiffel")]
    (made,) = work.glob("vocabularies/*/defense.cairn")
    (taken,) = Path(report["work"]["folder"]).glob("*.cairn")
    with Collection.open(taken) as collection, Collection.open(made) as origin:
        assert collection.vocabulary.fingerprint == origin.vocabulary.fingerprint
        assert origin.catalogue.read(counts_of_photos)["indexed"] == 0
    shutil.rmtree(made)
    shutil.rmtree(report["work"]["folder"])
    again = cairn(*command, *own).json
    assert again["vocabulary"] == report["vocabulary"] and again["queries"][0]["ap"] == report["queries"][0]["ap"]
    monkeypatch.setattr("eval.retrieval.vocabulary.make_vocabulary", lambda *_, **__: pytest.fail("made again"))
    by_folder = ("evaluate", "retrieval", "--images", paris, "--gt", sets.root / "paris6k" / "paris_120310")
    shared = cairn(*by_folder, *own, *command[4:]).json
    assert shared["vocabulary"]["origin"] == "shared"
    assert {Path(entry["path"]).name for entry in shared["failed"]} == CORRUPT_PARIS
    report = cairn("evaluate", "paris6k", *command[2:], "--vocabulary", made).json
    assert (report["mAP"], report["images"], report["failed"]) == (1, 8, [])  # those that are not corrupt
    assert (report["vocabulary"]["origin"], report["vocabulary"]["from"]) == ("collection", [str(made)])
    both = cairn(*by_folder, *own, "--vocabulary", made, *command[4:])
    assert "choose one" in both.refused()
    assert (
        "--vocabulary-photos out"
        in cairn(*by_folder, "--vocabulary", made, "--vocabulary-photos", "all", *command[4:]).refused()
    )
    assert "number of photos" in cairn(*command, "--vocabulary-photos", "many").refused()


@pytest.mark.slow
def test_google_landmarks_and_a_million_distractors_are_searched(sets: FakeSets, cairn: Cairn, tmp_path: Path) -> None:
    """The photos of objects are an index of Google Landmarks, except the first of each, which are queries."""
    home = tmp_path / "gldv2"
    lines = ["id,images,Usage"]
    for usage, name in zip(("Public", "Private"), OXFORD, strict=True):
        stems = [f"{name}_{number:06}" for number in range(1, 5)]
        for place, stem in enumerate(stems):
            folder = home / ("index" if place else "test") / stem[0]
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(sets.oxford_images / f"{stem}.jpg", folder / f"{stem}.jpg")
        lines.append(f"{stems[0]},{' '.join(stems[1:])},{usage}")
    (home / "ground_truth").mkdir()
    (home / "ground_truth" / "retrieval_solution_v2.1.csv").write_text("\n".join([*lines, "q,None,Ignored"]))
    command = ("evaluate", "gldv2", "--root", tmp_path, "--work", tmp_path / "work", *QUICK)
    report = cairn(*command).json
    assert {name: found["mAP"] for name, found in report["protocols"].items()} == {"public": 1, "private": 1}
    assert report["images"] == 6 and report["features"] <= 6 * 80  # queries are not in the database
    assert "public: mAP@100 1.0000 over 1 queries" in cairn(*(one for one in command if one != "--json")).out
    for number in range(2):
        (sets.root / "revisitop1m" / "jpg").mkdir(parents=True, exist_ok=True)
        write_photo(sets.root / "revisitop1m" / "jpg" / f"{number}.jpg", texture(900 + number))
    among = cairn("evaluate", "roxford1m", "--root", sets.root, "--work", tmp_path / "work", *QUICK).json
    assert (among["images"], among["distractors"]) == (10, 2)


@pytest.mark.slow
def test_revisited_has_three_protocols_each_without_its_junk(sets: FakeSets, cairn: Cairn, work: Path) -> None:
    command = ("evaluate", "roxford5k", "--root", sets.root, "--work", work, *QUICK)
    report = cairn(*command).json
    assert list(report["protocols"]) == ["easy", "medium", "hard"] and "mAP" not in report
    for name, queries in (("easy", ["all_souls_000001"]), ("medium", None), ("hard", None)):
        found = report["protocols"][name]
        assert found.keys() == {"mAP", "mP@1", "mP@5", "mP@10", "queries"}
        assert [query["name"] for query in found["queries"]] == queries or [f"{one}_000001" for one in OXFORD]
        assert found["mAP"] == pytest.approx(np.mean([query["ap"] for query in found["queries"]]), abs=1e-6)
    assert report["images"] == 8  # the queries' photos are not among them
    assert report["work"]["searches"] == 5 and report["missing"] == []
    once = cairn(*command, "--single-ranking").json
    assert once["work"]["searches"] == 2
    text = cairn(*(one for one in command if one != "--json")).out
    assert "hard: mAP" in text and "mP@10" in text and "5 of 5 searches" in text

    # By the library: the database, and the positives.
    located = locate("roxford5k", sets.root)
    assert located.ground_truth is not None
    rankings = {}
    for single in (False, True):
        found = run_benchmark(
            located.images,
            located.ground_truth,
            options=OPTIONS,
            search=SEARCH,
            setup=BenchmarkSetup(work=work, name="roxford5k", single_ranking=single),
        )
        rankings[single] = {name: scores[0].ranking for name, scores in found.protocols.items()}
    everything = set(rankings[True]["hard"])
    named = {f"all_souls_00000{number}" for number in (2, 3, 4)}
    assert len(everything) == 8 and named < everything
    first, second, third = sorted(named)  # easy, hard and junk
    assert {name: everything - set(ranking) for name, ranking in rankings[False].items()} == {
        "easy": {second, third},
        "medium": {third},
        "hard": {first, third},
    }


def test_a_collection_with_photos_that_are_not_measured_on_is_refused(
    sets: FakeSets, cairn: Cairn, tmp_path: Path
) -> None:
    """Query photos would come first in Revisited, and count as wrong."""
    kept = (*QUICK, "--work", tmp_path / "work", "--engine", "tf-idf", "--collection", tmp_path / "kept")
    command = ("evaluate", "oxford5k", "--root", sets.root, *kept)
    report = cairn(*command).json
    assert "has 5 photos that are not" in cairn("evaluate", "roxford5k", *command[2:]).refused()
    again = cairn(*command).json
    assert (again["images"], again["work"]["done_before"]) == (13, 4) and again["queries"] == report["queries"]


def test_revisited_has_no_features_of_another_program(sets: FakeSets, cairn: Cairn, tmp_path: Path) -> None:
    command = ("evaluate", "roxford5k", "--root", sets.root, "--work", tmp_path / "work", "--features", tmp_path)
    assert "leave --features out" in cairn(*command).refused()
    assert not (tmp_path / "work").exists()


@pytest.mark.slow
def test_a_share_is_a_smoke_test(sets: FakeSets, cairn: Cairn, tmp_path: Path) -> None:
    command = ("evaluate", "oxford105k", "--root", sets.root, "--work", tmp_path, *QUICK, "--engine", "tf-idf")
    report = cairn(*command, "--share", 0.5, "--discard").json
    assert (len(report["queries"]), report["share"], report["distractors"]) == (2, 0.5, 2)
    named = 4 * len({query["name"][:-2] for query in report["queries"]})
    assert report["images"] == named + round((13 - named) / 2) + 2
    assert report["missing"] == [] and report["work"]["bytes"] is None
    assert not list(tmp_path.iterdir())
    (sets.root / "file").touch()
    assert "--work" in cairn(*changed(command, "--work", sets.root / "file")).refused()
    for wrong in (0, 1.5):
        assert "A share is more than 0" in cairn(*command, "--share", wrong).refused()
    assert "share is a number" in cairn(*command, "--share", "nan").refused()
    assert not list(tmp_path.iterdir())


class _Stopped(BaseException):
    pass


@pytest.mark.slow
def test_a_run_that_is_stopped_goes_on(sets: FakeSets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At any point: while indexing, while searching, and with a partial line."""
    located = locate("oxford5k", sets.root)
    assert located.ground_truth is not None
    requested: list[str] = []
    stop_after = 2
    add = Answers.add

    def stopping(answers: Answers, answered: Any) -> None:
        if len(requested) == stop_after:
            raise _Stopped
        add(answers, answered)
        requested.append(answered.key)

    def run() -> Any:
        return run_benchmark(
            located.images,
            located.ground_truth,
            options=OPTIONS,
            search=SEARCH,
            setup=BenchmarkSetup(work=tmp_path / "work", name="ox"),
        )

    monkeypatch.setattr(Answers, "add", stopping)
    with pytest.raises(_Stopped):
        run()
    (lines,) = (tmp_path / "work").glob("*/answers/*/answers.jsonl")
    whole = lines.read_bytes()
    lines.write_bytes(whole + b'{"query": "keble_1", "sec')
    stop_after = 4
    report = run()
    assert sorted(requested) == [query.name for query in sorted(report.scores, key=lambda score: score.name)]
    assert report.work["done_before"] == 2
    assert lines.read_bytes().startswith(whole) and len(lines.read_bytes().splitlines()) == 4
    # Files lost in a crash, or removed, are made again.
    stop_after = 100
    next(lines.parent.glob("rankings/*.npy")).write_bytes(b"")
    mended = [run()]
    shutil.rmtree(next((tmp_path / "work").glob("*/ox.cairn")))
    mended.append(run())
    assert mended[0].work["done_before"] == 3
    # A collection remade within a second is the same to the bit, and its answers are reused.
    assert mended[1].work["done_before"] in (0, 4)
    assert all([score.ranking for score in one.scores] == [s.ranking for s in report.scores] for one in mended)
    # Results of other code versions are made again.
    monkeypatch.setattr("eval.retrieval.kept.code_fingerprint", lambda: "other")
    again = run()
    assert [score.ranking for score in again.scores] == [score.ranking for score in report.scores]
    assert again.work["done_before"] == 0
    # Foreign folders are left alone.
    folder = Path(report.work["folder"])
    (folder / "about.json").unlink()
    with pytest.raises(CairnError, match="work"):
        run()


@pytest.mark.slow
def test_a_killed_run_goes_on_and_workers_answer_as_one_process(sets: FakeSets, tmp_path: Path, cairn: Cairn) -> None:
    command = ("evaluate", "oxford5k", "--root", sets.root, "--work", tmp_path, "--workers", 2, *QUICK[:2], "--json")
    code = (
        "import os, signal, sys, cairn, eval.retrieval.kept as kept\n"
        "add, done = kept.Answers.add, []\n"
        "def dying(answers, answered):\n"
        "    add(answers, answered)\n"
        "    done.append(1)\n"
        "    len(done) == 2 and os.kill(os.getpid(), signal.SIGKILL)\n"
        "kept.Answers.add = dying\n"
        f"sys.argv = {['cairn', *map(str, command)]!r}\n"
        "cairn.main()\n"
    )
    killed = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    report = cairn(*command).json
    assert report["work"]["done_before"] == 2
    located = locate("oxford5k", sets.root)
    assert located.ground_truth is not None
    plain = run_benchmark(
        located.images, located.ground_truth, options=CollectionOptions(words=100, signature="hamming-64")
    )
    kept = run_benchmark(
        located.images,
        located.ground_truth,
        options=CollectionOptions(words=100, signature="hamming-64"),
        setup=BenchmarkSetup(work=tmp_path, name="oxford5k"),
        workers=2,
    )
    assert kept.work is not None and kept.work["done_before"] == 4
    assert [score.ranking for score in kept.scores] == [score.ranking for score in plain.scores]


@pytest.mark.slow
def test_an_independent_vocabulary_is_that_of_a_collection_of_its_photos(sets: FakeSets, tmp_path: Path) -> None:
    photos = [sets.root / "paris6k" / "paris"]
    with Collection.create(tmp_path / "indexed", OPTIONS) as collection:
        index_photos(collection, photos)
        with Collection.create(tmp_path / "words", OPTIONS) as alone:
            make_vocabulary(alone, photos)
            assert alone.vocabulary.fingerprint == collection.vocabulary.fingerprint
            assert alone.catalogue.read(counts_of_photos)["indexed"] == 0
            assert not (alone.folder / STAGING).exists()


def test_a_source_of_words_is_one() -> None:
    with pytest.raises(CairnError, match="choose one"):
        VocabularySource(Path("a"), (Path("b"),))
