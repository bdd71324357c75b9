"""Segments of the first format: uncompressed arrays, and geometry of ten bytes a feature."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from index.arrays import fingerprint, hash_file, save_array, save_json
from index.segments.segment import Segment
from retrieval.catalogue.changes import Rewritten, replace_segments
from retrieval.catalogue.segment_rows import segments_in
from retrieval.collection.collection import Collection
from retrieval.collection.layout import SEGMENTS
from retrieval.collection.segments import segment_row
from retrieval.features.encoding import decode_geometry


def narrow(values: Sequence[int], largest: int | None = None) -> np.ndarray:
    """The smallest unsigned type that holds the values."""
    return np.array(values, np.min_scalar_type(max(values, default=0) if largest is None else largest))


def write_segment_of_format_1(
    folder: Path,
    *,
    image_numbers: Sequence[int] | np.ndarray,
    words: Sequence[Sequence[int]] | Sequence[np.ndarray],
    columns: Mapping[str, Sequence[np.ndarray]],
    vocabulary_fingerprint: str,
    descriptor_fingerprint: str,
    notes: bytes = b"",
) -> None:
    """Write a segment, by loops over its features."""
    words = [[int(word) for word in row] for row in words]
    orders = [sorted(range(len(row)), key=row.__getitem__) for row in words]
    flat = [row[i] for row, order in zip(words, orders, strict=True) for i in order]
    postings: dict[int, dict[int, int]] = {}
    for image, row in enumerate(words):
        for word in row:
            counts = postings.setdefault(word, {})
            counts[image] = counts.get(image, 0) + 1
    distinct = sorted(postings)
    offsets = np.cumsum([0] + [len(postings[word]) for word in distinct])
    arrays: dict[str, np.ndarray] = {
        "image_numbers": np.array(image_numbers, np.uint32),
        "offsets": np.cumsum([0] + [len(row) for row in words]).astype(np.uint64),
        "words": narrow(flat),
        "posting_words": narrow(distinct),
        "posting_offsets": narrow(offsets.tolist()),
        "posting_images": narrow([image for word in distinct for image in postings[word]], len(words) - 1),
        "posting_counts": narrow([count for word in distinct for count in postings[word].values()]),
    }
    for name, rows in columns.items():
        like = next((row for row in rows if len(row)), rows[0])
        sorted_rows = [np.asarray(row)[order] for row, order in zip(rows, orders, strict=True) if order]
        arrays[f"column_{name}"] = np.concatenate([like[:0], *sorted_rows])
    if notes:
        arrays["notes"] = np.frombuffer(notes, np.uint8)
    folder.mkdir()
    files = {}
    for name, array in arrays.items():
        save_array(folder / f"{name}.npy", array)
        sha256 = hash_file(folder / f"{name}.npy")
        files[name] = {"dtype": array.dtype.str, "shape": list(array.shape), "sha256": sha256}
    meta = {"format": 1, "vocabulary": vocabulary_fingerprint, "descriptor": descriptor_fingerprint, "files": files}
    save_json(folder / "meta.json", {**meta, "sha256": fingerprint({}, meta)})


def bring_back_to_format_1(collection: Collection, which: Sequence[int] | None = None) -> None:
    """Rewrite segments of a collection in the first format: all, or some by index."""
    rows = collection.catalogue.read(segments_in)
    for place, (row, segment) in enumerate(zip(rows, collection.segments, strict=True)):
        if which is not None and place not in which:
            continue
        images = [segment.image(i) for i in range(segment.images)]
        columns: list[dict[str, Any]] = []
        for image in images:
            upright = {name: column for name, column in image.columns.items() if name != "angle"}
            frames = decode_geometry(upright, np.arange(len(image.words)))
            first, second = frames.linear[:, 0, 0], frames.linear[:, 1, 1]
            shape = np.stack([np.log2(first), frames.linear[:, 1, 0] / second, np.log2(second)], axis=1)
            others = {name: column for name, column in image.columns.items() if name != "geometry"}
            position = np.rint(frames.centres.astype(np.float64) * 65_535).astype(np.uint16)
            columns.append({"position": position, "shape": shape.astype(np.float16), **others})
        parent = collection.folder / SEGMENTS
        folder = parent / collection.catalogue.next_folder(parent)
        write_segment_of_format_1(
            folder,
            image_numbers=segment.image_numbers.tolist(),
            words=[image.words.tolist() for image in images],
            columns={name: [some[name] for some in columns] for name in columns[0]},
            vocabulary_fingerprint=segment.vocabulary_fingerprint,
            descriptor_fingerprint=segment.descriptor_fingerprint,
            notes=segment.notes,
        )
        new = Rewritten(segment_row(Segment.open(folder)), segment.image_numbers)
        collection.catalogue.write(replace_segments, [row.id], [new])
        shutil.rmtree(segment.folder)
    collection.forget()
