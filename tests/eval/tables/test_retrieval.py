"""Tables of retrieval figures: each is the benchmark's own, nothing is measured twice, and the scripts print them."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eval.benchmark import run_benchmark
from eval.tables import retrieval as tables
from eval.tables.retrieval import Cell, Result, markdown, measure, object_of, percent
from eval.tables.sets import RetrievalSet
from eval.tables.staged import load_described, save_described, stage_set
from index.errors import CairnError
from retrieval.collection.collection import Collection
from retrieval.collection.options import CollectionOptions
from retrieval.descriptors.registry import find_descriptor
from retrieval.features import extraction as features
from retrieval.features.extraction import Extractor
from retrieval.features.options import FeatureOptions
from retrieval.features.staging import Staging
from retrieval.photos.decoding import read_photo
from retrieval.photos.options import ImageOptions
from retrieval.search.options import SearchOptions
from retrieval.search.query import describe_query, quantise_query, read_query
from tests.conftest import Indexed
from tests.support.paths import ROOT

SMALL = CollectionOptions(words=120, iterations=3, image=ImageOptions(max_side=200), seed=1)
TURNS = 3


@pytest.fixture(scope="module")
def datasets(indexed: Indexed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sets: ``all``, and ``few`` with its queries in a folder of their own."""
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
def cells(sets: tuple[RetrievalSet, RetrievalSet]) -> list[Cell]:
    whole, few = sets
    where = [
        (few, few, "tf-idf"),
        (few, few, "tf-idf-sp"),
        (few, few, "raw"),
        (few, whole, "tf-idf"),
        (whole, few, "tf-idf-sp"),
    ]
    return [Cell(photos, origin, SMALL, engine, TURNS) for photos, origin, engine in where]


@pytest.fixture(scope="module")
def measured(cells: list[Cell], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Result]]:
    """All cells measured by two processes, and the work folder."""
    work = tmp_path_factory.mktemp("work")
    return work, measure(cells, work, workers=2)


def test_figures_are_those_of_the_benchmark(
    cells: list[Cell], measured: tuple[Path, list[Result]], tmp_path: Path
) -> None:
    for cell, result in zip(cells, measured[1], strict=True):
        # Kept, so that no cell indexes what another one has indexed.
        vocabulary = None if cell.own else tmp_path / f"{cell.origin.name}-{cell.origin.name}.cairn"
        if vocabulary is not None:
            source = cell.origin
            run_benchmark(
                [source.images], source.ground_truth, queries=source.queries, options=SMALL, collection=vocabulary
            )
        report = run_benchmark(
            [cell.photos.images],
            cell.photos.ground_truth,
            queries=cell.photos.queries,
            options=replace(SMALL, keep_descriptors=cell.engine == "raw"),
            search=SearchOptions(engine=cell.engine, turns=TURNS),
            vocabulary=vocabulary,
            collection=tmp_path / f"{cell.photos.name}-{cell.origin.name}{'-raw' * (cell.engine == 'raw')}.cairn",
        )
        assert result.scores == {score.name: score.ap for score in report.scores}
        assert result.mean == result.about["mAP"] == report.mean
        assert result.about["images"] == report.images
        assert result.about["missing"] == report.missing
        assert result.about["vocabulary"]["recall_at_1"] == report.recall_at_1
        assert result.about["vocabulary"]["from"] == cell.origin.name
    assert len({result.mean for result in measured[1]}) > 1


def test_what_was_measured_is_not_done_again(
    cells: list[Cell], measured: tuple[Path, list[Result]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    shutil.copytree(measured[0], work)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("done again")

    with monkeypatch.context() as patch:
        for name in ("stage_set", "index_photos", "_score_all"):
            patch.setattr(tables, name, refuse)
        assert [result.scores for result in measure(cells, work)] == [result.scores for result in measured[1]]

    # With a vocabulary of another seed nothing is described again: neither photos nor queries.
    monkeypatch.setattr(features, "detect_regions", refuse)
    other = replace(cells[0], options=replace(SMALL, seed=2))
    assert measure([other], work)[0].scores.keys() == measured[1][0].scores.keys()


def test_an_interrupted_measurement_goes_on_where_it_stopped(
    cells: list[Cell], measured: tuple[Path, list[Result]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell, whole = cells[-1], measured[1][-1]
    score, asked = tables._score, []

    def watched(folder: Path, engines: list[SearchOptions], described: Path, queries: list) -> tables.Scores:
        if len(asked) >= 3:
            raise KeyboardInterrupt
        asked.extend(query.name for query, _ in queries)
        return score(folder, engines, described, queries)

    monkeypatch.setattr(tables, "_score", watched)
    with pytest.raises(KeyboardInterrupt):
        measure([cell], tmp_path)
    monkeypatch.setattr(
        tables, "_score", lambda *args: (asked.extend(query.name for query, _ in args[3]), score(*args))[1]
    )
    assert measure([cell], tmp_path)[0].scores == whole.scores
    assert sorted(asked) == sorted(whole.scores)
    # What is needed no more is gone: of the two collections, the one whose vocabulary others may take is left.
    assert [path.name for path in tmp_path.glob("collections/*-1/*")] == [f"{cell.origin.key}.cairn"]


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


@pytest.mark.parametrize(("boxed", "turns", "soft"), [(True, 3, 1), (False, 1, 3)])
def test_a_query_is_the_same_in_two_steps_and_from_disk(
    indexed: Indexed, opened: Collection, tmp_path: Path, boxed: bool, turns: int, soft: int
) -> None:
    path = indexed.photos / "coffee_001.jpg"
    box = indexed.boxes["coffee_001"] if boxed else None
    whole = read_query(opened, path, box, turns, soft=soft)
    save_described(tmp_path / "query.npz", describe_query(opened.extractor, opened.options.image, path, box, turns))
    kept = quantise_query(load_described(tmp_path / "query.npz", path), opened.vocabulary, soft=soft)
    assert (kept.path, kept.width, kept.height, kept.box) == (whole.path, whole.width, whole.height, whole.box)
    assert [view.turn for view in kept.views] == pytest.approx(2 * np.pi * np.arange(turns) / turns)
    regions = opened.extractor.detect(read_photo(path, opened.options.image))
    for one, other in zip(kept.views, whole.views, strict=True):
        assert one.turn == other.turn
        for name in ("words", "descriptors", "terms", "weights"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        np.testing.assert_array_equal(one.frames.centres, other.frames.centres)
        np.testing.assert_array_equal(one.frames.linear, other.frames.linear)
        np.testing.assert_array_equal(one.words, opened.vocabulary.assign(one.descriptors.astype(np.float32)))
        assert len(one.words) == (len(regions) if not boxed else len(whole.views[0].words)) <= len(regions)
    (tmp_path / "query.npz").write_bytes(b"PK")
    with pytest.raises(CairnError, match=r"query\.npz"):
        load_described(tmp_path / "query.npz", path)


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
    counts = list(stage_set(tmp_path, few, extractors, image, 1, 1))
    readable = len(few.photos) - 1
    assert counts[-1] == (len(few.photos) + len(few.asked),) * 2
    assert len(detected) == readable + len(few.asked)

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
    result = Result({"castle_2": 1.0, "castle_1": 0.5, "kermit_1": 0.25})
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


@pytest.mark.slow
def test_scripts_print_tables_and_draw(datasets: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    sets = ("--set", "few", "--set", "all", "--turns", 1, "--workers", 1, "--work", tmp_path / "work")
    chosen = ("--descriptor", "first=rootsift", "--descriptor", "sift", "--seeds", 2)
    lines = _script("retrieval_table.py", datasets, *chosen, "--per-object", *sets).splitlines()
    head, _, first, second = (line.strip("| ").split(" | ") for line in lines[:4])
    assert head[1] == "few, own words, tf-idf"
    assert head[-1] == "mean, independent words, tf-idf-sp"
    assert len(head) == len(first) == len(second) == 1 + 2 * 2 * 2 + 2 * 2
    assert (first[0], second[0]) == ("first", "sift")
    assert all("±" in figure for figure in first[1:])
    means = [float(figure.split(" ± ")[0]) for figure in first[1:]]
    for place in range(4):
        assert means[8 + place] == pytest.approx((means[place] + means[4 + place]) / 2, abs=0.011)
    assert sum(line.startswith("| coffee |") for line in lines) == 8  # a table a column

    lines = _script(
        "measurement_scale.py", datasets, "--scales", 12.5, 6, *sets, "--out", tmp_path / "f.png"
    ).splitlines()
    assert lines[0] == "| mAP, % | 6 σ | 12.5 σ |"
    assert [line.split(" | ")[0] for line in lines[2:]] == [
        f"| {detector}, {name}" for detector in ("dog-affine", "hessian-affine") for name in ("few", "all")
    ]
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")
