"""Indexing: from files of photos to committed segments; an interrupted run resumes where it stopped."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from index.errors import CairnError
from index.progress import Progress, silent
from index.text import printable
from index.vocabulary import Vocabulary
from retrieval.catalogue.exclusions import include_photos
from retrieval.catalogue.failures import Failure, failures_in
from retrieval.catalogue.masked import note_masked
from retrieval.catalogue.passing import change_passing, choose_films, passing_of
from retrieval.catalogue.photos import dates_added
from retrieval.catalogue.schema import ImageRow, now
from retrieval.catalogue.segment_rows import commit_segment, segments_in
from retrieval.catalogue.settings import keep_setting, reserve_numbers
from retrieval.catalogue.words import lacks_words, make_words
from retrieval.collection.collection import Collection, find_vocabulary
from retrieval.collection.layout import EARLY, STAGING, TRAINED_KEY
from retrieval.collection.sealing import changed
from retrieval.collection.segment_writing import write_photos
from retrieval.collection.stale_files import remove_leftovers
from retrieval.features.staging import Staged
from retrieval.indexing.add_options import AddOptions
from retrieval.indexing.compaction import TierMerger
from retrieval.indexing.discovery import find_new
from retrieval.indexing.preparing import LocalPreparer, Prepared, Preparer
from retrieval.indexing.report import FoundFile, IndexReport, record_failures
from retrieval.indexing.retraining import reassign
from retrieval.indexing.training import (
    FEWEST,
    FIRST,
    added_files,
    make_early_vocabulary,
    remove_early_remains,
    train_vocabulary,
)
from retrieval.metadata.fields import Metadata


class _TimeIsUp(Exception):
    """The time limit of a run has passed."""


def index_photos(
    collection: Collection,
    paths: Sequence[Path],
    options: AddOptions | None = None,
    *,
    workers: int = 1,
    preparer: Preparer | None = None,
    progress: Progress = silent,
) -> IndexReport:
    """Add photos to a collection, and update its records of the photos that it has.

    A photo of known content whose old file is gone has moved: it keeps its number. A photo whose file is gone from one
    of the folders is marked as missing, and stays searchable. Photos that cannot be read do not stop the run; the
    report lists the reasons. A run with a time limit does at least one more photo than the one before. Photos that are
    added `again` leave the list of exclusions once they are added or have failed.
    """
    options = options or AddOptions()
    limit = options.time_limit
    if limit is not None and not limit > 0:
        raise CairnError(f"A time limit must be more than 0, not {limit:g}.")
    report = IndexReport()
    failed_before = set(collection.catalogue.read(failures_in))
    with report.timed("total"), collection.locked(), changed(collection):
        _pass_over(collection, options.exclude, options.include)
        if options.films is not None or options.frame_every is not None:
            collection.catalogue.write(choose_films, options.films, options.frame_every)
        remove_early_remains(collection)
        _take_vocabulary(collection, options.vocabulary)
        # Not if the vocabulary is to be made from certain photos, which may not be among the first.
        own, reads_files = collection.options.sample_from is None, collection.extractor.reads_files
        early = options.early and own and preparer is None and not reads_files
        preparer = preparer or LocalPreparer(collection, workers)
        with report.timed("extract"):
            files = find_new(collection, paths, options.again, report, progress, preparer.checksums, options.max_pages)
        _refuse_undescribed(collection, files)
        remove_leftovers(collection)
        # The time limit begins after discovery, which takes equally long in every run: each must get further.
        steps = _Steps(report, progress, files, limit)
        merger = TierMerger(collection)
        try:
            remaining = _with_vocabulary(collection, preparer, files, report, steps, workers, early=early)
            batch = collection.options.batch
            while remaining:
                part, remaining = remaining[:batch], remaining[batch:]
                _add_segment(collection, preparer, part, report, steps.extracted, steps.has_words)
                with report.timed("write"):
                    merger.merge()
                    preparer.publish()
                steps.done += len(part)
            preparer.end()
        except _TimeIsUp:
            report.left = steps.all_new - steps.done
        report.notes += merger.notes
        if collection.catalogue.read(lacks_words):  # written by an earlier version
            collection.catalogue.write(make_words)
    failing = {failure.path for failure in collection.catalogue.read(failures_in) if failure in failed_before}
    report.failed_before = [entry["path"] for entry in report.failed if entry["path"] in failing]
    return report


def _pass_over(collection: Collection, exclude: Sequence[str], include: Sequence[str]) -> None:
    before = collection.catalogue.read(passing_of)
    if before.changed(exclude, include) != before:
        collection.catalogue.write(change_passing, exclude, include)


class _Steps:
    """Progress of a run through its new photos, and its time limit."""

    def __init__(
        self, report: IndexReport, tell: Progress, files: Sequence[FoundFile], time_limit: float | None
    ) -> None:
        self.all_new = len(files)
        self._new = {file.path for file in files}
        self.done = 0  # photos that were added or have failed
        self._report, self.tell = report, tell
        self._end = time.monotonic() + time_limit if time_limit is not None else float("inf")
        self._ready: set[Path] = set()  # extracted photos: some are reported twice, for the vocabulary and a segment
        self._goes_further = False  # whether it did more than earlier runs

    def extracted(self, file: FoundFile, one: Staged) -> None:
        """Report an extracted photo, if it is new; raises `_TimeIsUp` if it is the last one within the time limit."""
        if file.path not in self._new:
            return
        self._ready.add(file.path)
        self.tell("extract", len(self._ready), self.all_new)
        self._goes_further = self._goes_further or one.is_new or self._report.added > 0
        if self._goes_further and time.monotonic() > self._end:
            raise _TimeIsUp

    def has_words(self, number: int) -> None:
        """Report that `number` photos of the current batch have their words."""
        self.tell("index", self.done + number, self.all_new)


def _take_vocabulary(collection: Collection, vocabulary: Path | None) -> None:
    """Copy the vocabulary, if one is passed; raises CairnError if the collection's own is lost."""
    if not collection.has_vocabulary and collection.catalogue.read(segments_in):
        raise CairnError("The vocabulary of {folder} is missing: run {cairn repair}.", folder=collection.folder)
    if vocabulary is not None:
        _adopt_vocabulary(collection, vocabulary)


def _refuse_undescribed(collection: Collection, files: list[FoundFile]) -> None:
    """Raise CairnError if new photos lack features of another program."""
    if files and not collection.extractor.is_ready:
        raise CairnError(
            "The features of {folder} come from another program, and {path} is new: give the features of new photos "
            "with {--features}.",
            folder=collection.folder,
            path=printable(str(files[0].path)),
        )


def make_vocabulary(
    collection: Collection, paths: Sequence[Path], *, workers: int = 1, progress: Progress = silent
) -> IndexReport:
    """Make the vocabulary of a collection, unless it has one, from photos that are not added to it."""
    report = IndexReport()
    with report.timed("total"), collection.locked():
        remove_early_remains(collection)
        if not collection.has_vocabulary:
            preparer = LocalPreparer(collection, workers)
            files = find_new(collection, paths, False, report, progress, preparer.checksums)
            ready: set[Path] = set()

            def extracted(file: FoundFile, one: Staged) -> None:
                ready.add(file.path)
                progress("extract", len(ready), min(len(files), collection.options.sample or len(files)))

            if not files or not _make_vocabulary(collection, preparer, files, report, extracted, progress):
                where = ", ".join(printable(str(path)) for path in paths[:3])
                raise CairnError(f"None of the photos of {where} has any features to compute a vocabulary from.")
            preparer.end()
    collection.forget()
    return report


def _taken_again(files: Sequence[FoundFile]) -> list[int]:
    return [number for file in files for number in file.taken_again]


def _take_again(collection: Collection, files: Sequence[FoundFile]) -> None:
    if numbers := _taken_again(files):
        collection.catalogue.write(include_photos, numbers)


def _adopt_vocabulary(collection: Collection, source: Path) -> None:
    """Copy the vocabulary of another collection."""
    folder = find_vocabulary(source)
    if folder.name == EARLY:
        raise CairnError(
            "The words of {source} are those of its first photos: end its indexing first, by {cairn index}.",
            source=source,
        )
    vocabulary = Vocabulary.load(folder)
    collection.check_descriptor(vocabulary)
    if collection.has_vocabulary:
        if collection.vocabulary.fingerprint != vocabulary.fingerprint:
            raise CairnError(f"{collection.folder} has another vocabulary already: index into a new collection.")
        return
    collection.catalogue.write(keep_setting, TRAINED_KEY, "0")
    vocabulary.save(collection.vocabulary_folder)


def _make_vocabulary(
    collection: Collection,
    preparer: Preparer,
    files: list[FoundFile],
    report: IndexReport,
    extracted: Callable[[FoundFile, Staged], None],
    tell: Progress,
) -> bool:
    """Train the vocabulary on photos, and keep it; False if none has features."""
    trained = train_vocabulary(collection, preparer, files, report, extracted, tell)
    if trained is None:
        return False
    # Written first: it has no effect without a vocabulary, and must be known with one.
    first = collection.catalogue.write(reserve_numbers, 0)
    collection.catalogue.write(keep_setting, TRAINED_KEY, str(first + len(files)))
    trained.save(collection.vocabulary_folder)
    preparer.publish()
    return True


def _with_vocabulary(
    collection: Collection,
    preparer: Preparer,
    files: list[FoundFile],
    report: IndexReport,
    steps: _Steps,
    workers: int,
    *,
    early: bool,
) -> list[FoundFile]:
    """Make the vocabulary, unless there is one, and return the photos that are still to be added: all but the first if
    those were added `early`, and none if no photo has features.
    """
    all_files = files
    if early and len(files) >= FEWEST and not collection.has_vocabulary:
        files = _add_early(collection, preparer, files, report, steps)
    is_early = collection.has_early_words
    if is_early and not steps.done:  # an earlier run added the first ones
        all_files = [*added_files(collection), *files]
    if is_early or (files and not collection.has_vocabulary):
        with report.timed("vocabulary"):
            if is_early:
                made = _replace_early(collection, preparer, all_files, report, steps, workers)
            else:
                made = _make_vocabulary(collection, preparer, files, report, steps.extracted, steps.tell)
            if not made:
                _take_again(collection, files)
                steps.all_new -= len(files)
                return []
    elif files:
        collection.check_vocabulary()
    return files


def _add_early(
    collection: Collection, preparer: Preparer, files: list[FoundFile], report: IndexReport, steps: _Steps
) -> list[FoundFile]:
    """Add the first photos of a collection with words of their own, and return the others; all if the first ones have
    no features.
    """
    first = files[:FIRST]
    with report.timed("vocabulary"):
        if not make_early_vocabulary(collection, preparer, first, steps.extracted):
            return files
    # Their words are not reported: all photos will have others, and only then is that step under way.
    _add_segment(collection, preparer, first, report, steps.extracted, lambda number: None, keep_staged=True)
    steps.done = len(first)
    return files[FIRST:]


def _replace_early(
    collection: Collection, preparer: Preparer, files: list[FoundFile], report: IndexReport, steps: _Steps, workers: int
) -> bool:
    """Train the vocabulary on the first photos and all others, and give the first ones its words; False if none has
    features.
    """
    trained = train_vocabulary(collection, preparer, files, report, steps.extracted, steps.tell)
    if trained is None:
        return False
    following = steps.all_new - steps.done
    reassign(collection, trained, collection.folder / STAGING, following=following, workers=workers)
    collection.forget()
    remove_leftovers(collection)
    preparer.publish()
    return True


def _rows(collection: Collection, good: list[tuple[FoundFile, Prepared]], errors: list[float]) -> list[ImageRow]:
    """Rows of a new segment's photos in the catalogue."""
    first = collection.catalogue.write(reserve_numbers, len(good))
    moment = now()
    # A photo whose file has changed keeps the date when it was added.
    added = collection.catalogue.read(dates_added, [str(file.path) for file, _ in good])
    return [
        ImageRow(
            number=first + position,
            path=str(file.path),
            name=file.name,
            sha256=file.key,
            size=file.size,
            mtime_ns=file.mtime_ns,
            width=one.staged.width,
            height=one.staged.height,
            features=one.staged.features,
            position=position,
            date_added=added.get(str(file.path), moment),
            quantisation_error=error,
        )
        for position, ((file, one), error) in enumerate(zip(good, errors, strict=True))
    ]


def _add_segment(
    collection: Collection,
    preparer: Preparer,
    files: list[FoundFile],
    report: IndexReport,
    extracted: Callable[[FoundFile, Staged], None],
    tell: Callable[[int], None],
    *,
    keep_staged: bool = False,
) -> None:
    """Extract, assign and commit one batch of photos; report how many have their words. Their features stay staged
    if `keep_staged`.
    """
    good: list[tuple[FoundFile, Prepared]] = []
    metadata: list[Metadata] = []
    failures: list[Failure] = []
    with report.timed("extract"):
        for file, one in zip(files, preparer.prepare(files), strict=True):
            if one.metadata is None:
                failures.append(file.failure(one.reason or ""))
            else:
                metadata.append(one.metadata)
                good.append((file, one))
            extracted(file, one.staged)
    tell(len(failures))
    record_failures(collection, failures, report)
    if not good:
        _take_again(collection, files)
        return
    prepared_photos, errors = [], []
    with report.timed("assign"):
        for features, error in preparer.quantised(good):
            prepared_photos.append(features)
            errors.append(error)
            tell(len(failures) + len(prepared_photos))
    with report.timed("write"):
        rows = _rows(collection, good, errors)
        segment = write_photos(collection, rows, prepared_photos)
        masked = [row for row, (_, one) in zip(rows, good, strict=True) if one.staged.remarks.text]
        if masked:  # before the segment: numbers without photos do no harm
            collection.catalogue.write(note_masked, [row.number for row in masked])
        preparer.publish()  # first: all machines must reach the segments that the catalogue lists
        collection.catalogue.write(commit_segment, segment, rows, metadata, _taken_again(files))
        if not keep_staged:
            preparer.done([file for file, _ in good])
        report.added += len(good)
        report.featureless += sum(not one.staged.features for _, one in good)
        report.text_masked += len(masked)
        report.text_only += sum(not row.features for row in masked)
        for file, one in good:
            report.remark(file, one.staged.remarks)
