"""How quickly `cairn serve` answers: clients that search at once, and one that turns pages of thumbnails meanwhile.

Run as `python -m tests.benchmarks.bench_serve`; it never gates. The collection is synthetic: a few drawn photos are
indexed, the features of all others are theirs, dealt out anew and moved, and the file of each is one of the drawn ones
(with something after its end, so that no two have the same content). Everything runs on this machine, the clients too.
The bars: no error, and a page of thumbnails in 200 ms while searches run.
"""

import argparse
import hashlib
import http.client
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from index.segment import write_segment
from retrieval.catalogue.schema import ImageRow, SegmentRow
from retrieval.collection.collection import Collection
from retrieval.collection.layout import SEGMENTS
from tests.support.paths import ROOT

BAR_MS = 200.0
PAGE = 60  # thumbnails on a page
CONNECTIONS = 6  # that a browser opens to one server
STEPS = ("extract", "search", "verify")
WARM = 3  # times that a page is loaded again


class Client:
    """One connection, kept open as browsers do."""

    def __init__(self, address: str, timeout: float) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=timeout)

    def get(self, path: str) -> bytes:
        """The body of an answer; OSError where there is none, or it is not 200."""
        try:
            self._connection.request("GET", path)
            answer = self._connection.getresponse()
            body = answer.read()
        except http.client.HTTPException as error:
            self._connection.close()
            raise OSError(f"{type(error).__name__}: {error}") from error
        if answer.status != 200:
            raise OSError(f"{answer.status}: {body[:200]!r}")
        return body


def make_collection(folder: Path, arguments: argparse.Namespace) -> None:
    """Write the collection."""
    from eval.demo.synthetic import build_demo_collection
    from retrieval.collection.options import CollectionOptions
    from retrieval.commands.options import cores
    from retrieval.indexing.adding import index_photos

    rng = np.random.default_rng(arguments.seed)
    drawn = build_demo_collection(folder.parent / "drawn", views=3, distractors=20)
    with Collection.create(folder, CollectionOptions(words=arguments.words)) as collection:
        index_photos(collection, [drawn.images], workers=cores())
        rows = collection.catalogue.images()
        features = [collection.index.features(row.number) for row in rows]
        words = np.concatenate([image.words for image in features]).astype(np.int32)
        columns = {name: np.concatenate([image.columns[name] for image in features]) for name in features[0].columns}
        missing = range(len(rows), arguments.photos)
        for start in range(0, len(missing), 1000):
            batch = missing[start : start + 1000]
            images = write_photos(folder.parent / "photos", rows, batch)
            dealt = [rng.integers(0, len(words), arguments.features) for _ in batch]
            moved = [rng.integers(0, 1 << 16, (arguments.features, 2)).astype(np.uint16) for _ in batch]
            rest = {name: [column[chosen] for chosen in dealt] for name, column in columns.items()}
            add_segment(collection, images, [words[chosen] for chosen in dealt], rest | {"position": moved})


def write_photos(folder: Path, drawn: list[ImageRow], serials: range) -> list[ImageRow]:
    """Write the files of some photos, each the copy of a drawn one; give their rows, without numbers."""
    contents = [Path(row.path).read_bytes() for row in drawn]
    images = []
    for position, serial in enumerate(serials):
        name = f"album {serial % 50:02d}/photo {serial:05d}.jpg"
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # What follows a JPEG's last marker is no part of the picture.
        content = contents[serial % len(drawn)] + f"{serial:08d}".encode()
        path.write_bytes(content)
        images.append(
            ImageRow(
                number=-1,
                path=str(path),
                name=name,
                sha256=hashlib.sha256(content).hexdigest(),
                size=len(content),
                mtime_ns=path.stat().st_mtime_ns,
                width=drawn[serial % len(drawn)].width,
                height=drawn[serial % len(drawn)].height,
                position=position,
            )
        )
    return images


def add_segment(
    collection: Collection, images: list[ImageRow], words: list[np.ndarray], columns: dict[str, list[np.ndarray]]
) -> None:
    """Write a segment and commit it."""
    first = collection.catalogue.reserve_numbers(len(images))
    for number, (image, row) in enumerate(zip(images, words, strict=True), start=first):
        image.number, image.features = number, len(row)
    folder = collection.catalogue.next_folder(collection.folder / SEGMENTS)
    segment = write_segment(
        collection.folder / SEGMENTS / folder,
        image_numbers=np.arange(first, first + len(images), dtype=np.uint32),
        words=words,
        columns=columns,
        vocabulary_fingerprint=collection.vocabulary.fingerprint,
        descriptor_fingerprint=collection.extractor.fingerprint,
    )
    collection.catalogue.commit_segment(
        SegmentRow(
            folder=folder,
            images=segment.images,
            features=segment.features,
            bytes=sum(segment.bytes.values()),
            vocabulary_fingerprint=segment.vocabulary_fingerprint,
            descriptor_fingerprint=segment.descriptor_fingerprint,
        ),
        images,
    )


@contextmanager
def serving(folder: Path, cache: Path, workers: int) -> Iterator[str]:
    """Run `cairn serve` in a process of its own; give its address."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "cairn", "serve", str(folder)),
            *("--port", "0", "--cache", str(cache), "--workers", str(workers)),
        ],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        found = re.search(r"http://\S+", process.stdout.readline())
        if found is None:
            raise SystemExit("the server has not started")
        yield found[0].rstrip("/")
    finally:
        process.terminate()
        process.wait(30)


class Load:
    """What the clients do until the time is over, and what they saw."""

    def __init__(self, address: str, arguments: argparse.Namespace) -> None:
        self.address, self.arguments = address, arguments
        self.errors: list[str] = []
        self.searches: list[float] = []  # ms
        self.steps: list[list[float]] = []  # ms, of a search that no longer waits: each of `STEPS`
        self.cold: list[float] = []  # ms, pages whose thumbnails had to be made
        self.warm: list[float] = []  # ms, pages whose thumbnails had been made
        self._end = 0.0

    def run(self) -> float:
        """Search with many clients at once, and turn pages; give the seconds that took."""
        numbers = [photo["number"] for photo in self._list(0, 500)]
        began = time.perf_counter()
        self._end = began + self.arguments.seconds
        clients = [
            threading.Thread(target=self._search, args=(numbers, random.Random(seed)))
            for seed in range(self.arguments.clients)
        ]
        pages = threading.Thread(target=self._turn_pages)
        for thread in (*clients, pages):
            thread.start()
        for thread in (*clients, pages):
            thread.join()
        return time.perf_counter() - began

    def _list(self, offset: int, limit: int) -> list[dict[str, Any]]:
        body = Client(self.address, 60).get(f"/api/photos?offset={offset}&limit={limit}")
        photos: list[dict[str, Any]] = json.loads(body)["photos"]
        return photos

    def _search(self, numbers: list[int], chance: random.Random) -> None:
        client = Client(self.address, 120)
        while time.perf_counter() < self._end:
            start = time.perf_counter()
            try:
                # A few photos of the page that is shown, as people do; every client its own.
                body = client.get(f"/api/search?q={chance.choice(numbers)}&turns={self.arguments.turns}")
                answer = json.loads(body)
                if not answer["results"]:
                    raise OSError("nothing was found")
                self.searches.append(1000 * (time.perf_counter() - start))
                self.steps.append([1000 * answer["seconds"][step] for step in STEPS])
            except OSError as error:
                self.errors.append(f"search: {error}")

    def _turn_pages(self) -> None:
        clients = [Client(self.address, 120) for _ in range(CONNECTIONS)]
        free = list(clients)

        def thumbnail(number: int) -> None:
            client = free.pop()
            try:
                client.get(f"/api/photos/{number}/thumbnail?size=256")
            finally:
                free.append(client)

        with ThreadPoolExecutor(CONNECTIONS) as pool:
            offset = 0
            while time.perf_counter() < self._end:
                for visit in range(1 + WARM):
                    start = time.perf_counter()
                    try:
                        shown = self._list(offset, PAGE)
                        list(pool.map(thumbnail, [photo["number"] for photo in shown]))
                    except OSError as error:
                        self.errors.append(f"page: {error}")
                        continue
                    (self.warm if visit else self.cold).append(1000 * (time.perf_counter() - start))
                offset = (offset + PAGE) % max(PAGE, self.arguments.photos - PAGE)
                time.sleep(self.arguments.look)


def percentile(values: list[float], share: float) -> float | None:
    """A percentile in ms; None of nothing."""
    return round(float(np.percentile(values, share)), 1) if values else None


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=int, default=5000)
    parser.add_argument("--features", type=int, default=2000, help="features of a photo")
    parser.add_argument("--words", type=int, default=50_000, help="size of the vocabulary")
    parser.add_argument("--clients", type=int, default=8, help="clients that search at once")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--look", type=float, default=1.0, help="seconds between two pages of thumbnails")
    parser.add_argument("--turns", type=int, default=8, help="turns at which a query is tried")
    parser.add_argument("--workers", type=int, default=2, help="of the server")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="keep the collection here, or use the one that is there")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as scratch:
        folder = (arguments.folder or Path(scratch)) / "bench.cairn"
        if not folder.exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            make_collection(folder, arguments)
        with serving(folder, Path(scratch) / "cache", arguments.workers) as address:
            load = Load(address, arguments)
            before = os.getloadavg()[0]
            seconds = load.run()
    facts = {
        "photos": arguments.photos,
        "features": arguments.features,
        "clients": arguments.clients,
        "workers": arguments.workers,
        "turns": arguments.turns,
        "seconds": round(seconds, 1),
        "load_before": round(before, 2),
        "errors": len(load.errors),
        "searches": len(load.searches),
        "searches_a_second": round(len(load.searches) / seconds, 2),
        "search_p50_ms": percentile(load.searches, 50),
        "search_p95_ms": percentile(load.searches, 95),
        "search_steps_p50_ms": {
            step: percentile([row[column] for row in load.steps], 50) for column, step in enumerate(STEPS)
        },
        "pages": len(load.cold) + len(load.warm),
        "page_warm_p50_ms": percentile(load.warm, 50),
        "page_warm_p95_ms": percentile(load.warm, 95),
        "page_cold_p50_ms": percentile(load.cold, 50),
        "page_cold_p95_ms": percentile(load.cold, 95),
        "bar_ms": BAR_MS,
    }
    for error in dict.fromkeys(load.errors):
        print(error, file=sys.stderr)
    if arguments.json:
        print(json.dumps(facts))
        return
    print(f"{arguments.photos} photos, {arguments.clients} clients, {arguments.workers} workers, {seconds:.0f} s:")
    print(f"{facts['errors']} errors, {facts['searches']} searches, {facts['searches_a_second']} a second")
    print(f"a search: p50 {facts['search_p50_ms']} ms, p95 {facts['search_p95_ms']} ms")
    print("of which, p50: " + ", ".join(f"{step} {ms} ms" for step, ms in facts["search_steps_p50_ms"].items()))
    for kind in ("warm", "cold"):
        p50, p95 = (facts[f"page_{kind}_p{share}_ms"] for share in (50, 95))
        print(f"a page of {PAGE} thumbnails, {kind}: p50 {p50} ms, p95 {p95} ms")
    warm = percentile(load.warm, 95)
    met = warm is not None and warm < BAR_MS and not load.errors
    print(f"no error, and a warm page under {BAR_MS:.0f} ms (p95), wanted: {'met' if met else 'missed'}")


if __name__ == "__main__":
    main()
