"""A collection: one folder with its options, catalogue, vocabulary and segments."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from index.arrays import save_bytes
from index.errors import CairnError
from index.hamming.kinds import SignatureKind, full_name, parse_signature
from index.hamming.sources import SignatureSource, make_source
from index.inverted import InvertedIndex, ScoringOptions
from index.search_backends import search_backend
from index.segments.description import COLUMN_PREFIX, damaged
from index.segments.segment import Segment
from index.vocabulary import Vocabulary, VocabularyFacts, recorded_fingerprint
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.schema import FILE, FILES, SegmentRow
from retrieval.catalogue.segment_rows import segments_and_tombstones, segments_in
from retrieval.collection.augmentation import Augmentation, Basis, open_augmentation
from retrieval.collection.content import Content
from retrieval.collection.global_rows import GlobalRows, read_global, stamp
from retrieval.collection.identity import keep_identity
from retrieval.collection.layout import (
    DESCRIPTOR,
    EARLY,
    IDENTITY,
    LOCK,
    OPTIONS,
    SEAL,
    SEGMENTS,
    SIGNATURE_KEY,
    STATISTICS,
    UNFINISHED,
    VOCABULARY,
    VOCABULARY_KEY,
    is_vocabulary,
)
from retrieval.collection.locking import lock_folder, refuse_links
from retrieval.collection.opening import (
    catalogue_place,
    named_vocabulary,
    open_catalogue,
    refuse_damaged,
    refuse_without_catalogue,
)
from retrieval.collection.options import CollectionOptions, read_options, write_options
from retrieval.collection.seal import is_as_sealed
from retrieval.collection.segments import open_segment
from retrieval.collection.statistics import content_key, read_statistics
from retrieval.collection.vocabulary_descriptor import descriptor_of
from retrieval.descriptors.contract import Descriptor
from retrieval.descriptors.registry import find_descriptor, model_file
from retrieval.features.options import features_fingerprint

if TYPE_CHECKING:
    from retrieval.features.extraction import Extractor

_LOOKS = 5  # attempts to read a collection that may change meanwhile
# Files that may exist without options, if a run was interrupted while it created the collection.
_FIRST = (*FILES, SEGMENTS, LOCK, DESCRIPTOR, IDENTITY)


class CollectionNotFound(CairnError):
    """There is no collection in the folder."""


class CollectionChanged(CairnError):
    """The collection changed since it was opened: it has another vocabulary, or a photo was removed."""

    _kind = "changed"


@dataclass
class _Read:
    descriptor: Descriptor | None = None
    described_by: str | None = None  # the name or file that `descriptor` was found by
    extractor: "Extractor | None" = None
    vocabulary: Vocabulary | None = None
    signatures: tuple[tuple[SignatureKind, str], SignatureSource] | None = None  # with its key
    opened: dict[tuple[object, ...], Segment] = field(default_factory=dict)  # by identity of a segment
    content: Content | None = None
    described: tuple[tuple[int, int] | None, GlobalRows | None] = (None, None)  # and the state of the file


@dataclass(frozen=True)
class Collection:
    """An open collection, read at first use, and cached until `forget`: vocabulary, segments and tombstones of one
    moment.
    """

    folder: Path
    options: CollectionOptions
    catalogue: Catalogue
    below: tuple[Path, ...] | None = None  # photos are read and sidecars written only in these, wherever links lead
    _read: _Read = field(default_factory=_Read, init=False, repr=False, compare=False)

    @staticmethod
    def open(folder: Path, *, catalogue: str | None = None) -> "Collection":
        """Open a collection, with the catalogue at an SQLAlchemy address, or else the SQLite file in the folder."""
        refuse_links(folder)
        if not (folder / OPTIONS).is_file():
            refuse_damaged(folder)
            raise CollectionNotFound(
                "There is no collection at {folder}: create one with {cairn index|cairn.create}.", folder=folder
            )
        options = read_options(folder / OPTIONS)
        options.check_extensions(folder)
        if catalogue is None:
            refuse_without_catalogue(folder)
        return Collection(folder, options, open_catalogue(folder, catalogue_place(folder, catalogue)))

    @staticmethod
    def create(folder: Path, options: CollectionOptions, *, catalogue: str | None = None) -> "Collection":
        """Create a collection, or open an existing one, whose own options count once it has a vocabulary."""
        from retrieval.descriptors.learnt import read_model_file
        from retrieval.foreign.computed import make_extractor

        options = options.with_extensions()
        named, learnt = options.descriptor, None
        there = Collection.open(folder, catalogue=catalogue) if (folder / OPTIONS).is_file() else None
        if there is None:
            refuse_links(folder)
        if there is not None and there.has_vocabulary:
            there.check_named(named)
            return there
        file = model_file(named)
        if file is not None:
            # The collection has its own copy: the original may be deleted, or change in a later version of Cairn.
            learnt = read_model_file(file)
            options = replace(options, descriptor=DESCRIPTOR)
        if there is not None:
            if there.options == options and (learnt is None or (folder / DESCRIPTOR).read_bytes() == learnt):
                return there
            there.catalogue.close()
        else:
            refuse_damaged(folder)
        if there is None and folder.exists() and (not folder.is_dir() or not all(map(_is_first, folder.iterdir()))):
            raise CairnError(
                "{folder} exists and is not a collection: choose a new folder for the collection.", folder=folder
            )
        make_extractor(find_descriptor(named), options.features)
        search_backend(options.search)
        where = catalogue_place(folder, catalogue)
        is_new = not (folder / SEGMENTS).is_dir()
        (folder / SEGMENTS).mkdir(parents=True, exist_ok=True)
        with lock_folder(folder):
            opened = Catalogue.open(where, create=True)
            try:
                keep_identity(folder, opened, is_new=is_new)
            except BaseException:
                opened.close()
                if is_new:
                    _remove_empty(folder)
                raise
            # Options may differ from the sealed ones while the collection has no vocabulary.
            (folder / SEAL).unlink(missing_ok=True)
            if learnt is not None:
                save_bytes(folder / DESCRIPTOR, learnt)
            write_options(folder / OPTIONS, options)
        return Collection(folder, options, opened)

    def __enter__(self) -> "Collection":
        return self

    def __exit__(self, *_: object) -> None:
        self.catalogue.close()

    def check_named(self, name: str) -> None:
        """Raise CairnError if a named descriptor does not exist, or is a learnt one other than the collection's.

        The original file of the collection's own descriptor may be missing.
        """
        file = model_file(name)
        own = descriptor_of(self.vocabulary_folder) or self.options.descriptor
        if file is not None and not file.is_file() and Path(own).name == DESCRIPTOR:
            return
        try:
            named = find_descriptor(name).fingerprint
        except CairnError:
            self.catalogue.close()
            raise
        if file is not None and named != self.descriptor.fingerprint:
            self.catalogue.close()
            raise CairnError(
                "{folder} was made with another descriptor than {name}: leave out {--descriptor}, or create a new "
                "collection.",
                folder=self.folder,
                name=name,
            )

    def locked(self) -> AbstractContextManager[None]:
        """Keep other processes from changing the collection; raises CollectionLocked if one is doing so."""
        return lock_folder(self.folder)

    @property
    def descriptor(self) -> Descriptor:
        """The descriptor of this collection's photos."""
        if self._read.descriptor is None:
            self._find_descriptor(self.vocabulary_folder)
        assert self._read.descriptor is not None
        return self._read.descriptor

    @property
    def descriptor_source(self) -> str:
        """Name or path of the descriptor, for `find_descriptor` without the collection's folder."""
        named = descriptor_of(self.vocabulary_folder) or self.options.descriptor
        file = model_file(named, self.folder) if named.endswith(".npz") else None
        return str(file) if file is not None else named

    def _find_descriptor(self, vocabulary: Path) -> None:
        """Find the descriptor in a vocabulary's folder, or else that of the options."""
        wanted = descriptor_of(vocabulary) or self.options.descriptor
        if wanted != self._read.described_by:
            self._read.descriptor = find_descriptor(wanted, self.folder)
            self._read.described_by = wanted
            self._read.extractor = None

    @property
    def extractor(self) -> "Extractor":
        """The extractor of this collection's features."""
        if self._read.extractor is None:
            from retrieval.foreign.computed import make_extractor

            self._read.extractor = make_extractor(self.descriptor, self.options.features)
        return self._read.extractor

    def use_extractor(self, extractor: "Extractor") -> None:
        """Use another extractor of the same features, such as one that knows the files of other programs."""
        if extractor.fingerprint != self.features_fingerprint:
            raise ValueError("the extractor is of other features")
        self._read.extractor = extractor

    @contextmanager
    def other_features(self) -> Iterator[None]:
        """Restore the extractor afterwards: paths of features of another program are valid for one call."""
        before = self._read.extractor
        try:
            yield
        finally:
            self._read.extractor = before

    @property
    def features_fingerprint(self) -> str:
        """Fingerprint of descriptor and options: that of the extractor, without creating it."""
        return features_fingerprint(self.descriptor, self.options.features)

    @property
    def vocabulary_folder(self) -> Path:
        """Folder of the vocabulary, whether it exists or not."""
        name = named_vocabulary(self.catalogue)
        if not is_vocabulary(name):
            raise CairnError(
                "The catalogue of {folder} names {name} as its vocabulary: run {cairn check}.",
                folder=self.folder,
                name=repr(name[:60]),
            )
        return self.folder / name

    @property
    def has_vocabulary(self) -> bool:
        """Whether there is a vocabulary."""
        return self.vocabulary_folder.is_dir()

    @property
    def has_early_words(self) -> bool:
        """Whether the words are those of the first photos, until the indexing of all has ended."""
        return self.catalogue.setting(VOCABULARY_KEY) == EARLY

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary; raises CairnError if it is missing, damaged or of another descriptor."""
        if self._read.vocabulary is None:
            self._read.vocabulary = self._load_vocabulary()
        return self._read.vocabulary

    def check_vocabulary(self) -> None:
        """Verify the whole vocabulary by its fingerprint, before words are assigned and stored."""
        self._read.vocabulary = self._load_vocabulary(trusting=False)

    def _load_vocabulary(self, *, trusting: bool = True) -> Vocabulary:
        for _ in range(_LOOKS):
            folder = self.vocabulary_folder
            if not folder.is_dir():
                raise CairnError(
                    "{folder} has no vocabulary yet: run {cairn index} with some photos.", folder=self.folder
                )
            try:
                vocabulary = Vocabulary.load(folder, known=trusting and is_as_sealed(self.folder, folder.name))
                self._find_descriptor(folder)
            except (CairnError, FileNotFoundError):
                if self.vocabulary_folder != folder:  # it was replaced while it was read
                    continue
                raise
            self.check_descriptor(vocabulary)
            return vocabulary
        raise CollectionChanged("{path} changes faster than it can be read: try again.", path=self.folder)

    @property
    def vocabulary_facts(self) -> VocabularyFacts:
        """Recorded facts of the vocabulary, which is only read if its files differ from the seal."""
        folder = self.vocabulary_folder
        if self._read.vocabulary is None and is_as_sealed(self.folder, folder.name):
            with suppress(CairnError, FileNotFoundError):  # reading all of it then raises the error, if it persists
                facts = VocabularyFacts.read(folder)
                self.check_descriptor(facts)
                return facts
        return self.vocabulary.facts

    def check_descriptor(self, vocabulary: Vocabulary | VocabularyFacts) -> None:
        """Raise CairnError if a vocabulary was made from another descriptor than this collection's."""
        if vocabulary.descriptor != self.features_fingerprint:
            raise CairnError(
                "The vocabulary was made from another descriptor or other regions than those of {folder}: "
                "use one made with the same options.",
                folder=self.folder,
            )

    @property
    def signature(self) -> SignatureKind | None:
        """The kind of signature of the collection's features; None without signatures."""
        if self._read.content is not None:  # does not change for open segments
            return self._read.content.signature
        return parse_signature(self.catalogue.setting(SIGNATURE_KEY) or self.options.signature)

    @property
    def signatures(self) -> SignatureSource | None:
        """The source of signatures of the collection's features; None without signatures."""
        kind = self.signature
        if kind is None:
            return None
        key = kind, self.vocabulary.fingerprint
        if self._read.signatures is None or self._read.signatures[0] != key:
            self._read.signatures = key, make_source(kind, self.vocabulary.centres, self.options.seed)
        return self._read.signatures[1]

    @property
    def basis(self) -> Basis:
        """Inputs that borrowed features must have been made with."""
        return Basis(self.vocabulary.fingerprint, self.features_fingerprint, full_name(self.signature))

    @property
    def augmentation(self) -> Augmentation | None:
        """Borrowed features; None if there are none, or if they are damaged or of another vocabulary."""
        return self.content.augmentation

    @property
    def global_rows(self) -> GlobalRows | None:
        """The global descriptors as they are now; None if there are none. Raises CairnError if they are damaged."""
        now = stamp(self.folder)
        if now != self._read.described[0]:
            self._read.described = now, read_global(self.folder)
        return self._read.described[1]

    @property
    def segments(self) -> list[Segment]:
        """The segments that are committed, in order."""
        return self.content.segments

    @property
    def content(self) -> Content:
        """The segments and tombstones of one moment; raises CollectionChanged if the vocabulary was replaced."""
        if self._read.content is None:
            self._read.content = self._open_content()
        return self._read.content

    def _open_content(self) -> Content:
        known = self._read.vocabulary is not None
        for _ in range(_LOOKS):
            rows, removed = self.catalogue.read(segments_and_tombstones)
            try:
                opened = {key: self._open_segment(key, row.folder) for key, row in ((_key(row), row) for row in rows)}
            except (CairnError, FileNotFoundError):
                there = {row.id for row in self.catalogue.read(segments_in)}
                if there == {row.id for row in rows} and not self._is_outdated:
                    raise
                # Segments were merged, or the vocabulary changed, while they were opened: try again.
                if self._is_outdated:
                    if known:
                        break
                    self._read.vocabulary = None
                continue
            self._check_widths(opened.values())
            self._read.opened = opened
            made_from = content_key(self.folder, rows, removed, self.vocabulary.fingerprint)
            augmentation = None
            with suppress(CairnError, OSError):
                augmentation = open_augmentation(self.folder, self.basis)
            facts, segments = self.vocabulary.facts, list(opened.values())
            return Content(self.folder, facts, segments, removed, self.signature, made_from, augmentation)
        raise CollectionChanged("{folder} has changed since it was opened: open it again.", folder=self.folder)

    def _check_widths(self, segments: Iterable[Segment]) -> None:
        """Raise CairnError if descriptors are of another length than the collection's words."""
        for segment in segments:
            descriptors = segment.columns.get("descriptor")
            if descriptors is not None and descriptors.shape[1] != self.vocabulary.dim:
                raise damaged(segment.folder / f"{COLUMN_PREFIX}descriptor.npy")

    def _open_segment(self, key: tuple[object, ...], folder: str) -> Segment:
        """Open a segment, or return the open one: segments are immutable."""
        segment = self._read.opened.get(key)
        if segment is not None and segment.vocabulary_fingerprint == self.vocabulary.fingerprint:
            return segment
        return open_segment(
            self.folder / SEGMENTS / folder,
            vocabulary_fingerprint=self.vocabulary.fingerprint,
            descriptor_fingerprint=self.features_fingerprint,
        )

    @property
    def _is_outdated(self) -> bool:
        """Whether the vocabulary was replaced since it was read."""
        known = self._read.vocabulary
        return known is not None and known.fingerprint != recorded_fingerprint(self.vocabulary_folder)

    def content_key(self) -> str | None:
        """Key of valid statistics, from the catalogue alone; None without a vocabulary."""
        rows, removed = self.catalogue.read(segments_and_tombstones)
        fingerprint = recorded_fingerprint(self.vocabulary_folder)
        return content_key(self.folder, rows, removed, fingerprint) if rows and fingerprint is not None else None

    @property
    def imbalance(self) -> float:
        """Imbalance factor of the vocabulary, see `InvertedIndex`: stored, or else computed from all postings."""
        key = self.content_key()
        known = read_statistics(self.folder / STATISTICS, key) if key is not None else None
        return self.index.imbalance if known is None else known.imbalance

    def forget(self) -> None:
        """Drop the cached list of segments, and a vocabulary that is no longer in use; open segments are reused."""
        if self._is_outdated:
            self._read.vocabulary = None
        if self._read.vocabulary is None and self._read.descriptor is not None:
            self._find_descriptor(self.vocabulary_folder)
        self._read.content = None

    @property
    def index(self) -> InvertedIndex:
        """Index of the postings of all segments, without removed photos."""
        return self.scored_index()

    def scored_index(
        self, scoring: ScoringOptions | None = None, similarity: Path | None = None, *, augmented: bool = False
    ) -> InvertedIndex:
        """Index of the postings of all segments, with options of scoring. `similarity`: file of a learnt similarity,
        read once. `augmented`: whether to include borrowed features; not with a similarity.
        """
        return self.content.scored_index(scoring, similarity, augmented=augmented)


def _key(row: SegmentRow) -> tuple[object, ...]:
    return row.id, row.folder, row.created, row.sha256


def _remove_empty(folder: Path) -> None:
    """Remove the files of a collection whose creation failed."""
    with suppress(OSError):
        (folder / SEGMENTS).rmdir()
        (folder / LOCK).unlink(missing_ok=True)
        folder.rmdir()


def _is_first(path: Path) -> bool:
    return path.name in _FIRST or UNFINISHED.fullmatch(path.name) is not None


def find_vocabulary(source: Path) -> Path:
    """Return the (current) vocabulary's folder of a collection, or `source` itself if it is no collection."""
    folder = source.parent if source.name == VOCABULARY and (source.parent / OPTIONS).is_file() else source
    if (folder / OPTIONS).is_file() and (folder / FILE).is_file():
        with Collection.open(folder) as collection:
            return collection.vocabulary_folder
    # The newest, if the catalogue of the collection is elsewhere.
    folders = sorted(path for path in folder.glob(f"{VOCABULARY}*") if path.is_dir())
    return folders[-1] if folders else source
