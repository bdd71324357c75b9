"""Spatial verification: does one map of the plane explain the matches between two photos?

Every tentative match of two ellipses gives a hypothesis of its own (Philbin et al., CVPR 2007); all are tried, the best
are refined to a full affine map by local optimisation (Chum, Matas & Kittler, DAGM 2003). Each feature takes part in at
most one inlier match.
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
    probability,
    sampled,
    weigh,
)
from retrieval.matching.word_matches import QueryWords
from retrieval.regions.geometry import Frames, fit_affine


@dataclass(frozen=True)
class VerificationOptions:
    """When two photos count as showing the same thing."""

    depth: int = 200  # how many of the best ranked photos are verified
    freedom: int = 5  # of a single-match hypothesis: 3 (scale and shift), 4 (and rotation) or 5 (affine, "down" kept)
    threshold: float = 0.025  # largest symmetric transfer error, as a part of the photos' longer sides
    scale_ratio: float = 2.0  # largest ratio between a match's scale change and the hypothesis's
    max_zoom: float = 10.0  # largest enlargement or reduction of a hypothesis
    max_stretch: float = 4.0  # largest ratio of a map's scales: a plane seen at 75 degrees
    min_inliers: int = 4  # fewest matches that verify
    false_alarms: float = 1e-3  # largest expected number of as good hypotheses among as many chance matches
    unsure_alarms: float = 1e-6  # the same for what is not sure, and comes before what has only words in common
    evidence: EvidenceOptions = field(default_factory=EvidenceOptions)  # how what passes that is weighed
    refined: int = 2  # hypotheses that are refined
    rounds: int = 4  # refinement rounds
    max_matches: int = 1500  # tentative matches a pair of photos that maps are looked for with, the least ambiguous
    max_counted: int = 20_000  # tentative matches that inliers are counted among, once a map is found

    def __post_init__(self) -> None:
        if self.freedom not in (3, 4, 5):
            raise CairnError(f"A hypothesis has 3, 4 or 5 degrees of freedom, not {self.freedom}.")


@dataclass(frozen=True)
class Verification:
    """What verification found between a query and a photo."""

    matches: NDArray[np.integer]  # (K, 2) int32, inlier matches: feature of the query, feature of the photo
    transform: (
        NDArray[np.float64] | None
    )  # (2, 3) float64, query to photo, in units of the two longer sides; None: not verified
    probability: float = 0.0  # that the two show the same, as far as calibration goes; 0 where not verified
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
_BLOCK = 64  # hypotheses at a time: their errors stay in the second-level cache

NOTHING = Verification(np.zeros((0, 2), np.int32), None)


def verify(
    query: Frames, image: Frames, pairs: NDArray[np.integer], options: VerificationOptions, *, rarity: float = 0.0
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

    Returns
    -------
    Verification
        `NOTHING` where the agreement may well be by chance, or is that of a line of text.
    """
    if len(pairs) < options.min_inliers:
        return NOTHING
    source, target = query.centres, image.centres
    linear, log_scale = _hypotheses(query.linear, image.linear, options)
    usable = np.nonzero(np.abs(log_scale) <= np.log(options.max_zoom))[0]
    if len(usable) < options.min_inliers:
        return NOTHING
    shift = target - np.einsum("nij,nj->ni", linear, source)
    limits = (options.threshold**2, np.log(options.scale_ratio))

    # A feature with many tentative matches counts once, however many of them a hypothesis explains.
    uses = [np.bincount(pairs[:, side]) for side in (0, 1)]
    share = 1 / np.maximum(*(uses[side][pairs[:, side]] for side in (0, 1)))
    votes = _votes(linear[usable], shift[usable], log_scale[usable], source, target, log_scale, share, limits)
    order = np.argsort(-votes, kind="stable")[: options.refined]
    features = min(int(np.count_nonzero(count)) for count in uses)
    expected = len(pairs) * np.pi * options.threshold**2 / 2
    points = np.concatenate([source.T, np.ones((1, len(pairs)), np.float32), target.T])
    best, best_map, best_error = np.zeros(0, np.int64), None, np.inf
    for hypothesis in usable[order]:
        start = np.column_stack([linear[hypothesis], shift[hypothesis]])
        agreed = pairs[_agreeing(start, points, log_scale, limits)[0]]
        distinct = min(len(set(agreed[:, side].tolist())) for side in (0, 1))
        # Refinement seldom adds half as many inliers: what is no better than chance even then is not refined. The votes
        # do not tell: they count a match of features with many others for a part only.
        if false_alarms(1.5 * distinct, features, expected) > options.false_alarms:
            continue
        chosen, transform, error = _refine(start, points, pairs, log_scale, limits, options.rounds)
        if (len(chosen), -error) > (len(best), -best_error):
            best, best_map, best_error = chosen, transform, error
    if best_map is None or len(best) < options.min_inliers:
        return NOTHING
    if _is_stretched(best_map, options):
        return NOTHING
    alarms = false_alarms(_seen(source[best], target[best], options), features, expected)
    if alarms > options.false_alarms:
        return NOTHING
    log_odds = weigh(alarms, 1.0, rarity, options.evidence)
    if log_odds < options.evidence.sure + _BEYOND_DOUBT:
        narrow = narrow_alarms(query, image, pairs, best, best_map, options)
        log_odds = weigh(alarms, narrow, rarity, options.evidence)
    if log_odds < options.evidence.sure or is_strip(source[best], target[best], options.evidence):
        return replace(NOTHING, unsure=len(best) if alarms <= options.unsure_alarms else 0)
    return Verification(pairs[best], best_map, probability(log_odds))


def wide_alarms(
    query: Frames, image: Frames, pairs: NDArray[np.integer], chosen: NDArray[np.int64], options: VerificationOptions
) -> float:
    """Expected number of maps by chance that as many matches agree with as those chosen, whose rows are given.

    The other arguments are those of `verify`.
    """
    features = min(len(np.unique(pairs[:, side])) for side in (0, 1))
    expected = len(pairs) * np.pi * options.threshold**2 / 2
    return false_alarms(_seen(query.centres[chosen], image.centres[chosen], options), features, expected)


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
    return false_alarms(seen, min(map(len, rows)), len(pairs) * max(rate, least))


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
    log_scale = _hypotheses(query.linear, image.linear, options)[1]
    points = np.concatenate([query.centres.T, np.ones((1, len(pairs)), np.float32), image.centres.T])
    limits = (options.threshold**2, np.log(options.scale_ratio))
    chosen, transform, _ = _refine(found.transform, points, pairs, log_scale, limits, options.rounds)
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
    return Verification(matches, np.eye(2, 3), 1.0)


def _hypotheses(
    source: NDArray[np.float32], target: NDArray[np.float32], options: VerificationOptions
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Linear parts (K, 2, 2) float32 and logarithms of scale (K,) of the maps that take frames to frames."""
    source_area = source[:, 0, 0] * source[:, 1, 1] - source[:, 0, 1] * source[:, 1, 0]
    target_area = target[:, 0, 0] * target[:, 1, 1] - target[:, 0, 1] * target[:, 1, 0]
    scale = np.sqrt(np.abs(target_area) / np.maximum(np.abs(source_area), 1e-20))
    log_scale = np.log(np.maximum(scale, 1e-20))
    if options.freedom == 3:
        return np.eye(2, dtype=np.float32) * scale[:, None, None], log_scale
    inverse = np.stack(
        [
            np.stack([source[:, 1, 1], -source[:, 0, 1]], -1),
            np.stack([-source[:, 1, 0], source[:, 0, 0]], -1),
        ],
        -2,
    )
    linear = target @ (inverse / np.maximum(np.abs(source_area), 1e-20)[:, None, None])
    if options.freedom == 4:
        angle = np.arctan2(linear[:, 1, 0] - linear[:, 0, 1], linear[:, 0, 0] + linear[:, 1, 1])
        cosine, sine = scale * np.cos(angle), scale * np.sin(angle)
        linear = np.stack([np.stack([cosine, -sine], -1), np.stack([sine, cosine], -1)], -2)
    return linear.astype(np.float32), log_scale


def _votes(
    linear: NDArray[np.float32],
    shift: NDArray[np.float32],
    own_scale: NDArray[np.float32],
    source: NDArray[np.float32],
    target: NDArray[np.float32],
    scales: NDArray[np.float32],
    share: NDArray[np.floating],
    limits: tuple[float, float],
) -> NDArray[np.float32]:
    """Sum the shares of the matches that agree with each hypothesis: (H,) float32.

    A match agrees where error / threshold² + (log scale difference / limit)² < 1, a little stricter than the test that
    decides on inliers. That is a quadratic form in the match's coordinates: its coefficients times the products of
    those coordinates give all errors in one matrix product.
    """
    # Sorted by scale, a block of hypotheses has to be compared with a stretch of the matches alone.
    matches, hypotheses = np.argsort(scales, kind="stable"), np.argsort(own_scale, kind="stable")
    source, target, scales, share = source[matches], target[matches], scales[matches], share[matches]
    linear, shift, own_scale = linear[hypotheses], shift[hypotheses], own_scale[hypotheses]
    # Centred coordinates keep the sums of products within the precision of float32.
    middle_source, middle_target = source.mean(axis=0), target.mean(axis=0)
    shift = shift + linear @ middle_source - middle_target
    own, other = own_scale / limits[1], scales / limits[1]
    forms = np.concatenate(
        [_error_forms(linear, shift) / np.float32(limits[0]), [own * own, -2 * own, np.ones_like(own)]]
    )
    products = np.concatenate(
        [_products(source - middle_source, target - middle_target), [np.ones_like(other), other, other * other]]
    )
    forms, products, share = (array.astype(np.float32) for array in (forms.T, products, share))
    votes = np.empty(len(linear), np.float32)
    for start in range(0, len(linear), _BLOCK):
        block = own_scale[start : start + _BLOCK]
        near = slice(*np.searchsorted(scales, (block[0] - limits[1], block[-1] + limits[1])))
        error = forms[start : start + _BLOCK] @ products[:, near]
        votes[hypotheses[start : start + _BLOCK]] = np.less(error, 1, out=error, casting="unsafe") @ share[near]
    return votes


def _error_forms(linear: NDArray[np.float32], shift: NDArray[np.float32]) -> NDArray[np.float32]:
    """Coefficients (15, H) of the squared symmetric transfer errors of maps, as forms in the products of `_products`.

    With the residual r = L q + t - d, |r|² + |L⁻¹r|² = rᵀ F r for F = I + L⁻ᵀL⁻¹.
    """
    l00, l01, l10, l11 = linear.reshape(-1, 4).T
    weight = 1 / np.maximum((l00 * l11 - l01 * l10) ** 2, np.float32(1e-24))
    f00, f01, f11 = 1 + (l10**2 + l11**2) * weight, -(l00 * l10 + l01 * l11) * weight, 1 + (l00**2 + l01**2) * weight
    columns = ((l00, l10), (l01, l11), (shift[:, 0], shift[:, 1]))
    (x0, y0), (x1, y1), (xt, yt) = columns
    (u0, v0), (u1, v1), (ut, vt) = ((f00 * x + f01 * y, f01 * x + f11 * y) for x, y in columns)
    quadratic = [x0 * u0 + y0 * v0, 2 * (x0 * u1 + y0 * v1), x1 * u1 + y1 * v1, f00, 2 * f01, f11]
    mixed = [-2 * u0, -2 * v0, -2 * u1, -2 * v1]
    linear_terms = [2 * (x0 * ut + y0 * vt), 2 * (x1 * ut + y1 * vt), -2 * ut, -2 * vt]
    return np.stack([*quadratic, *mixed, *linear_terms, xt * ut + yt * vt])


def _products(source: NDArray[np.float32], target: NDArray[np.float32]) -> NDArray[np.float32]:
    """Products (15, K) of the coordinates of matches q, d and 1, in the order of `_error_forms`."""
    (x, y), (u, v) = source.T, target.T
    return np.stack([x * x, x * y, y * y, u * u, u * v, v * v, x * u, x * v, y * u, y * v, x, y, u, v, np.ones_like(x)])


def _symmetric_error(
    linear: NDArray[np.floating], shift: NDArray[np.floating], points: NDArray[np.float32]
) -> NDArray[np.floating]:
    """Squared symmetric transfer errors (H, K) of maps (H, 2, 2), (H, 2) for points (5, K): q, 1, d."""
    residual = linear @ points[:2] + shift[:, :, None] - points[3:]
    back = np.linalg.inv(linear) @ residual
    return np.asarray((residual**2).sum(axis=1) + (back**2).sum(axis=1))


def _agreeing(
    transform: NDArray[np.floating],
    points: NDArray[np.float32],
    scales: NDArray[np.float32],
    limits: tuple[float, float],
) -> tuple[NDArray[np.int64], NDArray[np.floating]]:
    """Numbers of the matches that agree with a map (2, 3), none for a singular one, and the errors (K,) of all."""
    area = abs(float(transform[0, 0] * transform[1, 1] - transform[0, 1] * transform[1, 0]))
    if area < 1e-8:
        return np.zeros(0, np.int64), np.full(points.shape[1], np.inf)
    error = _symmetric_error(transform[None, :, :2], transform[None, :, 2], points)[0]
    return np.nonzero((error < limits[0]) & (np.abs(scales - 0.5 * np.log(area)) < limits[1]))[0], error


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
        fitted = fit_affine(points[:2, chosen].T, points[3:, chosen].T)
        if fitted is None:
            break
        transform = fitted
    return best, best_map.astype(np.float64), best_error


def _one_to_one(
    chosen: NDArray[np.int64], pairs: NDArray[np.integer], error: NDArray[np.floating]
) -> NDArray[np.int64]:
    """Keep the matches that are the closest of both their features; then once more among what is left free."""
    # The closest last: of several assignments to one place the last one stays.
    chosen = chosen[np.argsort(-error[chosen], kind="stable")]
    kept = []
    for _ in range(2):
        if not len(chosen):
            break
        both = np.ones(len(chosen), bool)
        for side in (0, 1):
            features = pairs[chosen, side]
            closest = np.empty(features.max() + 1, np.int64)
            closest[features] = chosen
            both &= closest[features] == chosen
        free = np.ones(len(chosen), bool)
        for side in (0, 1):
            features = pairs[chosen, side]
            taken = np.zeros(features.max() + 1, bool)
            taken[features[both]] = True
            free &= ~taken[features]
        kept.append(chosen[both])
        chosen = chosen[free]
    return np.sort(np.concatenate(kept)) if kept else chosen
