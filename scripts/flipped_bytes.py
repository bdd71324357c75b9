#!/usr/bin/env python3
"""Flip bytes in the files of a collection, one at a time, and report whether `cairn check` finds each.

A small collection is made from synthetic photos, with all kinds of data: a learnt descriptor, groups, links and
thumbnails. Then one byte of one file is changed, the collection is checked, and the byte is restored. Each file gets
equally many flips, at random places that depend on the seed.

Prints one JSON object. Exit code 1 if a flip was not found, or another file was reported.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(ROOT))


def make_collection(work: Path) -> Path:
    """Make a sealed collection of a few photos in three segments, with every kind of file."""
    from eval.demo.synthetic import build_demo_collection
    from retrieval.catalogue.photos import all_indexed
    from retrieval.collection.collection import Collection
    from retrieval.collection.options import CollectionOptions
    from retrieval.collection.sealing import seal
    from retrieval.groups.groups import group_photos
    from retrieval.indexing.adding import index_photos
    from retrieval.photos.thumbnails import thumbnail

    demo = build_demo_collection(work / "photos", views=3, distractors=0)
    folder = work / "flipped.cairn"
    with Collection.create(
        folder, CollectionOptions(descriptor="cairn", batch=5, words=300, signature="none")
    ) as collection:
        index_photos(collection, sorted(demo.images.iterdir())[:12])
        group_photos(collection)
        for row in collection.catalogue.read(all_indexed):
            thumbnail(Path(row.path), row.sha256, 128, folder / "cache")
        seal(collection)
    return folder


def flip(folder: Path, flips: int, seed: int) -> dict[str, object]:
    """Flip bytes in turn; return the numbers of flips and findings."""
    import numpy as np

    from retrieval.integrity.check import check_collection

    rng = np.random.default_rng(seed)
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    sound = check_collection(folder)
    assert sound.ok and not sound.notes, (sound.damaged, sound.notes)
    missed: list[dict[str, object]] = []
    start = time.perf_counter()
    for number in range(flips):
        path = files[number % len(files)]
        name = path.relative_to(folder).as_posix()
        contents = path.read_bytes()
        place, change = int(rng.integers(len(contents))), int(rng.integers(1, 256))
        flipped = bytearray(contents)
        flipped[place] ^= change
        path.write_bytes(flipped)
        damaged = [one.file for one in check_collection(folder).damaged]
        path.write_bytes(contents)
        if damaged != [name]:
            missed.append({"file": name, "place": place, "change": change, "named": damaged})
        if (number + 1) % 100 == 0:
            print(f"{number + 1} of {flips}: {len(missed)} not found", file=sys.stderr)
    assert check_collection(folder).ok
    return {
        "flips": flips,
        "found": flips - len(missed),
        "files": len(files),
        "bytes": sum(path.stat().st_size for path in files),
        "missed": missed,
        "seconds": round(time.perf_counter() - start, 1),
    }


def main() -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flips", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", type=Path, help="folder for the collection; it is kept")
    options = parser.parse_args()
    work = options.work or Path(tempfile.mkdtemp(prefix="cairn-flips-"))
    try:
        folder = work / "flipped.cairn"
        result = flip(folder if folder.is_dir() else make_collection(work), options.flips, options.seed)
    finally:
        if options.work is None:
            shutil.rmtree(work, ignore_errors=True)
    print(json.dumps(result, indent=2))
    return 1 if result["missed"] else 0


if __name__ == "__main__":
    sys.exit(main())
