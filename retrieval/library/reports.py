"""What work on a collection reports: small objects with what commands print with --json."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


class Report:
    """A report whose attributes are what a command prints."""

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes, as the command prints them with --json."""
        found: dict[str, Any] = asdict(self)  # type: ignore[call-overload]  # every report is a dataclass
        return found | {"damaged": list(found["damaged"])} if "damaged" in found else found


@dataclass(frozen=True)
class Added(Report):
    """What `Collection.add` did; photos that could not be read are in `failed`, and stop nothing.

    Attributes
    ----------
    added : int
        Photos that are new, or have changed.
    unchanged : int
        Photos that were in the collection as they are.
    back, moved, vanished : list of str
        Names of photos whose files are there again, are elsewhere now, or have gone.
    failed : list of dict
        Path and reason of photos that cannot be used.
    failed_before : int
        How many of those had failed before, for the same reason.
    passed_over : dict of str to int
        Files that are no photos, counted by their endings.
    reread : int
        Unchanged photos whose metadata was read again, as their files, or sidecars beside them, were changed.
    folders_passed_over : dict of str to int
        Folders of devices and programs, and what patterns name, counted by the pattern.
    places : list of dict
        Paths of links to photos of the collection: path, and the path of the photo.
    left : int
        New photos that a time limit left for the next run.
    kept_out : list of str
        Paths of photos that were left out, as they were removed for good.
    kept_out_reasons : list of dict
        Path and reason of each of these.
    featureless : int
        Photos of those that were added that can never be found: blank, blurred or too small, or text alone.
    text_masked, text_only : int
        Photos of those that were added in which printed text was left out (`ignore`), and that show nothing else.
    remarks : list of dict
        Path and reason of photos that were added although their files are not whole, or not quite one photo.
    pages_left : int
        Pages of files of several that were left out: of each, one is the photo.
    images, features, words : int
        What the collection holds now.
    bytes_per_feature : float
        On disk, all that search and verification need.
    seconds : dict of str to float
        Time of the steps.
    notes : list of str
        What else is to be known of the collection, a sentence each.
    manifests : list of dict
        Of each IIIF manifest: manifest (its address), label, pages, fetched and unchanged (how many), withdrawn (names
        of photos whose pages it has no longer), failed (page and reason), reason (why it could not be had, or "").
    """

    added: int
    unchanged: int
    back: list[str]
    moved: list[str]
    vanished: list[str]
    failed: list[dict[str, str]]
    failed_before: int
    passed_over: dict[str, int]
    reread: int
    folders_passed_over: dict[str, int]
    places: list[dict[str, str]]
    left: int
    kept_out: list[str]
    kept_out_reasons: list[dict[str, str]]
    featureless: int
    text_masked: int
    text_only: int
    remarks: list[dict[str, str]]
    pages_left: int
    images: int
    features: int
    words: int
    bytes_per_feature: float
    seconds: dict[str, float]
    notes: list[str]
    manifests: list[dict[str, Any]] = field(default_factory=list)
    _failed_before: frozenset[str] = field(default=frozenset(), repr=False)  # paths

    @property
    def newly_failed(self) -> list[dict[str, str]]:
        """Path and reason of photos that did not fail before just so."""
        return [entry for entry in self.failed if entry["path"] not in self._failed_before]

    def to_dict(self) -> dict[str, Any]:
        """Return what ``cairn index --json`` prints."""
        return {key: value for key, value in super().to_dict().items() if key not in ("notes", "_failed_before")}


@dataclass(frozen=True)
class Info(Report):
    """What a collection holds, and what each feature costs.

    Attributes
    ----------
    images, features, words, segments : int
        Photos, their features, visual words, and the parts that the features lie in.
    bytes : dict of str to int
        Size of each kind of part.
    bytes_per_feature : float
        All of them, by features.
    descriptor : dict
        Name, dim, fingerprint, foreign.
    extensions : list of str
        Those that it was made with: ``module:object``, and the version.
    signature : str or None
        Kind of the features' signatures.
    vocabulary : dict or None
        Words, recall_at_1, fingerprint, trained_on, imbalance, drift; None if there is no vocabulary yet.
    augmentation : dict or None
        What photos borrow of linked ones.
    global_descriptors : dict or None
        Name, extension, dim, photos that have one, bytes, and whether they are damaged; None if there are none.
    date_added : dict or None
        First and last.
    missing, removed : int
        Photos whose files were gone; photos that were removed and still take room.
    featureless : list of str
        Names of photos that can never be found: blank, blurred or too small, or text alone.
    text_masked : int
        Photos in which printed text was left out (`ignore`).
    text_only : list of str
        Names of those of them that show nothing but text, and can never be found.
    removed_for_good : list of dict
        Name, path, sha256, removed.
    failed : list of dict
        Path and reason.
    """

    images: int
    features: int
    words: int
    segments: int
    bytes: dict[str, int]
    bytes_per_feature: float
    descriptor: dict[str, Any]
    extensions: list[str]
    signature: str | None
    vocabulary: dict[str, Any] | None
    augmentation: dict[str, Any] | None
    global_descriptors: dict[str, Any] | None
    date_added: dict[str, str] | None
    missing: int
    featureless: list[str]
    text_masked: int
    text_only: list[str]
    removed: int
    removed_for_good: list[dict[str, Any]]
    failed: list[dict[str, str]]


@dataclass(frozen=True)
class Removed(Report):
    """What `Collection.remove` took out, or would take out.

    Attributes
    ----------
    names : list of str
        Names of the photos, in order.
    for_good : bool
        Whether they stay out when their folders are indexed again.
    dry_run : bool
        Whether nothing was changed.
    images : int
        Photos that the collection holds now.
    """

    names: list[str]
    for_good: bool
    dry_run: bool
    images: int

    def to_dict(self) -> dict[str, Any]:
        """Return what ``cairn remove --json`` prints."""
        key = "would_remove" if self.dry_run else "removed"
        return {key: self.names, "for_good": self.for_good, "images": self.images}


@dataclass(frozen=True)
class Root(Report):
    """A folder that photos were indexed with.

    Attributes
    ----------
    folder : str
        Its path.
    photos : int
        Photos of the collection in it.
    there : bool
        False where it is not there, or empty: its drive may not be connected.
    """

    folder: str
    photos: int
    there: bool


@dataclass(frozen=True)
class MovedRoot(Report):
    """What `Collection.move_root` found.

    Attributes
    ----------
    moved : list of str
        Names of photos that are in the new folder.
    left : list of str
        Names of photos that are not, or not as they were indexed: they stay as they are.
    """

    moved: list[str]
    left: list[str]


@dataclass(frozen=True)
class Compacted(Report):
    """What `Collection.compact` did.

    Attributes
    ----------
    images : int
        Photos that the collection holds.
    removed : int
        Removed photos whose room was given back.
    segments, bytes : dict of str to int
        Before and after.
    thumbnails : int
        Thumbnails that were removed.
    seconds : float
        Time.
    """

    images: int
    removed: int
    segments: dict[str, int]
    bytes: dict[str, int]
    thumbnails: int
    seconds: float


@dataclass(frozen=True)
class Retrained(Report):
    """What `Collection.retrain` did.

    Attributes
    ----------
    images : int
        Photos that the collection holds.
    words : dict of str to int
        Visual words, before and after.
    quantisation_error : dict of str to float
        Mean squared distance of features to their words, before and after.
    dropped : list of dict
        Name and reason of photos that were left out.
    augmentation_emptied : bool
        Whether photos no longer borrow what they did: group them again.
    seconds : dict of str to float
        Time of the steps.
    """

    images: int
    words: dict[str, int]
    quantisation_error: dict[str, float]
    dropped: list[dict[str, str]]
    augmentation_emptied: bool
    seconds: dict[str, float]


@dataclass(frozen=True)
class DescribedGlobally(Report):
    """What `Collection.add_global_descriptors` did.

    Attributes
    ----------
    images : int
        Photos that the collection holds.
    described, photos : int
        Photos that were described now, and that have a global descriptor now.
    failed : list of dict
        Name and reason of photos that could not be described.
    unknown : list of str
        Names of a file that no photo has, or several.
    """

    images: int
    described: int
    photos: int
    failed: list[dict[str, str]]
    unknown: list[str]


@dataclass(frozen=True)
class Damage(Report):
    """A file that is damaged.

    Attributes
    ----------
    file : str
        Path in the collection.
    what, remedy : str
        What is wrong, and what to do about it: a sentence each.
    """

    file: str
    what: str
    remedy: str


@dataclass(frozen=True)
class Check(Report):
    """What `Collection.check` found.

    Attributes
    ----------
    ok : bool
        Whether every byte is what was written.
    files, bytes : int
        That were read.
    damaged : tuple of Damage
        What is wrong.
    notes : list of str
        What is to be known, and is no damage.
    seconds : float
        Time.
    """

    ok: bool
    files: int
    bytes: int
    damaged: tuple[Damage, ...]
    notes: list[str]
    seconds: float


@dataclass(frozen=True)
class BackedUp(Report):
    """What `Collection.backup` did.

    Attributes
    ----------
    ok : bool
        Whether every byte of the backup is what was written.
    images : int
        Photos that the backup holds.
    copied, bytes : int
        Files that were copied or linked, and bytes that were copied.
    kept : int
        Files that were there already.
    removed : int
        Files and folders that the collection no longer has, and the backup had.
    damaged : tuple of Damage
        What is wrong in the backup.
    notes : list of str
        What is to be known, and is no damage.
    seconds : float
        Time.
    """

    ok: bool
    images: int
    copied: int
    bytes: int
    kept: int
    removed: int
    damaged: tuple[Damage, ...]
    notes: list[str]
    seconds: float


@dataclass(frozen=True)
class Repaired(Report):
    """What `repair` did.

    Attributes
    ----------
    ok : bool
        Whether all is sound now, and nothing was lost.
    repaired : list of dict
        File, and how.
    lost : list of dict
        Photos that left the collection: name, path and reason.
    lapses : list of str
        What else was lost, in sentences.
    damaged : tuple of Damage
        What is left.
    notes : list of str
        What is to be known, and is no damage.
    seconds : float
        Time.
    """

    ok: bool
    repaired: list[dict[str, str]]
    lost: list[dict[str, str]]
    lapses: list[str]
    damaged: tuple[Damage, ...]
    notes: list[str]
    seconds: float


@dataclass(frozen=True)
class Imported(Report):
    """What `Collection.import_metadata` did.

    Attributes
    ----------
    rows, matched : int
        Rows of the table, and those that are about one photo.
    photos : int
        Photos that these are about.
    unmatched, warnings : list of dict
        Line and reason of rows that were not imported, and of cells that were not.
    notes : list of str
        What is to be known of the table, a sentence each.
    columns : dict
        How the columns were understood: photo, understood, kept, warnings.
    """

    rows: int
    matched: int
    photos: int
    unmatched: list[dict[str, str | int]]
    warnings: list[dict[str, str | int]]
    notes: list[str]
    columns: dict[str, Any]


@dataclass(frozen=True)
class Refreshed(Report):
    """What `Collection.refresh_metadata` read.

    Attributes
    ----------
    read : int
        Photos.
    missing : int
        Photos whose files have gone or may not be read: they keep what was known.
    told : int
        Photos whose files say anything.
    """

    read: int
    missing: int
    told: int


@dataclass(frozen=True)
class Sidecars(Report):
    """What `Collection.write_sidecars` did.

    Attributes
    ----------
    written : int
        Sidecars that are new, or say more now.
    unchanged : int
        Photos whose sidecars said all of it already.
    missing : int
        Photos whose files have gone.
    failed : list of dict
        Path of each photo whose sidecar could not be written, and the reason.
    """

    written: int
    unchanged: int
    missing: int
    failed: list[dict[str, str]]


@dataclass(frozen=True)
class Edited(Report):
    """What `Collection.edit` changed.

    Attributes
    ----------
    changed : int
        Photos that are not as they were.
    kept : int
        Photos that keep a tag that was to be removed, as their files say it.
    before : dict of int to dict of str to tuple of str
        What they had, by number and field: what `Collection.undo` takes.
    """

    changed: int
    kept: int
    before: dict[int, dict[str, tuple[str, ...]]]


@dataclass(frozen=True)
class Album(Report):
    """An album: photos that were put together under a name.

    Attributes
    ----------
    id : int
        It is given once, and stays: what `cairn.Filter` has as `album`.
    name : str
    photos : int
        Photos in it that are not hidden.
    created : str
        When it was made: ISO 8601, UTC.
    """

    id: int
    name: str
    photos: int
    created: str


@dataclass(frozen=True)
class SharedAlbum(Report):
    """A link that shows an album to whoever has it, while this user's server serves the collection.

    Attributes
    ----------
    id : str
        What it is ended by; it opens nothing.
    album : str or None
        Name of the album; None: it was deleted, and the link shows nothing.
    created : str
        ISO 8601, UTC.
    expires : str
        Last day (UTC) on which it holds, ISO 8601.
    over : bool
        Whether that has passed.
    path : str or None
        Its address below that of the collection on a server, such as ``/shared/cairn_…``: of a link that was just made.
        It is kept nowhere.
    """

    id: str
    album: str | None
    created: str
    expires: str
    over: bool
    path: str | None = None


@dataclass(frozen=True)
class SavedSearch(Report):
    """A search that is kept under a name.

    Attributes
    ----------
    id : int
        It is given once, and stays.
    name : str
    query : dict
        What it asks with, and how.
    favourite : bool
    standing : bool
        Whether it is asked of photos that are added.
    tag : str or None
        That photos are given which it finds.
    created : str
        When it was kept: ISO 8601, UTC.
    found : int
        Photos that it has found, and that were kept.
    new : int
        Those of them that nobody has looked at.
    """

    id: int
    name: str
    query: dict[str, Any]
    favourite: bool
    standing: bool
    tag: str | None
    created: str
    found: int
    new: int


@dataclass(frozen=True)
class AskedSearch(Report):
    """What a saved search found among photos that were added, or all.

    Attributes
    ----------
    id : int
        Of the saved search.
    name : str
        Of the saved search.
    asked : int
        Photos that were added since it was asked last; all where it was asked of all.
    found : list of str
        Names of those that it found, the best first.
    problem : str or None
        Why it could not be asked: it is asked of the same photos again.
    """

    id: int
    name: str
    asked: int
    found: list[str]
    problem: str | None


def rounded(seconds: Mapping[str, float]) -> dict[str, float]:
    """Seconds of steps, to the millisecond."""
    return {step: round(value, 3) for step, value in seconds.items()}
