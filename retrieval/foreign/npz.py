"""Features in `.npz` files: one for each photo, with its name."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from index.archive import open_archive
from index.errors import CairnError
from index.text import bare_name
from retrieval.foreign.arrays import entry_of
from retrieval.foreign.contract import Entry, missing, stored_name
from retrieval.photos.listing import PHOTO_SUFFIXES

SUFFIX = ".npz"
_LARGEST = 1 << 32  # bytes of a file, unpacked
_ARRAYS = ("keypoints", "frames", "lafs", "descriptors", "scores", "image_size")


@dataclass(frozen=True)
class NpzFolder:
    """A folder with a file for each photo: ``holidays/1.jpg.npz``, or ``holidays/1.npz``, of ``holidays/1.jpg``."""

    path: Path

    def entry(self, photo: Path, names: Sequence[str]) -> Entry:
        """Read the features of a photo: see `FeatureSource.entry`."""
        ways = [way for name in names for way in (name, bare_name(name))]
        found = (
            next((name for name in ways if self._file(name).is_file()), None)
            or stored_name(self.path, names, photo, _names)
            or stored_name(self.path, map(bare_name, names), photo, _names, photo.suffix)
        )
        if found is None:
            raise missing(self.path)
        if not found.lower().endswith(photo.suffix.lower()):
            _refuse_twin(photo, self._file(found))
        return read_npz(self._file(found))

    def _file(self, name: str) -> Path:
        return self.path / (name + SUFFIX)


@dataclass(frozen=True)
class NpzFile:
    """The features of one photo, whichever it is: that of a query."""

    path: Path

    def entry(self, photo: Path, names: Sequence[str]) -> Entry:
        """Read the features: see `FeatureSource.entry`."""
        return read_npz(self.path)


def _names(folder: Path) -> list[str]:
    found = (str(path.relative_to(folder)) for path in folder.rglob(f"*{SUFFIX}"))
    return [name.removesuffix(SUFFIX) for name in found]


def read_npz(path: Path) -> Entry:
    """Read the features of a photo, without unpickling; raises CairnError with only the reason if they are damaged."""
    try:
        with open_archive(path, _LARGEST) as archive:
            there = {name.removesuffix(".npy") for name in archive.names}
            arrays = {name: archive.array(name) for name in _ARRAYS if name in there}
            is_binary = "binary" in there and bool(archive.array("binary").all())
    except Exception as error:  # a damaged archive fails in any way
        raise CairnError(f"its features in {path} cannot be read: the file is damaged, or no .npz of arrays") from error
    try:
        return entry_of(arrays, is_binary=is_binary)
    except CairnError as error:
        raise CairnError(f"its features in {path} cannot be used: {error}") from error


def _refuse_twin(photo: Path, stem: Path) -> None:
    """Raise CairnError if two photos would use the same file, as one of them has other features."""
    others = [suffix for suffix in sorted(PHOTO_SUFFIXES) if suffix != photo.suffix.lower()]
    twins = (photo.with_suffix(suffix) for other in others for suffix in (other, other.upper()))
    twin = next((path for path in twins if path.is_file()), None)
    if twin is not None:
        raise CairnError(
            f"{stem.name} may be that of {photo.name} or of {twin.name}: name the features {photo.name}{SUFFIX}"
        )
