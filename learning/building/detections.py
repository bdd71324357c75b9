"""Interest points of a photo and the 64 x 64 patches around them."""

from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from learning.building.correspondence import Detections
from learning.building.harris import harris_corners
from learning.building.options import POINTS, DetectionOptions
from learning.patches.phototour import PATCH
from retrieval.descriptors.gradients import dominant_orientation
from retrieval.photos.decoding import Photo, read_photo
from retrieval.photos.options import ImageOptions
from retrieval.regions.detection import detect_regions
from retrieval.regions.detectors.registry import find_detector
from retrieval.regions.geometry import rotations, upright_frames
from retrieval.regions.options import RegionOptions
from retrieval.regions.patches import extract_patches
from retrieval.regions.scalespace import ScaleSpace, ScaleSpaceOptions, build_scale_space

SIFT_SIDE = 6.75
"""Ratio of a patch's side to an OpenCV keypoint's size, as in OpenCV for descriptors learnt on the PhotoTour sets."""


def read_full(path: Path) -> Photo:
    """Read a photo at its full size."""
    try:
        return read_photo(path, ImageOptions(max_side=0))
    except CairnError as error:
        raise CairnError(f"{path} cannot be read: {error}.") from error


def keypoint_frames(sizes: NDArray[np.float64], degrees: NDArray[np.float64]) -> NDArray[np.float64]:
    """Frames (N, 2, 2) of keypoints, by OpenCV's size (pixels) and angle (degrees, from x towards y).

    A patch covers 6.75 sizes from the outer edge of its first pixel to that of its last, so the centres of these two
    pixels are 63/64 of that apart.
    """
    half = SIFT_SIDE * np.asarray(sizes, np.float64) / 2 * ((PATCH - 1) / PATCH)
    return rotations(np.radians(np.asarray(degrees, np.float64))) * half[:, None, None]


def keypoint_space(photo: Photo) -> ScaleSpace:
    """Scale space to cut keypoints' patches from."""
    return build_scale_space(photo.grey, ScaleSpaceOptions(double=False))


def detect(photo: Photo, options: DetectionOptions) -> tuple[Detections, NDArray[np.uint8]]:
    """Detect, and cut the patches (N, 64, 64) that lie wholly inside the photo, strongest first."""
    if options.detector in POINTS:
        space = keypoint_space(photo)
        detections = _detect_sift(photo) if options.detector == "sift" else _detect_harris(photo, space)
    else:
        detections, space = _detect_regions(photo, options)
    detections = detections.take(detections.sides >= options.min_side)
    if options.max_detections:
        detections = detections.take(np.arange(len(detections)) < options.max_detections)
    rows, patches = cut(photo, space, detections)
    return detections.take(rows), patches


def cut(photo: Photo, space: ScaleSpace, detections: Detections) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Cut the patches that lie wholly inside a photo; also return their rows in `detections`."""
    rows = np.flatnonzero(inside(detections, photo.grey.shape))
    patches = extract_patches(space, detections.centres[rows], detections.frames[rows], PATCH)
    return rows, np.clip(np.rint(patches), 0, 255).astype(np.uint8)


def inside(detections: Detections, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Mask (N,) of detections whose patch lies wholly inside an image (H, W): the centres of all its pixels do."""
    corners = np.array([[-1.0, 1, 1, -1], [-1, -1, 1, 1]])
    points = detections.frames @ corners + detections.centres[:, :, None]
    limit = np.array([[shape[1] - 1], [shape[0] - 1]])
    return np.asarray(((points >= 0) & (points <= limit)).all(axis=(1, 2)))


def _detect_sift(photo: Photo) -> Detections:
    sift = cv2.SIFT.create(enable_precise_upscale=True)
    keypoints = sift.detect(np.rint(photo.grey).astype(np.uint8), None)
    rows = np.array(
        [(one.pt[0], one.pt[1], one.size, one.angle, one.response) for one in keypoints], np.float64
    ).reshape(-1, 5)
    # Sort by all columns, so that the order does not depend on OpenCV's threads.
    rows = np.unique(rows, axis=0)
    rows = rows[np.lexsort((rows[:, 3], rows[:, 2], rows[:, 1], rows[:, 0], -rows[:, 4]))]
    return Detections(rows[:, :2], keypoint_frames(rows[:, 2], rows[:, 3]))


def _detect_harris(photo: Photo, space: ScaleSpace) -> Detections:
    """Corners with the dominant orientation of their patches; patch sizes relative to scale are as for keypoints."""
    corners = harris_corners(photo.grey)
    centres = corners[:, :2]
    # The size of OpenCV's keypoints is twice their scale.
    frames = keypoint_frames(2 * corners[:, 2], np.zeros(len(corners)))
    turns = dominant_orientation(extract_patches(space, centres, frames, PATCH))
    return Detections(centres, frames @ rotations(turns.astype(np.float64)))


def _detect_regions(photo: Photo, options: DetectionOptions) -> tuple[Detections, ScaleSpace]:
    regions = detect_regions(photo.grey, RegionOptions(options.detector, max_regions=0))
    scale = options.measurement_scale or find_detector(options.detector).measurement_scale
    centres = regions.ellipses[:, :2].astype(np.float64)
    frames = upright_frames(regions.ellipses) * scale
    if not options.upright:
        frames = frames @ rotations(dominant_orientation(extract_patches(regions.space, centres, frames, PATCH)))
    return Detections(centres, frames, oriented=not options.upright), regions.space
