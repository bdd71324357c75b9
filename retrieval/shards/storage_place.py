"""Storage to which files of a collection are sent for other machines: only one that its user has named."""

import os

from index.errors import CairnError
from retrieval.catalogue.settings import keep_setting
from retrieval.collection.collection import Collection
from retrieval.collection.identity import IDENTITY_KEY
from retrieval.collection.layout import STORAGE_KEY
from retrieval.state.places import is_noted, note_place

STORAGE_VARIABLE = "CAIRN_STORAGE"
"""Environment variable that names the place, for a user who has not named it with `--storage`."""


def storage_place(collection: Collection) -> str:
    """The place of a collection's files: the one stored in its catalogue, or else its folder."""
    place = collection.catalogue.setting(STORAGE_KEY)
    if place is None:
        return str(collection.folder.resolve())
    named = place == os.environ.get(STORAGE_VARIABLE)
    if not named and not is_noted(collection.folder, collection.catalogue.setting(IDENTITY_KEY), place):
        raise CairnError(
            "The catalogue of {folder} says that its files are sent to {place}, which you have not named: if that is "
            "right, set {storage_variable} to it, or run {cairn index} with {--storage}.",
            folder=collection.folder,
            place=repr(place[:200]),
            storage_variable=STORAGE_VARIABLE,
        )
    return place


def keep_storage_place(collection: Collection, place: str) -> None:
    """Store the place that the user has named in the catalogue, and that the user named it."""
    collection.catalogue.write(keep_setting, STORAGE_KEY, place)
    note_place(collection.folder, collection.catalogue.setting(IDENTITY_KEY), place)
