import itertools
from dataclasses import replace

import faiss
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from index.clustering.blocks import Reserve
from index.clustering.kmeans import KMeansOptions, _reseed, approximate_kmeans, sample_descriptors
from index.clustering.sources import ArraySource, FileSource
from index.errors import CairnError
from index.search_backends import search_backend


def blobs(count, means, dim, seed=0, spread=0.35):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(means, dim))
    return (centres[rng.integers(means, size=count)] + spread * rng.normal(size=(count, dim))).astype(np.float32)


def exact_assignment(points, centres):
    return ((points[:, None].astype(np.float64) - centres[None]) ** 2).sum(axis=2).argmin(axis=1)


def test_it_ends_where_lloyds_algorithm_stands_still():
    points = blobs(2000, 12, 6)
    result = approximate_kmeans(ArraySource(points), KMeansOptions(words=20, iterations=100, sample_per_word=0))
    nearest = exact_assignment(points, result.centres)
    np.testing.assert_array_equal(result.counts, np.bincount(nearest, minlength=20))
    means = np.stack([points[nearest == word].mean(axis=0, dtype=np.float64) for word in range(20)])
    np.testing.assert_allclose(result.centres, means, atol=1e-6)
    errors = ((points - result.centres[nearest]) ** 2).sum(axis=1, dtype=np.float64)
    assert result.errors[-1] == pytest.approx(errors.mean(), rel=1e-5)
    # If lists of neighbours hold all words, each pass is exact, and exact passes never raise the error.
    assert (np.diff(result.errors) <= 1e-7).all()


@pytest.mark.parametrize(
    "backend", ["ivf", *(pytest.param(name, marks=pytest.mark.slow) for name in ("faiss", "flann"))]
)
def test_its_error_is_within_three_percent_of_exact_lloyd(backend, monkeypatch):
    found = search_backend(backend)
    if backend != "flann":  # so few words are searched exactly otherwise
        monkeypatch.setattr(found, "draft", replace(found.draft, exact_below=700))
    points = blobs(24_000, 600, 32, spread=0.6)
    options = KMeansOptions(words=800, iterations=8, backend=backend, sample_per_word=0)
    approximate = approximate_kmeans(ArraySource(points), options)
    exact = faiss.Kmeans(32, 800, niter=8, seed=1, max_points_per_centroid=10**6)
    exact.train(points)
    errors = [faiss.knn(points, centres, 1)[0].mean() for centres in (approximate.centres, exact.centroids)]
    assert errors[0] < 1.03 * errors[1]


@pytest.mark.slow
@given(
    points=hnp.arrays(np.float32, st.tuples(st.integers(1, 40), st.just(2)), elements=st.integers(-2, 2).map(float)),
    words=st.integers(1, 30),
    iterations=st.integers(1, 4),
    seed=st.integers(0, 5),
)
@example(points=np.zeros((5, 2), np.float32), words=3, iterations=2, seed=0)
@example(points=np.array([[0.0, -0.0], [-0.0, 0.0]], np.float32), words=2, iterations=2, seed=0)
def test_no_word_is_ever_empty_however_often_points_repeat(points, words, iterations, seed):
    result = approximate_kmeans(ArraySource(points), KMeansOptions(words=words, iterations=iterations, seed=seed))
    distinct = len(np.unique(points, axis=0))
    assert result.distinct == distinct
    assert len(result.centres) == min(words, distinct)
    assert result.counts.min() >= 1
    assert result.counts.sum() == result.points == len(points)
    # The centres are means of the points, each counted once: together they keep their sum.
    np.testing.assert_allclose(result.counts @ result.centres.astype(np.float64), points.sum(axis=0), atol=1e-4)


def test_an_emptied_cluster_is_given_the_point_of_largest_error():
    # Descriptors whose third pass, from the first centres of seed 0, leaves a cluster without points.
    points = np.array([[8, 5], [3, 4], [0, 2], [1, 7], [7, 7], [2, 7], [2, 4], [0, 4]], np.float32)
    result = approximate_kmeans(ArraySource(points), KMeansOptions(words=5, iterations=3))
    assert result.reseeded == 1
    assert len(result.centres) == 5
    assert (result.counts.min(), result.counts.sum()) == (1, 8)


@pytest.mark.parametrize(
    ("points", "assigned", "expected"),
    [
        # 10 is the farthest; 5 is its cluster's mean and 0, once 10 is gone, its own: nothing for the fourth word.
        ([0, 0, 0, 10, 5, 5], [0, 0, 0, 0, 1, 1], [0, 0, 0, 2, 1, 1]),
        # Of two equal points only one moves, or two words would be one.
        ([0, 20, 20, 7, 7, 7], [1, 0, 0, 0, 0, 0], [1, 2, 0, 3, 0, 0]),
        # A word is never left empty to fill another.
        ([0, 30], [0, 1], [0, 1]),
    ],
)
def test_reseeding_keeps_sums_and_counts_in_step(points, assigned, expected):
    values, words = np.array(points, np.float32)[:, None], np.array(assigned, np.int32)
    sums, counts = np.zeros((4, 1)), np.bincount(words, minlength=4)
    np.add.at(sums, words, values)
    means = (sums / np.maximum(counts, 1)[:, None])[words, 0]
    reserve = Reserve(100, 1)
    reserve.add(values, ((values[:, 0] - means) ** 2 + 1e-3).astype(np.float32), np.arange(len(values)))
    filled = _reseed(sums, counts, words, reserve)
    assert words.tolist() == expected
    assert filled == len(set(expected)) - len(set(assigned))
    np.testing.assert_array_equal(counts, np.bincount(expected, minlength=4))
    np.testing.assert_array_equal(sums[:, 0], np.bincount(expected, weights=values[:, 0], minlength=4))


def test_the_reserve_holds_the_largest_of_all_blocks_whichever_way_they_are_cut():
    rng = np.random.default_rng(0)
    distances = rng.integers(20, size=300).astype(np.float32)
    points = rng.random((300, 2), dtype=np.float32)
    order = np.argsort(-distances, kind="stable")[:25]
    for size in (7, 100, 300):
        reserve = Reserve(25, 2)
        for start in range(0, 300, size):
            reserve.add(
                points[start : start + size], distances[start : start + size], np.arange(300)[start : start + size]
            )
        np.testing.assert_array_equal(reserve.numbers, order)
        np.testing.assert_array_equal(reserve.points, points[order])


def test_as_many_words_as_distinct_points_leave_no_error():
    points = np.array([[0.0], [4.0], [6.0], [10.0]], np.float32).repeat([1, 50, 50, 1], axis=0)
    for seed in range(10):
        result = approximate_kmeans(ArraySource(points), KMeansOptions(words=4, iterations=3, seed=seed))
        assert sorted(result.centres[:, 0].tolist()) == [0.0, 4.0, 6.0, 10.0]
        assert result.errors[-1] == 0


def test_more_words_than_descriptors():
    points = np.vstack([blobs(30, 5, 8), blobs(30, 5, 8)])
    result = approximate_kmeans(ArraySource(points), KMeansOptions(words=500))
    assert (result.wanted, result.distinct, result.points) == (500, 30, 60)
    np.testing.assert_array_equal(np.unique(result.centres, axis=0), np.unique(points, axis=0))
    assert result.counts.tolist() == [2] * 30
    assert result.errors[-1] == 0


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["faiss", "ivf"])
def test_the_seed_decides_and_not_threads_blocks_or_files(tmp_path, backend):
    points = blobs(9000, 100, 16).astype(np.float16)
    options = KMeansOptions(words=2100, iterations=5, seed=3, backend=backend, sample_per_word=4)
    cuts = [0, 0, 10, 4000, 4001, 9000]
    paths = []
    for number, (start, stop) in enumerate(itertools.pairwise(cuts)):
        paths.append(tmp_path / f"{number}.npy")
        np.save(paths[-1], points[start:stop])
    sources = {
        "array": ArraySource(points),
        "float32": ArraySource(points.astype(np.float32)),
        "files": FileSource(paths),
        "small blocks": FileSource(paths, block_rows=777),
    }
    before = faiss.omp_get_max_threads()
    results = {}
    for number, (name, source) in enumerate(sources.items()):
        assert (len(source), source.dim) == (9000, 16)
        faiss.omp_set_num_threads(1 + number % 3)
        results[name] = approximate_kmeans(source, options)
    faiss.omp_set_num_threads(before)
    first = results.pop("array")
    assert (first.points, len(first.centres)) == (8400, 2100)
    for result in results.values():
        np.testing.assert_array_equal(result.centres, first.centres)
        np.testing.assert_array_equal(result.counts, first.counts)
    other = approximate_kmeans(sources["array"], replace(options, seed=4))
    assert not np.array_equal(other.centres, first.centres)


def test_a_sample_is_drawn_evenly_and_a_short_source_is_taken_whole():
    points = np.arange(10_000, dtype=np.float32)[:, None]
    sample = sample_descriptors(ArraySource(points, block_rows=64), 1000, seed=0)[:, 0]
    assert (np.diff(sample) > 0).all()
    # The mean of 1,000 of 10,000 numbers drawn without replacement has a standard deviation of 87.
    assert abs(sample.mean() - 4999.5) < 400
    np.testing.assert_array_equal(sample_descriptors(ArraySource(points), 20_000, seed=0), points)


def test_blocks_are_bounded_and_in_order(tmp_path):
    points = blobs(1000, 5, 4)
    paths = [tmp_path / f"{number}.npy" for number in range(3)]
    for path, part in zip(paths, np.array_split(points, 3), strict=True):
        np.save(path, part)
    for source in (ArraySource(points, block_rows=300), FileSource(paths, block_rows=300)):
        blocks = list(source.blocks())
        assert [len(block) for block in blocks] == [300, 300, 300, 100]
        assert all(block.dtype == np.float32 for block in blocks)
        np.testing.assert_array_equal(np.concatenate(blocks), points)


def test_progress_rises_to_its_end():
    calls = []
    points = blobs(1000, 5, 4)
    options = KMeansOptions(words=10, iterations=3)
    approximate_kmeans(
        ArraySource(points, block_rows=300), options, progress=lambda done, total: calls.append((done, total))
    )
    done, totals = zip(*calls, strict=True)
    assert done[0] == 0  # before the first pass, which may take long
    reading, searching, comparing = 2 * 500, 10 * 12 + 21 * 500, 10 * (12 + 37) + 6 * 500
    assert set(totals) == {done[-1]} == {reading + searching + 2 * comparing}  # at most 50 descriptors a word are used
    assert (np.diff(done) > 0).all()
    assert {reading, reading + searching, reading + searching + comparing} <= set(done)


def test_what_cannot_be_clustered(tmp_path):
    for source in (ArraySource(np.empty((0, 128), np.float32)), FileSource([])):
        with pytest.raises(CairnError, match="no descriptors"):
            approximate_kmeans(source, KMeansOptions(words=10))
    points = blobs(50, 5, 4)
    points[20, 1] = np.nan
    with pytest.raises(ValueError, match="finite"):
        approximate_kmeans(ArraySource(points), KMeansOptions(words=10))
    with pytest.raises(ValueError, match="float16 or float32"):
        ArraySource(np.zeros((3, 4)))
    with pytest.raises(ValueError, match="words"):
        KMeansOptions(words=0)
    with pytest.raises(CairnError, match="faiss, flann"):
        approximate_kmeans(ArraySource(blobs(50, 5, 4)), KMeansOptions(words=10, backend="annoy"))
    np.save(tmp_path / "a.npy", np.zeros((3, 4), np.float32))
    np.save(tmp_path / "b.npy", np.zeros((3, 5), np.float32))
    np.save(tmp_path / "c.npy", np.zeros((3, 4), np.int32))
    with pytest.raises(CairnError, match="of 5 numbers, the others of 4"):
        FileSource([tmp_path / "a.npy", tmp_path / "b.npy"])
    with pytest.raises(CairnError, match=r"c\.npy holds no descriptors"):
        FileSource([tmp_path / "a.npy", tmp_path / "c.npy"])
    with pytest.raises(CairnError, match="missing"):
        FileSource([tmp_path / "d.npy"])
