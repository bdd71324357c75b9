"""Patches: the measurement regions of an image, rectified and sampled without aliasing."""

from collections.abc import Iterator

import cv2
import numpy as np
from numpy.typing import NDArray

from retrieval.regions.scalespace import ScaleSpace, as_line

_MOST_PIXELS = 2**31 - 1  # of a level: compiled functions use 32-bit integers for places


def sample_frames(
    space: ScaleSpace,
    levels: NDArray[np.int64],
    centres: NDArray[np.float64],
    frames: NDArray[np.float64],
    grid: NDArray[np.float32],
) -> NDArray[np.float32]:
    """Sample an image through affine frames (N, 2, 2), maps from the `grid` (2, S, S) to pixels around the centres (N,
    2): patches (N, S, S), linearly interpolated at places rounded to 1/32 of the level's pixels; beyond the border the
    image is continued by its border pixels. `levels` (N,): see `ScaleSpace.level`; frames of one level that follow each
    other are sampled in one call: quickest in `sampling_order`.
    """
    from retrieval.regions.sampling_kernels import sample  # imported here, as Numba loads slowly

    number, size = len(centres), grid.shape[-1]
    patches = np.empty((number, size, size), np.float32)
    rows, points = patches.reshape(number, size * size), grid.reshape(2, -1)
    centres, frames = np.ascontiguousarray(centres, np.float64), np.ascontiguousarray(frames, np.float64)
    for part, level in level_runs(space, levels):
        sample(level, centres[part], frames[part], points, rows[part])
    return patches


def level_runs(
    space: ScaleSpace, levels: NDArray[np.int64]
) -> Iterator[tuple[slice, tuple[NDArray[np.float32], int, int, int, float, float]]]:
    """Yield the runs of frames that are sampled from one level, with that level in the form for compiled functions."""
    begins = np.flatnonzero(np.diff(levels, prepend=levels[:1] - 1)).tolist()
    for begin, end in zip(begins, [*begins, len(levels)][1:], strict=True):
        pixels, step, offset = space.level(int(levels[begin]))
        if min(pixels.shape) < 2:  # interpolation needs two samples
            pixels = np.pad(pixels, ((0, 1), (0, 1)), "edge")
        line, (stride, _) = as_line(pixels)
        if len(line) > _MOST_PIXELS:
            raise ValueError(f"an image of {pixels.shape[1]}x{pixels.shape[0]} pixels is too large to be sampled")
        yield slice(begin, end), (line, stride, *pixels.shape, step, offset)


def sampling_order(levels: NDArray[np.int64], centres: NDArray[np.float64]) -> NDArray[np.int64]:
    """Order (N,) in which frames are best sampled: level by level, and neighbours, which share pixels, together."""
    return np.lexsort((centres[:, 1], levels))


def patch_grid(size: int) -> NDArray[np.float32]:
    """Grid (2, S, S) float32 that spans -1 to 1 from the first sample to the last."""
    axis = np.linspace(-1, 1, size, dtype=np.float32)
    return np.stack(np.meshgrid(axis, axis))


def extract_patches(
    space: ScaleSpace, centres: NDArray[np.float64], frames: NDArray[np.float64], size: int
) -> NDArray[np.float32]:
    """Cut the measurement regions, maps (N, 2, 2) from [-1, 1]² around centres (N, 2), out of an image as patches (N,
    S, S), each from the level whose smoothing suits its scale.
    """
    levels = patch_levels(space, frames, size)
    order = sampling_order(levels, centres)
    patches = np.empty((len(centres), size, size), np.float32)
    patches[order] = sample_frames(space, levels[order], centres[order], frames[order], patch_grid(size))
    return patches


def patch_levels(space: ScaleSpace, frames: NDArray[np.float64], size: int) -> NDArray[np.int64]:
    """Levels (N,) int64 of a scale space that suit measurement regions (see `extract_patches`)."""
    spacing = np.sqrt(np.abs(np.linalg.det(frames))) * 2 / (size - 1)
    # Sampling at this spacing requires half a sample of smoothing, the same as a camera's image has.
    return space.finest(0.62 * spacing)


def resample_patches(patches: NDArray[np.number], size: int, share: float = 1.0) -> NDArray[np.float32]:
    """Resample patches (N, S, S) to another number of samples along a side, with the outermost ones in place; smoothed
    first if that is coarser, as in `extract_patches`, to avoid aliasing. `share`: central part of the patch's side to
    use, at most 1.
    """
    grey = np.asarray(patches, np.float32)
    spacing = share * (grey.shape[1] - 1) / (size - 1)
    if spacing == share == 1:
        return grey
    grid = ((share * patch_grid(size) + 1) * ((grey.shape[1] - 1) / 2)).astype(np.float32)
    # A camera's image is assumed to have half a sample of smoothing already; this is the total wanted.
    sigma = 0.5 * np.sqrt(max(spacing**2 - 1, 0))
    resampled = np.empty((len(grey), size, size), np.float32)
    for number, patch in enumerate(grey):
        smooth = cv2.GaussianBlur(patch, (0, 0), sigma) if sigma > 0 else patch
        resampled[number] = cv2.remap(smooth, grid[0], grid[1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return resampled
