"""Close-ups of mined matches, as in Fig. 2 of Simonyan14: a feature, and its putative matches, in both photos."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from index.text import printable
from learning.mining.image_pairs import Overlaps, measurement_regions
from learning.mining.matches import MinedMatches
from retrieval.photos.decoding import Photo, read_colour, read_photo
from retrieval.photos.options import ImageOptions
from retrieval.regions.geometry import upright_frames
from retrieval.regions.overlap import inside_image, mean_radii, overlap_error, transfer_ellipses

KINDS = ("positive", "ambiguous", "negative")
"""Kinds of matches, by falling overlap."""

_DRAWN = 2  # most matches of a kind
_PAIRS = 12  # most image pairs tried for each wanted close-up
_FEATURES = 20  # most features of an image pair tried
_SIZE = 0.1  # good radius of a region, relative to the photo's shorter side
_REACH = 2.0  # size of the window for matches, relative to the extent of the feature's region
_LIKE = 2.0  # largest ratio of sizes of shown negatives
_TOUCHING = 0.02  # overlap of preferred negatives: distant ones are trivial
_MARGIN = 0.08  # margin of a crop around its drawings, relative to its side


@dataclass(frozen=True)
class Crop:
    """A part of a photo, in coordinates of the upright original, with pixel centres at integers."""

    pixels: NDArray[np.uint8]  # (H, W, 3) uint8; may be fewer than the original has
    extent: tuple[float, float, float, float]  # left, right, bottom, top edge of the pixels
    window: tuple[float, float, float, float]  # the same of the visible square, which may exceed the photo


@dataclass(frozen=True)
class PutativeMatch:
    """A putative match of a feature."""

    kind: str  # one of KINDS
    region: NDArray[np.float64]  # (5,) float64: measurement region, pixels of the target photo
    projected: NDArray[np.float64]  # (5,) float64: the same in the reference photo
    overlap: float  # intersection over union of the projection with the feature's measurement region


@dataclass(frozen=True)
class Closeup:
    """A feature of a reference photo, and some of its putative matches in a target photo."""

    reference: str  # name of the photo
    target: str
    region: NDArray[np.float64]  # (5,) float64: measurement region of the feature, pixels of the reference photo
    matches: tuple[PutativeMatch, ...]  # the matches shown, grouped by kind
    counts: dict[str, int]  # total number by kind
    overlaps: Overlaps  # thresholds between the kinds
    inliers: int  # of the map between the photos; 0 if it was known
    reference_crop: Crop
    target_crop: Crop


@dataclass(frozen=True)
class _Choice:
    """The feature and matches to show of an image pair."""

    pair: int
    x: int  # the feature
    region: NDArray[np.float64]
    matches: tuple[PutativeMatch, ...]

    @property
    def complete(self) -> bool:
        return {match.kind for match in self.matches} == set(KINDS)


def find_closeups(
    matches: MinedMatches,
    photos: dict[str, Path] | Sequence[Path],
    measurement_scale: float,
    image: ImageOptions,
    number: int = 3,
    seed: int = 0,
) -> list[Closeup]:
    """Choose illustrative features, each of another random image pair; fewer if too few pairs have both photos. Photos
    not in other close-ups are preferred, and features with all three kinds of matches, texture, and a round region of a
    good size.
    """
    paths = _paths_by_place(matches, photos)
    read: dict[int, Photo | None] = {}
    chosen: list[_Choice] = []
    spare: list[_Choice] = []
    used: set[int] = set()
    order = np.random.default_rng(seed).permutation(len(matches.pairs)).tolist()
    for pair in [pair for pair in order if paths.keys() >= set(matches.pairs[pair].tolist())][: _PAIRS * number]:
        if len(chosen) == number:
            break
        both = matches.pairs[pair].tolist()
        for place in both:
            if place not in read:
                read[place] = _read_as_mined(matches, place, paths[place], image)
        first, second = (read[place] for place in both)
        if first is None or second is None:
            continue
        choice = _choose(matches, pair, (first, second), measurement_scale)
        if choice is None:
            continue
        if choice.complete and not used & set(both):
            chosen.append(choice)
            used |= set(both)
        else:
            spare.append(choice)
    spare.sort(key=lambda choice: not choice.complete)
    return [_show(matches, choice, paths, read, image) for choice in (chosen + spare)[:number]]


def project_matches(
    region: NDArray[np.floating],
    targets: NDArray[np.floating],
    kinds: Sequence[str],
    homography: NDArray[np.floating],
) -> tuple[PutativeMatch, ...]:
    """Project matches (M, 5) into the reference photo; return also their overlap with a region there (Simonyan14,
    section 9).

    The homography maps the reference photo to the target photo.
    """
    projected = transfer_ellipses(targets, np.linalg.inv(homography))
    overlaps = _overlaps(region, projected)
    return tuple(PutativeMatch(*row) for row in zip(kinds, targets, projected, overlaps.tolist(), strict=True))


def ellipse_points(region: NDArray[np.floating], count: int = 180) -> NDArray[np.float64]:
    """Points (count, 2) float64 around the boundary of an ellipse (5,)."""
    angles = np.linspace(0, 2 * np.pi, count, endpoint=False)
    frame = upright_frames(region[None])[0]
    return np.asarray(region[:2] + np.column_stack([np.cos(angles), np.sin(angles)]) @ frame.T)


def _paths_by_place(matches: MinedMatches, photos: dict[str, Path] | Sequence[Path]) -> dict[int, Path]:
    """Files of photos with unique names, by index in ``matches.names``."""
    stems = list(photos.items()) if isinstance(photos, dict) else [(printable(path.stem), path) for path in photos]
    counts = Counter(name for name, _ in set(stems))
    mined = Counter(matches.names.tolist())
    paths = {name: path for name, path in stems if counts[name] == mined[name] == 1}
    return {place: paths[name] for place, name in enumerate(matches.names.tolist()) if name in paths}


def _read_as_mined(matches: MinedMatches, place: int, path: Path, image: ImageOptions) -> Photo | None:
    """Read a photo; None if it is unreadable, or features lie outside: the file has changed."""
    try:
        photo = read_photo(path, image)
    except CairnError:
        return None
    inside = inside_image(matches.ellipses[matches.photos == place], (photo.height, photo.width))
    return photo if inside.all() else None


def _choose(matches: MinedMatches, pair: int, photos: tuple[Photo, Photo], scale: float) -> _Choice | None:
    """Choose a feature of an image pair, and its matches to show; None if no feature fits the photos."""
    features = np.array(matches.of_pair(pair))
    references = matches.reference[features]
    regions = measurement_regions(matches.ellipses[references], scale)
    ambiguous = matches.ambiguous_starts[features + 1] > matches.ambiguous_starts[features]
    size = mean_radii(regions) / (_SIZE * min(photos[0].width, photos[0].height))
    texture = np.abs(np.diff(matches.patches[references].astype(np.float32), axis=2)).mean(axis=(1, 2))
    order = np.lexsort((-texture * np.minimum(size, 1 / size) * _roundness(regions), ~ambiguous))
    order = order[_fits(regions, photos[0])[order]]
    patches = matches.targets(pair)
    targets = measurement_regions(matches.ellipses[patches], scale)
    projected = transfer_ellipses(targets, np.linalg.inv(matches.homographies[pair]))
    visible = _fits(targets, photos[1]) & _fits(projected, photos[0])
    best = None
    for row in order[:_FEATURES].tolist():
        x, region = int(features[row]), regions[row]
        near = np.flatnonzero(visible & _surround(region, projected))
        kinds, rows = _shown_matches(matches, x, region, patches[near], projected[near])
        if "positive" not in kinds:
            continue
        putative = project_matches(region, targets[near[rows]], kinds, matches.homographies[pair])
        choice = _Choice(pair, x, region, putative)
        if choice.complete:
            return choice
        if best is None or len({match.kind for match in putative}) > len({match.kind for match in best.matches}):
            best = choice
    return best


def _shown_matches(
    matches: MinedMatches,
    x: int,
    region: NDArray[np.float64],
    patches: NDArray[np.int32],
    projected: NDArray[np.float64],
) -> tuple[list[str], list[int]]:
    """Kinds and rows of the matches to show of a feature, among those in its surroundings."""
    overlap = _overlaps(region, projected)
    positive, ambiguous = np.isin(patches, matches.positives(x)), np.isin(patches, matches.ambiguous(x))
    size = mean_radii(projected) / mean_radii(region[None])
    low = _thresholds(matches).low
    negative = ~positive & ~ambiguous & (size < _LIKE) & (size > 1 / _LIKE) & (overlap < low)
    if (negative & (overlap > _TOUCHING)).any():
        negative &= overlap > _TOUCHING
    kinds: list[str] = []
    rows: list[int] = []
    for kind, members in zip(KINDS, (positive, ambiguous, negative), strict=True):
        candidates = np.flatnonzero(members)
        for _ in range(min(_DRAWN, len(candidates))):
            # Choose each as far as possible from earlier ones.
            centres = np.concatenate([region[None, :2], projected[rows, :2]])
            apart = np.linalg.norm(projected[candidates, None, :2] - centres, axis=2).min(axis=1)
            choice = candidates[np.argmax(overlap[candidates] if kind == "positive" else apart)]
            candidates = candidates[candidates != choice]
            kinds.append(kind)
            rows.append(int(choice))
    return kinds, rows


def _show(
    matches: MinedMatches,
    choice: _Choice,
    paths: dict[int, Path],
    read: dict[int, Photo | None],
    image: ImageOptions,
) -> Closeup:
    first, second = matches.pairs[choice.pair].tolist()
    positives, ambiguous = len(matches.positives(choice.x)), len(matches.ambiguous(choice.x))
    targets = np.array([match.region for match in choice.matches])
    projected = np.array([match.projected for match in choice.matches])
    crops = []
    for place, regions in ((first, np.concatenate([choice.region[None], projected])), (second, targets)):
        photo = read[place]
        assert photo is not None
        crops.append(_crop(read_colour(paths[place], image), photo, regions))
    return Closeup(
        reference=str(matches.names[first]),
        target=str(matches.names[second]),
        region=choice.region,
        matches=choice.matches,
        counts={
            "positive": positives,
            "ambiguous": ambiguous,
            "negative": len(matches.targets(choice.pair)) - positives - ambiguous,
        },
        overlaps=_thresholds(matches),
        inliers=int(matches.inliers[choice.pair]),
        reference_crop=crops[0],
        target_crop=crops[1],
    )


def _crop(pixels: NDArray[np.uint8], photo: Photo, regions: NDArray[np.float64]) -> Crop:
    """Crop a photo (its working image in colour) to all the regions."""
    extents = _extents(regions)
    low, high = (regions[:, :2] - extents).min(axis=0), (regions[:, :2] + extents).max(axis=0)
    middle, half = (low + high) / 2, (high - low).max() * (0.5 + _MARGIN)
    # Away from the photo's border, if possible.
    least, most = half - 0.5, np.array([photo.width, photo.height]) - 0.5 - half
    middle = np.where(least <= most, np.clip(middle, least, np.maximum(least, most)), middle)
    corners = photo.to_working(np.array([middle - half, middle + half]))
    size = np.array(pixels.shape[1::-1])
    (left, top), (right, bottom) = np.clip([np.floor(corners[0] + 0.5), np.ceil(corners[1] + 0.5)], 0, size).astype(int)
    edges = photo.to_original(np.array([[left, top], [right, bottom]], np.float64) - 0.5)
    (x0, y0), (x1, y1) = edges.tolist()
    window = (middle[0] - half, middle[0] + half, middle[1] + half, middle[1] - half)
    return Crop(pixels[top:bottom, left:right].copy(), (x0, x1, y1, y0), window)


def _surround(region: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether ellipses (M, 5) lie in the visible square around a region (5,)."""
    reach = _REACH * _extents(region[None]).max()
    return np.asarray((np.abs(others[:, :2] - region[:2]) + _extents(others) <= reach).all(axis=1))


def _fits(regions: NDArray[np.float64], photo: Photo) -> NDArray[np.bool_]:
    """Whether ellipses (N, 5) lie wholly in a photo; False for NaN."""
    low, high = regions[:, :2] - _extents(regions), regions[:, :2] + _extents(regions)
    return np.asarray(((low >= -0.5) & (high <= (photo.width - 0.5, photo.height - 0.5))).all(axis=1))


def _extents(regions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Half extents (N, 2) of ellipses along x and y."""
    a, b, c = regions[:, 2:].T
    with np.errstate(all="ignore"):  # projections from near the horizon have no finite size
        return np.asarray(np.sqrt(np.column_stack([c, a]) / (a * c - b * b)[:, None]))


def _roundness(regions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shorter axis over longer one (N,) of ellipses (N, 5)."""
    a, b, c = regions[:, 2:].T
    apart = np.hypot((a - c) / 2, b)
    return np.asarray(np.sqrt(((a + c) / 2 - apart) / ((a + c) / 2 + apart)))


def _overlaps(region: NDArray[np.floating], others: NDArray[np.floating]) -> NDArray[np.floating]:
    """Overlap (M,), intersection over union, of an ellipse (5,) with others (M, 5)."""
    pairs = np.column_stack([np.zeros(len(others), np.int64), np.arange(len(others))])
    return 1 - overlap_error(region[None], others, pairs)


def _thresholds(matches: MinedMatches) -> Overlaps:
    return Overlaps(**matches.meta.get("options", {}).get("overlaps", {}))
