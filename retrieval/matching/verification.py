"""Spatial verification: does one map of the plane explain the matches between two photos?

Every tentative match of two ellipses gives a hypothesis of its own (Philbin et al., CVPR 2007); of keypoints that are
places alone, two matches do (Fischler & Bolles, CACM 1981). All are tried, the best are refined to a full affine map by
local optimisation (Chum, Matas & Kittler, DAGM 2003). Each feature takes part in at most one inlier match.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from retrieval.features.encoding import CENTRE_ERROR, FRAME_ERROR
from retrieval.matching.evidence import (
    ChanceRates,
    EvidenceOptions,
    chance_rates,
    close_places,
    count_places,
    digits,
    even_rate,
    false_alarms,
    is_strip,
    sampled,
    weigh,
)
from retrieval.matching.local_agreement import LocalOptions, Pieces, largest_map
from retrieval.matching.maps import Maps, points_and_scales, single_match_maps, two_match_maps
from retrieval.matching.shortlist import ShortlistOptions, ShortlistRules
from retrieval.matching.word_matches import QueryWords
from retrieval.regions.geometry import Frames

TWO_MATCHES = 2
"""Freedom of a hypothesis that two matches make: scale, rotation and shift, of places alone."""


@dataclass(frozen=True)
class VerificationOptions:
    """When two photos count as showing the same thing."""

    depth: int = 200  # how many of the best ranked photos are verified
    batch: int = 40  # verified at first, of those that signatures rank; then at least a quarter of that ...
    patience: int = 35  # ... until none of the last `patience` passes
    # Of a single-match hypothesis: 3 (scale and shift), 4 (and rotation) or 5 (affine, "down" kept); or `TWO_MATCHES`.
    freedom: int = 5
    # Largest symmetric transfer error, as a part of the photos' longer sides. Fitted with it, and again to be where
    # it changes: `false_alarms` and `unsure_alarms`, all of `EvidenceOptions`, the numbers of `ShortlistOptions.least`,
    # `LocalOptions.sure` and `unsure`, and the weights of `retrieval.search.probability` (`scripts/panel --calibrate`).
    threshold: float = 0.025
    scale_ratio: float = 2.0  # largest ratio between a match's scale change and the hypothesis's
    max_zoom: float = 10.0  # largest enlargement or reduction of a hypothesis
    max_stretch: float = 4.0  # largest ratio of a map's scales: a plane seen at 75 degrees
    min_inliers: int = 4  # fewest matches that verify
    false_alarms: float = 1e-3  # largest expected number of hypotheses this good among as many chance matches
    unsure_alarms: float = 1e-6  # the same for what is not sure, and comes before what has only words in common
    evidence: EvidenceOptions = field(default_factory=EvidenceOptions)  # how what passes that is weighed
    shortlist: ShortlistOptions = field(default_factory=ShortlistOptions)  # how many photos are looked at first
    local: LocalOptions = field(default_factory=LocalOptions)  # how what one map leaves undecided is looked at
    drawn: int = 600  # hypotheses of two matches a pair of photos, at most
    refined: int = 2  # hypotheses that are refined
    retried: int = 4  # of those that a shortlist leads to, at most: until what is found is clear
    clear_alarms: float = 1e-15  # expected number of as good hypotheses by chance of what is clear
    rounds: int = 4  # refinement rounds
    max_matches: int = 1024  # tentative matches a pair of photos that maps are judged by, the least ambiguous
    max_counted: int = 20_000  # tentative matches that inliers are counted among, once a map is found

    def __post_init__(self) -> None:
        if self.freedom not in (TWO_MATCHES, 3, 4, 5):
            raise CairnError(f"A hypothesis has 3, 4 or 5 degrees of freedom, not {self.freedom}.")

    @property
    def limits(self) -> tuple[float, float]:
        """Square of the threshold; largest difference between logarithms of scale."""
        return self.threshold**2, float(np.log(self.scale_ratio))

    @property
    def looks(self) -> ShortlistRules:
        """What `shortlist` needs to know."""
        return ShortlistRules(self.freedom, self.limits, self.max_zoom, self.shortlist)


@dataclass(frozen=True)
class Verification:
    """What verification found between a query and a photo."""

    matches: NDArray[np.integer]  # (K, 2) int32, inlier matches: feature of the query, feature of the photo
    transform: (
        NDArray[np.float64] | None
    )  # (2, 3) float64, query to photo, in units of the two longer sides; None: not verified
    log_odds: float = -np.inf  # that the two show the same, by the evidence alone; -inf if none is weighed
    unsure: int = 0  # matches that agree on a map, but may do so by chance, or as a line of text; 0 where verified

    @property
    def inliers(self) -> int:
        """Number of inlier matches; 0 where the photo is not verified."""
        return len(self.matches)

    def in_sides(self, query: float, image: float) -> "Verification":
        """What was found with frames that were enlarged (`Frames.enlarged`), in units of the longer sides again."""
        if self.transform is None or query == image == 1:
            return self
        return replace(self, transform=self.transform * np.array([query, query, 1]) / image)

    @property
    def strength(self) -> tuple[int, int]:
        """Sort key of photos: inlier matches or, without any, matches that may agree by chance."""
        return self.inliers, self.unsure


# Of the longer side, and of a frame's largest entry, where patches are turned, too.
_SAME_PLACE = CENTRE_ERROR
_SAME_SHAPE = 1.5 * FRAME_ERROR
_BEYOND_DOUBT = 3.0  # more than enough for the narrow tolerances to make no difference
_CERTAIN = 30.0  # logarithm of the odds of a photo that is the query itself
_NEARLY = 4.0  # how much larger than the threshold's square an error may be for a match's own map to be tried
_NEIGHBOURS = 48  # of those a map, at most
_WIDE = 16.0, 2.0  # how much wider than the limits of errors, squared, and of scales those are that fits look within

NOTHING = Verification(np.zeros((0, 2), np.int32), None)


def verify(
    query: Frames,
    image: Frames,
    pairs: NDArray[np.integer],
    options: VerificationOptions,
    *,
    rarity: float = 0.0,
    maps: Maps | None = None,
    extent: float = np.inf,
) -> Verification:
    """Find the map that the most tentative matches (K, 2) agree on; `NOTHING` where the agreement may well be by
    chance, or is that of a line of text.

    `query`, `image`: the matched features of the two photos: row k of both belongs to tentative match k. `pairs`:
    tentative matches: feature of the query, feature of the photo. `rarity`: of the photos' words, see
    `retrieval.matching.evidence.weigh`. `maps`: hypotheses, such as `shortlist` gives: they are tried, and those of the
    matches near them. Where they are left out, all tentative matches give one each. `extent`: height of what is
    searched for, in units of the longer side: see `is_strip`.
    """
    from retrieval.matching.refinement_kernels import count_agreeing, refine, settle
    from retrieval.matching.vote_kernels import most_voted

    if len(pairs) < options.min_inliers:
        return NOTHING
    source, target = query.centres, image.centres
    points, scales = points_and_scales(query, image)
    matches = np.ascontiguousarray(pairs, np.int32)
    tried, most = _tried(query, image, points, scales, maps, options)
    if maps is None and len(tried) < options.min_inliers:
        return NOTHING

    chosen_maps, features = most_voted(tried, points, scales, matches, *options.limits, most)
    expected = len(pairs) * even_rate(options.limits[0])
    best, best_map, best_error = np.zeros(0, np.int64), None, np.inf
    for start in Maps(tried[chosen_maps]).transforms.astype(np.float64):
        distinct = count_agreeing(start, points, matches, scales, *options.limits)
        # Refinement seldom adds half of the inliers: what is no better than chance even then is not refined. The votes
        # do not tell: they count a match of features with many others for a part only.
        if _alarms(1.5 * distinct, features, expected, options) > options.false_alarms:
            if maps is not None and not len(best):
                break  # and so are those of fewer votes
            continue
        chosen, transform, error = refine(start, points, matches, scales, *options.limits, options.rounds)
        if (len(chosen), -error) > (len(best), -best_error):
            best, best_map, best_error = chosen, transform, error
        if maps is not None and _alarms(len(best), features, expected, options) < options.clear_alarms:
            break
    if best_map is None or len(best) < options.min_inliers or _is_stretched(best_map, options):
        return NOTHING
    seen = _seen(source[best], target[best], options)
    if _alarms(seen, features, expected, options) > options.false_alarms:
        return NOTHING
    rates = crowding(query, image, matches, best_map, options)
    alarms = _alarms(seen, features, len(pairs) * rates.wide, options)
    if alarms > options.false_alarms:
        return NOTHING
    log_odds = weigh(alarms, 1.0, rarity, options.evidence)
    if log_odds < options.evidence.sure + _BEYOND_DOUBT:
        close = query.at(best), image.at(best)
        narrow = narrow_alarms(*close, best_map, features, len(pairs) * rates.narrow, options)
        log_odds = weigh(alarms, narrow, rarity, options.evidence)
    if is_strip(source[best], target[best], options.evidence, extent):
        log_odds = min(log_odds, options.evidence.strip)
    if log_odds < options.evidence.sure:
        return NOTHING if alarms > options.unsure_alarms else replace(NOTHING, unsure=len(best), log_odds=log_odds)
    found = Verification(pairs[best], best_map, log_odds)
    # What is found is decided. How many matches agree is not: the map is one of several that are near each other.
    settled, settled_map, _ = settle(best_map, points, matches, scales, *options.limits)
    return _with_more(found, query, image, pairs, settled, settled_map, options, extent)


def _tried(
    query: Frames,
    image: Frames,
    points: NDArray[np.float32],
    scales: NDArray[np.float32],
    maps: Maps | None,
    options: VerificationOptions,
) -> tuple[NDArray[np.float32], int]:
    """Rows of maps to try, and how many of them to refine at most."""
    if maps is None:
        return _hypotheses(query, image, scales, options).rows, options.refined
    from retrieval.matching.map_kernels import own_maps
    from retrieval.matching.refinement_kernels import near_matches

    # Of the matches near one of the maps some may stand for better ones.
    limit, scale_limit = options.limits
    placed = maps.transforms.astype(np.float64)
    rows = near_matches(placed, points, scales, _NEARLY * limit, scale_limit, _NEIGHBOURS)
    own = own_maps(*query.plain, *image.plain, rows, options.freedom)
    return np.concatenate([maps.rows, own]), options.retried


def verify_pieces(
    query: Frames,
    image: Frames,
    pairs: NDArray[np.integer],
    pieces: Pieces,
    options: VerificationOptions,
    *,
    rarity: float = 0.0,
    extent: float = np.inf,
) -> Verification:
    """Weigh matches that agree with their neighbours, piece by piece, if no one map explains them; the map is that of
    the largest piece. `NOTHING` as in `verify`.
    """
    local, bounds = options.local, options.evidence
    log_odds = (
        local.digits * digits(pieces.false_alarms, bounds.most) + local.rarity * bounds.bounded(rarity) + local.constant
    )
    rows = _one_to_one(pairs, pieces.rows)
    if log_odds < local.unsure or len(rows) < options.min_inliers:
        return NOTHING
    if is_strip(query.centres[rows], image.centres[rows], bounds, extent):
        return NOTHING
    transform = largest_map(query, image, pieces) if log_odds >= local.sure else None
    if transform is None or _is_stretched(transform, options):
        return replace(NOTHING, unsure=len(rows), log_odds=min(log_odds, local.sure))
    return Verification(pairs[rows], transform, log_odds)


def _one_to_one(pairs: NDArray[np.integer], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Keep of some rows of pairs (K, 2) those whose features are in none before."""
    for side in (0, 1):
        rows = rows[np.sort(np.unique(pairs[rows, side], return_index=True)[1])]
    return rows


def crowding(
    query: Frames,
    image: Frames,
    pairs: NDArray[np.int32],
    transform: NDArray[np.float64],
    options: VerificationOptions,
) -> ChanceRates:
    """How often matched features agree with a map by chance, as they lie in these very photos: see `verify`."""
    from retrieval.matching.evidence_kernels import first_rows

    first, second = (sampled(first_rows(pairs, side), side) for side in (0, 1))
    return chance_rates(query.at(first), image.at(second), transform, options.limits, options.evidence)


def narrow_alarms(
    query: Frames,
    image: Frames,
    transform: NDArray[np.float64],
    features: int,
    expected: float,
    options: VerificationOptions,
) -> float:
    """Expected number of maps with which equally many chance matches agree as closely as those with a map (2, 3) do.

    `query`, `image`: of the matches that agree. `features`: see `most_voted`. `expected`: matches that agree by chance.
    """
    seen = close_places(query, image, transform, options.threshold, options.evidence)
    return _alarms(seen, features, expected, options)


def _hypotheses(query: Frames, image: Frames, scales: NDArray[np.float32], options: VerificationOptions) -> Maps:
    """Maps to try, those that enlarge or reduce too much left out."""
    if options.freedom == TWO_MATCHES:
        return two_match_maps(query.centres, image.centres, options.drawn, options.max_zoom)
    tried = single_match_maps(query, image, options.freedom)
    return tried.at(np.flatnonzero(np.abs(scales) <= np.log(options.max_zoom)))


def _alarms(inliers: float, features: int, expected: float, options: VerificationOptions) -> float:
    """False alarms of a hypothesis: one of two matches is the best of more, and has one that agrees of itself more."""
    if options.freedom == TWO_MATCHES:
        return false_alarms(inliers - 1, features * (features - 1) // 2, expected)
    return false_alarms(inliers, features, expected)


def _seen(source: NDArray[np.float32], target: NDArray[np.float32], options: VerificationOptions) -> int:
    """Number of places (N, 2) that are apart from each other in both photos."""
    return min(count_places(points, options.threshold) for points in (source, target))


def recount(
    found: Verification,
    query: Frames,
    image: Frames,
    pairs: NDArray[np.integer],
    options: VerificationOptions,
    *,
    extent: float = np.inf,
) -> Verification:
    """Count the inliers of a map among more tentative matches than it was found with; what was found where they add
    nothing.
    """
    from retrieval.matching.refinement_kernels import agreeing, refine, settle

    if found.transform is None:
        return found
    points, scales = points_and_scales(query, image)
    # Refinement moves a map a little, so that what is far off is out of the question.
    wide = options.limits[0] * _WIDE[0], options.limits[1] * _WIDE[1]
    near = agreeing(found.transform, points, scales, *wide)[0]
    some = np.ascontiguousarray(points[:, near]), pairs[near].astype(np.int32), scales[near]
    few, transform, _ = max(
        refine(found.transform, *some, *options.limits, options.rounds),
        settle(found.transform, *some, *options.limits),
        key=lambda fitted: (len(fitted[0]), -fitted[2]),
    )
    return _with_more(found, query, image, pairs, near[few], transform, options, extent)


def _with_more(
    found: Verification,
    query: Frames,
    image: Frames,
    pairs: NDArray[np.integer],
    chosen: NDArray[np.int64],
    transform: NDArray[np.float64],
    options: VerificationOptions,
    extent: float,
) -> Verification:
    """What was found, with another map (2, 3) and the matches that agree with it, rows (N,), if these are no fewer."""
    if len(chosen) < found.inliers or _is_stretched(transform, options):
        return found
    if is_strip(query.centres[chosen], image.centres[chosen], options.evidence, extent):
        return found
    return replace(found, matches=pairs[chosen], transform=transform)


def _is_stretched(transform: NDArray[np.float64], options: VerificationOptions) -> bool:
    """Whether a map (2, 3) shows a plane at a slant that hardly a feature survives."""
    (a, b), (c, d) = transform[:, :2].tolist()
    # The sum of the squares of its two scales, and their product, tell their ratio.
    return bool(a * a + b * b + c * c + d * d > (options.max_stretch + 1 / options.max_stretch) * abs(a * d - b * c))


def identify(words: QueryWords, query: Frames, image_words: NDArray[np.integer], image: Frames) -> Verification:
    """Recognise a query that has all the features of a photo, each in its place, and no others: all match by the
    identity, or `NOTHING`. Geometry cannot tell where there are only a few features, or all are of a few words.
    `image_words`: sorted.
    """
    from retrieval.matching.map_kernels import are_equal

    if not len(image_words) or not words.equal(image_words):
        return NOTHING
    if not are_equal(*query.plain, words.order, *image.plain, _SAME_PLACE, _SAME_SHAPE):
        return NOTHING
    matches = np.stack([words.order, np.arange(len(image_words), dtype=np.int32)], axis=1)
    return Verification(matches, np.eye(2, 3), _CERTAIN)
