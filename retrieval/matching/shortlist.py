"""Quick preselection of photos that may show the same as a query, many at once, with the best maps of each.

Most photos that share words with a query show something else, and a few tentative matches suffice to decide. For each
photo some maps, each from one match, are scored by the matches of its least ambiguous words. A photo without a map that
a handful of these agree with is dropped; for the others the best maps are returned, for full verification.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval.matching.maps import Maps, points_and_scales
from retrieval.regions.geometry import Frames


@dataclass(frozen=True)
class ShortlistOptions:
    """Options of the preselection before verification."""

    maps: int = 96  # maps scored for each photo
    fitted: int = 8  # best of these, which are fitted to the matches that agree with them
    kept: int = 4  # fitted maps returned for each photo, at most
    # By the number of matches that maps are scored by: fewest that agree with one, and with a fitted one.
    least: tuple[tuple[int, int, int], ...] = ((0, 3, 4), (100, 4, 6), (300, 4, 7), (600, 5, 8))
    max_stretch: float = 6.0  # largest ratio of a map's scales: the stretch by one match is inexact

    def fewest(self, matches: NDArray[np.integer]) -> NDArray[np.int64]:
        """Fewest of `matches` (B,) that must agree with a map, and with a fitted one: (B, 2)."""
        least = np.array(self.least, np.int64)
        return least[np.searchsorted(least[:, 0], matches, side="right") - 1, 1:]


@dataclass(frozen=True)
class ShortlistRules:
    """How maps are made and scored, with the options of the preselection."""

    freedom: int  # see `single_match_maps`
    limits: tuple[float, float]  # square of the threshold; largest difference between logarithms of scale
    max_zoom: float  # largest enlargement or reduction of a map
    options: ShortlistOptions


def shortlist(
    query: Frames,
    image: Frames,
    starts: NDArray[np.integer],
    ambiguity: NDArray[np.integer],
    look: ShortlistRules,
) -> list[Maps | None]:
    """Return the best maps of each photo, the best first; None if no map has enough matches. Maps come from the least
    ambiguous matches of the largest regions, which define them most exactly. `starts` (B + 1,): first match of each
    photo; `ambiguity` (K,): matches of a word in its photo. The maps of a photo do not depend on the others.
    """
    from retrieval.matching.map_kernels import promising_maps
    from retrieval.matching.vote_kernels import judge_maps

    options = look.options
    begins = starts.astype(np.int64, copy=False)
    points, scales = points_and_scales(query, image)
    maps, middles, firsts = promising_maps(
        *query.plain,
        *image.plain,
        scales,
        begins,
        ambiguity.astype(np.int64, copy=False),
        options.maps,
        look.freedom,
        float(np.log(look.max_zoom)),
        options.max_stretch,
    )
    fewest = options.fewest(np.diff(begins))
    counts, best = judge_maps(
        maps,
        middles,
        firsts,
        points,
        scales,
        begins,
        fewest,
        options.fitted,
        options.kept,
        *look.limits,
    )
    return [Maps(some[:number]) if number else None for number, some in zip(counts.tolist(), best, strict=True)]
