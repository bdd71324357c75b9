"""Sums over the postings of many words, for several vectors at a time."""

import numpy as np
from numpy.typing import NDArray

from index.postings.word_lists import Postings


def add_postings(
    total: NDArray[np.float64], postings: Postings, values: NDArray[np.float64], weights: NDArray[np.float64]
) -> None:
    """Add postings to sums of several vectors over the words of each image, in the order of the words.

    Parameters
    ----------
    total : ndarray, shape (images, V), float64
        Added to; contiguous.
    postings : Postings
        Of m words.
    values : ndarray, shape (P,), float64
        Of each posting.
    weights : ndarray, shape (m, V), float64
        Of each word in each vector.
    """
    from scipy.sparse._sparsetools import csc_matvec, csc_matvecs  # takes a second that many commands can spare

    # SciPy multiplies column by column, and so adds up in the order of the words. Its public product would begin each
    # block at 0, and what is added up in another order differs in its last bit.
    ends = np.concatenate([[0], np.cumsum(postings.lengths)], dtype=np.int32)
    positions = postings.images.astype(np.int32, copy=False)
    if total.shape[1] == 1:
        csc_matvec(len(total), len(weights), ends, positions, values, weights.ravel(), total.ravel())
    else:
        shape = len(total), len(weights), total.shape[1]
        csc_matvecs(*shape, ends, positions, values, weights.ravel(), total.ravel())
