"""Check and repair a collection, even one that cannot be opened."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from index.docstrings import completed
from index.parallel import processes
from retrieval.library.paragraphs import SHARED
from retrieval.library.progress import Telling, telling

if TYPE_CHECKING:
    from retrieval.collection.collection import Collection as Opened
    from retrieval.integrity.backup_files import BackedUp
    from retrieval.integrity.repair import Repaired
    from retrieval.integrity.report import Check


@completed(SHARED)
def check(folder: str | os.PathLike[str], *, catalogue: str | None = None, progress: Telling = None) -> "Check":
    """Verify every file of a collection, even if it cannot be opened; changes nothing.

    Parameters
    ----------
    folder : path-like
        Its folder.
    catalogue : str, optional
        SQLAlchemy address of its catalogue.
    {progress}

    Raises
    ------
    CairnError
        There is no collection.
    """
    from retrieval.integrity.check import check_collection

    with telling(progress, {"check": "Reading (MB)"}) as tell:
        return check_collection(Path(folder), catalogue=catalogue, progress=tell)


@completed(SHARED)
def repair(
    folder: str | os.PathLike[str],
    *,
    photos: Sequence[str | os.PathLike[str]] = (),
    drop_missing: bool = False,
    features: str | os.PathLike[str] | None = None,
    workers: int = 0,
    catalogue: str | None = None,
    progress: Telling = None,
) -> "Repaired":
    """Rebuild parts that `check` reports as damaged.

    Parameters
    ----------
    folder : path-like
        Folder of the collection, which must not be open.
    photos : sequence of path-like
        Folders to search for photos that were moved.
    drop_missing : bool
        Drop photos of damaged segments that cannot be found.
    {features}
    {workers}
    catalogue : str, optional
        SQLAlchemy address of the catalogue.
    {progress}

    Raises
    ------
    CairnError
        There is no collection, or required photos cannot be found.
    """
    from retrieval.integrity.repair import repair_collection

    with telling(progress, {"check": "Reading (MB)", "extract": "Features (photos)"}) as tell:
        return repair_collection(
            Path(folder),
            photos=[Path(one) for one in photos],
            drop_missing=drop_missing,
            features=Path(features) if features is not None else None,
            workers=processes(workers),
            catalogue=catalogue,
            progress=tell,
        )


def back_up(
    opened: "Opened", target: str | os.PathLike[str], *, link: bool = False, progress: Telling = None
) -> "BackedUp":
    """Copy an open collection to a folder, as `Collection.backup` says."""
    from retrieval.integrity.backup import back_up as make

    with telling(progress, {"backup": "Copying (MB)", "check": "Reading (MB)"}) as tell:
        return make(opened, Path(target), link=link, progress=tell)
