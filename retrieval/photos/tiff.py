"""TIFF of scanners and editors: find the pages that are photos, and decode samples that Pillow does not support.

Pillow reads the first page of most TIFFs. This module finds any page, by default the largest, and decodes samples of 16
bits and more that are stored in separate planes, are fractions, or grey with transparency.
"""

from __future__ import annotations

import io
import itertools
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, TiffImagePlugin

from index.errors import CairnError
from retrieval.photos.work import check_strips, refuse_large

_HEADS = (b"II*\0", b"MM\0*", b"II+\0")
MOST_PAGES = 10_000
"""Pages of one file that are photos of their own."""
MOST_DIRECTORIES = 100_000
"""Directories of one file that are looked at."""
_KIND, _WIDTH, _HEIGHT, _BITS, _COMPRESSION, _PHOTOMETRIC, _STRIPS, _ORIENTATION = (
    254,
    256,
    257,
    258,
    259,
    262,
    273,
    274,
)
_SAMPLES, _ROWS_PER_STRIP, _SIZES, _PLANES, _PREDICTOR = 277, 278, 279, 284, 317
_TILE_WIDTH, _TILE_HEIGHT, _TILES, _TILE_SIZES, _BELOW, _EXTRA, _FORMAT, _PROFILE = (
    322,
    323,
    324,
    325,
    330,
    338,
    339,
    34675,
)
_REDUCED, _MASK = 1, 4  # bits of the kind of a page
_WHITE_IS_ZERO, _GREY, _RGB, _CMYK = 0, 1, 2, 5
_COLOURS = {_WHITE_IS_ZERO: 1, _GREY: 1, _RGB: 3, _CMYK: 4}
_TYPES = {1: "u", 2: "i", 3: "f"}
_UNPACKED = {1: "raw", 5: "tiff_lzw", 8: "tiff_adobe_deflate", 32773: "packbits", 32946: "tiff_deflate"}
_SHOWN = frozenset((0, 1, 2, 3, 4, 5, 6, 8, 9, 10))  # photometric interpretations of pictures, not of a raw sensor
_TELLING = frozenset((_KIND, _WIDTH, _HEIGHT, _PHOTOMETRIC, _BELOW))
_WHOLE = {1: "B", 3: "H", 4: "I", 13: "I", 16: "Q", 18: "Q"}  # whole numbers, by type
_MOST_ENTRIES, _MOST_BELOW = 4096, 1000
_DAMAGES = (SyntaxError, ValueError, TypeError, OSError, OverflowError, struct.error)
_MOST_SAMPLES = 8
_BYTES_A_PIXEL = 16  # of samples, that a photo with the most pixels may have

Tags = TiffImagePlugin.ImageFileDirectory_v2


def is_tiff(head: bytes) -> bool:
    """Whether a file whose first bytes are these is a TIFF."""
    return head.startswith(_HEADS)


def no_page(wanted: int, pages: int) -> CairnError:
    """Return the error that a file has too few pages."""
    return CairnError(f"the file has {pages} page{'s' * (pages != 1)}, and no page {wanted}")


@dataclass(frozen=True)
class Page:
    """A page of a TIFF."""

    tags: Tags
    header: bytes  # that the file would have, if this were its first page
    number: int  # of the pages of the file, from 1
    others: int  # number of other pages, if this one has the name of the file

    @property
    def size(self) -> tuple[int, int]:
        """Width and height, as stored."""
        return self._number(_WIDTH, 0), self._number(_HEIGHT, 0)

    @property
    def is_deep(self) -> bool:
        """Whether `unpack` must decode its samples, as Pillow refuses it, or mixes its planes."""
        bits, kinds = self._numbers(_BITS, 1), self._numbers(_FORMAT, 1)
        if self._number(_PHOTOMETRIC, _GREY) not in _COLOURS or len(set(bits)) > 1 or len(set(kinds)) > 1:
            return False
        if bits[0] not in (16, 32, 64) or (kinds[0] == 3) < (bits[0] == 64) or kinds[0] not in _TYPES:
            return False
        samples = self._number(_SAMPLES, 1)
        apart = self._number(_PLANES, 1) == 2 and samples > 1
        if kinds[0] == 3:
            return apart or samples > 1 or bits[0] != 32
        return apart or samples not in (1, 3, 4) or (bits[0] == 32 and (samples > 1 or kinds[0] == 1))

    def _numbers(self, tag: int, default: int) -> tuple[int, ...]:
        found = self.tags.get(tag, default)
        return tuple(map(int, found)) if isinstance(found, tuple | list) else (int(found),)

    def _number(self, tag: int, default: int) -> int:
        return self._numbers(tag, default)[0]

    def unpack(self, file: IO[bytes], length: int, max_pixels: int) -> Image.Image:
        """Read a page that `is_deep`: RGB, CMYK, LA or RGBA of 8 bits, or F in 0..255; as stored, not upright."""
        refuse_large(*self.size, self.size, max_pixels)
        check_strips(file, length, self.tags, self.size, max_pixels)
        image = self._picture(self._samples(file, max_pixels))
        if isinstance(profile := self.tags.get(_PROFILE), bytes):
            image.info["icc_profile"] = profile
        image.getexif()[_ORIENTATION] = self._number(_ORIENTATION, 1)
        return image

    def _picture(self, samples: NDArray[Any]) -> Image.Image:
        photometric = self._number(_PHOTOMETRIC, _GREY)
        colours = _COLOURS[photometric]
        if samples.shape[2] < colours:
            raise CairnError("the file is damaged (it has fewer samples than its colours need)")
        extra = self._numbers(_EXTRA, 0)[0] if samples.shape[2] > colours else 0
        picture = _to_255(samples[:, :, :colours], self._numbers(_BITS, 1)[0])
        if photometric == _WHITE_IS_ZERO:
            picture = 255 - picture
        if colours == 1 and extra not in (1, 2):
            return Image.fromarray(np.ascontiguousarray(picture[:, :, 0]))
        if extra in (1, 2) and photometric != _CMYK:
            alpha = _to_255(samples[:, :, colours : colours + 1], self._numbers(_BITS, 1)[0])
            if extra == 1:  # colours are multiplied by it
                picture = np.minimum(picture * (255 / np.maximum(alpha, 1)), 255)
            picture = np.concatenate([picture, alpha], axis=2)
        mode = {(1, 2): "LA", (3, 3): "RGB", (3, 4): "RGBA", (4, 4): "CMYK"}[colours, picture.shape[2]]
        bands = [Image.fromarray(np.rint(band).astype(np.uint8)) for band in np.moveaxis(picture, 2, 0)]
        return Image.merge(mode, bands)

    def _samples(self, file: IO[bytes], max_pixels: int) -> NDArray[Any]:
        """Read all samples, (H, W, S)."""
        width, height = self.size
        count, bits = self._number(_SAMPLES, 1), self._numbers(_BITS, 1)[0]
        dtype = np.dtype(f"{_TYPES[self._numbers(_FORMAT, 1)[0]]}{bits // 8}")
        if not 0 < count <= _MOST_SAMPLES or width * height * count * dtype.itemsize > _BYTES_A_PIXEL * max_pixels:
            raise CairnError(f"the photo has {count} samples of {bits} bits a pixel, which is more than is read")
        apart = self._number(_PLANES, 1) == 2
        across, down, starts, sizes = self._segments()
        samples = np.zeros((height, width, count), dtype)
        stored = dtype.newbyteorder("<" if self.header.startswith(b"II") else ">")
        places = itertools.product(range(count) if apart else (0,), range(0, height, down), range(0, width, across))
        for (plane, top, left), start, size in zip(places, starts, sizes, strict=False):
            rows = down if self._is_tiled else min(down, height - top)
            file.seek(start)
            shape = rows, across, 1 if apart else count
            found = self._unpredicted(_unpacked(file.read(size), self._number(_COMPRESSION, 1), shape, stored), stored)
            part = slice(plane, plane + 1) if apart else slice(None)
            room = samples[top : top + rows, left : left + across, part]
            room[...] = found[: room.shape[0], : room.shape[1]]
        return samples

    @property
    def _is_tiled(self) -> bool:
        return _TILES in self.tags

    def _segments(self) -> tuple[int, int, tuple[int, ...], tuple[int, ...]]:
        """Width and height of strips or tiles, their offsets, and their lengths in bytes."""
        width, height = self.size
        if self._is_tiled:
            found = self._number(_TILE_WIDTH, 0), self._number(_TILE_HEIGHT, 0)
            starts, sizes = self._numbers(_TILES, 0), self._numbers(_TILE_SIZES, 0)
        else:
            found = width, min(height, self._number(_ROWS_PER_STRIP, height))
            starts, sizes = self._numbers(_STRIPS, 0), self._numbers(_SIZES, 0)
        if min(found) < 1 or found[0] * found[1] > 4 * width * height + (1 << 20):
            raise CairnError("the file is damaged (its strips or tiles have another size than a photo's)")
        return *found, starts, sizes

    def _unpredicted(self, values: NDArray[Any], stored: np.dtype[Any]) -> NDArray[Any]:
        """Undo the predictor (TIFF 6, section 14, and Adobe's technical note 3) of rows (R, W, S), in native order."""
        predictor = self._number(_PREDICTOR, 1)
        if predictor == 1:
            return values
        rows, across, count = values.shape
        if predictor == 2:
            whole = values.view(f"{stored.byteorder}u{stored.itemsize}").astype(f"u{stored.itemsize}")
            return np.cumsum(whole, axis=1, dtype=whole.dtype).view(stored.newbyteorder("="))
        if predictor != 3:
            raise CairnError(f"its samples are packed in a way that is not known (predictor {predictor})")
        steps = values.view(np.uint8).reshape(rows, -1, count)  # differences to the bytes of the previous pixel
        planes = np.cumsum(steps, axis=1, dtype=np.uint8).reshape(rows, stored.itemsize, across * count)
        return np.ascontiguousarray(planes.swapaxes(1, 2)).view(stored.newbyteorder(">"))[..., 0].reshape(values.shape)


def _unpacked(data: bytes, compression: int, shape: tuple[int, int, int], stored: np.dtype[Any]) -> NDArray[Any]:
    """Unpack a strip or tile (R, W, S) by libtiff as one grey strip of bytes, which bounds its length."""
    if compression not in _UNPACKED:
        raise CairnError(f"its samples are packed in a way that is not known (compression {compression})")
    across = shape[1] * shape[2] * stored.itemsize
    if compression != 1:
        tags = [(_WIDTH, across), (_HEIGHT, shape[0]), (_BITS, 8), (_COMPRESSION, compression), (_PHOTOMETRIC, _GREY)]
        tags += [(_STRIPS, 8), (_SAMPLES, 1), (_ROWS_PER_STRIP, shape[0]), (_SIZES, len(data))]
        table = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
        head = struct.pack("<2sHI", b"II", 42, 8 + len(data)) + data
        with Image.open(io.BytesIO(head + struct.pack("<H", len(tags)) + table + bytes(4)), formats=("TIFF",)) as strip:
            data = strip.tobytes()
    return np.frombuffer(data, stored, shape[0] * shape[1] * shape[2]).reshape(shape)


def _to_255(samples: NDArray[Any], bits: int) -> NDArray[np.float32]:
    """Scale samples to 0..255: unsigned ones by their bits, others as `to_bytes_range` does."""
    if samples.dtype.kind == "u":
        return samples.astype(np.float32) * np.float32(255 / (2**bits - 1))
    return to_bytes_range(samples.astype(np.float32), whole=samples.dtype.kind == "i")


def to_bytes_range(values: NDArray[np.float32], whole: bool) -> NDArray[np.float32]:
    """Scale whole or fractional numbers of unknown range to 0..255: 8 bit, 16 bit or 0..1; else lowest to highest."""
    values = np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
    low, high = float(values.min()), float(values.max())
    if low >= 0 and not whole and high <= 1:
        return values * np.float32(255)
    if low >= 0 and high <= 255:
        return values
    if low >= 0 and whole and high <= 65535:
        return values / np.float32(257)
    # Halved first, for the range of float32 itself does not fit a float32.
    return ((values / 2 - low / 2) * (255 / max(high / 2 - low / 2, 1e-30))).astype(np.float32)


def photo_page(file: IO[bytes], wanted: int | None = None) -> Page | None:
    """Find a page of a TIFF, by default the largest; None if no page can be read.

    A page is the largest picture of a directory and its subdirectories that is neither reduced nor a mask. If the whole
    file has no such picture, its largest picture is its only page.
    """
    groups = _directories(file)
    full = (one for group in groups if (one := _largest(group, _REDUCED | _MASK)) is not None)
    pages = list(full if wanted is None else itertools.islice(full, wanted))
    if not pages:
        best = _largest([one for group in _directories(file) for one in group], 0)
        pages = [best] if best is not None else []
    if wanted is not None:
        if len(pages) < wanted:
            raise no_page(wanted, len(pages))
        if (page := _load(file, pages[wanted - 1], wanted, 0)) is None:
            raise CairnError("the page is damaged")
        return page
    for number, one in sorted(enumerate(pages, 1), key=lambda pair: -pair[1].pixels):
        if (page := _load(file, one, number, len(pages) - 1)) is not None:
            return page
    return None


def _load(file: IO[bytes], directory: _Directory, number: int, others: int) -> Page | None:
    """Read all tags of a page; None if they are damaged."""
    file.seek(0)
    header = file.read(16)
    size, kind = (8, "Q") if _is_big(header) else (4, "I")
    tags = Tags(header[: 2 * size])
    try:
        file.seek(directory.place)
        tags.load(file)
    except _DAMAGES:
        return None
    place = struct.pack(f"{_order(header)}{kind}", directory.place)
    return Page(tags, header[:size] + place, number, others)


def _largest(directories: Iterable[_Directory], without: int) -> _Directory | None:
    """Return the first of the largest pictures, without those of some kinds; None if no picture remains."""
    shown = (one for one in directories if one.photometric in _SHOWN and not one.kind & without)
    return max(shown, key=lambda one: one.pixels, default=None)


def _order(header: bytes) -> str:
    return "<" if header.startswith(b"II") else ">"


def _is_big(header: bytes) -> bool:
    return header[2:3] == b"+"


@dataclass(frozen=True)
class _Directory:
    """The tags that identify a page: files may have very many pages, and only these tags are read of most."""

    place: int
    kind: int
    pixels: int
    photometric: int


def _directories(file: IO[bytes]) -> Iterator[list[_Directory]]:
    """Yield the directories of a TIFF in their order, each with its subdirectories."""
    file.seek(0)
    header = file.read(16)
    place = _numbers_in(header, 8 if _is_big(header) else 4, "Q" if _is_big(header) else "I")
    seen = set[int]()
    while place and place not in seen:
        group, waiting, following = list[_Directory](), [place], 0
        while waiting and len(seen) < MOST_DIRECTORIES:
            at = waiting.pop()
            if not at or at in seen:
                continue
            seen.add(at)
            try:
                found, below, after = _directory(file, at, header)
            except _DAMAGES:  # earlier pages may suffice
                continue
            group.append(found)
            waiting += below
            if at == place:
                following = after
            else:
                waiting.append(after)
        yield group
        place = following


def _numbers_in(header: bytes, at: int, kind: str) -> int:
    size = struct.calcsize(kind)
    return int(struct.unpack(f"{_order(header)}{kind}", header[at : at + size].ljust(size, b"\0"))[0])


def _directory(file: IO[bytes], place: int, header: bytes) -> tuple[_Directory, list[int], int]:
    """Read the identifying tags of a page, and the offsets of its subdirectories and of the next directory."""
    order = _order(header)
    counts, entries, next_one = ("Q", "HHQ8s", "Q") if _is_big(header) else ("H", "HHI4s", "I")
    count, entry = struct.Struct(order + counts), struct.Struct(order + entries)
    following = struct.Struct(order + next_one)
    file.seek(place)
    (entries_there,) = count.unpack(file.read(count.size))
    if entries_there > _MOST_ENTRIES:
        raise ValueError("a directory with too many entries")
    rows = file.read(entry.size * entries_there)
    (after,) = following.unpack(file.read(following.size).ljust(following.size, b"\0"))
    values: dict[int, tuple[int, ...]] = {}
    for tag, kind, number, value in entry.iter_unpack(rows):
        if tag in _TELLING and kind in _WHOLE and 0 < number <= _MOST_BELOW:
            size = number * struct.calcsize(_WHOLE[kind])
            if size > len(value):
                file.seek(struct.unpack(following.format, value)[0])
                value = file.read(size)
            values[tag] = struct.unpack(f"{order}{number}{_WHOLE[kind]}", value[:size])
    (found_kind, *_), (width, *_), (height, *_), (photometric, *_) = (
        values.get(tag, (default,)) for tag, default in ((_KIND, 0), (_WIDTH, 0), (_HEIGHT, 0), (_PHOTOMETRIC, _GREY))
    )
    return _Directory(place, found_kind, width * height, photometric), [*values.get(_BELOW, ())], after
