"""Repair of a segment: damaged files are rebuilt from its other files.

Words and postings hold the same information: the words of every image, and the images of every word. So one of them may
be lost, or the offsets, or the description. A rebuilt file is used only if it equals the lost one byte for byte.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.arrays import fingerprint, hash_file, load_array, save_array, save_bytes
from index.errors import CairnError, Unreadable
from index.postings.plain_lists import plain_postings
from index.postings.sorted_lists import BLOCK_ENTRIES, SortedLists, blocks_of, concatenated_ranges
from index.postings.word_lists import coded_lists
from index.segments.description import (
    COLUMN_PREFIX,
    ELONGATIONS,
    META,
    NOTES,
    PARTS,
    SIGNATURES,
    read_description,
    verify_segment,
)

_FIRST_COLUMNS = ("geometry", "position", "shape", "angle", "keypoint", "descriptor")  # in this order, then any others
_SPARE = ".again.npy"


def restore_segment(
    folder: Path,
    sha256: str,
    *,
    vocabulary_fingerprint: str,
    descriptor_fingerprint: str,
    known: Mapping[str, NDArray[Any]],
) -> list[str]:
    """Rebuild damaged files of a segment from its other files; return the names of those restored. `sha256`: of the
    bytes of its meta.json; `known`: values of `image_numbers` and `notes` from elsewhere.
    """
    restored = []
    for leftover in folder.glob(f"*{_SPARE}"):  # left by a killed process
        leftover.unlink()
    if _sha256(folder / META) != sha256:
        described = (_description(folder, form, vocabulary_fingerprint, descriptor_fingerprint) for form in PARTS)
        contents = next((one for one in described if one and hashlib.sha256(one).hexdigest() == sha256), None)
        if contents is None:
            return []
        save_bytes(folder / META, contents)
        restored.append(META)
    try:
        meta = read_description(folder)
    except Unreadable:
        raise
    except CairnError:
        return restored  # its hash is right, yet it is no description
    entries = meta["files"]
    bad = {name.removesuffix(".npy") for name in verify_segment(folder)}
    for make in (_known, *_MAKERS[meta["format"]]):
        try:
            rebuilt = make(folder, entries, known)
            arrays = {
                name: rebuilt[name].astype(entries[name]["dtype"], copy=False) for name in sorted(bad & rebuilt.keys())
            }
        except (CairnError, ValueError, TypeError, LookupError, MemoryError, OverflowError):
            continue  # its sources are damaged too
        for name, array in arrays.items():
            spare = folder / f"{name}{_SPARE}"
            save_array(spare, array)
            if _sha256(spare) == entries[name]["sha256"]:
                spare.replace(folder / f"{name}.npy")
                restored.append(f"{name}.npy")
                bad.discard(name)
            else:
                spare.unlink()
    return restored


def _known(folder: Path, entries: Mapping[str, Any], known: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name: array for name, array in known.items() if name in entries}


def _offsets_from_postings(
    folder: Path, entries: Mapping[str, Any], known: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """First feature of each image, from the number of features of each word."""
    lengths = _feature_counts(_plain_blocks(folder), entries["image_numbers"]["shape"][0])
    return {"offsets": np.concatenate([[0], np.cumsum(lengths)])}


def _words_from_postings(
    folder: Path, entries: Mapping[str, Any], known: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """The words of each image, ascending, from the images of each word."""
    lengths = _feature_counts(_plain_blocks(folder), entries["image_numbers"]["shape"][0])
    if lengths.sum() != entries["words"]["shape"][0]:
        raise ValueError("the postings are damaged")
    return {"words": _words_by_image(_plain_blocks(folder), lengths)}


def _postings_from_words(
    folder: Path, entries: Mapping[str, Any], known: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """The images of each word, from the words of each image."""
    return dict(plain_postings(np.asarray(load_array(folder / "words.npy")), np.diff(_load(folder, "offsets"))))


def _coded_words_from_postings(
    folder: Path, entries: Mapping[str, Any], known: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """The words of each image, ascending, and where they begin, from the images of each word."""
    images = entries["image_numbers"]["shape"][0]
    lists = _sorted_lists(folder, "posting_lists", "posting_starts")
    lengths = _feature_counts(_coded_blocks(lists, images), images)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return {"offsets": offsets, **dict(coded_lists(_words_by_image(_coded_blocks(lists, images), lengths), offsets))}


def _postings_from_coded_words(
    folder: Path, entries: Mapping[str, Any], known: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """The images of each word, from the words of each image."""
    lists = _sorted_lists(folder, "word_lists", "offsets")
    words = np.empty(int(lists.starts[-1]), np.uint32)
    done = 0
    for _, _, values in lists.blocks():
        words[done : done + len(values)] = values
        done += len(values)
    return dict(coded_lists(words, lists.starts.astype(np.int64)))


# By the format of the segment; in this order.
_MAKERS = {
    1: (_offsets_from_postings, _words_from_postings, _postings_from_words),
    2: (_coded_words_from_postings, _postings_from_coded_words),
}


_Block = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64] | None]
"""Words, ascending over all blocks; the position of the image of each; the number of features of both, by default
one."""


def _plain_blocks(folder: Path) -> Iterator[_Block]:
    """The postings of format 1, in blocks: as 64-bit numbers, all would take several times the size of the segment."""
    names = ("words", "images", "counts", "offsets")
    words, images, counts, starts = (np.asarray(load_array(folder / f"posting_{name}.npy")) for name in names)
    offsets = starts.astype(np.int64)
    for first, last in blocks_of(np.diff(offsets), BLOCK_ENTRIES):
        some = slice(offsets[first], offsets[last])
        repeated = np.repeat(words[first:last].astype(np.int64), np.diff(offsets[first : last + 1]))
        yield repeated, images[some].astype(np.int64), counts[some].astype(np.int64)


def _coded_blocks(lists: SortedLists, images: int) -> Iterator[_Block]:
    """The postings of format 2, in blocks."""
    for first, lengths, values in lists.blocks():
        # Numbers of list, word in it, and image.
        keys = values + np.repeat(np.arange(first, first + len(lengths)), lengths) * lists.universe
        yield *np.divmod(keys, images), None


def _feature_counts(blocks: Iterable[_Block], images: int) -> NDArray[np.int64]:
    """Number of features of each image."""
    total = np.zeros(images, np.int64)
    for _, positions, counts in blocks:
        if len(positions) and positions.max() >= images:
            raise ValueError("the postings are damaged")
        total += np.bincount(positions, counts, minlength=images).astype(np.int64)
    return total


def _words_by_image(blocks: Iterable[_Block], lengths: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Words of the features of each image, ascending, from the number of features of each."""
    words = np.empty(int(lengths.sum()), np.uint32)
    following = np.cumsum(lengths) - lengths  # place of each image's next feature
    for some, positions, counts in blocks:
        order = np.argsort(positions, kind="stable")  # words stay ascending within each image
        repeated = some[order] if counts is None else np.repeat(some[order], counts[order])
        there = np.bincount(positions, counts, minlength=len(lengths)).astype(np.int64)
        words[concatenated_ranges(following, there)] = repeated
        following += there
    return words


def _sorted_lists(folder: Path, name: str, starts: str) -> SortedLists:
    return SortedLists(*(np.asarray(load_array(folder / f"{file}.npy")) for file in (name, starts)))


def _description(folder: Path, form: int, vocabulary: str, descriptor: str) -> bytes | None:
    """Rebuild meta.json from the existing files."""
    names = {path.stem for path in folder.glob("*.npy")}
    columns = [name for name in (COLUMN_PREFIX + column for column in _FIRST_COLUMNS) if name in names]
    others = sorted(name for name in names - {*PARTS[form], *columns} if name.startswith(COLUMN_PREFIX))
    columns += others + [name for name in (SIGNATURES, ELONGATIONS, NOTES) if name in names]
    files = {}
    try:
        for name in (*PARTS[form], *columns):
            array = load_array(folder / f"{name}.npy", mmap=True)
            digest = _sha256(folder / f"{name}.npy")
            files[name] = {"dtype": array.dtype.str, "shape": list(array.shape), "sha256": digest}
    except CairnError:
        return None
    meta = {"format": form, "vocabulary": vocabulary, "descriptor": descriptor, "files": files}
    return (json.dumps({**meta, "sha256": fingerprint({}, meta)}, indent=2, ensure_ascii=False) + "\n").encode()


def _load(folder: Path, name: str) -> NDArray[np.int64]:
    return np.asarray(load_array(folder / f"{name}.npy")).astype(np.int64)


def _sha256(path: Path) -> str | None:
    try:
        return hash_file(path)
    except OSError:
        return None
