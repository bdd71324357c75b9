"""Source of the vocabulary of a benchmark."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from eval.retrieval.kept import VOCABULARIES, folder_name, key_of, run_folder
from eval.retrieval.photos import BenchmarkPhotos, folders_of, listing_of, states_of
from index.errors import CairnError
from index.progress import Progress, silent
from retrieval.collection.collection import Collection
from retrieval.collection.layout import TRAINED_KEY
from retrieval.collection.options import CollectionOptions
from retrieval.descriptors.registry import find_descriptor
from retrieval.features.options import features_fingerprint
from retrieval.indexing.adding import make_vocabulary


@dataclass(frozen=True)
class VocabularySource:
    """Source of the vocabulary of a benchmark other than the searched photos; distractors are never used."""

    collection: Path | None = None  # a collection that has one
    images: tuple[Path, ...] = ()  # photos and folders of photos for training one

    def __post_init__(self) -> None:
        if self.collection is not None and self.images:
            raise CairnError("A vocabulary is taken from a collection or made from photos: choose one of the two.")


@dataclass(frozen=True)
class MadeVocabulary:
    """A vocabulary ready for use."""

    folder: Path  # of its collection
    kept: Path | None  # folder to remove after use, if any
    photos: frozenset[Path]  # photos that it may have been trained on


def settings_of(options: CollectionOptions) -> dict[str, Any]:
    """Settings of options, with the descriptor by content instead of name."""
    descriptor = find_descriptor(options.descriptor)
    return {
        **asdict(replace(options, descriptor="")),
        "features": features_fingerprint(descriptor, options.features),
    }


def find_source(
    source: VocabularySource,
    options: CollectionOptions,
    work: Path,
    *,
    share: float = 1.0,
    workers: int = 1,
    progress: Progress = silent,
) -> MadeVocabulary | None:
    """Make the vocabulary of a benchmark, unless it exists; None if it is trained on the searched photos."""
    if source.collection is not None:
        return MadeVocabulary(source.collection, None, frozenset())
    if not source.images:
        return None
    plain = replace(options, signature="none", keep_descriptors=False)
    files = listing_of(source.images, share, options.seed)
    paths: Sequence[Path] = source.images if share == 1 else files
    settings = {"options": settings_of(plain), "photos": states_of(files)}
    name = folder_name(title_of(source.images))
    folder = work / VOCABULARIES / f"{name}-{key_of(settings)[:12]}"
    with run_folder(folder, {"options": settings["options"], "photos": folders_of(source.images)}) as run:
        where = folder / f"{name}.cairn"
        if not run.noted("made") or not where.is_dir():
            with Collection.create(where, plain) as collection:
                make_vocabulary(collection, paths, workers=workers, progress=progress)
            run.note("made", True)
    return MadeVocabulary(where, folder, frozenset(files))


def title_of(images: Sequence[Path]) -> str:
    """Name of the first folder of some photos, or of its parent if the name is generic."""
    folder = Path(images[0]).resolve()
    if folder.is_file():
        folder = folder.parent
    return folder.parent.name if folder.name.lower() in ("images", "jpg", "photos") else folder.name


def origin_of(
    collection: Collection, source: VocabularySource, made: MadeVocabulary | None, photos: BenchmarkPhotos
) -> dict[str, Any]:
    """Origin of the vocabulary: ``origin`` is ``own`` (the searched photos), ``shared`` (some are searched),
    ``independent`` (no photo is searched) or ``collection`` (another's); ``from`` names folders.
    """
    if made is None:
        is_own = collection.catalogue.setting(TRAINED_KEY) != "0"
        return {"origin": "own" if is_own else "collection", "from": list(photos.folders) if is_own else []}
    if made.kept is None:
        return {"origin": "collection", "from": [str(source.collection)]}
    searched = {*photos.image_files, *photos.distractor_files}
    origin = "shared" if made.photos & searched else "independent"
    return {"origin": origin, "from": list(folders_of(source.images))}
