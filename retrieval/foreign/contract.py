"""What every file of features offers: the features of a photo, found by the photo's name."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
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


_NEEDED = "its collection is of features of another program: give those of this photo with --features"


class Unfit(CairnError):
    """Features of another kind or dimension than those of the collection: no photo more is taken in."""


class FeaturesNeeded(CairnError):
    """Nothing has the features of a photo that is not in the collection."""

    def __init__(self, reason: str = _NEEDED) -> None:
        super().__init__(reason)


@dataclass(frozen=True)
class Entry:
    """The features of one photo as a file has them.

    Attributes
    ----------
    geometry : str
        One of `GEOMETRIES`.
    centres : ndarray, shape (N, 2), float64
        Pixels, the centre of the top-left pixel at (0, 0).
    linear : ndarray, shape (N, 2, 2), float64, or None
        Maps from the unit circle to the regions; None if only places are known.
    descriptors : ndarray, shape (N, D)
        As they are in the file.
    scores : ndarray, shape (N,), or None
        The higher, the better.
    size : (int, int) or None
        Width and height of the picture whose pixels those are.
    is_binary : bool
        Whether the file says that descriptors are packed bits.
    is_as_stored : bool
        Whether that picture is the photo as it is stored, and not turned as its EXIF says, unless its size tells that
        it was turned.
    """

    geometry: str
    centres: NDArray[np.float64]
    linear: NDArray[np.float64] | None
    descriptors: NDArray[Any]
    scores: NDArray[np.float64] | None = None
    size: tuple[int, int] | None = None
    is_binary: bool = False
    is_as_stored: bool = False

    def __len__(self) -> int:
        return len(self.centres)


class FeatureSource(Protocol):
    """Features of photos. It is sent to other processes, so that it opens its files when it is asked."""

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
            What it may be called, the most exact first: see `names_of`.

        Raises
        ------
        CairnError
            Features are missing or damaged: the reason alone, such as "there are no features of it in F".
        """


def names_of(photo: Path, roots: Sequence[Path]) -> Iterator[str]:
    """Return the names that a photo may have in a file of features: the longest first.

    A name is the end of its path, with at least as many folders as it has within the nearest folder that was indexed:
    of two photos of the same file name, in two folders, neither takes the other's features.

    Parameters
    ----------
    photo : Path
        Its file.
    roots : sequence of Path
        Folders that are indexed, without links in their paths. None of them: the file's name alone may be its name.
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
    r"""Return the name under which a file of features has a photo that it has under none of its exact names.

    It may be written in other case, with letters composed otherwise (a Mac writes é as e and an accent) or with
    backslashes between folders, as tables of metadata may: see `index.text.loose_name`.

    Parameters
    ----------
    source : Path
        The file or folder.
    names : sequence of str
        What the photo may be called: see `names_of`.
    photo : Path
        Its file.
    stored : callable
        Gives the names that the file or folder has. Called once for all photos of an unchanged file.
    ending : str
        Of photos, where names have none.

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
    """Whether another photo beside this one has exactly the name: on Linux a.jpg and A.jpg are two."""
    parts = Path(name.replace("\\", "/")).parts
    other = photo.absolute().parents[len(parts) - 1].joinpath(*parts)
    return other.exists() and not other.samefile(photo)


def missing(path: Path) -> CairnError:
    """Say that a photo's features are not there."""
    return CairnError(f"there are no features of it in {path}")
