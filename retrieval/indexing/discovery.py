"""Find files that are new, changed, moved or gone since a collection was last indexed."""

import contextlib
import json
import os
import stat
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Collection as Collection_
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import tee
from pathlib import Path

from index.arrays import hash_file
from index.errors import CairnError, Unreadable
from index.progress import Progress, Timed
from index.text import check_path, printable, readable
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.changes import PhotoMove, mark_missing, move_photos
from retrieval.catalogue.exclusions import Exclusions, exclusions_in, include_photos, move_exclusions
from retrieval.catalogue.failures import Failure, failures_in, forget_failures, keep_failures
from retrieval.catalogue.metadata_store import store_metadata
from retrieval.catalogue.passing import passing_of, take_folders_again
from retrieval.catalogue.photos import Known, KnownPhotos, names_of
from retrieval.catalogue.schema import INDEXED
from retrieval.catalogue.settings import keep_setting
from retrieval.collection.collection import Collection
from retrieval.collection.layout import CHANGES_KEY, PAGES_KEY
from retrieval.metadata.pages import file_of, is_film, page_content, page_mark, page_path, split_page
from retrieval.metadata.photo import read_metadata
from retrieval.metadata.sidecars import ChangeTimes
from retrieval.metadata.text_regions import text_changed
from retrieval.photos.decoding import other_frames, other_pages, read_photo
from retrieval.photos.listing import PAGED_SUFFIXES, away, is_one_file, leads_elsewhere, list_photos, stays_below
from retrieval.photos.passing import PassedOver
from retrieval.photos.remarks import Remarks
from retrieval.photos.tiff import MOST_PAGES

_OUTSIDE = "its link leads out of the folders that photos may be taken from"


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
    files, led = _without_links(survey.known, files, report)
    moves += led
    files, moved = _recognise(survey.known, files, {str(path) for path in survey.seen})
    files += survey.marked
    catalogue, sound = collection.catalogue, survey.sound
    if again:
        held = [(path, before.sha256) for path in sound if (before := survey.known.get(path)) and before.sha256]
        files = _take_again(catalogue, survey.exclusions, files, held)
    else:
        files = _leave_out(catalogue, survey.exclusions, files, survey.known, report)
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
        self.pages = _Pages(collection, paths, again, self.known, max_pages, passing.frame_every)
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


class _Pages:
    """The pages of multi-page files, each of which is a photo: see `retrieval.metadata.pages`. Pages of an unchanged
    file are known. Such a file is opened again only if one of its pages could not be read, or if no run has searched
    its folder for pages, as earlier versions took one page of each file. `every`: seconds between the frames of a film,
    which are its pages; 0: by its shots. A film is read again if this changes.
    """

    def __init__(
        self,
        collection: Collection,
        paths: Sequence[Path],
        again: bool,
        known: KnownPhotos,
        most: int | None,
        every: float,
    ) -> None:
        self._every, self._films, self._keys = every, dict[str, float](), dict[str, str]()
        self._catalogue, self._again, self._known, self._most = collection.catalogue, again, known, most or MOST_PAGES
        self._has_pages = not collection.extractor.reads_files  # other programs describe files
        self._there: dict[str, set[int]] = {}  # by file: its pages, except the one that has the name of the file
        failed = (split_page(failure.path) for failure in self._catalogue.read(failures_in))
        self._failed = {file for file, page in failed if page is not None}
        self._before = {"folders": set[str](), "files": set[str]()}
        self._cut: dict[str, int] = {}  # files whose pages were not all taken, and the limit
        with contextlib.suppress(ValueError, TypeError, AttributeError, OverflowError, RecursionError):
            stored = json.loads(self._catalogue.setting(PAGES_KEY) or "{}")
            self._before = {key: {str(one) for one in stored.get(key, ())} for key in self._before}
            self._cut = {str(file): int(most) for file, most in stored.get("cut", {}).items()}
            self._films = {str(film): float(every) for film, every in stored.get("films", {}).items()}
        self._cut_before, self._films_before = dict(self._cut), dict(self._films)
        self._now = {os.path.realpath(path) for path in paths if path.is_dir()}

    def may_be_more(self, root: Path, file: Path) -> bool:
        """Whether an unchanged file may have pages that are not in the collection."""
        if not self._has_pages or file.suffix.lower() not in PAGED_SUFFIXES:
            return False
        looked = self._films.get(str(file)) == self._every if is_film(file) else str(root) in self._before["folders"]
        is_known = looked and str(file) not in self._before["files"]
        return self._again or file in self._failed or not is_known or self._cut.get(str(file), self._most) < self._most

    def of(self, file: FoundFile, report: IndexReport) -> list[FoundFile]:
        """List the photos of a file; the one that has its name comes last. Raises CairnError for a damaged film."""
        if not self._has_pages or file.path.suffix.lower() not in PAGED_SUFFIXES:
            return [file]
        try:
            numbers = self._frames(file, report) if is_film(file.path) else other_pages(file.path)
        except CairnError:
            if is_film(file.path):
                raise
            return [file]  # reported when it is read
        numbers = [number for number in numbers if not os.path.lexists(page_path(file.path, number))]
        self._there[str(file.path)] = set(numbers)
        self._cut.pop(str(file.path), None)
        if len(numbers) >= self._most:
            self._cut[str(file.path)] = self._most
            after = numbers[self._most - 1 :]
            known = [number for number in after if str(page_path(file.path, number)) in self._known]
            if is_film(file.path):  # damage of other files is found when they are read
                report.pages_left += len(after) - len(known)
            numbers = [*numbers[: self._most - 1], *known]
        pages = [
            replace(
                file,
                path=page_path(file.path, number),
                name=f"{file.name}{page_mark(file.path, number)}",
                key=page_content(file.key, number),
            )
            for number in numbers
        ]
        return [*pages, replace(file, others=len(pages))]

    def _frames(self, film: FoundFile, report: IndexReport) -> list[int]:
        path = str(film.path)
        self._keys[path] = film.key
        times, missing = other_frames(film.path, self._every)
        self._films[path] = self._every
        if missing:
            reason = f"the last {max(1, round(100 * missing))}% of the film are missing"
            report.remarks.append({"path": printable(path), "reason": reason})
        return times

    def lack(self, path: str) -> bool:
        """Whether a photo is a page of an examined file that does not have this page."""
        file, page = split_page(path)
        if str(file) in self._keys:  # a film has a frame at any time
            before = self._known.get(path)
            content = page_content(self._keys[str(file)], page)
            return page is not None and (before is None or before.sha256 != content)
        return page is not None and page not in self._there.get(str(file), {page})

    def keep(self, new: Iterable[FoundFile], sound: Collection_[str]) -> None:
        """Store which folders were searched for pages, and unchanged files with new pages."""
        pending = {str(file_of(file.path)) for file in new} & {*sound}
        pending |= self._before["files"] - self._there.keys()
        now = {"folders": self._before["folders"] | self._now, "files": pending}
        if (now, self._cut, self._films) != (self._before, self._cut_before, self._films_before):
            listed = {key: sorted(some) for key, some in now.items()}
            text = json.dumps({**listed, "cut": self._cut, "films": self._films})
            self._catalogue.write(keep_setting, PAGES_KEY, text)


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


def _without_links(
    known: KnownPhotos, files: list[FoundFile], report: IndexReport
) -> tuple[list[FoundFile], list[PhotoMove]]:
    """Drop files that are indexed, or listed, under another path: symbolic and hard links; paths without links stay."""
    there: dict[str, list[tuple[str, Known]]] = {}
    for path, before in known.of_contents({file.key for file in files}):
        there.setdefault(before.sha256 or "", []).append((path, before))
    taken: dict[str, list[FoundFile]] = {}
    moves: dict[int, PhotoMove] = {}
    for file in sorted(files, key=lambda file: leads_elsewhere(file.path)):
        own = [(path, before) for path, before in there.get(file.key, ()) if path != str(file.path)]
        of = next(((path, before) for path, before in own if is_one_file(path, file.path)), None)
        twin = next((one for one in taken.get(file.key, ()) if is_one_file(one.path, file.path)), None)
        if of is None and twin is None:
            taken.setdefault(file.key, []).append(file)
            continue
        path = of[0] if of is not None else str(twin.path) if twin is not None else ""
        if of is not None and leads_elsewhere(path) and not leads_elsewhere(file.path) and of[1].number not in moves:
            moves[of[1].number] = PhotoMove(of[1].number, str(file.path), file.name, file.size, file.mtime_ns)
        else:
            report.places.append({"path": printable(str(file.path)), "photo": printable(path)})
    paths = {file.path for some in taken.values() for file in some}
    return [file for file in files if file.path in paths], list(moves.values())


def _recognise(
    known: KnownPhotos, files: list[FoundFile], seen: Collection_[str]
) -> tuple[list[FoundFile], list[PhotoMove]]:
    """Recognise moved photos by content; return the new photos, and the moves."""
    wanted = {file.key for file in files}
    changed = {str(file.path) for file in files}
    # Photos whose file is gone, or is now another photo.
    displaced: dict[str, list[Known]] = {}
    for path, before in known.of_contents(wanted):
        if before.sha256 is not None and (path in changed or (path not in seen and _has_gone(path))):
            displaced.setdefault(before.sha256, []).append(before)
    new, moves = [], []
    for file in files:
        if displaced.get(file.key):
            number = displaced[file.key].pop(0).number
            moves.append(PhotoMove(number, str(file.path), file.name, file.size, file.mtime_ns))
        else:
            new.append(file)
    return new, moves


def _leave_out(
    catalogue: Catalogue,
    exclusions: Exclusions,
    files: list[FoundFile],
    known: Mapping[str, Known],
    report: IndexReport,
) -> list[FoundFile]:
    """Drop photos that were removed for good; if one has moved, store its new place."""
    remaining, moved = [], {}
    for file in files:
        matching = exclusions.matching(str(file.path), file.key)
        before = known.get(str(file.path))
        if before is not None and before.state == INDEXED:  # another photo was put at that path, and edited
            matching = [one for one in matching if one.sha256 == file.key]
        if not matching:
            remaining.append(file)
            continue
        # Preferably the photo that was at this path, if it has this content.
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
    if moved:
        catalogue.write(move_exclusions, list(moved.values()))
    return remaining


def _take_again(
    catalogue: Catalogue, exclusions: Exclusions, files: list[FoundFile], held: list[tuple[str, str]]
) -> list[FoundFile]:
    """Note which photos each file takes off the list of exclusions once it is done.

    If several files match a photo, the last one takes it off, so that an interrupted run can be finished. A file at its
    old path keeps its old name. Photos added by an interrupted run are among `held` paths and contents: they leave the
    list at once if no file matches them.
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
    if there := there - done_with.keys():
        catalogue.write(include_photos, sorted(there))
    return files


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
        elif path.startswith(roots) and before.number not in moved and (lacks or _has_gone(path)):
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
            f"The folder {printable(str(path))} is not there, with {_photos(count)} of the collection: connect its "
            "drive and try again, or index the folder where they are now."
        )


def _photos(count: int) -> str:
    return f"{count} photo{'s' * (count != 1)}"


def _has_gone(path: str) -> bool:
    """Whether there is certainly no file at a path; False if the path cannot be examined."""
    try:
        os.lstat(file_of(path))
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def record_failures(collection: Collection, failures: list[Failure], report: IndexReport) -> None:
    """Store failures in the catalogue, and add them to the report."""
    if failures:
        collection.catalogue.write(keep_failures, failures)
    report.failed += [{"path": printable(failure.path), "reason": failure.reason} for failure in failures]
