"""Search over shards compared with search on one machine: the same answers, and what they cost.

Run as `OMP_NUM_THREADS=1 python -m tests.benchmarks.bench_shards --collection DIR --folder DIR`; it never gates. The
collection is one of `bench_scale`, or any other. Where its segments are too few for the shards, a copy with smaller
ones is made in the folder, once. Photos of it are asked with, one machine and shards in turn: the default engine, 200
results with homographies. With each number of shards there are as many holders, or `--workers`, first in this process,
where what each does is timed, then as worker processes of one thread each on a Dask cluster of this machine: processor
time is that of the front, the scheduler and all workers. Where the machine has fewer cores than there are workers, the
times that passed are longer than those of as many machines.
"""

import argparse
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from index.cluster.connection import Cluster
from index.parallel import one_thread
from index.segments.description import SIGNATURE
from index.segments.segment import ImageFeatures, Segment
from retrieval.catalogue.changes import Rewritten, replace_segments
from retrieval.catalogue.photos import all_indexed, rows_of
from retrieval.catalogue.schema import ImageRow
from retrieval.catalogue.segment_rows import segments_in
from retrieval.collection.collection import Collection
from retrieval.collection.layout import SEGMENTS
from retrieval.collection.sealing import seal
from retrieval.collection.segment_writing import write_photos
from retrieval.library.answers import make_answer
from retrieval.search.answers import ask_with_photo, search_photo
from retrieval.search.options import SearchOptions
from retrieval.search.searcher import Searcher
from retrieval.shards.cluster import ClusterHolders
from retrieval.shards.engine import sharded_searcher
from retrieval.shards.epoch import open_epoch
from retrieval.shards.holder import Holder
from retrieval.shards.holders import Holders
from retrieval.shards.shards import Shards
from tests.support.sharded import LocalHolders

SHARES = (50, 95)
_COPIED = ("catalogue.sqlite", "collection.id", "collection.toml")


def cut(source: Path, folder: Path, photos: int) -> Path:
    """Make a copy of a collection whose segments have so many photos at most, unless it is there; give its folder."""
    place = folder / f"cut-{photos}.cairn"
    if (place / "cut").exists():
        return place
    (place / SEGMENTS).mkdir(parents=True)
    for name in _COPIED:
        (place / name).write_bytes((source / name).read_bytes())
    (place / "vocabulary").symlink_to((source / "vocabulary").resolve())
    for path in (source / SEGMENTS).iterdir():
        (place / SEGMENTS / path.name).symlink_to(path.resolve())
    with Collection.open(place) as collection:
        left: list[tuple[Segment, int]] = [
            (segment, position) for segment in collection.segments for position in range(segment.images)
        ]
        left.sort(key=lambda place: int(place[0].image_numbers[place[1]]))
        rows = collection.catalogue.read(segments_in)
        new = [_write(collection, left[first : first + photos]) for first in range(0, len(left), photos)]
        collection.catalogue.write(replace_segments, [row.id for row in rows], new)
        for row in rows:
            (place / SEGMENTS / row.folder).unlink()
        collection.forget()
        seal(collection)
    (place / "cut").touch()
    return place


def _write(collection: Collection, places: Sequence[tuple[Segment, int]]) -> Rewritten:
    """Write some photos as a segment, which follow each other by number."""
    images = {}
    for segment in dict.fromkeys(segment for segment, _ in places):
        positions = np.array([position for other, position in places if other is segment])
        signatures = segment.signatures_of(positions)
        numbers = segment.image_numbers[positions].tolist()
        for number, image, signed in zip(numbers, segment.some_images(positions), signatures, strict=True):
            images[number] = ImageFeatures(image.words, image.columns | {SIGNATURE: signed})
    numbers = sorted(images)
    written = write_photos(
        collection, collection.catalogue.read(rows_of, numbers, indexed=False), [images[number] for number in numbers]
    )
    return Rewritten(written, np.array(numbers))


@dataclass
class Costs:
    """What queries cost."""

    cpu: list[float] = field(default_factory=list)  # ms of all processes
    front: list[float] = field(default_factory=list)  # ms of the process that asks
    wall: list[float] = field(default_factory=list)  # ms
    messages: list[int] = field(default_factory=list)

    def facts(self) -> dict[str, Any]:
        """Means and percentiles."""
        facts: dict[str, Any] = {"cpu_ms": round(float(np.mean(self.cpu)), 1)}
        facts["front_ms"] = round(float(np.mean(self.front)), 1)
        facts |= {f"wall_p{share}_ms": round(float(np.percentile(self.wall, share)), 1) for share in SHARES}
        return facts | {"messages": round(float(np.mean(self.messages)), 1)}


class TimedHolder(Holder):
    """A holder that notes the processor time of each kind of call."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: Counter[str] = Counter()
        self._calls = {name: self._timed(name, call) for name, call in self._calls.items()}

    def _timed(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any) -> Any:
            start = time.process_time()
            try:
                return call(*arguments)
            finally:
                self.seconds[name] += time.process_time() - start

        return timed


def answer(searcher: Searcher, row: ImageRow, top: int) -> dict[str, Any]:
    """Ask with a photo of the collection, as the server does."""
    requested = ask_with_photo(row, str(row.name))
    found = [search_photo(searcher, requested, top=top)]
    return make_answer(searcher, [requested], found, top=top).to_dict()


def ask(searcher: Searcher, rows: Sequence[ImageRow], top: int, costs: Costs, clock: "Clock") -> list[dict[str, Any]]:
    """Ask with some photos, and note what that costs; give the results."""
    found = []
    for row in rows:
        before, front, start, messages = clock.others(), time.process_time(), time.perf_counter(), clock.messages()
        reported = answer(searcher, row, top)
        costs.wall.append(1000 * (time.perf_counter() - start))
        costs.front.append(1000 * (time.process_time() - front))
        costs.messages.append(clock.messages() - messages)
        costs.cpu.append(costs.front[-1] + 1000 * (clock.others() - before))
        assert not reported["missing_shards"]
        found.append(reported["results"])
    return found


class Clock:
    """Processor time of other processes, and messages to them."""

    def __init__(self, cluster: Cluster | None = None, holders: ClusterHolders | LocalHolders | None = None) -> None:
        self._cluster, self._holders = cluster, holders

    def others(self) -> float:
        """Seconds of all workers."""
        return sum(self._cluster.client.run(time.process_time).values()) if self._cluster is not None else 0.0

    def messages(self) -> int:
        """Messages to holders."""
        return self._holders.messages if self._holders is not None else 0


def compare(
    collection: Collection,
    rows: Sequence[ImageRow],
    top: int,
    shards: int,
    holders: Holders,
    clock: Clock,
    options: SearchOptions | None = None,
) -> dict[str, Any]:
    """Ask one machine and shards in turn; AssertionError where an answer differs."""
    options = options or SearchOptions()
    here = Searcher(collection, options)
    held = Shards(open_epoch(collection, shards), holders)
    there = sharded_searcher(collection, options, held)
    alone, shared = Costs(), Costs()
    start = time.perf_counter()
    held.place()
    opening = time.perf_counter() - start
    for row in rows:  # what is read or computed once is no query's
        answer(here, row, top)
        answer(there, row, top)
    reset(holders)
    same = 0
    for row in rows:
        (expected,) = ask(here, [row], top, alone, Clock())
        (found,) = ask(there, [row], top, shared, clock)
        assert found == expected, f"another answer to {row.name} with {shards} shards"
        same += len(found)
    one, several = alone.facts(), shared.facts()
    facts = {"shards": len(held.epoch.shards), "one": one, "shared": several, "same_results": same}
    facts["cpu_ratio"] = round(several["cpu_ms"] / one["cpu_ms"], 3)
    facts["opening_s"] = round(opening, 2)
    if isinstance(holders, LocalHolders):
        facts["calls_ms"] = calls_of(holders, len(rows))
    return facts


def reset(holders: Holders) -> None:
    """Forget what calls took."""
    if isinstance(holders, LocalHolders):
        for holder in holders.there.values():
            assert isinstance(holder, TimedHolder)
            holder.seconds.clear()


def calls_of(holders: LocalHolders, queries: int) -> dict[str, float]:
    """Milliseconds a query that each kind of call takes, of all holders together."""
    total: Counter[str] = Counter()
    for holder in holders.there.values():
        assert isinstance(holder, TimedHolder)
        total += holder.seconds
    return {name: round(1000 * seconds / queries, 2) for name, seconds in total.most_common()}


def measure(
    folder: Path, numbers: Sequence[int], workers: int, queries: int, top: int, turns: int
) -> list[dict[str, Any]]:
    """Compare each number of shards with one machine."""
    found, options = [], SearchOptions(turns=turns)
    cv2.setNumThreads(1)
    with Collection.open(folder) as collection, one_thread():
        every = collection.catalogue.read(all_indexed)
        rows = every[:: max(1, len(every) // queries)][:queries]
        for number in numbers:
            local = LocalHolders(workers or number)
            local.there = {name: TimedHolder() for name in local.there}
            here = compare(collection, rows, top, number, local, Clock(holders=local), options)
            with Cluster.connect(f"local:{workers or number}") as cluster:
                holders = ClusterHolders(cluster)
                there = compare(collection, rows, top, number, holders, Clock(cluster, holders), options)
            found.append({"shards": number, "in_process": here, "cluster": there})
            show(found[-1])
    return found


def show(facts: dict[str, Any]) -> None:
    """Print what was measured with one number of shards."""
    for kind in ("in_process", "cluster"):
        one = facts[kind]
        print(
            f"{one['shards']} shards, {kind}: {one['same_results']} results as on one machine; CPU a query "
            f"{one['shared']['cpu_ms']} ms, one machine {one['one']['cpu_ms']} ms, ratio {one['cpu_ratio']}; front "
            f"{one['shared']['front_ms']} ms, {one['shared']['messages']} messages; p50 {one['shared']['wall_p50_ms']} "
            f"ms, one machine {one['one']['wall_p50_ms']} ms; opened in {one['opening_s']} s",
            flush=True,
        )
    print(f"  calls, ms a query: {facts['in_process']['calls_ms']}", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collection", type=Path, required=True, help="an indexed collection")
    parser.add_argument("--folder", type=Path, help="where a copy with smaller segments is kept")
    parser.add_argument("--photos", type=int, default=12_500, help="of a segment of the copy, at most")
    parser.add_argument("--shards", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--workers", type=int, default=0, help="that hold the shards; 0: as many as shards")
    parser.add_argument("--queries", type=int, default=24, help="photos that are asked with, evenly spread")
    parser.add_argument("--top", type=int, default=200)
    parser.add_argument("--turns", type=int, default=8, help="turns at which a query may be tried")
    parser.add_argument("--json", type=Path, help="write what was measured there, too")
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # of the workers
    folder = cut(arguments.collection, arguments.folder, arguments.photos) if arguments.folder else arguments.collection
    found = measure(folder, arguments.shards, arguments.workers, arguments.queries, arguments.top, arguments.turns)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
