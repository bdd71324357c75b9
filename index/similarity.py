"""The sparse similarity matrix: which words have the same meaning (Yan and Yu, IJCNN 2013, section III)."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.archive import Archive, open_archive
from index.arrays import check_format, fingerprint, reading, save_arrays
from index.errors import CairnError
from index.messages import said
from index.postings.entries import Postings
from index.postings.sorted_lists import concatenated_ranges
from index.segments.segment import Segment
from index.vocabulary import Vocabulary

FORMAT = 1
"""Version of the file."""

# Postings compared at a time, as in `index.inverted`.
BLOCK_POSTINGS = 1 << 18
# Words whose neighbours are searched at a time: bounds the size of the results.
BLOCK_WORDS = 1 << 16

_LARGEST_FILE = 1 << 28  # bytes, of the file and of its unpacked contents: 20 million pairs
_META = "meta.json"
_ARRAYS = {"diagonal": "<f4", "first": "<i4", "second": "<i4", "values": "<f4"}


@dataclass(frozen=True, eq=False)
class SimilarityMatrix:
    """A sparse symmetric matrix R ≥ 0 over the words of a vocabulary, relative to tf-idf: with w_i(u) = tf(n_ui)
    idf(u), the similarity of two images is ``S_ij = w_iᵀ R w_j``; the paper's M is diag(idf) R diag(idf). R = I is
    tf-idf; a word that was in no training photo keeps R(u, u) = 1. Raises ValueError for other arrays.
    """

    vocabulary: str  # fingerprint of the vocabulary whose words it relates
    diagonal: NDArray[np.float32]  # (K,) float32: R(u, u), at least 0
    first: NDArray[np.int32]  # (P,) int32: u of each pair, u < v, distinct pairs in ascending order (u, then v)
    second: NDArray[np.int32]  # (P,) int32: v
    values: NDArray[np.float32]  # (P,) float32: R(u, v) = R(v, u), at least 0
    provenance: dict[str, Any] = field(default_factory=dict)  # its training data and method; JSON types only

    def __post_init__(self) -> None:
        for name, kind in _ARRAYS.items():
            array = getattr(self, name)
            if array.ndim != 1 or array.dtype != np.dtype(kind):
                raise ValueError(f"{name} must be a row of {np.dtype(kind)}, not {array.dtype} of {array.shape}")
            # NaN fails the comparison too.
            if array.dtype.kind == "f" and not ((array >= 0) & (array < np.inf)).all():
                raise ValueError(f"{name} must be finite and at least 0")
        if not len(self.first) == len(self.second) == len(self.values):
            raise ValueError("first, second and values must be as many")
        if len(self.first) and (self.first.min() < 0 or self.second.max() >= self.words):
            raise ValueError(f"a pair has a word that is not one of the {self.words}")
        if (self.first >= self.second).any():
            raise ValueError("a pair has its words in the wrong order")
        keys = _keys(self.first, self.second, self.words)
        if (keys[1:] <= keys[:-1]).any():
            raise ValueError("the pairs are not in ascending order")

    @staticmethod
    def identity(vocabulary: str, words: int) -> "SimilarityMatrix":
        """R = I, with which similarity is tf-idf."""
        none = np.zeros(0, np.int32)
        return SimilarityMatrix(vocabulary, np.ones(words, np.float32), none, none, np.zeros(0, np.float32))

    @property
    def words(self) -> int:
        """Size of the vocabulary, K."""
        return len(self.diagonal)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the arrays and the vocabulary; independent of the matrix's origin."""
        return fingerprint({name: getattr(self, name) for name in _ARRAYS}, {"vocabulary": self.vocabulary})

    def describe(self) -> dict[str, Any]:
        """Description for `--json`."""
        return {
            "fingerprint": self.fingerprint,
            "neighbours": self.provenance.get("neighbours"),
            "pairs": len(self.values),
        }

    def apply(
        self, words: NDArray[np.integer], weights: NDArray[np.floating]
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Multiply a sparse vector w of distinct ascending words (m,) by R: `words` and all that R relates to them by
        more than 0 (n,), ascending, and R w of each. Its sums run over `words` in ascending order.
        """
        offsets, related, values = self._rows
        words = np.asarray(words, dtype=np.int64)
        lengths = offsets[words + 1] - offsets[words]
        entries = concatenated_ranges(offsets[words], lengths)
        products = values[entries] * np.repeat(np.asarray(weights, dtype=np.float64), lengths)
        distinct, which = np.unique(related[entries], return_inverse=True)
        sums: NDArray[Any] = np.bincount(which, weights=products, minlength=len(distinct))  # float64, as the weights
        return distinct, sums

    @cached_property
    def _rows(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
        """R by rows: row u has the entries offsets[u] to offsets[u + 1], the diagonal's first, without zeros."""
        every, some = np.arange(self.words, dtype=np.int32), self.values > 0
        first, second, values = self.first[some], self.second[some], self.values[some]
        rows = np.concatenate([every, first, second])
        order = np.argsort(rows, kind="stable")
        offsets = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=self.words))])
        return (
            offsets,
            np.concatenate([every, second, first])[order],
            np.concatenate([self.diagonal, values, values])[order],
        )

    def save(self, path: Path) -> None:
        """Write a similarity file (.npz) atomically."""
        path = Path(path)
        check_similarity_path(path)
        meta = {"format": FORMAT, "vocabulary": self.vocabulary, "provenance": self.provenance}
        arrays = {name: np.ascontiguousarray(getattr(self, name), dtype=kind) for name, kind in _ARRAYS.items()}
        save_arrays(path, arrays, meta, deflated=True)

    @staticmethod
    def load(path: Path) -> "SimilarityMatrix":
        """Read a similarity file."""
        path = Path(path)
        with reading(path, said("similarity file"), "cairn learn similarity"):
            with open_archive(path, _LARGEST_FILE) as archive:
                meta = archive.table(_META)
                check_format(path, meta.get("format"), FORMAT)
                arrays = {name: _read_row(archive, name, kind) for name, kind in _ARRAYS.items()}
            vocabulary, provenance = meta["vocabulary"], meta["provenance"]
            if not isinstance(vocabulary, str) or not isinstance(provenance, dict):
                raise ValueError("its description is not that of a similarity matrix")
            return SimilarityMatrix(vocabulary, **arrays, provenance=provenance)


def check_similarity_path(path: Path) -> None:
    """Raise CairnError if no similarity file can be written to a path; called before long work."""
    if path.suffix != ".npz":
        raise CairnError(f"{path} must end with .npz, by which a similarity file is known: choose {path}.npz.")
    if not path.parent.is_dir():
        raise CairnError(f"{path.parent} is not a folder: make it first, or write the similarity elsewhere.")
    if path.is_dir():
        raise CairnError(f"{path} is a folder: choose another name for the similarity file.")


def nearest_pairs(vocabulary: Vocabulary, k: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Find the possible off-diagonal entries of a similarity matrix, Bˢ of section III.B: each word is related to its k
    nearest words, by the vocabulary's own search, and they to it. Returns distinct pairs first < second (P,),
    ascending.
    """
    if k < 0:
        raise ValueError(f"k must be at least 0, not {k}")
    words, k = vocabulary.words, min(k, vocabulary.words - 1)
    pairs = [np.zeros(0, np.int64)]
    for start in range(0, words if k else 0, BLOCK_WORDS):
        centres = vocabulary.centres[start : start + BLOCK_WORDS]
        nearest = vocabulary.search.search(centres, k + 1)[0].astype(np.int64)
        word = np.arange(start, start + len(centres))[:, None]
        # The word itself may not come first if centres coincide, and may be missing if the search is approximate.
        others = nearest != word
        others &= np.cumsum(others, axis=1) <= k
        keys = _keys(np.minimum(word, nearest), np.maximum(word, nearest), words)
        pairs.append(np.unique(keys[others]))
    first, second = np.divmod(np.unique(np.concatenate(pairs)), words)
    return first.astype(np.int32), second.astype(np.int32)


def shared_postings(
    segment: Segment, words: int, first: NDArray[np.integer], second: NDArray[np.integer]
) -> Iterator[
    tuple[NDArray[np.int64], NDArray[np.unsignedinteger], NDArray[np.unsignedinteger], NDArray[np.unsignedinteger]]
]:
    """Intersect the posting lists of pairs of words, block by block: places of the pairs, ascending over all blocks,
    positions of images with both words, and the two counts, in no fixed order.
    """
    if len(first) == 0:
        return
    frequency = segment.document_frequency(words)
    pairs = np.flatnonzero((frequency[first] > 0) & (frequency[second] > 0))
    one, other = first[pairs], second[pairs]
    # The postings of the rarer word are looked up in those of the more frequent one.
    swapped = frequency[one] > frequency[other]
    rare, frequent = np.where(swapped, other, one), np.where(swapped, one, other)
    ends = np.cumsum(frequency[rare] + frequency[frequent])
    start = 0
    while start < len(pairs):
        # Whole lists that fill a block: those of at least one pair, no longer than the number of images.
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + BLOCK_POSTINGS, side="right")))
        words_read = np.union1d(rare[start:stop], frequent[start:stop])
        lists = segment.postings(words_read)
        if len(lists.words) != len(words_read):  # an image has a word whose list is empty
            raise CairnError("{folder} is damaged: run {cairn check}, then {cairn repair}.", folder=segment.folder)
        rows, keys = _listed(segment, lists, rare[start:stop])
        their_rows, their_keys = _listed(segment, lists, frequent[start:stop])
        at = np.minimum(np.searchsorted(their_keys, keys), len(their_keys) - 1)
        both = their_keys[at] == keys
        rows, their_rows, which = rows[both], their_rows[at[both]], keys[both] // segment.images
        yield pairs[start + which], lists.images[rows], lists.counts[rows], lists.counts[their_rows]
        start = stop


def _listed(
    segment: Segment, lists: Postings, words: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Concatenated postings of some words, and ascending keys of list and image."""
    at = np.searchsorted(lists.words, words)
    lengths = lists.lengths[at]
    rows = concatenated_ranges((np.cumsum(lists.lengths) - lists.lengths)[at], lengths)
    keys = np.repeat(np.arange(len(words)) * segment.images, lengths)
    keys += lists.images[rows]
    return rows, keys


def _keys(first: NDArray[np.integer], second: NDArray[np.integer], words: int) -> NDArray[np.int64]:
    """One number a pair, in the order of the pairs."""
    return first.astype(np.int64) * words + second


def _read_row(archive: Archive, name: str, kind: str) -> NDArray[Any]:
    """Read a one-dimensional array of a known type; raises ValueError for another shape or type."""
    array = archive.array(name)
    if array.dtype != np.dtype(kind) or array.ndim != 1:
        raise ValueError(f"{name} is not a row of {np.dtype(kind)}")
    return array.astype(array.dtype.newbyteorder("="), copy=False)
