"""Repair of a collection: rebuild damaged files from copies, from sound files and from the photos."""

import hashlib
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from index.arrays import hash_file, load_array, load_json, save_bytes, temporary_path
from index.errors import CairnError
from index.files.names import is_plain_name
from index.neighbours import DESCRIPTION_FILE, EARLIER_INDEX_FILE, INDEX_FILE
from index.progress import Progress, silent
from index.reports import Report
from index.search_backends import search_backend
from index.segments.description import NOTES, verify_segment
from index.segments.repair import restore_segment
from index.vocabulary import CENTRES_FILE, META_FILE, Vocabulary
from retrieval.catalogue.catalogue import Catalogue
from retrieval.catalogue.database import Database
from retrieval.catalogue.photos import rows_of
from retrieval.catalogue.schema import FILE, INDEXED, SegmentRow
from retrieval.catalogue.sqlite.full_text import WORDS
from retrieval.catalogue.words import make_words
from retrieval.collection.augmentation import empty_augmentation
from retrieval.collection.collection import Collection
from retrieval.collection.global_rows import remove_global
from retrieval.collection.layout import (
    AUGMENTATION,
    DESCRIPTOR,
    GLOBAL,
    GROUPS,
    OPTIONS,
    SEAL,
    SEGMENTS,
    SNAPSHOT,
    STATISTICS,
    is_vocabulary,
)
from retrieval.collection.locking import CollectionLocked, lock_folder, lock_links
from retrieval.collection.opening import catalogue_place, named_vocabulary
from retrieval.collection.seal import Seal, sound_seal
from retrieval.collection.sealing import COPIES_KEY, read_copies, seal
from retrieval.collection.segment_notes import write_notes
from retrieval.collection.segments import is_there
from retrieval.collection.stale_files import remove_leftovers
from retrieval.descriptors.registry import MODELS, model_file
from retrieval.indexing.described import use_features_again
from retrieval.integrity.check import CATALOGUE, check_collection
from retrieval.integrity.compare_rows import SegmentImage, read_segment_rows, segment_ids
from retrieval.integrity.rebuild_catalogue import rebuild_catalogue
from retrieval.integrity.rebuild_segments import Rewriting, rewrite_notes, rewrite_segments
from retrieval.integrity.rebuild_server import rebuild_server_catalogue
from retrieval.integrity.report import Check, Damage
from retrieval.photos.listing import CACHE


@dataclass(frozen=True)
class Repaired(Report):
    """Result of `repair`."""

    ok: Annotated[bool, "Whether everything is sound now, and nothing was lost."]
    repaired: Annotated[list[dict[str, str]], "File, and method of repair."]
    lost: Annotated[list[dict[str, str]], "Photos lost from the collection: name, path and reason."]
    lapses: Annotated[list[str], "Other losses, in sentences."]
    damaged: Annotated[tuple[Damage, ...], "Remaining damage."]
    notes: Annotated[list[str], "Notes other than damage."]
    seconds: Annotated[float, "Time."]


def repair_collection(
    folder: Path,
    *,
    photos: Sequence[Path] = (),
    drop_missing: bool = False,
    features: Path | None = None,
    workers: int = 1,
    catalogue: str | None = None,
    progress: Progress = silent,
) -> Repaired:
    """Rebuild damaged parts of a collection, as far as possible: options, descriptor and small files of the vocabulary
    from copies, its index from its centres, a catalogue from its snapshot or its readable rows and the notes of
    segments, and damaged segments from their photos. Another run resumes a repair that was killed.

    `drop_missing`: drop photos of damaged segments that cannot be found. `features`: features of the photos, for a
    collection with features of another program: see `open_features`.
    """
    start = time.perf_counter()
    missing = [path for path in photos if not path.exists()]
    if missing:
        raise CairnError("There is no file or folder {path}; check the name.", path=repr(str(missing[0])))
    found = check_collection(folder, catalogue=catalogue, progress=progress)
    with lock_folder(folder):
        repair = _Repair(folder, catalogue, features)
        repair.run(found, photos, drop_missing, workers, progress)
    damaged = check_collection(folder, catalogue=catalogue, progress=progress).damaged
    ok, seconds = not (damaged or repair.lost or repair.lapses), round(time.perf_counter() - start, 3)
    return Repaired(ok, repair.repaired, repair.lost, repair.lapses, damaged, repair.notes, seconds)


_MADE_AGAIN = {
    SEAL: "the collection is sealed again",
    SNAPSHOT: "the catalogue was copied again",
    STATISTICS: "computed again from the postings",
}


class _Repair:
    def __init__(self, folder: Path, address: str | None, features: Path | None) -> None:
        self.folder = folder
        self.address = address
        self.features = features
        self.seal: Seal | None = None
        self.repaired: list[dict[str, str]] = []
        self.lost: list[dict[str, str]] = []
        self.lapses: list[str] = []
        self.notes: list[str] = []

    def run(self, found: Check, photos: Sequence[Path], drop_missing: bool, workers: int, progress: Progress) -> None:
        """Repair the findings in order, as later steps need earlier ones."""
        self.seal = sound_seal(self.folder / SEAL)
        segments = self.folder / SEGMENTS
        if segments.exists() and not segments.is_dir():
            raise CairnError(
                "{segments} is not a folder: move it away, and run {cairn repair} again.", segments=segments
            )
        segments.mkdir(exist_ok=True)
        self._repair_caches(found)
        if self.address is None and any(one.file.startswith(FILE) for one in found.damaged):
            how, notes, self.lapses = rebuild_catalogue(self.folder, self.seal)
            self.notes += notes
            self._done(FILE, how)
        elif self.address is not None and any(one.file == CATALOGUE for one in found.damaged):
            how, notes, self.lapses = rebuild_server_catalogue(self.folder, self.address, self.seal)
            self.notes += notes
            self._done(CATALOGUE, how)
        self._restore_copies()
        self._restore_descriptor()
        try:
            collection = Collection.open(self.folder, catalogue=self.address)
        except CairnError:
            return  # remaining damage is reported by the last check
        with collection:
            if any(one.file == WORDS for one in found.damaged):
                collection.catalogue.write(make_words)
                self._done(WORDS, "made again of what is said of the photos")
            self._restore_search(collection)
            try:
                self._rewrite_segments(collection, found, photos, drop_missing, workers, progress)
            except CairnError as error:
                if self.repaired:
                    self._seal(collection, found)
                    raise CairnError(
                        " ".join([str(error), "What else was damaged is repaired.", *self.lapses])
                    ) from error
                raise
            self._seal(collection, found)

    def _done(self, file: str, how: str) -> None:
        self.repaired.append({"file": file, "how": how})

    def _repair_caches(self, found: Check) -> None:
        if any(one.file.startswith(f"{AUGMENTATION}/") for one in found.damaged):
            try:
                with lock_links(self.folder):
                    empty_augmentation(self.folder)
            except CollectionLocked as error:
                self.notes.append(f"What photos borrow is left as it is. {error}")
            else:
                self._done(AUGMENTATION, "emptied: cairn group lets photos borrow again")
        for one in found.damaged:
            path = self.folder / one.file
            if one.file == GROUPS:
                path.unlink(missing_ok=True)
                self._done(GROUPS, "deleted: cairn group finds the groups again")
            elif one.file == GLOBAL:
                remove_global(self.folder)
                self._done(GLOBAL, "deleted: cairn global describes the photos again")
            elif one.file.startswith(f"{CACHE}/"):
                path.unlink(missing_ok=True)
                self._done(one.file, "deleted: it is made again when it is shown")

    def _restore_copies(self) -> None:
        with Catalogue.open(catalogue_place(self.folder, self.address)) as catalogue:
            copies = read_copies(catalogue.setting(COPIES_KEY))
            known = {OPTIONS, DESCRIPTOR}
            for name, copy in copies.items():
                sealed = self.seal.files.get(name) if self.seal is not None else None
                wrong = sealed is not None and hashlib.sha256(copy).hexdigest() != sealed.sha256
                top, _, rest = name.partition("/")
                path = self.folder / name
                in_use = is_vocabulary(top) and top == named_vocabulary(catalogue)
                ours = name in known or (in_use and is_plain_name(rest))
                same = path.is_file() and path.stat().st_size == len(copy) and path.read_bytes() == copy
                if wrong or not ours or same:
                    continue
                path.parent.mkdir(exist_ok=True)
                save_bytes(path, copy)
                self._done(name, "restored from the copy in the catalogue")

    def _restore_descriptor(self) -> None:
        """Restore the descriptor if it is one that comes with Cairn."""
        sealed = self.seal.files.get(DESCRIPTOR) if self.seal is not None else None
        path = self.folder / DESCRIPTOR
        if sealed is None or (path.is_file() and hash_file(path) == sealed.sha256):
            return
        for name in MODELS:
            file = model_file(name)
            if file is not None and file.is_file() and hash_file(file) == sealed.sha256:
                save_bytes(path, file.read_bytes())
                self._done(DESCRIPTOR, f"restored: it is the descriptor {name} that comes with Cairn")
                return

    def _restore_search(self, collection: Collection) -> None:
        """Build the index of the vocabulary again from its centres."""
        folder = collection.vocabulary_folder
        if not folder.is_dir():
            return
        try:
            Vocabulary.load(folder)
        except CairnError:
            pass
        else:
            return
        temporary = temporary_path(folder)
        try:
            meta = load_json(folder / META_FILE)
            points = load_array(folder / CENTRES_FILE)
            backend = search_backend(meta["search"]["backend"])
            options = backend.options_type(**meta["search"]["options"])
            search = backend.build(points, options, int(meta["search"]["seed"]))
            temporary.mkdir()
            search.save(temporary)
            for name in (META_FILE, CENTRES_FILE):
                shutil.copyfile(folder / name, temporary / name)
            Vocabulary.load(temporary)  # its fingerprint verifies the centres
        except (CairnError, TypeError, ValueError, KeyError) as error:
            self.notes.append(
                f"The vocabulary cannot be restored ({error}): cairn retrain {self.folder} makes a new one."
            )
            shutil.rmtree(temporary, ignore_errors=True)
            return
        for name in (INDEX_FILE, DESCRIPTION_FILE):
            if (temporary / name).is_file():
                (temporary / name).replace(folder / name)
        (folder / EARLIER_INDEX_FILE).unlink(missing_ok=True)
        shutil.rmtree(temporary, ignore_errors=True)
        self._done(f"{folder.name}/{INDEX_FILE}", "built again from the centres")

    def _rewrite_segments(
        self,
        collection: Collection,
        found: Check,
        photos: Sequence[Path],
        drop_missing: bool,
        workers: int,
        progress: Progress,
    ) -> None:
        """Rewrite damaged segments; those that need a vocabulary wait for a sound one."""
        bad = {one.file.split("/")[1] for one in found.damaged if one.file.startswith(f"{SEGMENTS}/")}
        database = Database(collection.catalogue.address)
        rows, numbers = [], []
        for one in segment_ids(database):
            read = read_segment_rows(database, one)
            if read is None or (read[0].folder not in bad and is_there(self.folder, read[0])):
                continue
            if not self._restore_files(collection, *read):
                rows.append(read[0])
                numbers.append([image.number for image in read[1] if image.state == INDEXED])
        database.close()
        if not rows:
            return
        try:
            collection.check_vocabulary()
        except CairnError as error:
            self.notes.append(f"The segments wait for the vocabulary and the descriptor: {error}")
            return
        if self.features is not None:
            use_features_again(collection, self.features)
        done: Rewriting = rewrite_segments(
            collection, rows, numbers, photos, drop_missing=drop_missing, workers=workers, progress=progress
        )
        for name in done.segments:
            self._done(f"{SEGMENTS}/{name}", "its photos were extracted again")
        if done.moved:
            self.notes.append(f"{done.moved} photos were found elsewhere, and are known there now.")
        self.lost += done.lost

    def _restore_files(self, collection: Collection, row: SegmentRow, images: Sequence[SegmentImage]) -> bool:
        """Make the damaged files of a segment again from its others; False if that is not enough."""
        folder = self.folder / SEGMENTS / row.folder
        if row.sha256 is None or not folder.is_dir():
            return False
        numbers = [image.number for image in images]
        notes = write_notes(collection.catalogue.read(rows_of, numbers, indexed=False))
        restored = restore_segment(
            folder,
            row.sha256,
            vocabulary_fingerprint=row.vocabulary_fingerprint,
            descriptor_fingerprint=row.descriptor_fingerprint,
            known={"image_numbers": np.array(numbers), NOTES: np.frombuffer(notes, np.uint8)},
        )
        if not is_there(self.folder, row):
            return False
        bad = verify_segment(folder)
        for name in restored if bad in ([], [f"{NOTES}.npy"]) else []:
            self._done(f"{SEGMENTS}/{row.folder}/{name}", "made again from the other files of the segment")
        if bad == [f"{NOTES}.npy"] and load_array(folder / "image_numbers.npy").tolist() == numbers:
            name = rewrite_notes(collection, row, numbers)
            self._done(f"{SEGMENTS}/{row.folder}/{bad[0]}", f"written again: the segment is {SEGMENTS}/{name} now")
            return True
        return not bad

    def _seal(self, collection: Collection, found: Check) -> None:
        """Seal repaired files, but not those still damaged."""
        remove_leftovers(collection)
        if any(one["file"].endswith(INDEX_FILE) for one in self.repaired):
            # A rebuilt index may differ in a bit, and is valid all the same.
            (self.folder / SEAL).unlink(missing_ok=True)
        # They may have been computed from postings that were damaged.
        (self.folder / STATISTICS).unlink(missing_ok=True)
        damaged = [name for name in (SEAL, SNAPSHOT, STATISTICS) if any(one.file == name for one in found.damaged)]
        if SNAPSHOT in damaged:
            (self.folder / SNAPSHOT).unlink(missing_ok=True)
        if collection.has_vocabulary:
            try:
                collection.check_vocabulary()
            except CairnError:
                return
        seal(collection)
        for name in damaged:
            self._done(name, _MADE_AGAIN[name])
