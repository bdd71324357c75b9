"""Notes of a segment on its photos, mainly paths and hashes, from which a lost catalogue can be rebuilt."""

import json
from collections.abc import Sequence
from typing import Any

from index.errors import CairnError
from retrieval.catalogue.schema import ImageRow

_KEYS = (
    *("number", "path", "name", "sha256", "size", "mtime_ns", "width", "height", "features", "quantisation_error"),
    "date_added",
)
_OLD_KEYS = _KEYS[:-1]  # of earlier versions
_TYPES: dict[str, tuple[type, ...]] = {key: (int, type(None)) for key in _KEYS} | {
    "number": (int,),
    "path": (str,),
    "name": (str, type(None)),
    "sha256": (str, type(None)),
    "features": (int,),
    "quantisation_error": (float, int, type(None)),
    "date_added": (str, type(None)),
}


def write_notes(rows: Sequence[ImageRow]) -> bytes:
    """Encode notes on photos, in the order of their positions, for `read_notes`."""
    return json.dumps([[getattr(row, key) for key in _KEYS] for row in rows], separators=(",", ":")).encode()


def read_notes(notes: bytes) -> list[ImageRow]:
    """Decode the notes of `write_notes`: rows with their positions, without a segment."""
    try:
        entries = json.loads(notes)
        rows = [_row(position, entry) for position, entry in enumerate(entries)]
    except (ValueError, TypeError, RecursionError) as error:
        raise CairnError("The notes of a segment are damaged: run {cairn check}.") from error
    return rows


def _row(position: int, entry: list[Any]) -> ImageRow:
    keys = _OLD_KEYS if len(entry) == len(_OLD_KEYS) else _KEYS
    values = dict(zip(keys, entry, strict=True))
    for key, value in values.items():
        if not isinstance(value, _TYPES[key]) or isinstance(value, bool):
            raise TypeError(f"{key} is {value!r}")
    return ImageRow(**values, position=position)
