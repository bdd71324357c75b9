"""Changes of metadata by hand, stored like values of an imported table, and undone as a whole."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import sqlalchemy as sa
from pydantic import Field
from sqlalchemy.orm import Session

from index.errors import CairnError
from index.reports import Report
from retrieval.catalogue.database import chunks
from retrieval.catalogue.metadata_store import TAG, import_values, values_by_number
from retrieval.catalogue.schema import FROM_FILE, IMPORTED, INDEXED, ImageRow
from retrieval.metadata.dates import read_date
from retrieval.metadata.fields import FIELDS
from retrieval.metadata.kinds import MOST_STARS
from retrieval.metadata.text import LONGEST_CAPTION, LONGEST_TITLE, clean, clean_tags

TITLE, CAPTION, TAKEN, RATING, FAVOURITE = "title", "caption", "taken", "rating", "favourite"
KEYS = (TITLE, CAPTION, TAKEN, TAG)
"""Keys of the metadata in a summary."""
_LONGEST = {TITLE: LONGEST_TITLE, CAPTION: LONGEST_CAPTION}  # characters
_MARK = FIELDS[FAVOURITE].kind
MOST_SAID = 5
"""Most different titles, captions and dates in a summary."""

Values = dict[str, tuple[str, ...]]
"""Imported values of a photo, by key; an empty value: that of its file counts."""


@dataclass(frozen=True)
class Edit:
    """Changes; None or empty: no change."""

    title: str | None = None  # the title; "": that of the file
    caption: str | None = None  # the caption; "": that of the file
    taken: str | None = None  # the date, such as 1923, 1923-05 or 1923-05-17; "": that of the file
    tags_add: tuple[str, ...] = ()  # tags to add
    tags_remove: tuple[str, ...] = ()  # tags to remove, ignoring case; those of a file stay
    rating: int | None = None  # stars, 1 to 5; 0: that of the file
    favourite: bool | None = None  # mark them as favourites, or no longer


@dataclass(frozen=True)
class Edited(Report):
    """Result of `Collection.edit`."""

    changed: Annotated[int, "Changed photos."]
    kept: Annotated[int, "Photos that keep a tag to be removed, as it is in their files."]
    before: Annotated[
        dict[int, dict[str, tuple[str, ...]]], "Earlier values, by number and field, for `Collection.undo`."
    ]


@dataclass(frozen=True)
class TagOfPhotos:
    """A tag that some of the photos have."""

    tag: str
    photos: int
    imported: Annotated[int, Field(description="From so many it can be removed; the files of the others say it.")]


@dataclass(frozen=True)
class PhotosSummary:
    """Editable values of some photos."""

    tags: Annotated[list[TagOfPhotos], Field(description="Those of the most photos first.")]
    titles: Annotated[list[str], Field(description=f'At most {MOST_SAID} different ones; "": none.')]
    captions: list[str]
    dates: list[str]


def edit_photos(session: Session, photos: Sequence[int], edit: Edit) -> Edited:
    """Apply an `Edit` to all of some photos, or to none; `before` of the report is for `restore_photos`."""
    texts = {TITLE: edit.title, CAPTION: edit.caption, TAKEN: edit.taken}
    single = _cleaned({key: (text,) for key, text in texts.items() if text is not None})
    single |= _cleaned({RATING: (str(edit.rating),) if edit.rating else ()} if edit.rating is not None else {})
    single |= _cleaned({FAVOURITE: _MARK.write(edit.favourite)} if edit.favourite is not None else {})
    add = clean_tags(edit.tags_add)
    gone = {tag.casefold() for tag in clean_tags(edit.tags_remove)} - {tag.casefold() for tag in add}
    keys = [*single, *([TAG] if add or gone else [])]
    kept, before, after = 0, dict[int, Values](), dict[int, Values]()
    for number, values in values_by_number(session, _indexed(session, photos), keys).items():
        of_file = {key: tuple(values.get((FROM_FILE, key), ())) for key in keys}
        imported = {key: tuple(values.get((IMPORTED, key), ())) for key in keys}
        changed = {key: value for key, value in single.items() if value != (imported[key] or of_file[key])}
        if edit.favourite is False and of_file[FAVOURITE] != _MARK.write(True):
            changed[FAVOURITE] = ()  # as in the file
        if add or gone:
            own = {tag.casefold() for tag in of_file[TAG]}
            left = [tag for tag in imported[TAG] if tag.casefold() not in gone]
            tags = clean_tags([*left, *(tag for tag in add if tag.casefold() not in own)])
            kept += not own.isdisjoint(gone)
            changed[TAG] = tags
        changed = {key: value for key, value in changed.items() if value != imported[key]}
        if changed:
            after[number] = changed
            before[number] = {key: imported[key] for key in changed}
    import_values(session, after)
    return Edited(len(before), kept, before)


def restore_photos(session: Session, before: Mapping[int, Mapping[str, Sequence[str]]]) -> int:
    """Undo an edit; return the number of its photos that still exist."""
    values = {int(number): _cleaned(of_photo) for number, of_photo in before.items()}
    present = _indexed(session, list(values))
    import_values(session, {number: values[number] for number in present})
    return len(present)


def summarise(session: Session, photos: Sequence[int]) -> PhotosSummary:
    """Summarise the editable values of some photos; those not in the collection are ignored."""
    spelt: dict[str, str] = {}
    counts: dict[str, list[int]] = {}
    said: dict[str, dict[str, None]] = {TITLE: {}, CAPTION: {}, TAKEN: {}}
    by_number = values_by_number(session, _indexed(session, photos), KEYS)
    for values in by_number.values():
        imported = {tag.casefold() for tag in values.get((IMPORTED, TAG), ())}
        for tag in {
            tag.casefold(): tag for source in (FROM_FILE, IMPORTED) for tag in values.get((source, TAG), ())
        }.values():
            spelt.setdefault(tag.casefold(), tag)
            count = counts.setdefault(tag.casefold(), [0, 0])
            count[0] += 1
            count[1] += tag.casefold() in imported
        for key, different in said.items():
            one = (values.get((IMPORTED, key)) or values.get((FROM_FILE, key)) or [""])[0]
            if len(different) < MOST_SAID:
                different[one] = None
    tags = [TagOfPhotos(spelt[key], *count) for key, count in counts.items()]
    tags.sort(key=lambda one: (-one.photos, one.tag.casefold()))
    return PhotosSummary(tags, *map(list, said.values()))


def _indexed(session: Session, photos: Sequence[int]) -> list[int]:
    """Those of some photos that are in the collection, each once, in their order."""
    wanted = list(dict.fromkeys(int(number) for number in photos))
    present: set[int] = set()
    for some in chunks(wanted):
        query = sa.select(ImageRow.number).where(ImageRow.number.in_(some), ImageRow.state == INDEXED)
        present.update(session.scalars(query))
    return [number for number in wanted if number in present]


def _cleaned(values: Mapping[str, Sequence[str]]) -> Values:
    """Values as stored; raises CairnError if a key cannot be edited, or a date is invalid."""
    cleaned: Values = {}
    for key, several in values.items():
        if key == TAG:
            cleaned[key] = clean_tags(several)
        elif key in _LONGEST:
            cleaned[key] = tuple(text for text in (clean(one, _LONGEST[key]) for one in several[:1]) if text)
        elif key == TAKEN:
            texts = [one.strip() for one in several[:1] if one.strip()]
            dates = [read_date(one) for one in texts]
            if None in dates:
                raise CairnError(
                    "{value} is not a date: write it as 1923, 1923-05 or 1923-05-17.", value=repr(clean(texts[0], 40))
                )
            cleaned[key] = tuple(date for date in dates if date is not None)
        elif key == RATING:
            if any(FIELDS[key].kind.read(one) is None for one in several[:1]):
                raise CairnError("A rating is a number of stars, 1 to {most}.", most=MOST_STARS)
            cleaned[key] = tuple(several[:1])
        elif key == FAVOURITE:
            cleaned[key] = tuple(text for one in several[:1] for text in _MARK.write(bool(_MARK.read(one))))
        else:
            raise CairnError("Titles, captions, dates, ratings, favourites and tags can be edited, and nothing else.")
    return cleaned
