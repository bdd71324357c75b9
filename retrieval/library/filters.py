"""Filters as a caller may give them."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from index.errors import CairnError
from retrieval.catalogue.filters import PhotoFilter
from retrieval.metadata.places import Near


def filter_from(where: PhotoFilter | Mapping[str, Any] | None) -> PhotoFilter | None:
    """Make a filter of its fields.

    Parameters
    ----------
    where : PhotoFilter or mapping, optional
        Tags may be one or several; near is latitude, longitude and kilometres; where is a mapping of keys to values.

    Raises
    ------
    CairnError
        A field is unknown, or its value is not understood.
    """
    if where is None or isinstance(where, PhotoFilter):
        return where
    if not isinstance(where, Mapping):
        raise CairnError(f"A filter is a cairn.Filter or a mapping of its fields, and not {type(where).__name__}.")
    known = [one.name for one in fields(PhotoFilter)]
    values: dict[str, Any] = {}
    for key, value in where.items():
        if key not in known:
            raise CairnError(f"A filter has no field {key!r}, only {', '.join(known)}; imported columns go into where.")
        if key in ("tags", "without_tags"):
            values[key] = (value,) if isinstance(value, str) else tuple(value)
        elif key == "near":
            values[key] = value if value is None or isinstance(value, Near) else Near(*(float(one) for one in value))
        elif key == "where":
            values[key] = tuple(value.items()) if isinstance(value, Mapping) else tuple(value)
        else:
            values[key] = str(value)
    return PhotoFilter(**values)
