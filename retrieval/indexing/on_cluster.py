"""Prepare photos on the workers of a cluster, and copy the collection's files to storage that all machines reach."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import tee
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from index.arrays import hash_file
from index.cluster.blocks import ClusterBlocks
from index.cluster.connection import Cluster
from index.cluster.storage import FolderStorage, Storage, is_same_folder, send_new
from index.clustering.sources import FileSource
from index.errors import CairnError
from index.hamming.kinds import full_name
from index.progress import Step
from index.segments.description import META
from index.segments.segment import ImageFeatures
from index.text import printable
from index.vocabulary import Vocabulary, VocabularyOptions
from retrieval.collection.collection import Collection
from retrieval.collection.layout import DESCRIPTOR, OPTIONS, SEGMENTS, STAGING, is_vocabulary
from retrieval.collection.segments import published
from retrieval.features.staging import Staged
from retrieval.indexing.discovery import checksum
from retrieval.indexing.preparing import Prepared
from retrieval.indexing.report import FoundFile
from retrieval.indexing.workshop import Plan, forget, prepare, stage, staging_names
from retrieval.metadata.pages import file_of

_KMEANS = f"{STAGING}/kmeans"
_READ = 8  # files that a worker reads for their checksums at a time
_DIED = "workers of the cluster died while they read it"


class ClusterPreparer:
    """Prepares photos on the workers of a cluster, with results equal to the bit to those of one machine: see
    `Preparer`. Paths must lead to the same files on all machines.
    """

    def __init__(self, collection: Collection, cluster: Cluster, storage: Storage) -> None:
        if collection.extractor.reads_files:
            raise CairnError("Features from another program can only be read on one machine: leave out {--cluster}.")
        self._collection = collection
        self._cluster = cluster
        self._storage = storage
        self._sent: set[tuple[str, str]] = set()  # names and contents
        self._plan = Plan(
            storage.place,
            collection.options,
            collection.extractor.fingerprint,
            full_name(collection.signature),
        )
        self._begun = False

    def checksums(self, paths: Iterable[Path]) -> Iterator[str | CairnError | OSError]:
        """Read files: see `Preparer.checksums`."""
        listed, read = tee(paths)
        results = self._cluster.run((partial(checksum, path) for path in read), batch=_READ)
        for path, one in zip(listed, results, strict=True):
            if isinstance(one, FileNotFoundError) and path.is_file():
                raise _unseen(path)
            yield one

    def stage(self, files: Sequence[FoundFile]) -> Iterator[Staged]:
        """Extract features: see `Preparer.stage`."""
        self._begin()
        tasks = (partial(stage, self._plan, file.path, file.key) for file in files)
        results = self._cluster.run(tasks, instead=lambda _: Staged(0, 0, 0, _DIED))
        for file, one in zip(files, results, strict=True):
            _check_seen(file, one)
            yield one

    def train(
        self, files: Sequence[FoundFile], staged: Sequence[Staged], options: VocabularyOptions, where: str, tell: Step
    ) -> Vocabulary:
        """Make a vocabulary: see `Preparer.train`."""
        counts = {file.key: one.features for file, one in zip(files, staged, strict=True)}
        names = [staging_names(self._plan, key)[0] for key in counts]
        source = FileSource(
            [Path(name) for name in names],
            counts=list(counts.values()),
            opened=lambda path: self._storage.fetch(path.as_posix()),
        )
        readers = []

        def reader(sample: NDArray[np.int64] | None) -> ClusterBlocks:
            blocks = ClusterBlocks(self._cluster, self._cluster.threads, self._storage, names, source, _KMEANS, sample)
            readers.append(blocks)
            return blocks

        try:
            return Vocabulary.train(
                source, options, descriptor=self._plan.fingerprint, trained_on=where, reader=reader, progress=tell
            )
        finally:
            for blocks in readers:
                blocks.close()

    def prepare(self, files: Sequence[FoundFile]) -> Iterator[Prepared]:
        """Extract features, give them their words and read metadata: see `Preparer.prepare`."""
        self._begin()
        vocabulary = self._collection.vocabulary_folder.name, self._collection.vocabulary.fingerprint
        plan = replace(self._plan, vocabulary=vocabulary)
        tasks = (partial(prepare, plan, file.path, file.key) for file in files)
        results = self._cluster.run(tasks, instead=lambda _: Prepared(Staged(0, 0, 0, _DIED), _DIED))
        for file, one in zip(files, results, strict=True):
            _check_seen(file, one.staged)
            yield one

    def quantised(self, photos: Sequence[tuple[FoundFile, Prepared]]) -> Iterator[tuple[ImageFeatures, float]]:
        """Return the results of workers: see `Preparer.quantised`."""
        for _, one in photos:
            assert one.quantised is not None
            yield one.quantised

    def publish(self) -> None:
        """Send vocabulary and segments: see `Preparer.publish`."""
        folder = self._collection.folder
        if is_same_folder(self._storage, folder):
            return
        self._send(OPTIONS, folder / OPTIONS)
        if (folder / DESCRIPTOR).is_file():
            self._send(DESCRIPTOR, folder / DESCRIPTOR)
        if self._collection.has_vocabulary:
            self._send(self._collection.vocabulary_folder.name, self._collection.vocabulary_folder, "meta.json")
        here = published(folder)
        for path in here:
            self._send(f"{SEGMENTS}/{path.name}", path, META)
        for name in set(self._storage.names(SEGMENTS)) - {path.name for path in here}:
            self._storage.remove(f"{SEGMENTS}/{name}")
        for name in self._storage.names(""):
            if is_vocabulary(name) and name != self._collection.vocabulary_folder.name:
                self._storage.remove(name)

    def done(self, files: Sequence[FoundFile]) -> None:
        """Remove staged files of photos: see `Preparer.done`. In an object store this waits for the end."""
        for file in files if isinstance(self._storage, FolderStorage) else ():
            for name in staging_names(self._plan, file.key):
                self._storage.remove(name)

    def end(self) -> None:
        """Remove all staged files: see `Preparer.end`."""
        self._storage.remove(STAGING)
        with suppress(OSError):  # if the cluster is lost now, its work is done
            self._cluster.everywhere(forget, self._storage.place)

    def _begin(self) -> None:
        """Send the files that workers need. Only once the run holds the collection's lock."""
        if not self._begun:
            self._storage.remove(_KMEANS)  # of a run that was killed
            self.publish()
            self._begun = True

    def _send(self, name: str, path: Path, described: str = "") -> None:
        """Send a file or folder, unless this run has sent it, or the storage has it."""
        sent = name, hash_file(path / described)
        if sent not in self._sent:
            send_new(self._storage, name, path, described)
            self._sent.add(sent)


def _check_seen(file: FoundFile, one: Staged) -> None:
    """Raise CairnError if a photo exists here but was missing on its worker."""
    if one.unseen and file_of(file.path).is_file():
        raise _unseen(file.path)


def _unseen(path: Path) -> CairnError:
    return CairnError(
        f"The workers cannot find {printable(str(path))}: photos must be at the same path on all machines."
    )
