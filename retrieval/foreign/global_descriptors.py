"""Global descriptors that come from elsewhere: those that an extension computes, and matrices in files."""

from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from index.archive import open_archive
from index.arrays import load_array, reading
from index.errors import CairnError
from index.extensions import Extension, find, refuse_missing
from index.parallel import one_thread
from index.text import one_line, shown
from retrieval.photos.decoding import read_colour_sized
from retrieval.photos.options import ImageOptions

KIND = "global_descriptor"
ENDINGS = (".npz", ".npy")
"""Of files of matrices."""

_LARGEST = 1 << 36  # bytes
_LARGEST_NAMES = 1 << 30
_LONGEST = 1 << 16  # values of a row


class GlobalDescriptor(Protocol):
    """The contract of extensions of the kind ``global_descriptor``.

    With a method ``describe_words(text)`` to rows of the same kind, as of CLIP's text encoder, it finds photos by
    words.
    """

    name: str  # what people call it
    dim: int  # length of a row
    fingerprint: str  # another one whenever rows would be others, such as by another model

    def describe(self, image: NDArray[np.uint8]) -> NDArray[np.floating]:
        """Describe an image as a whole.

        Parameters
        ----------
        image : ndarray, shape (H, W, 3), uint8
            RGB, upright, and reduced to the collection's ``max_side``; of a box what is in it.

        Returns
        -------
        ndarray, shape (dim,)
            Compared by its angle with others.
        """
        ...


def find_global(name: str) -> Extension:
    """Find an extension by its name or place; raises CairnError if there is none."""
    found = find(KIND, name)
    if found is None:
        refuse_missing(KIND, name)
        raise CairnError(
            "There is no global descriptor {name}: install the package that declares it, in the group "
            "cairn.global_descriptors, or name a file (.npz, .npy).",
            name=shown(name),
        )
    return found


def described(
    extension: GlobalDescriptor,
    path: Path,
    image: ImageOptions,
    box: tuple[float, float, float, float] | None = None,
    *,
    mirrored: bool = False,
) -> NDArray[np.float32]:
    """Return the unit row (D,) of a photo, or a box in it in pixels of the original; errors give only the reason."""
    pixels, width, height = read_colour_sized(path, image)
    if box is not None:
        across, down = pixels.shape[1] / width, pixels.shape[0] / height
        x0, y0 = max(int(box[0] * across), 0), max(int(box[1] * down), 0)
        pixels = pixels[y0 : max(round((box[3] + 1) * down), y0 + 1), x0 : max(round((box[2] + 1) * across), x0 + 1)]
        if not pixels.size:
            raise CairnError("the box lies outside the photo")
    if mirrored:
        pixels = pixels[:, ::-1]
    return row_by(extension, np.ascontiguousarray(pixels))


def row_by(extension: GlobalDescriptor, given: NDArray[np.uint8] | str) -> NDArray[np.float32]:
    """Return the row (D,) of an image (H, W, 3) or of words, at unit length; CairnError if the extension fails."""
    describe: Any = extension.describe if isinstance(given, np.ndarray) else getattr(extension, "describe_words", None)
    if describe is None:
        raise CairnError(f"{extension.name} describes images, and no words")
    try:
        with one_thread():
            row = np.asarray(describe(given), np.float64)
    except CairnError:
        raise
    except Exception as error:  # code of others fails in any way
        raise CairnError(f"{extension.name} failed: {shown(one_line(error), 200)}") from error
    if row.shape != (extension.dim,) or not np.isfinite(row).all():
        raise CairnError(f"{extension.name} gives no {extension.dim} numbers")
    return np.asarray(row / max(float(np.linalg.norm(row)), 1e-300), np.float32)


def read_matrix(path: Path) -> tuple[list[str], NDArray[np.floating]]:
    """Read the names of photos, and a row for each: an .npz of ``names`` (N,) and ``vectors`` (N, D), or an .npy (N, D)
    with a text file of its name with .txt in place of .npy, which has a name on each line.
    """
    with reading(path, "file of global descriptors", "np.savez or np.save"):
        if path.suffix == ".npz":
            with open_archive(path, _LARGEST) as archive:
                every, rows = archive.array("names"), archive.array("vectors")
            if every.ndim != 1 or every.dtype.kind != "U":
                raise ValueError("its names are not a list of texts")
            names = [str(one) for one in every]
        else:
            rows, text = load_array(path), path.with_suffix(".txt")
            if not text.is_file() or text.stat().st_size > _LARGEST_NAMES:
                raise CairnError(f"The names of the rows of {path} are missing: write them into {text}, one per line.")
            names = text.read_text(encoding="utf-8").splitlines()
        _check(names, rows)
        return names, rows


def _check(names: list[str], rows: NDArray[Any]) -> None:
    if rows.ndim != 2 or rows.dtype.kind != "f" or not 0 < rows.shape[1] <= _LONGEST:
        raise ValueError("its rows are no matrix of floating-point numbers")
    if len(names) != len(rows):
        raise ValueError(f"it has {len(rows)} rows and {len(names)} names")
    if not np.isfinite(rows).all():
        raise ValueError("some of its values are no numbers")
