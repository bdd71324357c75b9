import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from index import signatures
from index.signatures import from_bytes, hamming, pack, to_bytes, unpack


def random_bits(number, length, seed=0):
    return np.random.default_rng(seed).random((number, length)) < 0.5


def test_bits_fill_words_from_the_lowest():
    bits = np.zeros((3, 70), np.uint8)
    bits[0, 0] = bits[1, 63] = bits[2, 64] = bits[2, 69] = 1
    np.testing.assert_array_equal(pack(bits), np.array([[1, 0], [1 << 63, 0], [0, 0b100001]], np.uint64))


def test_distances_of_a_few_words_by_hand():
    codes = np.array([[0], [1], [0xFF], [2**64 - 1]], np.uint64)
    expected = [[0, 1, 8, 64], [1, 0, 7, 63], [8, 7, 0, 56], [64, 63, 56, 0]]
    np.testing.assert_array_equal(hamming(codes, codes), expected)


lengths = st.integers(0, 200)


@given(number=st.integers(0, 6), length=lengths, seed=st.integers(0, 99))
def test_packing_keeps_every_bit(number, length, seed):
    bits = random_bits(number, length, seed)
    words = pack(bits)
    assert words.shape == (number, -(-length // 64))
    np.testing.assert_array_equal(unpack(words, length), bits)
    np.testing.assert_array_equal(from_bytes(to_bytes(words, -(-length // 8))), words)
    np.testing.assert_array_equal(words, pack(np.pad(bits, ((0, 0), (0, -length % 64)))))


@settings(deadline=None)
@given(
    first=st.integers(0, 9),
    second=st.integers(0, 30),
    length=lengths,
    block=st.sampled_from([1, 7, 16, 65_536]),
    seed=st.integers(0, 99),
)
def test_distances_are_the_numbers_of_bits_that_differ(first, second, length, block, seed):
    left, right = random_bits(first, length, seed), random_bits(second, length, seed + 1)
    expected = (left[:, None] != right[None]).sum(axis=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(signatures, "_BLOCK", block)
        np.testing.assert_array_equal(hamming(pack(left), pack(right)), expected)


def test_distances_across_whole_blocks():
    left, right = random_bits(9, 64), random_bits(70_000, 64, 1)
    distances = hamming(pack(left), pack(right))
    expected = np.stack([(row != right).sum(axis=1) for row in left])
    np.testing.assert_array_equal(distances, expected)
    np.testing.assert_array_equal(hamming(pack(right), pack(left)), expected.T)


@pytest.mark.parametrize("words", [1, 511, 512, 1100])
def test_the_largest_distance_fits(words):
    zeros, ones = np.zeros((2, words), np.uint64), np.full((3, words), 2**64 - 1, np.uint64)
    assert (hamming(zeros, ones) == 64 * words).all()


def test_differences_of_distances_have_a_sign():
    distances = hamming(pack(np.eye(3, 64)), pack(np.eye(3, 64)))
    assert (distances[0, 0] - distances[0, 1]) == -2


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (np.zeros((2, 1), np.uint64), np.zeros((2, 2), np.uint64)),
        (np.zeros((2, 1), np.int64), np.zeros((2, 1), np.uint64)),
        (np.zeros(2, np.uint64), np.zeros((2, 1), np.uint64)),
    ],
)
def test_what_cannot_be_compared_is_refused(first, second):
    with pytest.raises(ValueError, match=r"words|signatures"):
        hamming(first, second)


def test_more_bits_than_there_are_is_refused():
    with pytest.raises(ValueError, match="65"):
        unpack(np.zeros((1, 1), np.uint64), 65)
