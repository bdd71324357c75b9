"""Assembly of the results of image pairs into one file: select, number and cut patches."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.attributes import some_of
from index.errors import CairnError
from index.parallel import Workers, run
from index.progress import Progress
from learning.mining.chunks import Chunk
from learning.mining.image_pairs import MinedPair, MinedPhoto
from learning.mining.matches import PATCH, ArrayWriter, write_mined
from retrieval.descriptors.contract import Both
from retrieval.features.extraction import Extractor
from retrieval.features.options import FeatureOptions
from retrieval.features.staging import Staging
from retrieval.photos.decoding import read_photo
from retrieval.photos.options import ImageOptions

_BYTES = PATCH * PATCH
_ROWS = 4096  # patches at a time


@dataclass(frozen=True)
class KeptPair:
    """A kept image pair, without its sets."""

    first: int  # indices of the photos in the source
    second: int
    homography: NDArray[np.float64]
    inliers: int
    features: int  # reference features
    positives: int
    ambiguous: int


class Assembly:
    """Layout of the file, in the order of `photos`, ascending; the sets of only one image pair are in memory."""

    def __init__(
        self, chunks: list[Chunk], photos: dict[int, MinedPhoto], pairs: list[tuple[int, int]], extent: float
    ) -> None:
        self._chunks = chunks
        self._pairs = pairs
        self._photos = photos
        self._extent = extent
        self.kept: list[KeptPair] = []
        # Every feature of a second photo is in P(x) or N(x); of a first one only those with a positive are used.
        self._used: dict[int, NDArray[np.bool_]] = {}
        for mined in self._mined():
            first, second = pairs[mined.number]
            for photo in (first, second):
                if photo not in self._used:
                    self._used[photo] = np.zeros(photos[photo].staged.features, bool)
            references = mined.references
            self._used[first][references] = True
            self._used[second][:] = True
            sizes = len(references), len(mined.positives), len(mined.ambiguous)
            self.kept.append(KeptPair(first, second, mined.homography, mined.inliers, *sizes))
        self.photos = sorted(self._used)
        self._place = {photo: place for place, photo in enumerate(self.photos)}
        self._starts = np.cumsum([0, *(np.count_nonzero(self._used[photo]) for photo in self.photos)])
        self.patches = int(self._starts[-1])
        self.features = sum(pair.features for pair in self.kept)
        self.positives = sum(pair.positives for pair in self.kept)
        self.ambiguous = sum(pair.ambiguous for pair in self.kept)
        there = sum(pair.features * len(self._used[pair.second]) for pair in self.kept)
        self.negatives = there - self.positives - self.ambiguous

    def cut_patches(self, spool: Path, staging: Staging, workers: Workers, progress: Progress) -> None:
        """Append the patches of all used features to a file, by photo; photos of a stopped run are kept."""
        ends = self._starts * _BYTES
        size = spool.stat().st_size if spool.is_file() else 0
        done = int(np.searchsorted(ends, size, side="right")) - 1
        tasks = [
            partial(
                cut_photo,
                self._photos[photo],
                self._used[photo],
                staging.extractor.options,
                staging.image,
                self._extent,
            )
            for photo in self.photos[done:]
        ]
        with spool.open("ab") as file:
            file.truncate(ends[done])
            for patches in run(tasks, workers):
                file.write(patches.tobytes())
                done += 1
                progress("patches", done, len(self.photos))

    def write(self, out: Path, spool: Path, staging: Staging, names: dict[int, str], meta: dict[str, Any]) -> None:
        """Write the file, a piece of an array at a time."""
        kept, total = self.kept, self.patches
        stems = np.array([names[photo] for photo in self.photos])
        places = np.array([[self._place[one.first], self._place[one.second]] for one in kept])
        targets = [len(self._used[one.second]) for one in kept]
        counts = {
            "photos": len(self.photos),
            "image_pairs": len(kept),
            "patches": total,
            **some_of(self, "features", "positives", "negatives", "ambiguous"),
        }
        ellipses = (staging.read(self._photos[photo].key).ellipses[self._used[photo]] for photo in self.photos)
        owners = (np.full(np.count_nonzero(self._used[photo]), place) for place, photo in enumerate(self.photos))
        pixels = np.memmap(spool, np.uint8, "r").reshape(-1, PATCH, PATCH)
        entries = [
            ArrayWriter("names", stems.shape, [stems], stems.dtype.newbyteorder("<").str),
            ArrayWriter("pairs", places.shape, [places]),
            ArrayWriter("homographies", (len(kept), 3, 3), [np.array([one.homography for one in kept])]),
            ArrayWriter("inliers", (len(kept),), [np.array([one.inliers for one in kept])]),
            ArrayWriter("photos", (total,), owners),
            ArrayWriter("ellipses", (total, 5), ellipses),
            ArrayWriter("reference", (self.features,), self._lists(self._references)),
            ArrayWriter("pair", (self.features,), (np.full(one.features, place) for place, one in enumerate(kept))),
            ArrayWriter("positive_starts", (self.features + 1,), self._row_starts(lambda mined: mined.positives)),
            ArrayWriter(
                "positives", (self.positives,), self._lists(lambda mined: self._members(mined, mined.positives))
            ),
            ArrayWriter("ambiguous_starts", (self.features + 1,), self._row_starts(lambda mined: mined.ambiguous)),
            ArrayWriter(
                "ambiguous", (self.ambiguous,), self._lists(lambda mined: self._members(mined, mined.ambiguous))
            ),
            ArrayWriter("target_starts", (len(kept) + 1,), [np.cumsum([0, *targets])]),
            ArrayWriter("targets", (sum(targets),), (self._numbers(one.second) for one in kept)),
            ArrayWriter("patches", (total, PATCH, PATCH), (pixels[at : at + _ROWS] for at in range(0, total, _ROWS))),
        ]
        write_mined(out, entries, {**meta, "counts": counts})

    def _mined(self) -> Iterator[MinedPair]:
        for chunk in self._chunks:
            yield from chunk.read()

    def _numbers(self, photo: int) -> NDArray[np.int64]:
        """Patch numbers of the features of a photo; meaningless for unused features."""
        return np.asarray(self._starts[self._place[photo]] + np.cumsum(self._used[photo]) - 1)

    def _references(self, mined: MinedPair) -> NDArray[np.int64]:
        return self._numbers(self._pairs[mined.number][0])[mined.references]

    def _members(self, mined: MinedPair, rows: NDArray[np.int32]) -> NDArray[np.int64]:
        return self._numbers(self._pairs[mined.number][1])[rows[:, 1]]

    def _lists(self, get: Callable[[MinedPair], NDArray[np.int64]]) -> Iterator[NDArray[np.int64]]:
        return (get(mined) for mined in self._mined())

    def _row_starts(self, get: Callable[[MinedPair], NDArray[np.int32]]) -> Iterator[NDArray[np.int64]]:
        """First row of each reference feature, and the end of the last."""
        total = 0
        yield np.zeros(1, np.int64)
        for mined in self._mined():
            of = np.searchsorted(mined.references, get(mined)[:, 0])
            ends = total + np.cumsum(np.bincount(of, minlength=len(mined.references)))
            total = int(ends[-1])
            yield ends


class _Samples:
    """The grey values of a patch as its descriptor; exact in half precision."""

    name, dim, bytes = "samples", _BYTES, _BYTES
    patch_size = PATCH
    fingerprint = "samples"

    def __init__(self, extent: float) -> None:
        self.extent = extent

    def describe(self, patches: NDArray[np.uint8 | np.float32]) -> NDArray[np.float32]:
        return np.rint(patches).clip(0, 255).reshape(-1, _BYTES)

    def describe_both(self, patches: NDArray[np.uint8 | np.float32]) -> Both:
        rows = self.describe(patches)
        return rows, rows[:, ::-1]


def cut_photo(
    photo: MinedPhoto, used: NDArray[np.bool_], features: FeatureOptions, image: ImageOptions, extent: float = 1.0
) -> NDArray[np.uint8]:
    """Cut the patches (N, 31, 31) uint8 of the `used` features of a photo.

    They are ``extent`` times as large as the detector's own measurement regions, unless the options set their scale.
    """
    try:
        rows = Extractor(_Samples(extent), features).extract(read_photo(photo.path, image)).descriptors
    except CairnError as error:
        raise CairnError(f"{photo.path} can no longer be read ({error}): mine again.") from error
    if len(rows) != len(used):
        raise CairnError(f"{photo.path} has changed since its features were extracted: mine again.")
    return rows[used].astype(np.uint8).reshape(-1, PATCH, PATCH)
