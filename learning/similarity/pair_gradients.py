"""Similarities of image pairs and their gradients by the similarity matrix (Yan13 sections III.A and IV.C)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from index.parallel import run
from index.postings.sorted_lists import concatenated_ranges
from index.progress import Step, silent

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix, csr_matrix

_BLOCK = 1 << 21  # approximate entries of a block of gradients: its sums are in single precision
_GATHERED = 1 << 22  # postings processed at a time


@dataclass(frozen=True)
class WordPairs:
    """The mask Bˢ of section III.B without its diagonal: pairs of words that may have the same meaning."""

    words: int  # K
    first: NDArray[np.int32]  # (P,) int32: u of each pair, u < v
    second: NDArray[np.int32]  # (P,) int32: v

    @property
    def parameters(self) -> int:
        """Free entries of the symmetric matrix R: the K of its diagonal, then one a pair."""
        return self.words + len(self.first)


class PairGradients:
    """∂S_ij/∂R of image pairs as rows of a sparse matrix, so that S is its product with the parameters. S_ij = w_iᵀ R
    w_j is linear in R: its derivative by R(u, u) is w_i(u) w_j(u), by R(u, v) = R(v, u) it is w_i(u) w_j(v) + w_i(v)
    w_j(u). Both are sparse; they are computed once, as section IV.C advises.
    """

    def __init__(self, blocks: "Sequence[csr_matrix]", parameters: int, workers: int = 1) -> None:
        self.blocks = list(blocks)
        self.parameters = parameters
        self.workers = workers
        self.starts = np.concatenate([[0], np.cumsum([block.shape[0] for block in self.blocks])]).astype(np.int64)

    def __len__(self) -> int:
        return int(self.starts[-1])

    @property
    def entries(self) -> int:
        """Stored entries of all rows."""
        return sum(block.nnz for block in self.blocks)

    def similarities(self, matrix: NDArray[np.floating]) -> NDArray[np.float64]:
        """S of each pair (M,) float64, for parameters (K + P,)."""
        matrix = matrix.astype(np.float32)
        parts = _map(lambda block: (block @ matrix).astype(np.float64), self.blocks, self.workers)
        return np.concatenate([np.zeros(0), *parts])

    def combine(self, slopes: NDArray[np.floating]) -> NDArray[np.float64]:
        """Σ over the pairs of a slope (M,) times ∂S/∂R: (K + P,) float64."""
        slopes = slopes.astype(np.float32)
        total = np.zeros(self.parameters)
        jobs = list(zip(self.blocks, self.starts[:-1].tolist(), self.starts[1:].tolist(), strict=True))
        # A few at a time, as each result has the length of all parameters; in the order of the blocks.
        for at in range(0, len(jobs), 4 * self.workers):
            some = jobs[at : at + 4 * self.workers]
            for part in _map(lambda job: job[0].T @ slopes[job[1] : job[2]], some, self.workers):
                total += part
        return total

    def subset(self, rows: NDArray[np.bool_]) -> "PairGradients":
        """Copy the pairs of a mask (M,), in order."""
        parts = [
            block[rows[start:stop]]
            for block, start, stop in zip(self.blocks, self.starts, self.starts[1:], strict=False)
        ]
        return PairGradients(parts, self.parameters, self.workers)


def pair_gradients(
    vectors: "csr_matrix",
    pairs: WordPairs,
    left: NDArray[np.integer],
    right: NDArray[np.integer],
    workers: int = 1,
    progress: Step = silent,
) -> PairGradients:
    """Compute ∂S_ij/∂R of distinct image pairs, sorted by i, then j; `pairs` are free entries of R."""
    gather = _Gather(vectors, pairs)
    images, starts = np.unique(left, return_index=True)
    bounds = [*starts.tolist(), len(left)]
    jobs = [(int(image), right[bounds[at] : bounds[at + 1]]) for at, image in enumerate(images)]
    blocks: list[csr_matrix] = []
    held: list[csr_matrix] = []
    entries = 0
    for at in range(0, len(jobs), 4 * workers):
        for rows in _map(lambda job: gather.rows(*job), jobs[at : at + 4 * workers], workers):
            if held and entries + rows.nnz > _BLOCK:
                blocks.append(_stack(held))
                held, entries = [], 0
            held.append(rows)
            entries += rows.nnz
        progress(min(at + 4 * workers, len(jobs)), len(jobs))
    if held:
        blocks.append(_stack(held))
    return PairGradients(blocks, pairs.parameters, workers)


def self_gradients(vectors: "csr_matrix", pairs: WordPairs, workers: int = 1) -> PairGradients:
    """Compute ∂S_ii/∂R of every image: the special case in which no postings need to be read."""
    gather = _Gather(vectors, pairs)
    blocks, held = [], []
    for image in range(vectors.shape[0]):
        held.append(gather.own(image))
        if len(held) >= 512:
            blocks.append(_stack(held))
            held = []
    if held:
        blocks.append(_stack(held))
    return PairGradients(blocks, pairs.parameters, workers)


class _Gather:
    """Words with their neighbours, and images by word."""

    def __init__(self, vectors: "csr_matrix", pairs: WordPairs) -> None:
        self.vectors = vectors
        self.parameters = pairs.parameters
        self.postings: csc_matrix = vectors.tocsc()
        words, many = pairs.words, len(pairs.first)
        # Of each word u: itself with the parameter R(u, u), and its neighbours v with R(u, v).
        own = np.arange(words)
        of = np.concatenate([own, pairs.first, pairs.second])
        order = np.argsort(of, kind="stable")
        self.neighbours = np.concatenate([own, pairs.second, pairs.first])[order].astype(np.int32)
        beyond = words + np.arange(many)
        self.entries = np.concatenate([own, beyond, beyond])[order].astype(np.int32)
        self.offsets = np.concatenate([[0], np.cumsum(np.bincount(of, minlength=words))]).astype(np.int64)
        # Skip neighbours without images.
        self.lengths = np.diff(self.postings.indptr).astype(np.int64)

    def expand(self, image: int) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32]]:
        """Neighbours v of an image's words u, the parameter of each, and w_i(u)."""
        row = slice(self.vectors.indptr[image], self.vectors.indptr[image + 1])
        words, weights = self.vectors.indices[row], self.vectors.data[row]
        at, many = _ranges(self.offsets[words], self.offsets[words + 1])
        return self.neighbours[at], self.entries[at], np.repeat(weights, many)

    def rows(self, image: int, others: NDArray[np.int64]) -> "csr_matrix":
        """∂S/∂R of an image and each of some ascending others, as rows."""
        from scipy.sparse import csr_matrix

        words, entries, weights = self.expand(image)
        slot = np.full(self.vectors.shape[0], -1, np.int32)
        slot[others] = np.arange(len(others), dtype=np.int32)
        ends = np.cumsum(self.lengths[words])
        rows_found: list[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32]]] = []
        first = 0
        while first < len(words):
            done = int(ends[first - 1]) if first else 0
            last = max(first + 1, int(np.searchsorted(ends, done + _GATHERED, side="right")))
            part = slice(first, last)
            at, many = _ranges(self.postings.indptr[words[part]], self.postings.indptr[words[part] + 1])
            rows = slot[self.postings.indices[at]]
            keep = np.flatnonzero(rows >= 0)
            values = np.repeat(weights[part], many)[keep] * self.postings.data[at[keep]]
            rows_found.append((rows[keep], np.repeat(entries[part], many)[keep], values))
            first = last
        rows, columns, values = (
            (np.concatenate(parts) for parts in zip(*rows_found, strict=True)) if rows_found else _NOTHING
        )
        order = np.argsort(rows, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(others)))])
        # R(u, v) occurs in a row once for w_i(u) w_j(v) and once for w_i(v) w_j(u): products add them up.
        return csr_matrix((values[order], columns[order], starts), shape=(len(others), self.parameters))

    def own(self, image: int) -> "csr_matrix":
        """∂S_ii/∂R of an image, as a row."""
        from scipy.sparse import csr_matrix

        row = slice(self.vectors.indptr[image], self.vectors.indptr[image + 1])
        words, entries, weights = self.expand(image)
        at = np.searchsorted(self.vectors.indices[row], words)
        at = np.minimum(at, max(row.stop - row.start - 1, 0))
        keep = self.vectors.indices[row][at] == words if row.stop > row.start else np.zeros(0, bool)
        values = weights[keep] * self.vectors.data[row][at[keep]]
        return csr_matrix((values, entries[keep], [0, int(keep.sum())]), shape=(1, self.parameters))


_NOTHING = np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.float32)


def _ranges(starts: NDArray[np.integer], stops: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Concatenate the ranges [start, stop); also return their lengths."""
    many = (stops - starts).astype(np.int64)
    return concatenated_ranges(starts, many), many


def _stack(blocks: "list[csr_matrix]") -> "csr_matrix":
    from scipy.sparse import csr_matrix

    ends = np.cumsum([0, *(block.nnz for block in blocks)])
    starts = np.concatenate([[0], *(block.indptr[1:] + end for block, end in zip(blocks, ends, strict=False))])
    data = np.concatenate([block.data for block in blocks])
    indices = np.concatenate([block.indices for block in blocks])
    return csr_matrix((data, indices, starts), shape=(len(starts) - 1, blocks[0].shape[1]))


def _map(function: Callable[[Any], Any], jobs: Sequence[Any], workers: int) -> list[Any]:
    return list(run([partial(function, job) for job in jobs], workers, threads=True))
