"""Filters of photos of a collection: by name, folder, fields of metadata, place, and any imported value."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from index.errors import CairnError
from index.options.declaration import options_of
from retrieval.catalogue.metadata_store import column_key, folded_key
from retrieval.metadata.dates import read_date
from retrieval.metadata.fields import FIELDS, FieldFilter, describing
from retrieval.metadata.pages import read_pages
from retrieval.metadata.places import Near, Within
from retrieval.metadata.text import LONGEST_TAG, LONGEST_VALUE, clean
from retrieval.metadata.words import words_of

MOST_WORDS = 64
"""Words that a filter asks for, at most: each is looked up."""


@describing
@dataclass(frozen=True)
class PhotoFilter(FieldFilter):
    """Conditions on photos; all of them must hold. By default all photos pass.

    Parts of texts match in upper and lower case. Dates may be incomplete: a photo passes if it may have been taken
    between the beginning of `taken_from` and the end of `taken_to`. So one of 1923 passes from 1923-05 on.

    Parameters
    ----------
    {filters}
    near : Near or (latitude, longitude, kilometres), optional
        Place that it was taken at.
    where : mapping of str to str, or tuple of (str, str)
        Keys, or names of columns, and their whole values.
    hidden : bool or None
        True: only hidden photos. False: without hidden photos. None: with them.
    album : int, optional
        Only photos of an album, by its id.
    within : Within or (south, west, north, east), optional
        Parallels and meridians between which it was taken.

    Raises
    ------
    CairnError
        A date or pages cannot be parsed, or the first is after the last; a condition has no key; a field has another
        type.
    """

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
            raise CairnError("{first} is later than {last}: give the earlier date first.", first=first, last=last)
        conditions = tuple((folded_key(key), clean(value, LONGEST_VALUE)) for key, value in self.where)
        if any(not key or not value for key, value in conditions):
            raise CairnError("A condition is a key and a value, such as archive=Berlin.")
        pages = self.pages.strip()
        if pages:
            read_pages(pages)
        words = clean(self.words, LONGEST_VALUE)
        if len(words_of(words)) > MOST_WORDS:
            raise CairnError("A filter takes {most} words at most: leave some out.", most=MOST_WORDS)
        cleaned: dict[str, Any] = {"taken_from": first, "taken_to": last, "where": conditions}
        cleaned |= {"words": words, "pages": pages}
        for row in FIELDS.values():
            if row.kind.name == "text" and hasattr(self, row.name):
                cleaned[row.name] = clean(getattr(self, row.name), row.kind.longest)
        for name in ("tags", "without_tags"):
            # Ignore empty tags: forms send empty fields.
            cleaned[name] = tuple(tag for tag in (clean(one, LONGEST_TAG) for one in getattr(self, name)) if tag)
        for name, value in cleaned.items():
            object.__setattr__(self, name, value)

    def __bool__(self) -> bool:
        """Whether any photo that is not hidden might fail."""
        return any(getattr(self, one.name) for one in fields(self))

    def describe(self) -> dict[str, Any]:
        """The conditions that were set, for `--json`."""
        said = {key: value for key, value in asdict(self).items() if value}
        if self.where:
            said["where"] = [[column_key(key), value] for key, value in self.where]
        return {key: list(value) if isinstance(value, tuple) else value for key, value in said.items()}


def parse_condition(text: str) -> tuple[str, str]:
    """Parse KEY=VALUE; raises CairnError if it has another form."""
    key, equals, value = text.partition("=")
    if not equals:
        raise CairnError("A condition is written KEY=VALUE, such as archive=Berlin.")
    return key, value


def fields_of(wanted: PhotoFilter) -> dict[str, Any]:
    """The fields of a filter for addresses and forms; `retrieval.library.filters.filter_of` is the inverse."""
    values = {name: getattr(wanted, one.path[0]) for name, one in options_of(FieldFilter).items()}
    values |= {"hidden": wanted.hidden, "album": wanted.album}
    values["where"] = [f"{key}={value}" for key, value in wanted.where]
    for name in ("near", "within"):
        place = getattr(wanted, name)
        values[name] = ",".join(repr(float(number)) for number in asdict(place).values()) if place is not None else None
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in values.items()
        if value or (name == "album" and value is not None)
    }


def _as_field(name: str, value: Any) -> Any:
    """Convert a caller's value of a field to its type: one tag, a mapping of conditions, a place of three numbers."""
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
        declared = options_of(FieldFilter)[name]
        if declared.kind is not str:
            return declared.taken(value)
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
