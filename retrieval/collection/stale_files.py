"""Files that killed processes left in a collection's folder, and files that were replaced there."""

import shutil

from index.errors import CairnError
from index.segments.description import TEMPORARY_SUFFIX
from retrieval.catalogue.segment_rows import orphans_in, segments_in
from retrieval.collection.collection import Collection
from retrieval.collection.identity import keep_identity
from retrieval.collection.layout import RETRAINING, SEGMENTS, STAGING, UNFINISHED, is_vocabulary
from retrieval.collection.segments import has_foreign_photos, is_there


def remove_leftovers(collection: Collection) -> None:
    """Remove segments that were never committed or were replaced, other vocabularies, and unfinished files.

    The caller must hold the collection's lock, so that no such file is being written. Files that cannot be removed
    stay. So does everything unknown to the catalogue while one of its segments is missing.
    """
    keep_identity(collection.folder, collection.catalogue)
    if not _remove_orphans(collection):
        return
    vocabulary = collection.vocabulary_folder
    for path in collection.folder.iterdir():
        replaced = path != vocabulary and is_vocabulary(path.name) and vocabulary.is_dir()
        if replaced or UNFINISHED.fullmatch(path.name):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def remove_unfinished_work(collection: Collection) -> None:
    """Remove intermediate files of interrupted runs, with the collection's lock held; needs no disk space.

    The features of first photos stay until they have their final words: their files may be gone by then.
    """
    for name in (RETRAINING,) if collection.has_early_words else (STAGING, RETRAINING):
        path = collection.folder / name
        if path.is_symlink():
            path.unlink(missing_ok=True)
        else:
            shutil.rmtree(path, ignore_errors=True)


def _remove_orphans(collection: Collection) -> bool:
    """Remove segments that the catalogue does not name; False, with none removed, if some of them are complete, and one
    that it names is missing: they may not come from a killed run.
    """
    orphans = collection.catalogue.read(orphans_in, collection.folder / SEGMENTS)
    whole = [path for path in orphans if not path.name.endswith(TEMPORARY_SUFFIX)]
    for path in whole:
        # A run reserves its numbers before it writes a segment.
        if has_foreign_photos(path, collection.catalogue):
            raise CairnError(
                "{path} holds photos that the catalogue of {folder} does not know: if the catalogue is "
                "an older copy, restore the newer one, or move this folder away.",
                path=path,
                folder=collection.folder,
            )
    rows = collection.catalogue.read(segments_in) if whole else []
    there = sum(is_there(collection.folder, row) for row in rows)
    if rows and not there:
        raise CairnError(
            "{folder} has other segments than its catalogue names: run {cairn check}.",
            folder=collection.folder,
        )
    if there < len(rows):
        return False
    for orphan in orphans:
        shutil.rmtree(orphan, ignore_errors=True)
    return True
