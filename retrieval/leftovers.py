"""What processes that were killed leave in a collection's folder, and what was replaced there."""

import re
import shutil

from retrieval.collection import SEGMENTS, UNFINISHED, VOCABULARY, Collection


def remove_leftovers(collection: Collection) -> None:
    """Remove segments that were never committed or were replaced, other vocabularies, and unfinished files.

    Only for who holds the collection's lock: nobody else is writing such a thing then. What cannot be removed stays.
    """
    for orphan in collection.catalogue.orphans(collection.folder / SEGMENTS):
        shutil.rmtree(orphan, ignore_errors=True)
    vocabulary = collection.vocabulary_folder
    for path in collection.folder.iterdir():
        replaced = path != vocabulary and re.fullmatch(rf"{VOCABULARY}(-\d{{6}})?", path.name) and vocabulary.is_dir()
        if replaced or UNFINISHED.fullmatch(path.name):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
