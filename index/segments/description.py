"""Description of a segment: its files by name, its format, and checks that they fit each other."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.arrays import check_format, fingerprint, hash_file, load_json
from index.errors import CairnError, Damaged, Unreadable, refuse_unreadable
from index.postings.plain_lists import PlainLists
from index.postings.word_lists import CodedLists

FORMAT = 2  # the format written; format 1 can be read
META = "meta.json"
# Suffix of the sibling folder in which a segment is written; an old one was left by a killed process.
TEMPORARY_SUFFIX = ".writing"
# Files of postings, images and words in `Segment.bytes`, by format; any other file is a column under its own name.
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
# A column stored in the order of the postings, as scoring reads it; the others are stored by image.
SIGNATURE = "signature"
SIGNATURES = "posting_signatures"
ELONGATIONS = "elongations"
SPARED = {
    NOTES: NOTES,
    SIGNATURES: "signatures",
    ELONGATIONS: "images",
}  # optional arrays of a segment, and their parts
COLUMN_PREFIX = "column_"
_COLUMN_NAME = re.compile(r"[a-z][a-z0-9_]*")
_HASH = re.compile(r"[0-9a-f]{64}")


def verify_segment(folder: Path) -> list[str]:
    """Hash every file of a segment; return the names of missing or changed ones. The segment need not open."""
    folder = Path(folder)
    try:
        files = read_description(folder)["files"]
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


def segment_bytes(folder: Path) -> dict[str, int]:
    """Bytes of each part of a segment, as `Segment.bytes`, read from its description alone."""
    meta = read_description(folder)
    return part_sizes(folder, meta["format"], meta["files"])


def part_sizes(folder: Path, version: int, names: Iterable[str]) -> dict[str, int]:
    """Bytes of the files of some arrays, by part."""
    sizes: dict[str, int] = {}
    for name in names:
        part = {**PARTS[version], **SPARED}.get(name, name.removeprefix(COLUMN_PREFIX))
        try:
            sizes[part] = sizes.get(part, 0) + (folder / f"{name}.npy").stat().st_size
        except OSError as error:
            raise damaged(folder / f"{name}.npy") from error
    return sizes


def damaged(path: Path) -> CairnError:
    """The error of a damaged file."""
    return Damaged("{path} is damaged: run {cairn check}, then {cairn repair}.", path=path)


def read_description(folder: Path) -> dict[str, Any]:
    """Read meta.json and check its own hash."""
    if not folder.is_dir():
        raise Damaged("The segment {folder} is missing: run {cairn check}, then {cairn repair}.", folder=folder)
    meta = load_json(folder / META)
    if not isinstance(meta, dict):
        raise damaged(folder / META)
    try:
        if meta.get("format") not in PARTS or isinstance(meta["format"], bool):
            check_format(folder, meta.get("format"), FORMAT)
    except ValueError as error:
        raise damaged(folder / META) from error
    claimed = meta.pop("sha256", None)
    if claimed != fingerprint({}, meta) or not _is_described(meta):
        raise damaged(folder / META)
    return meta


def _is_described(meta: Mapping[str, Any]) -> bool:
    """Whether the description of a segment is complete, and names only our own files."""
    files = meta.get("files")
    if not (isinstance(meta.get("vocabulary"), str) and isinstance(meta.get("descriptor"), str)):
        return False
    parts = PARTS[meta["format"]]
    if not isinstance(files, dict) or not parts.keys() <= files.keys():
        return False
    known = {*parts, *SPARED}
    return all(
        (name in known or (name.startswith(COLUMN_PREFIX) and _COLUMN_NAME.fullmatch(name.removeprefix(COLUMN_PREFIX))))
        and isinstance(entry, dict)
        and isinstance(entry.get("dtype"), str)
        and isinstance(entry.get("shape"), list)
        and isinstance(entry.get("sha256"), str)
        and _HASH.fullmatch(entry["sha256"])
        for name, entry in files.items()
    )


def misfits(arrays: Mapping[str, NDArray[Any]], form: int) -> Iterator[str]:
    """Names of arrays of a segment that do not fit the others, as far as can be seen without reading all data."""
    for name in PARTS[form]:
        if arrays[name].ndim != 1 or arrays[name].dtype.kind != "u":
            yield name
    if arrays["image_numbers"].dtype.itemsize > 4:
        yield "image_numbers"
    if not len(arrays["image_numbers"]) or (arrays["image_numbers"][1:] <= arrays["image_numbers"][:-1]).any():
        yield "image_numbers"
    yield from (PlainLists if form == 1 else CodedLists).misfits(arrays)
    for name, array in arrays.items():
        if name == NOTES:
            fits = array.ndim == 1 and array.dtype == np.uint8
        elif name == SIGNATURES:
            fits = (
                form == 2
                and array.ndim == 2
                and array.shape[1] > 0
                and len(array) == int(arrays["offsets"][-1])
                and array.dtype == np.uint8
            )
        elif name == ELONGATIONS:
            fits = array.shape == arrays["image_numbers"].shape and array.dtype == np.float32
            fits = fits and bool(((array >= 1) & (array < np.inf)).all())
        elif name not in PARTS[form]:
            fits = array.ndim >= 1 and array.dtype.kind in "biuf" and len(array) == int(arrays["offsets"][-1])
        else:
            fits = True
        if not fits:
            yield name
