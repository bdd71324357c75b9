"""The engines and expansions by name, without importing them, so that `cairn --help` is quick."""

from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any

from index import extensions
from index.attributes import some_of
from index.errors import CairnError
from index.text import one_of

BEST = "best"
"""What stands for the best engine that a collection is made for: the first of `PREFERRED` that does not refuse it."""

PREFERRED = ("signatures-sp", "tf-idf-sp")
DEFAULT = BEST
UNVERIFIED = "tf-idf"
"""An engine of any collection that verifies nothing."""


class VerifiedPhotos(Enum):
    """Which photos are verified by geometry; those that pass come first in the ranking."""

    NONE = "none"
    BEST = "best"  # those of the best scores, `VerificationOptions.depth` of them
    ALL = "all"  # visual words then decide almost nothing


@dataclass(frozen=True)
class EngineEntry:
    """Description of an engine, available before it is imported."""

    name: str  # of --engine
    place: str  # module:class; the class is an `Engine`
    label: str  # in the search page's list
    note: str = ""  # shown by --help in brackets
    needs: str = ""  # its requirements, for the description of the API
    verified: VerifiedPhotos = VerifiedPhotos.NONE
    expands: bool = True  # whether a query can be expanded by words: its scores follow the terms of a `View`
    signed: bool = False  # whether it looks features up by signatures
    explained_by: str = ""  # the engine that shows the geometry of its matches; by default itself


_ENTRIES = (
    EngineEntry("tf-idf", "retrieval.search.engines.tf_idf:TfIdf", "Small patterns", explained_by="tf-idf-sp"),
    EngineEntry(
        "tf-idf-sp",
        "retrieval.search.engines.tf_idf:TfIdf",
        "Small patterns, positions checked",
        note="the best verified by geometry",
        verified=VerifiedPhotos.BEST,
    ),
    EngineEntry(
        "signatures",
        "retrieval.search.engines.signatures:Signatures",
        "Finer patterns",
        note="words and a few bits of each feature; needs --signature",
        needs="a collection whose features have signatures",
        signed=True,
        explained_by="signatures-sp",
    ),
    EngineEntry(
        "signatures-sp",
        "retrieval.search.engines.signatures:Signatures",
        "Finer patterns, positions checked",
        note="the best of them verified by geometry",
        needs="a collection whose features have signatures",
        verified=VerifiedPhotos.BEST,
        signed=True,
    ),
    EngineEntry(
        "asmk",
        "retrieval.search.engines.asmk:Asmk",
        "Finer patterns, repeated ones counted once",
        note="the features of a word aggregated; needs --signature",
        needs="a collection whose features have signatures",
        signed=True,
        explained_by="asmk-sp",
    ),
    EngineEntry(
        "asmk-sp",
        "retrieval.search.engines.asmk:Asmk",
        "Finer patterns, repeated ones counted once, positions checked",
        note="the best of them verified by geometry",
        needs="a collection whose features have signatures",
        verified=VerifiedPhotos.BEST,
        signed=True,
    ),
    EngineEntry(
        "raw",
        "retrieval.search.engines.raw:Raw",
        "Every detail with every detail (slow)",
        note="needs --keep-descriptors",
        needs="a collection that keeps descriptors",
        verified=VerifiedPhotos.ALL,
        expands=False,
    ),
)

ENGINES = {entry.name: entry for entry in _ENTRIES}
"""Every engine by its name."""

EXPANSIONS = {
    "none": "no",
    "average": "by what they have in common",
    "discriminative": "by what tells them from others",
}
"""How a query is searched again with what its verified photos add, each with its label in the search page."""


def find_engine(name: str) -> EngineEntry:
    """Look an engine up by name, or an extension also by its place; raises CairnError if there is no such engine."""
    if name in ENGINES:
        return ENGINES[name]
    extension = extensions.find("engine", name)
    if extension is None:
        extensions.refuse_missing("engine", name)
        known = ", ".join([BEST, *ENGINES, *(one.name for one in extensions.extensions("engine"))])
        raise CairnError("There is no engine {name}; choose one of {known}.", name=repr(name), known=known)
    kind: Any = extension.load()  # a class of `Engine`, which imports this module
    about = some_of(kind, "verified", "expands", "signed", "explained_by")
    return EngineEntry(name, extension.place, kind.label or extension.name, **about)


def every_engine() -> list[EngineEntry]:
    """Built-in engines, and the extensions that can be loaded."""
    entries = list(ENGINES.values())
    for one in extensions.extensions("engine"):
        with suppress(CairnError):
            entries.append(find_engine(one.name))
    return entries


def describe_engines() -> str:
    """List the engines and their notes, as --help does."""
    first, second = PREFERRED
    best = f"{BEST} ({first} where features have signatures, else {second})"
    return one_of([best, *(f"{one.name} ({one.note})" if one.note else one.name for one in ENGINES.values())])
