"""An immutable, memory-mapped segment: the features of some images, and postings from words to those images."""

import itertools
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from index.arrays import (
    check_format,
    fingerprint,
    hash_file,
    load_array,
    load_json,
    publish_folder,
    save_array,
    save_json,
)
from index.errors import CairnError, Unreadable, refuse_unreadable
from index.postings.sorted_lists import blocks_of
from index.postings.word_lists import CodedLists, DamagedListsError, Entries, PlainLists, Postings, coded_lists

FORMAT = 2  # that is written; format 1 is read
META = "meta.json"
# A segment is written in a sibling folder whose name ends so; one that is found later was left by a killed process.
TEMPORARY_SUFFIX = ".writing"
# What counts as postings, images and words in `Segment.bytes`, by format; another file is a column under its own name.
PARTS = {
    1: {
        "image_numbers": "images",
        "offsets": "images",
        "words": "words",
        "posting_words": "postings",
        "posting_offsets": "postings",
        "posting_images": "postings",
        "posting_counts": "postings",
    },
    2: {
        "image_numbers": "images",
        "offsets": "images",
        "word_lists": "words",
        "posting_starts": "postings",
        "posting_lists": "postings",
    },
}
NOTES = "notes"
# A column that is kept in the order of the postings, where scoring reads it, and not by image as the others are.
SIGNATURE = "signature"
SIGNATURES = "posting_signatures"
_SPARED = {NOTES: NOTES, SIGNATURES: "signatures"}  # arrays that a segment need not have, and their parts
COLUMN_PREFIX = "column_"
_ENTRIES_AT_ONCE = 1 << 20
_COLUMN_NAME = re.compile(r"[a-z][a-z0-9_]*")
_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class ImageFeatures:
    """The features of one image; those that a segment gives are ordered by word, their columns views of its files.

    Attributes
    ----------
    words : ndarray, shape (n,), integer
    columns : dict of str to ndarray, shape (n, ...)
        Row i of each belongs to `words[i]`.
    """

    words: NDArray[np.integer]
    columns: dict[str, NDArray[Any]]


def write_segment(
    folder: Path,
    *,
    image_numbers: NDArray[np.integer],
    words: Sequence[NDArray[np.integer]],
    columns: Mapping[str, Sequence[NDArray[Any]]],
    vocabulary_fingerprint: str,
    descriptor_fingerprint: str,
    notes: bytes = b"",
) -> "Segment":
    """Write a segment, so that `folder` is there whole or not at all, and open it.

    Parameters
    ----------
    folder : Path
        Must not exist; its parent must.
    image_numbers : ndarray, shape (n,), uint32
        At least one, ascending, no two alike.
    words : sequence of n ndarrays, shape (n_i,), int32
        The visual words of each image's features; an image may have none.
    columns : mapping of str to sequence of n ndarrays, shape (n_i, ...)
        What else is kept of each feature (position, shape, descriptor). A column has one dtype and one shape a
        feature throughout. They are stored as given: the caller chooses the width. `signature`, of unsigned bytes, is
        kept in the order of the postings: see `Segment.signatures`.
    vocabulary_fingerprint, descriptor_fingerprint : str
        What the words were made with; `Segment.open` can insist on them.
    notes : bytes
        What else is to be known of the images; nothing is written where it is empty.

    Returns
    -------
    Segment
        In each image the features are ordered by word, and those of one word as they were given.

    Raises
    ------
    ValueError
        The arguments do not fit together.
    CairnError
        `folder` exists.
    """
    folder = Path(folder)
    numbers, words = _checked_images(image_numbers, words)
    if folder.exists():
        raise CairnError(f"{folder} already exists: remove it first, or choose another name.")
    lengths = np.array([len(image_words) for image_words in words], dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    # None where they are sorted already, as those of segments that are merged.
    orders = [
        np.argsort(image_words, kind="stable") if (image_words[1:] < image_words[:-1]).any() else None
        for image_words in words
    ]

    temporary = folder.with_name(f"{folder.name}.{secrets.token_hex(4)}{TEMPORARY_SUFFIX}")
    temporary.mkdir()
    try:
        arrays: Iterator[tuple[str, NDArray[Any]]] = itertools.chain(
            [("image_numbers", numbers), ("offsets", offsets.astype(np.uint64))],
            _lists_of(words, orders, offsets),
            # One column at a time: a column of descriptors is most of the segment.
            (
                _stored(name, _column(name, columns[name], orders, offsets), words, orders)
                for name in sorted(columns, key=lambda name: name == SIGNATURE)  # it comes last
            ),
            [(NOTES, np.frombuffer(notes, np.uint8))] if notes else [],
        )
        files = {}
        for name, array in arrays:
            path = temporary / f"{name}.npy"
            save_array(path, array)
            files[name] = {"dtype": array.dtype.str, "shape": list(array.shape), "sha256": hash_file(path)}
        meta = {
            "format": FORMAT,
            "vocabulary": vocabulary_fingerprint,
            "descriptor": descriptor_fingerprint,
            "files": files,
        }
        save_json(temporary / META, {**meta, "sha256": fingerprint({}, meta)})
        publish_folder(temporary, folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return Segment.open(folder)


def verify_segment(folder: Path) -> list[str]:
    """Hash every file of a segment again.

    Returns
    -------
    list of str
        Names of the files that are missing or not what was written; empty for a sound segment. It needs no segment
        that opens.

    Raises
    ------
    Unreadable
        The system or the disk does not give a file out, so that nothing is known of it.
    """
    folder = Path(folder)
    try:
        files = _load_meta(folder)["files"]
    except Unreadable:
        raise
    except CairnError:
        return [META]
    damaged = []
    for name, entry in files.items():
        path = folder / f"{name}.npy"
        try:
            sound = hash_file(path) == entry["sha256"]
        except OSError as error:
            refuse_unreadable(path, error)
            sound = False
        if not sound:
            damaged.append(path.name)
    return damaged


class Segment:
    """An opened segment: arrays mapped from its files, never changed. Made by `write_segment` or `Segment.open`.

    Attributes
    ----------
    folder : Path
    image_numbers : ndarray, shape (n,), uint32
        Ascending.
    offsets : ndarray, shape (n + 1,), uint64
        Image i has the features offsets[i] to offsets[i + 1].
    columns : dict of str to ndarray, shape (features, ...)
    signatures : ndarray, shape (features, B), uint8, or None
        In the order of the postings: by word, then by image, then as they were given; None where there are none.
    format : int
    vocabulary_fingerprint, descriptor_fingerprint : str
    bytes : dict of str to int
        Of the files, by part: images, words, postings, signatures, notes, and each column by its name.
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
        self._notes = arrays.get(NOTES)
        self.bytes = _part_sizes(folder, meta["format"], arrays)

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        vocabulary_fingerprint: str | None = None,
        descriptor_fingerprint: str | None = None,
        with_notes: bool = True,
    ) -> Self:
        """Map a segment.

        Parameters
        ----------
        folder : Path
        vocabulary_fingerprint, descriptor_fingerprint : str, optional
            What it must have been made with.
        with_notes : bool
            Whether the notes are opened, too; they can be read without them where they are damaged.

        Raises
        ------
        CairnError
            It is missing, damaged as far as that shows without reading it all (see `verify`), of a later format, or
            was made with another vocabulary or descriptor.
        """
        folder = Path(folder)
        meta = _load_meta(folder)
        expected = {"vocabulary": vocabulary_fingerprint, "descriptor": descriptor_fingerprint}
        for thing, wanted in expected.items():
            if wanted is not None and meta[thing] != wanted:
                raise CairnError(
                    f"{folder} was made with another {thing} ({meta[thing][:12]}, not {wanted[:12]}): "
                    "index the photos again with the one in use."
                )
        arrays = {}
        for name, entry in meta["files"].items():
            if name == NOTES and not with_notes:
                continue
            # As a plain array: views of np.memmap cost several times more to make.
            array = load_array(folder / f"{name}.npy", mmap=True).view(np.ndarray)
            if array.dtype.str != entry["dtype"] or list(array.shape) != entry["shape"]:
                raise _damaged(folder / f"{name}.npy")
            arrays[name] = array
        for name in _misfits(arrays, meta["format"]):
            raise _damaged(folder / f"{name}.npy")
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
        """What was written as notes; empty where nothing was."""
        return self._notes.tobytes() if self._notes is not None else b""

    @property
    def bytes_per_feature(self) -> float:
        """Bytes of all array files, a feature; 0.0 where there is no feature."""
        return sum(self.bytes.values()) / self.features if self.features else 0.0

    def image(self, i: int) -> ImageFeatures:
        """The features of the image at position `i` (not its number), the columns without copying them.

        Raises
        ------
        IndexError
            `i` is not in [0, images).
        """
        if not 0 <= i < self.images:
            raise IndexError(f"image {i} of {self.images}")
        return self.some_images(np.array([i]))[0]

    def some_images(self, positions: NDArray[np.integer]) -> list[ImageFeatures]:
        """The features of the images at some positions, as `image` gives those of one; see `words_of`."""
        lengths, words = self.words_of(positions)
        ends = np.cumsum(lengths).tolist()
        starts = self.offsets[positions].tolist()
        found = []
        for start, length, end in zip(starts, lengths.tolist(), ends, strict=True):
            columns = {name: column[start : start + length] for name, column in self.columns.items()}
            found.append(ImageFeatures(words[end - length : end], columns))
        return found

    def words_of(self, positions: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.integer]]:
        """The words of some images, a few nanoseconds a feature.

        Parameters
        ----------
        positions : ndarray, shape (n,), integer
            In [0, images), in any order.

        Returns
        -------
        lengths : ndarray, shape (n,), int64
            Features of each image: its rows of the columns begin at `offsets[position]`.
        words : ndarray, shape (sum of lengths,), integer
            Of one image after the other; ascending within each.

        Raises
        ------
        CairnError
            They are damaged, which `open` does not notice.
        """
        with self._refusing_damage():
            return self._lists.words_of(positions)

    def word_blocks(self, most: int) -> Iterator[tuple[slice, NDArray[np.int64], NDArray[np.integer]]]:
        """The words of all images, a block at a time.

        Parameters
        ----------
        most : int
            Features in a block; more where one image has more.

        Yields
        ------
        images : slice
            Positions in `image_numbers`.
        lengths, words : ndarray
            As those of `words_of`.

        Raises
        ------
        CairnError
            As `words_of`.
        """
        ends = self.offsets.astype(np.int64)
        for first, last in blocks_of(ends[1:] - ends[:-1], most):
            yield slice(first, last), *self.words_of(np.arange(first, last))

    def document_frequency(self, words: int) -> NDArray[np.int64]:
        """In how many images of the segment each word of the vocabulary is.

        Parameters
        ----------
        words : int
            Size of the vocabulary.

        Returns
        -------
        ndarray, shape (words,), int64

        Raises
        ------
        CairnError
            The segment has words that a vocabulary of that size has not.
        """
        if self._lists.words_below > words:
            raise CairnError(
                f"{self.folder} has words beyond the {words} of the vocabulary: run cairn check, then cairn repair."
            )
        frequency = np.zeros(words, dtype=np.int64)
        with self._refusing_damage():
            self._lists.add_images(frequency)
        return frequency

    def feature_frequency(self, words: int) -> NDArray[np.int64]:
        """How many features of the segment have each word of the vocabulary.

        Parameters
        ----------
        words : int
            Size of the vocabulary, which has all words of the segment.

        Returns
        -------
        ndarray, shape (words,), int64
        """
        frequency = np.zeros(words, dtype=np.int64)
        with self._refusing_damage():
            self._lists.add_features(frequency)
        return frequency

    def postings(self, words: NDArray[np.integer]) -> Postings:
        """The images that have some words.

        Parameters
        ----------
        words : ndarray, shape (m,), integer
            Distinct, ascending.

        Returns
        -------
        Postings
            Of those of the words that the segment has.

        Raises
        ------
        CairnError
            They are damaged, which `open` does not notice.
        """
        with self._refusing_damage():
            return self._lists.read(self._lists.find(words)[0], words)

    def signed_blocks(self, most: int, words: NDArray[np.integer] | None = None) -> Iterator[Entries]:
        """The features of some words, or of all, with their signatures, a block at a time: whole lists, ascending.

        Parameters
        ----------
        most : int
            Features in a block; more where one list is longer.
        words : ndarray, shape (m,), integer, optional
            Distinct, ascending.

        Raises
        ------
        CairnError
            As `postings`; or the segment has no signatures.
        """
        if self.signatures is None or isinstance(self._lists, PlainLists):
            raise CairnError(f"{self.folder} has no signatures: run cairn retrain --signature.")
        at, lengths = self._lists.find(words)
        for first, last in blocks_of(lengths, most):
            with self._refusing_damage():
                entries = self._lists.entries(at[first:last], words, self.signatures)
            yield entries

    def signatures_of(self, positions: NDArray[np.integer]) -> list[NDArray[np.uint8]]:
        """The signatures (n, B) uint8 of the features of some images, in the order of `image`.

        Few positions take a look at the lists of all their words; many, or all, are better asked for at once.
        """
        if self.signatures is None:
            raise CairnError(f"{self.folder} has no signatures: run cairn retrain --signature.")
        lengths, words = self.words_of(positions)
        bounds = np.concatenate([[0], np.cumsum(lengths)])
        if 2 * len(positions) > self.images:
            order = np.empty(self.features, np.int64)
            every = self.words_of(np.arange(self.images))[1]
            order[_posting_order(every)] = np.arange(self.features)
            starts = self.offsets[positions].astype(np.int64)
            return [
                self.signatures[order[start : start + n]] for start, n in zip(starts, lengths.tolist(), strict=True)
            ]
        # Features of one word and one image follow each other in both orders.
        parts: list[list[NDArray[np.int64]]] = [[] for _ in positions]
        distinct = np.unique(words)
        for entries in self.signed_blocks(_ENTRIES_AT_ONCE, distinct):
            for part, position in zip(parts, positions.tolist(), strict=True):
                part.append(entries.rows[entries.images == position])
        rows = [np.concatenate([np.zeros(0, np.int64), *part]) for part in parts]
        if [len(one) for one in rows] != np.diff(bounds).tolist():
            raise _damaged(self.folder / "posting_lists.npy")
        return [self.signatures[one] for one in rows]

    def posting_blocks(self, most: int, words: NDArray[np.integer] | None = None) -> Iterator[Postings]:
        """The postings of some words, or of all, a block at a time: whole lists, ascending.

        Parameters
        ----------
        most : int
            Postings in a block; more where one list is longer, which is no longer than the segment has images.
        words : ndarray, shape (m,), integer, optional
            Distinct, ascending.

        Raises
        ------
        CairnError
            As `postings`.
        """
        at, lengths = self._lists.find(words)
        for first, last in blocks_of(lengths, most):
            with self._refusing_damage():
                postings = self._lists.read(at[first:last], words)
            yield postings

    def verify(self) -> list[str]:
        """Names of the files that are no longer what was written; see `verify_segment`."""
        return verify_segment(self.folder)

    @contextmanager
    def _refusing_damage(self) -> Iterator[None]:
        try:
            yield
        except DamagedListsError as error:
            raise _damaged(self.folder / f"{error.array}.npy") from error


def _checked_images(
    image_numbers: NDArray[np.integer], words: Sequence[NDArray[np.integer]]
) -> tuple[NDArray[np.uint32], list[NDArray[np.uint32]]]:
    numbers = np.asarray(image_numbers)
    if numbers.ndim != 1 or len(numbers) == 0 or numbers.dtype.kind not in "iu":
        raise ValueError("image_numbers must be a row of at least one integer")
    if numbers[0] < 0 or numbers[-1] > np.iinfo(np.uint32).max or (numbers[1:] <= numbers[:-1]).any():
        raise ValueError("image_numbers must be ascending, distinct, and fit in 32 bits")
    if len(words) != len(numbers):
        raise ValueError(f"{len(words)} arrays of words for {len(numbers)} images")
    # An empty list becomes a float array, which is no mistake where there are no features.
    rows = [np.asarray(row) if len(row) else np.empty(0, dtype=np.int32) for row in words]
    for row in rows:
        if row.ndim != 1 or row.dtype.kind not in "iu":
            raise ValueError(f"words must be rows of integers, not {row.dtype} of shape {row.shape}")
        if len(row) and (row.min() < 0 or row.max() > np.iinfo(np.uint32).max):
            raise ValueError("words must be at least 0 and fit in 32 bits")
    return numbers.astype(np.uint32), [row.astype(np.uint32, copy=False) for row in rows]


def _lists_of(
    words: Sequence[NDArray[np.uint32]], orders: Sequence[NDArray[np.int64] | None], offsets: NDArray[np.int64]
) -> Iterator[tuple[str, NDArray[Any]]]:
    """Coded words of images and postings of words."""
    yield from coded_lists(_in_order(words, orders), offsets)


def _stored(
    name: str, column: NDArray[Any], words: Sequence[NDArray[np.uint32]], orders: Sequence[NDArray[np.int64] | None]
) -> tuple[str, NDArray[Any]]:
    """A column as it is kept, and the name of its array."""
    if name != SIGNATURE:
        return COLUMN_PREFIX + name, column
    if column.ndim != 2 or column.dtype != np.uint8:
        raise ValueError(f"signatures must be rows of bytes, not {column.dtype} of shape {column.shape}")
    return SIGNATURES, column[_posting_order(_in_order(words, orders))]


def _posting_order(words: NDArray[np.integer]) -> NDArray[np.intp]:
    """Where each feature of the posting lists stands among the features of all images, given the words of these."""
    return np.argsort(words, kind="stable")


def _in_order(words: Sequence[NDArray[np.uint32]], orders: Sequence[NDArray[np.int64] | None]) -> NDArray[np.uint32]:
    """The words of all images, ascending within each."""
    return np.concatenate([some if order is None else some[order] for some, order in zip(words, orders, strict=True)])


def _column(
    name: str, rows: Sequence[NDArray[Any]], orders: Sequence[NDArray[np.int64] | None], offsets: NDArray[np.int64]
) -> NDArray[Any]:
    """One column of all images, each image's rows in its order."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or name in {*PARTS[FORMAT].values(), *_SPARED.values()}:
        raise ValueError(f"{name!r} cannot be the name of a column")
    if len(rows) != len(orders):
        raise ValueError(f"column {name!r} has {len(rows)} arrays for {len(orders)} images")
    arrays = [np.asarray(row) for row in rows]
    # An image without features need not know the column's type: the first image that has some decides.
    like = next((array for array in arrays if len(array)), arrays[0])
    if like.dtype.hasobject:
        raise ValueError(f"column {name!r} holds Python objects")
    column = np.empty((int(offsets[-1]), *like.shape[1:]), dtype=like.dtype)
    for array, order, start, end in zip(arrays, orders, offsets[:-1], offsets[1:], strict=True):
        if len(array) != end - start:
            raise ValueError(f"column {name!r} has {len(array)} rows for {end - start} features of an image")
        if len(array) and (array.dtype != like.dtype or array.shape[1:] != like.shape[1:]):
            raise ValueError(
                f"column {name!r} has {array.dtype} {array.shape[1:]} beside {like.dtype} {like.shape[1:]}"
            )
        if len(array):
            column[start:end] = array if order is None else array[order]
    return column


def segment_bytes(folder: Path) -> dict[str, int]:
    """Bytes of each part of a segment, as `Segment.bytes`, by its description alone: nothing of it is mapped.

    Raises
    ------
    CairnError
        It is missing, its description is damaged, or it is of a later format.
    """
    meta = _load_meta(folder)
    return _part_sizes(folder, meta["format"], meta["files"])


def _part_sizes(folder: Path, version: int, names: Iterable[str]) -> dict[str, int]:
    """Bytes of the files of some arrays, by the parts that they belong to."""
    sizes: dict[str, int] = {}
    for name in names:
        part = {**PARTS[version], **_SPARED}.get(name, name.removeprefix(COLUMN_PREFIX))
        try:
            sizes[part] = sizes.get(part, 0) + (folder / f"{name}.npy").stat().st_size
        except OSError as error:
            raise _damaged(folder / f"{name}.npy") from error
    return sizes


def _damaged(path: Path) -> CairnError:
    return CairnError(f"{path} is damaged: run cairn check, then cairn repair.")


def _load_meta(folder: Path) -> dict[str, Any]:
    """meta.json, which says by its own hash whether it is as written."""
    if not folder.is_dir():
        raise CairnError(f"The segment {folder} is missing: run cairn check, then cairn repair.")
    meta = load_json(folder / META)
    if not isinstance(meta, dict):
        raise _damaged(folder / META)
    try:
        if meta.get("format") not in PARTS or isinstance(meta["format"], bool):
            check_format(folder, meta.get("format"), FORMAT)
    except ValueError as error:
        raise _damaged(folder / META) from error
    claimed = meta.pop("sha256", None)
    if claimed != fingerprint({}, meta) or not _is_described(meta):
        raise _damaged(folder / META)
    return meta


def _is_described(meta: Mapping[str, Any]) -> bool:
    """Whether a description has all that a segment's needs; a file's name is never part of a path unless it is ours."""
    files = meta.get("files")
    if not (isinstance(meta.get("vocabulary"), str) and isinstance(meta.get("descriptor"), str)):
        return False
    parts = PARTS[meta["format"]]
    if not isinstance(files, dict) or not parts.keys() <= files.keys():
        return False
    known = {*parts, *_SPARED}
    return all(
        (name in known or (name.startswith(COLUMN_PREFIX) and _COLUMN_NAME.fullmatch(name.removeprefix(COLUMN_PREFIX))))
        and isinstance(entry, dict)
        and isinstance(entry.get("dtype"), str)
        and isinstance(entry.get("shape"), list)
        and isinstance(entry.get("sha256"), str)
        and _HASH.fullmatch(entry["sha256"])
        for name, entry in files.items()
    )


def _misfits(arrays: Mapping[str, NDArray[Any]], form: int) -> Iterator[str]:
    """Names of arrays of a segment that do not fit the others, as far as that shows without reading it all."""
    for name in PARTS[form]:
        if arrays[name].ndim != 1 or arrays[name].dtype.kind != "u":
            yield name
    if not len(arrays["image_numbers"]) or (arrays["image_numbers"][1:] <= arrays["image_numbers"][:-1]).any():
        yield "image_numbers"
    yield from (PlainLists if form == 1 else CodedLists).misfits(arrays)
    for name, array in arrays.items():
        if name == NOTES:
            fits = array.ndim == 1 and array.dtype == np.uint8
        elif name == SIGNATURES:
            fits = (
                form == 2 and array.shape == (int(arrays["offsets"][-1]), *array.shape[1:2]) and array.dtype == np.uint8
            )
        elif name not in PARTS[form]:
            fits = array.ndim >= 1 and array.dtype.kind in "biuf" and len(array) == int(arrays["offsets"][-1])
        else:
            fits = True
        if not fits:
            yield name
