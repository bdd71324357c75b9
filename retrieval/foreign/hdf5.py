"""Features in one HDF5 file, as written by hloc (Hierarchical-Localization): a group for each photo, with its name."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from index.extras import require_h5py
from retrieval.foreign.arrays import MOST, entry_of
from retrieval.foreign.contract import Entry, missing, stored_name

MAGIC = b"\x89HDF\r\n\x1a\n"
_LARGEST = MOST * 4096  # entries of an array
_END = "/keypoints"
_ARRAYS = ("keypoints", "descriptors", "scores", "image_size", "scales", "oris", "frames", "lafs")


@dataclass(frozen=True)
class HlocFile:
    """A file of hloc: ``keypoints`` (N, 2), ``descriptors`` (D, N), optionally ``scores``, ``scales`` and ``oris``
    (degrees). Keypoints are in pixels, the centre of the top-left one at (0, 0). hloc uses photos as stored, ignoring
    the orientation in EXIF; before its pull request 373 it rotated them, which ``image_size`` reveals for quarter
    turns.
    """

    path: Path

    def __post_init__(self) -> None:
        require_h5py()

    def entry(self, photo: Path, names: Sequence[str]) -> Entry:
        """Read the features of a photo: see `FeatureSource.entry`."""
        import h5py

        try:
            with h5py.File(self.path, "r") as file:
                found = next((one for name in names if (one := _inside(file, name)) is not None), None)
                if found is None and (name := stored_name(self.path, names, photo, _names)) is not None:
                    found = _inside(file, name)
                if found is None:
                    raise missing(self.path)
                arrays = {name: _array(found, name) for name in _ARRAYS if name in found}
        except CairnError:
            raise
        except Exception as error:  # a damaged file fails in any way
            raise CairnError(f"its features in {self.path} cannot be read: the file is damaged") from error
        try:
            return replace(entry_of(_with_scales(arrays), columns_first=True), is_as_stored=True)
        except CairnError as error:
            raise CairnError(f"its features in {self.path} cannot be used: {error}") from error


def _inside(group: Any, name: str) -> Any:
    """The group of a name, following only links within the file; None if it does not exist."""
    import h5py

    for part in name.split("/"):
        if not isinstance(group, h5py.Group) or not isinstance(group.get(part, getlink=True), h5py.HardLink):
            return None
        group = group[part]
    return group if isinstance(group, h5py.Group) and "keypoints" in group else None


def _names(path: Path) -> list[str]:
    import h5py

    names: list[str] = []
    with h5py.File(path, "r") as file:
        file.visit(
            lambda name: names.append(name) if isinstance(name, str) else None
        )  # follows only links within the file
    return [name.removesuffix(_END) for name in names if name.endswith(_END)]


def _array(group: Any, name: str) -> NDArray[Any]:
    """An array of numbers that lies in the file itself, of a size that a photo's can have."""
    import h5py

    array = group[name] if isinstance(group.get(name, getlink=True), h5py.HardLink) else None
    if not isinstance(array, h5py.Dataset) or array.is_virtual or array.external or array.dtype.kind not in "iufb":
        raise CairnError(f"its {name} are no array of numbers")
    if array.size is None or array.size > _LARGEST:
        raise CairnError(f"its {name} are far larger than any should be")
    return np.asarray(array[()])


def _with_scales(arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Arrays with the scales and orientations, which hloc stores separately from the places."""
    scales, angles = arrays.pop("scales", None), arrays.pop("oris", None)
    places = arrays.get("keypoints")
    if scales is None or places is None or places.ndim != 2 or places.shape[1] != 2:
        return arrays
    columns = [places, scales] if angles is None else [places, scales, np.deg2rad(angles.astype(np.float64))]
    if any(one.shape[:1] != (len(places),) or one.size != len(places) for one in columns[1:]):
        raise CairnError("it has not one scale and orientation for each keypoint")
    return arrays | {"keypoints": np.column_stack([one.astype(np.float64) for one in columns])}
