"""Statistics of all postings, cached between commands: document frequencies of words, and norms of photos.

The file, `collection.statistics`, is a line of JSON, the two arrays, and the SHA-256 of all before. It names the
content that it was computed from, and is valid only for that; without it, the postings are read instead. Every format
begins with a line of JSON that names it, and ends with the checksum. Format 2 is for collections with an augmentation,
format 1 for all others.
"""

import hashlib
import json
from collections.abc import Collection as Numbers
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.arrays import fingerprint, save_bytes
from index.files.reading import IrregularFile, open_regular, read_regular
from index.inverted import InvertedIndex, ScoringOptions
from index.word_weights import WEIGHTING
from retrieval.catalogue.schema import SegmentRow
from retrieval.collection.segments import is_there

FORMAT = 2
_PLAIN_FORMAT = 1  # without borrowed features
_DIGEST = 64  # bytes of a SHA-256 in hexadecimal
_LARGEST_HEADER = 1 << 12  # bytes
_FREQUENCY, _NORM = np.dtype("<u4"), np.dtype("<f8")
_ROUNDING = 1e-9  # relative: logarithms may differ in the last bit between processors


@dataclass(frozen=True)
class Statistics:
    """Values that `InvertedIndex` computes from all postings, with plain tf-idf and the default options."""

    document_frequency: NDArray[np.int64]  # (words,)
    norms: NDArray[np.float64]  # (N,), of the photos by ascending number
    imbalance: float  # of the vocabulary
    augmentation: str | None = None  # key of the augmentation that the norms below include; None: without one
    scored_norms: NDArray[np.float64] | None = None  # (N,)

    def are_of(self, index: InvertedIndex) -> bool:
        """Whether they equal those of an index, up to rounding."""
        return (
            np.array_equal(self.document_frequency, index.document_frequency)
            and self.norms.shape == index.norms.shape
            and np.allclose(self.norms, index.norms, rtol=_ROUNDING, atol=0)
            and bool(np.isclose(self.imbalance, index.imbalance, rtol=_ROUNDING, atol=0))
            and (
                self.scored_norms is None
                or not index.lent
                or np.allclose(self.scored_norms, index.scored_norms, rtol=_ROUNDING, atol=0)
            )
        )


def content_key(
    folder: Path, rows: Sequence[SegmentRow], removed: Numbers[int], vocabulary_fingerprint: str
) -> str | None:
    """Key of the content of statistics, with its removed images; None if the catalogue names other segments."""
    if not all(row.sha256 is not None and is_there(folder, row) for row in rows):
        return None
    segments = [[row.folder, row.sha256] for row in rows]
    return fingerprint(
        {"removed": np.array(sorted(removed), np.int64)},
        {
            "segments": segments,
            "vocabulary": vocabulary_fingerprint,
            "tf": ScoringOptions().tf,
            "format": _PLAIN_FORMAT,
            **({"weighting": WEIGHTING} if WEIGHTING > 1 else {}),  # the first version had no name
        },
    )


def write_statistics(path: Path, key: str, index: InvertedIndex, augmentation: str | None = None) -> None:
    """Write the statistics of an index with default options, and an augmentation by its key, atomically."""
    counts = {"words": index.words, "images": len(index.norms), "imbalance": index.imbalance}
    header = {"format": _PLAIN_FORMAT, "key": key, **counts}
    if augmentation is not None:
        header |= {"format": FORMAT, "augmentation": augmentation}
    body = (
        json.dumps(header, sort_keys=True).encode()
        + b"\n"
        + index.document_frequency.astype(_FREQUENCY).tobytes()
        + index.norms.astype(_NORM).tobytes()
        + (index.scored_norms.astype(_NORM).tobytes() if augmentation is not None else b"")
    )
    save_bytes(path, body + hashlib.sha256(body).hexdigest().encode())


def statistics_key(path: Path) -> str | None:
    """Key of the content that stored statistics were computed from; None if they are missing or do not state it."""
    header = _header(path)
    return str(header["key"]) if "key" in header else None


def statistics_augmentation(path: Path) -> str | None:
    """Key of the augmentation that stored statistics include; None without one, or if they are missing."""
    header = _header(path)
    return str(header["augmentation"]) if "augmentation" in header else None


def _header(path: Path) -> dict[str, Any]:
    """The header of statistics; empty if missing or malformed."""
    try:
        with open_regular(path) as file:
            header = json.loads(file.readline(_LARGEST_HEADER))
        return header if isinstance(header, dict) else {}
    except (IrregularFile, OSError, ValueError, RecursionError):
        return {}


def is_of_later_format(path: Path) -> bool:
    """Whether a later version wrote the statistics; False if they are missing or damaged."""
    body = _sound_body(path)
    try:
        version = json.loads(body[: body.index(b"\n")])["format"] if body is not None else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return False
    return type(version) is int and version > FORMAT


def _sound_body(path: Path) -> bytes | None:
    """Contents of a file without its checksum; None if it is missing or damaged."""
    try:
        contents = read_regular(path)
    except (IrregularFile, OSError):
        return None
    body, digest = contents[:-_DIGEST], contents[-_DIGEST:]
    return body if hashlib.sha256(body).hexdigest().encode() == digest else None


def read_statistics(path: Path, key: str | None = None) -> Statistics | None:
    """Read statistics; None if they are missing, damaged, of another version or of other content than `key`."""
    if key is not None and statistics_key(path) != key:
        return None
    body = _sound_body(path)
    if body is None:
        return None
    try:
        begin = body.index(b"\n") + 1
        header = json.loads(body[:begin])
        words, images, imbalance = int(header["words"]), int(header["images"]), float(header["imbalance"])
        form, augmentation = header["format"], header.get("augmentation")
        norms = {_PLAIN_FORMAT: 1, FORMAT: 2}.get(form, 0) * images
        size = begin + words * _FREQUENCY.itemsize + norms * _NORM.itemsize
        if not norms >= images or len(body) != size or (augmentation is not None) != (form == FORMAT):
            return None
        frequency = np.frombuffer(body, _FREQUENCY, words, begin)
        every = np.frombuffer(body, _NORM, norms, begin + frequency.nbytes).astype(np.float64)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    scored = every[images:] if augmentation is not None else None
    return Statistics(frequency.astype(np.int64), every[:images], imbalance, augmentation, scored)
