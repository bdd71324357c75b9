"""The descriptors of k-means, read by the workers of a cluster: only sums and centres travel."""

import secrets
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from index.arrays import load_array, load_json, save_array, save_json
from index.cluster.storage import Storage, open_storage
from index.clustering.blocks import Assignment, LocalBlocks, Looked, gathered, put_together
from index.clustering.sources import FileSource
from index.parallel import RemoteWorkers
from index.search_backends import search_backend

MOST = 2  # blocks of a part, at most: with many words its sums take four times the room of its descriptors
PARTS = 4  # parts for each thread of the workers, if there are enough blocks
_LIST = "sources.json"
_CENTRES, _NEAR = "centres.npy", "near.npy"


@dataclass(frozen=True)
class _Files:
    """Descriptors in files that all machines can reach."""

    place: str
    folder: str  # where what workers need for it lies


@dataclass(frozen=True)
class _BlockRun:
    """A run of consecutive blocks."""

    first: int
    last: int  # exclusive
    start: int  # number of its first descriptor, of those that take part
    stop: int


class ClusterBlocks:
    """Descriptors in blocks that workers read: see `index.clustering.blocks.DescriptorBlocks`. Close it."""

    def __init__(
        self,
        pool: RemoteWorkers,
        threads: int,
        storage: Storage,
        names: Sequence[str],
        source: FileSource,
        folder: str,
        sample: NDArray[np.int64] | None = None,
    ) -> None:
        self._pool, self._storage = pool, storage
        self._source, self._sample = source, sample
        self._files = _Files(storage.place, f"{folder}/{secrets.token_hex(4)}")
        counts = np.diff(source.ends, prepend=0).tolist()
        with tempfile.TemporaryDirectory() as temporary:
            path = Path(temporary) / _LIST
            save_json(path, {"names": list(names), "counts": counts, "block_rows": source.block_rows})
            storage.send(f"{self._files.folder}/{_LIST}", path)
        self._parts = list(self._cut(threads))

    @property
    def dim(self) -> int:
        """Length of a descriptor: see `DescriptorBlocks.dim`."""
        return self._source.dim

    def __len__(self) -> int:
        return len(self._source) if self._sample is None else len(self._sample)

    def hashes(self) -> Iterator[NDArray[np.uint64]]:
        """Hash the descriptors: see `DescriptorBlocks.hashes`."""
        yield from self._pool.run(partial(_hash, self._files, part, self._rows(part)) for part in self._parts)

    def rows(self, numbers: NDArray[np.integer]) -> NDArray[np.float32]:
        """Return descriptors by their numbers: see `DescriptorBlocks.rows`."""
        tasks = []
        for part in self._parts:
            first, last = np.searchsorted(numbers, (part.start, part.stop))
            if last > first:
                tasks.append(partial(_select, self._files, part, self._rows(part), numbers[first:last] - part.start))
        return gathered(self._pool.run(tasks), self.dim)

    def look(self, assignment: Assignment, assigned: NDArray[np.int32]) -> Iterator[Looked]:
        """Assign all descriptors: see `DescriptorBlocks.look`."""
        name = f"{self._files.folder}/pass-{secrets.token_hex(4)}"
        with tempfile.TemporaryDirectory() as temporary:
            _save_assignment(Path(temporary), assignment)
            self._storage.send(name, Path(temporary))
        try:
            yield from self._pool.run(
                partial(_look, self._files, part, self._rows(part), name, assigned[part.start : part.stop])
                for part in self._parts
            )
        finally:
            self._storage.remove(name)

    def close(self) -> None:
        """Remove what was written for the workers."""
        self._storage.remove(self._files.folder)

    def _cut(self, threads: int) -> Iterator[_BlockRun]:
        rows = self._source.block_rows
        blocks = -(-len(self._source) // rows)
        size = min(MOST, max(1, blocks // (PARTS * max(1, threads))))
        for first in range(0, blocks, size):
            last = min(first + size, blocks)
            ends = np.array([first * rows, min(last * rows, len(self._source))])
            start, stop = ends if self._sample is None else np.searchsorted(self._sample, ends)
            if stop > start:
                yield _BlockRun(first, last, int(start), int(stop))

    def _rows(self, part: _BlockRun) -> NDArray[np.int64] | None:
        """Numbers of a part's descriptors that take part, counted from its first block; None for all."""
        if self._sample is None:
            return None
        return self._sample[part.start : part.stop] - part.first * self._source.block_rows


class _Some:
    """Some blocks of a source, as a source."""

    def __init__(self, source: FileSource, part: _BlockRun) -> None:
        self._source, self._part = source, part

    @property
    def dim(self) -> int:
        return self._source.dim

    def __len__(self) -> int:
        return self._part.stop - self._part.start

    def blocks(self) -> Iterator[NDArray[np.float32]]:
        return self._source.blocks(self._part.first, self._part.last)


# In the workers


def _hash(files: _Files, part: _BlockRun, rows: NDArray[np.int64] | None) -> NDArray[np.uint64]:
    return np.concatenate(list(_blocks(files, part, rows).hashes()))


def _select(
    files: _Files, part: _BlockRun, rows: NDArray[np.int64] | None, numbers: NDArray[np.integer]
) -> NDArray[np.float32]:
    return _blocks(files, part, rows).rows(numbers)


def _look(
    files: _Files, part: _BlockRun, rows: NDArray[np.int64] | None, name: str, assigned: NDArray[np.int32]
) -> Looked:
    assignment = _load_assignment(files.place, name)
    result = put_together(list(_blocks(files, part, rows).look(assignment, assigned)))
    return result._replace(numbers=result.numbers + part.start)


def _blocks(files: _Files, part: _BlockRun, rows: NDArray[np.int64] | None) -> LocalBlocks:
    return LocalBlocks(_Some(_source(files), part), rows)


@lru_cache(maxsize=2)
def _source(files: _Files) -> FileSource:
    storage = open_storage(files.place)
    listed = load_json(storage.fetch(f"{files.folder}/{_LIST}"))
    return FileSource(
        [Path(name) for name in listed["names"]],
        listed["block_rows"],
        counts=listed["counts"],
        opened=lambda path: storage.fetch(path.as_posix()),
    )


@lru_cache(maxsize=1)
def _load_assignment(place: str, name: str) -> Assignment:
    folder = open_storage(place).fetch(name)
    # Into memory: the folder is removed after the pass.
    centres = load_array(folder / _CENTRES)
    near = load_array(folder / _NEAR) if (folder / _NEAR).is_file() else None
    described = folder / "search.json"
    search = None
    if described.is_file():
        search = search_backend(load_json(described)["name"]).load(folder, centres, known=True)
    return Assignment(centres, search, near)


def _save_assignment(folder: Path, assignment: Assignment) -> None:
    save_array(folder / _CENTRES, assignment.centres)
    if assignment.near is not None:
        save_array(folder / _NEAR, assignment.near)
    if assignment.search is not None:
        assignment.search.save(folder)
