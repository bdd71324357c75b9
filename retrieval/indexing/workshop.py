"""Tasks of a cluster worker: prepare photos by the options, descriptor and vocabulary of a collection."""

import tempfile
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from index.cluster.storage import FolderStorage, ObjectStorage, Storage, open_storage
from index.errors import CairnError
from index.hamming.kinds import parse_signature
from index.hamming.sources import SignatureSource, make_source
from index.vocabulary import Vocabulary
from retrieval.collection.layout import DESCRIPTOR, OPTIONS, STAGING
from retrieval.collection.options import CollectionOptions
from retrieval.collection.segment_writing import quantise
from retrieval.collection.vocabulary_descriptor import descriptor_of
from retrieval.descriptors.registry import find_descriptor
from retrieval.features.staging import Staged, Staging, staged_files, staging_folder
from retrieval.foreign.computed import make_extractor
from retrieval.indexing.preparing import Prepared, described


@dataclass(frozen=True)
class Plan:
    """Settings shared by all photos of one run; sent with each photo."""

    place: str  # of the storage that holds the collection's files
    options: CollectionOptions
    fingerprint: str  # of descriptor and options: see `Extractor.fingerprint`
    signature: str  # of a feature, by name
    vocabulary: tuple[str, str] | None = None  # folder and fingerprint; None: not made yet


def stage(plan: Plan, path: Path, key: str) -> Staged:
    """Extract the features of a photo and put them into the storage, unless it has them."""
    return _workshop(plan).stage(path, key, keep=True)


def prepare(plan: Plan, path: Path, key: str) -> Prepared:
    """Extract the features of a photo, unless the storage has them, and assign words; read its metadata."""
    workshop = _workshop(plan)
    one = workshop.stage(path, key, keep=workshop.is_shared)
    ready = described(path, one)
    if ready.metadata is None:
        return ready
    try:
        features = workshop.staging.read(key)
        return Prepared(one, None, ready.metadata, quantise(workshop, features, (one.width, one.height)))
    finally:
        workshop.forget(key)


def forget(place: str) -> None:
    """Remove this machine's copies of staged features of a storage."""
    storage = open_storage(place)
    if isinstance(storage, ObjectStorage):
        storage.forget(STAGING)


def staging_names(plan: Plan, key: str) -> list[str]:
    """Names, in the storage, of the staged files of a photo: see `staged_files`."""
    folder = staging_folder(plan.fingerprint, plan.options.image)
    return [f"{STAGING}/{folder}/{name}" for name in staged_files(key)]


class _Workshop:
    """The parts of a collection that a worker needs: see `quantise`."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.options = plan.options
        self.storage: Storage = open_storage(plan.place)
        self.is_shared = isinstance(self.storage, FolderStorage)
        self.storage.fetch(OPTIONS)  # raises a clear error if the collection is missing
        brought = descriptor_of(self.storage.fetch(plan.vocabulary[0])) if plan.vocabulary is not None else None
        learnt = brought is None and plan.options.descriptor == DESCRIPTOR
        folder = self.storage.fetch(DESCRIPTOR).parent if learnt else None
        descriptor = find_descriptor(brought or plan.options.descriptor, folder)
        self.extractor = make_extractor(descriptor, plan.options.features)
        if self.extractor.fingerprint != plan.fingerprint:
            raise CairnError(
                f"The descriptor at {plan.place} is not the collection's: run the command again, which sends it."
            )
        if isinstance(self.storage, FolderStorage):
            folder = self.storage.folder / STAGING
        else:
            self._own = tempfile.TemporaryDirectory(prefix="cairn-staging-")  # lives as long as this object
            folder = Path(self._own.name)
        self.staging = Staging(folder, self.extractor, plan.options.image)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        assert self._plan.vocabulary is not None
        name, fingerprint = self._plan.vocabulary
        vocabulary = Vocabulary.load(self.storage.fetch(name))
        if vocabulary.fingerprint != fingerprint:
            raise CairnError(
                f"The vocabulary at {self._plan.place} is not the collection's: run the command again, which sends it."
            )
        return vocabulary

    @cached_property
    def signatures(self) -> SignatureSource | None:
        kind = parse_signature(self._plan.signature)
        return make_source(kind, self.vocabulary.centres, self.options.seed) if kind is not None else None

    def stage(self, path: Path, key: str, *, keep: bool) -> Staged:
        """Extract features, or take them from the storage; keep them there, or only on this machine's disk."""
        if self.is_shared:
            return self.staging.stage(path, key)
        names = staging_names(self._plan, key)
        if self.storage.has(names[-1]):
            *_, last = [self.storage.fetch(name) for name in names]
            self.staging.take(last.parent, key)
        one = self.staging.stage(path, key)
        if keep and one.is_new:
            for name in names:
                self.storage.send(name, self.staging.folder / Path(name).name)
            self.forget(key)
        return one

    def forget(self, key: str) -> None:
        """Remove the features of a photo from this machine's disk, unless all machines share it."""
        if not self.is_shared:
            self.staging.discard([key])


_workshop = lru_cache(maxsize=2)(_Workshop)
