"""Regions of an image, their patches and descriptors: the steps of indexing."""

from dataclasses import replace
from os import PathLike

import numpy as np
from numpy.typing import ArrayLike, NDArray

from index.errors import CairnError
from index.extensions import named
from index.parallel import one_thread
from retrieval.descriptors import contract
from retrieval.descriptors.gradients import dominant_orientation
from retrieval.features.extraction import Extractor, Features
from retrieval.features.options import FeatureOptions
from retrieval.library.parts.arguments import checked_count, checked_regions
from retrieval.library.parts.descriptor import Descriptor, contract_of
from retrieval.library.parts.images import as_photo
from retrieval.photos.options import ImageOptions
from retrieval.regions.detection import known_regions
from retrieval.regions.detectors.registry import find_detector
from retrieval.regions.geometry import rotations, upright_frames
from retrieval.regions.options import RegionOptions
from retrieval.regions.patches import extract_patches

_WHOLE = ImageOptions(max_side=0)
AnyDescriptor = str | PathLike[str] | Descriptor | contract.Descriptor
"""A descriptor by its name or file, a `Descriptor`, or an object of one's own that keeps the contract."""


def detect(image: ArrayLike, *, detector: str | object = "dog-affine", max_features: int = 0) -> NDArray[np.float32]:
    """Detect affine-covariant regions, which can be detected again in another photo of the same object.

    Parameters
    ----------
    image : array_like, shape (H, W) or (H, W, 3)
        uint8 (0 to 255), uint16, or floats from 0 to 1. It is not resized: `cairn index` reduces photos to a longer
        side of 1024 pixels first.
    detector : str or object
        ``dog-affine`` (extrema of the difference of Gaussians; Lowe, IJCV 2004) or ``hessian-affine`` (of the
        determinant of the Hessian; Mikolajczyk & Schmid, IJCV 2004), both with affine adaptation; or your own detector.
    max_features : int
        Largest number, strong and spread over the image; 0: all, 8,000 at most.

    Returns
    -------
    ndarray, shape (N, 5), float32
        Rows x, y, a, b, c, the strongest first: the ellipse a(u-x)² + 2b(u-x)(v-y) + c(v-y)² = 1 in pixels, the centre
        of the top-left pixel at (0, 0). Empty if the image shows nothing, or is smaller than 16 pixels.

    Raises
    ------
    CairnError
        The image is invalid, or the detector unknown.

    Examples
    --------
    >>> import skimage.data
    >>> import cairn
    >>> image = skimage.data.coins()[:160, :160]
    >>> regions = cairn.detect(image, max_features=50)
    >>> regions.shape[1], 20 < len(regions) <= 50
    (5, True)
    """
    regions = RegionOptions(
        detector=named("detector", detector), max_features=checked_count(max_features, "max_features", 0)
    )
    extractor = Extractor(contract_of("sift"), FeatureOptions(regions))  # detection does not use the descriptor
    return extractor.detect(as_photo(image, _WHOLE)).ellipses


def patches(
    image: ArrayLike,
    regions: ArrayLike,
    size: int = 64,
    *,
    upright: bool = True,
    measurement_scale: float | None = None,
    detector: str | object = "dog-affine",
) -> NDArray[np.float32]:
    """Cut regions out of an image, each mapped to a square, as input of descriptors.

    Parameters
    ----------
    image : array_like
        See `detect`.
    regions : array_like, shape (N, 5)
        From `detect`; N may be 0.
    size : int
        Samples along a side, S: at least 2.
    upright : bool
        Keep "down" down; False: rotate each patch to its dominant orientation.
    measurement_scale : float, optional
        Ratio of the size of the patch to that of the region; by default the detector's own (12.5 for ``dog-affine``,
        whose regions are small).
    detector : str or object
        Detector of the regions, whose scale space is sampled.

    Returns
    -------
    ndarray, shape (N, S, S), float32
        Grey values, 0 to 255, smoothed to avoid aliasing; the border of the image is repeated beyond it.

    Raises
    ------
    CairnError
        The image, the regions or an option are not as above.

    Examples
    --------
    >>> import skimage.data
    >>> import cairn
    >>> image = skimage.data.coins()[:160, :160]
    >>> squares = cairn.patches(image, cairn.detect(image, max_features=10), size=32)
    >>> squares.shape[1:], squares.dtype
    ((32, 32), dtype('float32'))
    """
    rows, grey = checked_regions(regions), as_photo(image, _WHOLE).grey
    size = checked_count(size, "size", 2)
    scale = (
        find_detector(named("detector", detector)).measurement_scale if measurement_scale is None else measurement_scale
    )
    if not 0 < scale < np.inf:
        raise CairnError(f"The measurement scale must be a positive number, not {scale}.")
    with one_thread():
        space = known_regions(grey, rows, RegionOptions(detector=named("detector", detector))).space
        centres, frames = rows[:, :2].astype(np.float64), upright_frames(rows) * scale
        cut = extract_patches(space, centres, frames, size)
        if upright or not len(cut):
            return cut
        return extract_patches(space, centres, frames @ rotations(dominant_orientation(cut)), size)


def describe(
    image: ArrayLike,
    regions: ArrayLike,
    descriptor: AnyDescriptor = "rootsift",
    *,
    upright: bool = True,
    measurement_scale: float | None = None,
    detector: str | object = "dog-affine",
) -> NDArray[np.float32]:
    """Describe regions of an image by rows of numbers.

    Parameters
    ----------
    image : array_like
        See `detect`.
    regions : array_like, shape (N, 5)
        From `detect`; N may be 0.
    descriptor : str, path, Descriptor or object
        A name, such as ``rootsift``, ``sift``, ``surf`` or ``cairn``; a file (.npz); a `Descriptor`; or an object with
        the attributes and methods of `retrieval.descriptors.contract.Descriptor`.
    upright : bool
        Keep "down" down; False: rotate each patch to its dominant orientation (see `orientations`).
    measurement_scale : float, optional
        See `patches`; multiplied by the factor of the descriptor.
    detector : str or object
        Detector of the regions.

    Returns
    -------
    ndarray, shape (N, D), float32
        Rounded to half precision, as stored by indexing: equal to those of an indexed photo of that size, except that
        grey values of a JPEG may differ (see `cairn.as_image`).

    Raises
    ------
    CairnError
        The image, the regions or an option are not as above; or the descriptor is not compared by distance.

    Examples
    --------
    >>> import skimage.data
    >>> import cairn
    >>> image = skimage.data.coins()[:160, :160]
    >>> regions = cairn.detect(image, max_features=10)
    >>> rows = cairn.describe(image, regions, "rootsift")
    >>> rows.shape == (len(regions), 128)
    True
    """
    rows = _described(image, regions, descriptor, upright, measurement_scale, detector)
    return rows.descriptors.astype(np.float32)


def orientations(
    image: ArrayLike,
    regions: ArrayLike,
    descriptor: AnyDescriptor = "rootsift",
    *,
    measurement_scale: float | None = None,
    detector: str | object = "dog-affine",
) -> NDArray[np.float32]:
    """Find the dominant orientation of regions: the angle by which ``describe(..., upright=False)`` rotates each patch.

    Parameters
    ----------
    image, regions, descriptor, measurement_scale, detector
        See `describe`.

    Returns
    -------
    ndarray, shape (N,), float32
        Radians, from x towards y; `verify` takes them as angles.

    Examples
    --------
    >>> import numpy as np
    >>> import cairn
    >>> ramp = np.tile(np.arange(64, dtype=np.uint8) * 4, (64, 1))  # brighter to the right
    >>> round(float(cairn.orientations(ramp, [[32, 32, 0.5, 0, 0.5]])[0]), 2)
    0.0
    """
    return _described(image, regions, descriptor, False, measurement_scale, detector).angles


def features_fingerprint(
    descriptor: AnyDescriptor = "rootsift",
    *,
    detector: str | object = "dog-affine",
    max_features: int = 0,
    upright: bool = True,
    measurement_scale: float | None = None,
) -> str:
    """Fingerprint of how features are made: only descriptors of the same fingerprint can be compared.

    To use a vocabulary in a collection, train it with the fingerprint of the collection's options.

    Parameters
    ----------
    descriptor, detector, max_features, upright, measurement_scale
        See `detect` and `describe`.

    Returns
    -------
    str
        SHA-256, 64 hexadecimal digits.

    Examples
    --------
    >>> from retrieval.library.parts.features import features_fingerprint
    >>> features_fingerprint("sift") == features_fingerprint("rootsift")
    False
    """
    extractor = _extractor(descriptor, upright, measurement_scale, detector)
    regions = RegionOptions(
        detector=named("detector", detector), max_features=checked_count(max_features, "max_features", 0)
    )
    return Extractor(extractor.descriptor, replace(extractor.options, regions=regions)).fingerprint


def _described(
    image: ArrayLike,
    regions: ArrayLike,
    descriptor: AnyDescriptor,
    upright: bool,
    measurement_scale: float | None,
    detector: str | object,
) -> Features:
    extractor = _extractor(descriptor, upright, measurement_scale, detector)
    rows, photo = checked_regions(regions), as_photo(image, _WHOLE)
    with one_thread():
        known = known_regions(photo.grey, rows, extractor.options.regions)
    return extractor.describe(photo, known)


def _extractor(
    descriptor: AnyDescriptor, upright: bool, measurement_scale: float | None, detector: str | object
) -> Extractor:
    options = FeatureOptions(RegionOptions(detector=named("detector", detector)), measurement_scale, upright)
    return Extractor(contract_of(descriptor), options)
