"""Integrity of a collection: every file is read and verified by checksums.

Segments and caches are verified by their own checksums, everything else by those of the seal
(`retrieval.collection.sealing`), and the catalogue row by row against the segments. Nothing is changed, and other
processes may write meanwhile.
"""

import contextlib
import re
from pathlib import Path

from index.errors import CairnError, LaterVersion
from index.progress import Progress, silent
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.database import Database
from retrieval.catalogue.schema import FILE, FILES, ForeignValue
from retrieval.catalogue.segment_rows import orphans_in, segments_in
from retrieval.catalogue.sqlite.full_text import WORDS
from retrieval.catalogue.words import words_are_right
from retrieval.collection.identity import IDENTITY_KEY, WrongCatalogueError, read_identity
from retrieval.collection.layout import (
    EARLIER_JOBS,
    EARLIER_LINKS,
    IDENTITY,
    IMPROVING,
    LASTING,
    OPTIONS,
    RETRAINING,
    SEAL,
    SEGMENTS,
    SNAPSHOT,
    STAGING,
    UNFINISHED,
    VOCABULARY,
    is_vocabulary,
)
from retrieval.collection.locking import refuse_links
from retrieval.collection.opening import catalogue_place, named_vocabulary, open_catalogue
from retrieval.collection.seal import Seal, SealDamagedError, read_seal
from retrieval.collection.segments import has_foreign_photos, published
from retrieval.integrity.check_caches import check_caches
from retrieval.integrity.check_catalogue import check_server, check_snapshot, check_sqlite
from retrieval.integrity.check_files import check_static
from retrieval.integrity.check_segments import check_folders, check_segments
from retrieval.integrity.rebuild_server import what_is_lost
from retrieval.integrity.report import Check, Findings, size_of

CATALOGUE = "catalogue"
"""What a catalogue is called that is no file of the collection."""

_SET_ASIDE = re.compile(rf"{re.escape(FILE)}\.damaged-\d+(-wal)?")


def check_collection(folder: Path, *, catalogue: str | None = None, progress: Progress = silent) -> Check:
    """Read and verify every file of a collection, with the catalogue at an address, or its SQLite file."""
    if not any((folder / name).exists() for name in (OPTIONS, FILE, SEAL, SEGMENTS)):
        raise CairnError(
            "There is no collection at {folder}: create one with {cairn index|cairn.create}.", folder=folder
        )
    refuse_links(folder)
    check = _Check(Findings(folder, progress), catalogue)
    try:
        check.run()
    finally:
        check.close()
    return check.findings.end()


class _Check:
    def __init__(self, findings: Findings, address: str | None) -> None:
        self.findings = findings
        self.folder = findings.folder
        self.address = address
        self.seal: Seal | None = None
        self.catalogue: Catalogue | None = None  # if usable
        self.database: Database | None = None

    def run(self) -> None:
        self._read_seal()
        self._check_catalogue()
        if self.address is None:
            check_snapshot(self.findings, self.seal)
        self._check_identity()
        vocabulary = self._vocabulary()
        if vocabulary is None:
            self._check_needed()
        fingerprints = check_static(self.findings, self.seal, vocabulary)
        if self.catalogue is None or self.database is None:
            check_folders(self.findings)
        else:
            wrong = check_segments(self.findings, self.database, fingerprints)
            if wrong is not None:
                self._damaged_catalogue(wrong)
        if self.catalogue is not None and not self.findings.damaged and not self.catalogue.read(words_are_right):
            self.findings.damage(WORDS, "The words that photos are found by are not those that are said of them.")
        check_caches(self.findings, self.address)
        self._note_others(vocabulary)

    def close(self) -> None:
        if self.catalogue is not None:
            self.catalogue.close()
        if self.database is not None:
            self.database.close()

    def _read_seal(self) -> None:
        path = self.folder / SEAL
        try:
            self.seal = read_seal(path)
        except SealDamagedError:
            self.findings.damage(SEAL, "The checksums of the collection are not what was written.")
        if self.seal is not None:
            self.findings.was_read(1, size_of(path))
            if self.address is None and self.seal.database != "sqlite":
                raise CairnError(
                    "The catalogue of {folder} is in a database ({database}): give its address with {--catalogue}.",
                    folder=self.folder,
                    database=self.seal.database[:40],
                )

    def _check_catalogue(self) -> None:
        file = self.folder / FILE
        if self.address is not None:
            lost = self._open_on_server(self.address)
            if self.database is None:
                self._damaged_catalogue(lost)
                return
            finding = check_server(self.database, self.folder / SEAL)
        elif not file.is_file():
            self.findings.damage(
                FILE,
                "The catalogue is missing.",
                f"Run cairn repair {self.folder}, which makes it from the segments; or restore it from a copy, or "
                "give its address with --catalogue, if it is in another database.",
            )
            return
        else:
            finding = check_sqlite(file, self.folder / SEAL, self.findings.tell)
            self.findings.was_read(1, size_of(file))
        if not self.findings.is_damaged(SEAL):
            self.seal = finding.seal
            if finding.seal_is_lost:
                self.findings.damage(SEAL, "The checksums of the collection are missing.")
            elif finding.note is not None:
                self.findings.notes.append(f"{SEAL} {finding.note}")
        if finding.damage is not None:
            self._damaged_catalogue(finding.damage)
            self.close()
            self.catalogue = self.database = None
        elif self.catalogue is None:
            self._open_catalogue()

    def _open_on_server(self, address: str) -> str:
        """Open the catalogue in a database; if it is the collection's, and cannot be opened, return the damage."""
        try:
            self._open_catalogue()
        except (LaterVersion, WrongCatalogueError):
            raise
        except CairnError:
            lost = what_is_lost(address, self.folder) if "://" in address else None
            if lost is None:
                raise
            return lost
        return ""

    def _open_catalogue(self) -> None:
        self.catalogue = open_catalogue(self.folder, catalogue_place(self.folder, self.address))
        self.database = Database(self.catalogue.address)

    def _check_identity(self) -> None:
        """Check the file of the collection's identity, which the catalogue also stores."""
        known = None
        if self.catalogue is not None:
            known = self.catalogue.setting(IDENTITY_KEY)
        file = self.folder / IDENTITY
        if read_identity(self.folder) is not None:
            self.findings.was_read(1, size_of(file))
        elif file.exists() or known is not None:
            what = "The file is not what was written." if file.exists() else "The file is missing."
            self.findings.damage(IDENTITY, what)

    def _damaged_catalogue(self, what: str) -> None:
        if self.address is not None:
            remedy = f"Run cairn repair {self.folder} with the same --catalogue; or restore the database from a backup."
            self.findings.damage(CATALOGUE, what, remedy)
        else:
            self.findings.damage(FILE, what)

    def _vocabulary(self) -> str | None:
        """Folder of the vocabulary in use, by the catalogue, else the seal; None if there is no vocabulary yet."""
        if self.catalogue is None:
            return self.seal.vocabulary if self.seal is not None else None
        name = named_vocabulary(self.catalogue)
        if not is_vocabulary(name):
            self._damaged_catalogue(f"It names {name[:40]!r} as the collection's vocabulary.")
            return None
        known = self.seal is not None and self.seal.vocabulary == name
        return name if known or (self.folder / name).exists() else None

    def _check_needed(self) -> None:
        """Report a missing vocabulary if there are segments, which need one."""
        if self.catalogue is not None:
            needed = bool(self.catalogue.read(segments_in))
            # It may have been replaced meanwhile.
            name = named_vocabulary(self.catalogue)
        else:
            needed, name = bool(published(self.folder)), VOCABULARY
        there = any(is_vocabulary(path.name) for path in self.folder.glob(f"{VOCABULARY}*"))
        if needed and not (self.folder / name).exists() and not (there and self.catalogue is None):
            self.findings.damage(
                name if is_vocabulary(name) else VOCABULARY,
                "The vocabulary is missing.",
                f"Restore it from a copy; or, after cairn repair {self.folder}, cairn retrain {self.folder} makes a "
                "new one.",
            )

    def _note_others(self, vocabulary: str | None) -> None:
        known = {*LASTING, vocabulary, *((*FILES, SNAPSHOT) if self.address is None else ())}
        left = "left by a killed process, or in use by one that is still running"
        for path in sorted(self.folder.iterdir()):
            name = path.name
            if name in known:
                continue
            if name in (STAGING, RETRAINING):
                command = "index" if name == STAGING else "retrain"
                self.findings.notes.append(
                    f"{name} is {left}; the same cairn {command} again goes on with it, and cairn compact removes it."
                )
            elif name == IMPROVING:
                self.findings.notes.append(f"{name} is {left}; the same cairn improve again goes on with it.")
            elif UNFINISHED.fullmatch(name) or is_vocabulary(name):
                self.findings.notes.append(f"{name} is {left}; cairn index removes it.")
            elif name == EARLIER_LINKS:
                self.findings.notes.append(f"{name} was written by an earlier version; cairn group removes it.")
            elif name in EARLIER_JOBS:
                self.findings.notes.append(
                    f"{name} is a list of work of an earlier version, which nothing reads; it may be deleted."
                )
            elif _SET_ASIDE.fullmatch(name):
                self.findings.notes.append(f"{name} is a damaged catalogue that was set aside; it may be deleted.")
            else:
                self.findings.notes.append(f"{name} is not one of the collection's files.")
        if self.catalogue is not None:
            orphans = []
            with contextlib.suppress(ForeignValue):  # reported
                orphans = self.catalogue.read(orphans_in, self.folder / SEGMENTS)
            for orphan in orphans:
                foreign = has_foreign_photos(orphan, self.catalogue)
                what = f"{left}; cairn index removes it"
                if foreign:
                    what = "not one of the collection's: it holds photos that the catalogue has never had"
                self.findings.notes.append(f"{SEGMENTS}/{orphan.name} is {what}.")
