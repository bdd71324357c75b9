"""Features of a photo: regions, frames and descriptors, in coordinates of the upright original."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from index.parallel import one_thread
from retrieval.descriptors.contract import Descriptor, check_distance, describe_both
from retrieval.descriptors.gradients import dominant_orientation
from retrieval.features.halves import to_half
from retrieval.features.options import FeatureOptions, features_fingerprint
from retrieval.photos.decoding import Photo, read_photo
from retrieval.photos.options import ImageOptions
from retrieval.regions.detection import Regions, detect_regions, known_regions, mostly_in
from retrieval.regions.detectors.registry import find_detector
from retrieval.regions.geometry import rotations, upright_frames
from retrieval.regions.patches import patch_grid, patch_levels, sample_frames, sampling_order

_CHUNK = 512  # regions at a time: their patches fit the third-level cache


@dataclass(frozen=True)
class Features:
    """Features of one photo."""

    ellipses: NDArray[np.float32]  # (N, 5) float32 detected regions, pixels of the upright original
    angles: NDArray[np.float32]  # (N,) float32, rotation of the patch from its upright frame, radians
    descriptors: NDArray[np.float16]  # (N, D), in the precision in which they are stored
    keypoints: NDArray[np.float32] | None = None  # of another program, with their rows: see `KEYPOINT`

    def __len__(self) -> int:
        return len(self.ellipses)


class Extractor:
    """Extracts the features of photos. `measurement_scale`: ratio of the size of the measurement region to that of the
    detected one: from the options, or else the detector's own times the factor of the descriptor.
    """

    is_foreign = False
    """Whether features are of another program or an extension: no photo is described at a turn."""
    reads_files = False
    """Whether they come from files of another program: no pixel is looked at."""

    @property
    def is_ready(self) -> bool:
        """Whether photos can be described now; with features from files, only if the files are known."""
        return True

    def __init__(self, descriptor: Descriptor, options: FeatureOptions) -> None:
        self.descriptor = descriptor
        self.options = options
        detector = find_detector(options.regions.detector)
        check_distance(descriptor)
        wanted = options.measurement_scale
        self.region_scale = detector.measurement_scale if wanted is None else wanted
        self.measurement_scale = self.region_scale * descriptor.extent if wanted is None else wanted
        if not 0 < self.measurement_scale < np.inf:
            raise CairnError(f"The measurement scale must be a positive number, not {self.measurement_scale}.")
        self.fingerprint = features_fingerprint(descriptor, options)

    def read(self, path: Path, image: ImageOptions) -> Photo:
        """Read a photo, and any other input of extraction."""
        photo = read_photo(path, image)
        if self.options.ignore is None:
            return photo
        from retrieval.features.text import find_text

        with one_thread():
            text = find_text(path, photo)
        return replace(photo, text=text, remarks=replace(photo.remarks, text=bool(text.any())))

    def detect(self, photo: Photo, within: tuple[float, float, float, float] | None = None) -> Regions:
        """Detect regions, in pixels of the working image, within a box in pixels of the upright original."""
        box = None
        if within is not None:
            (x0, y0), (x1, y1) = photo.to_working(np.array(within, np.float64).reshape(2, 2)).tolist()
            box = (x0, y0, x1, y1)
        with one_thread():
            regions = detect_regions(photo.grey, self.options.regions, box, photo.text)
        if photo.text is None:
            return regions
        return regions.where(~mostly_in(regions.ellipses, photo.text, self.measurement_scale))

    def known(self, photo: Photo, ellipses: NDArray[np.float32]) -> Regions:
        """Use known regions (N, 5), in pixels of the upright original, in place of detection, for a query."""
        with one_thread():
            return known_regions(photo.grey, to_working(ellipses, photo), self.options.regions, quick=True)

    def describe(self, photo: Photo, regions: Regions, turn: float = 0.0) -> Features:
        """Describe regions of a photo whose content is turned clockwise by an angle in radians."""
        with one_thread():
            return self._describe(photo, regions, turn, both=False)[0]

    def describe_both(
        self, photo: Photo, regions: Regions, turn: float = 0.0
    ) -> tuple[Features, NDArray[np.float16] | None]:
        """Describe regions, and also at half a turn further, (N, D), or None if this needs a second description."""
        with one_thread():
            return self._describe(photo, regions, turn, both=True)

    def _describe(
        self, photo: Photo, regions: Regions, turn: float, *, both: bool
    ) -> tuple[Features, NDArray[np.float16] | None]:
        centres = regions.ellipses[:, :2].astype(np.float64)
        frames = upright_frames(regions.ellipses, turn) * self.measurement_scale
        size = self.descriptor.patch_size
        levels = patch_levels(regions.space, frames, size)
        order = sampling_order(levels, centres)
        grid = patch_grid(size)
        angles = np.zeros(len(regions), np.float32)
        rows = np.empty((len(regions), self.descriptor.dim), np.float16)
        opposite = np.empty_like(rows) if both else None
        for start in range(0, len(regions), _CHUNK):
            part = order[start : start + _CHUNK]
            place = levels[part], centres[part]
            patches = sample_frames(regions.space, *place, frames[part], grid)
            if not self.options.upright:
                angles[part] = dominant_orientation(patches)
                patches = sample_frames(regions.space, *place, frames[part] @ rotations(angles[part]), grid)
            if opposite is None:
                rows[part] = to_half(self.descriptor.describe(patches))
                continue
            straight, turned = describe_both(self.descriptor, patches)
            rows[part] = to_half(straight)
            if turned is None:
                opposite = None
            else:
                opposite[part] = to_half(turned)
        return Features(to_original(regions.ellipses, photo), angles, rows), opposite

    def extract(self, photo: Photo) -> Features:
        """Detect and describe."""
        return self.describe(photo, self.detect(photo))


def to_working(ellipses: NDArray[np.float32], photo: Photo) -> NDArray[np.float32]:
    """Move ellipses from the upright original's pixels to the working image's."""
    across, down = photo.scale
    rows = np.empty_like(ellipses)
    rows[:, :2] = photo.to_working(ellipses[:, :2])
    rows[:, 2:] = ellipses[:, 2:] * np.array([across * across, across * down, down * down], np.float32)
    return rows


def to_original(ellipses: NDArray[np.float32], photo: Photo) -> NDArray[np.float32]:
    """Move ellipses from the working image's pixels to the upright original's."""
    across, down = photo.scale
    rows = np.empty_like(ellipses)
    rows[:, :2] = photo.to_original(ellipses[:, :2])
    rows[:, 2] = ellipses[:, 2] / (across * across)
    rows[:, 3] = ellipses[:, 3] / (across * down)
    rows[:, 4] = ellipses[:, 4] / (down * down)
    return rows
