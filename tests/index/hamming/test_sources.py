"""Signatures of descriptors: their bits, random vectors, and estimates without the descriptor."""

import numpy as np
import pytest

from index.errors import CairnError
from index.hamming.kinds import DEFAULT, NAMES, SignatureKind, parse_signature
from index.hamming.sources import SignatureSource, make_source, parseval_frame

KINDS = [parse_signature(name) for name in NAMES if name != "none"]
WORDS, DIM = 50, 48


@pytest.fixture(params=KINDS, ids=str)
def kind(request: pytest.FixtureRequest) -> SignatureKind:
    assert isinstance(request.param, SignatureKind)
    return request.param


@pytest.fixture
def centres() -> np.ndarray:
    return np.random.default_rng(0).normal(3, 1, (WORDS, DIM)).astype(np.float32)


@pytest.fixture
def source(kind: SignatureKind, centres: np.ndarray) -> SignatureSource:
    return make_source(kind, centres, 5)


@pytest.mark.parametrize(("vectors", "dim"), [(8, 8), (5, 12), (32, 64), (64, 8), (128, 80)])
def test_vectors_are_orthonormal_or_a_parseval_frame(vectors: int, dim: int) -> None:
    frame = parseval_frame(vectors, dim, np.random.default_rng(1))
    assert frame.shape == (vectors, dim) and frame.dtype == np.float32
    product = frame.T @ frame if vectors >= dim else frame @ frame.T
    np.testing.assert_allclose(product, np.eye(min(vectors, dim)), atol=1e-6)
    if vectors >= dim:  # an expansion keeps all distances
        x = np.random.default_rng(2).normal(size=(9, dim))
        np.testing.assert_allclose(np.linalg.norm(x @ frame.T, axis=1), np.linalg.norm(x, axis=1), rtol=1e-5)
    np.testing.assert_array_equal(parseval_frame(vectors, dim, np.random.default_rng(1)), frame)
    assert (parseval_frame(vectors, dim, np.random.default_rng(2)) != frame).any()


def test_a_frame_is_uniformly_distributed() -> None:
    """A QR decomposition without unique signs would prefer some orientations."""
    rng = np.random.default_rng(3)
    corners = np.array([parseval_frame(3, 3, rng)[0, 0] for _ in range(400)])
    assert abs(corners.mean()) < 0.1 and abs((corners > 0).mean() - 0.5) < 0.1


def test_a_bit_says_on_which_side_of_a_hyperplane_a_descriptor_lies(kind: SignatureKind, centres: np.ndarray) -> None:
    """Computed in double precision, bit by bit."""
    rng = np.random.default_rng(4)
    rows = (centres[rng.integers(0, WORDS, 30)] + rng.normal(size=(30, DIM))).astype(np.float16)
    words = rng.integers(0, WORDS, 30)
    found = make_source(kind, centres, 5).encode(rows, words)
    assert found.shape == (30, kind.bits // 8) and found.dtype == np.uint8
    vectors = parseval_frame(kind.bits, DIM, np.random.default_rng(5)).astype(np.float64)
    mean = centres.astype(np.float64).mean(axis=0)
    for row, word, signature in zip(rows.astype(np.float64), words, found, strict=True):
        origin = centres[word].astype(np.float64) if kind.source == "hamming" else mean
        for bit in range(kind.bits):
            beyond = vectors[bit] @ (row - origin)
            if abs(beyond) > 1e-4:
                assert signature[bit // 8] >> (bit % 8) & 1 == (beyond > 0)


def test_several_words_give_the_signatures_of_each(source: SignatureSource) -> None:
    rng = np.random.default_rng(6)
    rows, words = rng.normal(3, 1, (20, DIM)).astype(np.float16), rng.integers(0, WORDS, (20, 3))
    together = source.encode(rows, words)
    assert together.shape == (20, 3, source.bits // 8)
    for k in range(3):
        np.testing.assert_array_equal(together[:, k], source.encode(rows, words[:, k]))
    np.testing.assert_array_equal(source.encode(rows, words[:, :1])[:, 0], together[:, 0])


@pytest.mark.parametrize("shape", [(0,), (0, 3)])
def test_no_descriptors_have_no_signatures(source: SignatureSource, shape: tuple[int, ...]) -> None:
    found = source.encode(np.zeros((0, DIM), np.float16), np.zeros(shape, np.int32))
    assert found.shape == (*shape, source.bits // 8) and found.dtype == np.uint8


def test_descriptors_are_signed_one_by_one(source: SignatureSource) -> None:
    rng = np.random.default_rng(7)
    rows, words = rng.normal(3, 1, (40, DIM)).astype(np.float32), rng.integers(0, WORDS, 40)
    every = source.encode(rows, words)
    np.testing.assert_array_equal(source.encode(rows[::-1], words[::-1])[::-1], every)


def test_a_descriptor_that_is_its_words_centre_is_on_no_side(kind: SignatureKind, centres: np.ndarray) -> None:
    """Rounding must not decide: alone, among others, and with a vocabulary of another size."""
    if kind.source == "frame":
        return  # the same for every word, as it does not depend on centres
    halves = centres.astype(np.float16)
    words = np.arange(WORDS)
    for some in (words, words[:1], words[::-7]):
        source = make_source(kind, halves.astype(np.float32), 5)
        assert not source.encode(halves[some], some).any()
    one = make_source(kind, halves[7:8].astype(np.float32), 5)
    assert not one.encode(halves[7:8], np.zeros((1, 3), np.int64)).any()


def test_what_is_recalled_is_true_of_a_descriptor_that_lies_as_assumed(
    kind: SignatureKind, centres: np.ndarray
) -> None:
    """At one and a half times the spread from the word in each dimension, on the side of its bit."""
    source, spread = make_source(kind, centres, 5), 0.6
    rng = np.random.default_rng(8)
    words, beside = rng.integers(0, WORDS, 12), rng.integers(0, WORDS, (12, 4))
    if kind.source == "hamming" and kind.bits > DIM:
        # More dimensions than a descriptor has: no descriptor lies as assumed in all of them.
        own = source.encode(centres[words] + rng.normal(0, spread, (12, DIM)).astype(np.float32), words)
        np.testing.assert_array_equal(source.recall(own, words, words[:, None], spread)[:, 0], own)
        return
    if kind.source == "hamming":
        vectors = parseval_frame(kind.bits, DIM, np.random.default_rng(5))
        sides = rng.choice([-1.0, 1.0], (12, kind.bits))
        rows = (centres[words] + 1.5 * spread * sides @ vectors).astype(np.float32)
    else:
        rows = rng.normal(3, 1, (12, DIM)).astype(np.float32)  # its signature is the same by every word
    found = source.recall(source.encode(rows, words), words, beside, spread)
    assert found.shape == (12, 4, kind.bits // 8) and found.dtype == np.uint8
    np.testing.assert_array_equal(found, source.encode(rows, beside))


def test_what_is_recalled_is_nearer_to_the_truth_than_chance(kind: SignatureKind) -> None:
    rng = np.random.default_rng(9)
    centres = rng.normal(0, 1, (WORDS, 128)).astype(np.float32)
    source, spread = make_source(kind, centres, 5), 1.0
    words, beside = rng.integers(0, WORDS, 200), rng.integers(0, WORDS, (200, 2))
    rows = centres[words] + rng.normal(0, spread, (200, 128)).astype(np.float32)
    recalled = source.recall(source.encode(rows, words), words, beside, spread)
    differing = np.bitwise_count(recalled ^ source.encode(rows, beside)).sum(axis=2).mean() / kind.bits
    assert differing < 0.25


def test_names() -> None:
    assert NAMES[0] == "none" and DEFAULT in NAMES and parse_signature("none") is None
    for bits in (32, 64, 128):
        assert parse_signature(str(bits)) == parse_signature(f"hamming-{bits}") == SignatureKind("hamming", bits)
        assert parse_signature(f"frame-{bits}") == SignatureKind("frame", bits)
    for name in NAMES[1:]:
        assert str(parse_signature(name)) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "16",
        "064",
        "0",
        "-64",
        "64.0",
        "hamming",
        "hamming-",
        "hamming-63",
        "-",
        "frame64",
        "NONE",
        "none-64",
        "²",
        "x\n",
    ],
)
def test_what_is_no_signature_is_refused_in_one_sentence(name: str) -> None:
    with pytest.raises(CairnError) as refused:
        parse_signature(name)
    sentence = str(refused.value)
    assert sentence.startswith(f"There is no signature {name!r}; choose one of none, hamming-32, ")
    assert sentence.endswith(".") and sentence.count("\n") == 0
