"""Query expansion: what verified photos add to a query (Chum et al., *Total Recall*, ICCV 2007)."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from index.segment import ImageFeatures
from retrieval.encoding import decode_geometry
from retrieval.verification import Frames, QueryWords, Verification


@dataclass(frozen=True)
class ExpansionOptions:
    """Which verified photos a query is expanded by."""

    photos: int = 8  # at most so many, the best verified
    min_inliers: int = 12  # a photo with fewer adds nothing: a wrong one would lead the search astray


@dataclass(frozen=True)
class ExpandedQuery:
    """The features of a query and of the photos verified with it, all in the query's frame."""

    words: np.ndarray  # (N,) int32
    weights: np.ndarray  # (N,) float32, one over the number of photos averaged
    frames: Frames

    @cached_property
    def lookup(self) -> QueryWords:
        """The words, ready to be looked up."""
        return QueryWords(self.words)


def back_project(image: ImageFeatures, verification: Verification, region: np.ndarray) -> tuple[np.ndarray, Frames]:
    """Map the features of a verified photo into the query, and keep those that fall into its region.

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
    words : ndarray, shape (M,), int32
    frames : Frames
        In units of the query's longer side.
    """
    assert verification.transform is not None
    frames = decode_geometry(image.columns, np.arange(len(image.words)))
    inverse = np.linalg.inv(verification.transform[:, :2])
    centres = (frames.centres - verification.transform[:, 2]) @ inverse.T
    inside = ((centres >= region[:2]) & (centres <= region[2:])).all(axis=1)
    linear = (inverse @ frames.linear[inside]).astype(np.float32)
    return image.words[inside].astype(np.int32), Frames(centres[inside].astype(np.float32), linear)


def average_query(words: np.ndarray, frames: Frames, added: list[tuple[np.ndarray, Frames]]) -> ExpandedQuery:
    """Average the word counts of a query and of the back-projected photos."""
    parts = [(words, frames), *added]
    all_words = np.concatenate([part for part, _ in parts]).astype(np.int32)
    return ExpandedQuery(
        all_words,
        np.full(len(all_words), 1 / len(parts), np.float32),
        Frames(
            np.concatenate([part.centres for _, part in parts]),
            np.concatenate([part.linear for _, part in parts]),
        ),
    )
