"""An immutable, memory-mapped segment: the features of some images, and postings from words to those images."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from index.arrays import load_array
from index.errors import CairnError
from index.files.limits import allow_files
from index.messages import Message
from index.postings.entries import DamagedListsError, Frequency, NearEntries, Postings, QuerySignatures, WordEntries
from index.postings.plain_lists import PlainLists
from index.postings.sorted_lists import blocks_of, concatenated_ranges
from index.postings.word_lists import CodedLists, first_of_kind
from index.segments.description import (
    COLUMN_PREFIX,
    ELONGATIONS,
    NOTES,
    SIGNATURES,
    damaged,
    misfits,
    part_sizes,
    read_description,
    verify_segment,
)


@dataclass(frozen=True, slots=True)
class ImageFeatures:
    """The features of one image. Those from a segment are ordered by word, and their columns are views of its files."""

    words: NDArray[np.integer]  # (n,)
    columns: dict[str, NDArray[Any]]  # (n, ...): row i of each belongs to `words[i]`
    # of the image: how many times longer it is than usual for its breadth. Lengths in its columns, multiplied by this,
    # are comparable with those of other images; 1 for nearly all
    elongation: float = 1.0


class Segment:
    """An opened segment: arrays mapped from its files, never changed. Made by `write_segment` or `Segment.open`.

    Image i of `image_numbers` (n,), ascending, has the features offsets[i] to offsets[i + 1] of the `columns`;
    `signatures` (features, B) are in the order of the postings (by word, then image, then input order), None if there
    are none; `elongations` (n,) are None if all are 1.
    """

    def __init__(self, folder: Path, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        self.folder = folder
        self.vocabulary_fingerprint: str = meta["vocabulary"]
        self.descriptor_fingerprint: str = meta["descriptor"]
        self.image_numbers: NDArray[np.uint32] = arrays["image_numbers"]
        self.offsets: NDArray[np.uint64] = arrays["offsets"]
        self.format: int = meta["format"]
        self._lists = PlainLists(arrays) if self.format == 1 else CodedLists(arrays)
        self.columns = {
            name.removeprefix(COLUMN_PREFIX): array for name, array in arrays.items() if name.startswith(COLUMN_PREFIX)
        }
        self.signatures: NDArray[np.uint8] | None = arrays.get(SIGNATURES)
        self.elongations: NDArray[np.float32] | None = arrays.get(ELONGATIONS)
        self._notes = arrays.get(NOTES)
        self.bytes = part_sizes(folder, meta["format"], arrays)

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        vocabulary_fingerprint: str | None = None,
        descriptor_fingerprint: str | None = None,
        with_notes: bool = True,
    ) -> Self:
        """Map a segment, which must have been made with the vocabulary and descriptor of these fingerprints."""
        folder = Path(folder)
        meta = read_description(folder)
        expected = {"vocabulary": vocabulary_fingerprint, "descriptor": descriptor_fingerprint}
        for thing, wanted in expected.items():
            if wanted is not None and meta[thing] != wanted:
                raise CairnError(
                    "{folder} was made with another {thing} ({there}, not {wanted}): index the photos again with the "
                    "one in use.",
                    folder=folder,
                    thing=Message(thing),
                    there=meta[thing][:12],
                    wanted=wanted[:12],
                )
        allow_files()
        arrays = {}
        for name, entry in meta["files"].items():
            if name == NOTES and not with_notes:
                continue
            # As a plain array: views of np.memmap cost several times more to make.
            array = load_array(folder / f"{name}.npy", mmap=True).view(np.ndarray)
            if array.dtype.str != entry["dtype"] or list(array.shape) != entry["shape"]:
                raise damaged(folder / f"{name}.npy")
            arrays[name] = array
        for name in misfits(arrays, meta["format"]):
            raise damaged(folder / f"{name}.npy")
        return cls(folder, meta, arrays)

    @property
    def images(self) -> int:
        """Number of images."""
        return len(self.image_numbers)

    @property
    def features(self) -> int:
        """Number of features."""
        return int(self.offsets[-1])

    @property
    def notes(self) -> bytes:
        """The notes; empty if there are none."""
        return self._notes.tobytes() if self._notes is not None else b""

    @property
    def bytes_per_feature(self) -> float:
        """Bytes of all array files per feature; 0.0 without features."""
        return sum(self.bytes.values()) / self.features if self.features else 0.0

    def image(self, i: int) -> ImageFeatures:
        """The features of the image at position `i` (not its number), without copying columns. Raises IndexError."""
        if not 0 <= i < self.images:
            raise IndexError(f"image {i} of {self.images}")
        return self.some_images(np.array([i]))[0]

    def some_images(
        self, positions: NDArray[np.integer], known: tuple[NDArray[np.int64], NDArray[np.integer]] | None = None
    ) -> list[ImageFeatures]:
        """The features of the images at some positions, as by `image`; `known` is the result of `words_of`."""
        lengths, words = known or self.words_of(positions)
        ends = np.cumsum(lengths).tolist()
        starts = self.offsets[positions].tolist()
        elongations = [1.0] * len(starts) if self.elongations is None else self.elongations[positions].tolist()
        images = []
        for start, length, end, elongation in zip(starts, lengths.tolist(), ends, elongations, strict=True):
            columns = {name: column[start : start + length] for name, column in self.columns.items()}
            images.append(ImageFeatures(words[end - length : end], columns, elongation))
        return images

    def words_of(self, positions: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.integer]]:
        """Numbers of features of images at `positions`, in any order, and their concatenated words, ascending within
        each; a few nanoseconds a feature. Rows of the columns begin at `offsets[position]`.
        """
        with self._refusing_damage():
            return self._lists.words_of(positions)

    def word_blocks(self, most: int) -> Iterator[tuple[slice, NDArray[np.int64], NDArray[np.integer]]]:
        """Positions and `words_of` of all images, in blocks of `most` features, unless one image has more."""
        ends = self.offsets.astype(np.int64)
        for first, last in blocks_of(ends[1:] - ends[:-1], most):
            yield slice(first, last), *self.words_of(np.arange(first, last))

    def document_frequency(self, words: int) -> NDArray[np.int64]:
        """Number of images of the segment with each word of the vocabulary, (words,)."""
        if self._lists.words_below > words:
            raise CairnError(
                "{folder} has words beyond the {words} of the vocabulary: run {cairn check}, then {cairn repair}.",
                folder=self.folder,
                words=words,
            )
        frequency = np.zeros(words, dtype=np.int64)
        with self._refusing_damage():
            self._lists.add_images(frequency)
        return frequency

    def feature_frequency(self, words: int) -> NDArray[np.int64]:
        """Number of features of the segment with each word of the vocabulary, (words,)."""
        frequency = np.zeros(words, dtype=np.int64)
        with self._refusing_damage():
            self._lists.add_features(frequency)
        return frequency

    def postings(self, words: NDArray[np.integer] | None = None) -> Postings:
        """The images of some words (distinct, ascending), or of all."""
        with self._refusing_damage():
            return self._lists.read(self._lists.find(words)[0], words)

    def signed_blocks(self, most: int, words: NDArray[np.integer] | None = None) -> Iterator[WordEntries]:
        """Features of distinct words, or of all, with signatures, in blocks of whole lists of `most` features."""
        lists, signatures = self._signed()
        at, lengths = lists.find(words)
        for first, last in blocks_of(lengths, most):
            with self._refusing_damage():
                entries = lists.entries(at[first:last], words, signatures)
            yield entries

    def add_products(
        self, total: NDArray[np.float64], words: NDArray[np.int64], weights: NDArray[np.float64], frequency: Frequency
    ) -> None:
        """Add the inner products of several vectors over `words` (m,), distinct and ascending, with the images' vectors
        to `total` (V, images), in the order of the words; `frequency` maps counts to term frequencies.
        """
        with self._refusing_damage():
            self._lists.add_products(total, words, weights, frequency)

    def near(self, query: QuerySignatures, first_rank: int = 0) -> NearEntries:
        """Features of the segment that share a word with a query's feature and have a similar signature."""
        lists, signatures = self._signed()
        with self._refusing_damage():
            return lists.near(lists.find(query.words)[0], query, signatures, first_rank)

    def _signed(self) -> tuple[CodedLists, NDArray[np.uint8]]:
        """The lists of words, and the signatures of the features in them; raises CairnError without signatures."""
        if self.signatures is None or isinstance(self._lists, PlainLists):
            raise CairnError("{folder} has no signatures: run {cairn retrain --signature}.", folder=self.folder)
        return self._lists, self.signatures

    def signatures_of(self, positions: NDArray[np.integer]) -> list[NDArray[np.uint8]]:
        """The signatures (n, B) uint8 of features of images, in the order of `image`, by looking up each word."""
        lists, signatures = self._signed()
        lengths, words = self.words_of(positions)
        first = first_of_kind(words, lengths)
        with self._refusing_damage():
            firsts, counts = lists.rows_of(words[first], np.repeat(positions, lengths)[first])
        # Features of one word and one image are adjacent in both orders.
        if (counts != np.diff(np.append(np.flatnonzero(first), len(words)))).any():
            raise damaged(self.folder / "posting_lists.npy")
        found = signatures.take(concatenated_ranges(firsts, counts), axis=0)
        return np.split(found, np.cumsum(lengths)[:-1]) if len(lengths) else []

    def verify(self) -> list[str]:
        """Names of missing or changed files; see `verify_segment`."""
        return verify_segment(self.folder)

    @contextmanager
    def _refusing_damage(self) -> Iterator[None]:
        try:
            yield
        except DamagedListsError as error:
            raise damaged(self.folder / f"{error.array}.npy") from error


def posting_order(words: NDArray[np.integer]) -> NDArray[np.intp]:
    """Position of each feature of the posting lists among the features of all images; `words`: of these."""
    return np.argsort(words, kind="stable")
