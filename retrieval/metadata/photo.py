"""What a photo's file says of the photo: when and where it was taken, with which camera, its title and its tags."""

import errno
import math
import re
import stat
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from index.errors import Unreadable
from index.text import printable
from retrieval.metadata.containers import find_blocks
from retrieval.metadata.exif import Exif
from retrieval.metadata.iptc import Iptc, read_iptc
from retrieval.metadata.xmp import Xmp, read_xmp

LONGEST_TITLE, LONGEST_CAMERA, LONGEST_TAG, MOST_TAGS = 1000, 256, 200, 200
# Controls, and what turns the direction of the text that follows: nothing that belongs on a page of others' texts.
_UNWANTED = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff]+")
_JOINERS = "\u200c\u200d"


@dataclass(frozen=True)
class Metadata:
    """What is known of a photo; every text is clean (see `clean`)."""

    taken: str | None = None  # local time of the camera, as `retrieval.metadata.dates` writes dates
    camera: str | None = None  # make and model
    latitude: float | None = None  # degrees north, WGS 84; both or none
    longitude: float | None = None  # degrees east
    title: str | None = None
    tags: tuple[str, ...] = ()  # none twice, in upper or lower case


def read_metadata(path: Path, strict: bool = False) -> Metadata:
    """Read the metadata of a photo's file: EXIF, IPTC-IIM and XMP of JPEG, TIFF, PNG, WebP, HEIC and AVIF.

    No pixel is decoded. What cannot be read, or makes no sense, is left out; nothing in a file raises an error.

    Where several say the same, a date is that of EXIF (DateTimeOriginal), else the one that people gave (IPTC,
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
        with path.open("rb") as file:
            blocks = find_blocks(file)
    except (OSError, ValueError) as error:  # ValueError: no path of a file has NUL in it
        # A damaged file sends its reader to places that there are not: EINVAL.
        if strict and isinstance(error, OSError) and error.errno != errno.EINVAL:
            raise Unreadable(f"the file cannot be read ({error.strerror or error})") from error
        return Metadata()
    return _combine(blocks.exif, read_iptc(blocks.iptc), read_xmp(blocks.xmp))


def clean(text: str, longest: int) -> str:
    r"""Text in one line and in Unicode's composed form (NFC), without control characters and other invisible commands.

    >>> clean("  Grand\tCanal\0 ", 20)
    'Grand Canal'
    >>> clean("Kathe\xaddrale", 20)
    'Kathedrale'
    """
    text = _UNWANTED.sub(" ", unicodedata.normalize("NFC", text[: 4 * longest]))
    # Soft hyphens and their like would let equal words differ; joiners belong to the spelling of some languages.
    text = "".join(one for one in text if one in _JOINERS or unicodedata.category(one) != "Cf")
    return " ".join(printable(text).split())[:longest].strip()


def clean_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Clean tags, none empty, and none twice in upper or lower case."""
    cleaned = (clean(tag, LONGEST_TAG) for tag in tags)
    kept: dict[str, str] = {}
    for tag in cleaned:
        if tag and len(kept) < MOST_TAGS:
            kept.setdefault(tag.casefold(), tag)
    return tuple(kept.values())


def clean_position(latitude: float | None, longitude: float | None) -> tuple[float, float] | tuple[None, None]:
    """Degrees that are a place on Earth, or none.

    Degrees 0 and 0, in the Gulf of Guinea, are what devices write that do not know where they are.
    """
    if latitude is None or longitude is None or not (math.isfinite(latitude) and math.isfinite(longitude)):
        return None, None
    if abs(latitude) > 90 or abs(longitude) > 180 or (latitude, longitude) == (0, 0):
        return None, None
    return round(latitude, 7), round(longitude, 7)  # a centimetre


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
