"""Binary signatures: bits packed in 64-bit words, and the Hamming distances between them."""

import numpy as np
from numpy.typing import NDArray

WORD = 64
"""Bits of a word."""

# Distances counted at a time: their exclusive-ors (512 KiB), counts and the distances stay in the second-level cache.
_BLOCK = 65_536

# The longest signature whose distances fit 16 bits, in words.
_SHORT = 511


def pack(bits: NDArray[np.bool_ | np.integer]) -> NDArray[np.uint64]:
    """Pack bits in words.

    Parameters
    ----------
    bits : ndarray, shape (N, q), bool or of 0 and 1
        One signature a row.

    Returns
    -------
    ndarray, shape (N, ceil(q / 64)), uint64
        Bit i of a signature is bit i mod 64, counted from the lowest, of word i div 64; what is left of the last word
        is 0.
    """
    bits = np.asarray(bits)
    if bits.ndim != 2:
        raise ValueError(f"bits must have the shape (N, q), not {bits.shape}")
    return from_bytes(np.packbits(bits.astype(bool, copy=False), axis=1, bitorder="little"))


def unpack(words: NDArray[np.uint64], number: int) -> NDArray[np.bool_]:
    """Undo `pack`.

    Parameters
    ----------
    words : ndarray, shape (N, W), uint64
        Packed signatures.
    number : int
        Bits of a signature, at most 64 W.

    Returns
    -------
    ndarray, shape (N, number), bool
    """
    words = _check_words(words)
    if not 0 <= number <= WORD * words.shape[1]:
        raise ValueError(f"{words.shape[1]} words hold no {number} bits")
    return np.unpackbits(to_bytes(words, (number + 7) // 8), axis=1, count=number, bitorder="little").astype(bool)


def from_bytes(packed: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Give signatures of bytes (N, B) uint8, the lowest bit first, as words (N, ceil(B / 8)) uint64."""
    number, length = packed.shape
    padded = np.zeros((number, -(-length // 8) * 8), np.uint8)
    padded[:, :length] = packed
    return padded.view("<u8").astype(np.uint64, copy=False)


def to_bytes(words: NDArray[np.uint64], length: int) -> NDArray[np.uint8]:
    """Give the first `length` bytes of each signature (N, W) uint64 as (N, length) uint8."""
    little = np.ascontiguousarray(_check_words(words), "<u8")
    return np.ascontiguousarray(little.view(np.uint8).reshape(len(little), 8 * little.shape[1])[:, :length])


def hamming(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> NDArray[np.int16 | np.int32]:
    """Hamming distances between all signatures of two sets.

    Parameters
    ----------
    first : ndarray, shape (N, W), uint64
        Packed signatures.
    second : ndarray, shape (M, W), uint64
        Others, of as many words.

    Returns
    -------
    ndarray, shape (N, M), int16
        Numbers of bits that differ; int32 for signatures of more than 32,704 bits. Half of the time goes into writing
        them down, so they take no more room than they need.

    Raises
    ------
    ValueError
        The arrays are not of these shapes and types.
    """
    first, second = _check_alike(first, second)
    distances = np.zeros((len(first), len(second)), np.int16 if first.shape[1] <= _SHORT else np.int32)
    by_word = np.ascontiguousarray(second.T)
    # Whole rows as far as they fit: a block without gaps is counted a third faster.
    columns = min(_BLOCK, max(1, len(second)))
    rows = _BLOCK // columns
    # Temporaries are written over and over rather than made anew, so that they are never fetched from memory.
    differing, counts = np.empty((rows, columns), np.uint64), np.empty((rows, columns), np.uint8)
    for row in range(0, len(first), rows):
        left = first[row : row + rows]
        for column in range(0, len(second), columns):
            right = by_word[:, column : column + columns]
            block = distances[row : row + rows, column : column + columns]
            xor, count = (array[: block.shape[0], : block.shape[1]] for array in (differing, counts))
            for word in range(first.shape[1]):
                np.bitwise_xor(left[:, word, None], right[word], out=xor)
                if word == 0:
                    np.bitwise_count(xor, out=block)
                else:
                    np.add(block, np.bitwise_count(xor, out=count), out=block)
    return distances


def _check_words(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    words = np.asarray(words)
    if words.ndim != 2 or words.dtype != np.uint64:
        raise ValueError(f"packed signatures must be (N, W) uint64, not {words.shape} {words.dtype}")
    return words


def _check_alike(
    first: NDArray[np.uint64], second: NDArray[np.uint64]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    first, second = _check_words(first), _check_words(second)
    if first.shape[1] != second.shape[1]:
        raise ValueError(f"signatures of {first.shape[1]} and {second.shape[1]} words cannot be compared")
    return first, second
