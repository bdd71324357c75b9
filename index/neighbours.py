"""Approximate nearest-neighbour search: the contract of every back-end."""

import abc
import dataclasses
import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from index.arrays import fingerprint, hash_file, load_json, save_json
from index.errors import CairnError
from index.kernels.products import squared_distances

DESCRIPTION_FILE = "search.json"
INDEX_FILE = "search.npz"
EARLIER_INDEX_FILE = "search.index"
"""Index file of earlier versions, written by faiss. It is never loaded: faiss trusts such files."""
MOST_SEED = 2**63 - 1
# faiss expands the square of a distance, and so rounds: this many extra candidates are compared exactly.
_ROUNDED = 4


@dataclass(frozen=True)
class NeighbourOptions:
    """Options of a back-end; each back-end derives its own."""


class NearestNeighbours(abc.ABC):
    """Search for the nearest of a fixed set of points, by squared Euclidean distance.

    Made by `build`, which copies the points, or `load`; immutable. Results may be approximate, distances never are:
    each neighbour comes with its exact squared distance, nearest first. The caller sets the number of threads
    (`faiss.omp_set_num_threads`), which never changes a result.
    """

    name: ClassVar[str]  # name in the registry
    options_type: ClassVar[type[NeighbourOptions]]
    # Faster, less accurate settings for passes of k-means that later passes correct.
    draft: ClassVar[NeighbourOptions]
    # Whether the same seed gives the same index.
    seeded: ClassVar[bool] = True
    # Queries per batch: the work arrays of a batch stay in the processor's cache.
    batch: ClassVar[int] = 2_048

    def __init__(self, points: NDArray[np.float32], options: NeighbourOptions, seed: int) -> None:
        self.points = points
        self.options: Any = options
        self.seed = seed

    @classmethod
    def build(cls, points: NDArray[np.float32], options: NeighbourOptions | None = None, seed: int = 0) -> Self:
        """Index points (N, D), both at least 1. Raises ValueError if the array is invalid, or `options` are another
        back-end's. `seed`: the same seed gives the same index, where the back-end is `seeded`.
        """
        options = cls.options_type() if options is None else options
        if not isinstance(options, cls.options_type):
            raise ValueError(f"the {cls.name} back-end takes {cls.options_type.__name__}, not {type(options).__name__}")
        search = cls(_own(points), options, seed)
        search._build()
        return search

    @classmethod
    def load(cls, folder: Path, points: NDArray[np.float32], *, known: bool = False) -> Self:
        """Read an index written by `save`. `points`: the points it was built from, which `save` does not write; not
        copied, so they may be memory-mapped. `known`: points and files are known to be intact, so their checksums are
        not compared.
        """
        folder = Path(folder)
        path = folder / DESCRIPTION_FILE
        description = load_json(path)
        try:
            name, settings, seed = description["name"], description["options"], description["seed"]
            points_fingerprint, index_sha256 = description["points"], description["index_sha256"]
            if not isinstance(name, str) or type(seed) is not int or not 0 <= seed <= MOST_SEED:
                raise ValueError("the name or the seed is invalid")
            options = cls.options_type(**settings) if name == cls.name else None
        except (KeyError, TypeError, ValueError, CairnError) as error:
            raise CairnError("{path} is damaged: make the vocabulary again.", path=path) from error
        if options is None:
            raise CairnError(
                "{folder} was written by the search back-end {name}, not {wanted}: load it by that.",
                folder=folder,
                name=repr(name[:40]),
                wanted=repr(cls.name),
            )
        search = cls(_read_only(np.ascontiguousarray(_checked(points))), options, seed)
        # Check before opening the index: with other points a kd-tree reads past their end.
        if not known and points_fingerprint != fingerprint({"points": search.points}, {}):
            raise CairnError(
                "The search index in {folder} was built from other points: make the vocabulary again.", folder=folder
            )
        if index_sha256 is None:
            search._build()
            return search
        file = next((path for name in (INDEX_FILE, EARLIER_INDEX_FILE) if (path := folder / name).is_file()), None)
        if file is None:
            raise CairnError("{path} is missing: make the vocabulary again.", path=folder / INDEX_FILE)
        contents = file.read_bytes()
        if not known and hashlib.sha256(contents).hexdigest() != index_sha256:
            raise CairnError("{path} is damaged: make the vocabulary again.", path=file)
        if file.name == EARLIER_INDEX_FILE:
            search._build()
            return search
        try:
            search._read(contents)
        except Exception as error:  # a crafted archive can fail in any way
            raise CairnError("{path} is no index of these points: make the vocabulary again.", path=file) from error
        return search

    def save(self, folder: Path) -> None:
        """Write the index, without the points, into an existing folder: `search.json` and `search.npz`."""
        folder = Path(folder)
        written = self._write(folder / INDEX_FILE)
        save_json(
            folder / DESCRIPTION_FILE,
            {
                "name": self.name,
                "options": dataclasses.asdict(self.options),
                "seed": self.seed,
                "points": fingerprint({"points": self.points}, {}),
                "index_sha256": hash_file(folder / INDEX_FILE) if written else None,
            },
        )

    def search(
        self, queries: NDArray[np.float32], k: int = 1, *, quick: bool = False
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Numbers and squared distances (M, k) of the k nearest points of each query, nearest first. Raises ValueError
        if the queries' dimension is not the points', or k < 1.

        `k`: at least 1. With fewer points, all are returned: K = min(k, N). `quick`: search less thoroughly, if the
        back-end can; slightly more queries miss their nearest point.
        """
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        count, dim = self.points.shape
        if queries.ndim != 2 or queries.shape[1] != dim:
            raise ValueError(f"queries must be (M, {dim}), not {queries.shape}")
        if k < 1:
            raise ValueError(f"k must be at least 1, not {k}")
        k = min(k, count)
        neighbours = np.empty((len(queries), k), np.int32)
        distances = np.empty((len(queries), k), np.float32)
        for start in range(0, len(queries), self.batch):
            rows = slice(start, start + self.batch)
            neighbours[rows], distances[rows] = self._search_batch(queries[rows], k, quick)
        return neighbours, distances

    def _search_batch(
        self, queries: NDArray[np.float32], k: int, quick: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        candidates = self._quick_candidates(queries, k) if quick else self._candidates(queries, k)
        short = (candidates[:, :k] < 0).any(axis=1)
        if short.any():
            # The search found fewer than k: rare, and cheap to repeat exactly.
            nearest = self._nearest(queries[short], k)
            candidates = np.pad(
                candidates, ((0, 0), (0, max(0, nearest.shape[1] - candidates.shape[1]))), constant_values=-1
            )
            candidates[short] = -1
            candidates[short, : nearest.shape[1]] = nearest
        distances = squared_distances(queries, self.points, np.maximum(candidates, 0))
        distances[candidates < 0] = np.inf
        if k == 1:
            order = distances.argmin(axis=1)[:, None]
        else:
            order = np.argsort(distances, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(candidates, order, axis=1), np.take_along_axis(distances, order, axis=1)

    def _nearest(self, queries: NDArray[np.float32], k: int) -> NDArray[np.int64]:
        """Candidates certain to include the k nearest, in ascending order; slightly more than k, as faiss rounds."""
        import faiss  # here: it takes a tenth of a second to load

        return np.sort(faiss.knn(queries, self.points, min(k + _ROUNDED, len(self.points)))[1], axis=1)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the points, the back-end's name, its options and the seed."""
        settings = {"name": self.name, "options": dataclasses.asdict(self.options), "seed": self.seed}
        return fingerprint({"points": self.points}, settings)

    @abc.abstractmethod
    def _build(self) -> None:
        """Index `self.points`."""

    @abc.abstractmethod
    def _candidates(self, queries: NDArray[np.float32], k: int) -> NDArray[np.int64]:
        """At least k candidates a query, (M, >= k) int64, in any order, padded by -1 at the end."""

    def _quick_candidates(self, queries: NDArray[np.float32], k: int) -> NDArray[np.int64]:
        """As `_candidates`, but faster if possible."""
        return self._candidates(queries, k)

    def _write(self, file: Path) -> bool:
        """Write the index and return True; False, without a file, if rebuilding it is quick."""
        return False

    def _read(self, contents: bytes) -> None:
        """Read an untrusted index written by `_write` for the same points; raises some exception for others."""
        self._build()


def recall_at_1(backend: NearestNeighbours, points: NDArray[np.float32], queries: NDArray[np.float32]) -> float:
    """Share of the queries whose nearest point, or one as near, a back-end finds; 1.0 without queries."""
    import faiss

    queries = np.ascontiguousarray(queries, dtype=np.float32)
    if len(queries) == 0:
        return 1.0
    points = np.ascontiguousarray(points, dtype=np.float32)
    nearest = faiss.knn(queries, points, 1)[1]
    neighbours, distances = backend.search(queries, 1)
    # Recomputed, since faiss.knn expands the square and so rounds.
    exact = squared_distances(queries, points, nearest)
    return float(np.mean((neighbours == nearest) | (distances <= exact)))


def _own(points: NDArray[np.float32]) -> NDArray[np.float32]:
    """A private, read-only float32 copy."""
    return _read_only(np.array(_checked(points), order="C", copy=True))


def _checked(points: NDArray[Any]) -> NDArray[np.float32]:
    """Points as float32; raises ValueError if there are no points."""
    points = np.asarray(points)
    if points.ndim != 2 or 0 in points.shape:
        raise ValueError(f"points must be (N, D) with N and D at least 1, not {points.shape}")
    return points.astype(np.float32, copy=False)


def _read_only(points: NDArray[np.float32]) -> NDArray[np.float32]:
    points = points.view()
    points.flags.writeable = False
    return points


def check_whole(options: NeighbourOptions, **least: int) -> None:
    """Raise CairnError if an option is not a whole number of 31 bits, or is below its minimum."""
    for name, smallest in least.items():
        value = getattr(options, name)
        if type(value) is not int or not smallest <= value < 1 << 31:
            raise CairnError(f"{name} must be a whole number from {smallest} on.")
