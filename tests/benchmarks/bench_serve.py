"""How quickly `cairn serve` answers: clients that search at once, and thumbnails that are asked for meanwhile.

Run as `python -m tests.benchmarks.bench_serve`; it never gates. It takes the collection of a hundred thousand photos
that `bench_scale --folder DIR --build-only` builds, with `--folder DIR`; otherwise it makes a smaller one: a few drawn
photos are indexed, the features of all others are theirs, dealt out again and moved, and the file of each is one of the
drawn ones (with something after its end, so that no two have the same content).

A share of the searches are uploads of such files, each with something else after its end: the server has never seen
its content. The others are boxes that leave out a little of a photo of the collection, each another one: nothing is
kept of an earlier search. Among a hundred thousand photos these are the real ones, which others show too, and so are
the thumbnails. Everything runs on this machine, the clients too. The bars: no error, half of the searches answered in a
second and 95 of 100 in two, with 50 thumbnails a second next to them.
"""

import argparse
import contextlib
import hashlib
import http.client
import json
import os
import random
import re
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import psutil

from index.segments.writing import write_segment
from retrieval.catalogue.browsing import numbers_of
from retrieval.catalogue.photos import all_indexed, count_indexed, rows_of
from retrieval.catalogue.schema import ImageRow, SegmentRow
from retrieval.catalogue.segment_rows import commit_segment
from retrieval.catalogue.settings import reserve_numbers
from retrieval.collection.collection import Collection
from retrieval.collection.layout import SEGMENTS
from tests.benchmarks.bench_scale import ALBUM_OF_REAL
from tests.support.paths import ROOT

BARS_MS = {50: 1000.0, 95: 2000.0}  # by percentile, of searches
THUMBNAILS = 50.0  # a second
CONNECTIONS = 6  # that a browser opens to one server
SHOWN = 300  # photos whose thumbnails are asked for, again and again
STEPS = ("extract", "search", "verify")


class Client:
    """One connection, kept open as browsers do."""

    def __init__(self, address: str, timeout: float) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=timeout)

    def get(self, path: str) -> bytes:
        """The body of an answer; OSError where there is none, or it is not 200."""
        return self._ask("GET", path)

    def upload(self, path: str, fields: dict[str, Any], photo: Path) -> bytes:
        """The same of a form with a photo, sent as browsers send it."""
        boundary = secrets.token_hex(16)
        head = f"--{boundary}\r\nContent-Disposition: form-data; name="
        body = (
            f'{head}"request"\r\n\r\n{json.dumps(fields)}\r\n{head}"photos"; filename="photo.jpg"\r\n'
            "Content-Type: image/jpeg\r\n\r\n"
        ).encode()
        # What follows a JPEG's last marker is no part of the picture, but of the content that a photo is known by.
        body += photo.read_bytes() + secrets.token_bytes(16) + f"\r\n--{boundary}--\r\n".encode()
        return self._ask(
            "POST", path, body, {"X-Cairn": "1", "Content-Type": f"multipart/form-data; boundary={boundary}"}
        )

    def _ask(self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> bytes:
        try:
            self._connection.request(method, path, body, headers or {})
            answer = self._connection.getresponse()
            content = answer.read()
        except (http.client.HTTPException, OSError) as error:
            self._connection.close()
            raise OSError(f"{type(error).__name__}: {error}") from error
        if answer.status != 200:
            raise OSError(f"{answer.status}: {content[:200]!r}")
        return content


def make_collection(folder: Path, arguments: argparse.Namespace) -> None:
    """Write the collection."""
    from eval.demo.synthetic import build_demo_collection
    from retrieval.collection.options import CollectionOptions
    from retrieval.commands.options import cores
    from retrieval.features.encoding import decode_frames, encode_frames
    from retrieval.indexing.adding import index_photos
    from retrieval.regions.geometry import Frames

    rng = np.random.default_rng(arguments.seed)
    drawn = build_demo_collection(folder.parent / "drawn", views=3, distractors=20)
    with Collection.create(folder, CollectionOptions(words=arguments.words, signature="none")) as collection:
        index_photos(collection, [drawn.images], workers=cores())
        rows = collection.catalogue.read(all_indexed)
        features = [collection.index.images.features(row.number) for row in rows]
        words = np.concatenate([image.words for image in features]).astype(np.int32)
        linear = decode_frames(np.concatenate([image.columns["geometry"] for image in features])).linear
        missing = range(len(rows), arguments.photos)
        for start in range(0, len(missing), 1000):
            batch = missing[start : start + 1000]
            images = write_photos(folder.parent / "photos", rows, batch)
            dealt = [rng.integers(0, len(words), arguments.features) for _ in batch]
            # Frames as they were drawn, in other places.
            places = [rng.random((arguments.features, 2), np.float32) for _ in batch]
            moved = [encode_frames(Frames(some, linear[chosen])) for some, chosen in zip(places, dealt, strict=True)]
            add_segment(collection, images, [words[chosen] for chosen in dealt], {"geometry": moved})


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
    first = collection.catalogue.write(reserve_numbers, len(images))
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
    collection.catalogue.write(
        commit_segment,
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
def serving(folder: Path, cache: Path, workers: int) -> Iterator[tuple[str, int]]:
    """Run `cairn serve` in a process of its own; give its address, and its process id."""
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
        yield found[0].rstrip("/"), process.pid
    finally:
        process.terminate()
        process.wait(30)


def private_memory(server: int) -> list[float]:
    """Memory that each process of the server has for itself, the largest first, in GB; empty where nothing tells."""
    found = []
    for process in psutil.Process(server).children(recursive=True):
        with contextlib.suppress(OSError):
            reported = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
            # Without pages of files, which others share as soon as they read them too.
            found.append(sum(int(kilobytes) for kilobytes in re.findall(r"Private_Dirty:\s+(\d+)", reported)) / 1e6)
    return sorted((round(size, 3) for size in found), reverse=True)


def processor_time(server: int) -> dict[int, float]:
    """Seconds of processor time that each process of the server has taken, the server's own first."""
    processes = [psutil.Process(server), *psutil.Process(server).children(recursive=True)]
    times = {}
    for process in processes:
        with contextlib.suppress(psutil.Error):
            spent = process.cpu_times()
            times[process.pid] = spent.user + spent.system
    return times


class Load:
    """What the clients do until the time is over, and what they saw."""

    def __init__(self, address: str, files: list[Path], arguments: argparse.Namespace) -> None:
        self.address, self.files, self.arguments = address, files, arguments
        self.errors: list[str] = []
        self.searches: dict[str, list[float]] = {"indexed": [], "upload": []}  # ms
        self.steps: list[list[float]] = []  # ms, of a search that no longer waits: each of `STEPS`
        self.thumbnails: list[float] = []  # ms, from when one was to be asked for
        self._end = 0.0

    def _photos(self, album: str | None = None) -> list[dict[str, Any]]:
        """Some photos of the collection, or of an album of it."""
        chosen = "" if album is None else f"&folder={album}"
        body = Client(self.address, 60).get(f"/api/photos?limit={SHOWN}{chosen}")
        photos: list[dict[str, Any]] = json.loads(body)["photos"]
        return photos

    def run(self) -> float:
        """Search with many clients at once, and ask for thumbnails; give the seconds that took."""
        photos = self._photos(ALBUM_OF_REAL) or self._photos()
        numbers = [photo["number"] for photo in photos]
        for number in numbers:  # they are made when they are first asked for
            Client(self.address, 60).get(f"/api/photos/{number}/thumbnail?size=256")
        began = time.perf_counter()
        self._end = began + self.arguments.seconds
        threads = [
            threading.Thread(target=self._search, args=(photos, random.Random(seed)))
            for seed in range(self.arguments.clients)
        ]
        threads += [
            threading.Thread(target=self._look, args=(numbers, began + i / THUMBNAILS)) for i in range(CONNECTIONS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return time.perf_counter() - began

    def _search(self, photos: list[dict[str, Any]], chance: random.Random) -> None:
        client = Client(self.address, 120)
        while time.perf_counter() < self._end:
            kind = "upload" if chance.random() < self.arguments.uploads else "indexed"
            turns = self.arguments.turns
            start = time.perf_counter()
            try:
                if kind == "upload":
                    fields = {"queries": [{"upload": 0}], "turns": turns}
                    body = client.upload("/api/search", fields, chance.choice(self.files))
                else:
                    query = box_in(chance.choice(photos), chance)
                    body = client.get(f"/api/search?q={query}&turns={turns}")
                answer = json.loads(body)
                if not answer["results"]:
                    raise OSError("nothing was found")
                self.searches[kind].append(1000 * (time.perf_counter() - start))
                self.steps.append([1000 * answer["seconds"][step] for step in STEPS])
            except OSError as error:
                self.errors.append(f"{kind}: {error}")

    def _look(self, numbers: list[int], begin: float) -> None:
        """Ask for a thumbnail at the pace that is wanted, whether those before were answered in time or not."""
        client = Client(self.address, 120)
        due = begin
        while due < self._end:
            time.sleep(max(0.0, due - time.perf_counter()))
            try:
                client.get(f"/api/photos/{numbers[round(due * THUMBNAILS) % len(numbers)]}/thumbnail?size=256")
                self.thumbnails.append(1000 * (time.perf_counter() - due))
            except OSError as error:
                self.errors.append(f"thumbnail: {error}")
            due += CONNECTIONS / THUMBNAILS


def box_in(photo: dict[str, Any], chance: random.Random) -> str:
    """A query by a box that leaves out up to a twentieth of a photo at each side."""
    x0, y0, x1, y1 = (chance.uniform(0, 0.05) for _ in range(4))
    width, height = photo["width"], photo["height"]
    return f"{photo['number']}:{x0 * width:.2f},{y0 * height:.2f},{(1 - x1) * width:.2f},{(1 - y1) * height:.2f}"


def percentile(values: list[float], share: float) -> float | None:
    """A percentile in ms; None of nothing."""
    return round(float(np.percentile(values, share)), 1) if values else None


def find_files(folder: Path, arguments: argparse.Namespace) -> list[Path]:
    """Files of some photos of the collection, to be uploaded."""
    with Collection.open(folder) as collection:
        numbers = collection.catalogue.read(numbers_of)
        chosen = np.random.default_rng(arguments.seed).choice(numbers, min(200, len(numbers)), replace=False)
        return [Path(row.path) for row in collection.catalogue.read(rows_of, chosen.tolist())]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=int, default=20_000, help="of the collection that is made here")
    parser.add_argument("--features", type=int, default=2000, help="features of a photo of it")
    parser.add_argument("--words", type=int, default=50_000, help="size of its vocabulary")
    parser.add_argument("--clients", type=int, default=8, help="clients that search at once")
    parser.add_argument("--uploads", type=float, default=0.5, help="share of the searches that are uploads")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--turns", type=int, default=8, help="turns at which a query is tried")
    parser.add_argument("--workers", type=int, default=2, help="of the server")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="use the collection that is here, such as that of bench_scale")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as scratch:
        kept = arguments.folder or Path(scratch)
        folder = next((path for path in (kept / "scale.cairn", kept / "bench.cairn") if path.exists()), None)
        if folder is None:
            folder = kept / "bench.cairn"
            kept.mkdir(parents=True, exist_ok=True)
            make_collection(folder, arguments)
        files = find_files(folder, arguments)
        opening = time.perf_counter()
        with serving(folder, Path(scratch) / "cache", arguments.workers) as (address, server):
            opened = time.perf_counter() - opening
            load = Load(address, files, arguments)
            before = os.getloadavg()[0]
            spent = processor_time(server)
            seconds = load.run()
            spent = {pid: time - spent.get(pid, 0.0) for pid, time in processor_time(server).items()}
            memory = private_memory(server)
        with Collection.open(folder) as collection:
            photos = collection.catalogue.read(count_indexed)
    searches = [one for several in load.searches.values() for one in several]
    facts: dict[str, Any] = {
        "photos": photos,
        "clients": arguments.clients,
        "uploads": arguments.uploads,
        "workers": arguments.workers,
        "turns": arguments.turns,
        "seconds": round(seconds, 1),
        "load_before": round(before, 2),
        "opened_after_s": round(opened, 1),
        "errors": len(load.errors),
        "searches": len(searches),
        "searches_a_second": round(len(searches) / seconds, 2),
        "search_ms": {
            kind: {f"p{share}": percentile(values, share) for share in BARS_MS}
            for kind, values in {"all": searches, **load.searches}.items()
        },
        "search_steps_p50_ms": {
            step: percentile([row[column] for row in load.steps], 50) for column, step in enumerate(STEPS)
        },
        # Tells what other programs that are at work do not change.
        "processor_ms_a_search": round(
            1000 * sum(time for pid, time in spent.items() if pid != server) / max(1, len(searches)), 1
        ),
        "server_processor_share": round(spent[server] / seconds, 3),
        "thumbnails_a_second": round(len(load.thumbnails) / seconds, 1),
        "thumbnail_ms": {f"p{share}": percentile(load.thumbnails, share) for share in BARS_MS},
        "private_gb": memory,
    }
    for error in dict.fromkeys(load.errors):
        print(error, file=sys.stderr)
    if arguments.json:
        print(json.dumps(facts))
        return
    print(f"{photos} photos, {arguments.clients} clients, {arguments.workers} workers, {seconds:.0f} s:")
    print(f"the server answers after {facts['opened_after_s']} s")
    print(f"{facts['errors']} errors, {facts['searches']} searches, {facts['searches_a_second']} a second")
    for kind, times in facts["search_ms"].items():
        print(f"a search ({kind}): p50 {times['p50']} ms, p95 {times['p95']} ms")
    print("of which, p50: " + ", ".join(f"{step} {ms} ms" for step, ms in facts["search_steps_p50_ms"].items()))
    print(f"processor time of the workers, a search: {facts['processor_ms_a_search']} ms")
    print(f"processor time of the server itself: {facts['server_processor_share']} of a core")
    thumbnail = facts["thumbnail_ms"]
    rate = facts["thumbnails_a_second"]
    print(f"{rate} thumbnails a second: p50 {thumbnail['p50']} ms, p95 {thumbnail['p95']} ms")
    print("memory that each process has for itself, GB: " + ", ".join(map(str, memory)))
    met = not load.errors and all(
        (found := percentile(searches, share)) is not None and found < bar for share, bar in BARS_MS.items()
    )
    bars = " and ".join(f"p{share} under {bar:.0f} ms" for share, bar in BARS_MS.items())
    print(f"no error, and {bars}, wanted: {'met' if met else 'missed'}")


if __name__ == "__main__":
    main()
