"""What it costs to change a collection: photos that are added, searches meanwhile, and compaction.

Run as `python -m tests.benchmarks.bench_changes`; it never gates. Features are synthetic, drawn from the hash of each
file, so that nothing is measured but what Cairn does with them: to extract them from real photos takes a third of a
second each on top, which is what adding a few photos saves most of all.
"""

import argparse
import multiprocessing
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from retrieval.catalogue.photos import all_indexed
from retrieval.catalogue.segment_rows import segments_and_tombstones, segments_in
from retrieval.collection.collection import Collection
from retrieval.collection.options import CollectionOptions
from retrieval.features.extraction import Features
from retrieval.features.staging import Staged, Staging
from retrieval.indexing import adding as indexing
from retrieval.indexing.add_options import AddOptions
from retrieval.indexing.adding import index_photos
from retrieval.indexing.compaction import compact
from retrieval.indexing.removal import remove_photos
from retrieval.indexing.report import IndexReport
from retrieval.search.options import SearchOptions
from retrieval.search.searcher import Searcher
from retrieval.search.views import indexed_view

WIDTH, HEIGHT = 1024, 768
FEATURES = 300
CENTRES = 5_000  # that descriptors scatter about, as they do in real photos


class SyntheticStaging(Staging):
    """Gives each photo features that depend on its content alone."""

    centres = np.random.default_rng(0).random((CENTRES, 128)).astype(np.float32)

    def stage(self, path: Path, key: str) -> Staged:
        """Nothing is decoded."""
        return Staged(FEATURES, WIDTH, HEIGHT)

    def read(self, key: str) -> Features:
        """Draw the features of a photo."""
        rng = np.random.default_rng(int(key[:16], 16))
        rows = self.centres[rng.integers(0, CENTRES, FEATURES)]
        rows = np.sqrt(rows + 0.5 * rng.random(rows.shape, np.float32))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        centres = rng.random((FEATURES, 2)) * [WIDTH, HEIGHT]
        shapes = np.tile([0.01, 0.0, 0.01], (FEATURES, 1))
        ellipses = np.hstack([centres, shapes]).astype(np.float32)
        return Features(ellipses, np.zeros(FEATURES, np.float32), rows.astype(np.float16))

    def descriptors(self, key: str) -> Path:
        """Write what a vocabulary is made from."""
        path = super().descriptors(key)
        if not path.exists():
            np.save(path, self.read(key).descriptors)
        return path


def without_photos() -> None:
    """Have this process index synthetic features."""
    indexing.Staging = SyntheticStaging  # type: ignore[misc]


def write_photos(folder: Path, count: int) -> None:
    """Write files that differ."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        (folder / f"{number:06d}.jpg").write_bytes(b"photo %d" % number)


def add(folder: Path, photos: Path, vocabulary: Path | None = None) -> tuple[IndexReport, float]:
    """Index photos, and tell how long it took."""
    start = time.perf_counter()
    with Collection.create(
        folder, CollectionOptions(words=20_000, sample=500, iterations=4, signature="none")
    ) as collection:
        report = index_photos(collection, [photos], AddOptions(vocabulary=vocabulary))
    return report, time.perf_counter() - start


def search_for(folder: Path, seconds: float) -> tuple[list[float], list[float]]:
    """Search again and again as the web application does, opening the collection again whenever it has changed.

    Returns
    -------
    searches, openings : list of float
        Seconds of each.
    """
    searches: list[float] = []
    openings: list[float] = []
    rng = np.random.default_rng(0)
    collection, state = None, None
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        start = time.perf_counter()
        current = collection and collection.catalogue.read(segments_and_tombstones)
        if collection is None or state != [row.id for row in current[0]]:
            if collection is not None:
                collection.catalogue.close()
            collection = Collection.open(folder)
            state = [row.id for row in collection.catalogue.read(segments_in)]
            searcher = Searcher(collection, SearchOptions(turns=1))
            openings.append(time.perf_counter() - start)
            start = time.perf_counter()
        number = int(rng.choice(collection.index.image_numbers))
        hits = searcher.search([indexed_view(collection.index.images.features(number))]).hits
        assert hits[0].number == number
        searches.append(time.perf_counter() - start)
    return searches, openings


def tell(title: str, times: list[float]) -> None:
    """Print percentiles."""
    if times:
        p95 = sorted(times)[int(0.95 * (len(times) - 1))]
        print(f"{title}: {len(times)}, p50 {1000 * statistics.median(times):.0f} ms, p95 {1000 * p95:.0f} ms")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--photos", type=int, default=10_000)
    parser.add_argument("--added", type=int, default=100)
    parser.add_argument("--removed", type=int, default=2_000)
    parser.add_argument("--seconds", type=float, default=30.0, help="of searching at rest")
    arguments = parser.parse_args()
    without_photos()
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        write_photos(work / "photos", arguments.photos)
        folder = work / "c.cairn"
        report, first = add(folder, work / "photos")
        print(f"index {report.added} photos of {FEATURES} features: {first:.1f} s, {report.seconds}")
        write_photos(work / "photos", arguments.photos + arguments.added)
        report, spent = add(folder, work / "photos")
        print(f"add {report.added} to them: {spent:.2f} s, {report.seconds}")
        again, whole = add(work / "again.cairn", work / "photos", folder)
        print(f"index all {again.added} again, with the same vocabulary: {whole:.1f} s, {whole / spent:.0f} times")
        shutil.rmtree(work / "again.cairn")

        searches, openings = search_for(folder, arguments.seconds)
        tell("searches at rest", searches)
        write_photos(work / "photos", arguments.photos + arguments.added + 1_000)
        # Not by a fork: SQLite's locks do not bear one.
        with multiprocessing.get_context("spawn").Pool(1, without_photos) as pool:
            running = pool.apply_async(add, (folder, work / "photos"))
            searches, openings = [], []
            while not running.ready():
                more = search_for(folder, 5.0)
                searches += more[0]
                openings += more[1]
            report, spent = running.get()
        print(f"while {report.added} photos are added in {spent:.1f} s:")
        tell("  searches", searches)
        tell("  openings of the collection, at each change and every 5 s", openings)

        with Collection.open(folder) as collection:
            names = [row.name or "" for row in collection.catalogue.read(all_indexed)]
            chosen = np.random.default_rng(1).permutation(len(names))[: arguments.removed]
            start = time.perf_counter()
            remove_photos(collection, [names[place] for place in chosen])
            print(f"remove {arguments.removed}: {time.perf_counter() - start:.2f} s")
            before = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
            done = compact(collection)
            after = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        print(
            f"compact: {done.seconds:.1f} s, {done.segments['before']} segments to {done.segments['after']}, "
            f"{before / 1e6:.1f} MB to {after / 1e6:.1f} MB"
        )
        searches, _ = search_for(folder, arguments.seconds / 2)
        tell("searches after it", searches)


if __name__ == "__main__":
    main()
