from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from index.cluster.blocks import ClusterBlocks
from index.cluster.storage import FolderStorage
from index.clustering.kmeans import KMeansOptions, approximate_kmeans, sample_descriptors
from index.clustering.sources import FileSource
from tests.support.clusters import PickledTasks


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("descriptors")
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(6_000, 16)).astype(np.float16)
    rows[100:200] = rows[:100]  # some twice
    paths = []
    for number, part in enumerate(np.split(rows, [0, 10, 2_500, 2_501])):
        paths.append(folder / f"{number}.npy")
        np.save(paths[-1], part)
    return paths


@settings(max_examples=6)
@given(block_rows=st.sampled_from([500, 777, 5_000]), threads=st.integers(1, 5), per_word=st.sampled_from([0, 3, 11]))
def test_workers_make_the_same_centres_to_the_bit(files, block_rows, threads, per_word):
    source = FileSource(files, block_rows)
    options = KMeansOptions(words=300, iterations=7, seed=4, sample_per_word=per_word)
    storage = FolderStorage(files[0].parent)

    def reader(sample):
        return ClusterBlocks(PickledTasks(), threads, storage, [path.name for path in files], source, "work", sample)

    here, there = approximate_kmeans(source, options), approximate_kmeans(source, options, reader=reader)
    np.testing.assert_array_equal(here.centres, there.centres)
    np.testing.assert_array_equal(here.counts, there.counts)
    assert here.errors == there.errors
    assert (here.points, here.distinct, here.reseeded) == (there.points, there.distinct, there.reseeded)
    np.testing.assert_array_equal(sample_descriptors(source, 97, 1), sample_descriptors(source, 97, 1, reader))


def test_nothing_is_left_behind(files):
    storage = FolderStorage(files[0].parent)
    blocks = ClusterBlocks(PickledTasks(), 2, storage, [path.name for path in files], FileSource(files), "mine")
    approximate_kmeans(FileSource(files), KMeansOptions(words=10, iterations=2), reader=lambda sample: blocks)
    assert [name for name in storage.names("mine") if storage.names(f"mine/{name}") != ["sources.json"]] == []
    blocks.close()
    assert storage.names("mine") == []
