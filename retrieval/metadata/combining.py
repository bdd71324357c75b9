"""Combine the values of one field from several sources: EXIF, IPTC, XMP, sidecar files."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from retrieval.metadata.dates import read_day
from retrieval.metadata.kinds import LATITUDE, LONGITUDE
from retrieval.metadata.text import LONGEST_CAMERA, clean, clean_position, clean_tags

SourceTexts = Mapping[str, Sequence[str]]
"""Texts of one file by their sources, such as ``exif:DateTimeOriginal`` (see `Field`)."""

ALBUMS = "Albums"
"""Where Cairn writes albums among hierarchical subjects: what stands below it is no tag."""

_INTERNAL = "_digikam_internal_tags_"  # internal tags of digiKam
_IPTC_KEEPS = 60  # bytes from which a keyword may be truncated: IPTC allows 64


def first(layers: Sequence[SourceTexts], sources: Sequence[str], read: Callable[[str], Any]) -> Any:
    """The first valid value; None if there is no valid one."""
    found = (read(text) for text in _texts(layers, sources))
    return next((value for value in found if value is not None), None)


def day(layers: Sequence[SourceTexts], sources: Sequence[str]) -> str | None:
    """The first date; of one whose time is not understood, the day."""
    return next((date for text in _texts(layers, sources) if (date := read_day(text))), None)


def tags(layers: Sequence[SourceTexts], sources: Sequence[str]) -> tuple[str, ...]:
    """All tags; of a hierarchical subject each level is one."""
    return clean_tags(tag for layer in layers for tag in _tags_of(layer, sources))


def camera(layers: Sequence[SourceTexts], sources: Sequence[str]) -> str | None:
    """Make and model, the make once: many models begin with it."""
    makes, models = ([one for one in sources if one.endswith(end)] for end in ("Make", "Model"))
    make, model = (clean(next(_texts(layers, some), ""), LONGEST_CAMERA) for some in (makes, models))
    if make and make.split()[0].casefold() not in model.casefold():
        model = f"{make} {model}"
    return model.strip()[:LONGEST_CAMERA].strip() or None


def latitude(layers: Sequence[SourceTexts], sources: Sequence[str]) -> float | None:
    """Degrees north, from the first source that has both."""
    return _position(layers, sources)[0]


def longitude(layers: Sequence[SourceTexts], sources: Sequence[str]) -> float | None:
    """Degrees east, from the first source that has both."""
    return _position(layers, [one.replace("ongitude", "atitude") for one in sources])[1]


def _position(layers: Sequence[SourceTexts], latitudes: Sequence[str]) -> tuple[float, float] | tuple[None, None]:
    for layer in layers:
        for north in latitudes:
            texts = [next(iter(layer.get(one, ())), "") for one in (north, north.replace("atitude", "ongitude"))]
            found = clean_position(LATITUDE.read(texts[0]), LONGITUDE.read(texts[1]))
            if found[0] is not None:
                return found
    return None, None


def _texts(layers: Sequence[SourceTexts], sources: Sequence[str]) -> Iterator[str]:
    return (text for layer in layers for source in sources for text in layer.get(source, ()))


def _tags_of(layer: SourceTexts, sources: Sequence[str]) -> Iterator[str]:
    whole = list(_texts([layer], [one for one in sources if one.startswith("xmp:dc:")]))
    for source in sources:
        texts = layer.get(source, ())
        if source.startswith("iptc:"):
            yield from _not_cut_off(texts, whole)
        elif source.endswith((":hierarchicalSubject", ":TagsList")):
            yield from (level for one in texts for level in _levels(one))
        else:
            yield from texts


def _levels(subject: str) -> list[str]:
    """The levels of a hierarchical subject, such as Places|Rome or Places/Rome; empty if it is no tag."""
    levels = subject.split("|" if "|" in subject else "/")
    return [] if levels[0] == ALBUMS or levels[0].casefold() == _INTERNAL else levels


def _not_cut_off(keywords: Iterable[str], subjects: Iterable[str]) -> list[str]:
    """Keywords of IPTC that are not subjects of XMP cut off."""
    return [
        keyword
        for keyword in keywords
        if len(keyword.encode()) < _IPTC_KEEPS or not any(subject.startswith(keyword) for subject in subjects)
    ]
