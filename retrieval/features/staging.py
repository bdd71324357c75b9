"""Extracted features on disk, between extraction and segment.

The features of a photo are stored under the hash of its content and the extractor's fingerprint, so that an interrupted
run finds them again, and the vocabulary can be trained on descriptors streamed from disk.
"""

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from index.arrays import load_array, save_array, save_bytes
from index.errors import CairnError
from index.parallel import Workers, run
from retrieval.features.extraction import Extractor, Features
from retrieval.metadata.pages import file_of
from retrieval.photos.options import ImageOptions
from retrieval.photos.remarks import NONE, Remarks

_FACTS = 6  # columns of each photo's geometry; keypoints of another program come after them


@dataclass(frozen=True)
class Staged:
    """Result of extraction for one photo."""

    features: int  # number of features
    width: int  # pixels of the upright original
    height: int
    reason: str | None = None  # why there are no features; None: the photo was read
    is_new: bool = False  # extracted just now, not staged before
    unseen: bool = False  # its file is missing
    remarks: Remarks = NONE


def staging_folder(fingerprint: str, image: ImageOptions) -> str:
    """Name of the folder of an extractor's features of photos read by these options."""
    return f"{fingerprint[:16]}-{image.name}"


def staged_files(key: str) -> tuple[str, str]:
    """Names of the files of a photo: descriptors, and the rest, which is written last."""
    return f"{key}.descriptors.npy", f"{key}.geometry.npy"


class Staging:
    """The folder of one extractor's features."""

    def __init__(self, folder: Path, extractor: Extractor, image: ImageOptions) -> None:
        self.extractor = extractor
        self.image = image
        self.folder = folder / staging_folder(extractor.fingerprint, image)
        self.folder.mkdir(parents=True, exist_ok=True)

    def key(self, path: Path, content: str) -> str:
        """Key of a photo: its content; and its path, as other programs may describe equal files differently."""
        if not self.extractor.reads_files:
            return content
        return f"{content}-{hashlib.sha256(os.fsencode(path)).hexdigest()[:16]}"

    def descriptors(self, key: str) -> Path:
        """File of a photo's descriptors (N, D) float16."""
        return self.folder / staged_files(key)[0]

    def _geometry(self, key: str) -> Path:
        return self.folder / staged_files(key)[1]

    def has(self, key: str) -> bool:
        """Whether the features of a photo are staged."""
        return self._geometry(key).is_file() and self.descriptors(key).is_file()

    def stage(self, path: Path, key: str) -> Staged:
        """Extract the features of a photo, unless they are staged; the result has the reason if it cannot be read."""
        if not self.extractor.reads_files:  # files of another program may have changed since
            with contextlib.suppress(CairnError):  # missing or incomplete: extract (again)
                return self._staged(key)
        try:
            photo = self.extractor.read(path, self.image)
        except CairnError as error:
            return Staged(0, 0, 0, str(error), unseen=not file_of(path).exists())
        features = self.extractor.extract(photo)
        parts = [features.ellipses, features.angles[:, None]]
        if features.keypoints is not None:
            parts.append(features.keypoints)
        rows = np.concatenate(parts, axis=1, dtype=np.float32)
        size = np.zeros((1, rows.shape[1]), np.float32)
        size[0, :_FACTS] = photo.width, photo.height, *photo.remarks.numbers()
        self.folder.mkdir(parents=True, exist_ok=True)  # an earlier run may have removed it
        save_array(self.descriptors(key), features.descriptors)
        # The geometry last: a photo is staged once both files exist.
        save_array(self._geometry(key), np.concatenate([size, rows]))
        return Staged(len(features), photo.width, photo.height, is_new=True, remarks=photo.remarks)

    def read(self, key: str) -> Features:
        """Read the features of a staged photo; raises CairnError if they are missing."""
        rows = load_array(self._geometry(key))[1:]
        return Features(
            np.ascontiguousarray(rows[:, :5]),
            np.ascontiguousarray(rows[:, 5]),
            load_array(self.descriptors(key)),
            np.ascontiguousarray(rows[:, _FACTS:]) if rows.shape[1] > _FACTS else None,
        )

    def take(self, folder: Path, key: str | None = None) -> None:
        """Link or copy the features of a photo, or of all, from another folder of the same extractor, if there."""
        # The geometry comes last, also if sorted: a photo is staged once both files exist.
        for path in sorted(folder.glob("*.npy")) if key is None else [folder / name for name in staged_files(key)]:
            link = self.folder / path.name
            if link.exists() or not path.exists():
                continue
            try:
                os.link(path, link)
            except OSError:  # another disk, or a file system without links
                save_bytes(link, path.read_bytes())

    def discard(self, keys: Iterable[str]) -> None:
        """Remove photos that are in a segment."""
        for key in keys:
            for path in (self._geometry(key), self.descriptors(key)):
                path.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the whole folder."""
        shutil.rmtree(self.folder.parent, ignore_errors=True)

    def _staged(self, key: str) -> Staged:
        rows = load_array(self._geometry(key), mmap=True)
        if not self.descriptors(key).is_file():
            raise CairnError("{path} is missing.", path=self.descriptors(key))
        remarks = Remarks.of_numbers(rows[0, 2:_FACTS].tolist())
        return Staged(len(rows) - 1, int(rows[0, 0]), int(rows[0, 1]), remarks=remarks)


def stage_all(staging: Staging, photos: list[tuple[Path, str]], workers: Workers) -> Iterator[Staged]:
    """Stage photos (path, key), in order, on several processes, whose number does not change the result."""
    return run((partial(staging.stage, path, key) for path, key in photos), workers, batch=4)
