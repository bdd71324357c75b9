"""Options as frozen dataclasses, written to and read from TOML."""

import dataclasses
import tomllib
import types
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import tomli_w

from index.errors import CairnError
from retrieval.features import FeatureOptions
from retrieval.image import ImageOptions

FORMAT = 1
"""Version of the collection's format on disk."""

T = TypeVar("T")


@dataclass(frozen=True)
class CollectionOptions:
    """What a collection is made with; fixed when it is created."""

    descriptor: str = "rootsift"  # name of the descriptor
    words: int = 0  # size of the vocabulary; 0: one word for 30 features, at most 500,000
    search: str = "faiss"  # nearest-neighbour search behind the vocabulary: faiss, flann or pyflann
    iterations: int = 10  # of approximate k-means
    seed: int = 0  # of everything random
    sample: int = 5_000  # photos whose features make the vocabulary
    batch: int = 1_000  # photos to a segment
    keep_descriptors: bool = False  # keep descriptors, for the engine "raw"
    image: ImageOptions = field(default_factory=ImageOptions)  # how photos are read
    features: FeatureOptions = field(default_factory=FeatureOptions)  # regions and patches


def write_options(path: Path, options: CollectionOptions) -> None:
    """Write options beside the version of the format, whole or not at all."""
    text = tomli_w.dumps({"format": FORMAT, **_plain(options)})
    temporary = path.with_suffix(".writing")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def read_options(path: Path) -> CollectionOptions:
    """Read what `write_options` wrote.

    Raises
    ------
    CairnError
        The file is missing or damaged, or of a later format.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CairnError(f"{path.parent} is not a collection: make one with cairn index.") from None
    except (OSError, ValueError) as error:
        raise CairnError(f"{path} cannot be read ({error}): restore it from a copy.") from error
    version = table.pop("format", None)
    if version != FORMAT:
        raise CairnError(f"{path.parent} has the format {version}, and this Cairn reads format {FORMAT}: update Cairn.")
    try:
        return _build(CollectionOptions, table)
    except TypeError as error:
        raise CairnError(f"{path} is damaged ({error}): restore it from a copy.") from error


def _plain(options: Any) -> dict[str, Any]:
    """Nested tables of an options dataclass; what is None is left out, as TOML has no word for it."""
    table = {}
    for item in dataclasses.fields(options):
        value = getattr(options, item.name)
        if dataclasses.is_dataclass(value):
            table[item.name] = _plain(value)
        elif value is not None:
            table[item.name] = value
    return table


def _build(kind: type[T], table: dict[str, Any]) -> T:
    """Build an options dataclass from its table; TypeError where a key or a type does not fit."""
    types_of = typing.get_type_hints(kind)
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in types_of:
            raise TypeError(f"unknown option {key!r}")
        wanted = types_of[key]
        if dataclasses.is_dataclass(wanted):
            if not isinstance(value, dict):
                raise TypeError(f"{key!r} is not a table")
            values[key] = _build(typing.cast(type, wanted), value)
        elif _fits(value, wanted):
            values[key] = value
        else:
            raise TypeError(f"{key!r} is not of the right type")
    return kind(**values)


def _fits(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, types.UnionType):
        return any(_fits(value, one) for one in typing.get_args(wanted))
    if wanted is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return type(value) is wanted
