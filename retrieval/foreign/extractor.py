"""An extractor that reads features from files of other programs, in place of computing them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from index.text import printable_name
from retrieval.descriptors.foreign import ForeignDescriptor
from retrieval.features.extraction import Extractor, Features
from retrieval.features.options import FeatureOptions, features_fingerprint
from retrieval.foreign.contract import GEOMETRIES, Entry, FeaturesNeeded, FeatureSource, Unfit, names_of
from retrieval.foreign.converting import features_of, placed
from retrieval.photos.decoding import Photo, read_orientation, read_photo
from retrieval.photos.options import ImageOptions
from retrieval.regions.detection import Regions
from retrieval.regions.scalespace import ScaleSpace, ScaleSpaceOptions

_LOOKED_AT = 256  # pixels of the longer side: the photo is decoded to see that it is whole, and how large
_NOWHERE = ScaleSpace(np.zeros((0, 0), np.float32), [], [], ScaleSpaceOptions())


@dataclass(frozen=True)
class DescribedPhoto(Photo):
    """A photo, and its features from a file; its pixels are a placeholder and not used."""

    path: Path
    entry: Entry


class ForeignExtractor(Extractor):
    """Reads the features of photos from files."""

    is_foreign = reads_files = True

    def __init__(
        self,
        descriptor: ForeignDescriptor,
        options: FeatureOptions,
        source: FeatureSource | None = None,
        roots: Sequence[Path] = (),
    ) -> None:
        if options.regions.detector not in GEOMETRIES:
            raise CairnError(
                "The features of {descriptor} come from elsewhere: give them with {--features}.",
                descriptor=descriptor.name,
            )
        self.descriptor = descriptor
        self._foreign = descriptor
        self.options = options
        self.region_scale = self.measurement_scale = 1.0
        self.fingerprint = features_fingerprint(descriptor, options)
        self.source = source
        self.roots = roots

    @property
    def is_ready(self) -> bool:
        """Whether the files of features are known."""
        return self.source is not None

    def read(self, path: Path, image: ImageOptions) -> Photo:
        """Read a photo and its features: see `Extractor.read`."""
        if self.source is None:
            raise FeaturesNeeded
        photo = read_photo(path, replace(image, max_side=_LOOKED_AT, panorama=1))
        entry = self.source.entry(path, list(names_of(path, self.roots)))
        orientation = read_orientation(path) if entry.is_as_stored else 1
        entry = placed(entry, photo.width, photo.height, orientation)
        return DescribedPhoto(photo.grey, photo.width, photo.height, path, entry)

    def extract(self, photo: Photo) -> Features:
        """Return the features of a photo; raises CairnError if they are of another kind than the collection's."""
        assert isinstance(photo, DescribedPhoto)
        regions = self.options.regions
        try:
            return features_of(
                photo.entry, self._foreign, regions.detector, photo.width, photo.height, regions.max_features
            )
        except Unfit as error:
            where = f" in {self.source.path}" if self.source is not None else ""
            raise Unfit(f"The features of {printable_name(str(photo.path))}{where} do not fit: {error}.") from error

    def detect(self, photo: Photo, within: tuple[float, float, float, float] | None = None) -> Regions:
        """Return the places of a photo's features: see `Extractor.detect`."""
        ellipses = self.extract(photo).ellipses
        rows = np.arange(len(ellipses))
        if within is not None:
            x0, y0, x1, y1 = within
            x, y = ellipses[:, 0], ellipses[:, 1]
            rows = np.flatnonzero((x >= x0) & (x <= x1) & (y >= y0) & (y <= y1))
        return _ChosenRegions(ellipses[rows], np.zeros(len(rows), np.float32), _NOWHERE, rows)

    def known(self, photo: Photo, ellipses: NDArray[np.float32]) -> Regions:
        """Refuse: no region that is not in the file can be described."""
        raise FeaturesNeeded

    def describe(self, photo: Photo, regions: Regions, turn: float = 0.0) -> Features:
        """Return the features of some regions: see `Extractor.describe`."""
        return self.describe_both(photo, regions, turn)[0]

    def describe_both(
        self, photo: Photo, regions: Regions, turn: float = 0.0
    ) -> tuple[Features, NDArray[np.float16] | None]:
        """Return the features of some regions, only upright: see `Extractor.describe_both`."""
        assert isinstance(regions, _ChosenRegions) and not turn
        found = self.extract(photo)
        rows = regions.rows
        return Features(found.ellipses[rows], found.angles[rows], found.descriptors[rows]), None


@dataclass(frozen=True)
class _ChosenRegions(Regions):
    rows: NDArray[np.int64]  # (N,) which of the photo's features they are
