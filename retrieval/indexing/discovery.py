"""Find files that are new, changed, moved or gone since a collection was last indexed."""

import contextlib
import json
import os
import stat
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Collection as Collection_
from functools import partial
from itertools import tee
from pathlib import Path

from index.arrays import hash_file
from index.errors import CairnError, Unreadable
from index.messages import Message, said
from index.progress import Progress
from index.text import check_path, printable, readable
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.changes import PhotoMove, mark_missing, move_photos
from retrieval.catalogue.exclusions import Exclusions, exclusions_in
from retrieval.catalogue.failures import Failure, failures_in, forget_failures
from retrieval.catalogue.metadata_store import store_metadata
from retrieval.catalogue.passing import passing_of, take_folders_again
from retrieval.catalogue.photos import Known, KnownPhotos, names_of
from retrieval.catalogue.schema import INDEXED
from retrieval.catalogue.settings import keep_setting
from retrieval.collection.collection import Collection
from retrieval.collection.layout import CHANGES_KEY
from retrieval.indexing.file_pages import FilePages
from retrieval.indexing.recognition import has_gone, leave_out, recognise, take_again, without_links
from retrieval.indexing.report import FoundFile, IndexReport, record_failures
from retrieval.metadata.pages import file_of, is_film, split_page
from retrieval.metadata.photo import read_metadata
from retrieval.metadata.sidecars import ChangeTimes
from retrieval.metadata.text_regions import text_changed
from retrieval.photos.decoding import read_photo
from retrieval.photos.listing import away, list_photos, stays_below

_OUTSIDE = "its link leads out of the folders that photos may be taken from"


def checksum(path: Path) -> str | CairnError | OSError:
    """SHA-256 of a file; or why it cannot be read."""
    try:
        return hash_file(path)
    except (CairnError, OSError) as error:
        return error


def find_new(
    collection: Collection,
    paths: Sequence[Path],
    again: bool,
    report: IndexReport,
    tell: Progress,
    checksums: Callable[[Iterable[Path]], Iterator[str | CairnError | OSError]] | None = None,
    max_pages: int | None = None,
) -> list[FoundFile]:
    """List new and changed photos; note files that cannot be used at all.

    Files that are new, or seem changed, are read: `checksums` returns the SHA-256 of each, in order, or the reason why
    it cannot be read; by default this process computes them. At most `max_pages` pages of a file are taken.
    """
    survey = _Survey(collection, paths, again, report, max_pages)
    files, moves = survey.read(survey.unknown(tell), checksums or partial(map, checksum), tell)
    files, led = without_links(survey.known, files, report)
    moves += led
    files, moved = recognise(survey.known, files, {str(path) for path in survey.seen})
    files += survey.marked
    catalogue, sound = collection.catalogue, survey.sound
    if again:
        held = [(path, before.sha256) for path in sound if (before := survey.known.get(path)) and before.sha256]
        files = take_again(catalogue, survey.exclusions, files, held)
    else:
        files = leave_out(catalogue, survey.exclusions, files, survey.known, report)
    if moves or moved:
        report.moved += catalogue.write(move_photos, [*moves, *moved])
    survey.keep(files)
    sound.update(move.path for move in moved)
    sound.update(report.kept_out)
    survey.settle_failures()
    _look_at_others(survey, paths, {move.number for move in [*led, *moved]})
    return files


class _Survey:
    """The files of a run: the records of each, and changes visible without reading contents."""

    def __init__(
        self, collection: Collection, paths: Sequence[Path], again: bool, report: IndexReport, max_pages: int | None
    ) -> None:
        catalogue = collection.catalogue
        self.collection, self.again, self.report = collection, again, report
        self.known = catalogue.known()
        self.exclusions = Exclusions(catalogue.read(exclusions_in))
        self.seen: set[Path] = set()  # examined files
        self.sound: set[str] = set()  # paths of unchanged photos
        if again:
            catalogue.write(take_folders_again, paths)
        passing = catalogue.read(passing_of)
        self.pages = FilePages(collection, paths, again, self.known, max_pages, passing.frame_every)
        self._failures: dict[int, Failure] = {}  # by the file's place in the list
        self._back: list[int] = []
        self.marked: list[FoundFile] = []  # unchanged photos with other parts masked as text
        self._is_marked = set[Path]()  # their files
        self._ignores_text = collection.options.features.ignore is not None
        self._touched: list[tuple[int, Path]] = []  # unchanged photos whose files may have new metadata
        self._times, self._changes = ChangeTimes(), _Changes(catalogue)
        for path in paths:
            if not os.path.lexists(path):
                _refuse_away(self.known, path)
        self._found = list_photos(paths, report.passed_over, collection.below, passing)

    def _fail(self, number: int, path: Path, error: CairnError | OSError) -> None:
        if not self.again and not self._is_indexed(path) and (matching := self.exclusions.matching(str(path), "")):
            self.report.keep_out(str(path), matching[0].reason(str(path), None))
            return
        reason = str(error) if isinstance(error, CairnError) else f"the file cannot be read ({error.strerror})"
        self._failures[number] = Failure(str(path), reason)

    def _is_indexed(self, path: Path) -> bool:
        before = self.known.get(str(path))
        return before is not None and before.state == INDEXED

    def unknown(self, tell: Progress) -> Iterator[tuple[int, str, Path, os.stat_result]]:
        """Yield files that must be read: place in the list, name, path and status."""
        # Folders by their real paths, so that a photo is the same by whatever path its folder is given.
        real = {root: root.resolve() for root, _ in self._found}
        for number, (root, path) in enumerate(self._found):
            tell("look", number + 1, len(self._found))
            name = readable(path.relative_to(root).as_posix() if path != root else path.name)
            path = real[root] / path.relative_to(root)
            if path in self.seen:
                continue
            self.seen.add(path)
            try:
                status = self._state(path)
            except (CairnError, OSError) as error:
                self._fail(number, path, error)
                continue
            if not self._is_settled(real[root], path, status):
                yield number, name, path, status

    def _state(self, path: Path) -> os.stat_result:
        """Return the status of a file; raises CairnError or OSError if it is no photo that may be added."""
        check_path(str(path))
        if self.collection.below is not None and not stays_below(path, self.collection.below):
            raise CairnError(_OUTSIDE)
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            read_photo(path)  # raises, with the reason; reading a pipe here would block for ever
        return status

    def _is_settled(self, root: Path, path: Path, status: os.stat_result) -> bool:
        """Whether a file need not be read: it is unchanged, was removed for good, or is a link to a photo."""
        before = self.known.get(str(path))
        is_later = self._changes.is_later(str(root), self._times.of(path, status))
        if self._ignores_text and before is not None and self._changes.is_later(str(root), text_changed(path)):
            self._is_marked.add(path)
            is_later = True
        if not is_later and _is_same(before, status) and not self.pages.may_be_more(root, path):
            self.report.unchanged += 1
            self.sound.add(str(path))
            return True
        there = self.exclusions.at(str(path), status.st_size, status.st_mtime_ns)
        if there is not None and not self.again and not self._is_indexed(path):
            self.report.keep_out(str(path), there.reason(str(path), there.sha256))
            return True
        linked = os.path.realpath(path)
        if before is None and linked != str(path) and _is_same(self.known.get(linked), status):
            self.report.places.append({"path": printable(str(path)), "photo": printable(linked)})
            return True
        return False

    def read(
        self,
        unknown: Iterator[tuple[int, str, Path, os.stat_result]],
        checksums: Callable[[Iterable[Path]], Iterator[str | CairnError | OSError]],
        tell: Progress,
    ) -> tuple[list[FoundFile], list[PhotoMove]]:
        """Read files; return those that are new or changed, and the unchanged ones as moves."""
        files: list[FoundFile] = []
        films = [place for place, (_, path) in enumerate(self._found) if is_film(path)]
        moves: list[PhotoMove] = []
        listed, read = tee(unknown)
        for (number, name, path, status), key in zip(listed, checksums(path for _, _, path, _ in read), strict=True):
            if not isinstance(key, str):
                self._fail(number, path, key)
                continue
            new_file = FoundFile(path, name, status.st_size, status.st_mtime_ns, key)
            if is_film(path):  # whose shots take a while to find
                tell("shots", bisect_left(films, number), len(films))
            try:
                pages = self.pages.of(new_file, self.report)
            except CairnError as error:
                self._fail(number, path, error)
                continue
            if is_film(path):
                tell("shots", bisect_right(films, number), len(films))
            for file in pages:
                self.seen.add(file.path)
                before = self.known.get(str(file.path))
                if before is None or before.state != INDEXED or before.sha256 != file.key:
                    files.append(file)
                    continue
                if path in self._is_marked:
                    self.marked.append(file)
                    continue
                self.report.unchanged += 1
                self.sound.add(str(file.path))
                moves.append(PhotoMove(before.number, str(file.path), None, file.size, file.mtime_ns))
                self._touched.append((before.number, file.path))
                if before.missing:
                    self._back.append(before.number)
        return files, moves

    def keep(self, new: Sequence[FoundFile]) -> None:
        """Store updates of unchanged photos, and the state for the next run."""
        catalogue = self.collection.catalogue
        self.report.reread += _read_metadata_again(catalogue, self._touched)
        self._changes.keep()
        self.pages.keep(new, self.sound)
        self.report.back += catalogue.read(names_of, self._back).values()

    def settle_failures(self) -> None:
        """Delete failures of files that are good or gone, and store those of this run."""
        catalogue, sound = self.collection.catalogue, self.sound
        failed = [failure.path for failure in catalogue.read(failures_in)]
        lacks = self.pages.lack
        if settled := [path for path in failed if path in sound or not os.path.lexists(file_of(path)) or lacks(path)]:
            catalogue.write(forget_failures, settled)
        record_failures(self.collection, [self._failures[number] for number in sorted(self._failures)], self.report)


class _Changes:
    """The latest change time, of its drive, in each indexed folder at the last run; later files are examined."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        try:
            before = json.loads(catalogue.setting(CHANGES_KEY) or "{}")
        except (ValueError, RecursionError):
            before = {}
        self._before = before if isinstance(before, dict) else {}
        self._now: dict[str, int] = {}

    def is_later(self, root: str, changed: int) -> bool:
        """Whether a file was changed after the last run examined its folder; False in the first run."""
        self._now[root] = max(changed, self._now.get(root, 0))
        last = self._before.get(root)
        return type(last) is int and changed > last

    def keep(self) -> None:
        """Store the latest changes for the next run, only of folders: a single photo says nothing about others."""
        kept = {**self._before, **{root: time for root, time in self._now.items() if Path(root).is_dir()}}
        if kept != self._before:
            self._catalogue.write(keep_setting, CHANGES_KEY, json.dumps(kept))


def _read_metadata_again(catalogue: Catalogue, photos: Sequence[tuple[int, Path]]) -> int:
    """Read the metadata of photos from their files; return how many could be read."""
    metadata = []
    for number, path in photos:
        with contextlib.suppress(Unreadable):
            metadata.append((number, read_metadata(path, strict=True)))
    if metadata:
        catalogue.write(store_metadata, metadata)
    return len(metadata)


def _is_same(before: Known | None, status: os.stat_result) -> bool:
    """Whether a file is the one indexed at its path, judging by size and times."""
    if before is None or before.state != INDEXED or before.missing:
        return False
    return (before.size, before.mtime_ns) == (status.st_size, status.st_mtime_ns)


def _look_at_others(survey: _Survey, paths: Sequence[Path], moved: Collection_[int]) -> None:
    """Count pages of unchanged files, and mark photos whose files are gone from listed folders."""
    roots = tuple(os.path.join(os.path.realpath(path), "") for path in paths if path.is_dir())  # noqa: PTH118 (ends in a slash)
    catalogue, report = survey.collection.catalogue, survey.report
    lost = {}
    for path, before in survey.known.without({str(path) for path in survey.seen}):
        if before.state != INDEXED or before.missing:
            continue
        file, page = split_page(path)
        lacks = survey.pages.lack(path)
        if page is not None and not lacks and str(file) in survey.sound:
            report.unchanged += 1
        elif path.startswith(roots) and before.number not in moved and (lacks or has_gone(path)):
            lost[before.number] = path
    if lost:
        catalogue.write(mark_missing, [*lost])
        names = catalogue.read(names_of, [*lost])
        gone = Counter(folder for number, path in lost.items() if (folder := away(path, names.get(number, ""))))
        for folder, count in gone.items():
            report.notes.append(
                f"The folder {printable(folder)} is not there, or empty, with {_photos(count)} of the collection: they "
                "stay in it; connect the drive and index again."
            )
        report.vanished += names.values()


def _refuse_away(known: KnownPhotos, path: Path) -> None:
    """Raise CairnError if a missing path is a folder of photos of the collection."""
    folder = os.path.join(os.path.realpath(path), "")  # noqa: PTH118 (ends in a slash)
    count = sum(one.startswith(folder) and before.state == INDEXED for one, before in known.without(()))
    if count:
        raise CairnError(
            "The folder {folder} is not there, with {photos} of the collection: connect its "
            "drive and try again, or index the folder where they are now.",
            folder=printable(str(path)),
            photos=_photos(count),
        )


def _photos(count: int) -> Message:
    return Message(said("1 photo")) if count == 1 else Message(said("{count} photos"), count=count)
