"""Check and repair a collection, even one that cannot be opened."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from index.attributes import shared_by
from index.docstrings import completed
from index.parallel import processes
from retrieval.library.paragraphs import SHARED
from retrieval.library.progress import Telling, telling
from retrieval.library.reports import BackedUp, Check, Damage, Repaired

if TYPE_CHECKING:
    from retrieval.collection.collection import Collection as Opened


@completed(SHARED)
def check(folder: str | os.PathLike[str], *, catalogue: str | None = None, progress: Telling = None) -> Check:
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
        report = check_collection(Path(folder), catalogue=catalogue, progress=tell)
    return Check(**_fields_of(Check, report))


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
) -> Repaired:
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
        report = repair_collection(
            Path(folder),
            photos=[Path(one) for one in photos],
            drop_missing=drop_missing,
            features=Path(features) if features is not None else None,
            workers=processes(workers),
            catalogue=catalogue,
            progress=tell,
        )
    return Repaired(**_fields_of(Repaired, report))


def back_up(
    opened: "Opened", target: str | os.PathLike[str], *, link: bool = False, progress: Telling = None
) -> BackedUp:
    """Copy an open collection to a folder, as `Collection.backup` says."""
    from retrieval.integrity.backup import back_up as make

    with telling(progress, {"backup": "Copying (MB)", "check": "Reading (MB)"}) as tell:
        report = make(opened, Path(target), link=link, progress=tell)
    return BackedUp(
        **_fields_of(BackedUp, report.check) | shared_by(BackedUp, report) | {"seconds": round(report.seconds, 3)}
    )


def _fields_of(kind: type, report: Any) -> dict[str, Any]:
    """Convert a report to the public form."""
    damaged = tuple(Damage(one.file, one.what, one.remedy) for one in report.damaged)
    return shared_by(kind, report) | {"damaged": damaged, "seconds": round(report.seconds, 3)}
