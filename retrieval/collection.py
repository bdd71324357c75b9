"""A collection: one folder with its options, catalogue, vocabulary and segments."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from index.errors import CairnError
from index.inverted import InvertedIndex, ScoringOptions
from index.segment import Segment
from index.vocabulary import Vocabulary
from retrieval.catalogue import Catalogue
from retrieval.descriptors import find_descriptor
from retrieval.features import Extractor
from retrieval.options import CollectionOptions, read_options, write_options

OPTIONS = "collection.toml"
VOCABULARY = "vocabulary"
SEGMENTS = "segments"
STAGING = "staging"


@dataclass(frozen=True)
class Collection:
    """An open collection. What it holds is read when it is first asked for, and not read again."""

    folder: Path
    options: CollectionOptions
    catalogue: Catalogue

    @staticmethod
    def open(folder: Path, *, catalogue: str | None = None) -> "Collection":
        """Open a collection.

        Parameters
        ----------
        folder : Path
            Its folder.
        catalogue : str, optional
            SQLAlchemy address of its catalogue; the SQLite file in the folder otherwise.

        Raises
        ------
        CairnError
            There is none, or a part of it is damaged.
        """
        if not (folder / OPTIONS).is_file():
            raise CairnError(f"There is no collection at {folder}: make one with cairn index.")
        return Collection(folder, read_options(folder / OPTIONS), Catalogue.open(catalogue or folder))

    @staticmethod
    def create(folder: Path, options: CollectionOptions, *, catalogue: str | None = None) -> "Collection":
        """Create a collection, or open the one that is there; its own options win then."""
        if (folder / OPTIONS).is_file():
            return Collection.open(folder, catalogue=catalogue)
        find_descriptor(options.descriptor)
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise CairnError(f"{folder} exists and is not a collection: give the collection a folder of its own.")
        opened = Catalogue.open(catalogue or folder, create=True)
        (folder / SEGMENTS).mkdir(parents=True, exist_ok=True)
        write_options(folder / OPTIONS, options)
        return Collection(folder, options, opened)

    def __enter__(self) -> "Collection":
        return self

    def __exit__(self, *_: object) -> None:
        self.catalogue.close()

    @cached_property
    def extractor(self) -> Extractor:
        """Turns photos into features as this collection's were."""
        return Extractor(find_descriptor(self.options.descriptor), self.options.features)

    @property
    def has_vocabulary(self) -> bool:
        """Whether the vocabulary has been made."""
        return (self.folder / VOCABULARY).is_dir()

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary; CairnError where it is missing, damaged or of another descriptor."""
        if not self.has_vocabulary:
            raise CairnError(f"{self.folder} has no vocabulary yet: run cairn index with some photos.")
        vocabulary = Vocabulary.load(self.folder / VOCABULARY)
        self.check_descriptor(vocabulary)
        return vocabulary

    def check_descriptor(self, vocabulary: Vocabulary) -> None:
        """Raise CairnError where a vocabulary was made from another descriptor than this collection's."""
        if vocabulary.descriptor != self.extractor.fingerprint:
            raise CairnError(
                f"The vocabulary was made from another descriptor or other regions than those of {self.folder}: "
                "use one made with the same options."
            )

    @cached_property
    def segments(self) -> list[Segment]:
        """The segments that are committed, in order."""
        return [
            Segment.open(
                self.folder / SEGMENTS / row.folder,
                vocabulary_fingerprint=self.vocabulary.fingerprint,
                descriptor_fingerprint=self.extractor.fingerprint,
            )
            for row in self.catalogue.segments()
        ]

    @cached_property
    def index(self) -> InvertedIndex:
        """Postings of all segments, without what was removed."""
        return InvertedIndex(self.segments, self.vocabulary.words, self.catalogue.removed(), options=ScoringOptions())
