"""What a collection of a hundred thousand photos takes: bytes, memory, opening, pages and queries.

Run as `CAIRN_DATASETS=DIR OMP_NUM_THREADS=1 python -m tests.benchmarks.bench_scale --folder DIR`; it never gates. The
collection is built where it is not there yet, through Cairn's own writer: a vocabulary of real photos' descriptors; 25
real photos of three objects, indexed as `cairn index` does; all others synthetic, with features of real photos dealt
out anew and moved, so that words have the frequencies and regions the shapes of real ones. The file of a synthetic
photo is a hard link to that of a real one, and the checksum that the catalogue has of it is made up. Features of the
real photos are kept in the folder too, and are not extracted again.
"""

import argparse
import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.arrays import hash_file
from index.kmeans import FileSource
from index.segments.segment import ImageFeatures
from index.vocabulary import Vocabulary, VocabularyOptions
from retrieval.catalogue.schema import ImageRow
from retrieval.collection.collection import Collection
from retrieval.collection.layout import SEGMENTS
from retrieval.collection.options import CollectionOptions
from retrieval.collection.sealing import seal
from retrieval.collection.segment_writing import write_photos
from retrieval.features.encoding import encode_geometry
from retrieval.features.extraction import Features
from retrieval.features.staging import Staging
from retrieval.indexing.adding import index_photos
from retrieval.photos.listing import list_photos
from retrieval.search.answers import ask_with_photo, best_results, report_answer, search_photo
from retrieval.search.options import SearchOptions
from retrieval.search.searcher import Searcher
from tests.benchmarks import bench_query
from tests.support.paths import ROOT

SETS = ("landmarks/images", "unlabelled", "distractors", "paintings/images", "matching")
PLANTED = ("kermit", "fountain", "berlin")  # of landmarks: 25 photos
ALBUM_OF_REAL = "planted"
SEGMENT = 1_000  # photos
ALBUM = 500  # photos to a folder
SIDES = (1024, 768)  # of a synthetic photo, pixels
PAGE = 60  # photos of a page


@dataclass(frozen=True)
class Pool:
    """Features of real photos, to be dealt out."""

    words: NDArray[np.int32]  # (N,)
    forms: NDArray[np.float32]  # (N, 3): a, b and c of the ellipses, in pixels of a photo of the longer side `SIDES[0]`

    def deal(self, rng: np.random.Generator, count: int) -> tuple[NDArray[np.int32], Features]:
        """Features of a synthetic photo: their words, and regions at places of their own."""
        chosen = rng.integers(0, len(self.words), count)
        places = (rng.random((count, 2)) * SIDES).astype(np.float32)
        ellipses = np.concatenate([places, self.forms[chosen]], axis=1)
        return self.words[chosen], Features(ellipses, np.zeros(count, np.float32), np.zeros((count, 0), np.float16))


def tell(line: str) -> None:
    """Print what is being done, and the processor time so far."""
    print(f"{time.process_time():8.0f} CPU s  {line}", file=sys.stderr, flush=True)


def build(folder: Path, arguments: argparse.Namespace) -> None:
    """Build the collection."""
    root = Path(os.environ.get("CAIRN_DATASETS") or sys.exit("Set CAIRN_DATASETS to the folder of photos."))
    started = time.process_time()
    with Collection.create(folder, CollectionOptions(words=arguments.words)) as collection:
        staging = Staging(folder.parent / "features", collection.extractor, collection.options.image)
        photos = [path for _, path in list_photos([root / name for name in SETS])]
        photos = photos[:: max(1, len(photos) // arguments.real)][: arguments.real]
        tell(f"extracting {len(photos)} real photos")
        keys = [key for path in photos if staging.stage(path, key := hash_file(path)).features]
        files = [staging.descriptors(key) for key in keys]
        kept = folder.parent / "vocabulary"
        if not kept.is_dir():
            tell("making the vocabulary")
            options = VocabularyOptions(
                words=arguments.words, iterations=arguments.iterations, sample_per_word=arguments.sample_per_word
            )
            vocabulary = Vocabulary.train(
                FileSource(files), options, descriptor=collection.extractor.fingerprint, trained_on="real photos"
            )
            vocabulary.save(kept)
            tell(f"{vocabulary.words} words, recall {vocabulary.recall_at_1:.3f}")
        tell(f"indexing {len(planted_photos(root))} real photos")
        copy_planted(root, folder.parent / "real")
        index_photos(collection, [folder.parent / "real"], vocabulary=kept)
        tell("giving real features their words")
        pool = make_pool(collection, staging, keys, arguments.pool)
        tell("writing synthetic photos")
        add_synthetic(collection, pool, arguments)
        seal(collection)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    tell(f"built in {time.process_time() - started:.0f} CPU s, with at most {peak:.2f} GB of memory")


def planted_photos(root: Path) -> list[Path]:
    """The real photos that are indexed."""
    return [path for path in sorted((root / "landmarks/images").iterdir()) if path.stem.startswith(PLANTED)]


def copy_planted(root: Path, folder: Path) -> None:
    """Copy the real photos that are indexed into an album."""
    (folder / ALBUM_OF_REAL).mkdir(parents=True, exist_ok=True)
    for path in planted_photos(root):
        shutil.copy2(path, folder / ALBUM_OF_REAL / path.name)


def make_pool(collection: Collection, staging: Staging, keys: list[str], most: int) -> Pool:
    """Give a random part of the real features their words."""
    rng = np.random.default_rng(0)
    words, forms = [], []
    sizes = [staging.stage(Path(), key) for key in keys]  # all are there
    share = min(1.0, most / max(sum(size.features for size in sizes), 1))
    for key, size in zip(keys, sizes, strict=True):
        features = staging.read(key)
        chosen = np.flatnonzero(rng.random(len(features)) < share)
        words.append(collection.vocabulary.assign(features.descriptors[chosen].astype(np.float32)))
        scale = SIDES[0] / max(size.width, size.height)
        forms.append(features.ellipses[chosen, 2:] / scale**2)
    return Pool(np.concatenate(words), np.concatenate(forms))


def add_synthetic(collection: Collection, pool: Pool, arguments: argparse.Namespace) -> None:
    """Write the synthetic photos that are missing, a segment at a time."""
    rng = np.random.default_rng(arguments.seed)
    there = collection.catalogue.counts()["indexed"]
    upright = collection.options.features.upright
    for start in range(there, arguments.photos, SEGMENT):
        serials = range(start, min(start + SEGMENT, arguments.photos))
        first = collection.catalogue.reserve_numbers(len(serials))
        rows = synthetic_rows(collection.folder.parent, serials, first, arguments.features)
        dealt = [pool.deal(rng, arguments.features) for _ in serials]
        found = [
            ImageFeatures(words, encode_geometry(features, SIDES[0], upright=upright)) for words, features in dealt
        ]
        collection.catalogue.commit_segment(write_photos(collection, rows, found), rows)


def synthetic_rows(folder: Path, serials: range, first: int, features: int) -> list[ImageRow]:
    """Link the files of some synthetic photos; give their rows."""
    sources = sorted((folder / "real" / ALBUM_OF_REAL).iterdir())
    rows = []
    for position, serial in enumerate(serials):
        name = f"album {serial // ALBUM:04d}/photo {serial:07d}.jpg"
        path = folder / "synthetic" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # A file has only so many names: each album has copies of its own.
        source = path.parent / f".{serial % len(sources)}"
        if not source.exists():
            shutil.copy2(sources[serial % len(sources)], source)
        if not path.exists():
            os.link(source, path)
        seen = path.stat()
        rows.append(
            ImageRow(
                number=first + position,
                path=str(path),
                name=name,
                sha256=hashlib.sha256(name.encode()).hexdigest(),
                size=seen.st_size,
                mtime_ns=seen.st_mtime_ns,
                width=SIDES[0],
                height=SIDES[1],
                features=features,
                position=position,
                quantisation_error=0.1,
            )
        )
    return rows


def bytes_a_feature(folder: Path, features: int) -> dict[str, float]:
    """Bytes on disk that searching needs, a feature, by what they are; and all of them."""
    sizes: Counter[str] = Counter()
    for path in files_below(folder / SEGMENTS):
        sizes[path.stem] += path.stat().st_size
    for path in folder.iterdir():
        if path.is_file() and not path.name.startswith("catalogue"):
            sizes[path.name] += path.stat().st_size
    shares = {name: round(size / features, 3) for name, size in sizes.most_common()}
    return {name: share for name, share in shares.items() if share} | {"all": round(sum(sizes.values()) / features, 2)}


def files_below(folder: Path) -> Iterator[Path]:
    """All files of a folder."""
    return (path for path in folder.rglob("*") if path.is_file())


# What a process of its own measures, as a worker of the server opens the collection and answers.
_WORKER = """
import json, sys, time
from pathlib import Path
from index.parallel import one_thread
from retrieval.web.jobs import Place, SearchJobs
from retrieval.web.models import QueryPhoto, SearchRequest

def memory():
    lines = dict(line.split(":") for line in open("/proc/self/smaps_rollup").read().splitlines()[1:])
    private, all_of_it = (int(lines[name].split()[0]) / 1e6 for name in ("Anonymous", "Rss"))
    return {"private_gb": round(private, 3), "mapped_gb": round(all_of_it - private, 3)}

before = memory()
with one_thread():
    start = time.process_time()
    jobs = SearchJobs(Place(Path(sys.argv[1])))
    jobs.do("ready", {})
    opened = time.process_time() - start
    opened_memory = memory()
    start = time.process_time()
    for number in json.loads(sys.argv[2]):
        jobs.do("search", SearchRequest(queries=[QueryPhoto(photo=number)]).model_dump(mode="json"))
    searched = time.process_time() - start
print(json.dumps({"open_cpu_s": round(opened, 3), "libraries": before, "opened": opened_memory, "searched": memory()}))
"""


def run_worker(folder: Path, numbers: list[int]) -> dict[str, Any]:
    """Open a collection and search it in a process of its own."""
    command = [sys.executable, "-c", _WORKER, str(folder), json.dumps(numbers)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    facts: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return facts


def child_time(command: list[str]) -> float:
    """Processor time of a command, seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def milliseconds(collection: Collection, what: str) -> float:
    """Processor time of the second call of a part of the catalogue: the first may open it."""
    calls = {
        "first_page": lambda: collection.catalogue.page(0, PAGE),
        "folders": lambda: collection.catalogue.folders(),
        "counts": lambda: collection.catalogue.counts(),
    }
    calls[what]()
    start = time.process_time()
    calls[what]()
    return round(1000 * (time.process_time() - start), 1)


def time_report(folder: Path, number: int) -> float:
    """Processor time, in ms, of choosing 20 results and reporting them, homographies included."""
    with Collection.open(folder) as collection:
        searcher = Searcher(collection, SearchOptions(turns=1))
        row = collection.catalogue.images([number])[0]
        asked = ask_with_photo(row, row.name or "")
        found = [search_photo(searcher, asked)]
        start = time.process_time()
        results = best_results(searcher, found, top=20)
        report_answer(searcher, [asked], found, results)
        return round(1000 * (time.process_time() - start), 1)


def measure(folder: Path, queries: int) -> dict[str, Any]:
    """Measure what the table of large collections holds."""
    with Collection.open(folder) as collection:
        counts = collection.catalogue.counts()
        planted = collection.catalogue.page(0, 100, folder=ALBUM_OF_REAL)[1]
        image = collection.options.image
        facts: dict[str, Any] = {
            "photos": counts["indexed"],
            "features": counts["features"],
            "words": collection.vocabulary.words,
            "bytes_a_feature": bytes_a_feature(folder, counts["features"]),
        }
        tell("catalogue")
        facts |= {f"{name}_ms": milliseconds(collection, name) for name in ("first_page", "folders", "counts")}
    tell("opening")
    numbers = [row.number for row in planted]
    run_worker(folder, [])  # what is not in memory yet is read
    facts["worker"] = run_worker(folder, numbers[:3])
    tell("info")
    facts["info_cpu_s"] = round(child_time([sys.executable, "-m", "cairn", "info", str(folder), "--json"]), 2)
    facts["report_ms"] = time_report(folder, numbers[0])
    if queries:
        tell("queries")
        asked = [bench_query.Asked(row) for row in planted]
        asked = asked[:: max(1, len(asked) // queries)][:queries]
        facts["query"] = bench_query.measure(folder, asked, image)
    return facts


def main() -> None:
    """Build and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="the collection is kept here, or is here")
    parser.add_argument("--photos", type=int, default=100_000)
    parser.add_argument("--features", type=int, default=2_000, help="features of a synthetic photo")
    parser.add_argument("--words", type=int, default=500_000, help="size of the vocabulary")
    parser.add_argument("--real", type=int, default=2_700, help="photos whose features are dealt out")
    parser.add_argument("--pool", type=int, default=8_000_000, help="features of these, at most, that get their words")
    parser.add_argument("--iterations", type=int, default=2, help="of k-means")
    parser.add_argument("--sample-per-word", type=int, default=16, help="descriptors for each word of k-means, at most")
    parser.add_argument("--queries", type=int, default=25, help="real photos that are asked with; 0: none")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--build-only", action="store_true", help="measure nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON object without line breaks")
    arguments = parser.parse_args()
    folder = arguments.folder / "scale.cairn"
    arguments.folder.mkdir(parents=True, exist_ok=True)
    built = arguments.folder / "built"
    if not built.exists():
        build(folder, arguments)
        built.touch()
    if not arguments.build_only:
        print(json.dumps(measure(folder, arguments.queries), indent=None if arguments.json else 2))


if __name__ == "__main__":
    main()
