"""Reports of work on a collection: small objects with the values that commands print with --json."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


class Report:
    """A report whose attributes are printed by a command."""

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes, as the command prints them with --json."""
        found: dict[str, Any] = asdict(self)  # type: ignore[call-overload]  # every report is a dataclass
        return found | {"damaged": list(found["damaged"])} if "damaged" in found else found


@dataclass(frozen=True)
class Added(Report):
    """Result of `Collection.add`; photos that cannot be read are in `failed`, and do not stop it.

    Attributes
    ----------
    added : int
        New and changed photos.
    unchanged : int
        Photos that were in the collection, without changes.
    back, moved, vanished : list of str
        Names of photos whose files are back, were moved, or are gone.
    failed : list of dict
        Path and reason of photos that cannot be used.
    failed_before : int
        Number of those that had failed before, for the same reason.
    passed_over : dict of str to int
        Files that are no photos, counted by extension.
    reread : int
        Unchanged photos whose metadata was read again, as their files or sidecars were changed.
    folders_passed_over : dict of str to int
        Skipped folders of devices and programs, and matches of patterns, counted by pattern.
    places : list of dict
        Paths of links to photos of the collection: path, and the path of the photo.
    left : int
        New photos that a time limit left for the next run.
    kept_out : list of str
        Paths of skipped photos, as they were removed for good.
    kept_out_reasons : list of dict
        Path and reason of each of these.
    featureless : int
        Added photos that can never be found: blank, blurred or too small, or with only text.
    text_masked, text_only : int
        Added photos in which printed text was masked (`ignore`), and those that show only text.
    remarks : list of dict
        Path and reason of photos that were added although their files are incomplete or unusual.
    pages_left : int
        Skipped pages of multi-page files: one page of each is the photo.
    images, features, words : int
        Totals of the collection.
    bytes_per_feature : float
        On disk, of all data for search and verification.
    seconds : dict of str to float
        Time of the steps.
    notes : list of str
        Other notes on the collection, a sentence each.
    manifests : list of dict
        For each IIIF manifest: manifest (its address), label, pages, fetched and unchanged (numbers), withdrawn (names
        of photos whose pages it no longer has), failed (page and reason), reason (why it could not be fetched, or "").
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
    """Facts of a collection, such as numbers of photos and bytes for each feature.

    Attributes
    ----------
    images, features, words, segments : int
        Photos, their features, visual words, and the segments that store the features.
    bytes : dict of str to int
        Size of each kind of part.
    bytes_per_feature : float
        Total size divided by the number of features.
    descriptor : dict
        Name, dim, fingerprint, foreign.
    extensions : list of str
        Extensions that it was made with: ``module:object``, and the version.
    signature : str or None
        Kind of the features' signatures.
    vocabulary : dict or None
        Words, recall_at_1, fingerprint, trained_on, imbalance, drift; None if there is no vocabulary yet.
    augmentation : dict or None
        Features borrowed from linked photos.
    global_descriptors : dict or None
        Name, extension, dim, photos that have one, bytes, and whether they are damaged; None if there are none.
    date_added : dict or None
        First and last.
    missing, removed : int
        Photos whose files are missing; removed photos that still take space.
    featureless : list of str
        Names of photos that can never be found: blank, blurred or too small, or with only text.
    text_masked : int
        Photos in which printed text was masked (`ignore`).
    text_only : list of str
        Names of those that show only text, and can never be found.
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
    """Photos that `Collection.remove` removed, or would remove.

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
        False if it is missing or empty: its drive may not be connected.
    """

    folder: str
    photos: int
    there: bool


@dataclass(frozen=True)
class MovedRoot(Report):
    """Result of `Collection.move_root`.

    Attributes
    ----------
    moved : list of str
        Names of photos found in the new folder.
    left : list of str
        Names of photos that are not there, or have changed: their paths are not updated.
    """

    moved: list[str]
    left: list[str]


@dataclass(frozen=True)
class Compacted(Report):
    """Result of `Collection.compact`.

    Attributes
    ----------
    images : int
        Photos of the collection.
    removed : int
        Removed photos whose space was freed.
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
    """Result of `Collection.retrain`.

    Attributes
    ----------
    images : int
        Photos of the collection.
    words : dict of str to int
        Visual words, before and after.
    quantisation_error : dict of str to float
        Mean squared distance of features to their words, before and after.
    dropped : list of dict
        Name and reason of dropped photos.
    augmentation_emptied : bool
        Whether borrowed features were deleted: group again to renew them.
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
    """Result of `Collection.add_global_descriptors`.

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
        The damage, and what to do about it: a sentence each.
    """

    file: str
    what: str
    remedy: str


@dataclass(frozen=True)
class Check(Report):
    """Result of `Collection.check`.

    Attributes
    ----------
    ok : bool
        Whether everything is undamaged.
    files, bytes : int
        Numbers read.
    damaged : tuple of Damage
        Damaged files.
    notes : list of str
        Notes other than damage.
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
    """Result of `Collection.backup`.

    Attributes
    ----------
    ok : bool
        Whether the whole backup is undamaged.
    images : int
        Photos in the backup.
    copied, bytes : int
        Files that were copied or linked, and bytes that were copied.
    kept : int
        Files that the backup already had.
    removed : int
        Files and folders removed from the backup, as the collection no longer has them.
    damaged : tuple of Damage
        Damaged files of the backup.
    notes : list of str
        Notes other than damage.
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
    """Result of `repair`.

    Attributes
    ----------
    ok : bool
        Whether everything is sound now, and nothing was lost.
    repaired : list of dict
        File, and method of repair.
    lost : list of dict
        Photos lost from the collection: name, path and reason.
    lapses : list of str
        Other losses, in sentences.
    damaged : tuple of Damage
        Remaining damage.
    notes : list of str
        Notes other than damage.
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
    """Result of `Collection.import_metadata`.

    Attributes
    ----------
    rows, matched : int
        Rows of the table, and those that match one photo.
    photos : int
        Photos of these rows.
    unmatched, warnings : list of dict
        Line and reason of rows, and of cells, that were not imported.
    notes : list of str
        Notes on the table, a sentence each.
    columns : dict
        Meanings of the columns: photo, understood, kept, warnings.
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
    """Result of `Collection.refresh_metadata`.

    Attributes
    ----------
    read : int
        Photos.
    missing : int
        Photos whose files are missing or may not be read: they keep their metadata.
    told : int
        Photos whose files have any metadata.
    """

    read: int
    missing: int
    told: int


@dataclass(frozen=True)
class Sidecars(Report):
    """Result of `Collection.write_sidecars`.

    Attributes
    ----------
    written : int
        New or changed sidecars.
    unchanged : int
        Photos whose sidecars were up to date.
    missing : int
        Photos whose files are missing.
    failed : list of dict
        Path of each photo whose sidecar could not be written, and the reason.
    """

    written: int
    unchanged: int
    missing: int
    failed: list[dict[str, str]]


@dataclass(frozen=True)
class Edited(Report):
    """Result of `Collection.edit`.

    Attributes
    ----------
    changed : int
        Changed photos.
    kept : int
        Photos that keep a tag to be removed, as it is in their files.
    before : dict of int to dict of str to tuple of str
        Earlier values, by number and field, for `Collection.undo`.
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
        Unique and permanent; `album` of `cairn.Filter`.
    name : str
    photos : int
        Photos in it that are not hidden.
    created : str
        Date of creation: ISO 8601, UTC.
    """

    id: int
    name: str
    photos: int
    created: str


@dataclass(frozen=True)
class SharedAlbum(Report):
    """A link that shows an album to everyone who has it, while this user's server serves the collection.

    Attributes
    ----------
    id : str
        For ending the link; it does not open the album.
    album : str or None
        Name of the album; None: it was deleted, and the link shows nothing.
    created : str
        ISO 8601, UTC.
    expires : str
        Last day (UTC) on which it is valid, ISO 8601.
    over : bool
        Whether that has passed.
    path : str or None
        Only of a new link: its address below that of the collection on a server, such as ``/shared/cairn_…``. It is
        not stored.
    """

    id: str
    album: str | None
    created: str
    expires: str
    over: bool
    path: str | None = None


@dataclass(frozen=True)
class SavedSearch(Report):
    """A saved search.

    Attributes
    ----------
    id : int
        Unique and permanent.
    name : str
    query : dict
        Query photos and options.
    favourite : bool
    standing : bool
        Whether it also searches photos that are added later.
    tag : str or None
        Given to photos that it finds.
    created : str
        When it was saved: ISO 8601, UTC.
    found : int
        Number of its stored finds.
    new : int
        Number of finds not yet viewed.
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
    """Result of running a saved search on added photos, or on all.

    Attributes
    ----------
    id : int
        Of the saved search.
    name : str
        Of the saved search.
    asked : int
        Number of photos added since the last run, or of all photos if it was run on all.
    found : list of str
        Names of the photos found, the best first.
    problem : str or None
        Why it could not be run; the next run repeats it with the same photos.
    """

    id: int
    name: str
    asked: int
    found: list[str]
    problem: str | None


def rounded(seconds: Mapping[str, float]) -> dict[str, float]:
    """Seconds of steps, to the millisecond."""
    return {step: round(value, 3) for step, value in seconds.items()}
