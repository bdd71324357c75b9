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
    EvidenceOptions,
    Regions,
    chance_rate,
    close_places,
    count_places,
    false_alarms,
    is_strip,
    sampled,
    weigh,
)
from retrieval.matching.maps import Maps, count_votes, log_scales, single_match_maps, two_match_maps
from retrieval.matching.shortlist import Look, ShortlistOptions
from retrieval.matching.word_matches import QueryWords
from retrieval.regions.geometry import Frames

TWO_MATCHES = 2
"""Freedom of a hypothesis that two matches make: scale, rotation and shift, of places alone."""


@dataclass(frozen=True)
class VerificationOptions:
    """When two photos count as showing the same thing."""

    depth: int = 200  # how many of the best ranked photos are verified
    batch: int = 50  # of those that signatures rank, so many at a time ...
    patience: int = 35  # ... until none of the last so many passes
    # Of a single-match hypothesis: 3 (scale and shift), 4 (and rotation) or 5 (affine, "down" kept); or `TWO_MATCHES`.
    freedom: int = 5
    threshold: float = 0.025  # largest symmetric transfer error, as a part of the photos' longer sides
    scale_ratio: float = 2.0  # largest ratio between a match's scale change and the hypothesis's
    max_zoom: float = 10.0  # largest enlargement or reduction of a hypothesis
    max_stretch: float = 4.0  # largest ratio of a map's scales: a plane seen at 75 degrees
    min_inliers: int = 4  # fewest matches that verify
    false_alarms: float = 1e-3  # largest expected number of as good hypotheses among as many chance matches
    unsure_alarms: float = 1e-6  # the same for what is not sure, and comes before what has only words in common
    evidence: EvidenceOptions = field(default_factory=EvidenceOptions)  # how what passes that is weighed
    shortlist: ShortlistOptions = field(default_factory=ShortlistOptions)  # how many photos are looked at first
    drawn: int = 600  # hypotheses of two matches a pair of photos, at most
    refined: int = 2  # hypotheses that are refined
    retried: int = 4  # of those that a shortlist leads to, at most: until what is found is clear
    clear_alarms: float = 1e-15  # expected number of as good hypotheses by chance of what is clear
    rounds: int = 4  # refinement rounds
    max_matches: int = 1500  # tentative matches a pair of photos that maps are looked for with, the least ambiguous
    max_counted: int = 20_000  # tentative matches that inliers are counted among, once a map is found

    def __post_init__(self) -> None:
        if self.freedom not in (TWO_MATCHES, 3, 4, 5):
            raise CairnError(f"A hypothesis has 3, 4 or 5 degrees of freedom, not {self.freedom}.")

    @property
    def limits(self) -> tuple[float, float]:
        """Square of the threshold; largest difference between logarithms of scale."""
        return self.threshold**2, float(np.log(self.scale_ratio))

    @property
    def looks(self) -> Look:
        """What `shortlist` needs to know."""
        return Look(self.freedom, self.limits, self.max_zoom, self.shortlist)


@dataclass(frozen=True)
class Verification:
    """What verification found between a query and a photo."""

    matches: NDArray[np.integer]  # (K, 2) int32, inlier matches: feature of the query, feature of the photo
    transform: (
        NDArray[np.float64] | None
    )  # (2, 3) float64, query to photo, in units of the two longer sides; None: not verified
    log_odds: float = -np.inf  # that the two show the same, by the evidence alone; -inf where none is weighed
    unsure: int = 0  # matches that agree on a map, but may do so by chance, or as a line of text; 0 where verified

    @property
    def inliers(self) -> int:
        """Number of inlier matches; 0 where the photo is not verified."""
        return len(self.matches)

    @property
    def strength(self) -> tuple[int, int]:
        """What photos are ordered by: inlier matches, and where there are none, matches that may agree by chance."""
        return self.inliers, self.unsure


# Of the longer side, and of a frame's largest entry, where patches are turned, too.
_SAME_PLACE = CENTRE_ERROR
_SAME_SHAPE = 1.5 * FRAME_ERROR
_BEYOND_DOUBT = 3.0  # more than enough for the narrow tolerances to make no difference
_CERTAIN = 30.0  # logarithm of the odds of a photo that is the query itself
_NEARLY = 4.0  # how much larger than the threshold's square an error may be for a match's own map to be tried
_NEIGHBOURS = 48  # of those a map, at most
_WIDE = 4.0  # how much wider than the limits of errors, squared, and of scales those are that refinement looks within

NOTHING = Verification(np.zeros((0, 2), np.int32), None)


def verify(
    query: Frames,
    image: Frames,
    pairs: NDArray[np.integer],
    options: VerificationOptions,
    *,
    rarity: float = 0.0,
    maps: Maps | None = None,
) -> Verification:
    """Find the map that the most tentative matches agree on.

    Parameters
    ----------
    query, image : Frames
        The matched features of the two photos: row k of both belongs to tentative match k.
    pairs : ndarray, shape (K, 2), int
        Tentative matches: feature of the query, feature of the photo.
    options : VerificationOptions
        Thresholds.
    rarity : float
        Of the photos' words, see `retrieval.matching.evidence.weigh`.
    maps : Maps, optional
        Hypotheses, such as `shortlist` gives: they are tried, and those of the matches near them. Where they are left
        out, all tentative matches give one each.

    Returns
    -------
    Verification
        `NOTHING` where the agreement may well be by chance, or is that of a line of text.
    """
    if len(pairs) < options.min_inliers:
        return NOTHING
    source, target = query.centres, image.centres
    points = np.concatenate([source.T, np.ones((1, len(pairs)), np.float32), target.T])
    scales = log_scales(query.linear, image.linear)
    if maps is None:
        tried, most = _hypotheses(query, image, scales, options), options.refined
        if len(tried) < options.min_inliers:
            return NOTHING
    else:
        # Of the matches near one of the maps some may stand for better ones.
        near = [_near(row, points, scales, options.limits) for row in maps.transforms]
        rows = np.unique(np.concatenate([np.zeros(0, np.int64), *near]))
        own = single_match_maps(query.at(rows), image.at(rows), options.freedom)
        tried, most = maps.joined(own), options.retried

    # A feature with many tentative matches counts once, however many of them a hypothesis explains.
    uses = [np.bincount(pairs[:, side]) for side in (0, 1)]
    share = 1 / np.maximum(*(uses[side][pairs[:, side]] for side in (0, 1)))
    votes = count_votes(tried, source, target, scales, share, options.limits)
    features = min(int(np.count_nonzero(count)) for count in uses)
    expected = len(pairs) * np.pi * options.threshold**2 / 2
    best, best_map, best_error = np.zeros(0, np.int64), None, np.inf
    for start in tried.at(np.argsort(-votes, kind="stable")[:most]).transforms:
        agreed = pairs[_agreeing(start, points, scales, options.limits)[0]]
        distinct = min(len(set(agreed[:, side].tolist())) for side in (0, 1))
        # Refinement seldom adds half as many inliers: what is no better than chance even then is not refined. The votes
        # do not tell: they count a match of features with many others for a part only.
        if _alarms(1.5 * distinct, features, expected, options) > options.false_alarms:
            if maps is not None and not len(best):
                break  # and so are those of fewer votes
            continue
        chosen, transform, error = _refine(start, points, pairs, scales, options.limits, options.rounds)
        if (len(chosen), -error) > (len(best), -best_error):
            best, best_map, best_error = chosen, transform, error
        if maps is not None and _alarms(len(best), features, expected, options) < options.clear_alarms:
            break
    if best_map is None or len(best) < options.min_inliers:
        return NOTHING
    if _is_stretched(best_map, options):
        return NOTHING
    alarms = _alarms(_seen(source[best], target[best], options), features, expected, options)
    if alarms > options.false_alarms:
        return NOTHING
    log_odds = weigh(alarms, 1.0, rarity, options.evidence)
    if log_odds < options.evidence.sure + _BEYOND_DOUBT:
        narrow = narrow_alarms(query, image, pairs, best, best_map, options)
        log_odds = weigh(alarms, narrow, rarity, options.evidence)
    if is_strip(source[best], target[best], options.evidence):
        log_odds = min(log_odds, options.evidence.strip)
    if log_odds < options.evidence.sure:
        if alarms > options.unsure_alarms:
            return NOTHING
        return replace(NOTHING, unsure=len(best), log_odds=log_odds)
    return Verification(pairs[best], best_map, log_odds)


def wide_alarms(
    query: Frames, image: Frames, pairs: NDArray[np.integer], chosen: NDArray[np.int64], options: VerificationOptions
) -> float:
    """Expected number of maps by chance that as many matches agree with as those chosen, whose rows are given.

    The other arguments are those of `verify`.
    """
    features = min(len(np.unique(pairs[:, side])) for side in (0, 1))
    expected = len(pairs) * np.pi * options.threshold**2 / 2
    return _alarms(_seen(query.centres[chosen], image.centres[chosen], options), features, expected, options)


def narrow_alarms(
    query: Frames,
    image: Frames,
    pairs: NDArray[np.integer],
    chosen: NDArray[np.int64],
    transform: NDArray[np.float64],
    options: VerificationOptions,
) -> float:
    """Expected number of maps by chance that as many matches agree with as closely as those chosen do.

    Parameters
    ----------
    query, image, pairs, options
        See `verify`.
    chosen : ndarray, shape (N,), int
        Rows of the matches that agree with the map.
    transform : ndarray, shape (2, 3)
        The map.
    """
    matched = Regions(query.centres[chosen], query.linear[chosen])
    found = Regions(image.centres[chosen], image.linear[chosen])
    seen = close_places(matched, found, transform, options.threshold, options.evidence)
    rows = [np.unique(pairs[:, side], return_index=True)[1] for side in (0, 1)]
    first, second = (sampled(rows[side], side) for side in (0, 1))
    some = Regions(query.centres[first], query.linear[first])
    others = Regions(image.centres[second], image.linear[second])
    rate = chance_rate(some, others, transform, options.threshold, options.evidence)
    least = np.pi * options.threshold**2 / 2 * options.evidence.by_chance
    return _alarms(seen, min(map(len, rows)), len(pairs) * max(rate, least), options)


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
    return min(count_places(points.T, options.threshold) for points in (source, target))


def recount(
    found: Verification, query: Frames, image: Frames, pairs: NDArray[np.integer], options: VerificationOptions
) -> Verification:
    """Count the inliers of a map among more tentative matches than it was found with.

    Parameters
    ----------
    found : Verification
        With a map.
    query, image, pairs, options
        See `verify`.

    Returns
    -------
    Verification
        What was found, where the other matches add nothing to it.
    """
    if found.transform is None:
        return found
    scales = log_scales(query.linear, image.linear)
    points = np.concatenate([query.centres.T, np.ones((1, len(pairs)), np.float32), image.centres.T])
    # Refinement moves a map a little, so that what is far off is out of the question.
    wide = options.limits[0] * _WIDE, options.limits[1] * _WIDE
    near = _agreeing(found.transform, points, scales, wide)[0]
    few, transform, _ = _refine(
        found.transform, points[:, near], pairs[near], scales[near], options.limits, options.rounds
    )
    chosen = near[few]
    if len(chosen) <= found.inliers or _is_stretched(transform, options):
        return found
    if is_strip(query.centres[chosen], image.centres[chosen], options.evidence):
        return found
    return replace(found, matches=pairs[chosen], transform=transform)


def _is_stretched(transform: NDArray[np.float64], options: VerificationOptions) -> bool:
    """Whether a map (2, 3) shows a plane at a slant that hardly a feature survives."""
    scales = np.linalg.svd(transform[:, :2], compute_uv=False)
    return bool(scales[0] > options.max_stretch * scales[1])


def identify(words: QueryWords, query: Frames, image_words: NDArray[np.integer], image: Frames) -> Verification:
    """Recognise a query that has all the features of a photo, each in its place, and no others: the photo itself.

    Geometry cannot tell where there are only a few features, or where all of them are of a few words.

    Parameters
    ----------
    words : QueryWords
        Of the query.
    query : Frames
        All features of the query.
    image_words : ndarray, shape (M,), int
        Words of the photo's features, sorted.
    image : Frames
        All features of the photo, in the same order.

    Returns
    -------
    Verification
        All features match, by the identity; `NOTHING` where it is another photo.
    """
    if not len(image_words) or not words.equal(image_words):
        return NOTHING
    same = query.at(words.order)
    if np.abs(same.centres - image.centres).max() > _SAME_PLACE:
        return NOTHING
    if (
        np.abs(same.linear - image.linear).max(axis=(1, 2)) > _SAME_SHAPE * np.abs(image.linear).max(axis=(1, 2))
    ).any():
        return NOTHING
    matches = np.stack([words.order, np.arange(len(image_words), dtype=np.int32)], axis=1)
    return Verification(matches, np.eye(2, 3), _CERTAIN)


def _symmetric_error(transform: NDArray[np.floating], points: NDArray[np.float32]) -> NDArray[np.float32]:
    """Squared symmetric transfer errors (K,) of a map (2, 3) for points (5, K): q, 1, d."""
    (a, b), (c, d) = transform[:, :2].tolist()
    inverse = np.array([[d, -b], [-c, a]]) / (a * d - b * c)
    residual = transform.astype(np.float32) @ points[:3]
    residual -= points[3:]
    back = inverse.astype(np.float32) @ residual
    residual *= residual
    back *= back
    residual += back
    return np.asarray(residual[0] + residual[1])


def _agreeing(
    transform: NDArray[np.floating],
    points: NDArray[np.float32],
    scales: NDArray[np.float32],
    limits: tuple[float, float],
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Numbers of the matches that agree with a map (2, 3), none for a singular one, and the errors (K,) of all."""
    (a, b), (c, d) = transform[:, :2].tolist()
    area = abs(a * d - b * c)
    if area < 1e-8:
        return np.zeros(0, np.int64), np.full(points.shape[1], np.inf, np.float32)
    error = _symmetric_error(transform, points)
    near = np.flatnonzero(error < limits[0])
    return near[np.abs(scales[near] - np.float32(0.5 * np.log(area))) < limits[1]], error


def _near(
    transform: NDArray[np.floating],
    points: NDArray[np.float32],
    scales: NDArray[np.float32],
    limits: tuple[float, float],
) -> NDArray[np.int64]:
    """Numbers of the matches that agree with a map, or nearly: the closest of them."""
    near, error = _agreeing(transform, points, scales, (_NEARLY * limits[0], limits[1]))
    return near[np.argsort(error[near], kind="stable")[:_NEIGHBOURS]]


def _refine(
    transform: NDArray[np.floating],
    points: NDArray[np.float32],
    pairs: NDArray[np.integer],
    scales: NDArray[np.float32],
    limits: tuple[float, float],
    rounds: int,
) -> tuple[NDArray[np.int64], NDArray[np.float64], float]:
    """Fit an affine map to the inliers, look for inliers again, and so on; keep the best.

    Returns the inlier matches (numbers of pairs, one to one), the map (2, 3) and the mean squared error.
    """
    best, best_map, best_error = np.zeros(0, np.int64), transform, np.inf
    for _ in range(rounds + 1):
        agreeing, error = _agreeing(transform, points, scales, limits)
        chosen = _one_to_one(agreeing, pairs, error)
        mean = float(error[chosen].mean()) if len(chosen) else np.inf
        if (len(chosen), -mean) <= (len(best), -best_error):
            break
        best, best_map, best_error = chosen, transform, mean
        fitted = _fit(points[:, chosen])
        if fitted is None:
            break
        transform = fitted
    return best, best_map.astype(np.float64), best_error


def _fit(points: NDArray[np.float32]) -> NDArray[np.float64] | None:
    """Least-squares affine map (2, 3) of points (5, K): see `fit_affine`, of which this is the short form."""
    number = points.shape[1]
    if number < 3:
        return None
    sums = points.astype(np.float64)
    products = sums @ sums.T
    middle = products[2] / number
    centred = products - np.outer(middle, products[2])
    xx, xy, yy = float(centred[0, 0]), float(centred[0, 1]), float(centred[1, 1])
    area = xx * yy - xy * xy
    if area < 1e-4 * max(xx + yy, 1e-12) ** 2:
        return None
    goal = centred[3:, :2]
    linear = np.stack([goal[:, 0] * yy - goal[:, 1] * xy, goal[:, 1] * xx - goal[:, 0] * xy], axis=1) / area
    return np.column_stack([linear, middle[3:] - linear @ middle[:2]])


def _one_to_one(
    chosen: NDArray[np.int64], pairs: NDArray[np.integer], error: NDArray[np.floating]
) -> NDArray[np.int64]:
    """Keep the matches that are the closest of both their features; then once more among what is left free."""
    # The closest last: of several assignments to one place the last one stays.
    chosen = chosen[np.argsort(-error[chosen], kind="stable")]
    kept = []
    for last in (False, True):
        if not len(chosen):
            break
        sides = [pairs[:, side].take(chosen) for side in (0, 1)]
        both = np.ones(len(chosen), bool)
        for features in sides:
            closest = np.empty(features.max() + 1, np.int64)
            closest[features] = chosen
            both &= closest[features] == chosen
        kept.append(chosen[both])
        if last or both.all():
            break
        free = ~both
        for features in sides:
            taken = np.zeros(features.max() + 1, bool)
            taken[features[both]] = True
            free &= ~taken[features]
        chosen = chosen[free]
    return np.sort(np.concatenate(kept)) if kept else chosen
