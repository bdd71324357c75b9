"""A first look at many photos at once: which of them may show the same as a query, and by what maps?

Most photos that have words in common with a query show something else, and few of the tentative matches tell: of each
photo some maps, each from one match, are judged by the matches of its least ambiguous words alone. Where no map finds a
handful of them there is nothing to verify; for the other photos the best maps are given, to be judged by all matches.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from retrieval.matching.maps import Maps, log_scales, points_of, single_match_maps
from retrieval.regions.geometry import Frames


@dataclass(frozen=True)
class ShortlistOptions:
    """How closely many photos are looked at before they are verified."""

    matches: int = 1024  # tentative matches a photo that maps are judged by, those of the least ambiguous words
    maps: int = 96  # maps a photo that are judged
    fitted: int = 8  # of them, the best, that are fitted to the matches that agree with them
    kept: int = 4  # fitted maps a photo that are given, at most
    # By the number of matches that maps are judged by: fewest that agree with one, and with a fitted one.
    least: tuple[tuple[int, int, int], ...] = ((0, 3, 4), (100, 4, 6), (300, 4, 7), (600, 5, 8))
    max_stretch: float = 6.0  # largest ratio of a map's scales: what one match says of a stretch is not exact

    def fewest(self, matches: int) -> tuple[int, int]:
        """Fewest matches that agree with a map that is judged by so many, and with a fitted one."""
        return next((first, second) for beyond, first, second in reversed(self.least) if matches >= beyond)


@dataclass(frozen=True)
class Look:
    """How maps are made and judged, and how closely photos are looked at."""

    freedom: int  # see `single_match_maps`
    limits: tuple[float, float]  # square of the threshold; largest difference between logarithms of scale
    max_zoom: float  # largest enlargement or reduction of a map
    options: ShortlistOptions


def shortlist(
    query: Frames,
    image: Frames,
    starts: NDArray[np.integer],
    ambiguity: NDArray[np.integer],
    look: Look,
) -> list[Maps | None]:
    """Find the photos that may show the same as the query, and the maps that speak for it.

    Parameters
    ----------
    query, image : Frames
        Row k of both is tentative match k, photo by photo.
    starts : ndarray, shape (B + 1,), int
        Where the matches of each photo begin.
    ambiguity : ndarray, shape (K,), int
        How many matches the word of a match has in its photo. Maps come from the least ambiguous matches of the largest
        regions: a large region tells a map more exactly.
    look : Look
        How closely to look.

    Returns
    -------
    list of B Maps or None
        The best maps of a photo, the best first; None: nothing speaks for it. What is said of a photo does not depend
        on the others.
    """
    from retrieval.matching.vote_kernels import judge_maps

    options = look.options
    scales = log_scales(query.linear, image.linear)
    area = query.linear[:, 0, 0] * query.linear[:, 1, 1] - query.linear[:, 0, 1] * query.linear[:, 1, 0]
    sizes = np.sqrt(np.abs(area) * np.exp(scales))  # between those of the two regions
    order = np.where(np.abs(scales) <= np.log(look.max_zoom), ambiguity / np.maximum(sizes, np.float32(1e-20)), np.inf)
    begins = starts.astype(np.int64)
    bounds = pairwise(begins.tolist())
    parts = [start + _smallest(order[start:stop], options.maps) for start, stop in bounds]
    rows = np.concatenate([np.zeros(0, np.int64), *parts])
    maps = single_match_maps(query.at(rows), image.at(rows), look.freedom)
    usable = np.flatnonzero(np.isfinite(order[rows]) & _is_plausible(maps, options.max_stretch))
    firsts = np.searchsorted(usable, np.cumsum([0, *map(len, parts)]))  # of the maps of each photo
    fewest = np.array([options.fewest(matches) for matches in np.diff(begins).tolist()], np.int64).reshape(-1, 2)
    given, found = judge_maps(
        maps.at(usable).rows,
        query.centres[rows[usable]].astype(np.float32, copy=False),
        firsts,
        points_of(query.centres, image.centres),
        scales,
        begins,
        fewest,
        options.fitted,
        options.kept,
        *look.limits,
    )
    return [Maps.of(some[:number]) if number else None for number, some in zip(given.tolist(), found, strict=True)]


def _smallest(values: NDArray[np.floating], most: int) -> NDArray[np.int64]:
    """Places of the smallest values, ascending: so many at most."""
    if len(values) <= most:
        return np.arange(len(values))
    return np.sort(np.argpartition(values, most)[:most])


def _is_plausible(maps: Maps, max_stretch: float) -> NDArray[np.bool_]:
    """Which maps (H,) stretch what they map little enough."""
    # The sum of the squares of a map's two scales, and their product, tell their ratio.
    squares = np.einsum("hij,hij->h", maps.linear, maps.linear)
    return np.asarray(squares <= (max_stretch + 1 / max_stretch) * np.exp(2 * np.minimum(maps.log_scale, 10)))
