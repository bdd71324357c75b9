"""The back-ends of nearest-neighbour search, by name."""

import importlib.util

from index.errors import CairnError
from index.extras import install_command
from index.faiss_search import FaissSearch
from index.flann_search import FlannSearch, PyflannSearch
from index.neighbours import NearestNeighbours

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
