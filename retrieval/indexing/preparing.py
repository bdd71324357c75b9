"""Prepare new photos for a segment, by processes of this machine or another implementation of the contract."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Protocol

from index.clustering.sources import FileSource
from index.errors import CairnError, Unreadable
from index.parallel import Workers, run
from index.progress import Step
from index.segments.segment import ImageFeatures
from index.vocabulary import Vocabulary, VocabularyOptions
from retrieval.collection.collection import Collection
from retrieval.collection.layout import STAGING
from retrieval.collection.segment_writing import quantise
from retrieval.features.staging import Staged, Staging, stage_all
from retrieval.indexing.discovery import checksum
from retrieval.indexing.report import FoundFile
from retrieval.metadata.fields import Metadata
from retrieval.metadata.photo import read_metadata


@dataclass(frozen=True)
class Prepared:
    """A new photo with extracted features, or the reason why there are none."""

    staged: Staged
    reason: str | None = None
    metadata: Metadata | None = None  # from its file; None with a reason
    quantised: tuple[ImageFeatures, float] | None = None  # result of `quantise`, if already computed


class Preparer(Protocol):
    """Extracts the features of photos, trains a vocabulary on them, and assigns words."""

    def checksums(self, paths: Iterable[Path]) -> Iterator[str | CairnError | OSError]:
        """Return the SHA-256 of files, in order, or the reason why one cannot be read."""

    def stage(self, files: Sequence[FoundFile]) -> Iterator[Staged]:
        """Extract the features of photos, in their order."""

    def train(
        self, files: Sequence[FoundFile], staged: Sequence[Staged], options: VocabularyOptions, where: str, tell: Step
    ) -> Vocabulary:
        """Train a vocabulary on staged photos that have features; `where` says where it comes from."""

    def prepare(self, files: Sequence[FoundFile]) -> Iterator[Prepared]:
        """Extract the features of photos and read their metadata, in order."""

    def quantised(self, photos: Sequence[tuple[FoundFile, Prepared]]) -> Iterator[tuple[ImageFeatures, float]]:
        """Assign words to the features of prepared photos, in order: see `quantise`."""

    def publish(self) -> None:
        """Let all machines reach the vocabulary and the segments as they are now."""

    def done(self, files: Sequence[FoundFile]) -> None:
        """Release staged data of photos that are in a segment."""

    def end(self) -> None:
        """Release all staged data, as every photo is in a segment or has failed."""


class LocalPreparer:
    """Prepares photos on this machine: see `Preparer`."""

    def __init__(self, collection: Collection, workers: Workers) -> None:
        self._collection = collection
        self._workers = workers

    @cached_property
    def _staging(self) -> Staging:
        collection = self._collection
        return Staging(collection.folder / STAGING, collection.extractor, collection.options.image)

    def _key(self, file: FoundFile) -> str:
        return self._staging.key(file.path, file.key)

    def checksums(self, paths: Iterable[Path]) -> Iterator[str | CairnError | OSError]:
        """Read files: see `Preparer.checksums`."""
        return map(checksum, paths)

    def stage(self, files: Sequence[FoundFile]) -> Iterator[Staged]:
        """Extract features: see `Preparer.stage`."""
        return stage_all(self._staging, [(file.path, self._key(file)) for file in files], self._workers)

    def train(
        self, files: Sequence[FoundFile], staged: Sequence[Staged], options: VocabularyOptions, where: str, tell: Step
    ) -> Vocabulary:
        """Make a vocabulary: see `Preparer.train`."""
        of_each_content = {file.key: file for file in reversed(files)}
        chosen = [file for file in files if of_each_content[file.key] is file]
        source = FileSource([self._staging.descriptors(self._key(file)) for file in chosen])
        fingerprint = self._collection.extractor.fingerprint
        return Vocabulary.train(source, options, descriptor=fingerprint, trained_on=where, progress=tell)

    def prepare(self, files: Sequence[FoundFile]) -> Iterator[Prepared]:
        """Extract features and read metadata: see `Preparer.prepare`."""
        for file, one in zip(files, self.stage(files), strict=True):
            yield described(file.path, one)

    def quantised(self, photos: Sequence[tuple[FoundFile, Prepared]]) -> Iterator[tuple[ImageFeatures, float]]:
        """Assign words, in threads: see `Preparer.quantised`."""

        def assign(file: FoundFile, one: Prepared) -> tuple[ImageFeatures, float]:
            size = one.staged.width, one.staged.height
            return quantise(self._collection, self._staging.read(self._key(file)), size)

        return run((partial(assign, file, one) for file, one in photos), self._workers, threads=True)

    def publish(self) -> None:
        """Do nothing: there are no other machines."""

    def done(self, files: Sequence[FoundFile]) -> None:
        """Remove staged files of photos: see `Preparer.done`."""
        self._staging.discard(self._key(file) for file in files)

    def end(self) -> None:
        """Remove all staged files: see `Preparer.end`."""
        self._staging.remove()


def described(path: Path, one: Staged) -> Prepared:
    """Read the metadata of a photo whose features are staged."""
    if one.reason:
        return Prepared(one, one.reason)
    try:
        # At once: the features may come from an earlier run, and the drive may be disconnected at any time.
        return Prepared(one, metadata=read_metadata(path, strict=True))
    except Unreadable as error:
        return Prepared(one, str(error))
