"""Names of the files, folders and settings of a collection."""

import re

from retrieval.photos.listing import CACHE, COLLECTION_FILE

OPTIONS = COLLECTION_FILE
DESCRIPTOR = "descriptor.npz"
IDENTITY = "collection.id"
LOCK = "collection.lock"
LINKS_LOCK = "links.lock"
"""File that a process holds which looks for links."""

SEAL = "collection.sums"
"""Checksums of the files that have none of their own."""

SEAL_LOCK = "sums.lock"
"""File that a process holds which renews the seal and the snapshot."""

SNAPSHOT = "catalogue.snapshot"
"""Copy of the catalogue, where that is an SQLite file."""

AUGMENTATION = "augmentation"
"""Folder of what photos borrow of those that show the same; it can be made again at any time."""

GLOBAL = "global.npz"
"""Global descriptors of the photos."""

GROUPS = "groups.json"
EARLIER_LINKS = "links.jsonl"
"""Links, as earlier versions stored them."""

STATISTICS = "collection.statistics"
"""What a search must know of all postings; it can be made again at any time."""

EARLIER_JOBS = ("jobs.sqlite", "jobs.sqlite-wal", "jobs.sqlite-shm", "jobs.lock")
"""Queue of work as earlier versions kept it in a collection: nothing reads it, and it may be deleted."""

UPLOADS = "uploads"
"""Folder of photos that were uploaded, in one for each day, and of pages of manifests: the only files of photos."""

INCOMING = ".incoming-"
"""How the names of folders in it begin where uploads arrive."""

BACKUP = "backup.json"
"""Marks a folder as a backup: its collection, and the revision of the catalogue."""

SEGMENTS = "segments"
STAGING = "staging"
VOCABULARY = "vocabulary"
EARLY = f"{VOCABULARY}-000000"
"""Folder of the vocabulary of the first photos, until that of all replaces it."""
RETRAINING = "retrain"
"""Folder where a new vocabulary and the segments of it grow."""

IMPROVING = "improve"
"""Folder of what `cairn improve` has learnt and judged, until it has ended."""

IMPROVEMENT = "improvement.json"
"""What came of the last run of `cairn improve`."""

IMPROVEMENT_PICTURE = "improvement.svg"
"""The same as a picture."""

REPLACED = (DESCRIPTOR, GLOBAL, GROUPS, STATISTICS, IMPROVEMENT, IMPROVEMENT_PICTURE, OPTIONS)
"""Files that a backup replaces as a whole, in this order.

The options come last: without them, what an interrupted first run leaves is no collection.
"""

LASTING = frozenset(
    {*REPLACED, IDENTITY, SEAL, BACKUP, LOCK, LINKS_LOCK, SEAL_LOCK, SEGMENTS, UPLOADS, AUGMENTATION, CACHE}
)
"""What a collection's folder has between two commands, besides a vocabulary and an SQLite catalogue."""

VOCABULARY_KEY = "cairn.vocabulary"
"""Setting of the catalogue: name of the vocabulary's folder; where it is not set, `VOCABULARY`."""
TRAINED_KEY = "cairn.vocabulary_images"
"""Setting: the photos of numbers below this were there when the vocabulary was made from them."""
CHANGES_KEY = "cairn.changes"
"""Setting: when a file was changed last in each folder that was indexed, as of the last run (JSON, nanoseconds)."""
PAGES_KEY = "cairn.pages"
"""Setting: folders that were looked through for pages, and files whose pages may not all be there (JSON)."""
STREAMS_KEY = "cairn.streams"
"""Setting: how far streams of changes were read, and what is left of them to be fetched (JSON, by their addresses)."""
SIGNATURE_KEY = "cairn.signature"
"""Setting: the kind of signature that features have; where it is not set, that of the options."""

STORAGE_KEY = "cairn.storage"
"""Setting: where the files of the collection are sent for other machines; where it is not set, they see its folder."""

GLOBAL_KEY = "cairn.global"
"""Setting: it is written whenever the global descriptors have changed."""

AUGMENTATION_KEY = "cairn.augmentation"
"""Setting: whether photos borrow features of others; it is written whenever what they borrow has changed."""

# Files and folders are written under such a name first (`temporary_path`), and then renamed.
UNFINISHED = re.compile(r"\..+\.[0-9a-f]{8}\.tmp")


def is_vocabulary(name: str) -> bool:
    """Whether a name is that of a vocabulary's folder."""
    return re.fullmatch(rf"{VOCABULARY}(-[0-9]{{6,18}})?", name) is not None
