"""Indexing: from files of photos to committed segments, so that an interrupted run is picked up where it stopped."""

import hashlib
import os
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Collection as Collection_
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from index.errors import CairnError, Unreadable
from index.kmeans import FileSource
from index.progress import Progress
from index.segment import write_segment
from index.vocabulary import Vocabulary, VocabularyOptions, default_words
from retrieval.catalogue.catalogue import Catalogue, Failure, ImageRow, Known, Move, check_storable, printable
from retrieval.catalogue.exclusions import Exclusions
from retrieval.catalogue.schema import INDEXED
from retrieval.collection.collection import Collection, find_vocabulary
from retrieval.collection.layout import SEGMENTS, STAGING, TRAINED_KEY
from retrieval.collection.sealing import seal
from retrieval.collection.segment_notes import write_notes
from retrieval.collection.segments import segment_row
from retrieval.collection.stale_files import remove_leftovers
from retrieval.features.encoding import encode_geometry
from retrieval.features.staging import Staged, Staging, stage_all
from retrieval.metadata.photo import Metadata, read_metadata
from retrieval.photos.decoding import read_photo
from retrieval.photos.listing import list_photos

_FEATURELESS = "it shows nothing to make a vocabulary from: index it with photos that do"


@dataclass
class IndexReport:
    """What a run of indexing did."""

    added: int = 0  # photos that are new, and photos that have changed
    unchanged: int = 0
    back: list[str] = field(default_factory=list)  # names of unchanged photos whose files had gone, and are back
    moved: list[str] = field(default_factory=list)  # names that photos have now which were known at another path
    vanished: list[str] = field(default_factory=list)  # names of photos that are no longer where they were
    failed: list[dict[str, str]] = field(default_factory=list)  # path and reason
    failed_before: list[str] = field(default_factory=list)  # paths of those that failed before just so
    passed_over: Counter[str] = field(default_factory=Counter)  # files that are no photos, by their endings
    kept_out: list[str] = field(default_factory=list)  # paths of files that were left out: they were removed for good
    kept_out_reasons: list[dict[str, str]] = field(default_factory=list)  # path and reason of each of these
    seconds: dict[str, float] = field(
        default_factory=lambda: {"extract": 0.0, "vocabulary": 0.0, "assign": 0.0, "write": 0.0, "total": 0.0}
    )

    def keep_out(self, path: str, reason: str) -> None:
        """Note a file that is left out."""
        self.kept_out.append(path)
        self.kept_out_reasons.append({"path": printable(path), "reason": reason})

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Add the time of a block to a step."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[step] += time.perf_counter() - start


@dataclass(frozen=True)
class _File:
    """A photo's file as it was found."""

    path: Path
    name: str
    size: int
    mtime_ns: int
    key: str  # SHA-256 of its content
    taken_again: tuple[int, ...] = ()  # photos that leave the list of those removed for good once this one is done

    def failure(self, reason: str) -> Failure:
        return Failure(str(self.path), reason, self.size, self.mtime_ns, self.key)


def index_photos(
    collection: Collection,
    paths: Sequence[Path],
    *,
    vocabulary: Path | None = None,
    again: bool = False,
    workers: int = 1,
    progress: Progress | None = None,
) -> IndexReport:
    """Add photos to a collection, and bring up to date what it knows of those that are in it.

    A photo whose content is known, and whose file is no longer where it was, has moved: it keeps its number. A photo of
    the collection whose file has gone from the folders that are given is marked as missing, and stays searchable.

    Parameters
    ----------
    collection : Collection
        Where to. Its vocabulary is made from these photos if it has none.
    paths : sequence of Path
        Photos and folders of photos.
    vocabulary : Path, optional
        A collection, or the vocabulary folder of one, whose vocabulary is taken instead of making one.
    again : bool
        Take in photos that were removed for good, too: each leaves the list of these when it is in, or has failed.
    workers : int
        Processes; the result does not depend on it.
    progress : callable, optional
        Told how far each step is.

    Returns
    -------
    IndexReport
        Photos that could not be read are in it, with the reason; none of them stops the run.

    Raises
    ------
    CairnError
        Another process is adding to the collection, a path does not exist, the vocabulary does not fit, or no photo of
        the sample has any feature to make one from.
    """
    report = IndexReport()
    failed_before = set(collection.catalogue.failures())
    tell = progress or (lambda step, done, of: None)
    with report.timed("total"), collection.locked():
        if not collection.has_vocabulary and collection.catalogue.segments():
            raise CairnError(f"The vocabulary of {collection.folder} is missing: run cairn repair.")
        if vocabulary is not None:
            _adopt_vocabulary(collection, vocabulary)
        with report.timed("extract"):
            files = _find_new(collection, paths, again, report, tell)
        remove_leftovers(collection)
        staging = Staging(collection.folder / STAGING, collection.extractor, collection.options.image)
        ready: set[Path] = set()  # photos whose features are there: some twice, for the vocabulary and for a segment
        all_new = len(files)

        def extracted(file: _File) -> None:
            ready.add(file.path)
            tell("extract", len(ready), all_new)

        if files and not collection.has_vocabulary:
            with report.timed("vocabulary"):
                if not _make_vocabulary(collection, staging, files, report, workers, extracted, tell):
                    collection.catalogue.include(_taken_again(files))
                    files = []
        batch = collection.options.batch
        for start in range(0, len(files), batch):

            def has_words(done: int, before: int = start) -> None:
                tell("index", before + done, all_new)

            part = files[start : start + batch]
            _add_segment(collection, staging, part, report, workers, extracted, has_words)
        staging.remove()
        seal(collection)
    failing = {failure.path for failure in collection.catalogue.failures() if failure in failed_before}
    report.failed_before = [entry["path"] for entry in report.failed if entry["path"] in failing]
    collection.forget()
    return report


def _find_new(
    collection: Collection, paths: Sequence[Path], again: bool, report: IndexReport, tell: Progress
) -> list[_File]:
    """List photos that are not in the collection as they are now; note those whose file cannot be used at all."""
    known = collection.catalogue.known()
    exclusions = Exclusions(collection.catalogue.exclusions())
    files, failures, moves = [], [], []
    back: list[int] = []
    seen, sound = set(), set()  # paths that are looked at, and those whose photos are what they were
    found = list_photos(paths, report.passed_over)
    # Folders by their real names, so that a photo is the same however its folder was called.
    real = {root: root.resolve() for root, _ in found}
    for number, (root, path) in enumerate(found):
        tell("look", number + 1, len(found))
        name = path.relative_to(root).as_posix() if path != root else path.name
        path = real[root] / path.relative_to(root)
        if path in seen:
            continue
        seen.add(path)
        before = known.get(str(path))
        indexed = before is not None and before.state == INDEXED
        try:
            check_storable(str(path))
            status = path.stat()
            if not stat.S_ISREG(status.st_mode):
                read_photo(path)  # raises, with the reason; to read a pipe here would wait for ever
            same = before is not None and (before.size, before.mtime_ns) == (status.st_size, status.st_mtime_ns)
            if same and before is not None and before.state == INDEXED and not before.missing:
                report.unchanged += 1
                sound.add(str(path))
                continue
            there = exclusions.at(str(path), status.st_size, status.st_mtime_ns)
            if there is not None and not again and not indexed:
                report.keep_out(str(path), there.reason(str(path), there.sha256))
                continue
            with path.open("rb") as stream:
                key = hashlib.file_digest(stream, "sha256").hexdigest()
        except (CairnError, OSError) as error:
            if not again and not indexed and (matching := exclusions.matching(str(path), "")):
                report.keep_out(str(path), matching[0].reason(str(path), None))
                continue
            reason = str(error) if isinstance(error, CairnError) else f"the file cannot be read ({error.strerror})"
            failures.append(Failure(str(path), reason))
            continue
        if before is not None and before.state == INDEXED and before.sha256 == key:
            report.unchanged += 1
            sound.add(str(path))
            moves.append(Move(before.number, str(path), None, status.st_size, status.st_mtime_ns))
            if before.missing:
                back.append(before.number)
            continue
        files.append(_File(path, name, status.st_size, status.st_mtime_ns, key))
    files, moved = _recognise(known, files, {str(path) for path in seen})
    if again:
        held = [(path, before.sha256) for path in sound if (before := known.get(path)) and before.sha256]
        files = _take_again(collection.catalogue, exclusions, files, held)
    else:
        files = _leave_out(collection.catalogue, exclusions, files, known, report)
    report.moved += collection.catalogue.move([*moves, *moved])
    report.back += collection.catalogue.names_of(back).values()
    sound.update(move.path for move in moved)
    sound.update(report.kept_out)
    failed = [failure.path for failure in collection.catalogue.failures()]
    collection.catalogue.forget_failures([path for path in failed if path in sound or not os.path.lexists(path)])
    _record(collection, failures, report)
    _mark_vanished(collection, known, paths, {str(path) for path in seen}, {move.number for move in moved}, report)
    return files


def _recognise(
    known: Mapping[str, Known], files: list[_File], seen: Collection_[str]
) -> tuple[list[_File], list[Move]]:
    """Tell photos that have moved from new ones, by their content; give the new ones, and where the others are now."""
    wanted = {file.key for file in files}
    changed = {str(file.path) for file in files}
    # Photos that are no longer where they were: their file is gone, or is another photo now.
    displaced: dict[str, list[Known]] = {}
    for path, before in known.items():
        if before.state != INDEXED or before.sha256 is None or before.sha256 not in wanted:
            continue
        if path in changed or (path not in seen and _has_gone(path)):
            displaced.setdefault(before.sha256, []).append(before)
    new, moves = [], []
    for file in files:
        if displaced.get(file.key):
            number = displaced[file.key].pop(0).number
            moves.append(Move(number, str(file.path), file.name, file.size, file.mtime_ns))
        else:
            new.append(file)
    return new, moves


def _leave_out(
    catalogue: Catalogue,
    exclusions: Exclusions,
    files: list[_File],
    known: Mapping[str, Known],
    report: IndexReport,
) -> list[_File]:
    """Leave out what was removed for good; where such a photo has moved, its new place is noted."""
    kept, moved = [], {}
    for file in files:
        matching = exclusions.matching(str(file.path), file.key)
        before = known.get(str(file.path))
        if before is not None and before.state == INDEXED:  # another photo has come to that path, and was edited
            matching = [one for one in matching if one.sha256 == file.key]
        if not matching:
            kept.append(file)
            continue
        # First of all the photo that was at this path itself, if it is among those of its content.
        same = next((one for one in matching if (one.path, one.sha256) == (str(file.path), file.key)), matching[0])
        report.keep_out(str(file.path), same.reason(str(file.path), file.key))
        for one in matching:
            if (
                one.sha256 == file.key
                and one.number not in moved
                and (one.path == str(file.path) or _has_gone(one.path))
            ):
                moved[one.number] = one._replace(path=str(file.path), size=file.size, mtime_ns=file.mtime_ns)
                break
    catalogue.follow(list(moved.values()))
    return kept


def _take_again(
    catalogue: Catalogue, exclusions: Exclusions, files: list[_File], held: list[tuple[str, str]]
) -> list[_File]:
    """Note which photos each file takes off the list of what was removed for good, as soon as it is done.

    Where several files match a photo, the last of them takes it off, so that an interrupted run can be finished. A file
    that is where it was wishes for the name that it had. What an interrupted run took in is among the paths and
    contents that are held: it goes off the list at once if no file matches it.
    """
    done_with: dict[int, int] = {}  # by number: the place of the last file that matches
    for place, file in enumerate(files):
        matching = exclusions.matching(str(file.path), file.key)
        done_with.update((one.number, place) for one in matching)
        if file.name == file.path.name and str(file.path) in {one.path for one in matching}:
            files[place] = replace(file, name=matching[0].name)
    for number, place in done_with.items():
        files[place] = replace(files[place], taken_again=(*files[place].taken_again, number))
    there = {
        one.number
        for path, key in held
        for one in exclusions.matching(path, key)
        if (one.path, one.sha256) == (path, key)
    }
    catalogue.include(sorted(there - done_with.keys()))
    return files


def _taken_again(files: Sequence[_File]) -> list[int]:
    return [number for file in files for number in file.taken_again]


def _mark_vanished(
    collection: Collection,
    known: Mapping[str, Known],
    paths: Sequence[Path],
    seen: Collection_[str],
    moved: Collection_[int],
    report: IndexReport,
) -> None:
    """Mark photos whose files have gone from the folders that were looked through."""
    roots = tuple(os.path.join(os.path.realpath(path), "") for path in paths if path.is_dir())  # noqa: PTH118 (ends in a slash)
    lost = [
        before.number
        for path, before in known.items()
        if before.state == INDEXED
        and path.startswith(roots)
        and path not in seen
        and before.number not in moved
        and not before.missing
        and _has_gone(path)
    ]
    collection.catalogue.mark_missing(lost)
    report.vanished += collection.catalogue.names_of(lost).values()


def _has_gone(path: str) -> bool:
    """Whether there is no file at a path; of one that cannot be looked at, that is not known."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _record(collection: Collection, failures: list[Failure], report: IndexReport) -> None:
    collection.catalogue.record_failures(failures)
    report.failed += [{"path": printable(failure.path), "reason": failure.reason} for failure in failures]


def _adopt_vocabulary(collection: Collection, source: Path) -> None:
    """Copy the vocabulary of another collection."""
    vocabulary = Vocabulary.load(find_vocabulary(source))
    collection.check_descriptor(vocabulary)
    if collection.has_vocabulary:
        if collection.vocabulary.fingerprint != vocabulary.fingerprint:
            raise CairnError(f"{collection.folder} has another vocabulary already: index into a new collection.")
        return
    collection.catalogue.set_setting(TRAINED_KEY, "0")
    vocabulary.save(collection.vocabulary_folder)


def _make_vocabulary(
    collection: Collection,
    staging: Staging,
    files: list[_File],
    report: IndexReport,
    workers: int,
    extracted: Callable[[_File], None],
    tell: Progress,
) -> bool:
    """Make the vocabulary from a random sample of the photos, streamed from disk.

    Returns
    -------
    bool
        False where none of the photos has any feature to make one from. All of them are then recorded as failed, so
        that none is lost: those that can be read go in with the next run that adds photos that show something.
    """
    options = collection.options
    rng = np.random.default_rng(options.seed)
    chosen = np.sort(rng.permutation(len(files))[: options.sample])
    sample = [files[number] for number in chosen]
    staged = []
    start = time.perf_counter()
    for file, one in zip(sample, stage_all(staging, [(file.path, file.key) for file in sample], workers), strict=True):
        staged.append(one)
        extracted(file)
    spent = time.perf_counter() - start
    report.seconds["extract"] += spent
    report.seconds["vocabulary"] -= spent

    described = [file for file, one in zip(sample, staged, strict=True) if one.features]
    features = sum(one.features for one in staged)
    if not features:
        reasons = [one.reason or _FEATURELESS for one in staged]
        _record(collection, [file.failure(why) for file, why in zip(sample, reasons, strict=True)], report)
        if len(sample) < len(files):
            raise CairnError(
                f"None of {len(sample)} photos has any features to make a vocabulary from: index some that do first."
            )
        return False
    expected = features * len(files) / len(sample)
    words = options.words or default_words(int(expected))
    source = FileSource([staging.descriptors(key) for key in dict.fromkeys(file.key for file in described)])
    vocabulary = Vocabulary.train(
        source,
        VocabularyOptions(words=words, iterations=options.iterations, backend=options.search, seed=options.seed),
        descriptor=collection.extractor.fingerprint,
        trained_on=f"{len(described)} photos of {printable(collection.folder.name)}",
        progress=lambda done, of: tell("vocabulary", done, of),
    )
    # Written first: without a vocabulary it says nothing, and of one that is there it must be known.
    first = collection.catalogue.reserve_numbers(0)
    collection.catalogue.set_setting(TRAINED_KEY, str(first + len(files)))
    vocabulary.save(collection.vocabulary_folder)
    return True


def _add_segment(
    collection: Collection,
    staging: Staging,
    files: list[_File],
    report: IndexReport,
    workers: int,
    extracted: Callable[[_File], None],
    tell: Callable[[int], None],
) -> None:
    """Extract, assign and commit one batch of photos; tell how many have their words."""
    good: list[tuple[_File, Staged]] = []
    metadata: list[Metadata] = []
    failures: list[Failure] = []
    with report.timed("extract"):
        staged = stage_all(staging, [(file.path, file.key) for file in files], workers)
        for file, one in zip(files, staged, strict=True):
            reason = one.reason
            if not reason:
                try:
                    # At once: the features may be those of an earlier run, and the drive may go at any time.
                    metadata.append(read_metadata(file.path, strict=True))
                    good.append((file, one))
                except Unreadable as error:
                    reason = str(error)
            if reason:
                failures.append(file.failure(reason))
            extracted(file)
    tell(len(failures))
    _record(collection, failures, report)
    if not good:
        collection.catalogue.include(_taken_again(files))
        return
    words, columns, errors = [], [], []
    with report.timed("assign"):
        for file, one in good:
            features = staging.read(file.key)
            descriptors = features.descriptors.astype(np.float32)
            words.append(collection.vocabulary.assign(descriptors))
            errors.append(collection.vocabulary.error_of(descriptors, words[-1]))
            column = encode_geometry(features, max(one.width, one.height), upright=collection.options.features.upright)
            if collection.options.keep_descriptors:
                column["descriptor"] = features.descriptors
            columns.append(column)
            tell(len(failures) + len(words))
    with report.timed("write"):
        first = collection.catalogue.reserve_numbers(len(good))
        rows = [
            ImageRow(
                number=first + position,
                path=str(file.path),
                name=file.name,
                sha256=file.key,
                size=file.size,
                mtime_ns=file.mtime_ns,
                width=one.width,
                height=one.height,
                features=one.features,
                position=position,
                quantisation_error=error,
            )
            for position, ((file, one), error) in enumerate(zip(good, errors, strict=True))
        ]
        folder = collection.catalogue.next_folder(collection.folder / SEGMENTS)
        segment = write_segment(
            collection.folder / SEGMENTS / folder,
            image_numbers=np.arange(first, first + len(good), dtype=np.uint32),
            words=words,
            columns={name: [column[name] for column in columns] for name in columns[0]},
            vocabulary_fingerprint=collection.vocabulary.fingerprint,
            descriptor_fingerprint=collection.extractor.fingerprint,
            notes=write_notes(rows),
        )
        collection.catalogue.commit_segment(segment_row(segment), rows, metadata, _taken_again(files))
        staging.discard(file.key for file, _ in good)
        report.added += len(good)
