"""Filters as a caller may give them."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from index.errors import CairnError
from retrieval.catalogue.filters import PhotoFilter


def filter_from(where: PhotoFilter | Mapping[str, Any] | None) -> PhotoFilter | None:
    """Make a filter of its fields.

    Parameters
    ----------
    where : PhotoFilter or mapping, optional
        The fields of a `PhotoFilter`; None leaves a field out.

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
    unknown = [key for key in where if key not in known]
    if unknown:
        raise CairnError(
            f"A filter has no field {unknown[0]!r}, only {', '.join(known)}; imported columns go into where."
        )
    return PhotoFilter(**{key: value for key, value in where.items() if value is not None})
