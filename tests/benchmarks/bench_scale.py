"""What a collection of a hundred thousand photos takes: bytes, memory, opening, pages and queries.

Run as `CAIRN_DATASETS=DIR OMP_NUM_THREADS=1 python -m tests.benchmarks.bench_scale --folder DIR`; it never gates. The
collection is built where it is not there yet, through Cairn's own writer: a vocabulary of real photos' descriptors; 25
real photos of three objects, indexed as `cairn index` does; all others synthetic, with features of real photos dealt
out again and moved, so that words have the frequencies and regions the shapes of real ones. The file of a synthetic
photo is a hard link to that of a real one, and the checksum that the catalogue has of it is made up. Features of the
real photos are kept in the folder too, and are not extracted again; with `--like` the vocabulary and the features are
those of an earlier collection of this benchmark, and nothing is extracted but the 25.

Signatures of the real photos are real. Those of synthetic features are drawn so that they differ as those of real ones
do: of 64 bits, two features of one word in unrelated photos of landmarks and of paintings differ in 22 or fewer, which
is what votes, in 1.3% and 1.5% of pairs, in 20 or fewer in 0.40% and 0.48%. Independent bits give 0.84% and 0.18%, too
few: descriptors vary in fewer dimensions than they have. So the bits are the sides of hyperplanes on which normally
distributed vectors of `DIMENSIONS` dimensions lie, which gives 1.49% and 0.41%.
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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.arrays import hash_file
from index.clustering.sources import FileSource
from index.hamming.kinds import DEFAULT as DEFAULT_SIGNATURE
from index.hamming.kinds import full_name, parse_signature
from index.hamming.sources import parseval_frame
from index.segments.description import SIGNATURE
from index.segments.segment import ImageFeatures
from index.vocabulary import Vocabulary, VocabularyOptions
from retrieval.catalogue.browsing import folders_of
from retrieval.catalogue.filters import PhotoFilter
from retrieval.catalogue.photos import all_indexed, counts_of_photos, rows_of
from retrieval.catalogue.schema import ImageRow
from retrieval.catalogue.segment_rows import commit_segment
from retrieval.catalogue.settings import reserve_numbers
from retrieval.collection.collection import Collection
from retrieval.collection.layout import OPTIONS, SEGMENTS
from retrieval.collection.options import CollectionOptions, read_options
from retrieval.collection.sealing import seal
from retrieval.collection.segment_writing import write_photos
from retrieval.features.encoding import decode_geometry, encode_geometry
from retrieval.features.extraction import Features
from retrieval.features.staging import Staging
from retrieval.indexing.add_options import AddOptions
from retrieval.indexing.adding import index_photos
from retrieval.library.answers import make_answer
from retrieval.library.compiled import compile_all
from retrieval.photos.listing import list_photos
from retrieval.regions.geometry import ellipses_of_shapes
from retrieval.search.answers import ask_with_photo, search_photo
from retrieval.search.engines.registry import find_engine
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
DIMENSIONS = 44  # of the vectors whose signs are synthetic signatures
BANK = 1 << 22  # signatures that are drawn; each is dealt many times, hardly ever twice to one word
ENGINES = ("tf-idf", "signatures", "asmk", "tf-idf-sp", "signatures-sp", "asmk-sp")


@dataclass(frozen=True)
class Pool:
    """Features of real photos, to be dealt out."""

    words: NDArray[np.int32]  # (N,)
    forms: NDArray[np.float32]  # (N, 3): a, b and c of the ellipses, in pixels of a photo of the longer side `SIDES[0]`
    signatures: NDArray[np.uint8] | None  # (BANK, B), dealt apart from words and forms

    def deal(self, rng: np.random.Generator, count: int, *, upright: bool) -> ImageFeatures:
        """Features of a synthetic photo: their words, and regions at places of their own."""
        chosen = rng.integers(0, len(self.words), count)
        places = (rng.random((count, 2)) * SIDES).astype(np.float32)
        ellipses = np.concatenate([places, self.forms[chosen]], axis=1)
        features = Features(ellipses, np.zeros(count, np.float32), np.zeros((count, 0), np.float16))
        columns = encode_geometry(features, SIDES[0], upright=upright)
        if self.signatures is not None:
            columns[SIGNATURE] = self.signatures[rng.integers(0, len(self.signatures), count)]
        return ImageFeatures(self.words[chosen], columns)


def draw_signatures(bits: int, count: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Draw signatures (count, bits / 8) that differ as those of real features of one word do."""
    planes = parseval_frame(bits, DIMENSIONS, rng)
    parts = []
    for start in range(0, count, 1 << 16):
        vectors = rng.standard_normal((min(1 << 16, count - start), DIMENSIONS), np.float32)
        parts.append(np.packbits(vectors @ planes.T > 0, axis=1, bitorder="little"))
    return np.concatenate(parts)


def tell(line: str) -> None:
    """Print what is being done, and the processor time so far."""
    print(f"{time.process_time():8.0f} CPU s  {line}", file=sys.stderr, flush=True)


def build(folder: Path, arguments: argparse.Namespace) -> None:
    """Build the collection."""
    root = Path(os.environ.get("CAIRN_DATASETS") or sys.exit("Set CAIRN_DATASETS to the folder of photos."))
    started = time.process_time()
    kind = parse_signature(arguments.signature)
    options = CollectionOptions(words=arguments.words, signature="none")
    if arguments.like:
        options = read_options(arguments.like / "scale.cairn" / OPTIONS)
    options = replace(options, signature=full_name(kind))
    with Collection.create(folder, options) as collection:
        staging = Staging(folder.parent / "features", collection.extractor, collection.options.image)
        keys = [] if arguments.like else extract(root, staging, arguments.real)
        kept = arguments.like / "scale.cairn/vocabulary" if arguments.like else folder.parent / "vocabulary"
        if not kept.is_dir():
            tell("making the vocabulary")
            make_vocabulary(collection, [staging.descriptors(key) for key in keys], arguments).save(kept)
        tell(f"indexing {len(planted_photos(root))} real photos")
        copy_planted(root, folder.parent / "real")
        index_photos(collection, [folder.parent / "real"], AddOptions(vocabulary=kept))
        tell("giving real features their words")
        if arguments.like:
            words, forms = features_like(arguments.like / "scale.cairn", arguments.pool)
        else:
            words, forms = make_pool(collection, staging, keys, arguments.pool)
        rng = np.random.default_rng(arguments.seed)
        signatures = draw_signatures(kind.bits, BANK, rng) if kind is not None else None
        tell("writing synthetic photos")
        add_synthetic(collection, Pool(words, forms, signatures), arguments, rng)
        seal(collection)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    tell(f"built in {time.process_time() - started:.0f} CPU s, with at most {peak:.2f} GB of memory")


def extract(root: Path, staging: Staging, most: int) -> list[str]:
    """Extract the features of real photos of all sets; give the keys of those that show something."""
    photos = [path for _, path in list_photos([root / name for name in SETS])]
    photos = photos[:: max(1, len(photos) // most)][:most]
    tell(f"extracting {len(photos)} real photos")
    return [key for path in photos if staging.stage(path, key := hash_file(path)).features]


def make_vocabulary(collection: Collection, files: list[Path], arguments: argparse.Namespace) -> Vocabulary:
    """Make the vocabulary from files of descriptors."""
    options = VocabularyOptions(
        words=arguments.words, iterations=arguments.iterations, sample_per_word=arguments.sample_per_word
    )
    vocabulary = Vocabulary.train(
        FileSource(files), options, descriptor=collection.extractor.fingerprint, trained_on="real photos"
    )
    tell(f"{vocabulary.words} words, recall {vocabulary.recall_at_1:.3f}")
    return vocabulary


def planted_photos(root: Path) -> list[Path]:
    """The real photos that are indexed."""
    return [path for path in sorted((root / "landmarks/images").iterdir()) if path.stem.startswith(PLANTED)]


def copy_planted(root: Path, folder: Path) -> None:
    """Copy the real photos that are indexed into an album."""
    (folder / ALBUM_OF_REAL).mkdir(parents=True, exist_ok=True)
    for path in planted_photos(root):
        shutil.copy2(path, folder / ALBUM_OF_REAL / path.name)


def make_pool(
    collection: Collection, staging: Staging, keys: list[str], most: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Give a random part of the real features their words; give words and forms."""
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
    return np.concatenate(words), np.concatenate(forms)


def features_like(folder: Path, most: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Words and forms of the features of synthetic photos of another collection, so many at most."""
    words, forms = [], []
    with Collection.open(folder) as collection:
        rows = collection.catalogue.read(all_indexed)
        for row in (row for row in reversed(rows) if row.name and row.name.startswith("album ")):
            image = collection.index.images.features(row.number)
            frames = decode_geometry(image.columns, np.arange(len(image.words)))
            ellipses = ellipses_of_shapes(
                frames.centres.astype(np.float64), frames.linear.astype(np.float64) * SIDES[0]
            )
            words.append(np.asarray(image.words).astype(np.int32))
            forms.append(ellipses[:, 2:])
            most -= len(image.words)
            if most <= 0:
                break
    return np.concatenate(words), np.concatenate(forms).astype(np.float32)


def add_synthetic(collection: Collection, pool: Pool, arguments: argparse.Namespace, rng: np.random.Generator) -> None:
    """Write the synthetic photos that are missing, a segment at a time."""
    there = collection.catalogue.read(counts_of_photos)["indexed"]
    upright = collection.options.features.upright
    for start in range(there, arguments.photos, SEGMENT):
        serials = range(start, min(start + SEGMENT, arguments.photos))
        first = collection.catalogue.write(reserve_numbers, len(serials))
        rows = synthetic_rows(collection.folder.parent, serials, first, arguments.features)
        dealt = [pool.deal(rng, arguments.features, upright=upright) for _ in serials]
        collection.catalogue.write(commit_segment, write_photos(collection, rows, dealt), rows)


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
from retrieval.library.compiled import compile_all
from retrieval.web.jobs import SearchJobs, ServedCollection
from retrieval.web.search_models import QueryPhoto, SearchRequest

compile_all()  # loads them, as the libraries above are loaded

def memory():
    lines = dict(line.split(":") for line in open("/proc/self/smaps_rollup").read().splitlines()[1:])
    private, all_of_it = (int(lines[name].split()[0]) / 1e6 for name in ("Anonymous", "Rss"))
    return {"private_gb": round(private, 3), "mapped_gb": round(all_of_it - private, 3)}

before = memory()
with one_thread():
    start = time.process_time()
    jobs = SearchJobs(ServedCollection(Path(sys.argv[1])))
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
        "folders": lambda: collection.catalogue.read(folders_of),
        "counts": lambda: collection.catalogue.read(counts_of_photos),
    }
    calls[what]()
    start = time.process_time()
    calls[what]()
    return round(1000 * (time.process_time() - start), 1)


def time_report(folder: Path, number: int) -> float:
    """Processor time, in ms, of choosing 20 results and reporting them, homographies included."""
    with Collection.open(folder) as collection:
        searcher = Searcher(collection, SearchOptions(turns=1))
        row = collection.catalogue.read(rows_of, [number])[0]
        requested = ask_with_photo(row, row.name or "")
        found = [search_photo(searcher, requested)]
        start = time.process_time()
        make_answer(searcher, [requested], found, top=20).to_dict()
        return round(1000 * (time.process_time() - start), 1)


def time_engines(folder: Path, requested: Sequence[ImageRow]) -> dict[str, Any]:
    """Processor time, in ms, of ranking all photos by indexed ones, upright: median and mean of each engine.

    What is made at the first search of a collection is reported next to it.
    """
    found: dict[str, Any] = {}
    with Collection.open(folder) as collection:
        for engine in ENGINES:
            if find_engine(engine).signed and collection.signature is None:
                continue
            searcher = Searcher(collection, SearchOptions(engine=engine, turns=1))
            spent = []
            for row in (requested[0], *requested):
                start = time.process_time()
                search_photo(searcher, ask_with_photo(row, row.name or ""))
                spent.append(1000 * (time.process_time() - start))
            found[engine] = {
                "first": round(spent[0], 1),
                "p50": round(float(np.median(spent[1:])), 1),
                "mean": round(float(np.mean(spent[1:])), 1),
            }
    return found


def measure(folder: Path, queries: int) -> dict[str, Any]:
    """Measure what the table of large collections holds."""
    with Collection.open(folder) as collection:
        counts = collection.catalogue.read(counts_of_photos)
        planted = collection.catalogue.page(0, 100, PhotoFilter(folder=ALBUM_OF_REAL))[1]
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
    compile_all()  # loads them, as a server has
    facts["report_ms"] = time_report(folder, numbers[0])
    if queries:
        tell("queries")
        requested = [bench_query.Asked(row) for row in planted]
        requested = requested[:: max(1, len(requested) // queries)][:queries]
        facts["engines_ms"] = time_engines(folder, [one.row for one in requested])
        facts["query"] = bench_query.measure(folder, requested, image)
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
    parser.add_argument("--signature", default=DEFAULT_SIGNATURE, help="of features, or none")
    parser.add_argument("--like", type=Path, help="take vocabulary and features from the collection of this folder")
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
