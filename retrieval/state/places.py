"""Places that the user has named for a collection: an address in the collection itself is not acted upon without."""

import hashlib
import json
from pathlib import Path

from retrieval.state.folder import state_folder

_FOLDER = "places"


def note_place(collection: Path, identity: str | None, place: str) -> None:
    """Store that the user has named a place for files of a collection. Raises OSError if that fails."""
    (state_folder(_FOLDER) / _key(collection, identity, place)).touch(mode=0o600)


def is_noted(collection: Path, identity: str | None, place: str) -> bool:
    """Whether the user has named a place for the collection of an identity in a folder."""
    return (state_folder(_FOLDER) / _key(collection, identity, place)).is_file()


def _key(collection: Path, identity: str | None, place: str) -> str:
    return hashlib.sha256(json.dumps([str(collection.resolve()), identity, place]).encode()).hexdigest()
