"""The types of `import cairn`; written by scripts/public_names.py."""

from collections.abc import Collection as _Names

import typer as _typer

from index.errors import CairnError as CairnError
from index.errors import LaterVersion as LaterVersion
from index.errors import Unreadable as Unreadable
from retrieval.catalogue.filters import PhotoFilter as Filter
from retrieval.collection.collection import CollectionChanged as CollectionChanged
from retrieval.collection.collection import CollectionNotFound as CollectionNotFound
from retrieval.collection.locking import CollectionLocked as CollectionLocked
from retrieval.foreign.contract import FeaturesNeeded as FeaturesNeeded
from retrieval.groups.groups import NotGrouped as NotGrouped
from retrieval.library.answers import Answer as Answer
from retrieval.library.answers import Match as Match
from retrieval.library.answers import QueryPhoto as QueryPhoto
from retrieval.library.answers import Result as Result
from retrieval.library.collection import Collection as Collection
from retrieval.library.collection import check as check
from retrieval.library.groups import Group as Group
from retrieval.library.groups import Groups as Groups
from retrieval.library.opening import CollectionExists as CollectionExists
from retrieval.library.opening import create as create
from retrieval.library.opening import open as open
from retrieval.library.photos import Photo as Photo
from retrieval.library.photos import Photos as Photos
from retrieval.library.reports import Added as Added
from retrieval.library.reports import Check as Check
from retrieval.library.reports import Compacted as Compacted
from retrieval.library.reports import Damage as Damage
from retrieval.library.reports import Info as Info
from retrieval.library.reports import Removed as Removed
from retrieval.library.reports import Retrained as Retrained
from retrieval.search.answers import PhotoNotFound as PhotoNotFound
from retrieval.search.query import PhotoUnusable as PhotoUnusable

__all__ = [
    "Added",
    "Answer",
    "CairnError",
    "Check",
    "Collection",
    "CollectionChanged",
    "CollectionExists",
    "CollectionLocked",
    "CollectionNotFound",
    "Compacted",
    "Damage",
    "FeaturesNeeded",
    "Filter",
    "Group",
    "Groups",
    "Info",
    "LaterVersion",
    "Match",
    "NotGrouped",
    "Photo",
    "PhotoNotFound",
    "PhotoUnusable",
    "Photos",
    "QueryPhoto",
    "Removed",
    "Result",
    "Retrained",
    "Unreadable",
    "check",
    "create",
    "open",
]
__version__: str
PUBLIC: dict[str, str]
COMMANDS: dict[str, tuple[str, str]]

def make_app(names: _Names[str] = ...) -> _typer.Typer: ...
def version() -> str: ...
def main() -> None: ...
