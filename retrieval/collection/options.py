"""Options as frozen dataclasses, written to and read from TOML."""

import dataclasses
import tomllib
import types
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import tomli_w

from index.arrays import check_format, save_bytes
from index.errors import CairnError, refuse_unreadable
from retrieval.collection.layout import DESCRIPTOR
from retrieval.features.options import FeatureOptions
from retrieval.photos.options import ImageOptions, new_collection

FORMAT = 2
"""Version of the collection's format on disk."""

_LARGEST = 1 << 20  # bytes of the file

T = TypeVar("T")


@dataclass(frozen=True)
class CollectionOptions:
    """What a collection is made with; fixed when it is created."""

    descriptor: str = "rootsift"  # name of the descriptor
    words: int = 0  # size of the vocabulary; 0: one word for 30 features, at most 500,000
    search: str = "ivf"  # nearest-neighbour search behind the vocabulary: ivf, faiss, flann or pyflann
    iterations: int = 10  # of approximate k-means
    seed: int = 0  # of everything random
    sample: int = 5_000  # photos whose features make the vocabulary, drawn at random; 0: all
    sample_from: str | None = None  # folder that they are drawn from, of the photos that are indexed; None: all of them
    batch: int = 1_000  # photos to a segment
    keep_descriptors: bool = False  # keep descriptors, for the engine "raw"
    signature: str = "none"  # signature of a feature, for the engine "signatures": none, or a source and its bits
    image: ImageOptions = field(default_factory=new_collection)  # how photos are read
    features: FeatureOptions = field(default_factory=FeatureOptions)  # regions and patches


def write_options(path: Path, options: CollectionOptions) -> None:
    """Write options beside the version of the format, whole or not at all."""
    save_bytes(path, tomli_w.dumps({"format": FORMAT, **_plain(options)}).encode())


def read_options(path: Path) -> CollectionOptions:
    """Read what `write_options` wrote.

    Raises
    ------
    CairnError
        The file is missing or damaged, or of a later format.
    """
    try:
        if path.exists() and (not path.is_file() or path.stat().st_size > _LARGEST):
            raise CairnError(f"{path} is not a file of options: run cairn check, then cairn repair.")
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CairnError(f"{path.parent} is not a collection: make one with cairn index.") from None
    except OSError as error:
        refuse_unreadable(path, error)
        raise CairnError(f"{path} cannot be read ({error.strerror or error}): restore it from a copy.") from error
    except (ValueError, RecursionError) as error:
        raise CairnError(f"{path} is not a file of options{_detail(error)}: restore it from a copy.") from error
    try:
        found = table.pop("format", None)
        if found != 1 or found is True:  # which has the same options, but for those that came later
            check_format(path.parent, found, FORMAT)
        table.setdefault("image", {})  # what new collections have is no default of a file
        options = _build(CollectionOptions, table)
        if options.descriptor.endswith(".npz") and options.descriptor != DESCRIPTOR:
            raise ValueError("'descriptor' names a file that is not the collection's own")
        return options
    except (TypeError, ValueError) as error:
        raise CairnError(f"{path} is damaged{_detail(error)}: restore it from a copy.") from error


def options_format(path: Path) -> int:
    """The format of a file that `read_options` can read."""
    return int(tomllib.loads(path.read_text(encoding="utf-8"))["format"])


def _detail(error: Exception) -> str:
    """What an error tells, of which a part may be the file's own text."""
    text = " ".join(str(error).split())[:120]
    return f" ({text})" if text.isprintable() else ""


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
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")
    return type(value) is wanted and (wanted is not int or abs(value) < 1 << 63)
