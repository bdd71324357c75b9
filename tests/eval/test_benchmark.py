"""A benchmark run: its score is that of its rankings, and it reports what it could not measure."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from eval.benchmark import run_benchmark, run_queries
from eval.protocols.truth import BenchmarkQuery, QueryLabels, Truth
from eval.rankings.benchmark import report_of
from eval.rankings.ground_truth import of_truth
from eval.retrieval.options import BenchmarkSetup
from index.errors import CairnError
from learning.labels.ground_truth import GroundTruthQuery, read_ground_truth
from retrieval.catalogue.photos import all_indexed, counts_of_photos
from retrieval.collection.collection import Collection
from retrieval.collection.options import CollectionOptions
from retrieval.photos.options import ImageOptions
from retrieval.search.answers import find_photo, search_photo
from retrieval.search.options import SearchOptions
from retrieval.search.searcher import Searcher
from tests.conftest import Indexed, Ran

UPRIGHT = SearchOptions(turns=1)
SMALL = CollectionOptions(words=150, iterations=4, image=ImageOptions(max_side=240), signature="none")


def area(ranking: list[str], query: GroundTruthQuery) -> float:
    """Area under precision over recall, by trapezoids of its points, junk taken out first."""
    clean = [name for name in ranking if name not in query.junk]
    points = [(0.0, 1.0)]
    found = 0
    for place, name in enumerate(clean, start=1):
        found += name in query.positives
        points.append((found / len(query.positives), found / place))
    recall, precision = np.array(points).T
    return float(np.trapezoid(precision, recall))


def write_truth(folder: Path, name: str, line: str, **lists: list[str]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}_query.txt").write_text(line)
    for kind in ("good", "ok", "junk"):
        (folder / f"{name}_{kind}.txt").write_text("\n".join(lists.get(kind, [])))


@pytest.mark.parametrize("engine", ["tf-idf", "tf-idf-sp"])
def test_the_score_is_that_of_the_rankings(indexed: Indexed, engine: str) -> None:
    options = SearchOptions(engine=engine, turns=1)
    queries = read_ground_truth(indexed.gt)[::2]  # one for each object
    assert len(queries) == 4
    with Collection.open(indexed.folder) as collection:
        scores, missing = run_queries(collection, queries, None, options)
        assert missing == []
        stems = {row.number: Path(row.path).stem for row in collection.catalogue.read(all_indexed)}
        search = Searcher(collection, options)
        for query, score in zip(queries, scores, strict=True):
            found = search_photo(search, find_photo(collection, str(indexed.photos / f"{query.stem}.jpg"), query.box))
            assert score.name == query.name
            ranking = [stems[hit.number] for hit in found.answer.hits]
            assert set(ranking) == set(stems.values())
            assert score.ap == pytest.approx(area(ranking, query), abs=1e-12)
    assert np.mean([score.ap for score in scores]) > {"tf-idf": 0.6, "tf-idf-sp": 0.95}[engine]


@pytest.mark.slow
def test_photos_of_one_name_in_several_folders_are_told_apart(
    indexed: Indexed, tmp_path: Path, cairn: Callable[..., Ran]
) -> None:
    for category, thing in (("book_covers", "page"), ("landmarks", "coffee")):
        for folder, view in (("Reference", 1), ("Droid", 2), ("Palm", 3)):
            (tmp_path / "smvs" / category / folder).mkdir(parents=True)
            shutil.copy(indexed.photos / f"{thing}_00{view}.jpg", tmp_path / "smvs" / category / folder / "001.jpg")
    page = tmp_path / "report.html"
    how = ("--root", tmp_path, "--words", 100, "--work", tmp_path / "work", "--workers", 1, "--report", page, "--json")
    reported = cairn("evaluate", "smvs", *how).json
    assert reported["images"] == 2 and not reported["missing"]
    for name in ("book_covers", "landmarks"):
        scored = reported["protocols"][name]
        assert (scored["mAP"], scored["mP@1"]) == (1, 1)
        assert [one["name"] for one in scored["queries"]] == [f"{name}/Droid/001", f"{name}/Palm/001"]
    assert page.read_text(encoding="utf-8").count("data:image/jpeg") >= 4


def test_a_run_measures_photos_that_are_not_indexed_yet(indexed: Indexed, tmp_path: Path) -> None:
    """Queries outside the photos, missing photos of the ground truth, and an unreadable one."""
    images, queries = tmp_path / "images", tmp_path / "queries"
    images.mkdir()
    queries.mkdir()
    for path in indexed.photos.glob("*.jpg"):
        shutil.copy(path, queries if path.stem == "coffee_001" else images)
    (images / "broken.jpg").write_bytes(b"no photo")
    gt = tmp_path / "gt"
    box = " ".join(map(str, indexed.boxes["coffee_001"]))
    write_truth(gt, "coffee_1", f"coffee_001 {box}", good=["coffee_002", "lost"], ok=["coffee_003"], junk=["gone"])
    write_truth(gt, "nothing", "page_001 0 0 9 9", junk=["page_002"])  # has no positives: leaves the mean

    reported: list[str] = []
    report = run_benchmark(
        [images], gt, queries=queries, options=SMALL, search=UPRIGHT, progress=lambda step, *_: reported.append(step)
    )
    # Both existing positives come first; the third is never found.
    assert [score.name for score in report.scores] == ["coffee_1"]
    assert report.mean == pytest.approx(2 / 3)
    assert report.missing == ["gone", "lost"]
    assert [Path(entry["path"]).name for entry in report.failed] == ["broken.jpg"]
    assert report.images == 15
    assert (report.engine, report.expand, report.descriptor) == ("tf-idf-sp", "none", "rootsift")
    assert report.words == 150
    assert report.trained_on.startswith("15 photos")
    assert set(reported) == {"look", "extract", "vocabulary", "index", "queries"}
    given = json.loads(json.dumps(report.as_json(), allow_nan=False))
    assert given["mAP"] == pytest.approx(2 / 3, abs=1e-6)
    assert given["missing"] == report.missing and given["failed"] == report.failed
    assert given["vocabulary"]["trained_on"] == report.trained_on

    with pytest.raises(CairnError, match="coffee_001"):
        run_benchmark([images], gt, options=SMALL, search=UPRIGHT)
    write_truth(gt, "coffee_1", f"coffee_001 {box}", junk=["coffee_002"])
    with pytest.raises(CairnError, match="positive"):
        run_benchmark([images], gt, queries=queries, options=SMALL)


def test_a_kept_collection_is_used_again_and_a_vocabulary_is_taken(indexed: Indexed, tmp_path: Path) -> None:
    images, gt = tmp_path / "images", tmp_path / "gt"
    images.mkdir()
    for stem in ("coffee_001", "coffee_002", "page_001"):
        shutil.copy(indexed.photos / f"{stem}.jpg", images)
    write_truth(gt, "coffee_1", "coffee_001 100 100 500 400", good=["coffee_002"], junk=["coffee_001"])
    kept = tmp_path / "kept.cairn"
    reports = [
        run_benchmark(
            [images],
            gt,
            options=CollectionOptions(signature="none"),
            search=UPRIGHT,
            setup=BenchmarkSetup(vocabulary=source, collection=kept),
        )
        for source in (indexed.folder, None)
    ]
    with Collection.open(indexed.folder) as origin, Collection.open(kept) as collection:
        assert collection.vocabulary.fingerprint == origin.vocabulary.fingerprint
        assert collection.catalogue.read(counts_of_photos)["indexed"] == 3
    for report in reports:
        assert report.trained_on == "16 photos of demo.cairn"
        assert report.mean == 1


def test_two_photos_of_one_stem_are_no_benchmark(
    indexed: Indexed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ground truth could mean either, so no score would be right."""
    images, gt = tmp_path / "images", tmp_path / "gt"
    images.mkdir()
    shutil.copy(indexed.photos / "coffee_001.jpg", images / "coffee_001.jpg")
    with Image.open(indexed.photos / "page_001.jpg") as photo:
        photo.save(images / "coffee_001.png")
    write_truth(gt, "coffee_1", "coffee_001 100 100 500 400", good=["coffee_002"])
    monkeypatch.setattr("retrieval.indexing.adding.index_photos", lambda *_, **__: pytest.fail("photos were indexed"))
    with pytest.raises(CairnError, match="coffee_001"):
        run_benchmark([images], gt, options=SMALL, search=UPRIGHT)

    # Nor may the photo of a query be one of two.
    (images / "coffee_001.jpg").rename(tmp_path / "coffee_001.jpg")
    queries = tmp_path / "queries"
    (images / "coffee_001.png").rename(images / "another.png")
    write_truth(gt, "coffee_1", "coffee_001 100 100 500 400", good=["coffee_002", "another"])
    for folder in ("a", "b"):
        (queries / folder).mkdir(parents=True)
        shutil.copy(tmp_path / "coffee_001.jpg", queries / folder)
    with pytest.raises(CairnError, match="coffee_001"):
        run_benchmark([images], gt, queries=queries, options=SMALL, search=UPRIGHT)
    with pytest.raises(CairnError, match="neither among the images nor the queries"):
        run_benchmark([images], gt, options=SMALL, search=UPRIGHT)


def test_two_photos_of_one_stem_that_no_query_names_are_a_benchmark(indexed: Indexed, tmp_path: Path) -> None:
    images, gt = tmp_path / "images", tmp_path / "gt"
    for folder in ("a", "b"):
        (images / folder).mkdir(parents=True)
        shutil.copy(indexed.photos / "page_001.jpg", images / folder / "IMG_1.jpg")
    for stem in ("coffee_001", "coffee_002"):
        shutil.copy(indexed.photos / f"{stem}.jpg", images)
    write_truth(gt, "coffee_1", "coffee_001 100 100 500 400", good=["coffee_002"], junk=["coffee_001"])
    report = run_benchmark([images], gt, options=SMALL, search=UPRIGHT)
    assert (report.images, report.mean) == (4, 1)


def test_a_ground_truth_may_write_endings_case_and_accents_otherwise(
    indexed: Indexed, tmp_path: Path, cairn: Callable[..., Ran]
) -> None:
    images, gt = tmp_path / "images", tmp_path / "gt"
    images.mkdir()
    for stem, name in (("coffee_001", "barn_001"), ("coffee_002", "caf\u00e9"), ("coffee_003", "barn_003")):
        shutil.copy(indexed.photos / f"{stem}.jpg", images / f"{name}.jpg")
    shutil.copy(indexed.photos / "page_001.jpg", images)
    box = " ".join(map(str, indexed.boxes["coffee_001"]))
    written = {"good": ["Cafe\u0301.JPG"], "ok": ["barn_003.JPG"], "junk": ["barn_001.JPG"]}
    write_truth(gt, "coffee_1", f"barn_001.JPG {box}", **written)
    kept, saved = tmp_path / "kept.cairn", tmp_path / "ranking.csv"
    requested = ("evaluate", "retrieval", "--images", images, "--gt", gt, "--collection", kept, "--words", 50)
    reported = cairn(*requested, "--turns", 1, "--save", saved, "--report", tmp_path / "page.html", "--json").json
    assert (reported["mAP"], reported["missing"], reported["left_out"]) == (1, [], [])
    assert cairn("evaluate", "ranking", saved, "--gt", gt, "--json").json["mAP"] == 1
    with Collection.open(kept) as collection:
        scores, missing = run_queries(collection, read_ground_truth(gt), None, UPRIGHT)
    assert ([score.ap for score in scores], missing) == ([1], [])
    shutil.copy(images / "barn_003.jpg", images / "Barn_003.jpg")
    if len(list(images.iterdir())) > 4:
        write_truth(gt, "coffee_1", f"barn_001.JPG {box}", good=["BARN_003"])
        assert "may be 'Barn_003' or 'barn_003'" in cairn(*requested).refused()
    write_truth(gt, "coffee_1", f"barn_001.JPG {box}", good=["Caf\u00c9"], junk=["caf\u00e9.jpg"])
    assert "'coffee_1' and is its junk" in cairn(*requested).refused()


def test_queries_of_which_all_is_missing_are_not_scored(
    indexed: Indexed, tmp_path: Path, cairn: Callable[..., Ran]
) -> None:
    images, gt = tmp_path / "images", tmp_path / "gt"
    images.mkdir()
    for stem in ("coffee_001", "coffee_002", "page_001"):
        shutil.copy(indexed.photos / f"{stem}.jpg", images)
    (images / "page_002.jpg").write_bytes(b"no photo")
    write_truth(gt, "coffee_1", "coffee_001 100 100 500 400", good=["coffee_002", "lost"], junk=["coffee_001"])
    write_truth(gt, "gone_1", "coffee_001 100 100 500 400", good=["gone"])
    write_truth(gt, "gone_2", "neither 0 0 9 9", good=["gone"])  # nor is its photo there
    write_truth(gt, "page_1", "page_001 0 0 99 99", ok=["page_002"], junk=["page_001"])
    requested = ("evaluate", "retrieval", "--images", images, "--gt", gt, "--words", 50, "--turns", 1)
    reported = cairn(*requested, "--work", tmp_path / "work", "--json").json
    assert [query["name"] for query in reported["queries"]] == ["coffee_1"] and reported["mAP"] == 0.5
    assert reported["left_out"] == ["gone_1", "gone_2", "page_1"] and reported["missing"] == [
        "gone",
        "lost",
        "page_002",
    ]
    assert "3 queries, such as 'gone_1', are not scored" in cairn(*requested, "--work", tmp_path / "work").out
    write_truth(gt, "coffee_1", "coffee_001 100 100 500 400", good=["lost"])
    for rest in ("page_1", None):
        assert "No query can be scored" in cairn(*requested, "--work", tmp_path / "again").refused()
        for part in ("query", "good", "ok", "junk") if rest else ():
            (gt / f"{rest}_{part}.txt").unlink()


def test_a_protocol_of_which_no_query_has_a_positive_there_is_left_out() -> None:
    both = QueryLabels(frozenset("ab"), frozenset())
    hard = QueryLabels(frozenset("b"), frozenset("a"))
    truth = Truth((BenchmarkQuery("q", "q", (0, 0, 9, 9), {"medium": both, "hard": hard}),), ("easy", "medium", "hard"))
    assert truth.answerable({"a", "b"}) == (truth, [])
    left, out = truth.answerable({"a"})
    assert (list(left.queries[0].labels), out) == (["medium"], ["q/hard"])
    report = report_of({"medium": {"q": ["a"]}}, of_truth(truth))
    assert list(report.protocols) == ["medium"]


def test_a_published_set_is_measured_from_its_folder(
    indexed: Indexed, tmp_path: Path, cairn: Callable[..., Ran]
) -> None:
    """Oxford5K's query files name their photo with a prefix that its file has not."""
    root = tmp_path / "oxford"
    (root / "oxbuild_images").mkdir(parents=True)
    for stem in ("coffee_001", "coffee_002", "page_001"):
        shutil.copy(indexed.photos / f"{stem}.jpg", root / "oxbuild_images")
    gt = root / "gt_files_170407"
    write_truth(gt, "coffee_1", "oxc1_coffee_001 100 100 500 400", good=["coffee_001", "coffee_002"])
    command: list[Any] = [
        "--root",
        root,
        "--max-side",
        240,
        "--words",
        100,
        "--workers",
        1,
        "--work",
        tmp_path / "work",
        "--json",
    ]
    for name in ("oxford5k", "paris6k"):
        report = cairn("evaluate", name, *command).json
        assert report["mAP"] == 1
        assert [query["name"] for query in report["queries"]] == ["coffee_1"]
        assert report["missing"] == []
