"""Images as rows of a sparse matrix: their tf-idf vectors."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from index.inverted import InvertedIndex

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


def unit_vectors(index: InvertedIndex, numbers: NDArray[np.integer]) -> "csr_matrix":
    """Images' tf-idf vectors of unit length, sorted by word, without words of weight 0; a row may be empty."""
    return word_vectors(index, (np.asarray(index.images.features(number).words) for number in numbers.tolist()))


def word_vectors(index: InvertedIndex, images: Iterable[NDArray[np.integer]]) -> "csr_matrix":
    """Return the same for images, or parts of them, by the words (M,) of their features."""
    from scipy.sparse import csr_matrix

    columns, values, ends = [np.zeros(0, np.int32)], [np.zeros(0, np.float32)], [0]
    for features in images:
        words, counts = np.unique(features, return_counts=True)
        weights = index.term_frequency(counts) * index.idf[words]
        useful = weights > 0
        weights = weights[useful] / max(float(np.linalg.norm(weights)), np.finfo(float).tiny)
        columns.append(words[useful].astype(np.int32))
        values.append(weights.astype(np.float32))
        ends.append(ends[-1] + len(weights))
    rows = np.concatenate(values), np.concatenate(columns), np.array(ends)
    return csr_matrix(rows, shape=(len(ends) - 1, index.words))
