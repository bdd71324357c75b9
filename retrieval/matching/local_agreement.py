"""Do two photos agree piece by piece? What one map of the plane leaves undecided, as of a thing with depth.

Seen from another side, the parts of a solid thing move by different maps, and each has few matches. But the map that a
match stands for says where its neighbours lead as well (Cho, Lee & Lee, ICCV 2009; Cavalli et al., AdaLAM, ECCV 2020).
Matches that foretell each other are linked, and what is linked is a piece of the thing. How many links there are by
chance is measured on these very photos: by the same features, paired with those of other matches. So what crowds, and
what repeats itself, is in the figure.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval.matching.poisson import at_least
from retrieval.regions.geometry import Frames, fit_affine


@dataclass(frozen=True)
class LocalOptions:
    """When pieces of two photos agree, and how that is weighed.

    The weights are those of a logistic regression over pairs of photos that one map leaves undecided.
    """

    matches: int = 250  # that take part, at most: the least ambiguous; 0: nothing is looked at
    ambiguity: int = 9  # pairs of features of a word, at most; of more it is a texture, and left out
    cell: float = 0.01  # side of what is one place, as a part of the longer side
    reach: float = 0.2  # largest distance of neighbours in the query, as a part of the longer side
    near: float = 0.01  # smallest, in both: what is nearer is the same thing seen twice
    error: float = 0.25  # largest error of what a match foretells, as a part of the distance
    least_error: float = 0.008  # and so much in any case, as a part of the longer side
    log_scale: float = 0.5  # largest difference of the logarithms of the scales of two matches' maps
    links: int = 6  # fewest that are weighed
    piece: int = 3  # fewest matches of a piece that counts
    shifts: int = 5  # how often chance is tried
    digits: float = 1.5  # weight of the square root of the digits of the probability of equally many links by chance
    rarity: float = 4.5  # weight of the rarity of the photos' words, see `evidence.weigh`
    constant: float = -6.2
    sure: float = 2.5  # smallest sum, the logarithm of the odds, that verifies
    unsure: float = -1.5  # the same for what is not sure, and comes before what has only words in common

    @property
    def limits(self) -> NDArray[np.float32]:
        """What `link_neighbours` takes."""
        ratio = np.exp(2 * self.log_scale)
        numbers = [self.reach, self.near, self.error, self.least_error, ratio, self.cell]
        return np.array(numbers, np.float32)


@dataclass(frozen=True)
class Pieces:
    """Matches of two photos that agree with their neighbours."""

    rows: NDArray[np.int64]  # (N,) int64: of the photo's matches, those of the largest piece at first
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
    found: list[Pieces | None] = [None] * len(rows)
    for photo in np.flatnonzero(links[:, 0]).tolist():
        some = rows[photo, : int((rows[photo] >= 0).sum())] - begins[photo]
        sizes = np.bincount(pieces[photo, : len(some)], minlength=len(some))[pieces[photo, : len(some)]]
        linked = np.flatnonzero(sizes >= options.piece)
        # Half a link more than was seen: where there was none in a few trials, there may well be one.
        expected = (links[photo, 1] + 0.5) / options.shifts
        order = linked[np.lexsort((linked, pieces[photo, linked], -sizes[linked]))]
        largest = int(sizes.max())
        found[photo] = Pieces(some[order], largest, at_least(float(links[photo, 0]), float(expected)))
    return found


def largest_map(query: Frames, image: Frames, pieces: Pieces) -> NDArray[np.float64] | None:
    """Fit the map (2, 3) of the largest piece; None if its matches fix none. Row k of both frames is a match."""
    some = pieces.rows[: pieces.largest]
    return fit_affine(query.centres[some].astype(np.float64), image.centres[some].astype(np.float64))
