"""Random rendered views of photos: pairs of images with a known map.

If few photos overlap, or finding them takes long, a photo and a view of it show the effects of a camera change on a
region: shifts of the detector, and light, blur, noise and compression in the patch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from index.arrays import save_bytes
from index.errors import CairnError
from learning.patches.distortion import draw_linear, expose
from retrieval.photos.decoding import Photo, read_photo
from retrieval.photos.options import ImageOptions


@dataclass(frozen=True)
class ViewOptions:
    """How views differ from their photos. Standard deviations unless stated otherwise."""

    rotation: float = 9.0  # degrees
    scale: float = 0.2  # of the logarithm
    stretch: float = 0.15  # of the logarithm, along a random direction; the reverse across it
    slant: float = 0.15  # of the scale's change from one end of the photo to the other
    gamma: float = 0.25  # of the logarithm of the gamma exponent
    blur: float = 1.5  # pixels, at most, for one view in two
    noise: float = 7.0  # grey values, at most, for one view in two
    quality: tuple[int, int] = (40, 95)  # of the JPEG, drawn evenly from these two on and below


@dataclass(frozen=True)
class RenderedView:
    """A view of a photo, in a file."""

    path: Path
    homography: NDArray[np.float64]  # (3, 3) float64: pixels of the upright original to those of the view


def write_view(
    path: Path, image: ImageOptions, target: Path, options: ViewOptions, seed: Sequence[int]
) -> RenderedView:
    """Render a view of a photo, and write it as a JPEG atomically."""
    try:
        photo = read_photo(path, image)
    except CairnError as error:
        raise CairnError(f"{path} can no longer be read ({error}): mine again.") from error
    rng = np.random.default_rng(seed)
    warp = draw_warp(photo.grey.shape, rng, options)
    view = render(photo.grey, warp, rng, options)
    quality = int(rng.integers(options.quality[0], options.quality[1], endpoint=True))
    done, encoded = cv2.imencode(".jpg", view, [cv2.IMWRITE_JPEG_QUALITY, quality])
    if not done:
        raise CairnError(f"No view of {path} can be written.")
    save_bytes(target, encoded.tobytes())
    return RenderedView(target, warp @ _to_working(photo))


def draw_warp(shape: tuple[int, ...], rng: np.random.Generator, options: ViewOptions) -> NDArray[np.float64]:
    """Draw a homography (3, 3) float64 from the pixels of a photo (H, W) to those of a view of the same size."""
    height, width = shape[:2]
    linear = draw_linear(rng, options.rotation, options.stretch, options.scale)
    slant, towards = options.slant * np.clip(rng.standard_normal(), -2, 2), rng.uniform(0, 2 * np.pi)
    warp = np.eye(3)
    warp[:2, :2] = linear
    # Relative change of depth from the middle to half the diagonal.
    warp[2, :2] = slant * np.array([np.cos(towards), np.sin(towards)]) / np.hypot(height, width)
    middle = np.array([[1, 0, (width - 1) / 2], [0, 1, (height - 1) / 2], [0, 0, 1.0]])
    return np.asarray(middle @ warp @ np.linalg.inv(middle))


def render(
    grey: NDArray[np.float32], warp: NDArray[np.float64], rng: np.random.Generator, options: ViewOptions
) -> NDArray[np.uint8]:
    """Render a view (H, W) uint8 of a photo; the border is replicated outside."""
    height, width = grey.shape
    # Smooth before downscaling.
    shrink = 1 / np.sqrt(abs(np.linalg.det(warp[:2, :2])))
    source = cv2.GaussianBlur(grey, (0, 0), 0.5 * np.sqrt(shrink**2 - 1)) if shrink > 1.05 else grey
    view: NDArray[Any] = cv2.warpPerspective(source, warp, (width, height), borderMode=cv2.BORDER_REPLICATE)
    return expose(view, rng, options.blur, options.gamma, options.noise)


def _to_working(photo: Photo) -> NDArray[np.float64]:
    """Matrix (3, 3) from pixels of the upright original to pixels of the working image."""
    across, down = photo.scale
    return np.array([[1 / across, 0, 0.5 / across - 0.5], [0, 1 / down, 0.5 / down - 0.5], [0, 0, 1]])
