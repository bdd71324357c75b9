"""Sources of signatures: a few bits that describe a descriptor more closely than its word does."""

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from index.hamming.kinds import SignatureKind
from index.kernels.products import product

# Assumed distance of a recalled descriptor from its word in a dimension, in units of the root of the mean square;
# searches find slightly more with 1.5 than with the mean distance, 0.8.
_USUAL = 1.5
_KEPT = 100_000  # words up to which projected centres are cached: 256 bytes each with 64 bits


def parseval_frame(vectors: int, dim: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Random vectors U (q, m) as orthogonal as their number and length allow: with q ≥ m a Parseval tight frame, U'U =
    I, which keeps all distances (Simonyan14 section 8, after Jégou, Furon, Fuchs, 2012); with q < m orthonormal rows,
    UU' = I.

    `rng`: draws a matrix, whose QR decomposition gives them. The signs make R's diagonal positive, so the decomposition
    is unique and the result uniformly distributed. It is computed by Gram-Schmidt, whose sums NumPy takes in the same
    order everywhere; LAPACK's last bits depend on the processor.
    """
    columns = rng.standard_normal((vectors, dim) if vectors >= dim else (dim, vectors))
    for at in range(columns.shape[1]):
        column, before = columns[:, at].copy(), columns[:, :at]
        for _ in range(2):  # twice is enough (Giraud et al., 2005)
            column -= (before * (before * column[:, None]).sum(axis=0)).sum(axis=1)
        columns[:, at] = column / np.sqrt((column * column).sum())
    return np.asarray((columns if vectors >= dim else columns.T).astype(np.float32))


class SignatureSource(ABC):
    """Computes signatures: bit i is the side of a hyperplane through the word's centre that a descriptor lies on."""

    def __init__(self, centres: NDArray[np.float32], bits: int, seed: int) -> None:
        self.bits = bits
        self._centres = centres
        self._vectors = parseval_frame(bits, centres.shape[1], np.random.default_rng(seed))

    def encode(self, descriptors: NDArray[np.floating], words: NDArray[np.integer]) -> NDArray[np.uint8]:
        """Signatures (N, bits / 8), or (N, k, bits / 8), of descriptors (N, D) by one word each, or by several (N, k).
        Bit i is bit i mod 8, counted from the lowest, of byte i div 8.
        """
        from index.hamming.sign_kernels import sides_of

        several = words if words.ndim > 1 else words[:, None]
        projected = product(descriptors, self._vectors.T)
        return sides_of(projected, *self._thresholds(several)).reshape(*words.shape, self.bits // 8)

    def recall(
        self, signatures: NDArray[np.uint8], words: NDArray[np.integer], neighbours: NDArray[np.integer], spread: float
    ) -> NDArray[np.uint8]:
        """Estimate signatures (N, n, B) by the `neighbours` (N, n) from a feature's word and its signature (N, B)
        alone. The signature gives the side of the word's centre in each dimension; a typical distance is assumed.
        `spread`: root of the mean square that a descriptor differs from its word in a dimension.
        """
        from index.hamming.sign_kernels import recalled_sides

        # With more bits than dimensions, each projection is smaller by this factor.
        usual = _USUAL * spread * min(1, (self._centres.shape[1] / self.bits) ** 0.5)
        projected, rows = self._project(np.column_stack([words, neighbours]))
        return recalled_sides(np.ascontiguousarray(signatures), projected, rows, usual)

    def _project(self, words: NDArray[np.integer]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Project the centres of words (N, k): rows (T, bits), and the row of each word, (N, k)."""
        if words.size and words.max() >= len(self._centres):
            raise IndexError("there is no such word")
        words = np.maximum(words, 0)  # a descriptor with NaN gets no signature
        if len(self._centres) <= _KEPT:
            return self._projected, words.astype(np.int64)
        distinct, which = np.unique(words, return_inverse=True)
        return product(self._centres[distinct], self._vectors.T), which.reshape(words.shape).astype(np.int64)

    @cached_property
    def _projected(self) -> NDArray[np.float32]:
        """All centres, projected: (K, bits)."""
        return product(self._centres, self._vectors.T)

    @abstractmethod
    def _thresholds(self, words: NDArray[np.integer]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Thresholds (T, bits), and the row of each of the words, (N, k)."""


class HammingEmbedding(SignatureSource):
    """The side of hyperplanes through the centre of a word (Jégou, Douze, Schmid: Hamming embedding and weak geometric
    consistency for large scale image search, ECCV 2008).

    The paper takes the medians of the projected training descriptors of a word. The projected centre, their mean, works
    as well (docs/explanations/decisions.md), needs no training, and works with any vocabulary.
    """

    def _thresholds(self, words: NDArray[np.integer]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        return self._project(words)


class FrameCode(SignatureSource):
    """Signs of a Parseval tight frame expansion of the descriptor less its mean (Simonyan14, section 8), the same for
    every word; with fewer bits than dimensions, of an orthogonal projection.

    The mean is that of the vocabulary's centres.
    """

    def __init__(self, centres: NDArray[np.float32], bits: int, seed: int) -> None:
        super().__init__(centres, bits, seed)
        self._level = product(centres.mean(axis=0, dtype=np.float64)[None], self._vectors.T)

    def recall(
        self, signatures: NDArray[np.uint8], words: NDArray[np.integer], neighbours: NDArray[np.integer], spread: float
    ) -> NDArray[np.uint8]:
        """Return the signatures unchanged, as they do not depend on the word: see `SignatureSource.recall`."""
        return np.broadcast_to(signatures[:, None], (*neighbours.shape, signatures.shape[1]))

    def _thresholds(self, words: NDArray[np.integer]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        return self._level, np.zeros(words.shape, np.int64)


_SOURCES: dict[str, type[SignatureSource]] = {"hamming": HammingEmbedding, "frame": FrameCode}


def make_source(kind: SignatureKind, centres: NDArray[np.float32], seed: int) -> SignatureSource:
    """Make the source of signatures for a vocabulary (K, D), with the arguments of `SignatureSource`."""
    return _SOURCES[kind.source](centres, kind.bits, seed)
