"""Read metadata from a photo's file and its sidecars: the fields of `retrieval.metadata.fields`."""

import errno
import stat
import warnings
from pathlib import Path

from index.errors import Unreadable
from retrieval.metadata.combining import SourceTexts
from retrieval.metadata.containers import MetadataBlocks, find_blocks
from retrieval.metadata.dates import date_of_name
from retrieval.metadata.fields import Metadata, combined
from retrieval.metadata.iptc import read_iptc
from retrieval.metadata.pages import is_film, moment, split_page
from retrieval.metadata.sidecars import read_sidecars, read_takeout
from retrieval.metadata.xmp import read_xmp


def read_metadata(path: Path, strict: bool = False) -> Metadata:
    """Read the metadata of a photo's file: EXIF, IPTC-IIM and XMP of JPEG, TIFF, PNG, WebP, HEIC and AVIF.

    No pixel is decoded. Unreadable or invalid values are ignored; no content of a file raises an error. With `strict`,
    Unreadable is raised if the file is missing or cannot be read.

    XMP sidecars (photo.jpg.xmp, then photo.xmp) take precedence over the file itself, and that over the JSON of Google
    Takeout; the date in the name of the file, and the time of a frame of a film, come last. Within one of them, the
    order of sources of each field counts. Tags of all are combined. A page may have its own sidecar; all pages share
    the metadata of the file.
    """
    own, (path, page) = path, split_page(path)
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait for ever
            return Metadata()
        with path.open("rb") as file, warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"PIL\.")  # about damaged data
            blocks = find_blocks(file)
    except (OSError, ValueError) as error:  # ValueError: no path of a file has NUL in it
        # A damaged file may have offsets beyond its end: EINVAL.
        if strict and isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise Unreadable(f"the file cannot be read ({error.strerror or error})") from error
        return Metadata()
    sidecars = [*(read_sidecars(own) if own != path else ()), *read_sidecars(path)]
    named = date_of_name(path.name)
    last = {
        "name:date": [named] if named else [],
        "name:moment": [f"{path.name} at {moment(page)}"] if page is not None and is_film(path) else [],
    }
    return combined([*sidecars, _own_texts(blocks), *read_takeout(path), last])


def _own_texts(blocks: MetadataBlocks) -> SourceTexts:
    """All metadata in the file itself."""
    return {**blocks.exif, **read_iptc(blocks.iptc), **read_xmp(blocks.xmp)}
