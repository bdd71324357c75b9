"""A complete extractor of another package: an image in, keypoints and descriptors out."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from index.extensions import Extension, find, refuse_missing
from index.parallel import one_thread
from index.text import one_line, shown
from retrieval.descriptors.contract import Descriptor
from retrieval.descriptors.foreign import BITS, UNIT, VALUES, ForeignDescriptor, label_of
from retrieval.features.extraction import Extractor
from retrieval.features.options import FeatureOptions
from retrieval.foreign.arrays import entry_of
from retrieval.foreign.contract import GEOMETRIES, TURNED, Entry
from retrieval.foreign.converting import placed
from retrieval.foreign.extractor import DescribedPhoto, ForeignExtractor
from retrieval.photos.decoding import Photo, read_photo, read_photo_in_colour
from retrieval.photos.options import ImageOptions
from retrieval.regions.detectors.registry import FOREIGN


class WholeExtractor(Protocol):
    """The interface of an extension of the kind ``extractor``."""

    name: str  # name of its descriptors for people
    dim: int  # length of a descriptor; of packed bits their number
    geometry: str  # of a keypoint: ``points``, ``scales``, ``oriented``, ``ellipses`` or ``affine``
    fingerprint: str  # differs whenever features would differ, such as with another model

    def extract(self, image: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
        """Find and describe the keypoints of an image.

        Parameters
        ----------
        image : ndarray, shape (H, W) or, if the extension has ``colour = True``, (H, W, 3), uint8
            Grey, or RGB; upright, and reduced to the collection's ``max_side``.

        Returns
        -------
        dict of str to ndarray
            ``keypoints`` (N, 2), (N, 3) or (N, 4): x, y, radius and angle in radians, in pixels, the centre of the
            top-left one at (0, 0); or ``frames`` or ``lafs``, as in files of features; ``descriptors`` (N, D), compared
            at unit length unless the extension has another of `VALUES` as ``values``; optionally ``scores`` (N,), the
            higher the better. N may be 0.
        """
        ...


class ComputedExtractor(ForeignExtractor):
    """Computes the features of photos by an extension, which is loaded at first use, in each process."""

    reads_files = False

    def __init__(self, descriptor: ForeignDescriptor, options: FeatureOptions) -> None:
        super().__init__(descriptor, options)
        self._extension: WholeExtractor | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_extension": None}

    @property
    def is_ready(self) -> bool:
        """Whether photos can be described; raises CairnError with the reason if not."""
        self.extension()
        return True

    def extension(self) -> WholeExtractor:
        """Load the extension."""
        if self._extension is None:
            place = str(self.options.extractor)
            found = find_extractor(place).load()
            if found.fingerprint != self.options.extractor_fingerprint:
                raise CairnError(
                    "The extractor {place} now computes other features than those of the collection, because its model "
                    "or version differs: use the one that the collection was made with, or create a new collection.",
                    place=place,
                )
            self._extension = found
        return self._extension

    def read(self, path: Path, image: ImageOptions) -> Photo:
        """Read a photo and compute its features: see `Extractor.read`."""
        extension = self.extension()
        if getattr(extension, "colour", False):
            photo, pixels = read_photo_in_colour(path, image)
        else:
            photo = read_photo(path, image)
            pixels = np.rint(photo.grey).astype(np.uint8)
        entry = placed(extracted(extension, pixels), photo.width, photo.height)
        return DescribedPhoto(photo.grey, photo.width, photo.height, path, entry, remarks=photo.remarks)


def extracted(extension: WholeExtractor, pixels: NDArray[np.uint8]) -> Entry:
    """Return the features that an extension computes for an image; raises CairnError with the reason if it fails."""
    try:
        with one_thread():
            arrays = extension.extract(pixels)
        entry = entry_of(dict(arrays), is_binary=getattr(extension, "values", UNIT) == BITS)
    except CairnError as error:
        raise CairnError(f"the features that {extension.name} gives cannot be used: {error}") from error
    except Exception as error:  # code of others fails in any way
        reason = shown(one_line(error), 200)
        raise CairnError(f"the extractor {extension.name} failed: {reason}") from error
    return replace(entry, size=(pixels.shape[1], pixels.shape[0]))


def find_extractor(name: str) -> Extension:
    """Find an extension by its name or place; raises CairnError if it is unknown."""
    found = find("extractor", name)
    if found is None:
        refuse_missing("extractor", name)
        raise CairnError(
            "There is no extractor {name}: install the package that declares it, in the group cairn.extractors.",
            name=shown(name),
        )
    return found


def extracted_by(name: str) -> tuple[ForeignDescriptor, FeatureOptions]:
    """Return the descriptor of an extension, by its name or place, and options with the geometry of its keypoints."""
    extension = find_extractor(name)
    made: WholeExtractor = extension.load()
    values, geometry = getattr(made, "values", UNIT), f"{FOREIGN}{made.geometry}"
    if geometry not in GEOMETRIES or values not in VALUES:
        raise CairnError(
            "The extractor {name} cannot be used: its geometry is {geometry} and its values are {values}, which there "
            "are not.",
            name=extension.name,
            geometry=shown(str(made.geometry)),
            values=shown(str(values)),
        )
    descriptor = ForeignDescriptor(label_of(made.name), int(made.dim), values)
    options = FeatureOptions(
        upright=geometry not in TURNED, extractor=extension.place, extractor_fingerprint=str(made.fingerprint)
    )
    return descriptor, replace(options, regions=replace(options.regions, detector=geometry))


def make_extractor(descriptor: Descriptor, options: FeatureOptions) -> Extractor:
    """Make the extractor of a collection: the built-in one, that of an extension, or one that still needs files."""
    if not isinstance(descriptor, ForeignDescriptor):
        return Extractor(descriptor, options)
    kind = ForeignExtractor if options.extractor is None else ComputedExtractor
    return kind(descriptor, options)
