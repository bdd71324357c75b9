"""Opening and making collections."""

import os
from collections.abc import Sequence
from pathlib import Path

from index.errors import CairnError
from index.hamming.kinds import DEFAULT as DEFAULT_SIGNATURE
from index.hamming.kinds import full_name, parse_signature
from retrieval.collection.collection import Collection as Opened
from retrieval.collection.layout import OPTIONS
from retrieval.collection.options import CollectionOptions
from retrieval.features.options import FeatureOptions
from retrieval.library.collection import Collection, paths_of
from retrieval.library.numbers import whole
from retrieval.photos.options import new_collection
from retrieval.regions.options import RegionOptions


class CollectionExists(CairnError):
    """There is a collection already where one was to be made."""


def open(folder: str | os.PathLike[str], *, catalogue: str | None = None) -> Collection:
    """Open a collection.

    Parameters
    ----------
    folder : path-like
        Its folder.
    catalogue : str, optional
        SQLAlchemy address of its catalogue; the SQLite file in the folder otherwise.

    Returns
    -------
    Collection
        To be closed, best by ``with``.

    Raises
    ------
    CollectionNotFound
        There is none.
    CairnError
        A part of it is damaged, or the catalogue is another collection's.

    Examples
    --------
    >>> import cairn
    >>> with cairn.open("holiday.cairn") as collection:  # doctest: +SKIP
    ...     answer = collection.search("church.jpg")
    """
    return open_named(Path(folder).absolute(), catalogue=catalogue)


def open_named(folder: Path, *, catalogue: str | None = None) -> Collection:
    """Open a collection for as long as the working folder stays the same: messages then name it as it was given."""
    return Collection(Opened.open(folder, catalogue=catalogue))


def create(
    folder: str | os.PathLike[str],
    *,
    exist_ok: bool = False,
    descriptor: str | os.PathLike[str] = "rootsift",
    words: int = 0,
    max_side: int = 1024,
    max_features: int = 0,
    detector: str = "dog-affine",
    measurement_scale: float | None = None,
    upright: bool = True,
    signature: str = DEFAULT_SIGNATURE,
    search: str = "ivf",
    kmeans_passes: int = 10,
    vocabulary_photos: int = 5000,
    vocabulary_folder: str | os.PathLike[str] | None = None,
    keep_descriptors: bool = False,
    features: str | os.PathLike[str] | None = None,
    photos: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    seed: int = 0,
    catalogue: str | None = None,
) -> Collection:
    """Make a collection; `Collection.add` then adds photos to it.

    What is given here counts for as long as the collection lasts.

    Parameters
    ----------
    folder : path-like
        A folder of its own, which is made.
    exist_ok : bool
        Open the collection that is there; what else is given here does not count then, once it has photos.
    descriptor : str or path-like
        Name of a descriptor, or the file of a learnt one.
    words : int
        Visual words; 0: one for 30 features, at most 500,000.
    max_side : int
        Photos are reduced so that their longer side has at most so many pixels; a panorama, beyond 2:1, so that
        its shorter side has half as many, or its longer side eight times as many.
    max_features : int
        Features of a photo at most, the strongest; 0: all.
    detector : str
        Which regions: "dog-affine" or "hessian-affine".
    measurement_scale : float, optional
        Size of a patch in units of its region; the detector's own otherwise.
    upright : bool
        Patches stay upright; otherwise they are turned to their dominant gradient.
    signature : str
        Kind of the features' signatures, which engines match by; "none": none.
    search : {"ivf", "faiss", "flann", "pyflann"}
        Nearest-neighbour search behind the vocabulary.
    kmeans_passes : int
        Passes of k-means that make the vocabulary.
    vocabulary_photos : int
        Photos whose features make the vocabulary, drawn at random; 0: all.
    vocabulary_folder : path-like, optional
        Folder that they are drawn from, of the photos that are added first.
    keep_descriptors : bool
        Keep descriptors, for the engine "raw".
    features : path-like, optional
        Keypoints and descriptors of another program, from files: descriptor, detector, measurement_scale, upright and
        max_side do not count then.
    photos : path-like or sequence of them
        With `features`: the photos that they belong to.
    seed : int
        Of everything random: the same photos and seed give the same collection.
    catalogue : str, optional
        SQLAlchemy address of the catalogue, such as one of PostgreSQL; a SQLite file in the folder otherwise.

    Returns
    -------
    Collection
        To be closed, best by ``with``.

    Raises
    ------
    CollectionExists
        There is one already, and `exist_ok` is not given.
    CairnError
        The folder is something else's, or an option names what does not exist.

    Examples
    --------
    >>> import cairn
    >>> with cairn.create("holiday.cairn") as collection:  # doctest: +SKIP
    ...     collection.add("Pictures/holiday", progress=True)
    """
    folder = Path(folder).absolute()  # programs change their working folder
    if not exist_ok and (folder / OPTIONS).is_file():
        raise CollectionExists(f"There is a collection at {folder} already: open it, or give exist_ok=True.")
    options = CollectionOptions(
        descriptor=os.fspath(descriptor),
        words=whole("words", words, 0),
        search=search,
        iterations=whole("kmeans_passes", kmeans_passes, 1),
        seed=whole("seed", seed, 0),
        sample=whole("vocabulary_photos", vocabulary_photos, 0),
        sample_from=str(Path(vocabulary_folder).absolute()) if vocabulary_folder is not None else None,
        keep_descriptors=keep_descriptors,
        signature=full_name(parse_signature(signature)),
        image=new_collection(whole("max_side", max_side, 0)),
        features=FeatureOptions(
            RegionOptions(detector=detector, max_features=whole("max_features", max_features, 0)),
            float(measurement_scale) if measurement_scale is not None else None,
            upright,
        ),
    )
    return make(
        folder,
        options,
        features=Path(features) if features is not None else None,
        photos=paths_of(photos),
        catalogue=catalogue,
    )


def make(
    folder: Path,
    options: CollectionOptions,
    *,
    features: Path | None = None,
    photos: Sequence[Path] = (),
    label: str | None = None,
    values: str | None = None,
    catalogue: str | None = None,
) -> Collection:
    """Make a collection with options, or open the one that is there: its own options win, once it has a vocabulary.

    Parameters
    ----------
    folder : Path
        Its folder.
    options : CollectionOptions
        What it is made with.
    features, photos, label, values
        Features of another program: see `create_described`.
    catalogue : str, optional
        Address of the catalogue.

    Raises
    ------
    CairnError
        The folder is something else's, or an option names what does not exist.
    """
    if features is None:
        return Collection(Opened.create(folder, options, catalogue=catalogue))
    from retrieval.indexing.described import create_described

    return Collection(
        create_described(folder, options, features, photos, label=label, values=values, catalogue=catalogue)
    )
