"""Chunks of image pairs, mined together and stored in one file, so that a stopped run can be resumed."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from index.archive import open_archive
from index.arrays import save_arrays
from index.errors import CairnError
from learning.mining.homographies import MapOptions, PhotoPoints
from learning.mining.image_pairs import MinedPair, MinedPhoto, Overlaps, mine_pair
from retrieval.features.staging import Staging

_ARRAYS = ("numbers", "homographies", "inliers", "positives", "ambiguous")


@dataclass(frozen=True)
class Chunk:
    """Some image pairs with results in one file, which a resumed run does not mine again."""

    file: Path
    numbers: list[int]  # of the pairs
    pairs: list[tuple[MinedPhoto, MinedPhoto]]
    maps: list[NDArray[np.float64] | None]  # (3, 3) float64: map between the photos of each pair, if known

    def mine(self, staging: Staging, options: MapOptions, overlaps: Overlaps) -> int:
        """Mine the pairs, unless already done; return their number."""
        try:
            next(self.read(), None)
            return len(self.pairs)
        except CairnError:
            pass  # missing or damaged: mine (again)

        @lru_cache(maxsize=4)  # pairs are sorted by their first photo
        def features(photo: MinedPhoto) -> PhotoPoints:
            return PhotoPoints(staging.read(photo.key), photo.staged.width, photo.staged.height)

        scale = staging.extractor.measurement_scale
        mined = [
            mine_pair(features(first), features(second), scale, options, overlaps, number, known)
            for number, (first, second), known in zip(self.numbers, self.pairs, self.maps, strict=True)
        ]
        self._write([one for one in mined if one is not None])
        return len(self.pairs)

    def read(self) -> Iterator[MinedPair]:
        """Yield the stored pairs; raises CairnError if the file is missing or damaged."""
        try:
            with open_archive(self.file) as archive:
                arrays = {name: archive.array(name) for name in _ARRAYS}
        except Exception as error:
            raise CairnError(f"{self.file} is missing or damaged: run the same command again.") from error
        for row, number in enumerate(arrays["numbers"].tolist()):
            positives, ambiguous = (
                arrays[name][arrays[name][:, 0] == row][:, 1:] for name in ("positives", "ambiguous")
            )
            yield MinedPair(number, arrays["homographies"][row], int(arrays["inliers"][row]), positives, ambiguous)

    def _write(self, mined: list[MinedPair]) -> None:
        def rows(lists: list[NDArray[np.int32]]) -> NDArray[np.int32]:
            marked = [np.insert(pairs, 0, row, axis=1) for row, pairs in enumerate(lists)]
            return np.concatenate([np.zeros((0, 3), np.int32), *marked]).astype(np.int32)

        arrays = {
            "numbers": np.array([one.number for one in mined], np.int64),
            "homographies": np.array([one.homography for one in mined]).reshape(-1, 3, 3),
            "inliers": np.array([one.inliers for one in mined], np.int64),
            "positives": rows([one.positives for one in mined]),
            "ambiguous": rows([one.ambiguous for one in mined]),
        }
        save_arrays(self.file, arrays)
