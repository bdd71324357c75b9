"""Spatial verification: does one map of the plane explain the matches between two photos?

Every tentative match of two ellipses gives a hypothesis of its own (Philbin et al., CVPR 2007); all are tried, the best
are refined to a full affine map by local optimisation (Chum, Matas & Kittler, DAGM 2003). Each feature takes part in at
most one inlier match.
"""

from dataclasses import dataclass

import numpy as np

from index.errors import CairnError


@dataclass(frozen=True)
class VerificationOptions:
    """When two photos count as showing the same thing."""

    depth: int = 200  # how many of the best ranked photos are verified
    freedom: int = 5  # of a single-match hypothesis: 3 (scale and shift), 4 (and rotation) or 5 (affine, "down" kept)
    threshold: float = 0.025  # largest symmetric transfer error, as a part of the photos' longer sides
    scale_ratio: float = 2.0  # largest ratio between a match's scale change and the hypothesis's
    max_zoom: float = 10.0  # largest enlargement or reduction of a hypothesis
    min_inliers: int = 4  # fewest matches that verify
    false_alarms: float = 1e-2  # largest expected number of as good hypotheses among as many chance matches
    refined: int = 2  # hypotheses that are refined
    rounds: int = 4  # refinement rounds
    max_matches: int = 1500  # tentative matches a pair of photos; the most ambiguous are left out

    def __post_init__(self) -> None:
        if self.freedom not in (3, 4, 5):
            raise CairnError(f"A hypothesis has 3, 4 or 5 degrees of freedom, not {self.freedom}.")


@dataclass(frozen=True)
class Frames:
    """Features of one photo as verification sees them, in units of the photo's longer side."""

    centres: np.ndarray  # (N, 2) float32
    linear: np.ndarray  # (N, 2, 2) float32, maps from the unit circle to the region

    def at(self, rows: np.ndarray) -> "Frames":
        """Take some rows, in the order given."""
        return Frames(self.centres[rows], self.linear[rows])


@dataclass(frozen=True)
class Verification:
    """What verification found between a query and a photo."""

    matches: np.ndarray  # (K, 2) int32, inlier matches: feature of the query, feature of the photo
    transform: np.ndarray | None  # (2, 3) float64, query to photo, in units of the two longer sides; None: not verified

    @property
    def inliers(self) -> int:
        """Number of inlier matches; 0 where the photo is not verified."""
        return len(self.matches)


NOTHING = Verification(np.zeros((0, 2), np.int32), None)


def match_words(query_words: np.ndarray, image_words: np.ndarray, most: int) -> np.ndarray:
    """Pair the features of two photos that share a word.

    Parameters
    ----------
    query_words : ndarray, shape (N,)
        Words of the query's features, in any order.
    image_words : ndarray, shape (M,)
        Words of the photo's features, sorted.
    most : int
        Largest number of pairs; words with the fewest pairs go first.

    Returns
    -------
    ndarray, shape (K, 2), int32
        Feature of the query, feature of the photo.
    """
    first = np.searchsorted(image_words, query_words, "left")
    counts = np.searchsorted(image_words, query_words, "right") - first
    members = np.nonzero(counts)[0]
    if not len(members):
        return np.zeros((0, 2), np.int32)
    counts, first = counts[members], first[members]
    if counts.sum() > most:
        _, inverse, repeats = np.unique(query_words[members], return_inverse=True, return_counts=True)
        ambiguity = counts * repeats[inverse]
        order = np.argsort(ambiguity, kind="stable")
        order = order[np.cumsum(counts[order]) <= most]
        order.sort()
        members, counts, first = members[order], counts[order], first[order]
    ends = np.cumsum(counts)
    within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
    return np.stack([np.repeat(members, counts), np.repeat(first, counts) + within], axis=1).astype(np.int32)


def verify(query: Frames, image: Frames, pairs: np.ndarray, options: VerificationOptions) -> Verification:
    """Find the map that the most tentative matches agree on.

    Parameters
    ----------
    query, image : Frames
        The matched features of the two photos: row k of both belongs to tentative match k.
    pairs : ndarray, shape (K, 2), int
        Tentative matches: feature of the query, feature of the photo.
    options : VerificationOptions
        Thresholds.

    Returns
    -------
    Verification
        `NOTHING` where the agreement is no better than chance.
    """
    if len(pairs) < options.min_inliers:
        return NOTHING
    source, target = query.centres, image.centres
    linear, log_scale = _hypotheses(query.linear, image.linear, options)
    usable = np.nonzero(np.abs(log_scale) <= np.log(options.max_zoom))[0]
    if len(usable) < options.min_inliers:
        return NOTHING
    shift = target - np.einsum("nij,nj->ni", linear, source)
    points = np.concatenate([source.T, np.ones((1, len(pairs)), np.float32), target.T])
    limits = (options.threshold**2, np.log(options.scale_ratio))

    agree = _agreement(linear[usable], shift[usable], log_scale[usable], points, log_scale, limits)
    # A feature with many tentative matches counts once, however many of them a hypothesis explains.
    share = 1 / np.maximum(*(np.bincount(pairs[:, side])[pairs[:, side]] for side in (0, 1)))
    votes = agree @ share.astype(np.float32)
    order = np.argsort(-votes, kind="stable")[: options.refined]

    best, best_map, best_error = np.zeros(0, np.int64), None, np.inf
    for hypothesis in order:
        if np.count_nonzero(agree[hypothesis]) < options.min_inliers:
            break
        number = usable[hypothesis]
        chosen, transform, error = _refine(
            np.column_stack([linear[number], shift[number]]), points, pairs, log_scale, limits, options.rounds
        )
        if (len(chosen), -error) > (len(best), -best_error):
            best, best_map, best_error = chosen, transform, error
    if best_map is None or len(best) < options.min_inliers or _chance(len(best), pairs, options) > options.false_alarms:
        return NOTHING
    return Verification(pairs[best], best_map)


def _hypotheses(source: np.ndarray, target: np.ndarray, options: VerificationOptions) -> tuple[np.ndarray, np.ndarray]:
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


def _agreement(
    linear: np.ndarray,
    shift: np.ndarray,
    own_scale: np.ndarray,
    points: np.ndarray,
    scales: np.ndarray,
    limits: tuple[float, float],
) -> np.ndarray:
    """Which of K matches agree with which of H hypotheses: (H, K) float32 of zeros and ones."""
    error = _symmetric_error(linear, shift, points)
    agree = error < np.float32(limits[0])
    agree &= np.abs(scales[None, :] - own_scale[:, None]) < limits[1]
    return agree.astype(np.float32)


def _symmetric_error(linear: np.ndarray, shift: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Squared symmetric transfer error (H, K): |r|² + |L⁻¹r|² for the residual r = L q + t - d.

    Both terms are one quadratic form rᵀ(I + L⁻ᵀL⁻¹)r = |C r|², C its Cholesky factor, so that two matrix products
    give all errors.
    """
    determinant = linear[:, 0, 0] * linear[:, 1, 1] - linear[:, 0, 1] * linear[:, 1, 0]
    inverse = (
        np.stack(
            [np.stack([linear[:, 1, 1], -linear[:, 0, 1]], -1), np.stack([-linear[:, 1, 0], linear[:, 0, 0]], -1)], -2
        )
        / np.where(np.abs(determinant) < 1e-12, 1e-12, determinant)[:, None, None]
    )
    form = np.eye(2, dtype=np.float32) + inverse.transpose(0, 2, 1) @ inverse
    # Upper-triangular C with CᵀC = form.
    c00 = np.sqrt(form[:, 0, 0])
    c01 = form[:, 0, 1] / c00
    c11 = np.sqrt(np.maximum(form[:, 1, 1] - c01 * c01, 1e-12))
    factor = np.zeros_like(form)
    factor[:, 0, 0], factor[:, 0, 1], factor[:, 1, 1] = c00, c01, c11
    rows = np.concatenate([factor @ linear, factor @ shift[:, :, None], -factor], axis=2)  # (H, 2, 5)
    error = rows[:, 0] @ points
    np.square(error, out=error)
    other = rows[:, 1] @ points
    np.square(other, out=other)
    error += other
    return error


def _refine(
    transform: np.ndarray,
    points: np.ndarray,
    pairs: np.ndarray,
    scales: np.ndarray,
    limits: tuple[float, float],
    rounds: int,
) -> tuple[np.ndarray, np.ndarray, float]:
    """Fit an affine map to the inliers, look for inliers again, and so on; keep the best.

    Returns the inlier matches (numbers of pairs, one to one), the map (2, 3) and the mean squared error.
    """
    best, best_map, best_error = np.zeros(0, np.int64), transform, np.inf
    for _ in range(rounds + 1):
        linear = transform[None, :, :2].astype(np.float32)
        area = abs(float(np.linalg.det(transform[:, :2])))
        if area < 1e-8:
            break
        error = _symmetric_error(linear, transform[None, :, 2].astype(np.float32), points)[0]
        inside = (error < limits[0]) & (np.abs(scales - 0.5 * np.log(area)) < limits[1])
        chosen = _one_to_one(np.nonzero(inside)[0], pairs, error)
        mean = float(error[chosen].mean()) if len(chosen) else np.inf
        if (len(chosen), -mean) <= (len(best), -best_error):
            break
        best, best_map, best_error = chosen, transform, mean
        fitted = fit_affine(points[:2, chosen].T, points[3:, chosen].T)
        if fitted is None:
            break
        transform = fitted
    return best, best_map.astype(np.float64), best_error


def _one_to_one(chosen: np.ndarray, pairs: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Keep the matches that are the closest of both their features; then once more among what is left free."""
    chosen = chosen[np.argsort(error[chosen], kind="stable")]
    kept = []
    for _ in range(2):
        if not len(chosen):
            break
        firsts = [np.unique(pairs[chosen, side], return_index=True)[1] for side in (0, 1)]
        both = chosen[np.intersect1d(firsts[0], firsts[1], assume_unique=True)]
        kept.append(both)
        free = ~(np.isin(pairs[chosen, 0], pairs[both, 0]) | np.isin(pairs[chosen, 1], pairs[both, 1]))
        chosen = chosen[free]
    return np.sort(np.concatenate(kept)) if kept else chosen


def fit_affine(source: np.ndarray, target: np.ndarray) -> np.ndarray | None:
    """Least-squares affine map (2, 3) from points (N, 2) to points (N, 2).

    None where the points do not fix one: fewer than three, or all (nearly) on a line.
    """
    if len(source) < 3:
        return None
    middle = source.mean(axis=0, dtype=np.float64)
    centred = source - middle
    spread = centred.T @ centred
    if np.linalg.det(spread) < 1e-4 * max(np.trace(spread), 1e-12) ** 2:
        return None
    goal = target.mean(axis=0, dtype=np.float64)
    linear = np.linalg.solve(spread, centred.T @ (target - goal)).T
    return np.column_stack([linear, goal - linear @ middle])


def _chance(inliers: int, pairs: np.ndarray, options: VerificationOptions) -> float:
    """Expected number of hypotheses that as many of the matches would agree with if they were spread by chance.

    A match agrees by chance where it falls within the threshold (a part of the photo's area) at a fitting scale; with
    each feature counted once, inliers beyond the hypothesis's own follow a Poisson law (a contrario reasoning as in
    Moisan & Stival, IJCV 2004).
    """
    from scipy.special import gammainc

    features = min(len(np.unique(pairs[:, 0])), len(np.unique(pairs[:, 1])))
    expected = len(pairs) * np.pi * options.threshold**2 / 2
    return float(features * gammainc(max(inliers - 1, 1), expected))
