"""Pairs of photos and their features, for structure from motion and other programs, for `import cairn`."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, overload

import numpy as np
from numpy.typing import NDArray

from index.docstrings import completed, documented
from index.extras import require_h5py
from index.progress import Progress
from retrieval.catalogue.schema import ImageRow
from retrieval.collection.collection import Collection, CollectionChanged
from retrieval.features.kept import KeptFeatures
from retrieval.foreign.exporting import write_colmap, write_hloc, write_pairs
from retrieval.groups.pairs import CHOOSE, MATCH, PairMatcher
from retrieval.library.paragraphs import SHARED
from retrieval.library.progress import Telling, telling

TITLES = {CHOOSE: "Choosing (photos)", MATCH: "Matching (pairs)"}
"""Titles of the steps of the progress."""


@documented
@dataclass(frozen=True, eq=False)
class PhotoFeatures:
    """The stored features of a photo of a collection.

    Their order is constant until the collection is retrained; `Match.indices` refers to it. Features of another program
    are in the order of its file, those of Cairn ordered by word.
    """

    name: Annotated[str, "Of the photo."]
    width: Annotated[int, "Pixels of the upright original."]
    height: Annotated[int, "Pixels of the upright original."]
    keypoints: Annotated[
        NDArray[np.float32],
        "(N, 2)",
        "Places, pixels of the upright original, the centre of the top-left one at (0, 0). Those of "
        "another program are exact if the photo is stored upright and has the size of the described "
        "image; those of Cairn are stored to half of 1/2047 of the longer side.",
    ]
    regions: Annotated[
        NDArray[np.float32],
        "(N, 5)",
        "Ellipses: x, y, a, b, c with a(u-x)² + 2b(u-x)(v-y) + c(v-y)² = 1; circles if only places are known.",
    ]
    words: Annotated[NDArray[np.int32], "(N,)", "Visual words."]
    descriptors: Annotated[
        NDArray[np.float16] | None,
        "(N, D)",
        "In the form used for comparison; None if the collection does not store them (``keep_descriptors``).",
    ]
    rows: Annotated[
        NDArray[np.int64] | None,
        "(N,)",
        "Rows in the file of the other program, if it made the features: 0, 1, 2 ..., unless only the best were taken.",
    ]

    def __len__(self) -> int:
        return len(self.keypoints)

    def __repr__(self) -> str:
        return f"<{len(self)} features of {self.name!r}>"


def make_features(row: ImageRow, kept: KeptFeatures) -> PhotoFeatures:
    """Return the features of a photo of a collection."""
    width, height = row.width or 1, row.height or 1
    return PhotoFeatures(
        row.name or "",
        width,
        height,
        kept.centres,
        kept.ellipses(max(width, height)),
        kept.words,
        kept.descriptors,
        kept.rows,
    )


@completed(SHARED)
class Pairs(Sequence[tuple[str, str]]):
    """Pairs of photos that may show the same: a sequence of two names each, by the numbers of the photos.

    ``pandas.DataFrame(pairs)`` has a row for each. `save` writes them for hloc; `save_h5` and `save_colmap` also match
    the photos: by descriptors if the collection stores them (``keep_descriptors``), or else by words and signatures,
    which find only some of the matches.
    """

    def __init__(
        self, opened: Callable[[], Collection], lock: AbstractContextManager[object], numbers: Sequence[tuple[int, int]]
    ) -> None:
        """Take a function that returns the open collection, its lock, and the numbers of the photos."""
        self._opened, self._lock = opened, lock
        self._numbers = list(numbers)
        self._pairs = PairMatcher(opened(), self._numbers).names()

    def __repr__(self) -> str:
        return f"<{len(self)} pair{'' if len(self) == 1 else 's'} of photos>"

    def __len__(self) -> int:
        return len(self._pairs)

    @overload
    def __getitem__(self, place: int) -> tuple[str, str]: ...
    @overload
    def __getitem__(self, place: slice) -> list[tuple[str, str]]: ...
    def __getitem__(self, place: int | slice) -> tuple[str, str] | list[tuple[str, str]]:
        return self._pairs[place]

    def save(self, path: str | Path) -> Path:
        """Write the pairs, two names a line, as hloc and COLMAP's lists of matches have them.

        Parameters
        ----------
        path : path-like
            Output file; replaced if it exists.

        Raises
        ------
        CairnError
            A name has a space, or the file cannot be written.
        """
        write_pairs(Path(path), self._pairs)
        return Path(path)

    def save_h5(self, path: str | Path, *, progress: Telling = None) -> Path:
        """Match the pairs, and write features and matches in hloc's layout: one file, which hloc accepts for both.

        Keypoints are in pixels of the stored photos, ignoring the orientation in EXIF. Entries of ``matches0`` that
        agree with the geometry of the two views have the score 1, others 0.5.

        Parameters
        ----------
        path : path-like
            New file.
        {progress}

        Raises
        ------
        CairnError
            The file exists or cannot be written, or h5py is not installed.
        """
        require_h5py()
        with self._matching(progress) as (matcher, tell):
            write_hloc(Path(path), matcher.photos(), matcher.matched(tell))
        return Path(path)

    def save_colmap(self, path: str | Path, *, progress: Telling = None) -> Path:
        """Match the pairs, and write a database that COLMAP's mapper can begin with.

        It has a camera for each photo (simple radial, with a focal length of 1.2 times the longer side), keypoints,
        descriptors if they have 128 entries, matches, and two-view geometries with 15 inliers or more: fundamental
        matrices by MAGSAC, and homographies if a plane explains 80% of the inliers.

        Parameters
        ----------
        path : path-like
            New file.
        {progress}

        Raises
        ------
        CairnError
            The file exists or cannot be written.
        """
        with self._matching(progress) as (matcher, tell):
            write_colmap(Path(path), matcher.photos(), matcher.matched(tell))
        return Path(path)

    @contextmanager
    def _matching(self, progress: Telling) -> Iterator[tuple[PairMatcher, Progress]]:
        """Yield a matcher of the pairs, and the callable for progress."""
        with self._lock, telling(progress, TITLES) as tell:
            opened = self._opened()
            try:
                yield PairMatcher(opened, self._numbers), tell
            except KeyError:  # a photo was removed
                raise CollectionChanged(
                    f"{opened.folder} has changed since the pairs were chosen: choose them again."
                ) from None
