"""Collections whose features come from another program."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from index.errors import CairnError
from retrieval.catalogue.photos import all_indexed
from retrieval.collection.collection import Collection
from retrieval.collection.layout import OPTIONS
from retrieval.collection.options import CollectionOptions, read_options
from retrieval.descriptors.foreign import AS_THEY_ARE, BYTES, ForeignDescriptor, is_foreign, parse_foreign
from retrieval.foreign.contract import FeatureSource
from retrieval.foreign.extractor import ForeignExtractor
from retrieval.foreign.npz import NpzFile
from retrieval.foreign.opening import identify, open_features, roots_of


def create_described(
    folder: Path,
    options: CollectionOptions,
    features: Path,
    photos: Sequence[Path],
    *,
    label: str | None = None,
    values: str | None = None,
    catalogue: str | None = None,
) -> Collection:
    """Create a collection of photos whose features are in files, or open an existing one to add such photos.
    `index_photos` and queries then read features from these files.
    """
    source = _open_many(features)
    if _has_vocabulary(folder, catalogue):
        own = read_options(folder / OPTIONS)
        if not is_foreign(own.descriptor):
            raise CairnError(
                "{folder} was made with Cairn's own features: leave out {--features}, or make a new one.", folder=folder
            )
        _refuse_other(folder, own.descriptor, label, values)
        options = own
    else:
        most = options.features.regions.max_features
        descriptor, regions = identify(source, photos, label=label, values=values, max_features=most)
        options = replace(options, descriptor=descriptor.name, features=regions)
    collection = Collection.create(folder, options, catalogue=catalogue)
    use_features(collection, source, photos)
    return collection


def _open_many(features: Path) -> FeatureSource:
    """Open features of many photos; raises CairnError if a file holds features of one photo, without its name."""
    source = open_features(features)
    if isinstance(source, NpzFile):
        raise CairnError(
            "{features} has the features of one photo, for {cairn query}: give the folder of such files.",
            features=features,
        )
    return source


def _refuse_other(folder: Path, own: str, label: str | None, values: str | None) -> None:
    """Raise CairnError if a collection's descriptor has another name than `label`, or other values than `values`."""
    descriptor = parse_foreign(own)
    if label is not None and descriptor.name != ForeignDescriptor(label, descriptor.dim, descriptor.values).name:
        raise CairnError("{folder} calls its descriptor {own}: leave out {--features-name}.", folder=folder, own=own)
    if values is not None and descriptor.values not in ((AS_THEY_ARE, BYTES) if values == AS_THEY_ARE else (values,)):
        raise CairnError(
            "{folder} compares descriptors otherwise ({own}): leave out {--normalise}, {--as-they-are} and {--binary}.",
            folder=folder,
            own=own,
        )


def _has_vocabulary(folder: Path, catalogue: str | None) -> bool:
    if not (folder / OPTIONS).is_file():
        return False
    with Collection.open(folder, catalogue=catalogue) as collection:
        return collection.has_vocabulary


def use_features_again(collection: Collection, features: Path) -> None:
    """Let an open collection read the features of its own photos from files: see `use_features`."""
    use_features(collection, _open_many(features), sorted(set(_roots(collection))))


def _roots(collection: Collection) -> Iterator[Path]:
    """Folders that names of a collection's photos are relative to."""
    for row in collection.catalogue.read(all_indexed):
        path, name = Path(row.path), Path(row.name or "")
        within = len(name.parts) if path.parts[-len(name.parts) :] == name.parts else 1
        yield path.parents[within - 1]


def use_features(collection: Collection, source: FeatureSource, photos: Sequence[Path] = ()) -> None:
    """Let an open collection read the features of new photos from a source."""
    descriptor = collection.descriptor
    if collection.options.features.extractor is not None:
        raise CairnError(
            "The features of {folder} are computed by {extractor}: leave out {--features}.",
            folder=collection.folder,
            extractor=collection.options.features.extractor,
        )
    if not isinstance(descriptor, ForeignDescriptor):
        raise CairnError(
            "{folder} was made with Cairn's own features: leave out {--features}.", folder=collection.folder
        )
    collection.use_extractor(ForeignExtractor(descriptor, collection.options.features, source, roots_of(photos)))
