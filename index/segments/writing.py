"""Atomic writing of segments."""

import itertools
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.arrays import fingerprint, hash_file, publish_folder, save_array, save_json
from index.errors import CairnError
from index.postings.word_lists import coded_lists
from index.segments.description import (
    COLUMN_PREFIX,
    ELONGATIONS,
    FORMAT,
    META,
    NOTES,
    PARTS,
    SIGNATURE,
    SIGNATURES,
    SPARED,
    TEMPORARY_SUFFIX,
)
from index.segments.segment import Segment, posting_order


def write_segment(
    folder: Path,
    *,
    image_numbers: NDArray[np.integer],
    words: Sequence[NDArray[np.integer]],
    columns: Mapping[str, Sequence[NDArray[Any]]],
    vocabulary_fingerprint: str,
    descriptor_fingerprint: str,
    notes: bytes = b"",
    elongations: Sequence[float] = (),
) -> "Segment":
    """Write a segment atomically, and open it. Raises ValueError if the arguments do not fit together.

    `image_numbers` (n,) ascend; `words` (n_i,) and `columns` (n_i, ...) are of each image's features; an image may have
    none. Columns have one dtype and one shape a feature throughout; `signature`, of unsigned bytes, is stored in the
    order of the postings. In each image features are sorted stably by word. Empty `notes`, and `elongations`
    that are all 1, are not written.
    """
    folder = Path(folder)
    numbers, words = _checked_images(image_numbers, words)
    if len(elongations) not in (0, len(numbers)) or any(not 1 <= one < np.inf for one in elongations):
        raise ValueError(f"{len(numbers)} images need as many elongations of at least 1")
    if folder.exists():
        raise CairnError("{path} already exists: remove it first, or choose another name.", path=folder)
    lengths = np.array([len(image_words) for image_words in words], dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    # None if already sorted, as in merges of segments.
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
                _stored_column(name, _column(name, columns[name], orders, offsets), words, orders)
                for name in sorted(columns, key=lambda name: name == SIGNATURE)  # it comes last
            ),
            [(ELONGATIONS, np.array(elongations, np.float32))] if any(one != 1 for one in elongations) else [],
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
    # An empty list becomes a float array, which is fine without features.
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


def _stored_column(
    name: str, column: NDArray[Any], words: Sequence[NDArray[np.uint32]], orders: Sequence[NDArray[np.int64] | None]
) -> tuple[str, NDArray[Any]]:
    """A column as stored, and the name of its array."""
    if name != SIGNATURE:
        return COLUMN_PREFIX + name, column
    if column.ndim != 2 or column.dtype != np.uint8:
        raise ValueError(f"signatures must be rows of bytes, not {column.dtype} of shape {column.shape}")
    return SIGNATURES, column[posting_order(_in_order(words, orders))]


def _in_order(words: Sequence[NDArray[np.uint32]], orders: Sequence[NDArray[np.int64] | None]) -> NDArray[np.uint32]:
    """The words of all images, ascending within each."""
    return np.concatenate([some if order is None else some[order] for some, order in zip(words, orders, strict=True)])


def _column(
    name: str, rows: Sequence[NDArray[Any]], orders: Sequence[NDArray[np.int64] | None], offsets: NDArray[np.int64]
) -> NDArray[Any]:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or name in {*PARTS[FORMAT].values(), *SPARED.values()}:
        raise ValueError(f"{name!r} cannot be the name of a column")
    if len(rows) != len(orders):
        raise ValueError(f"column {name!r} has {len(rows)} arrays for {len(orders)} images")
    arrays = [np.asarray(row) for row in rows]
    # The first image with features sets the column's type; images without features need not know it.
    like = next((array for array in arrays if len(array)), arrays[0])
    if like.dtype.hasobject:
        raise ValueError(f"column {name!r} holds Python objects")
    column = np.empty((int(offsets[-1]), *like.shape[1:]), dtype=like.dtype)
    for array, order, start, end in zip(arrays, orders, offsets[:-1], offsets[1:], strict=True):
        if len(array) != end - start:
            raise ValueError(f"column {name!r} has {len(array)} rows for {end - start} features of an image")
        if len(array) and (array.dtype != like.dtype or array.shape[1:] != like.shape[1:]):
            raise ValueError(
                f"column {name!r} has {array.dtype} {array.shape[1:]}, unlike {like.dtype} {like.shape[1:]}"
            )
        if len(array):
            column[start:end] = array if order is None else array[order]
    return column
