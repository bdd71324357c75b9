"""Conversion of callers' arguments to filters."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from index.errors import CairnError
from index.options.declaration import build, options_of
from retrieval.catalogue.filters import PhotoFilter, parse_condition
from retrieval.metadata.fields import FieldFilter
from retrieval.metadata.places import Near, Within

Filter = PhotoFilter
"""What `cairn.Filter` is."""


def filter_from(where: PhotoFilter | Mapping[str, Any] | None) -> PhotoFilter | None:
    """Make a filter of the fields of a `PhotoFilter`; None leaves a field out."""
    if where is None or isinstance(where, PhotoFilter):
        return where
    if not isinstance(where, Mapping):
        raise CairnError(f"A filter is a cairn.Filter or a mapping of its fields, and not {type(where).__name__}.")
    known = [one.name for one in fields(PhotoFilter)]
    unknown = [key for key in where if key not in known]
    if unknown:
        raise CairnError(
            f"A filter has no field {unknown[0]!r}, only {', '.join(known)}; imported columns go into where."
        )
    return PhotoFilter(**{key: value for key, value in where.items() if value is not None})


def filter_of(given: Mapping[str, Any]) -> PhotoFilter:
    """Make a filter from the fields of an address or form.

    These are options of `FieldFilter`, by name; where (KEY=VALUE), as a list of texts; near, as LATITUDE,LONGITUDE,KM;
    within, as SOUTH,WEST,NORTH,EAST; hidden, true or false; album, its id. None and empty values, and other keys, are
    ignored.
    """
    values = {name: given[name] for name in options_of(FieldFilter) if given.get(name)}
    near = given.get("near")
    try:
        place = Near(*(float(number) for number in near.split(","))) if near else None
    except (ValueError, TypeError):
        raise CairnError("A place is written LATITUDE,LONGITUDE,KM, such as 48.8584,2.2945,10.") from None
    within = given.get("within")
    try:
        box = Within(*(float(number) for number in within.split(","))) if within else None
    except (ValueError, TypeError):
        raise CairnError("A box is written SOUTH,WEST,NORTH,EAST in degrees, such as 48.8,2.2,48.9,2.4.") from None
    return replace(
        build(PhotoFilter, values),
        near=place,
        within=box,
        where=tuple(parse_condition(one) for one in given.get("where") or ()),
        hidden=bool(given.get("hidden")),
        album=given.get("album"),
    )
