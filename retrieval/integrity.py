"""Integrity of a collection: every file is read again, and compared with what was written.

What a segment or a cache holds is checked by the checksums in it, all else by those of the seal (`retrieval.seals`),
and the catalogue row by row against the segments. Nothing is changed, and other processes may go on writing.
"""

import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import sqlalchemy as sa

from index.arrays import load_json
from index.errors import CairnError
from index.segment import META, verify_segment
from index.vocabulary import META_FILE, Vocabulary
from retrieval.cache_checks import CACHE, CACHES, check_caches, files_below
from retrieval.catalogue import FILE, Catalogue
from retrieval.catalogue_check import check_server, check_sqlite
from retrieval.collection import (
    DESCRIPTOR,
    LOCK,
    OPTIONS,
    SEAL,
    SEGMENTS,
    STAGING,
    VOCABULARY,
    VOCABULARY_KEY,
    catalogue_place,
)
from retrieval.consistency import check_rows, compare_segment, read_segment_rows, segment_ids
from retrieval.database import Database
from retrieval.descriptors import find_descriptor
from retrieval.features import Extractor
from retrieval.journal import is_damaged
from retrieval.options import CollectionOptions, read_options
from retrieval.retraining import FOLDER as RETRAINING
from retrieval.seals import Seal, SealDamagedError, hash_file, read_seal

STEP = "check"
CATALOGUE = "catalogue"
"""What a catalogue is called that is no file of the collection."""

_LOOKS = 5
_UNFINISHED = re.compile(r"\..+\.[0-9a-f]{8}\.tmp")
_SET_ASIDE = re.compile(rf"{re.escape(FILE)}\.damaged-\d+(-wal)?")
_SQLITE = (FILE, f"{FILE}-wal", f"{FILE}-shm", f"{FILE}-journal")
_MEGABYTE = 1e6

Progress = Callable[[str, int, int], None]
"""Called with the step's name, the megabytes that were read, and how many there are."""


@dataclass(frozen=True)
class Damage:
    """A file, or folder, that is not what was written."""

    file: str  # path in the collection, with slashes
    what: str  # what is wrong with it
    remedy: str  # what to do, with the command that does it


@dataclass
class CheckReport:
    """What a check found."""

    files: int = 0  # that were read
    bytes: int = 0
    damaged: list[Damage] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what is to be known, and is no damage
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether all is sound."""
        return not self.damaged


def check_collection(folder: Path, *, catalogue: str | None = None, progress: Progress | None = None) -> CheckReport:
    """Read every file of a collection, and compare it with what was written.

    Parameters
    ----------
    folder : Path
        The collection, which need not be one that opens.
    catalogue : str, optional
        SQLAlchemy address of its catalogue; the SQLite file in the folder otherwise.
    progress : callable, optional
        Told how far it is.

    Returns
    -------
    CheckReport

    Raises
    ------
    CairnError
        There is no collection, its catalogue is elsewhere or cannot be reached, or a part is of a later version.
    """
    start = time.perf_counter()
    if not any((folder / name).exists() for name in (OPTIONS, FILE, SEAL, SEGMENTS)):
        raise CairnError(f"There is no collection at {folder}: make one with cairn index.")
    check = _Check(folder, catalogue, progress or (lambda step, done, of: None))
    try:
        check.run()
    finally:
        check.close()
    check.report.seconds = time.perf_counter() - start
    return check.report


class _Check:
    """One run of `check_collection`."""

    def __init__(self, folder: Path, address: str | None, progress: Progress) -> None:
        self.folder = folder
        self.address = address
        self.report = CheckReport()
        self.seal: Seal | None = None
        self.catalogue: Catalogue | None = None
        self.database: Database | None = None
        self.vocabulary: str | None = None  # folder of the one in use
        self.fingerprints: dict[str, str | None] = {"vocabulary": None, "descriptor": None}
        self._progress = progress
        self._total = 0
        self._read = 0.0

    def close(self) -> None:
        """Give the connections back."""
        if self.catalogue is not None:
            self.catalogue.close()
        if self.database is not None:
            self.database.close()

    def run(self) -> None:
        """Check everything."""
        self._total = sum(map(_size, files_below(self.folder)))
        self._read_seal()
        self._check_catalogue()
        self._find_vocabulary()
        self._check_sealed()
        options = self._check_options()
        self._check_vocabulary()
        self._check_descriptor(options)
        self._check_segments()
        check_caches(self)
        self._note_others()
        self._progress(STEP, _megabytes(self._total), _megabytes(self._total))

    # What the parts report

    def damage(self, file: str, what: str, remedy: str = "repair") -> None:
        """Report a damaged file, once; the remedy is a command's name or a sentence."""
        if any(one.file == file for one in self.report.damaged):
            return
        if remedy == "repair":
            remedy = f"Run cairn repair {self.folder}."
        self.report.damaged.append(Damage(file, what, remedy))

    def note(self, text: str) -> None:
        """Report what is no damage."""
        self.report.notes.append(text)

    def was_read(self, files: int, size: int) -> None:
        """Count files that were read to their end."""
        self.report.files += files
        self.report.bytes += size

    def tell(self, size: int) -> None:
        """Tell of bytes that were read."""
        self._read += size
        self._progress(STEP, min(_megabytes(self._read), _megabytes(self._total)), _megabytes(self._total))

    # The parts

    def _read_seal(self) -> None:
        try:
            self.seal = read_seal(self.folder / SEAL)
        except SealDamagedError:
            self.damage(SEAL, "The checksums of the collection are not what was written.")
        if self.seal is not None:
            self.was_read(1, _size(self.folder / SEAL))
            if self.address is None and self.seal.database != "sqlite":
                raise CairnError(
                    f"The catalogue of {self.folder} is in a database ({self.seal.database[:40]}): give its address "
                    "with --catalogue."
                )

    def _check_catalogue(self) -> None:
        """Check the database, and open it where it can be used."""
        file = self.folder / FILE if self.address is None else None
        if file is not None and not file.is_file():
            self.damage(
                FILE,
                "The catalogue is missing.",
                f"Run cairn repair {self.folder}, which makes it anew from the segments; or restore it from a copy, or "
                "give its address with --catalogue, if it is in another database.",
            )
            return
        if file is not None and is_damaged(file.with_name(f"{FILE}-wal")):
            # Whoever opens the catalogue now loses what was committed after that place.
            self.damage(f"{FILE}-wal", "The log of what was last written to the catalogue is damaged.")
            return
        if file is not None:
            finding = check_sqlite(file, self.folder / SEAL, self.tell)
            self.was_read(1, _size(file))
        else:
            self._open_catalogue()
            assert self.database is not None
            finding = check_server(self.database, self.folder / SEAL)
        if not self._is_reported(SEAL):
            self.seal = finding.seal
        if finding.damage is not None:
            self._damaged_catalogue(finding.damage)
            return
        if finding.seal_is_lost:
            self.damage(SEAL, "The checksums of the collection are missing.")
        elif finding.note is not None and not self._is_reported(SEAL):
            self.note(f"{SEAL} {finding.note}")
        if self.catalogue is None:
            self._open_catalogue()

    def _open_catalogue(self) -> None:
        self.catalogue = Catalogue.open(catalogue_place(self.folder, self.address))
        self.database = Database(self.catalogue.address)

    def _damaged_catalogue(self, what: str) -> None:
        if self.address is not None:
            self.damage(CATALOGUE, what, "Restore the database from a backup, then run cairn repair.")
        else:
            self.damage(FILE, what)

    @property
    def _catalogue_is_sound(self) -> bool:
        return self.catalogue is not None and not any(one.file in (CATALOGUE, *_SQLITE) for one in self.report.damaged)

    def _find_vocabulary(self) -> None:
        """Find the vocabulary in use: the catalogue says which, or the seal, or there is but one."""
        name: str | None = None
        if self._catalogue_is_sound and self.catalogue is not None:
            name = self.catalogue.setting(VOCABULARY_KEY) or VOCABULARY
            if not _is_vocabulary(name):
                self._damaged_catalogue(f"It names {name[:40]!r} as the collection's vocabulary.")
                name = None
            elif not (self.folder / name).exists() and (self.seal is None or self.seal.vocabulary != name):
                name = None  # there is none yet
        if name is None and not self._catalogue_is_sound and self.seal is not None:
            name = self.seal.vocabulary
        self.vocabulary = name

    def _check_sealed(self) -> None:
        """Compare the files of the seal with it, but for those of a vocabulary that is no longer in use."""
        if self.seal is None:
            return
        for name, sealed in self.seal.files.items():
            top = name.split("/")[0]
            if _is_vocabulary(top) and top != self.vocabulary:
                continue
            path = self.folder / name
            if top == SEGMENTS and not path.parent.exists():
                continue  # whether it should be there, the catalogue knows
            try:
                same = hash_file(path, self.tell) == sealed.sha256
            except FileNotFoundError:
                self.damage(name, "The file is missing.", self._remedy(name))
                continue
            except OSError as error:
                self.damage(name, f"The file cannot be read ({error.strerror or error}).", self._remedy(name))
                continue
            self.was_read(1, _size(path))
            if not same:
                self.damage(name, "The file is not what was written.", self._remedy(name))

    def _remedy(self, name: str) -> str:
        if _is_vocabulary(name.split("/")[0]):
            return (
                f"Run cairn repair {self.folder}; if that cannot restore the vocabulary, cairn retrain {self.folder} "
                "makes a new one."
            )
        return "repair"

    def _check_options(self) -> CollectionOptions | None:
        try:
            return read_options(self.folder / OPTIONS)
        except CairnError as error:
            if "later version" in str(error) and not self._is_reported(OPTIONS):
                raise
            self.damage(OPTIONS, f"The options cannot be read: {error}")
            return None

    def _check_vocabulary(self) -> None:
        """Find the vocabulary's fingerprint, and whether it is whole where the seal does not say so."""
        if self.vocabulary is None:
            return
        folder = self.folder / self.vocabulary
        if self.seal is None or self.seal.vocabulary != self.vocabulary:
            try:
                vocabulary = Vocabulary.load(folder)
            except CairnError as error:
                if folder.is_dir():  # it may have been replaced meanwhile
                    self.damage(self.vocabulary, f"The vocabulary cannot be read: {error}", self._remedy(VOCABULARY))
                return
            size = sum(_size(path) for path in folder.iterdir())
            self.was_read(len(list(folder.iterdir())), size)
            self.tell(size)
            self.fingerprints["vocabulary"] = vocabulary.fingerprint
        elif not any(one.file.startswith(f"{self.vocabulary}/") for one in self.report.damaged):
            self.fingerprints["vocabulary"] = load_json(folder / META_FILE)["fingerprint"]
        if self.seal is not None and self.seal.vocabulary == self.vocabulary and folder.is_dir():
            for name in sorted(f"{self.vocabulary}/{path.name}" for path in folder.iterdir()):
                if name not in self.seal.files:
                    self.note(f"{name} is none of the collection's files.")

    def _check_descriptor(self, options: CollectionOptions | None) -> None:
        if options is None or self._is_reported(OPTIONS) or self._is_reported(DESCRIPTOR):
            return
        try:
            extractor = Extractor(find_descriptor(options.descriptor, self.folder), options.features)
        except CairnError as error:
            self.damage(DESCRIPTOR if options.descriptor == DESCRIPTOR else OPTIONS, f"The descriptor fails: {error}")
            return
        self.fingerprints["descriptor"] = extractor.fingerprint

    def _check_segments(self) -> None:
        if not self._catalogue_is_sound or self.database is None:
            # Which of them the collection has is not known: each is checked by itself.
            for folder in _folders(self.folder / SEGMENTS):
                if not folder.name.endswith(".writing"):
                    self._hash_segment(folder, None)
            return
        try:
            seen: set[int] = set()
            # Segments that another process adds, or puts in the place of others, are looked at too.
            for _ in range(_LOOKS):
                todo = [one for one in segment_ids(self.database) if one not in seen]
                for one in todo:
                    self._check_segment(one)
                seen.update(todo)
                if not todo:
                    break
            for what in check_rows(self.database):
                self._damaged_catalogue(what)
        except (CairnError, sa.exc.SQLAlchemyError, TypeError, ValueError) as error:
            # What a damaged row holds may be of any type.
            self._damaged_catalogue(f"It cannot be read ({' '.join(str(error).split())[:200]}).")

    def _check_segment(self, one: int) -> None:
        assert self.database is not None
        found = read_segment_rows(self.database, one)
        if found is None:
            return
        row, images = found
        if Path(row.folder).name != row.folder or row.folder in ("", ".", ".."):
            self._damaged_catalogue(f"It names {row.folder[:40]!r} as a segment.")
            return
        folder = self.folder / SEGMENTS / row.folder
        damaged = dict(self._damaged_files(folder, row.sha256))
        what = None
        if not damaged:
            try:
                what = compare_segment(folder, row, images, self.fingerprints)
            except CairnError as error:
                damaged[f"{SEGMENTS}/{row.folder}"] = str(error)
        # Merged with others while it was read, it is gone.
        if (damaged or what) and read_segment_rows(self.database, one) is None:
            return
        for name, why in damaged.items():
            self.damage(name, why)
        if what is not None:
            self._damaged_catalogue(what)

    def _hash_segment(self, folder: Path, meta: str | None) -> None:
        for name, what in self._damaged_files(folder, meta):
            self.damage(name, what)

    def _damaged_files(self, folder: Path, meta: str | None) -> Iterator[tuple[str, str]]:
        """Damaged files of a segment and what is wrong with each, its description compared with a checksum if given."""
        name = f"{SEGMENTS}/{folder.name}"
        if not folder.is_dir():
            yield name, "The segment is missing."
            return
        entries = list(folder.iterdir())
        odd = [path for path in entries if not path.is_file()]
        if odd:
            yield f"{name}/{odd[0].name}", "It is not a regular file."
            return
        size = sum(map(_size, entries))
        try:
            same = meta is None or hash_file(folder / META) == meta
        except OSError:
            same = False
        bad = verify_segment(folder) if same else [META]
        self.was_read(len(entries), size)
        self.tell(size)
        for file in bad:
            there = (folder / file).exists()
            yield f"{name}/{file}", "The file is not what was written." if there else "The file is missing."
        if not bad:
            known = {META, *(f"{part}.npy" for part in load_json(folder / META)["files"])}
            for path in entries:
                if path.name not in known:
                    self.note(f"{name}/{path.name} is none of the collection's files.")

    def _is_reported(self, file: str) -> bool:
        return any(one.file == file for one in self.report.damaged)

    def _note_others(self) -> None:
        """Tell of what lies in the folder and is not in use."""
        known = {OPTIONS, DESCRIPTOR, SEAL, LOCK, SEGMENTS, CACHE, *CACHES, self.vocabulary}
        if self.address is None:
            known.update(_SQLITE)
        left = "left by a run that was stopped, or in use by one that is at work; cairn index removes it"
        for path in sorted(self.folder.iterdir()):
            name = path.name
            if name in known:
                continue
            if name in (STAGING, RETRAINING) or _UNFINISHED.fullmatch(name) or _is_vocabulary(name):
                self.note(f"{name} is {left}.")
            elif _SET_ASIDE.fullmatch(name):
                self.note(f"{name} is a damaged catalogue that was set aside; it may be deleted.")
            else:
                self.note(f"{name} is none of the collection's files.")
        if self._catalogue_is_sound and self.catalogue is not None:
            for orphan in self.catalogue.orphans(self.folder / SEGMENTS):
                self.note(f"{SEGMENTS}/{orphan.name} is {left}.")


def report_json(folder: Path, report: CheckReport) -> dict[str, object]:
    """What `cairn check --json` prints."""
    return {
        "collection": str(folder),
        "ok": report.ok,
        "files": report.files,
        "bytes": report.bytes,
        "damaged": [{"file": one.file, "what": one.what, "remedy": one.remedy} for one in report.damaged],
        "notes": report.notes,
        "seconds": round(report.seconds, 3),
    }


def _is_vocabulary(name: str) -> bool:
    return re.fullmatch(rf"{VOCABULARY}(-\d{{6}})?", name) is not None


def _folders(parent: Path) -> Iterable[Path]:
    return sorted(path for path in parent.iterdir() if path.is_dir()) if parent.is_dir() else []


def _size(path: Path) -> int:
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:  # it was there a moment ago
        return 0


def _megabytes(size: float) -> int:
    return int(size / _MEGABYTE) + 1
