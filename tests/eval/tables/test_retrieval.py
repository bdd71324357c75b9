"""Tables of retrieval figures: equal to the benchmark's, nothing is measured twice, and printed by the scripts."""

import itertools
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eval.benchmark import run_benchmark
from eval.retrieval.options import BenchmarkSetup
from eval.tables import retrieval as tables
from eval.tables.asking import SharedQuery
from eval.tables.retrieval import (
    Measurement,
    MeasurementResult,
    code_fingerprint,
    markdown,
    measure,
    object_of,
    percent,
    read_result,
)
from eval.tables.sets import RetrievalSet
from eval.tables.staged import stage_photos
from index.arrays import save_json
from index.errors import CairnError
from retrieval.collection.collection import Collection
from retrieval.collection.options import CollectionOptions
from retrieval.descriptors.registry import find_descriptor
from retrieval.features import extraction as features
from retrieval.features.extraction import Extractor
from retrieval.features.options import FeatureOptions
from retrieval.features.staging import Staging
from retrieval.indexing import adding
from retrieval.photos.decoding import read_photo
from retrieval.photos.options import ImageOptions
from retrieval.search.answers import QueryImage, ask_with_file, search_photo
from retrieval.search.options import SearchOptions
from retrieval.search.searcher import Searcher
from tests.conftest import Indexed
from tests.support.paths import ROOT

SMALL = CollectionOptions(words=120, iterations=3, image=ImageOptions(max_side=200), seed=1, signature="hamming-64")
TURNS = 3


@pytest.fixture(scope="module")
def datasets(indexed: Indexed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sets: ``all``, and ``few`` with its queries in a separate folder."""
    root = tmp_path_factory.mktemp("datasets")
    whole, few = root / "all", root / "few"
    shutil.copytree(indexed.photos, whole / "images")
    shutil.copytree(indexed.gt, whole / "gt")
    for folder in ("images", "queries", "gt"):
        (few / folder).mkdir(parents=True)
    for path in indexed.photos.glob("c*.jpg"):
        shutil.copy(path, few / ("queries" if path.stem.endswith("_001") else "images"))
    (few / "images" / "broken.jpg").write_bytes(b"no photo")
    for name in ("coffee", "coins"):
        box = " ".join(map(str, indexed.boxes[f"{name}_001"]))
        lists = {"query": f"{name}_001 {box}", "good": f"{name}_002", "ok": f"{name}_003\nlost", "junk": ""}
        for kind, text in lists.items():
            (few / "gt" / f"{name}_1_{kind}.txt").write_text(text)
    return root


@pytest.fixture(scope="module")
def sets(datasets: Path) -> tuple[RetrievalSet, RetrievalSet]:
    return RetrievalSet.find(datasets / "all"), RetrievalSet.find(datasets / "few")


@pytest.fixture(scope="module")
def cells(sets: tuple[RetrievalSet, RetrievalSet]) -> list[Measurement]:
    whole, few = sets
    where = [
        (few, few, "tf-idf", "none"),
        (few, few, "signatures-sp", "none"),
        (few, few, "raw", "none"),
        (few, whole, "tf-idf", "none"),
        (whole, few, "tf-idf-sp", "none"),
        (whole, few, "signatures-sp", "average"),
    ]
    return [Measurement(photos, origin, SMALL, engine, TURNS, expand) for photos, origin, engine, expand in where]


@pytest.fixture(scope="module")
def measured(
    cells: list[Measurement], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[MeasurementResult]]:
    """All cells measured by two processes, and the work folder."""
    work = tmp_path_factory.mktemp("work")
    return work, measure(cells, work, workers=2)


@pytest.mark.slow
def test_figures_are_those_of_the_benchmark(
    cells: list[Measurement], measured: tuple[Path, list[MeasurementResult]], tmp_path: Path
) -> None:
    for cell, result in zip(cells, measured[1], strict=True):
        # Kept, so that cells share indexes.
        vocabulary = None if cell.own else tmp_path / f"{cell.origin.name}-{cell.origin.name}.cairn"
        if vocabulary is not None:
            source = cell.origin
            assert isinstance(source, RetrievalSet)
            run_benchmark(
                [source.images],
                source.ground_truth,
                queries=source.queries,
                options=SMALL,
                setup=BenchmarkSetup(collection=vocabulary),
            )
        report = run_benchmark(
            [cell.photos.images],
            cell.photos.ground_truth,
            queries=cell.photos.queries,
            options=replace(SMALL, keep_descriptors=cell.engine == "raw"),
            search=SearchOptions(engine=cell.engine, turns=TURNS, expand=cell.expand),
            setup=BenchmarkSetup(
                vocabulary=vocabulary,
                collection=tmp_path / f"{cell.photos.name}-{cell.origin.name}{'-raw' * (cell.engine == 'raw')}.cairn",
            ),
        )
        assert result.scores == {score.name: score.ap for score in report.scores}
        assert result.cpu.keys() == result.scores.keys()
        assert result.mean == result.about["mAP"] == report.mean
        assert result.seconds == result.about["median_cpu_s"] > 0
        assert result.about["images"] == report.images
        assert result.about["missing"] == report.missing
        assert result.about["vocabulary"]["recall_at_1"] == report.recall_at_1
        assert result.about["vocabulary"]["from"] == cell.origin.name
    assert len({result.mean for result in measured[1]}) > 1
    words, verified, raw = (result.about["bytes_a_feature"] for result in measured[1][:3])
    assert verified > words + 5 + 8  # geometry and signatures
    assert raw > 2 * 128


@pytest.mark.slow
def test_what_was_measured_is_not_done_again(
    cells: list[Measurement],
    measured: tuple[Path, list[MeasurementResult]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    work = tmp_path / "work"
    shutil.copytree(measured[0], work)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("done again")

    with monkeypatch.context() as patch:
        patch.setattr(adding, "index_photos", refuse)
        for name in ("stage_photos", "_score_all"):
            patch.setattr(tables, name, refuse)
        assert [result.scores for result in measure(cells, work)] == [result.scores for result in measured[1]]

    # With another engine nothing is indexed again, and with a vocabulary of another seed nothing described again.
    with monkeypatch.context() as patch:
        patch.setattr(adding, "index_photos", refuse)
        assert measure([replace(cells[0], engine="asmk")], work)[0].scores.keys() == measured[1][0].scores.keys()
    monkeypatch.setattr(Extractor, "extract", refuse)
    other = replace(cells[0], options=replace(SMALL, seed=2))
    assert measure([other], work)[0].scores.keys() == measured[1][0].scores.keys()


def test_figures_of_other_code_are_told_apart_and_measured_again_where_that_is_asked(
    cells: list[Measurement],
    measured: tuple[Path, list[MeasurementResult]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shutil.copytree(measured[0], tmp_path / "work")
    some = cells[:2]
    now = code_fingerprint()
    assert [result.is_stale for result in measure(some, tmp_path / "work")] == [False, False]
    monkeypatch.setattr(tables, "code_fingerprint", lambda: "other")
    assert [result.is_stale for result in measure(some, tmp_path / "work")] == [True, True]
    again = measure(some[:1], tmp_path / "work", again=True)[0]
    assert (again.is_stale, again.about["code"], again.scores) == (False, "other", measured[1][0].scores)
    # A partial result is not completed by another version of the code.
    half = read_result(some[1], tmp_path / "work")
    name = next(iter(half.scores))
    half.scores = {name: -1.0}
    save_json(some[1].file(tmp_path / "work"), {**half.about, "scores": half.scores, "cpu_s": {name: 1.0}})
    assert half.about["code"] == now
    assert measure(some[1:], tmp_path / "work")[0].scores == measured[1][1].scores


def test_queries_may_be_files_that_the_collection_does_not_know(
    cells: list[Measurement],
    measured: tuple[Path, list[MeasurementResult]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shutil.copytree(measured[0], tmp_path / "work")
    rows: list[bool] = []

    def watched(searcher: Searcher, requested: QueryImage) -> SharedQuery:
        rows.append(requested.row is not None)
        return SharedQuery(searcher, requested)

    monkeypatch.setattr(tables, "SharedQuery", watched)
    photos, files = (replace(cells[4], engine="tf-idf", files=files) for files in (False, True))
    found = [measure([cell], tmp_path / "work")[0] for cell in (photos, files)]
    count = len(cells[4].photos.asked)
    assert rows == [True] * count + [False] * count
    assert photos.file(tmp_path) != files.file(tmp_path)
    assert abs(found[0].mean - found[1].mean) < 0.1


def test_views_are_made_once_and_charged_to_all_who_look(opened: Collection, indexed: Indexed) -> None:
    path = indexed.photos / "coffee_001.jpg"
    searchers = [Searcher(opened, SearchOptions(engine="tf-idf", turns=turns, every_turn=True)) for turns in (1, 4, 4)]
    shared = SharedQuery(searchers[0], ask_with_file(opened, "coffee_001", path))
    start = time.process_time()
    (_, upright), (first, made), (second, charged) = (shared.search(searcher) for searcher in searchers)
    spent = time.process_time() - start
    np.testing.assert_array_equal(first.hits.ordered, second.hits.ordered)
    alone = search_photo(searchers[1], ask_with_file(opened, "coffee_001", path)).answer
    np.testing.assert_array_equal(first.hits.ordered, alone.hits.ordered)
    views = sum(shared._costs.values())
    assert len(shared._costs) == 4
    assert upright < views < made
    assert charged > views
    assert upright + made + charged > spent + 0.9 * views  # more than it took: the views count twice


def test_an_interrupted_measurement_goes_on_where_it_stopped(
    cells: list[Measurement],
    measured: tuple[Path, list[MeasurementResult]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cell, whole = cells[4], measured[1][4]
    score, requested = tables._score, []

    def watched(folder: Path, of: list[Measurement], jobs: list[tables.Job]) -> tables.Scores:
        if len(requested) >= 3:
            raise KeyboardInterrupt
        requested.extend(query.name for query, *_ in jobs)
        return score(folder, of, jobs)

    monkeypatch.setattr(tables, "_TOGETHER", 1)
    monkeypatch.setattr(tables, "_score", watched)
    with pytest.raises(KeyboardInterrupt):
        measure([cell], tmp_path)
    monkeypatch.setattr(
        tables, "_score", lambda *args: (requested.extend(query.name for query, *_ in args[2]), score(*args))[1]
    )
    assert measure([cell], tmp_path)[0].scores == whole.scores
    assert sorted(requested) == sorted(whole.scores)
    # Both collections remain: one for its vocabulary, one for other engines.
    names = sorted(path.name for path in tmp_path.glob("collections/*-1/*"))
    assert names == sorted([f"{cell.origin.key}.cairn", f"{cell.photos.key}-by-{cell.origin.key}.cairn"])


def test_a_set_that_has_changed_is_measured_anew(sets: tuple[RetrievalSet, RetrievalSet], tmp_path: Path) -> None:
    few = sets[1]
    copied = tmp_path / "few"
    shutil.copytree(few.images.parent, copied)
    assert RetrievalSet.find(copied).key == few.key
    (copied / "gt" / "coins_1_junk.txt").write_text("cat_001")
    assert RetrievalSet.find(copied).key != few.key
    (copied / "queries" / "coins_001.jpg").unlink()
    with pytest.raises(CairnError, match="coins_001"):
        _ = RetrievalSet.find(copied).key
    shutil.rmtree(copied / "gt")
    with pytest.raises(CairnError, match="'gt'"):
        RetrievalSet.find(copied)


def test_several_scales_share_one_detection(
    sets: tuple[RetrievalSet, RetrievalSet], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few, image = sets[1], SMALL.image
    extractors = [Extractor(find_descriptor("sift"), FeatureOptions(measurement_scale=scale)) for scale in (None, 6.0)]
    detected: list[int] = []
    detect = features.detect_regions

    def watched(*arguments: object) -> object:
        detected.append(1)
        return detect(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(features, "detect_regions", watched)
    counts = list(stage_photos(tmp_path, few, extractors, image, 1))
    readable = len(few.photos) - 1
    assert counts[-1] == (len(few.photos),) * 2
    assert len(detected) == readable

    path = few.images / "coffee_002.jpg"
    for extractor in extractors:
        kept = Staging(tmp_path / "features", extractor, image).read(few.photos[path])
        alone = extractor.extract(read_photo(path, image))
        np.testing.assert_array_equal(kept.descriptors, alone.descriptors)
        np.testing.assert_array_equal(kept.ellipses, alone.ellipses)


def test_figures_are_printed_with_their_spread() -> None:
    assert percent([0.5, 0.52, 0.57]) == "53.00 ± 3.61"  # variance (9 + 1 + 16) / 2
    assert percent([0.12345]) == "12.35"
    assert percent([]) == ""
    assert markdown(["a", "b"], [["1", "2"]]) == "| a | b |\n|---|---|\n| 1 | 2 |"
    names = ["castle_3", "oxford_keble_1", "g_st_building_3_1", "2019_qsd1_w1_00004", "plain"]
    assert [object_of(name) for name in names] == ["castle", "oxford_keble", "g_…", "2019_qsd1_w1", "plain"]
    result = MeasurementResult({"castle_2": 1.0, "castle_1": 0.5, "kermit_1": 0.25})
    assert result.by_object() == {"castle": [0.5, 1.0], "kermit": [0.25]}
    assert result.mean == pytest.approx(1.75 / 3)


def _script(name: str, datasets: Path, *arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / name), *map(str, arguments)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT), "CAIRN_DATASETS": str(datasets)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


SETS = ("--set", "few", "--set", "all")


@pytest.mark.slow
def test_scripts_print_tables_and_draw(datasets: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    work = ("--workers", 1, "--work", tmp_path / "work")
    chosen = ("--descriptor", "first=rootsift", "--descriptor", "sift", "--seeds", 2, "--words-of", "few")
    ways = ("--engine", "tf-idf", "--engine", "signatures-sp", "--expand", "none", "--expand", "average")
    table = (*SETS, *chosen, *ways, "--turns", 1, "--turns", 2, *work)
    only = ("--only", "engine=tf-idf", "--only", "descriptor=first", "--only", "expand=none")
    first = _rows(_script("retrieval_table.py", datasets, *table, *only, "--only", "words=own"))
    rows = _rows(_script("retrieval_table.py", datasets, *table))
    assert rows[0][:7] == ["descriptor", "words", "engine", "expansion", "few: mAP", "CPU ms", "bytes"]
    labels = [(row[1], row[0], row[2], row[3]) for row in rows[1:]]
    assert labels == list(
        itertools.product(("own", "independent"), ("first", "sift"), ("tf-idf", "signatures-sp"), ("none", "average"))
    )
    assert [len(row) for row in rows] == [10] * (1 + 16)
    assert all("±" in row[4] and " / " in row[5] and "–" not in row for row in rows[1:])
    # Selected cells are measured, all others are reported missing; and measured ones stay.
    # Words of "few" are its own and independent ones at once.
    assert [("–" in row[4]) for row in first[1:]] == [place % 8 > 0 for place in range(16)]
    assert first[1] == rows[1]
    # The words of the set itself are no others.
    assert rows[9][4] == rows[1][4]
    assert any(rows[place + 8][7] != rows[place][7] for place in range(1, 9))  # as few are perfect with both words

    lines = _script("retrieval_table.py", datasets, *table, *only, "--json", "--only", "turns=1").splitlines()
    found = [json.loads(line) for line in lines]
    assert len(found) == 2 * 2 * 2 * 2 * 2 * 2 * 2  # of all measurements: the last factor is the number of seeds
    assert {one["stale"] for one in found} == {False}

    arguments = ("--set", "few", "--set", "all", "--turns", 1, *work)
    lines = _script(
        "measurement_scale.py", datasets, "--scales", 12.5, 6, *arguments, "--out", tmp_path / "f.png"
    ).splitlines()
    assert lines[0] == "| mAP, % | 6 σ | 12.5 σ |"
    assert [line.split(" | ")[0] for line in lines[2:]] == [
        f"| {detector}, {name}" for detector in ("dog-affine", "hessian-affine") for name in ("few", "all")
    ]
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")


def _rows(printed: str) -> list[list[str]]:
    return [line.strip("| ").split(" | ") for line in printed.splitlines() if line.startswith("| ")]


@pytest.mark.slow
def test_a_run_that_is_killed_goes_on(datasets: Path, tmp_path: Path) -> None:
    """Repeated SIGKILL, slightly later each time, at any point of the run."""
    ways = ("--engine", "tf-idf", "--engine", "signatures-sp", "--expand", "none", "--words-of", "few", "--words", 100)
    table = (*SETS, "--descriptor", "rootsift", *ways, "--turns", 1)
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    command = [sys.executable, str(ROOT / "scripts/retrieval_table.py"), *map(str, table), "--work", str(killed)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "CAIRN_DATASETS": str(datasets)}
    kills = 0
    for seconds in itertools.count(2.0, 1.5):
        with subprocess.Popen(
            [*command, "--workers", "1"], cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as run:
            try:
                run.communicate(timeout=seconds)
                break
            except subprocess.TimeoutExpired:
                run.kill()
                kills += 1
    assert kills > 1
    assert run.returncode == 0
    figures = [
        [(row[:5], row[6:8], row[9]) for row in _rows(_script("retrieval_table.py", datasets, *table, "--work", work))]
        for work in (killed, whole)
    ]
    assert figures[0] == figures[1]
