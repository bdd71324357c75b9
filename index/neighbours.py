"""Approximate nearest-neighbour search: one small contract, three back-ends that can be exchanged."""

import abc
import dataclasses
import hashlib
import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import cv2
import faiss
import numpy as np

from index.arrays import fingerprint, hash_file, load_json, save_json
from index.errors import CairnError
from index.extras import install_command
from index.faiss_file import check_listed, check_scanned

DESCRIPTION_FILE = "search.json"
INDEX_FILE = "search.index"
# Queries taken at a time: the work arrays of a batch stay in the processor's cache.
BATCH = 16_384
# A 4-bit code is one of 16, learnt from as many points at least.
FEWEST_CODED = 16
# Settings may come from a file: more than these would only take time and memory.
MOST_LIST_FACTOR, MOST_TREES = 16, 64
MOST_SEED = 2**63 - 1
# The stubs of both leave out some of what their C++ sides add.
_faiss: Any = faiss
_cv2: Any = cv2


@dataclass(frozen=True)
class SearchOptions:
    """What every back-end has: nothing. Each adds its own."""


@dataclass(frozen=True)
class FaissOptions(SearchOptions):
    """Settings of the `faiss` back-end."""

    exact_below: int = 2_000  # with fewer points than this, all distances are computed
    lists_from: int = 30_000  # from so many points on, only some inverted lists are scanned, not all codes
    list_factor: float = 1.0  # inverted lists = list_factor * sqrt(points)
    probes: int = 32  # inverted lists scanned for a query
    code_dims: int = 2  # dimensions a 4-bit code stands for: 1 to 4; fewer is slower and more accurate
    candidates: int = 16  # best by code, whose exact distances are then computed, beside the k asked for

    def __post_init__(self) -> None:
        _check_whole(self, exact_below=0, lists_from=0, probes=1, code_dims=1, candidates=1)
        factor = self.list_factor
        if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor <= MOST_LIST_FACTOR:
            raise CairnError(f"list_factor must be a number above 0 and at most {MOST_LIST_FACTOR}.")


@dataclass(frozen=True)
class FlannOptions(SearchOptions):
    """Settings of the `flann` and `pyflann` back-ends."""

    trees: int = 8  # randomised kd-trees (Philbin 2007)
    checks: int = 1_024  # leaves visited for a query, over all trees

    def __post_init__(self) -> None:
        _check_whole(self, trees=1, checks=1)
        if self.trees > MOST_TREES:
            raise CairnError(f"trees must be at most {MOST_TREES}.")


def _check_whole(options: SearchOptions, **least: int) -> None:
    """Raise CairnError where an option is no whole number of 31 bits, or less than it may be."""
    for name, smallest in least.items():
        value = getattr(options, name)
        if type(value) is not int or not smallest <= value < 1 << 31:
            raise CairnError(f"{name} must be a whole number from {smallest} on.")


class NearestNeighbours(abc.ABC):
    """Search for the nearest of a fixed set of points, by squared Euclidean distance.

    Made by `build` or `load`, never changed afterwards. It keeps its own copy of the points, so what a caller does to
    the array later makes no difference. Results may be approximate, distances never are: what is returned beside a
    neighbour is its exact squared distance, and neighbours come nearest first.

    The number of threads is the caller's business (`faiss.omp_set_num_threads`), and never changes a result.

    Attributes
    ----------
    name : str
        What the registry calls the back-end.
    options : SearchOptions
    seed : int
    points : (N, D) float32 ndarray, read-only
    """

    name: ClassVar[str]
    options_type: ClassVar[type[SearchOptions]]
    # Settings that trade accuracy for speed, for the passes of k-means that later passes put right.
    draft: ClassVar[SearchOptions]
    # Whether the same seed gives the same index.
    seeded: ClassVar[bool] = True

    def __init__(self, points: np.ndarray, options: SearchOptions, seed: int) -> None:
        self.points = points
        self.options: Any = options
        self.seed = seed

    @classmethod
    def build(cls, points: np.ndarray, options: SearchOptions | None = None, seed: int = 0) -> Self:
        """Index points.

        Parameters
        ----------
        points : (N, D) float32 ndarray
            N and D at least 1; copied.
        options : SearchOptions, optional
            Of the back-end's own `options_type`; its defaults if left out.
        seed : int
            The same seed gives the same index, where the back-end is `seeded`.

        Raises
        ------
        ValueError
            `points` is not such an array, or `options` belong to another back-end.
        """
        options = cls.options_type() if options is None else options
        if not isinstance(options, cls.options_type):
            raise ValueError(f"the {cls.name} back-end takes {cls.options_type.__name__}, not {type(options).__name__}")
        search = cls(_own(points), options, seed)
        search._build()
        return search

    @classmethod
    def load(cls, folder: Path, points: np.ndarray) -> Self:
        """Read back what `save` wrote.

        Parameters
        ----------
        folder : Path
        points : (N, D) float32 ndarray
            The points it was built from, which `save` does not write.

        Raises
        ------
        CairnError
            A file is missing or damaged, another back-end wrote it, or it was built from other points.
        """
        folder = Path(folder)
        path = folder / DESCRIPTION_FILE
        description = load_json(path)
        try:
            name, settings, seed = description["name"], description["options"], description["seed"]
            points_fingerprint, index_sha256 = description["points"], description["index_sha256"]
            if not isinstance(name, str) or type(seed) is not int or not 0 <= seed <= MOST_SEED:
                raise ValueError("the name or the seed is none")
            options = cls.options_type(**settings) if name == cls.name else None
        except (KeyError, TypeError, ValueError, CairnError) as error:
            raise CairnError(f"{path} is damaged: make the vocabulary again.") from error
        if options is None:
            raise CairnError(
                f"{folder} was written by the search back-end {name[:40]!r}, not {cls.name!r}: load it by that."
            )
        search = cls(_own(points), options, seed)
        # Before the index is opened: with other points a kd-tree reads past their end.
        if points_fingerprint != fingerprint({"points": search.points}, {}):
            raise CairnError(f"The search index in {folder} was built from other points: make the vocabulary again.")
        if index_sha256 is None:
            search._build()
            return search
        file = folder / INDEX_FILE
        if not file.is_file():
            raise CairnError(f"{file} is missing: make the vocabulary again.")
        contents = file.read_bytes()
        if hashlib.sha256(contents).hexdigest() != index_sha256:
            raise CairnError(f"{file} is damaged: make the vocabulary again.")
        try:
            search._read(contents)
        except ValueError as error:
            raise CairnError(f"{file} is no index of these points ({error}): make the vocabulary again.") from error
        return search

    def save(self, folder: Path) -> None:
        """Write the index, without the points, into an existing folder: `search.json` and `search.index`.

        Parameters
        ----------
        folder : Path
        """
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

    def search(self, queries: np.ndarray, k: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Find the k nearest points of each query.

        Parameters
        ----------
        queries : (M, D) float32 ndarray
            M may be 0.
        k : int
            At least 1. With fewer points than that, all of them are returned: K = min(k, N).

        Returns
        -------
        neighbours : (M, K) int32 ndarray
            Row numbers of points, nearest first.
        distances : (M, K) float32 ndarray
            Their squared Euclidean distances.

        Raises
        ------
        ValueError
            The queries' dimension is not the points', or k is less than 1.
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
        for start in range(0, len(queries), BATCH):
            rows = slice(start, start + BATCH)
            neighbours[rows], distances[rows] = self._search_batch(queries[rows], k)
        return neighbours, distances

    def _search_batch(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        found = self._candidates(queries, k)
        short = (found[:, :k] < 0).any(axis=1)
        if short.any():
            # A search that gave up before it had found k: rare, and cheap to answer exactly.
            found = found.copy()
            found[short] = -1
            found[short, :k] = faiss.knn(queries[short], self.points, k)[1]
        distances = squared_distances(queries, self.points, np.maximum(found, 0))
        distances[found < 0] = np.inf
        if k == 1:
            order = distances.argmin(axis=1)[:, None]
        else:
            order = np.argsort(distances, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(found, order, axis=1), np.take_along_axis(distances, order, axis=1)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the points, the back-end's name, its options and the seed."""
        settings = {"name": self.name, "options": dataclasses.asdict(self.options), "seed": self.seed}
        return fingerprint({"points": self.points}, settings)

    @abc.abstractmethod
    def _build(self) -> None:
        """Index `self.points`."""

    @abc.abstractmethod
    def _candidates(self, queries: np.ndarray, k: int) -> np.ndarray:
        """At least k candidates a query, (M, >= k) int64, -1 where none was found, best first."""

    @abc.abstractmethod
    def _write(self, file: Path) -> bool:
        """Write the index; False where there is nothing that building again would not give at once."""

    @abc.abstractmethod
    def _read(self, contents: bytes) -> None:
        """Take over what `_write` wrote for the same points; ValueError where it is something else.

        The contents are not trusted: whoever wrote them could have made the checksum too.
        """


class FaissSearch(NearestNeighbours):
    """Product-quantised codes scanned in registers, the best re-ranked by exact distance (André 2015; Douze 2024).

    Three sizes: few points are searched exactly; up to some ten thousand all codes are scanned; beyond that the points
    are split into inverted lists and only those near the query are scanned.
    """

    name = "faiss"
    options_type = FaissOptions
    draft = FaissOptions(lists_from=0, probes=8, code_dims=4, candidates=6)

    def _build(self) -> None:
        dim = self.points.shape[1]
        self._index: Any = None
        if self._is_exact:
            return
        codes, lists = self._codes, self._lists
        if lists:
            index = _faiss.index_factory(dim, f"IVF{lists},PQ{codes}x4fs")
            index.nprobe = min(self.options.probes, lists)
            _set_training(index.cp, self.seed)
        else:
            index = _faiss.index_factory(dim, f"PQ{codes}x4fs")
        _set_training(index.pq.cp, self.seed)
        with _one_thread():
            index.train(self.points)
        index.add(self.points)
        self._index = index

    def _candidates(self, queries: np.ndarray, k: int) -> np.ndarray:
        if self._index is None:
            return faiss.knn(queries, self.points, k)[1]
        wanted = min(len(self.points), self.options.candidates + k + k // 4 - 1)
        return self._index.search(queries, wanted)[1]

    def _write(self, file: Path) -> bool:
        if self._index is None:
            return False
        # Not by faiss, which does not notice that a full disk has not taken all of it.
        file.write_bytes(faiss.serialize_index(self._index).tobytes())
        return True

    def _read(self, contents: bytes) -> None:
        if self._is_exact:
            raise ValueError("so few points need none")
        array = np.frombuffer(contents, np.uint8)
        count, dim = self.points.shape
        if self._lists:
            check_listed(array, count, dim, self._codes, self._lists, min(self.options.probes, self._lists))
        else:
            check_scanned(array, count, dim, self._codes)
        self._index = faiss.deserialize_index(array)

    @property
    def _is_exact(self) -> bool:
        """Whether all distances are computed."""
        return len(self.points) < max(self.options.exact_below, FEWEST_CODED)

    @property
    def _codes(self) -> int:
        """4-bit codes of a point."""
        dim, dims = self.points.shape[1], self.options.code_dims
        return dim // dims if dim % dims == 0 else dim

    @property
    def _lists(self) -> int:
        """Inverted lists; 0: there are none."""
        count = len(self.points)
        if count < self.options.lists_from:
            return 0
        return min(count, max(1, round(self.options.list_factor * count**0.5)))


class FlannSearch(NearestNeighbours):
    """Randomised kd-trees (Muja & Lowe 2009), the search of Philbin 2007, by OpenCV's binding."""

    name = "flann"
    options_type = FlannOptions
    draft = FlannOptions(checks=256)

    def _build(self) -> None:
        # OpenCV has one generator a thread, and its trees draw from it.
        cv2.setRNGSeed(self.seed % 2**31)
        self._index = _cv2.flann_Index(self.points, {"algorithm": 1, "trees": self.options.trees})

    def _candidates(self, queries: np.ndarray, k: int) -> np.ndarray:
        if len(queries) == 0:
            return np.empty((0, k), np.int64)
        found, _ = self._index.knnSearch(queries, k, params={"checks": self.options.checks})
        return found.astype(np.int64)

    def _write(self, file: Path) -> bool:
        # FLANN believes what a file of its own says, pointers and all; building again takes 1.3 s for 100,000 points.
        return False

    def _read(self, contents: bytes) -> None:
        self._build()


class PyflannSearch(NearestNeighbours):
    """Randomised kd-trees by pyflann, the binding of the original FLANN; an optional extra.

    The library ignores the seed it is given, so two builds differ, and so do two loads, which build again; it works on
    the caller's array without holding on to it.
    """

    name = "pyflann"
    options_type = FlannOptions
    draft = FlannOptions(checks=256)
    seeded = False

    def _new(self) -> Any:
        import pyflann_ibeis

        return pyflann_ibeis.FLANN()

    def _build(self) -> None:
        self._index = self._new()
        self._index.build_index(
            self.points, algorithm="kdtree", trees=self.options.trees, random_seed=self.seed % 2**31
        )

    def _candidates(self, queries: np.ndarray, k: int) -> np.ndarray:
        if len(queries) == 0:
            return np.empty((0, k), np.int64)
        found, _ = self._index.nn_index(queries, k, checks=self.options.checks)
        return found.reshape(len(queries), k).astype(np.int64)

    def _write(self, file: Path) -> bool:
        return False  # as `FlannSearch`

    def _read(self, contents: bytes) -> None:
        self._build()


BACKENDS: dict[str, type[NearestNeighbours]] = {
    backend.name: backend for backend in (FaissSearch, FlannSearch, PyflannSearch)
}


def search_backend(name: str) -> type[NearestNeighbours]:
    """The search back-end of a name.

    Raises
    ------
    CairnError
        There is none of that name, or what it needs is not installed.
    """
    if name not in BACKENDS:
        raise CairnError(f"There is no search back-end {name!r}: choose one of {', '.join(sorted(BACKENDS))}.")
    if name == "pyflann" and importlib.util.find_spec("pyflann_ibeis") is None:
        raise CairnError(f"The search back-end 'pyflann' is not installed: {install_command('pyflann')}.")
    return BACKENDS[name]


def squared_distances(queries: np.ndarray, points: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Squared distances from each query to points of its own choice.

    Parameters
    ----------
    queries : (M, D) float32 ndarray
    points : (N, D) float32 ndarray
    numbers : (M, K) integer ndarray
        Rows of `points`, each in [0, N).

    Returns
    -------
    (M, K) float32 ndarray
    """
    queries, points = np.ascontiguousarray(queries, np.float32), np.ascontiguousarray(points, np.float32)
    numbers = np.ascontiguousarray(numbers, np.int64)
    distances = np.empty(numbers.shape, np.float32)
    pointers = (_faiss.swig_ptr(array) for array in (distances, queries, points, numbers))
    _faiss.fvec_L2sqr_by_idx(*pointers, queries.shape[1], len(queries), numbers.shape[1])
    return distances


def recall_at_1(backend: NearestNeighbours, points: np.ndarray, queries: np.ndarray) -> float:
    """Share of the queries whose nearest point a back-end finds.

    A point at the same distance as the nearest counts: which of two equals is returned does not matter.

    Parameters
    ----------
    backend : NearestNeighbours
        Built from `points`.
    points : (N, D) float32 ndarray
    queries : (M, D) float32 ndarray

    Returns
    -------
    float
        In [0, 1]; 1.0 where there are no queries.
    """
    queries = np.ascontiguousarray(queries, dtype=np.float32)
    if len(queries) == 0:
        return 1.0
    points = np.ascontiguousarray(points, dtype=np.float32)
    nearest = faiss.knn(queries, points, 1)[1]
    found, distances = backend.search(queries, 1)
    # Measured again, since faiss.knn expands the square and so rounds.
    exact = squared_distances(queries, points, nearest)
    return float(np.mean((found == nearest) | (distances <= exact)))


def _own(points: np.ndarray) -> np.ndarray:
    """A private, read-only float32 copy."""
    points = np.asarray(points)
    if points.ndim != 2 or 0 in points.shape:
        raise ValueError(f"points must be (N, D) with N and D at least 1, not {points.shape}")
    points = np.array(points, dtype=np.float32, order="C", copy=True)
    points.flags.writeable = False
    return points


@contextmanager
def _one_thread() -> Iterator[None]:
    """Run faiss in one thread for a while.

    Its small codebooks are learnt in so many tiny parallel steps that waiting for each other, on a busy machine, takes
    threads a hundred times longer than the work does.
    """
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)


def _set_training(clustering: Any, seed: int) -> None:
    clustering.seed = seed % 2**31
    clustering.niter = 8
    # The small codebooks are good from few points, and a warning on standard error would help nobody.
    clustering.min_points_per_centroid = 1
