"""Distorted copies of training patches: further views, focus, light and noise.

Ours, not the paper's, whose 500,000 pairs cover many views: models of few scenes generalise better with it.
"""

from dataclasses import asdict, dataclass, replace

import cv2
import numpy as np
from numpy.typing import NDArray

from index.arrays import fingerprint
from learning.patches.distortion import draw_linear, expose
from learning.patches.phototour import PatchPairs
from learning.patches.sources import Patches, PatchFolder


@dataclass(frozen=True)
class AugmentationOptions:
    """How patches are distorted. Standard deviations unless stated otherwise."""

    copies: int = 2  # copies of each training pair, each with one of its two patches distorted; 0: none
    rotation: float = 9.0  # degrees
    scale: float = 0.1  # of the logarithm
    stretch: float = 0.12  # of the logarithm, along a random direction; the reverse across it
    shift: float = 0.024  # of the patch's side
    gamma: float = 0.25  # of the logarithm of the gamma exponent
    blur: float = 0.028  # of the patch's side, at most, for one patch in two
    noise: float = 7.0  # grey values, at most, for one patch in two
    seed: int = 0


class AugmentedPatches:
    """A patch set and its distorted copies: number `n + c * len(patches)` is copy `c` of patch `n`."""

    def __init__(self, patches: Patches, options: AugmentationOptions) -> None:
        self.patches = patches
        self.options = options
        self.folder = patches.folder
        self.fingerprint = fingerprint({}, {"patches": patches.fingerprint, "augmentation": asdict(options)})

    def __len__(self) -> int:
        return len(self.patches) * (1 + self.options.copies)

    def read(self, numbers: NDArray[np.integer]) -> NDArray[np.uint8]:
        """Read patches and copies (K,) as (K, S, S) uint8. A copy is always the same."""
        copies, originals = np.divmod(np.asarray(numbers), len(self.patches))
        patches = self.patches.read(originals)
        for place in np.flatnonzero(copies):
            rng = np.random.default_rng([self.options.seed, int(numbers[place])])
            patches[place] = distort(patches[place], rng, self.options)
        return patches


def augment(source: PatchFolder, options: AugmentationOptions) -> PatchFolder:
    """Add copies of the training pairs of a source, with the first or second patch distorted; not for validation."""
    if not options.copies:
        return source
    number = len(source.patches)
    first, second = [source.train.first], [source.train.second]
    for copy in range(1, options.copies + 1):
        first.append(source.train.first + (number * copy if copy % 2 == 0 else 0))
        second.append(source.train.second + (number * copy if copy % 2 else 0))
    match = np.tile(source.train.match, options.copies + 1)
    patches = AugmentedPatches(source.patches, options)
    return replace(source, patches=patches, train=PatchPairs(np.concatenate(first), np.concatenate(second), match))


def distort(patch: NDArray[np.uint8], rng: np.random.Generator, options: AugmentationOptions) -> NDArray[np.uint8]:
    """Return a patch (S, S) uint8 as seen in another view; the border is replicated outside."""
    size = len(patch)
    centre = np.full(2, (size - 1) / 2)
    view = draw_linear(rng, options.rotation, options.stretch, options.scale)
    offset = centre - view @ centre + options.shift * size * rng.standard_normal(2)
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    warp = np.column_stack([view, offset])
    warped = cv2.warpAffine(patch, warp, (size, size), flags=flags, borderMode=cv2.BORDER_REPLICATE)
    return expose(warped.astype(np.float32), rng, options.blur * size, options.gamma, options.noise)
