"""The sparse similarity matrix: product and mask compared with dense ones, and untrusted files."""

import io
import json
import pickle
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import index.similarity
from index.errors import CairnError
from index.search_backends import search_backend
from index.segments.writing import write_segment
from index.similarity import SimilarityMatrix, check_similarity_path, nearest_pairs, shared_postings
from index.vocabulary import Vocabulary

entries = st.sampled_from([0.0, 0.125, 0.7, 1.0, 2.5])


@st.composite
def matrices(draw: st.DrawFn, words: int) -> SimilarityMatrix:
    """Any R ≥ 0 on any mask, stored zeros included."""
    pairs = draw(st.sets(st.tuples(st.integers(0, words - 1), st.integers(0, words - 1)).filter(lambda p: p[0] < p[1])))
    first, second = np.array(sorted(pairs), np.int32).reshape(-1, 2).T.copy()
    return SimilarityMatrix(
        "v",
        np.array(draw(st.lists(entries, min_size=words, max_size=words)), np.float32),
        first,
        second,
        np.array(draw(st.lists(entries, min_size=len(pairs), max_size=len(pairs))), np.float32),
    )


def dense(matrix: SimilarityMatrix) -> np.ndarray:
    """R as a dense matrix."""
    full = np.diag(matrix.diagonal.astype(float))
    full[matrix.first, matrix.second] = full[matrix.second, matrix.first] = matrix.values
    return full


def example() -> SimilarityMatrix:
    return SimilarityMatrix(
        "f" * 64,
        np.array([1, 0.5, 0, 2], np.float32),
        np.array([0, 0, 2], np.int32),
        np.array([1, 3, 3], np.int32),
        np.array([0.25, 0, 1.5], np.float32),
        {"neighbours": 2, "photos": "Köln"},
    )


def vocabulary_of(points: np.ndarray) -> Vocabulary:
    search = search_backend("faiss").build(points)
    return Vocabulary(search, "d", "nothing", recall_at_1=1.0, quantisation_error=1.0, training={})


# The product


@given(matrix=matrices(9), weights=st.lists(st.sampled_from([0.0, 0.3, 1.0, 4.0]), min_size=9, max_size=9))
def test_the_product_is_the_dense_one(matrix: SimilarityMatrix, weights: list[float]) -> None:
    vector = np.array(weights)
    words = np.flatnonzero(vector)
    got, values = matrix.apply(words, vector[words])
    product = np.zeros(9)
    product[got] = values
    np.testing.assert_allclose(product, dense(matrix) @ vector, rtol=1e-12)
    # The result has the query's words, and no word without effect.
    related = (dense(matrix)[words] > 0).any(axis=0)
    assert got.tolist() == np.flatnonzero(related | (vector > 0)).tolist()


def test_the_product_with_the_identity_changes_no_bit() -> None:
    weights = np.random.default_rng(0).random(40)
    words, values = SimilarityMatrix.identity("v", 100).apply(np.arange(10, 50), weights)
    assert words.tolist() == list(range(10, 50)) and values.tobytes() == weights.tobytes()
    words, values = SimilarityMatrix.identity("v", 3).apply(np.zeros(0, np.int32), np.zeros(0))
    assert len(words) == len(values) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"diagonal": np.ones(4)}, "float32"),
        ({"diagonal": np.ones((4, 1), np.float32)}, "row"),
        ({"diagonal": np.array([1, -1, 0, 0], np.float32)}, "at least 0"),
        ({"values": np.array([1, np.nan, 0], np.float32)}, "finite"),
        ({"values": np.array([1, np.inf, 0], np.float32)}, "finite"),
        ({"values": np.ones(2, np.float32)}, "as many"),
        ({"first": np.array([0, 0, 2], np.int64)}, "int32"),
        ({"first": np.array([-1, 0, 2], np.int32)}, "not one of the 4"),
        ({"second": np.array([1, 3, 4], np.int32)}, "not one of the 4"),
        ({"second": np.array([1, 3, 2], np.int32)}, "wrong order"),
        ({"second": np.array([1, 3, 1], np.int32)}, "wrong order"),
        ({"second": np.array([3, 1, 3], np.int32)}, "ascending"),
        ({"second": np.array([3, 3, 3], np.int32)}, "ascending"),
    ],
)
def test_arrays_that_are_no_such_matrix_are_refused(change: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(example(), **change)


# The mask


def brute_pairs(points: np.ndarray, k: int) -> list[list[int]]:
    distances = np.square(points[:, None].astype(float) - points[None]).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    near = np.argsort(distances, axis=1)[:, :k]
    pairs = {(min(u, v), max(u, v)) for u in range(len(points)) for v in near[u].tolist()}
    return [list(pair) for pair in sorted(pairs)]


@pytest.mark.parametrize("k", [0, 1, 2, 3, 59, 60, 1000])
def test_the_mask_is_that_of_the_nearest_words(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.random.default_rng(k).normal(size=(60, 5)).astype(np.float32)
    expected = brute_pairs(points, min(k, 59))
    for block in (7, 1 << 16):
        monkeypatch.setattr(index.similarity, "BLOCK_WORDS", block)
        first, second = nearest_pairs(vocabulary_of(points), k)
        assert (first.dtype, second.dtype) == (np.int32, np.int32)
        assert np.stack([first, second], axis=1).tolist() == expected


def test_words_that_coincide_are_neighbours_and_none_its_own() -> None:
    points = np.random.default_rng(0).normal(size=(30, 5)).astype(np.float32)
    points[10:20] = points[10]  # more than k coinciding centres, so the search may miss the word itself
    first, second = nearest_pairs(vocabulary_of(points), 2)
    SimilarityMatrix("v", np.ones(30, np.float32), first, second, np.ones(len(first), np.float32))
    for word in range(30):
        partners = [*second[first == word], *first[second == word]]
        assert len(partners) >= 2 and word not in partners
        if 10 <= word < 20:
            assert sum(10 <= partner < 20 for partner in partners) >= 2
    assert 30 <= len(first) <= 60


def test_the_mask_of_one_word_is_empty_and_a_negative_k_is_none() -> None:
    one = vocabulary_of(np.zeros((1, 4), np.float32))
    for k in (0, 1, 5):
        assert [len(part) for part in nearest_pairs(one, k)] == [0, 0]
    with pytest.raises(ValueError, match="at least 0"):
        nearest_pairs(one, -1)


# Shared postings


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    images=st.lists(st.lists(st.integers(0, 7), max_size=12), min_size=1, max_size=9),
    pairs=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12),
    block=st.integers(1, 40),
)
def test_shared_postings_are_those_of_the_images_with_both_words(
    tmp_path_factory: pytest.TempPathFactory, images: list[list[int]], pairs: list[tuple[int, int]], block: int
) -> None:
    segment = write_segment(
        tmp_path_factory.mktemp("s") / "1",
        image_numbers=np.arange(len(images), dtype=np.uint32),
        words=[np.array(row, np.int32) for row in images],
        columns={},
        vocabulary_fingerprint="v",
        descriptor_fingerprint="d",
    )
    first, second = np.array(pairs, np.int32).reshape(-1, 2).T
    got = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index.similarity, "BLOCK_POSTINGS", block)
        for which, positions, counts, others in shared_postings(segment, 10, first, second):
            rows = zip(which.tolist(), positions.tolist(), counts.tolist(), others.tolist(), strict=True)
            got += [(p, image, *sorted(both)) for p, image, *both in rows]
    assert got == [
        (p, image, *sorted((row.count(u), row.count(v))))
        for p, (u, v) in enumerate(pairs)
        for image, row in enumerate(images)
        if u in row and v in row
    ]


# The file


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(matrix=matrices(6))
def test_a_file_gives_back_what_was_written(tmp_path_factory: pytest.TempPathFactory, matrix: SimilarityMatrix) -> None:
    path = tmp_path_factory.mktemp("f") / "s.npz"
    matrix.save(path)
    back = SimilarityMatrix.load(path)
    for name in ("diagonal", "first", "second", "values"):
        old, new = getattr(matrix, name), getattr(back, name)
        assert old.dtype == new.dtype and old.tobytes() == new.tobytes()
    assert (back.vocabulary, back.provenance, back.fingerprint) == ("v", {}, matrix.fingerprint)


def test_the_same_matrix_is_the_same_file_and_its_origin_no_part_of_it(tmp_path: Path) -> None:
    matrix = example()
    for name in ("a", "b"):
        matrix.save(tmp_path / f"{name}.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    back = SimilarityMatrix.load(tmp_path / "a.npz")
    assert back.provenance == matrix.provenance
    assert back.describe() == {"fingerprint": matrix.fingerprint, "neighbours": 2, "pairs": 3}
    assert replace(matrix, provenance={}).fingerprint == matrix.fingerprint
    assert replace(matrix, vocabulary="0" * 64).fingerprint != matrix.fingerprint
    assert replace(matrix, values=matrix.values + np.float32(0.5)).fingerprint != matrix.fingerprint


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def header(text: str, body: bytes) -> bytes:
    line = text.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(line).to_bytes(2, "little") + line + body


class Evil:
    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return pytest.fail, ("a pickle was loaded",)


def hostile_arrays() -> dict[str, dict[str, bytes]]:
    floats, ints = np.ones(3, np.float32), np.zeros(3, np.int32)
    return {
        "pickled": {"values": header("{'descr': '|O', 'fortran_order': False, 'shape': (3,)}", pickle.dumps(Evil()))},
        "negative": {"values": npy(-floats)},
        "no number": {"diagonal": npy(np.full(4, np.nan, np.float32))},
        "unsorted": {"first": npy(ints), "second": npy(np.array([3, 2, 1], np.int32))},
        "not in order": {"second": npy(ints)},
        "out of range": {"second": npy(np.array([1, 3, 99], np.int32))},
        "below range": {"first": npy(np.array([-2, 0, 2], np.int32))},
        "too few": {"values": npy(floats[:2])},
        "too many": {"first": npy(np.zeros(9, np.int32))},
        "doubles": {"values": npy(np.ones(3))},
        "wide": {"first": npy(np.zeros(3, np.int64))},
        "a table": {"diagonal": npy(np.ones((2, 2), np.float32))},
        "a number": {"diagonal": npy(np.float32(1))},
        "records": {"values": npy(np.zeros(3, [("a", "<f4")]))},
        "other bytes": {"values": npy(floats.astype(">f4"))},
        "huge": {"values": header("{'descr': '<f4', 'fortran_order': False, 'shape': (10000000000,)}", bytes(12))},
        "beyond all": {"values": header("{'descr': '<f4', 'fortran_order': False, 'shape': (" + "9" * 40 + ",)}", b"")},
        "below all": {"values": header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", bytes(12))},
        "no header": {"values": b"\x93NUMPY\x01\x00\xff\xff{"},
        "code": {"values": header("__import__('os').system('false')", bytes(12))},
        "later format": {"values": b"\x93NUMPY\x09\x00" + bytes(40)},
        "empty": {"values": b""},
        "no table": {"meta": b"[1]"},
        "no json": {"meta": b"{"},
        "deep": {"meta": b"[" * 200_000},
        "no format": {"meta": b'{"vocabulary": "v", "provenance": {}}'},
        "true": {"meta": b'{"format": true, "vocabulary": "v", "provenance": {}}'},
        "tomorrow": {"meta": b'{"format": 2, "vocabulary": "v", "provenance": {}}'},
        "no vocabulary": {"meta": b'{"format": 1, "provenance": {}}'},
        "odd vocabulary": {"meta": b'{"format": 1, "vocabulary": 7, "provenance": {}}'},
        "odd origin": {"meta": b'{"format": 1, "vocabulary": "v", "provenance": "here"}'},
    }


def write_with(path: Path, changed: dict[str, bytes], leave_out: str = "") -> None:
    """A valid file except for some entries."""
    matrix = example()
    parts = {name: npy(getattr(matrix, name)) for name in ("diagonal", "first", "second", "values")}
    parts["meta"] = json.dumps({"format": 1, "vocabulary": "v", "provenance": {}}).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, contents in (parts | changed).items():
            if name != leave_out:
                archive.writestr(f"{name}.json" if name == "meta" else f"{name}.npy", contents)


@pytest.mark.parametrize("case", hostile_arrays())
def test_what_does_not_fit_together_is_refused(tmp_path: Path, case: str) -> None:
    path = tmp_path / "s.npz"
    write_with(path, {})
    assert SimilarityMatrix.load(path).words == 4
    write_with(path, hostile_arrays()[case])
    with pytest.raises(CairnError, match=r"s\.npz.*(cairn learn similarity|update Cairn)"):
        SimilarityMatrix.load(path)


@pytest.mark.parametrize("part", ["meta", "diagonal", "first", "second", "values"])
def test_a_part_that_is_missing_is_refused(tmp_path: Path, part: str) -> None:
    write_with(tmp_path / "s.npz", {}, leave_out=part)
    with pytest.raises(CairnError, match="cairn learn similarity"):
        SimilarityMatrix.load(tmp_path / "s.npz")


def test_a_damaged_file_is_refused_wherever_the_damage_is(tmp_path: Path) -> None:
    path = tmp_path / "s.npz"
    example().save(path)
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(CairnError):
            SimilarityMatrix.load(path)
    fingerprint = example().fingerprint
    for place in range(0, len(whole), 3):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            back = SimilarityMatrix.load(path)
        except CairnError:
            continue
        assert back.fingerprint == fingerprint  # the damage was in unused bytes


@pytest.mark.slow
def test_what_is_no_file_or_far_too_large_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CairnError, match="There is no similarity file"):
        SimilarityMatrix.load(tmp_path / "nothing.npz")
    with pytest.raises(CairnError, match="not a regular file"):
        SimilarityMatrix.load(tmp_path)
    np.savez(tmp_path / "other.npz", weights=np.ones(3))
    with pytest.raises(CairnError, match="no similarity file"):
        SimilarityMatrix.load(tmp_path / "other.npz")
    bomb = tmp_path / "bomb.npz"
    write_with(bomb, {"more": bytes(300_000_000)})
    assert bomb.stat().st_size < 1_000_000
    with pytest.raises(CairnError, match="far more"):
        SimilarityMatrix.load(bomb)
    with (tmp_path / "large.npz").open("wb") as file:
        file.truncate(300_000_000)
    with pytest.raises(CairnError, match="far larger"):
        SimilarityMatrix.load(tmp_path / "large.npz")


def test_where_no_file_can_be_written_is_known_before(tmp_path: Path) -> None:
    (tmp_path / "folder.npz").mkdir()
    for path, message in (("s.txt", r"\.npz"), ("missing/s.npz", "not a folder"), ("folder.npz", "is a folder")):
        with pytest.raises(CairnError, match=message):
            check_similarity_path(tmp_path / path)
        with pytest.raises(CairnError, match=message):
            example().save(tmp_path / path)
    check_similarity_path(tmp_path / "s.npz")
