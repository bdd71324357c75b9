"""What an indexing run has found and done: the files of photos, failures, and remarks."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from index.progress import Timed
from index.text import printable
from retrieval.catalogue.failures import Failure, keep_failures
from retrieval.collection.collection import Collection
from retrieval.photos.passing import PassedOver
from retrieval.photos.remarks import Remarks


@dataclass
class IndexReport(Timed):
    """Result of an indexing run."""

    added: int = 0  # photos that are new, and photos that have changed
    unchanged: int = 0
    back: list[str] = field(default_factory=list)  # names of unchanged photos whose files were missing, and are back
    moved: list[str] = field(default_factory=list)  # new names of photos that were moved
    vanished: list[str] = field(default_factory=list)  # names of photos whose files are gone
    failed: list[dict[str, str]] = field(default_factory=list)  # path and reason
    failed_before: list[str] = field(default_factory=list)  # paths of files that failed before in the same way
    reread: int = 0  # unchanged photos whose metadata was read again, as their files or sidecars were touched
    passed_over: PassedOver = field(default_factory=PassedOver)  # skipped folders, and files that are no photos
    places: list[dict[str, str]] = field(default_factory=list)  # paths of links to indexed photos, and of the photos
    left: int = 0  # new photos that a time limit left for the next run
    kept_out: list[str] = field(default_factory=list)  # paths of skipped files, as they were removed for good
    kept_out_reasons: list[dict[str, str]] = field(default_factory=list)  # path and reason of each of these
    remarks: list[dict[str, str]] = field(default_factory=list)  # path, and a remark on how it was read
    featureless: int = 0  # added photos without features
    text_masked: int = 0  # added photos in which printed text was masked
    text_only: int = 0  # of these, photos that show only text
    pages_left: int = 0  # skipped pages of files with several pages
    notes: list[str] = field(default_factory=list)  # other notes on the collection, a sentence each
    seconds: dict[str, float] = field(
        default_factory=lambda: {"extract": 0.0, "vocabulary": 0.0, "assign": 0.0, "write": 0.0, "total": 0.0}
    )

    def keep_out(self, path: str, reason: str) -> None:
        """Note a skipped file."""
        self.kept_out.append(path)
        self.kept_out_reasons.append({"path": printable(path), "reason": reason})

    def remark(self, file: "FoundFile", remarks: Remarks) -> None:
        """Note how a photo was read, if in an unusual way."""
        remaining = replace(remarks, pages=max(0, remarks.pages - file.others))
        self.pages_left += remaining.pages
        for sentence in remaining.sentences():
            self.remarks.append({"path": printable(str(file.path)), "reason": sentence})


@dataclass(frozen=True)
class FoundFile:
    """The file of a photo, or a page of it."""

    path: Path
    name: str
    size: int
    mtime_ns: int
    key: str  # SHA-256 of its content
    others: int = 0  # pages of its file that are photos of their own
    taken_again: tuple[int, ...] = ()  # photos that leave the list of exclusions once this one is done

    def failure(self, reason: str) -> Failure:
        """The failure to read or describe it."""
        return Failure(str(self.path), reason, self.size, self.mtime_ns, self.key)


def record_failures(collection: Collection, failures: list[Failure], report: IndexReport) -> None:
    """Store failures in the catalogue, and add them to the report."""
    if failures:
        collection.catalogue.write(keep_failures, failures)
    report.failed += [{"path": printable(failure.path), "reason": failure.reason} for failure in failures]
