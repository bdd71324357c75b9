"""Thumbnails of photos: made once, and stored in a cache that may be deleted at any time."""

import contextlib
import hashlib
import io
import re
from collections.abc import Container
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from index.arrays import save_bytes
from index.errors import CairnError
from index.files.reading import IrregularFile, read_regular
from index.files.rights import make_folders
from retrieval.metadata.pages import hash_photo
from retrieval.photos.decoding import read_colour
from retrieval.photos.listing import THUMBNAILS
from retrieval.photos.options import ImageOptions

SIZES = (128, 256, 512)
"""Longer sides that there are, pixels."""

QUALITY = 82
_NAME = re.compile(r"[0-9a-f]{64}-[0-9]+\.jpg")
# A cached thumbnail has the SHA-256 of all its other bytes in a comment after its header (JFIF, 20 bytes).
_HEADER = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00"
_AT = 20
_COMMENT = b"cairn sha256 "
_TABLES = b"\xff\xdb"  # follows the header if there is no comment
_MARK = b"\xff\xfe" + (2 + len(_COMMENT) + 64).to_bytes(2, "big") + _COMMENT


def thumbnail(
    path: Path, sha256: str | None, size: int, cache: Path, max_pixels: int = ImageOptions.max_pixels
) -> bytes:
    """A small upright JPEG of a photo, whose longer side is one of `SIZES`; smaller photos are not enlarged.

    With the SHA-256 of its content when it was indexed, any other file is refused, and `thumbnails/<first two
    digits>/<sha256>-<size>.jpg` of the cache is used if undamaged, and made otherwise, if the folder can be written.
    """
    if size not in SIZES:
        raise CairnError(f"A thumbnail is {', '.join(map(str, SIZES[:-1]))} or {SIZES[-1]} pixels, not {size}.")
    path = Path(path)
    known = kept_thumbnail(sha256, size, cache)
    if known is not None:
        return known
    file = thumbnail_file(sha256, size, cache) if sha256 else None
    is_known = sha256 is not None and refuse_other_content(path, sha256)
    jpeg = with_checksum(encode_jpeg(_read(path, size, max_pixels)))
    if file is not None and is_known:
        # A full disk or a cache that may not be written is no reason not to show the photo.
        with contextlib.suppress(OSError):
            _, mode = make_folders(Path(cache), THUMBNAILS, file.parent.name)
            save_bytes(file, jpeg, mode=mode)
    return jpeg


def kept_thumbnail(sha256: str | None, size: int, cache: Path) -> bytes | None:
    """Return an undamaged cached thumbnail, without a decoder; None without one, or without a hash."""
    if sha256:
        with contextlib.suppress(OSError, IrregularFile):
            jpeg = read_regular(thumbnail_file(sha256, size, cache))
            if is_whole(jpeg):
                return jpeg
    return None


def with_checksum(jpeg: bytes) -> bytes:
    """Add a checksum for `is_whole` to a JPEG of `encode_jpeg`, as a comment."""
    return jpeg[:_AT] + _MARK + hashlib.sha256(jpeg).hexdigest().encode() + jpeg[_AT:]


def is_whole(thumbnail: bytes) -> bool:
    """Whether every byte of a cached thumbnail is undamaged."""
    behind = _AT + len(_MARK) + 64
    jpeg = thumbnail[:_AT] + thumbnail[behind:]
    return thumbnail == with_checksum(jpeg)


def is_without_checksum(thumbnail: bytes) -> bool:
    """Whether a cached thumbnail is of an earlier version, without a checksum: it is remade when shown."""
    # Two conditions, so that no single damaged byte makes one of the current version look like it.
    tables = thumbnail.startswith(_HEADER) and thumbnail[_AT : _AT + 2] == _TABLES
    return tables and _COMMENT not in thumbnail[: _AT + len(_MARK)]


def thumbnail_file(sha256: str, size: int, cache: Path) -> Path:
    """Path of a thumbnail; raises ValueError if the hash is malformed, as it might lead out of the cache."""
    if not re.fullmatch("[0-9a-f]{64}", sha256):
        raise ValueError(f"{sha256!r} is no SHA-256")
    return Path(cache) / THUMBNAILS / sha256[:2] / f"{sha256}-{size}.jpg"


def encode_jpeg(image: NDArray[np.uint8], quality: int = QUALITY) -> bytes:
    """An RGB image (H, W, 3) uint8, or a grey one (H, W), as a JPEG."""
    file = io.BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=quality, optimize=True)
    return file.getvalue()


def _read(path: Path, size: int, max_pixels: int) -> NDArray[np.uint8]:
    try:
        return read_colour(path, ImageOptions(max_side=size, max_pixels=max_pixels))
    except CairnError as error:
        raise CairnError(
            "{name} cannot be shown: {reason}. Restore it, or index its folder again.",
            name=path.name,
            reason=error.message,
        ) from error


def refuse_other_content(path: Path, sha256: str | None) -> bool:
    """Raise CairnError if a file has changed since it was indexed: its path may be that of any picture on this machine.

    Returns False if it cannot be read: decoding it gives the reason.
    """
    try:
        digest = hash_photo(path)
    except OSError:
        return False
    if digest != sha256:
        raise CairnError(
            "{name} cannot be shown: its file has changed since it was indexed. Restore it, or index its folder again.",
            name=path.name,
        )
    return True


def forget_thumbnails(cache: Path, known: Container[str | None]) -> int:
    """Delete cached thumbnails of photos whose hashes are not in `known`; return the number of files."""
    removed = 0
    for path in (cache / THUMBNAILS).glob("[0-9a-f][0-9a-f]/*.jpg"):
        if _NAME.fullmatch(path.name) and path.name.partition("-")[0] not in known and not path.parent.is_symlink():
            path.unlink(missing_ok=True)
            removed += 1
    return removed
