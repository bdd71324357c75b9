"""Options as frozen dataclasses, written to and read from TOML."""

import dataclasses
import os
import tomllib
import types
import typing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

from index.errors import CairnError, refuse_unreadable
from index.extensions import ExtensionMissing, find, is_place, place_of
from index.hamming.kinds import DEFAULT, NAMES, NONE, full_name, parse_signature
from index.options.declaration import Option, options_of
from index.options.panels import REGIONS, RUNNING, VOCABULARY
from index.search_backends import BACKENDS
from index.text import shown
from retrieval.collection.layout import DESCRIPTOR
from retrieval.features.options import FeatureOptions
from retrieval.photos.options import ImageOptions, new_collection
from retrieval.regions.detectors.registry import FOREIGN

FORMAT = 2
"""Version of the collection's format on disk."""

_LARGEST = 1 << 20  # bytes of the file

T = TypeVar("T")


def _number_or_all(text: str) -> int:
    """Read a number of photos, or "all", which is 0."""
    if text == "all":
        return 0
    if not (text.isascii() and text.isdigit() and 0 < int(text[:12]) <= 1 << 31):
        raise CairnError(f"vocabulary_photos is a number of photos, 1 at least, or all, and not {shown(text)}.")
    return int(text)


def signature_name(name: str) -> str:
    """Return the full name of a kind of signature; raises CairnError if the name is unknown."""
    return full_name(parse_signature(name))


def _folder(name: str) -> str:
    if not Path(name).is_dir():
        raise CairnError(f"There is no folder {shown(name)} to compute the vocabulary from; check the name.")
    return os.path.abspath(name)  # noqa: PTH100 (links stay)


@dataclass(frozen=True)
class CollectionOptions:
    """Options of a collection, fixed when it is created."""

    descriptor: Annotated[
        str,
        Option(
            "Descriptor: cairn, pr-proj or rootsift-proj (learnt, they come with Cairn), rootsift, sift, surf, ssd "
            "(plain grey values), or a file (.npz) that cairn learn wrote.",
            REGIONS,
            metavar="NAME|FILE",
            names=("cairn", "pr-proj", "rootsift-proj", "rootsift", "sift", "surf", "ssd", "ssd-32"),
            local=True,
            extends="descriptor",
        ),
    ] = "rootsift"
    words: Annotated[
        int, Option("Number of visual words; 0: one for every 30 features, at most 500,000.", VOCABULARY, least=0)
    ] = 0
    search: Annotated[
        str,
        Option(
            "Nearest-neighbour search of the vocabulary: ivf, faiss, flann or pyflann.",
            VOCABULARY,
            metavar="NAME",
            names=tuple(BACKENDS),
        ),
    ] = "ivf"
    iterations: Annotated[
        int,
        Option(
            "Number of k-means passes that compute the vocabulary.",
            VOCABULARY,
            name="kmeans_passes",
            least=1,
            most=1000,
        ),
    ] = 10
    seed: Annotated[  # as large as every search back-end takes
        int, Option("Seed of all random choices.", RUNNING, least=0, most=2**31 - 1)
    ] = 0
    sample: Annotated[  # 0: all
        int,
        Option(
            "Number of photos, drawn at random, from whose features the vocabulary is computed.",
            VOCABULARY,
            name="vocabulary_photos",
            metavar="N|all",
            parse=_number_or_all,
            least=0,
        ),
    ] = 5_000
    sample_from: Annotated[
        str | None,
        Option(
            "Draw these photos only from this folder, which must be among those indexed. Other photos, such as "
            "distractors, then do not influence the vocabulary.",
            VOCABULARY,
            name="vocabulary_folder",
            metavar="FOLDER",
            parse=_folder,
            local=True,
        ),
    ] = None
    batch: int = 1_000  # photos to a segment
    keep_descriptors: Annotated[
        bool,
        Option("Store the descriptors as well, which the engine raw needs.", REGIONS, flags=("--keep-descriptors",)),
    ] = False
    signature: Annotated[
        str,
        Option(
            "Signature of each feature, for the engine signatures: hamming (Hamming embedding) or frame (signs of a "
            "tight frame) with 32, 64 or 128 bits, such as hamming-64; or none.",
            VOCABULARY,
            metavar="NAME",
            names=NAMES,
            parse=signature_name,
        ),
    ] = DEFAULT
    image: ImageOptions = field(default_factory=new_collection)  # how photos are read
    features: FeatureOptions = field(default_factory=FeatureOptions)  # regions and patches
    extensions: tuple[str, ...] = ()  # "module:object version" of the extensions that it was made with

    def with_extensions(self) -> "CollectionOptions":
        """Name extensions by place and version, as stored in a collection."""
        if self.features.extractor is not None:
            return self._extracted()
        regions = replace(self.features.regions, detector=_kept("detector", self.features.regions.detector))
        options = replace(
            self, descriptor=_kept("descriptor", self.descriptor), features=replace(self.features, regions=regions)
        )
        return options._with_versions()

    def _extracted(self) -> "CollectionOptions":
        from retrieval.foreign.computed import extracted_by

        regions, own = self.features.regions, CollectionOptions()
        if self.descriptor != own.descriptor and not self.descriptor.startswith(FOREIGN):
            raise CairnError("{--features-from} brings its own descriptor: leave out {--descriptor}.")
        if regions.detector != own.features.regions.detector and not regions.detector.startswith(FOREIGN):
            raise CairnError("{--features-from} brings its own keypoints: leave out {--detector}.")
        if self.features.ignore is not None:
            raise CairnError("{--features-from} finds keypoints everywhere: leave out {--ignore}.")
        descriptor, features = extracted_by(str(self.features.extractor))
        regions = replace(features.regions, max_features=regions.max_features)
        options = replace(self, descriptor=descriptor.name, features=replace(features, regions=regions))
        return options._with_versions()

    def _with_versions(self) -> "CollectionOptions":
        used = [find(kind, place) for kind, place in self.extended]
        return replace(self, extensions=tuple(f"{one.place} {one.version}".rstrip() for one in used if one is not None))

    @property
    def extended(self) -> list[tuple[str, str]]:
        """Kinds and places of required extensions, installed or not."""
        named = (("descriptor", self.descriptor), ("detector", self.features.regions.detector))
        places = [(kind, name) for kind, name in named if is_place(name) and not name.startswith(FOREIGN)]
        return places + [("extractor", name) for name in [self.features.extractor] if name is not None]

    def check_extensions(self, folder: Path) -> None:
        """Raise ExtensionMissing if an extension that the collection was made with is not installed or registered."""
        for kind, place in self.extended:
            if find(kind, place) is None:
                version = next((one.partition(" ")[2] for one in self.extensions if one.startswith(f"{place} ")), "")
                raise ExtensionMissing(
                    "{folder} was made with the {what} {place}, which is neither installed nor registered here: "
                    "install the package that declares it, or register it by cairn.register.",
                    folder=folder,
                    what=kind,
                    place=shown(f"{place} {version}".rstrip()),
                )


def _kept(kind: str, name: str) -> str:
    own = options_of(CollectionOptions)[kind].option.names
    return name if name in own or name.startswith(FOREIGN) or name.endswith(".npz") else place_of(kind, name)


def write_options(path: Path, options: CollectionOptions) -> None:
    """Write options and the version of the format atomically."""
    import tomli_w

    from index.arrays import save_bytes

    save_bytes(path, tomli_w.dumps({"format": FORMAT, **_plain(options)}).encode())


def read_options(path: Path) -> CollectionOptions:
    """Read a file of `write_options`."""
    try:
        if path.exists() and (not path.is_file() or path.stat().st_size > _LARGEST):
            raise CairnError("{path} is not a file of options: run {cairn check}, then {cairn repair}.", path=path)
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CairnError(
            "{parent} is not a collection: create one with {cairn index|cairn.create}.", parent=path.parent
        ) from None
    except OSError as error:
        refuse_unreadable(path, error)
        raise CairnError(
            "{path} cannot be read ({reason}): restore it from a copy.", path=path, reason=error.strerror or error
        ) from error
    except (ValueError, RecursionError) as error:
        raise CairnError(
            "{path} is not a file of options{detail}: restore it from a copy.", path=path, detail=_detail(error)
        ) from error
    from index.arrays import check_format

    try:
        version = table.pop("format", None)
        if version != 1 or version is True:  # format 1 has the same options, except newer ones
            check_format(path.parent, version, FORMAT)
        table = {"image": {}, "signature": NONE, **table}  # defaults for files differ from those for new collections
        options = _build(CollectionOptions, table)
        if options.descriptor.endswith(".npz") and options.descriptor != DESCRIPTOR:
            raise ValueError("'descriptor' names a file that is not the collection's own")
        return options
    except (TypeError, ValueError) as error:
        raise CairnError(
            "{path} is damaged{detail}: restore it from a copy.", path=path, detail=_detail(error)
        ) from error


def options_format(path: Path) -> int:
    """The format of a file that `read_options` can read."""
    return int(tomllib.loads(path.read_text(encoding="utf-8"))["format"])


def _detail(error: Exception) -> str:
    """Message of an error, which may include text of the file."""
    text = " ".join(str(error).split())[:120]
    return f" ({text})" if text.isprintable() else ""


def _plain(options: Any) -> dict[str, Any]:
    """Nested tables of an options dataclass, without values None, which TOML lacks, and ()."""
    table = {}
    for item in dataclasses.fields(options):
        value = getattr(options, item.name)
        if dataclasses.is_dataclass(value):
            table[item.name] = _plain(value)
        elif value is not None and value != ():
            table[item.name] = value
    return table


def _build(kind: type[T], table: dict[str, Any]) -> T:
    """Build an options dataclass from its table; raises TypeError if a key or a type does not fit."""
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
            values[key] = tuple(value) if isinstance(value, list) else value
        else:
            raise TypeError(f"{key!r} is not of the right type")
    return kind(**values)


def _fits(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, types.UnionType):
        return any(_fits(value, one) for one in typing.get_args(wanted))
    if wanted == tuple[str, ...]:
        return isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)
    if wanted is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")
    return type(value) is wanted and (wanted is not int or abs(value) < 1 << 63)
