"""Local agreement: verify piece by piece photos that one map of the plane cannot decide, such as of solid objects.

Seen from another side, the parts of a solid object move by different maps, each with few matches. But the own map of a
match also predicts its neighbours (Cho, Lee & Lee, ICCV 2009; Cavalli et al., AdaLAM, ECCV 2020). Matches that predict
each other are linked, and connected matches form a piece of the object. The number of links by chance is measured on
the same photos, by pairing the same features with those of other matches, so it accounts for crowding and repetition.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval.matching.poisson import at_least
from retrieval.regions.geometry import Frames, fit_affine


@dataclass(frozen=True)
class LocalOptions:
    """When pieces of two photos agree, weighed by a logistic regression over pairs that one map leaves undecided."""

    matches: int = 250  # used at most: the least ambiguous; 0: no local verification
    ambiguity: int = 9  # pairs of features of a word, at most; words with more are texture, and ignored
    cell: float = 0.01  # side of a cell that counts as one place, as a part of the longer side
    reach: float = 0.2  # largest distance of neighbours in the query, as a part of the longer side
    near: float = 0.01  # smallest distance, in both photos: nearer matches are the same one detected twice
    error: float = 0.25  # largest error of a prediction, as a part of the distance
    least_error: float = 0.008  # allowed in any case, as a part of the longer side
    log_scale: float = 0.5  # largest difference of the logarithms of the scales of two matches' maps
    links: int = 6  # fewest links to weigh
    piece: int = 3  # fewest matches of a piece that counts
    shifts: int = 5  # trials with chance matches
    digits: float = 1.5  # weight of the root of the digits of the probability of as many links by chance
    rarity: float = 4.5  # weight of the rarity of the photos' words, see `evidence.weigh`
    constant: float = -6.2
    sure: float = 2.5  # smallest log odds that verify a photo
    unsure: float = -1.5  # the same for unsure photos, which rank before those that only share words

    @property
    def limits(self) -> NDArray[np.float32]:
        """The limits that `link_neighbours` takes."""
        ratio = np.exp(2 * self.log_scale)
        numbers = [self.reach, self.near, self.error, self.least_error, ratio, self.cell]
        return np.array(numbers, np.float32)


@dataclass(frozen=True)
class Pieces:
    """Matches of two photos that agree with their neighbours."""

    rows: NDArray[np.int64]  # (N,) int64: of the photo's matches, those of the largest piece first
    largest: int  # matches of the largest piece
    false_alarms: float  # probability of at least these many links by chance


def find_pieces(
    query: Frames,
    image: Frames,
    starts: NDArray[np.integer],
    ambiguity: NDArray[np.integer],
    wanted: NDArray[np.bool_],
    options: LocalOptions,
) -> list[Pieces | None]:
    """Find the matches of each of some photos, those `wanted`, that agree with their neighbours; None if too few do.
    The result of a photo does not depend on the others.
    """
    from retrieval.matching.local_kernels import link_neighbours

    begins = starts.astype(np.int64, copy=False)
    rows, pieces, links = link_neighbours(
        *query.plain,
        *image.plain,
        ambiguity.astype(np.int64, copy=False),
        begins,
        wanted,
        options.limits,
        options.matches,
        options.ambiguity,
        options.links,
        options.shifts,
    )
    results: list[Pieces | None] = [None] * len(rows)
    for photo in np.flatnonzero(links[:, 0]).tolist():
        some = rows[photo, : int((rows[photo] >= 0).sum())] - begins[photo]
        sizes = np.bincount(pieces[photo, : len(some)], minlength=len(some))[pieces[photo, : len(some)]]
        linked = np.flatnonzero(sizes >= options.piece)
        # Half a link more than observed: no link in a few trials does not rule one out.
        expected = (links[photo, 1] + 0.5) / options.shifts
        order = linked[np.lexsort((linked, pieces[photo, linked], -sizes[linked]))]
        largest = int(sizes.max())
        results[photo] = Pieces(some[order], largest, at_least(float(links[photo, 0]), float(expected)))
    return results


def largest_map(query: Frames, image: Frames, pieces: Pieces) -> NDArray[np.float64] | None:
    """Fit the map (2, 3) of the largest piece; None if its matches fix none. Row k of both frames is a match."""
    some = pieces.rows[: pieces.largest]
    return fit_affine(query.centres[some].astype(np.float64), image.centres[some].astype(np.float64))
