"""The contract of files of features: they return the features of a photo by its name."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from index.docstrings import documented
from index.errors import CairnError
from index.messages import said
from index.text import loose_name, shown
from retrieval.regions.detectors.registry import FOREIGN

POINTS, SCALES, ORIENTED, ELLIPSES, AFFINE = (
    FOREIGN + kind for kind in ("points", "scales", "oriented", "ellipses", "affine")
)
GEOMETRIES = {
    POINTS: "places alone",
    SCALES: "places and scales",
    ORIENTED: "places, scales and angles",
    ELLIPSES: "ellipses",
    AFFINE: "affine frames",
}
"""What is known of a keypoint, as the option `detector` of a collection names it, and as messages say it."""

TURNED = (ORIENTED, AFFINE)
"""Of these the turn in the plane is known, too."""


_NEEDED = said("its collection is of features of another program: give those of this photo with --features")


class Unfit(CairnError):
    """Features of another kind or dimension than those of the collection: the run stops."""


class FeaturesNeeded(CairnError):
    """Nothing has the features of a photo that is not in the collection."""

    def __init__(self, reason: str = _NEEDED) -> None:
        super().__init__(reason)


@documented
@dataclass(frozen=True)
class Entry:
    """The features of one photo as a file has them."""

    geometry: Annotated[str, "One of `GEOMETRIES`."]
    centres: Annotated[NDArray[np.float64], "(N, 2)", "Pixels, the centre of the top-left pixel at (0, 0)."]
    linear: Annotated[
        NDArray[np.float64] | None,
        "(N, 2, 2)",
        "Maps from the unit circle to the regions; None if only places are known.",
    ]
    descriptors: Annotated[NDArray[Any], "(N, D)", "As in the file."]
    scores: Annotated[NDArray[np.float64] | None, "(N,)", "The higher, the better."] = None
    size: Annotated[tuple[int, int] | None, "Width and height of the picture that coordinates refer to."] = None
    is_binary: Annotated[bool, "Whether descriptors are packed bits, by the file."] = False
    is_as_stored: Annotated[
        bool,
        "Whether that picture is the photo as stored, not rotated by its EXIF, unless its size shows that it was "
        "rotated.",
    ] = False

    def __len__(self) -> int:
        return len(self.centres)


class FeatureSource(Protocol):
    """Features of photos. It is sent to other processes, so it opens its files on demand."""

    @property
    def path(self) -> Path:
        """The file or folder."""

    def entry(self, photo: Path, names: Sequence[str]) -> Entry:
        """Read the features of a photo.

        Parameters
        ----------
        photo : Path
            Its file.
        names : sequence of str
            Its possible names, the most exact first: see `names_of`.

        Raises
        ------
        CairnError
            Features are missing or damaged: only the reason, such as "there are no features of it in F".
        """


def names_of(photo: Path, roots: Sequence[Path]) -> Iterator[str]:
    """Return the names that a photo may have in a file of features: the longest first.

    A name is the end of its path, with at least as many folders as it has within the nearest indexed folder:
    of two photos of the same file name, in two folders, neither takes the other's features.

    Parameters
    ----------
    photo : Path
        Its file.
    roots : sequence of Path
        Indexed folders, without links in their paths. If empty, the file name alone may be its name.
    """
    path = photo.absolute()
    if not any(root in path.parents for root in roots):
        path = photo.parent.resolve() / photo.name  # the photo may be a link to one of another name
    within = [len(path.parts) - len(root.parts) for root in roots if root in path.parents]
    parts = path.parts[1:]
    for count in range(len(parts), min(within, default=1) - 1, -1):
        yield "/".join(parts[-count:])


def stored_name(
    source: Path, names: Iterable[str], photo: Path, stored: Callable[[Path], Iterable[str]], ending: str = ""
) -> str | None:
    r"""Return a similar name under which a file of features has a photo, if it has none of its exact names.

    It may be written in other case, with letters composed otherwise (a Mac writes é as e and an accent) or with
    backslashes between folders, as tables of metadata may: see `index.text.loose_name`.

    Parameters
    ----------
    source : Path
        The file or folder.
    names : sequence of str
        Possible names of the photo: see `names_of`.
    photo : Path
        Its file.
    stored : callable
        Returns the names in the file or folder. Called once for all photos of an unchanged file.
    ending : str
        Extension of photos, if names have none.

    Raises
    ------
    CairnError
        It may be either of two.
    """
    known = _loose_names(source, source.stat().st_mtime_ns, stored)
    for name in names:
        found = known.get(loose_name(name), ())
        if len(found) > 1:
            raise CairnError(f"{shown(found[0])} and {shown(found[1])} in {source} may both be its features")
        if found and not _is_anothers(found[0] + ending, photo):
            return found[0]
    return None


@lru_cache(maxsize=2)
def _loose_names(source: Path, changed: int, stored: Callable[[Path], Iterable[str]]) -> dict[str, list[str]]:
    known: dict[str, list[str]] = {}
    for name in stored(source):
        known.setdefault(loose_name(name), []).append(name)
    return known


def _is_anothers(name: str, photo: Path) -> bool:
    """Whether another photo next to this one has exactly the name: on Linux a.jpg and A.jpg differ."""
    parts = Path(name.replace("\\", "/")).parts
    other = photo.absolute().parents[len(parts) - 1].joinpath(*parts)
    return other.exists() and not other.samefile(photo)


def missing(path: Path) -> CairnError:
    """The error for missing features of a photo."""
    return CairnError(f"there are no features of it in {path}")
