"""Answers to queries do not depend on the number of processes."""

from pathlib import Path

import numpy as np
import pytest

from eval.benchmark import run_benchmark
from eval.retrieval.options import BenchmarkSetup
from retrieval.collection.options import CollectionOptions
from retrieval.foreign.opening import roots_of
from retrieval.search.options import SearchOptions
from tests.support.fake_sets import FakeSets, write_sets


def write_features(photos: Path, folder: Path) -> Path:
    """Three features in each photo: those of one object are alike."""
    folder.mkdir()
    for photo in photos.glob("*.jpg"):
        rng = np.random.default_rng(sum(photo.stem.partition("_")[0].encode()))
        keypoints = np.float32([[30, 30, 5, 0], [60, 40, 6, 0], [80, 70, 9, 0]])
        np.savez(folder / f"{photo.stem}.npz", keypoints=keypoints, descriptors=rng.random((3, 8)).astype(np.float32))
    return folder


@pytest.mark.slow
def test_several_processes_know_the_features_of_queries_that_are_not_indexed(tmp_path: Path) -> None:
    sets: FakeSets = write_sets(tmp_path / "sets")
    features = write_features(sets.oxford_images, tmp_path / "features")
    queries = tmp_path / "queries"
    queries.mkdir()
    for name in ("all_souls_000001.jpg", "keble_000001.jpg"):
        (sets.oxford_images / name).rename(queries / name)
    one, two = (
        run_benchmark(
            [sets.oxford_images],
            sets.root / "oxford5k" / "gt_files_170407",
            queries=queries,
            options=CollectionOptions(words=6, signature="none"),
            search=SearchOptions(engine="tf-idf", turns=1),
            setup=BenchmarkSetup(features=features),
            workers=workers,
        )
        for workers in (1, 2)
    )
    assert len(one.scores) == 4 and one.mean > 0.4
    assert [score.ranking for score in two.scores] == [score.ranking for score in one.scores]


def test_many_files_lie_in_few_folders(tmp_path: Path) -> None:
    """All folders are searched for each photo."""
    files = [tmp_path / str(number % 2) / f"{number}.jpg" for number in range(100)]
    assert roots_of(files) == [tmp_path / "0", tmp_path / "1"]
