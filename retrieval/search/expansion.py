"""Query expansion: what verified photos add to a query (Chum et al., *Total Recall*, ICCV 2007)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from index.segment import ImageFeatures
from retrieval.features.encoding import decode_geometry
from retrieval.matching.verification import Verification


@dataclass(frozen=True)
class ExpansionOptions:
    """Which verified photos a query is expanded by."""

    photos: int = 8  # at most so many, the best verified
    min_inliers: int = 12  # a photo with fewer adds nothing: a wrong one would lead the search astray


def back_project(image: ImageFeatures, verification: Verification, region: NDArray[np.float64]) -> NDArray[np.int32]:
    """Map the features of a verified photo into the query, and keep the words of those that fall into its region.

    Parameters
    ----------
    image : ImageFeatures
        Words and geometry of the photo.
    verification : Verification
        With a transform from the query to the photo.
    region : ndarray, shape (4,)
        x0, y0, x1, y1 of the query's box, in units of the query's longer side.

    Returns
    -------
    ndarray, shape (M,), int32
        Words; none where nothing is verified.
    """
    if verification.transform is None:
        return np.zeros(0, np.int32)
    centres = decode_geometry(image.columns, np.arange(len(image.words))).centres
    inverse = np.linalg.inv(verification.transform[:, :2])
    there = (centres - verification.transform[:, 2]) @ inverse.T
    inside = ((there >= region[:2]) & (there <= region[2:])).all(axis=1)
    return image.words[inside].astype(np.int32)


def average_words(
    words: NDArray[np.integer], added: Sequence[NDArray[np.integer]]
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Average the word counts of a query and of the photos that were back-projected into it.

    A photo that shows the query's region in more detail than the query does counts for as much, not for more.

    Parameters
    ----------
    words : ndarray, shape (N,), int
        Words of the query.
    added : list of ndarray, shape (M_i,), int
        Words of each photo.

    Returns
    -------
    words : ndarray, shape (N + ΣM_i,), int32
    weights : ndarray, shape (N + ΣM_i,), float32
        To be given to `InvertedIndex.score`.
    """
    parts = [words, *added]
    weights = [np.full(len(part), min(1.0, len(words) / max(len(part), 1)) / len(parts)) for part in parts]
    return np.concatenate(parts).astype(np.int32), np.concatenate(weights).astype(np.float32)
