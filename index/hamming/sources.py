"""Sources of a feature's signature: a few bits that describe the descriptor more closely than its word does."""

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from index.hamming.kinds import SignatureKind
from index.kernels.products import product

# How far from its word a descriptor that is recalled is taken to lie in a dimension, in units of the root of the mean
# square; with 1.5 searches find a little more than with the mean distance, 0.8.
_USUAL = 1.5
_KEPT = 100_000  # words whose centres are kept as they are projected, which takes 256 bytes each with 64 bits


def parseval_frame(vectors: int, dim: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Random vectors U (q, m) as orthogonal as their number and length allow: with q ≥ m a Parseval tight frame, U'U =
    I, which keeps all distances (Simonyan14 section 8, after Jégou, Furon, Fuchs, 2012); with q < m orthonormal rows,
    UU' = I.

    `rng`: draws a matrix, whose QR decomposition gives them. The signs are those for which R's diagonal is positive,
    which makes the decomposition unique, and the result uniformly distributed. It is made by Gram and Schmidt's way,
    whose sums NumPy takes in the same order everywhere: LAPACK's last bits are those of a processor.
    """
    columns = rng.standard_normal((vectors, dim) if vectors >= dim else (dim, vectors))
    for at in range(columns.shape[1]):
        column, before = columns[:, at].copy(), columns[:, :at]
        for _ in range(2):  # twice is enough (Giraud et al., 2005)
            column -= (before * (before * column[:, None]).sum(axis=0)).sum(axis=1)
        columns[:, at] = column / np.sqrt((column * column).sum())
    return np.asarray((columns if vectors >= dim else columns.T).astype(np.float32))


class SignatureSource(ABC):
    """Gives features their signatures: bit i says on which side of a hyperplane through the word's centre a descriptor
    lies.
    """

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
        self, signatures: NDArray[np.uint8], words: NDArray[np.integer], beside: NDArray[np.integer], spread: float
    ) -> NDArray[np.uint8]:
        """Estimate signatures (N, n, B) by the words `beside` (N, n) from a feature's word and its signature (N, B)
        alone: it tells on which side of the word's centre the descriptor lay in each dimension, taken to be at a usual
        distance. `spread`: root of the mean square that a descriptor differs from its word in a dimension.
        """
        from index.hamming.sign_kernels import recalled_sides

        # Where there are more bits than dimensions, each of the projections is that much smaller.
        usual = _USUAL * spread * min(1, (self._centres.shape[1] / self.bits) ** 0.5)
        projected, rows = self._project(np.column_stack([words, beside]))
        return recalled_sides(np.ascontiguousarray(signatures), projected, rows, usual)

    def _project(self, words: NDArray[np.integer]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Project the centres of words (N, k): rows (T, bits), and which of them is of each word, (N, k)."""
        if words.size and words.max() >= len(self._centres):
            raise IndexError("there is no such word")
        words = np.maximum(words, 0)  # a descriptor with NaN has no signature
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

    The paper takes the medians of what a word's training descriptors are projected to. The projected centre, their
    mean, does as well (docs/explanations/decisions.md), needs no training, and fits every vocabulary, that of another
    collection too.
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
        self, signatures: NDArray[np.uint8], words: NDArray[np.integer], beside: NDArray[np.integer], spread: float
    ) -> NDArray[np.uint8]:
        """Tell the signatures by other words: see `SignatureSource.recall`. They are the same by every word."""
        return np.broadcast_to(signatures[:, None], (*beside.shape, signatures.shape[1]))

    def _thresholds(self, words: NDArray[np.integer]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        return self._level, np.zeros(words.shape, np.int64)


_SOURCES: dict[str, type[SignatureSource]] = {"hamming": HammingEmbedding, "frame": FrameCode}


def make_source(kind: SignatureKind, centres: NDArray[np.float32], seed: int) -> SignatureSource:
    """Make the source of signatures by a vocabulary (K, D); the arguments are those of `SignatureSource`."""
    return _SOURCES[kind.source](centres, kind.bits, seed)
