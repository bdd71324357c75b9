"""Open files of features, and identify their features."""

from collections.abc import Sequence
from pathlib import Path

from index.errors import CairnError
from index.extensions import extensions
from index.text import printable_name
from retrieval.descriptors.foreign import ForeignDescriptor, label_of
from retrieval.features.options import FeatureOptions
from retrieval.foreign import colmap, hdf5
from retrieval.foreign.contract import TURNED, FeatureSource, names_of
from retrieval.foreign.converting import described_as
from retrieval.foreign.npz import SUFFIX, NpzFile, NpzFolder
from retrieval.photos.listing import list_photos
from retrieval.regions.options import RegionOptions

_LOOKED_AT = 1000  # photos tried to identify the features


def open_features(path: Path) -> FeatureSource:
    """Open the features of photos: a folder of `.npz` files or one of them, hloc's HDF5 file, or COLMAP's database. An
    extension that recognises the path comes first.
    """
    for extension in extensions("features"):
        form = extension.load()
        if form.recognises(path):
            source: FeatureSource = form.open(path)
            return source
    if path.is_dir():
        return NpzFolder(path.resolve())
    if not path.is_file():
        raise CairnError(f"There are no features {str(path)!r}; check the name.")
    if path.suffix.lower() == SUFFIX:
        return NpzFile(path.resolve())
    try:
        with path.open("rb") as file:
            magic = file.read(16)
    except OSError as error:
        raise CairnError(f"{path} cannot be read ({error.strerror or error}).") from error
    if magic.startswith(hdf5.MAGIC):
        return hdf5.HlocFile(path.resolve())
    if magic == colmap.MAGIC:
        return colmap.ColmapDatabase(path.resolve())
    raise CairnError(
        f"{path} does not contain features: give a folder of .npz files, an HDF5 file written by hloc, or a COLMAP "
        "database."
    )


def roots_of(photos: Sequence[Path]) -> list[Path]:
    """Return the folders within which photos that are indexed have their names, each once."""
    # Each folder once: 100,000 files lie in a few folders.
    folders = dict.fromkeys(path if path.is_dir() else path.parent for path in map(Path, photos))
    return list(dict.fromkeys(folder.resolve() for folder in folders))


def identify(
    source: FeatureSource,
    photos: Sequence[Path],
    *,
    label: str | None = None,
    values: str | None = None,
    max_features: int = 0,
) -> tuple[ForeignDescriptor, FeatureOptions]:
    """Identify the features of photos, by the first available ones, and the geometry of keypoints. `label`: name of the
    descriptor for people; by default the name of the file or folder. `values`: how entries are compared, one of
    `VALUES`: see `described_as`. `max_features`: features of a photo at most; 0: all.
    """
    roots, error = roots_of(photos), None
    listed = list_photos(photos)
    for root, path in listed[:_LOOKED_AT]:
        real = root.resolve() / path.relative_to(root)
        try:
            entry = source.entry(real, list(names_of(real, roots)))
        except CairnError as reason:
            error = error or f"of {printable_name(str(path))}: {reason}"
            continue
        descriptor = described_as(entry, label or label_of(source.path.stem), values)
        if descriptor is not None:
            regions = RegionOptions(detector=entry.geometry, max_features=max_features)
            return descriptor, FeatureOptions(regions, None, entry.geometry not in TURNED)
    if not listed:
        raise CairnError("There are no photos: give photos, or folders of photos.")
    raise CairnError(
        f"No photo has features in {source.path} that can be used; {error or 'all that are there are empty'}."
    )
