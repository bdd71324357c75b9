"""Common parts of the back-ends of nearest-neighbour search with inverted lists."""

import io
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.archive import Archive
from index.errors import CairnError

# Settings may come from a file: more than these would only take time and memory.
MOST_LIST_FACTOR = 16


def check_list_factor(factor: object) -> None:
    """Raise CairnError if `number_of_lists` does not take a factor."""
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor <= MOST_LIST_FACTOR:
        raise CairnError(f"list_factor must be a number above 0 and at most {MOST_LIST_FACTOR}.")


def number_of_lists(points: int, factor: float) -> int:
    """Number of inverted lists: the square root of the number of points, times a factor."""
    return int(min(points, max(1, round(factor * points**0.5))))


def read_arrays(contents: bytes, wanted: Mapping[str, tuple[str, tuple[int | None, ...]]]) -> dict[str, NDArray[Any]]:
    """Read arrays of `save_arrays`, of these types and shapes (None: any); raises some exception if they differ."""
    with zipfile.ZipFile(io.BytesIO(contents)) as file:
        archive = Archive(file)
        # Uncompressed data is no longer than the file.
        if set(archive.names) != {f"{name}.npy" for name in wanted} or sum(
            entry.file_size for entry in file.infolist()
        ) > len(contents):
            raise ValueError("it holds other arrays")
        arrays = {name: np.ascontiguousarray(archive.array(name)) for name in wanted}
    for name, array in arrays.items():
        dtype, shape = wanted[name]
        fits = array.ndim == len(shape) and all(
            length in (None, there) for length, there in zip(shape, array.shape, strict=True)
        )
        is_number = array.dtype.kind != "f" or bool(np.isfinite(array).all())
        if array.dtype.str != dtype or not fits or not is_number:
            raise ValueError(f"its {name} are of another kind or size")
    return arrays


@contextmanager
def single_thread() -> Iterator[None]:
    """Run faiss in one thread for a while: on a busy machine, its many tiny parallel steps mostly wait."""
    import faiss  # here: it takes a tenth of a second to load

    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)


def set_training(clustering: Any, seed: int) -> None:
    """Configure how faiss learns a codebook."""
    clustering.seed = seed % 2**31
    clustering.niter = 8
    # Few points are enough for small codebooks; faiss would warn about it on standard error.
    clustering.min_points_per_centroid = 1
