"""Reports of work on a collection: small objects with the values that commands print with --json."""

from dataclasses import dataclass, field
from typing import Annotated, Any

from index.reports import Report


@dataclass(frozen=True)
class Added(Report):
    """Result of `Collection.add`; photos that cannot be read are in `failed`, and do not stop it."""

    added: Annotated[int, "New and changed photos."]
    unchanged: Annotated[int, "Photos that were in the collection, without changes."]
    back: Annotated[list[str], "Names of photos whose files are back."]
    moved: Annotated[list[str], "Names of photos whose files were moved."]
    vanished: Annotated[list[str], "Names of photos whose files are gone."]
    failed: Annotated[list[dict[str, str]], "Path and reason of photos that cannot be used."]
    failed_before: Annotated[int, "Number of those that had failed before, for the same reason."]
    passed_over: Annotated[dict[str, int], "Files that are no photos, counted by extension."]
    reread: Annotated[int, "Unchanged photos whose metadata was read again, as their files or sidecars were changed."]
    folders_passed_over: Annotated[
        dict[str, int], "Skipped folders of devices and programs, and matches of patterns, counted by pattern."
    ]
    places: Annotated[
        list[dict[str, str]], "Paths of links to photos of the collection: path, and the path of the photo."
    ]
    left: Annotated[int, "New photos that a time limit left for the next run."]
    kept_out: Annotated[list[str], "Paths of skipped photos, as they were removed for good."]
    kept_out_reasons: Annotated[list[dict[str, str]], "Path and reason of each of these."]
    featureless: Annotated[int, "Added photos that can never be found: blank, blurred or too small, or with only text."]
    text_masked: Annotated[int, "Added photos in which printed text was masked (`ignore`)."]
    text_only: Annotated[int, "Added photos that show only printed text."]
    remarks: Annotated[
        list[dict[str, str]],
        "Path and reason of photos that were added although their files are incomplete or unusual.",
    ]
    pages_left: Annotated[int, "Skipped pages of multi-page files: one page of each is the photo."]
    images: Annotated[int, "Photos of the collection."]
    features: Annotated[int, "Features of the collection."]
    words: Annotated[int, "Visual words of the collection."]
    bytes_per_feature: Annotated[float, "On disk, of all data for search and verification."]
    seconds: Annotated[dict[str, float], "Time of the steps."]
    notes: Annotated[list[str], "Other notes on the collection, a sentence each."]
    manifests: Annotated[
        list[dict[str, Any]],
        "For each IIIF manifest: manifest (its address), label, pages, fetched and unchanged (numbers), "
        "withdrawn (names of photos whose pages it no longer has), failed (page, reason and message), reason (why "
        'it could not be fetched, or ""), message (the reason as text with placeholders, and their values; or None).',
    ] = field(default_factory=list)
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
    """Facts of a collection, such as numbers of photos and bytes for each feature."""

    images: Annotated[int, "Photos."]
    features: Annotated[int, "Features of the photos."]
    words: Annotated[int, "Visual words."]
    segments: Annotated[int, "Segments, which store the features."]
    bytes: Annotated[dict[str, int], "Size of each kind of part."]
    bytes_per_feature: Annotated[float, "Total size divided by the number of features."]
    descriptor: Annotated[dict[str, Any], "Name, dim, fingerprint, foreign."]
    extensions: Annotated[list[str], "Extensions that it was made with: ``module:object``, and the version."]
    signature: Annotated[str | None, "Kind of the features' signatures."]
    vocabulary: Annotated[
        dict[str, Any] | None,
        "Words, recall_at_1, fingerprint, trained_on, imbalance, drift; None if there is no vocabulary yet.",
    ]
    augmentation: Annotated[dict[str, Any] | None, "Features borrowed from linked photos."]
    global_descriptors: Annotated[
        dict[str, Any] | None,
        "Name, extension, dim, photos that have one, bytes, and whether they are damaged; None if there are none.",
    ]
    date_added: Annotated[dict[str, str] | None, "First and last."]
    missing: Annotated[int, "Photos whose files are missing."]
    featureless: Annotated[
        list[str], "Names of photos that can never be found: blank, blurred or too small, or with only text."
    ]
    text_masked: Annotated[int, "Photos in which printed text was masked (`ignore`)."]
    text_only: Annotated[list[str], "Names of those that show only text, and can never be found."]
    removed: Annotated[int, "Removed photos that still take space."]
    removed_for_good: Annotated[list[dict[str, Any]], "Name, path, sha256, removed."]
    failed: Annotated[list[dict[str, str]], "Path and reason."]


@dataclass(frozen=True)
class Removed(Report):
    """Photos that `Collection.remove` removed, or would remove."""

    names: Annotated[list[str], "Names of the photos, in order."]
    for_good: Annotated[bool, "Whether they stay out when their folders are indexed again."]
    dry_run: Annotated[bool, "Whether nothing was changed."]
    images: Annotated[int, "Photos that the collection holds now."]

    def to_dict(self) -> dict[str, Any]:
        """Return what ``cairn remove --json`` prints."""
        key = "would_remove" if self.dry_run else "removed"
        return {key: self.names, "for_good": self.for_good, "images": self.images}


@dataclass(frozen=True)
class Imported(Report):
    """Result of `Collection.import_metadata`."""

    rows: Annotated[int, "Rows of the table."]
    matched: Annotated[int, "Rows that match one photo."]
    photos: Annotated[int, "Photos of these rows."]
    unmatched: Annotated[list[dict[str, str | int]], "Line and reason of rows that were not imported."]
    warnings: Annotated[list[dict[str, str | int]], "Line and reason of cells that were not imported."]
    notes: Annotated[list[str], "Notes on the table, a sentence each."]
    columns: Annotated[dict[str, Any], "Meanings of the columns: photo, understood, kept, warnings."]


@dataclass(frozen=True)
class Album(Report):
    """An album: photos that were put together under a name."""

    id: Annotated[int, "Unique and permanent; `album` of `cairn.Filter`."]
    name: str
    photos: Annotated[int, "Photos in it that are not hidden."]
    created: Annotated[str, "Date of creation: ISO 8601, UTC."]


@dataclass(frozen=True)
class SharedAlbum(Report):
    """A link that shows an album to everyone who has it, while this user's server serves the collection."""

    id: Annotated[str, "For ending the link; it does not open the album."]
    album: Annotated[str | None, "Name of the album; None: it was deleted, and the link shows nothing."]
    created: Annotated[str, "ISO 8601, UTC."]
    expires: Annotated[str, "Last day (UTC) on which it is valid, ISO 8601."]
    over: Annotated[bool, "Whether that has passed."]
    path: Annotated[
        str | None,
        "Only of a new link: its address below that of the collection on a server, such as "
        "``/shared/cairn_…``. It is not stored.",
    ] = None


@dataclass(frozen=True)
class SavedSearch(Report):
    """A saved search."""

    id: Annotated[int, "Unique and permanent."]
    name: str
    query: Annotated[dict[str, Any], "Query photos and options."]
    favourite: bool
    standing: Annotated[bool, "Whether it also searches photos that are added later."]
    tag: Annotated[str | None, "Given to photos that it finds."]
    created: Annotated[str, "When it was saved: ISO 8601, UTC."]
    found: Annotated[int, "Number of its stored finds."]
    new: Annotated[int, "Number of finds not yet viewed."]


@dataclass(frozen=True)
class AskedSearch(Report):
    """Result of running a saved search on added photos, or on all."""

    id: Annotated[int, "Of the saved search."]
    name: Annotated[str, "Of the saved search."]
    asked: Annotated[int, "Number of photos added since the last run, or of all photos if it was run on all."]
    found: Annotated[list[str], "Names of the photos found, the best first."]
    problem: Annotated[str | None, "Why it could not be run; the next run repeats it with the same photos."]
