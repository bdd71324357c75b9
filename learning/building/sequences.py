"""Image sequences with known homographies: reading their folders."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from index.errors import CairnError
from retrieval.photos.listing import PHOTO_SUFFIXES


@dataclass(frozen=True)
class Sequence:
    """Views of one plane."""

    name: str  # the folder's name, followed by a slash and its own name if the folder holds several sequences
    images: tuple[Path, ...]  # the reference first
    homographies: tuple[
        NDArray[np.float64], ...
    ]  # (3, 3) float64 each, from pixels of the reference to those of each image


def read_sequences(folder: Path) -> list[Sequence]:
    """Find the sequences in a folder, in the order of their names."""
    folder = Path(folder)
    if not folder.is_dir():
        raise CairnError(f"There is no folder {folder}: name a folder with img1, img2, … and H1to2p, ….")
    if all((folder / part).is_dir() for part in ("1", "2", "h")):
        return _read_pairs(folder)
    images = {
        int(match[1]): path for stem, path in _photos(folder).items() if (match := re.fullmatch(r"img0*(\d+)", stem))
    }
    if 1 not in images or len(images) < 2:
        raise CairnError(
            f"{folder} is no image sequence: it needs img1, img2, … with H1to2p, …, or folders 1, 2 and h of pairs."
        )
    numbers = sorted(images)
    homographies = [np.eye(3)] + [_read_homography(folder / f"H1to{number}p") for number in numbers[1:]]
    name = folder.resolve().name
    return [Sequence(name, tuple(images[number] for number in numbers), tuple(homographies))]


def _read_pairs(folder: Path) -> list[Sequence]:
    first, second = _photos(folder / "1"), _photos(folder / "2")
    sequences = []
    for name in sorted(first):
        if name not in second:
            raise CairnError(f"{folder / '2'} has no image {name}: add it, or take the one in {folder / '1'} away.")
        homography = _read_homography(folder / "h" / f"{name}.txt")
        sequences.append(
            Sequence(f"{folder.resolve().name}/{name}", (first[name], second[name]), (np.eye(3), homography))
        )
    if not sequences:
        raise CairnError(f"{folder / '1'} holds no photo: it needs the first image of every pair.")
    return sequences


def _photos(folder: Path) -> dict[str, Path]:
    """Photos of a folder by stem; of several formats, the first by name."""
    photos: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() in PHOTO_SUFFIXES and not path.name.startswith("."):
            photos.setdefault(path.stem, path)
    return photos


def _read_homography(path: Path) -> NDArray[np.float64]:
    try:
        values = np.array(path.read_text(encoding="ascii").replace(",", " ").split(), np.float64)
    except FileNotFoundError:
        raise CairnError(f"{path} is missing: each image needs the homography that maps the first one to it.") from None
    except (ValueError, OSError) as error:
        raise CairnError(f"{path} cannot be read as a homography: it must hold nine numbers.") from error
    if values.size != 9 or not np.isfinite(values).all() or abs(np.linalg.det(values.reshape(3, 3))) < 1e-12:
        raise CairnError(f"{path} is no homography: it must hold nine numbers, and its inverse must exist.")
    return values.reshape(3, 3)
