"""What a photo's file says of the photo: when and where it was taken, with which camera, its title and its tags."""

import errno
import stat
import warnings
from collections.abc import Iterable
from pathlib import Path

from index.errors import Unreadable
from retrieval.metadata.containers import find_blocks
from retrieval.metadata.exif import Exif
from retrieval.metadata.fields import Metadata
from retrieval.metadata.iptc import Iptc, read_iptc
from retrieval.metadata.text import LONGEST_CAMERA, LONGEST_TITLE, clean, clean_position, clean_tags
from retrieval.metadata.xmp import Xmp, read_xmp


def read_metadata(path: Path, strict: bool = False) -> Metadata:
    """Read the metadata of a photo's file: EXIF, IPTC-IIM and XMP of JPEG, TIFF, PNG, WebP, HEIC and AVIF.

    No pixel is decoded. What cannot be read, or makes no sense, is left out; nothing in a file raises an error.

    If several say the same, a date is that of EXIF (DateTimeOriginal), else the one that people gave (IPTC,
    photoshop:DateCreated), else of digitisation, else EXIF's DateTime, when the file was last changed; a title is
    that of XMP, IPTC, their captions, or EXIF's description; tags are those of XMP and of IPTC together.

    Parameters
    ----------
    path : Path
        The file.
    strict : bool
        Raise an error where the file is not there, or the system or the disk does not give it out.

    Returns
    -------
    Metadata

    Raises
    ------
    Unreadable
        With `strict` alone: nothing is known of what the file says.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait for ever
            return Metadata()
        with path.open("rb") as file, warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"PIL\.")  # of what is damaged
            blocks = find_blocks(file)
    except (OSError, ValueError) as error:  # ValueError: no path of a file has NUL in it
        # A damaged file sends its reader to places that there are not: EINVAL.
        if strict and isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise Unreadable(f"the file cannot be read ({error.strerror or error})") from error
        return Metadata()
    return _combine(blocks.exif, read_iptc(blocks.iptc), read_xmp(blocks.xmp))


def _combine(exif: Exif, iptc: Iptc, xmp: Xmp) -> Metadata:
    dates = (exif.original, xmp.original, iptc.taken, xmp.created, exif.digitised, xmp.digitised, exif.changed)
    titles = (clean(one, LONGEST_TITLE) for one in (xmp.title, iptc.title, xmp.caption, iptc.caption, exif.description))
    latitude, longitude = clean_position(exif.latitude, exif.longitude)
    if latitude is None:
        latitude, longitude = clean_position(xmp.latitude, xmp.longitude)
    return Metadata(
        taken=next((date for date in dates if date), None),
        camera=_camera(exif.make or xmp.make, exif.model or xmp.model),
        latitude=latitude,
        longitude=longitude,
        title=next((title for title in titles if title), None),
        tags=clean_tags((*xmp.subjects, *_whole_keywords(iptc.keywords, xmp.subjects))),
    )


def _whole_keywords(keywords: Iterable[str], subjects: Iterable[str]) -> list[str]:
    """Keywords of IPTC that are not subjects of XMP cut off: it keeps 64 bytes of each."""
    return [
        keyword
        for keyword in keywords
        if len(keyword.encode()) < 60 or not any(subject.startswith(keyword) for subject in subjects)
    ]


def _camera(make: str, model: str) -> str | None:
    """Make and model, the make once: many models begin with it."""
    make, model = clean(make, LONGEST_CAMERA), clean(model, LONGEST_CAMERA)
    if make and make.split()[0].casefold() not in model.casefold():
        model = f"{make} {model}"
    return model.strip()[:LONGEST_CAMERA].strip() or None
