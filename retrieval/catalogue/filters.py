"""Which photos of a collection are meant: by name, folder, date, camera, tags, title, place, and any imported value."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from index.errors import CairnError
from retrieval.catalogue.metadata_store import LONGEST_VALUE, column_key, folded_key
from retrieval.metadata.dates import read_date
from retrieval.metadata.places import Near, Within
from retrieval.metadata.text import LONGEST_CAMERA, LONGEST_TAG, LONGEST_TITLE, clean


@dataclass(frozen=True)
class PhotoFilter:
    """What a photo has to fulfil: all of it. What is left as it is lets all photos pass.

    Parts are found in upper and lower case. Dates may end early: a photo passes that may have been taken in the time
    from the beginning of `taken_from` to the end of `taken_to`, so one of 1923 passes from 1923-05 on.

    Parameters
    ----------
    name : str
        Part of the name.
    folder : str
        Folder of the name, or one above it.
    taken_from : str
        First date, such as 1923, 1923-05 or 1923-05-17.
    taken_to : str
        Last date.
    camera : str
        Part of make and model.
    title : str
        Part of the title.
    tags : str or tuple of str
        Whole tags; a photo has all of them.
    without_tags : str or tuple of str
        Whole tags; a photo has none of them.
    near : Near or (latitude, longitude, kilometres), optional
        Place that it was taken at.
    where : mapping of str to str, or tuple of (str, str)
        Keys, or names of columns, and their whole values.
    hidden : bool or None
        Hidden photos alone, where it is True; they are left out where it is False. None: it makes no difference.
    album : int, optional
        Photos of an album alone, by its id.
    within : Within or (south, west, north, east), optional
        Between which parallels and meridians it was taken.

    Raises
    ------
    CairnError
        A date is not understood, or the first is behind the last; a condition has no key; a field is of another type.
    """

    name: str = ""
    folder: str = ""
    taken_from: str = ""  # see `retrieval.metadata.dates`
    taken_to: str = ""
    camera: str = ""
    title: str = ""
    tags: tuple[str, ...] = ()
    without_tags: tuple[str, ...] = ()
    near: Near | None = None
    where: tuple[tuple[str, str], ...] = ()
    hidden: bool | None = False
    album: int | None = None
    within: Within | None = None

    def __post_init__(self) -> None:
        for one in fields(self):
            object.__setattr__(self, one.name, _as_field(one.name, getattr(self, one.name)))
        first, last = (_date(text) for text in (self.taken_from, self.taken_to))
        if first and last and first > last and not first.startswith(last):
            raise CairnError(f"{first} is later than {last}: give the earlier date first.")
        conditions = tuple((folded_key(key), clean(value, LONGEST_VALUE)) for key, value in self.where)
        if any(not key or not value for key, value in conditions):
            raise CairnError("A condition is a key and a value, such as archive=Berlin.")
        cleaned: dict[str, Any] = {
            "taken_from": first,
            "taken_to": last,
            "camera": clean(self.camera, LONGEST_CAMERA),
            "title": clean(self.title, LONGEST_TITLE),
            "where": conditions,
        }
        for name in ("tags", "without_tags"):
            # An empty tag is ignored: forms send what was left empty.
            cleaned[name] = tuple(tag for tag in (clean(one, LONGEST_TAG) for one in getattr(self, name)) if tag)
        for name, value in cleaned.items():
            object.__setattr__(self, name, value)

    def __bool__(self) -> bool:
        """Whether any photo might not pass, but for those that are hidden."""
        return any(getattr(self, one.name) for one in fields(self))

    def describe(self) -> dict[str, Any]:
        """What `--json` reports: only what was asked for."""
        said = {key: value for key, value in asdict(self).items() if value}
        if self.where:
            said["where"] = [[column_key(key), value] for key, value in self.where]
        return {key: list(value) if isinstance(value, tuple) else value for key, value in said.items()}


def parse_condition(text: str) -> tuple[str, str]:
    """Read KEY=VALUE; raises CairnError if it is something else."""
    key, equals, value = text.partition("=")
    if not equals:
        raise CairnError("A condition is written KEY=VALUE, such as archive=Berlin.")
    return key, value


def filter_of(fields: Mapping[str, Any]) -> PhotoFilter:
    """Make a filter of what addresses and forms have.

    Parameters
    ----------
    fields : mapping
        Any of name, folder, taken_from, taken_to, camera and title, as text; tag, without_tag and where (KEY=VALUE), as
        lists of texts; near, as LATITUDE,LONGITUDE,KM; within, as SOUTH,WEST,NORTH,EAST; hidden, true or false;
        album, its id. None and what is empty asks for nothing; others do not count.

    Raises
    ------
    CairnError
        One of them is not understood.
    """
    texts = {name: fields.get(name) or "" for name in ("name", "folder", "taken_from", "taken_to", "camera", "title")}
    near = fields.get("near")
    try:
        place = Near(*(float(number) for number in near.split(","))) if near else None
    except (ValueError, TypeError):
        raise CairnError("A place is written LATITUDE,LONGITUDE,KM, such as 48.8584,2.2945,10.") from None
    within = fields.get("within")
    try:
        box = Within(*(float(number) for number in within.split(","))) if within else None
    except (ValueError, TypeError):
        raise CairnError("A box is written SOUTH,WEST,NORTH,EAST in degrees, such as 48.8,2.2,48.9,2.4.") from None
    return PhotoFilter(
        **texts,
        tags=tuple(fields.get("tag") or ()),
        without_tags=tuple(fields.get("without_tag") or ()),
        near=place,
        within=box,
        where=tuple(parse_condition(one) for one in fields.get("where") or ()),
        hidden=bool(fields.get("hidden")),
        album=fields.get("album"),
    )


def _as_field(name: str, value: Any) -> Any:
    """Bring what a caller gives for a field into its type: one tag, a mapping of conditions, a place of three numbers.

    Raises
    ------
    CairnError
        It is something else.
    """
    try:
        if name == "hidden":
            return value if value is None else bool(value)
        if name == "album":
            return None if value is None else int(value)
        if name in ("tags", "without_tags"):
            return (value,) if isinstance(value, str) else tuple(str(one) for one in value)
        if name == "near":
            return value if value is None or isinstance(value, Near) else Near(*(float(one) for one in value))
        if name == "within":
            return value if value is None or isinstance(value, Within) else Within(*(float(one) for one in value))
        if name == "where":
            pairs = value.items() if isinstance(value, Mapping) else value
            return tuple((str(key), str(one)) for key, one in pairs)
        return "" if value is None else str(value)
    except (TypeError, ValueError):
        wanted = {
            "near": "latitude, longitude and kilometres",
            "within": "south, west, north and east",
            "where": "a mapping of columns to values",
            "album": "the number of an album",
        }.get(name, "one tag, or several")
        raise CairnError(f"The field {name!r} of a filter is {wanted}, and not {value!r}.") from None


def _date(text: str) -> str:
    if not text.strip():
        return ""
    date = read_date(text)
    if date is None:
        raise CairnError("Give a date that exists, as 1923, 1923-05 or 1923-05-17.")
    return date


SHOWN, EVERY = PhotoFilter(), PhotoFilter(hidden=None)
"""Filters that all photos pass that are not hidden; and all photos."""
