"""What indexing on a cluster takes: memory of its processes, bytes that travel, and the work that is left to the front.

Run as `OMP_NUM_THREADS=1 python -m tests.benchmarks.bench_cluster --photos DIR --vocabulary DIR --features DIR`; it
never gates. The photos are real ones, the vocabulary is adopted, and the features are those that `bench_scale` keeps.

- Tasks that do nothing, and whose results are as large as a photo's: processor time of the front and the scheduler.
- Photos are indexed by a scheduler and a worker, each a process of its own: processor time of the worker, and the most
  memory that each has had. Then once more by tasks that this process does itself: bytes of each task and its result, as
  they are pickled.
- k-means over the features, whose tasks this process does itself, too: bytes that go to a worker once a pass, and those
  of all tasks and results, a descriptor.
- Hard links to one photo, as many as `--listed`: memory of the list of new photos, and seconds a photo.
- The checksum of a file of a photo that is in the cache, and decoding one of twelve million pixels.
"""

import argparse
import contextlib
import io
import json
import os
import pickle
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import psutil

from index.arrays import hash_file
from index.cluster.blocks import ClusterBlocks
from index.cluster.connection import Cluster
from index.cluster.storage import FolderStorage
from index.clustering.kmeans import KMeansOptions, approximate_kmeans
from index.clustering.sources import FileSource
from index.parallel import one_thread
from index.progress import silent
from retrieval.catalogue.segment_rows import segments_in
from retrieval.collection.collection import Collection
from retrieval.collection.options import CollectionOptions
from retrieval.indexing.add_options import AddOptions
from retrieval.indexing.adding import index_photos
from retrieval.indexing.discovery import find_new
from retrieval.indexing.on_cluster import ClusterPreparer
from retrieval.indexing.report import IndexReport
from retrieval.photos.decoding import read_photo
from retrieval.photos.listing import list_photos


class Metered:
    """Does the tasks of a cluster in this process, and counts bytes."""

    threads = 1

    def __init__(self) -> None:
        self.sent, self.received, self.tasks = 0, 0, 0

    def run(self, tasks: Iterable[Callable[[], Any]], **_: object) -> Iterator[Any]:
        """Run tasks as they are when they have travelled."""
        for task in tasks:
            sent = pickle.dumps(task)
            result = pickle.loads(sent)()
            self.tasks += 1
            self.sent += len(sent)
            self.received += len(pickle.dumps(result))
            yield result

    def everywhere(self, function: Callable[..., object], *arguments: object) -> None:
        """Call a function."""
        function(*arguments)


def most_memory() -> float:
    """The most memory that this process has had since `forget_memory`, in GB."""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024 / 1e9


def forget_memory() -> None:
    """Let the most memory of this process be what it has now."""
    Path("/proc/self/clear_refs").write_text("5")


def cpu(process: psutil.Process) -> float:
    """Processor time of a process and those that it has started, in seconds."""
    total = 0.0
    for one in [process, *process.children(recursive=True)]:
        times = one.cpu_times()
        total += times.user + times.system
    return total


def index(folder: Path, photos: Sequence[Path], vocabulary: Path, options: CollectionOptions, cluster: Any) -> None:
    """Index photos by a cluster."""
    with Collection.create(folder, options) as collection:
        preparer = ClusterPreparer(collection, cluster, FolderStorage(folder))
        report = index_photos(collection, photos, AddOptions(vocabulary=vocabulary), preparer=preparer)
        assert not report.failed, report.failed


@contextlib.contextmanager
def started(folder: Path) -> Iterator[tuple[str, dict[str, psutil.Process]]]:
    """Start a scheduler and a worker; give their address, and the processes by their names."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    dask, address = [sys.executable, "-m", "dask"], f"tcp://127.0.0.1:{port}"
    commands = {
        "scheduler": [*dask, "scheduler", "--host", "127.0.0.1", "--port", port, "--dashboard-address", ":0"],
        "worker": [*dask, "worker", address, "--nthreads", "1", "--no-nanny", "--local-directory", str(folder)],
    }
    running = {}
    try:
        for name, command in commands.items():
            running[name] = psutil.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(5)
        yield address, running
    finally:
        for process in running.values():
            process.terminate()
            process.wait()


def time_tasks(folder: Path, count: int, result: int) -> dict[str, float]:
    """Processor time of the front and of the scheduler a task that does nothing, without what they take when idle."""
    with started(folder) as (address, processes), Cluster.connect(address) as cluster:

        def spent() -> tuple[float, float, float]:
            return time.monotonic(), time.process_time(), cpu(processes["scheduler"])

        sum(len(one) for one in cluster.run(partial(os.urandom, result) for _ in range(100)))
        begun = spent()
        time.sleep(10)
        idle = spent()
        sum(len(one) for one in cluster.run(partial(os.urandom, result) for _ in range(count)))
        ended = spent()
        waited, took = idle[0] - begun[0], ended[0] - idle[0]
        names = ("front", "scheduler")
        rates = {name: (idle[number] - begun[number]) / waited for number, name in enumerate(names, 1)}
        work = {
            name: (ended[number] - idle[number] - rates[name] * took) / count for number, name in enumerate(names, 1)
        }
        return {
            **{f"{name}_idle": rate for name, rate in rates.items()},
            **{f"{name}_cpu_s_a_task": each for name, each in work.items()},
        }


def time_indexing(
    folder: Path, photos: Sequence[Path], vocabulary: Path, options: CollectionOptions
) -> dict[str, float]:
    """Processor time a photo of the worker, and memory of the front, the scheduler and the worker."""
    with started(folder) as (address, processes), Cluster.connect(address) as cluster:
        (before,) = cluster.client.run(most_memory).values()
        index(folder / "few.cairn", photos[:4], vocabulary, options, cluster)  # loads libraries and vocabulary
        forget_memory()
        begun = cpu(processes["worker"])
        index(folder / "all.cairn", photos, vocabulary, options, cluster)
        (after,) = cluster.client.run(most_memory).values()
        return {
            "worker_cpu_s": (cpu(processes["worker"]) - begun) / len(photos),
            "front_gb": most_memory(),
            "scheduler_gb": processes["scheduler"].memory_info().rss / 1e9,
            "worker_gb_at_first": before,
            "worker_gb": after,
        }


def meter_indexing(
    folder: Path, photos: Sequence[Path], vocabulary: Path, options: CollectionOptions
) -> dict[str, float]:
    """Bytes a photo: of its file, of a task, and of a result, and the features of which that is."""
    metered = Metered()
    index(folder / "metered.cairn", photos, vocabulary, options, metered)
    with Collection.open(folder / "metered.cairn") as collection:
        features = sum(row.features for row in collection.catalogue.read(segments_in))
    return {
        "features": features / len(photos),
        "file_bytes": sum(path.stat().st_size for path in photos) / len(photos),
        "task_bytes": metered.sent / metered.tasks,
        "result_bytes_a_feature": metered.received / features,
    }


def meter_kmeans(folder: Path, features: Path, words: int, descriptors: int) -> dict[str, float]:
    """Bytes of k-means: a pass to each worker, and a descriptor of all tasks and results."""
    files, total = [], 0
    for path in sorted(features.rglob("*.descriptors.npy")):
        files.append(path)
        total += len(np.load(path, mmap_mode="r"))
        if total >= descriptors:
            break
    storage, metered, passes = FolderStorage(folder), Metered(), []
    for path in files:
        (folder / path.name).symlink_to(path)
    send = storage.send

    def noted(name: str, source: Path) -> None:
        if source.is_dir():
            passes.append(sum(path.stat().st_size for path in source.rglob("*") if path.is_file()))
        send(name, source)

    storage.send = noted  # type: ignore[method-assign]
    source = FileSource(files)

    def reader(sample: Any) -> ClusterBlocks:
        # One thread of a cluster with few: so large are the parts where there are many blocks for each.
        return ClusterBlocks(metered, 1, storage, [path.name for path in files], source, "kmeans", sample)  # type: ignore[arg-type]

    begun = time.process_time()
    found = approximate_kmeans(source, KMeansOptions(words=words), reader=reader)
    return {
        "words": words,
        "descriptors": found.points,
        "pass_bytes_a_word": float(np.mean(passes)) / words,
        "sent_bytes_a_descriptor": metered.sent / found.points,
        "received_bytes_a_descriptor": metered.received / found.points,
        "cpu_s": time.process_time() - begun,
    }


def list_many(folder: Path, photo: Path, count: int) -> dict[str, float]:
    """Memory and seconds of the list of new photos, a photo."""
    for number in range(count):
        path = folder / "listed" / f"{number // 500:05}" / f"{number:08}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        os.link(photo, path)
    with Collection.create(folder / "listed.cairn", CollectionOptions(signature="none")) as collection:
        before, begun = psutil.Process().memory_info().rss, time.process_time()
        files = find_new(collection, [folder / "listed"], False, IndexReport(), silent)
        after = psutil.Process().memory_info().rss
        assert len(files) == count
        return {
            "listed_bytes": (after - before) / count,
            "listed_cpu_s": (time.process_time() - begun) / count,
            "listed_file_bytes": photo.stat().st_size,
        }


def time_large_file(folder: Path, photo: Path) -> dict[str, float]:
    """Processor time to decode a photo of twelve million pixels, and its checksum, a GB."""
    pixels = cv2.resize(cv2.imread(str(photo)), (4000, 3000), interpolation=cv2.INTER_CUBIC)
    noise = np.random.default_rng(0).normal(0, 4, pixels.shape)
    buffer = io.BytesIO(
        cv2.imencode(".jpg", np.clip(pixels + noise, 0, 255).astype(np.uint8), [cv2.IMWRITE_JPEG_QUALITY, 92])[1]
    )
    path = folder / "large.jpg"
    path.write_bytes(buffer.getvalue())
    spent = {}
    for name, step in {"decode": partial(read_photo, path), "hash": partial(hash_file, path)}.items():
        step()
        begun = time.process_time()
        for _ in range(5):
            step()
        spent[name] = (time.process_time() - begun) / 5
    size = path.stat().st_size
    return {"large_bytes": size, "decode_cpu_s": spent["decode"], "hash_cpu_s_a_gb": spent["hash"] / size * 1e9}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=Path, required=True, metavar="DIR", help="folder of real photos")
    parser.add_argument("--vocabulary", type=Path, required=True, metavar="DIR")
    parser.add_argument("--features", type=Path, required=True, metavar="DIR", help="folder of *.descriptors.npy")
    parser.add_argument("--count", type=int, default=40, help="of photos that are indexed")
    parser.add_argument("--tasks", type=int, default=2_000, help="that do nothing")
    parser.add_argument("--result", type=int, default=34_000, help="bytes of the result of such a task")
    parser.add_argument("--words", type=int, default=20_000, help="of k-means")
    parser.add_argument("--descriptors", type=int, default=1_000_000, help="of k-means")
    parser.add_argument("--listed", type=int, default=20_000)
    arguments = parser.parse_args()
    photos = [path for _, path in list_photos([arguments.photos])]
    photos = photos[:: max(1, len(photos) // arguments.count)][: arguments.count]
    options = CollectionOptions(signature="hamming-64")
    with tempfile.TemporaryDirectory(prefix="cairn-bench-") as temporary, one_thread():
        for number, measure in enumerate(
            (
                lambda folder: time_tasks(folder, arguments.tasks, arguments.result),
                lambda folder: time_indexing(folder, photos, arguments.vocabulary, options),
                lambda folder: meter_indexing(folder, photos, arguments.vocabulary, options),
                lambda folder: meter_kmeans(folder, arguments.features, arguments.words, arguments.descriptors),
                lambda folder: list_many(folder, photos[0], arguments.listed),
                lambda folder: time_large_file(folder, photos[0]),
            )
        ):
            folder = Path(temporary) / str(number)
            folder.mkdir()
            print(json.dumps({name: round(value, 5) for name, value in measure(folder).items()}), flush=True)


if __name__ == "__main__":
    main()
