import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.errors import CairnError
from retrieval.descriptors.codes import BinaryCode, ProductCode, load_code

DIM = 13


def rows_of(number, seed=0, dim=DIM):
    return np.random.default_rng(seed).standard_normal((number, dim)).astype(np.float32)


def binary_code(bits=70, seed=0, dim=DIM):
    return BinaryCode(rows_of(1, seed, dim)[0] * 0.1, rows_of(bits, seed + 1, dim))


def product_code(sizes=(5, 1, 4, 3), rotated=True, seed=0):
    rng = np.random.default_rng(seed)
    dim = sum(sizes)
    rotation = np.linalg.qr(rng.standard_normal((dim, dim)))[0].astype(np.float32) if rotated else None
    return ProductCode(rows_of(256, seed, dim), np.array(sizes, np.int32), rotation)


CODES = {
    "binary": binary_code(),
    "binary of whole bytes": binary_code(64),
    "binary of one bit": binary_code(1),
    "product": product_code(),
    "product without rotation": product_code(rotated=False),
    "scalar": product_code((1,) * DIM, rotated=False),
    "one part": product_code((DIM,)),
}
every_code = pytest.mark.parametrize("code", CODES.values(), ids=CODES)


def squared_distances(first, second):
    return ((first[:, None].astype(np.float64) - second[None]) ** 2).sum(axis=2)


# --- What all codes promise.


@every_code
def test_what_is_packed_is_what_is_applied(code):
    rows = rows_of(300)
    packed, applied = code.encode(rows), code.apply(rows)
    assert packed.shape == (300, code.bytes)
    assert packed.dtype == np.uint8
    assert applied.shape == (300, code.dim)
    assert applied.dtype == np.float32
    np.testing.assert_array_equal(code.decode(packed), applied)


@every_code
def test_no_rows_give_no_codes(code):
    rows = rows_of(0)
    assert code.encode(rows).shape == (0, code.bytes)
    assert code.apply(rows).shape == code.decode(code.encode(rows)).shape == (0, code.dim)


@given(name=st.sampled_from(sorted(CODES)), number=st.integers(1, 400), seed=st.integers(0, 9), data=st.data())
def test_a_row_has_the_same_code_whatever_else_is_in_the_batch(name, number, seed, data):
    code, rows = CODES[name], rows_of(number, seed)
    packed, applied = code.encode(rows), code.apply(rows)
    chosen = data.draw(st.lists(st.integers(0, number - 1), min_size=1, max_size=20))
    for part in (chosen, chosen[:1]):
        np.testing.assert_array_equal(code.encode(rows[part]), packed[part])
        np.testing.assert_allclose(code.apply(rows[part]), applied[part], rtol=0, atol=1e-6)
    np.testing.assert_array_equal(code.encode(np.asfortranarray(rows)), packed)


@every_code
def test_a_code_is_built_again_from_what_it_keeps(code):
    again = load_code(code.meta(), code.arrays())
    assert type(again) is type(code)
    assert (again.source_dim, again.dim, again.bytes) == (DIM, code.dim, code.bytes)
    np.testing.assert_array_equal(again.encode(rows_of(50)), code.encode(rows_of(50)))


@every_code
@pytest.mark.parametrize("shape", [(3, DIM + 1), (DIM,), (0,), (2, 2, DIM)])
def test_rows_of_another_shape_are_refused(code, shape):
    for method in (code.apply, code.encode):
        with pytest.raises(ValueError, match=f"{DIM}"):
            method(np.zeros(shape, np.float32))


@every_code
def test_packed_codes_of_another_shape_are_refused(code):
    for packed in (np.zeros((2, code.bytes + 1), np.uint8), np.zeros((2, code.bytes), np.int64)):
        with pytest.raises(ValueError, match="packed"):
            code.decode(packed)


# --- Binary codes.


def test_a_bit_is_one_where_the_centred_expansion_is_positive():
    code = BinaryCode(np.array([1, 0], np.float32), np.array([[1, 0], [-1, 0], [0, 1], [1, 1]], np.float32))
    rows = np.array([[3, -1], [1, 0], [0, 5]], np.float32)
    # By hand: Ψ - mean is (2, -1), (0, 0) and (-1, 5); sgn(0) = 0.
    expected = [[1, 0, 0, 1], [0, 0, 0, 0], [0, 1, 1, 1]]
    np.testing.assert_array_equal(code.apply(rows), expected)
    np.testing.assert_array_equal(code.encode(rows), [[0b1001], [0], [0b1110]])


@pytest.mark.parametrize("bits", [1, 8, 63, 64, 65, 200])
def test_distances_of_bits_are_hamming_distances_of_packed_codes(bits):
    code, rows = binary_code(bits), rows_of(60)
    packed = code.encode(rows)
    distances = np.bitwise_count(packed[:, None] ^ packed[None]).sum(axis=2)
    applied = code.apply(rows)
    assert set(np.unique(applied)) <= {0, 1}
    np.testing.assert_array_equal(squared_distances(applied, applied), distances)


# --- Product codes.


@pytest.mark.parametrize("name", ["product", "product without rotation", "scalar", "one part"])
def test_each_part_gets_its_nearest_codeword(name):
    code, rows = CODES[name], rows_of(200, 3)
    turned = rows @ (code.rotation if code.rotation is not None else np.eye(DIM, dtype=np.float32))
    packed = code.encode(rows)
    ends = np.cumsum(code.sizes)
    for part, (end, size) in enumerate(zip(ends, code.sizes, strict=True)):
        columns = slice(end - size, end)
        distances = squared_distances(turned[:, columns], code.centroids[:, columns])
        taken = distances[np.arange(len(rows)), packed[:, part]]
        np.testing.assert_allclose(taken, distances.min(axis=1), atol=1e-5)


def test_codewords_are_coded_as_themselves():
    code = CODES["product"]
    every = np.repeat(np.arange(256, dtype=np.uint8)[:, None], code.bytes, axis=1)
    np.testing.assert_array_equal(code.encode(code.decode(every)), every)


# --- Damaged files.


def damaged(code, name, change):
    arrays = code.arrays()
    arrays[name] = change(arrays[name].copy())
    return code.meta(), arrays


def with_nan(array):
    array.flat[0] = np.nan
    return array


@pytest.mark.parametrize(
    ("meta", "arrays"),
    [
        damaged(CODES["binary"], "mean", lambda array: array[:-1]),
        damaged(CODES["binary"], "mean", with_nan),
        damaged(CODES["binary"], "frame", lambda array: array.astype(np.float64)),
        damaged(CODES["binary"], "frame", lambda array: array[:64]),
        damaged(CODES["binary"], "frame", lambda array: array[:0]),
        damaged(CODES["binary"], "frame", lambda array: array[0]),
        damaged(CODES["product"], "centroids", lambda array: array[:255]),
        damaged(CODES["product"], "centroids", with_nan),
        damaged(CODES["product"], "centroids", lambda array: array[:, :0]),
        damaged(CODES["product"], "sizes", lambda array: array[:-1]),
        damaged(CODES["product"], "sizes", lambda array: array[:0]),
        damaged(CODES["product"], "sizes", lambda array: np.array([14, -1], np.int32)),
        damaged(CODES["product"], "sizes", lambda array: np.array([2**31 - 1, 2**31 - 1, 15], np.int32)),
        damaged(CODES["product"], "sizes", lambda array: array.astype(np.float32)),
        damaged(CODES["product"], "rotation", lambda array: array * 2),
        damaged(CODES["product"], "rotation", lambda array: array[:-1]),
        damaged(CODES["product"], "rotation", with_nan),
        ({"kind": "binary", "bits": 70}, {}),
        ({"kind": "ternary", "bits": 70}, CODES["binary"].arrays()),
        ({"kind": ["binary"], "bits": 70}, CODES["binary"].arrays()),
        ({}, CODES["binary"].arrays()),
        ([], CODES["binary"].arrays()),
        ({"kind": "binary", "bits": 71}, CODES["binary"].arrays()),
        ({"kind": "product"}, CODES["product"].arrays()),
        ({"kind": "product", "bits": 70}, CODES["binary"].arrays()),
    ],
)
def test_a_damaged_code_is_refused(meta, arrays):
    with pytest.raises(CairnError, match="damaged") as refused:
        load_code(meta, arrays)
    assert str(refused.value).count(".") == 1


def test_codes_are_never_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        CODES["binary"].mean = np.zeros(DIM, np.float32)
