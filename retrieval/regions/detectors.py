"""Affine-covariant regions: scale-space extrema, adapted to the shape of the image around them."""

from dataclasses import dataclass, field

import cv2
import numpy as np

from index.errors import CairnError
from retrieval.regions.affine import AdaptationOptions, adapt_shapes
from retrieval.regions.geometry import ellipses_of_shapes
from retrieval.regions.scalespace import Octave, ScaleSpace, ScaleSpaceOptions, build_scale_space, find_extrema


@dataclass(frozen=True)
class RegionOptions:
    """How regions are detected."""

    detector: str = "dog-affine"  # or hessian-affine
    threshold: float | None = None  # smallest absolute response, grey values 0..255; None: the detector's own
    edge_ratio: float = 10.0  # largest ratio of principal curvatures (Lowe 2004, section 4.1)
    max_regions: int = 8000  # at most this many a photo, the strongest; 0: no limit
    adaptation: AdaptationOptions = field(default_factory=AdaptationOptions)  # iterated second-moment matrix


@dataclass(frozen=True)
class Detector:
    """What sets one detector apart from the other."""

    space: ScaleSpaceOptions  # its scale space
    threshold: float  # default threshold, chosen for the counts of Simonyan14 10.2.2
    radius: float  # radius of the detected region in units of the detection scale
    measurement_scale: float  # default enlargement of the detected region to the patch


DETECTORS = {
    # VLFeat's frame: the region has the radius of the scale itself, the patch reaches 12.5 of it (Simonyan14 Table 4).
    "dog-affine": Detector(ScaleSpaceOptions(double=True), threshold=2.0, radius=1.0, measurement_scale=12.5),
    # Mikolajczyk's frame: the region has three times the scale, the patch reaches √3 of it (Simonyan14 Table 5).
    "hessian-affine": Detector(ScaleSpaceOptions(double=False), threshold=6.5, radius=3.0, measurement_scale=3**0.5),
}


def find_detector(name: str) -> Detector:
    """Look a detector up by name; raises CairnError where there is none."""
    if name not in DETECTORS:
        raise CairnError(f"There is no detector {name!r}; choose one of {', '.join(DETECTORS)}.")
    return DETECTORS[name]


@dataclass(frozen=True)
class Regions:
    """Detected regions of one image, the strongest first."""

    ellipses: np.ndarray  # (N, 5) float32: x, y, a, b, c of a(u-x)² + 2b(u-x)(v-y) + c(v-y)² = 1, pixels of the image
    responses: np.ndarray  # (N,) float32, absolute response of the detector
    space: ScaleSpace  # the scale space they were found in

    def __len__(self) -> int:
        return len(self.ellipses)

    def where(self, mask: np.ndarray) -> "Regions":
        """Keep some of the regions."""
        return Regions(self.ellipses[mask], self.responses[mask], self.space)


def detect_regions(grey: np.ndarray, options: RegionOptions | None = None) -> Regions:
    """Detect affine-covariant regions.

    Parameters
    ----------
    grey : ndarray, shape (H, W), float32
        Grey values, 0 to 255.
    options : RegionOptions, optional
        The detector and its thresholds.

    Returns
    -------
    Regions
        Sorted by falling response. Empty where the image shows nothing, or is smaller than 16 pixels.

    Raises
    ------
    CairnError
        If the detector's name is unknown.

    Notes
    -----
    DoG-Affine: Lowe, IJCV 2004, with the affine adaptation of Mikolajczyk & Schmid, IJCV 2004. Hessian-Affine: the
    latter throughout. Both as used by Simonyan14, section 10.2.2.
    """
    options = options or RegionOptions()
    detector = find_detector(options.detector)
    space = build_scale_space(np.ascontiguousarray(grey, np.float32), detector.space)
    threshold = detector.threshold if options.threshold is None else options.threshold
    respond = _difference_of_gaussians if options.detector == "dog-affine" else _hessian_determinant
    edge_limit = (options.edge_ratio + 1) ** 2 / options.edge_ratio

    rows = []
    for octave in space.octaves:
        extrema = find_extrema(respond(octave), threshold)
        sigma = octave.sigmas[0] * 2.0 ** (extrema.level / detector.space.levels)
        row = np.stack(
            [
                extrema.x * octave.step + octave.offset,
                extrema.y * octave.step + octave.offset,
                sigma,
                np.abs(extrema.value),
            ]
        )
        rows.append(row[:, extrema.edge <= edge_limit])
    found = np.concatenate(rows, axis=1) if rows else np.zeros((4, 0))
    found = found[:, np.lexsort((found[0], found[1], -found[3]))]
    if options.max_regions:
        found = found[:, : options.max_regions]

    centres, sigma, response = found[:2].T, found[2], found[3]
    shapes, kept = adapt_shapes(space, centres, sigma, options.adaptation)
    ellipses = ellipses_of_shapes(centres[kept], shapes[kept] * detector.radius)
    return Regions(ellipses, response[kept].astype(np.float32), space)


def _difference_of_gaussians(octave: Octave) -> list[np.ndarray]:
    return [cv2.subtract(upper, lower) for lower, upper in zip(octave.levels, octave.levels[1:], strict=False)]


def _hessian_determinant(octave: Octave) -> list[np.ndarray]:
    """Scale-normalised determinant of the Hessian, σ⁴ (L_xx L_yy - L_xy²), under a signed square root.

    The root makes the response linear in contrast, as the difference of Gaussians is.
    """
    responses = []
    for level, sigma in zip(octave.levels[:-1], octave.sigmas, strict=False):
        scale = (sigma / octave.step) ** 2
        xx = cv2.sepFilter2D(level, cv2.CV_32F, np.array([1.0, -2.0, 1.0]), np.array([1.0]))
        yy = cv2.sepFilter2D(level, cv2.CV_32F, np.array([1.0]), np.array([1.0, -2.0, 1.0]))
        xy = cv2.sepFilter2D(level, cv2.CV_32F, np.array([-0.5, 0.0, 0.5]), np.array([-0.5, 0.0, 0.5]))
        determinant = xx * yy - xy * xy
        responses.append(np.copysign(np.sqrt(np.abs(determinant)) * np.float32(scale), determinant))
    return responses
