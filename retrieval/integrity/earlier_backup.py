"""What earlier runs have left in the folder of a backup, and whether it may be used."""

import contextlib
import re
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from index.arrays import check_format, load_json, save_json
from index.errors import CairnError
from retrieval.catalogue.database import BUSY_TIMEOUT_MS
from retrieval.catalogue.schema import FILE
from retrieval.catalogue.settings import stated_revision
from retrieval.collection.layout import (
    AUGMENTATION,
    BACKUP,
    LOCK,
    OPTIONS,
    SEGMENTS,
    UNFINISHED,
    UPLOADS,
    is_vocabulary,
)

_FORMAT = 1
_IDENTITY = re.compile("[0-9a-f]{32}")


@dataclass(frozen=True)
class EarlierBackup:
    """State of the folder of a backup after earlier runs."""

    revisions: Sequence[int] = ()  # which its catalogue may have
    revision: int | None = None  # of its catalogue; None: no backup yet, or it is damaged
    segments: Mapping[str, str | None] = field(default_factory=dict)  # that its catalogue names, and their checksums


def refuse_nested(folder: Path, target: Path) -> None:
    """Refuse a backup inside the collection, and a collection inside the backup."""
    source, place = folder.resolve(), target.resolve()
    pairs = [(source, one) for one in (place, *place.parents)] + [(place, one) for one in source.parents]
    # By the files themselves: different names may be the same for a file system.
    if any(one == other or (one.exists() and other.exists() and one.samefile(other)) for one, other in pairs):
        raise CairnError(f"{folder} and {target} must not be inside each other: name a folder elsewhere.")


def look_at_backup(target: Path, folder: Path, identity: str) -> EarlierBackup:
    """State of a folder after earlier backups of a collection; raises CairnError if it is anything else."""
    if not target.exists():
        return EarlierBackup()
    if not target.is_dir():
        raise CairnError(f"{target} is not a folder: name a new folder for the backup.")
    names = {path.name for path in target.iterdir() if not UNFINISHED.fullmatch(path.name)} - {LOCK}
    if not names:
        return EarlierBackup()
    if BACKUP not in names:
        what = "a collection of its own" if OPTIONS in names else "not empty"
        raise CairnError(f"{target} is {what}, and not a backup of {folder}: name a new folder, or an earlier backup.")
    for name in names & {SEGMENTS, AUGMENTATION, UPLOADS, FILE, BACKUP} | set(filter(is_vocabulary, names)):
        if (target / name).is_symlink():
            raise CairnError(f"{target / name} is a link, which no backup has: name a new folder.")
    revisions = _read_mark(target, folder, identity)
    revision, segments = _read_catalogue(target / FILE)
    if revision is not None and revision not in revisions:
        raise CairnError(
            f"{target} was changed since it was made: it is a collection of its own now; name a new folder for the "
            "backup."
        )
    return EarlierBackup(revisions, revision, segments)


def mark_backup(target: Path, identity: str, revisions: Sequence[int]) -> None:
    """Make the folder a backup of a collection, whose catalogue has one of some revisions."""
    save_json(target / BACKUP, {"format": _FORMAT, "collection": identity, "revisions": list(revisions)})


def _read_mark(target: Path, folder: Path, identity: str) -> Sequence[int]:
    """Which revisions the catalogue of a backup may have; raises CairnError if it is not of this collection."""
    path = target / BACKUP
    kept = load_json(path)
    try:
        check_format(path, kept["format"], _FORMAT)
        revisions = [int(one) for one in kept["revisions"]]
        found = str(kept["collection"])
        if not _IDENTITY.fullmatch(found):
            raise ValueError
    except (KeyError, TypeError, ValueError) as error:
        raise CairnError(f"{path} is not what was written: name a new folder for the backup.") from error
    if found != identity:
        raise CairnError(f"{target} is the backup of another collection than {folder}: name a new folder.")
    return revisions


def _read_catalogue(file: Path) -> tuple[int | None, dict[str, str | None]]:
    """The revision of a backup's catalogue, and its segments; None and empty if it is missing or damaged."""
    if file.is_file():
        # Writable, so that SQLite rolls back the unfinished transaction of a killed process.
        with (
            contextlib.suppress(sqlite3.Error, ValueError),
            contextlib.closing(sqlite3.connect(file, timeout=BUSY_TIMEOUT_MS / 1000)) as connection,
        ):
            revision = stated_revision(connection)
            if revision is not None:
                return revision, dict(connection.execute("SELECT folder, sha256 FROM segments").fetchall())
    return None, {}
