"""The patches of HPatches as released (Balntas et al., CVPR 2017): a folder a sequence, ``i_*`` of illumination or
``v_*`` of viewpoint, with stacked 65 x 65 patches in ``ref.png`` and, of each of five other images, ``e``, ``h`` and
``t`` (easy, hard, tough: by the amount of noise in cropping). Patches of one number show the same place.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from eval.sets.layouts import locate
from index.arrays import size_of_file
from index.errors import CairnError

PATCH = 65
"""Pixels along a side of a patch."""

NOISE = {"easy": "e", "hard": "h", "tough": "t"}
"""Amount of noise in cropping patches, and the letter of the files."""

TARGETS = 5
"""Images of a sequence, without the reference."""

IMAGES = ("ref", *(f"{letter}{number}" for letter in NOISE.values() for number in range(1, TARGETS + 1)))
"""Files of a sequence, in the order of rows of descriptions."""

KINDS = {"i": "illumination", "v": "viewpoint"}
"""Kinds of sequences, by the first letter of their names."""


@dataclass(frozen=True)
class HPatchesSequence:
    """One sequence."""

    name: str
    folder: Path
    patches: int  # of each image

    @property
    def kind(self) -> str:
        """Kind of change between its images: one of the values of `KINDS`."""
        return KINDS[self.name[0]]

    def read(self, image: str) -> NDArray[np.uint8]:
        """Read the patches (N, 65, 65) uint8 of an image, by its name in `IMAGES`."""
        path = self.folder / f"{image}.png"
        try:
            with Image.open(path, formats=("PNG",)) as opened:
                pixels = np.asarray(opened.convert("L"))
        except Exception as error:  # a decoder may raise anything on a damaged file
            raise CairnError(f"{path} is missing, damaged or cut short: unpack the set again.") from error
        if pixels.shape != (PATCH * self.patches, PATCH):
            raise CairnError(
                f"{path} has {pixels.shape[1]}x{pixels.shape[0]} pixels, but {self.patches} patches of {PATCH}x{PATCH} "
                f"below each other, as ref.png has, are {PATCH}x{PATCH * self.patches}."
            )
        return pixels.reshape(self.patches, PATCH, PATCH)


def find_sequences(root: Path) -> dict[str, HPatchesSequence]:
    """Find the sequences below a folder, by name."""
    folder = locate("hpatches", Path(root)).folder
    folders = sorted(path for path in folder.glob("[iv]_*") if path.is_dir())
    return {path.name: _sequence(path) for path in folders}


def _sequence(folder: Path) -> HPatchesSequence:
    missing = [f"{image}.png" for image in IMAGES if not (folder / f"{image}.png").is_file()]
    if missing:
        raise CairnError(f"{folder} lacks {missing[0]}{f' and {len(missing) - 1} more' * (len(missing) > 1)}.")
    path = folder / "ref.png"
    try:
        size_of_file(path)
        with Image.open(path, formats=("PNG",)) as image:
            width, height = image.size
    except Exception as error:  # as above
        raise CairnError(f"{path} is damaged or cut short: unpack the set again.") from error
    if width != PATCH or height % PATCH or not height:
        raise CairnError(f"{path} has {width}x{height} pixels, which are no {PATCH}x{PATCH} patches below each other.")
    return HPatchesSequence(folder.name, folder, height // PATCH)
