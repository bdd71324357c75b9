"""The back-ends of nearest-neighbour search, by name."""

import importlib.util
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from index.errors import CairnError
from index.extras import install_command

if TYPE_CHECKING:
    from index.neighbours import NearestNeighbours

BACKENDS = {
    "ivf": "index.scanning.ivf_search:IvfSearch",
    "faiss": "index.faiss_search:FaissSearch",
    "flann": "index.flann_search:FlannSearch",
    "pyflann": "index.flann_search:PyflannSearch",
}
"""Every back-end by name as module:object, imported on demand."""


def search_backend(name: str) -> "type[NearestNeighbours]":
    """The search back-end of a name."""
    if name not in BACKENDS:
        raise CairnError(
            "There is no search back-end {name}: choose one of {known}.",
            name=repr(name),
            known=", ".join(sorted(BACKENDS)),
        )
    if name == "pyflann" and importlib.util.find_spec("pyflann_ibeis") is None:
        raise CairnError(
            "The search back-end {name} is not installed: {command}.",
            name=repr(name),
            command=install_command("pyflann"),
        )
    backend: type[NearestNeighbours] = resolve_name(BACKENDS[name])
    return backend
