"""Spatial verification: does one map of the plane explain the matches between two photos?

Every tentative match of two ellipses defines a hypothesis (Philbin et al., CVPR 2007); if keypoints have only places,
two matches do (Fischler & Bolles, CACM 1981). All are tried, and the best are refined to a full affine map by local
optimisation (Chum, Matas & Kittler, DAGM 2003). Each feature is in at most one inlier match.
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
    hollowness,
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
    """When two photos count as showing the same."""

    depth: int = 200  # number of best ranked photos to verify
    batch: int = 40  # photos ranked by signatures that are verified first; then at least a quarter of that ...
    patience: int = 35  # ... until none of the last `patience` passes
    # Of a single-match hypothesis: 3 (scale and shift), 4 (and rotation) or 5 (affine, "down" kept); or `TWO_MATCHES`.
    freedom: int = 5
    # Largest symmetric transfer error, as a part of the photos' longer sides. Fit these again if it changes:
    # `false_alarms` and `unsure_alarms`, all of `EvidenceOptions`, the numbers of `ShortlistOptions.least`,
    # `LocalOptions.sure` and `unsure`, and the weights of `retrieval.search.probability` (`scripts/panel --calibrate`).
    threshold: float = 0.025
    scale_ratio: float = 2.0  # largest ratio between a match's scale change and the hypothesis's
    max_zoom: float = 10.0  # largest enlargement or reduction of a hypothesis
    max_stretch: float = 4.0  # largest ratio of a map's scales: a plane seen at 75 degrees
    min_inliers: int = 4  # fewest matches that verify
    false_alarms: float = 1e-3  # largest expected number of equally good hypotheses among as many chance matches
    unsure_alarms: float = 1e-6  # the same for unsure photos, which rank before those that only share words
    evidence: EvidenceOptions = field(default_factory=EvidenceOptions)  # how the maps that pass this are weighed
    shortlist: ShortlistOptions = field(default_factory=ShortlistOptions)  # preselection of many photos
    local: LocalOptions = field(default_factory=LocalOptions)  # verification of photos that one map cannot decide
    drawn: int = 600  # hypotheses of two matches for a pair of photos, at most
    refined: int = 2  # hypotheses that are refined
    retried: int = 4  # refined hypotheses from a shortlist, at most: until the result is clear
    clear_alarms: float = 1e-15  # largest expected number of equally good hypotheses by chance of a clear result
    rounds: int = 4  # refinement rounds
    max_matches: int = 1024  # tentative matches of a pair of photos that maps are scored by, the least ambiguous
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
        """The rules for `shortlist`."""
        return ShortlistRules(self.freedom, self.limits, self.max_zoom, self.shortlist)


@dataclass(frozen=True)
class Verification:
    """Result of verifying a photo with a query."""

    matches: NDArray[np.integer]  # (K, 2) int32, inlier matches: feature of the query, feature of the photo
    transform: (
        NDArray[np.float64] | None
    )  # (2, 3) float64, query to photo, in units of the two longer sides; None: not verified
    log_odds: float = -np.inf  # that the two show the same, by the evidence alone; -inf without evidence
    unsure: int = 0  # matches that agree on a map, perhaps by chance or as a line of text; 0 if verified

    @property
    def inliers(self) -> int:
        """Number of inlier matches; 0 if the photo is not verified."""
        return len(self.matches)

    def in_sides(self, query: float, image: float) -> "Verification":
        """Convert a result of enlarged frames (`Frames.enlarged`) back to units of the longer sides."""
        if self.transform is None or query == image == 1:
            return self
        return replace(self, transform=self.transform * np.array([query, query, 1]) / image)

    @property
    def strength(self) -> tuple[int, int]:
        """Sort key of photos: inlier matches or, without any, matches that may agree by chance."""
        return self.inliers, self.unsure


# Parts of the longer side, and of a frame's largest entry; also for rotated patches.
_SAME_PLACE = CENTRE_ERROR
_SAME_SHAPE = 1.5 * FRAME_ERROR
_BEYOND_DOUBT = 3.0  # large enough that the narrow tolerances make no difference
_CERTAIN = 30.0  # logarithm of the odds of a photo that is the query itself
_NEARLY = 4.0  # largest squared error, in units of the squared threshold, of matches whose own maps are tried
_NEIGHBOURS = 48  # such matches for each map, at most
_WIDE = 16.0, 2.0  # limits of squared errors and of scales of matches used in fits, relative to those of inliers

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
    """Find the map that most tentative matches (K, 2) agree on; `NOTHING` if they may agree by chance, or as a line of
    text.

    `query`, `image`: the matched features of the two photos: row k of both belongs to tentative match k. `pairs`:
    tentative matches: feature of the query, feature of the photo. `rarity`: of the photos' words, see
    `retrieval.matching.evidence.weigh`. `maps`: hypotheses, such as those of `shortlist`: they are tried, and the own
    maps of the matches near them. By default all tentative matches define one each. `extent`: height of the query's
    region, in units of the longer side: see `is_strip`.
    """
    from retrieval.matching.refinement_kernels import count_agreeing, refine, settle
    from retrieval.matching.vote_kernels import most_voted

    if len(pairs) < options.min_inliers:
        return NOTHING
    source, target = query.centres, image.centres
    points, scales = points_and_scales(query, image)
    matches = np.ascontiguousarray(pairs, np.int32)
    hypotheses, most = _tried(query, image, points, scales, maps, options)
    if maps is None and len(hypotheses) < options.min_inliers:
        return NOTHING

    chosen_maps, features = most_voted(hypotheses, points, scales, matches, *options.limits, most)
    expected = len(pairs) * even_rate(options.limits[0])
    best, best_map, best_error = np.zeros(0, np.int64), None, np.inf
    for start in Maps(hypotheses[chosen_maps]).transforms.astype(np.float64):
        distinct = count_agreeing(start, points, matches, scales, *options.limits)
        # Refinement seldom adds half of the inliers: hypotheses that would be no better than chance even then are not
        # refined. Votes do not decide this, as they count matches of ambiguous features only in part.
        if _alarms(1.5 * distinct, features, expected, options) > options.false_alarms:
            if maps is not None and not len(best):
                break  # the rest have fewer votes
            continue
        chosen, transform, error = refine(start, points, matches, scales, *options.limits, options.rounds)
        if (len(chosen), -error) > (len(best), -best_error):
            best, best_map, best_error = chosen, transform, error
        if maps is not None and _alarms(len(best), features, expected, options) < options.clear_alarms:
            break
    if best_map is None or len(best) < options.min_inliers or _is_stretched(best_map, options):
        return NOTHING
    places = _distinct_places(source[best], target[best], options)
    if _alarms(places, features, expected, options) > options.false_alarms:
        return NOTHING
    rates = crowding(query, image, matches, best_map, options)
    alarms = _alarms(places, features, len(pairs) * rates.wide, options)
    if alarms > options.false_alarms:
        return NOTHING
    log_odds = weigh(alarms, 1.0, rarity, options.evidence)
    if log_odds < options.evidence.sure + _BEYOND_DOUBT:
        close = query.at(best), image.at(best)
        narrow = narrow_alarms(*close, best_map, features, len(pairs) * rates.narrow, options)
        log_odds = weigh(alarms, narrow, rarity, options.evidence)
    log_odds = _bounded(log_odds, query, image, matches, best, options, extent)
    if log_odds < options.evidence.sure:
        return NOTHING if alarms > options.unsure_alarms else replace(NOTHING, unsure=len(best), log_odds=log_odds)
    verification = Verification(pairs[best], best_map, log_odds)
    # The photo is verified. The number of inliers may still change: several maps lie near each other.
    settled, settled_map, _ = settle(best_map, points, matches, scales, *options.limits)
    return _with_more(verification, query, image, pairs, settled, settled_map, options, extent)


def _tried(
    query: Frames,
    image: Frames,
    points: NDArray[np.float32],
    scales: NDArray[np.float32],
    maps: Maps | None,
    options: VerificationOptions,
) -> tuple[NDArray[np.float32], int]:
    """Rows of maps to try, and the largest number of them to refine."""
    if maps is None:
        return _hypotheses(query, image, scales, options).rows, options.refined
    from retrieval.matching.map_kernels import own_maps
    from retrieval.matching.refinement_kernels import near_matches

    # The own maps of matches near one of the maps may be better.
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
    """Weigh matches that agree with their neighbours, piece by piece, if no single map explains them; the map of the
    result is that of the largest piece. `NOTHING` as in `verify`.
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
    """Keep those rows of pairs (K, 2) whose features are in no earlier row."""
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
    """Rates at which matched features of these two photos agree with a map by chance: see `verify`."""
    from retrieval.matching.evidence_kernels import first_rows

    first, second = (sampled(first_rows(pairs, side), side) for side in (0, 1))
    return chance_rates(query.at(first), image.at(second), transform, options.limits, options.evidence)


def _bounded(
    log_odds: float,
    query: Frames,
    image: Frames,
    pairs: NDArray[np.int32],
    chosen: NDArray[np.int64],
    options: VerificationOptions,
    extent: float,
) -> float:
    """The logarithm of the odds of matches that agree, rows of pairs (K, 2), bounded if they lie in a strip (see
    `is_strip`) or around many that do not agree (see `hollowness`).
    """
    from retrieval.matching.evidence_kernels import first_rows

    bounds, places = options.evidence, (query.centres[chosen], image.centres[chosen])
    if is_strip(*places, bounds, extent):
        return min(log_odds, bounds.strip)
    if not bounds.sure < log_odds < bounds.solid:
        return log_odds
    sides = (side.centres[first_rows(pairs, which)] for which, side in enumerate((query, image)))
    return bounds.sure if hollowness(*places, *sides) >= bounds.hollow else log_odds


def narrow_alarms(
    query: Frames,
    image: Frames,
    transform: NDArray[np.float64],
    features: int,
    expected: float,
    options: VerificationOptions,
) -> float:
    """Expected number of maps that as many chance matches agree with as closely as the inliers of a map (2, 3).

    `query`, `image`: of the inliers. `features`: see `most_voted`. `expected`: matches that agree by chance.
    """
    places = close_places(query, image, transform, options.threshold, options.evidence)
    return _alarms(places, features, expected, options)


def _hypotheses(query: Frames, image: Frames, scales: NDArray[np.float32], options: VerificationOptions) -> Maps:
    """Maps to try, without those that enlarge or reduce too much."""
    if options.freedom == TWO_MATCHES:
        return two_match_maps(query.centres, image.centres, options.drawn, options.max_zoom)
    maps = single_match_maps(query, image, options.freedom)
    return maps.at(np.flatnonzero(np.abs(scales) <= np.log(options.max_zoom)))


def _alarms(inliers: float, features: int, expected: float, options: VerificationOptions) -> float:
    """False alarms of a hypothesis: one of two matches is the best of more, and one more match agrees by definition."""
    if options.freedom == TWO_MATCHES:
        return false_alarms(inliers - 1, features * (features - 1) // 2, expected)
    return false_alarms(inliers, features, expected)


def _distinct_places(source: NDArray[np.float32], target: NDArray[np.float32], options: VerificationOptions) -> int:
    """Number of distinct places (N, 2), in the photo that has fewer."""
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
    """Count the inliers of a map among more tentative matches than it was found with; `found` if they add none."""
    from retrieval.matching.refinement_kernels import agreeing, refine, settle

    if found.transform is None:
        return found
    points, scales = points_and_scales(query, image)
    # Refinement moves a map little, so matches far off cannot become inliers.
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
    """Return `found` with another map (2, 3) and the matches that agree with it, rows (N,), unless these are fewer."""
    if len(chosen) < found.inliers or _is_stretched(transform, options):
        return found
    if is_strip(query.centres[chosen], image.centres[chosen], options.evidence, extent):
        return found
    return replace(found, matches=pairs[chosen], transform=transform)


def _is_stretched(transform: NDArray[np.float64], options: VerificationOptions) -> bool:
    """Whether a map (2, 3) shows a plane at so steep a slant that hardly any feature is detected in both photos."""
    (a, b), (c, d) = transform[:, :2].tolist()
    # The sum of the squares of its two scales, and their product, determine their ratio.
    return bool(a * a + b * b + c * c + d * d > (options.max_stretch + 1 / options.max_stretch) * abs(a * d - b * c))


def identify(words: QueryWords, query: Frames, image_words: NDArray[np.integer], image: Frames) -> Verification:
    """Recognise a query with exactly the features of a photo, each in its place: all match by the identity, else
    `NOTHING`. Geometry cannot decide if there are only a few features, or only a few words. `image_words`: sorted.
    """
    from retrieval.matching.map_kernels import are_equal

    if not len(image_words) or not words.equal(image_words):
        return NOTHING
    if not are_equal(*query.plain, words.order, *image.plain, _SAME_PLACE, _SAME_SHAPE):
        return NOTHING
    matches = np.stack([words.order, np.arange(len(image_words), dtype=np.int32)], axis=1)
    return Verification(matches, np.eye(2, 3), _CERTAIN)
